/* Programs of images for tests: each is this file under another name, which says how it behaves. */
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int hangs(void) {
    for (;;)
        pause();
}

/* Prints for ever. */
static int noise(void) {
    for (;;)
        if (puts("1.0 noise noise noise noise") < 0)
            return 1;
}

/* Prints more than is read, and then a version. */
static int verbose(void) {
    for (int line = 0; line < 8000; line++)
        puts("nothing to see");
    puts("3.2.1");
    return 0;
}

static int forks(void) {
    for (;;)
        fork();
}

static int eats(void) {
    for (;;) {
        char *part = malloc(1 << 20);
        if (part)
            memset(part, 1, 1 << 20);
    }
}

/* Counts the files that it can make outside of the memory that it has. */
static int writes(void) {
    const char *files[] = {"/new", "/bin/new", "/volume/new", "/etc/hosts", "/proc/sys/kernel/hostname"};
    int made = 0;
    for (int place = 0; place < 5; place++)
        made += open(files[place], O_WRONLY | O_CREAT, 0600) >= 0;
    printf("%d.0\n", made);
    return 0;
}

/* Counts the networks that it has and the hosts that it reaches. */
static int calls(void) {
    const char *hosts[] = {"172.17.0.1", "8.8.8.8"};
    int reached = 0;
    for (int place = 0; place < 2; place++) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
        inet_pton(AF_INET, hosts[place], &to.sin_addr);
        reached += connect(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&to, sizeof to) == 0;
    }
    for (struct if_nameindex *one = if_nameindex(); one && one->if_name; one++)
        reached += strcmp(one->if_name, "lo") != 0;
    printf("%d.0\n", reached);
    return 0;
}

/* Prints what the kernel says of its rights. */
static int rights(void) {
    char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    long size = read(file, text, sizeof text);
    return write(1, text, size) != size;
}

static int user(void) {
    printf("%d.%d\n", (int)getuid(), (int)getgid());
    return 0;
}

static int fails(void) {
    fputs("first\n\033[31mlast\033[0m\n\n", stderr);
    return 3;
}

/* Counts the variables of proxies that tell one. */
static int proxy(void) {
    const char *names[] = {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"};
    int told = 0;
    for (int place = 0; place < 6; place++) {
        const char *value = getenv(names[place]);
        told += value && *value;
    }
    printf("%d.0\n", told);
    return 0;
}

static int mute(void) { return 0; }

static int colours(void) {
    puts("\033[31m12.2.0\033[0m");
    return 0;
}

/* A compiler that is not the one that its package says. */
static int gcc(void) {
    if (getenv("HANGS"))
        return hangs();
    puts("9.4.0");
    return 0;
}

static const struct {
    const char *name;
    int (*does)(void);
} kinds[] = {
    {"hangs", hangs}, {"noise", noise}, {"verbose", verbose}, {"forks", forks}, {"eats", eats},
    {"writes", writes}, {"calls", calls}, {"rights", rights}, {"user", user}, {"fails", fails},
    {"mute", mute}, {"colours", colours}, {"gcc", gcc}, {"proxy", proxy},
};

int main(int count, char **words) {
    const char *slash = strrchr(words[0], '/');
    const char *name = slash ? slash + 1 : words[0];
    for (unsigned place = 0; place < sizeof kinds / sizeof *kinds; place++)
        if (!strcmp(name, kinds[place].name))
            return kinds[place].does();
    printf("%d\n", count);
    return 1;
}
