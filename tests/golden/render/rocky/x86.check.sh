#!/bin/sh
# Compares the tools of this image with sha256:a8ceaa6d210f719e29e7309a23f3aa0eadedc9a1f0b65641f7dc1e89cdaa230e.
# Written by toolmatrix 0 for x86; it does not overwrite edited files.
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# Exits with 1 where they differ, and says for each difference what was expected and what was found.
# With the argument `runtime` it asks only for what a runtime image has.
set -u
LC_ALL=C
export LC_ALL
checked=0
failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# judge NAME FOUND WANTED HOW: one line for each check, and a sentence for what differs. Succeeds where $agrees is yes.
judge() {
    checked=$((checked + 1))
    word=pass
    [ "$agrees" = yes ] || word=FAIL
    printf '%s  %-7s  %-14s wanted %-14s %s\n' "$word" "$1" "$2" "$3" "$4"
    [ "$agrees" = yes ] && return
    failed=$((failed + 1))
    printf '%s: expected %s, found %s by `%s`\n' "$1" "$3" "$2" "$4" >&2
}

# compare NAME WANTED MATCH AFTER COMMAND...: the first version printed behind AFTER agrees with WANTED.
compare() {
    name=$1 wanted=$2 match=$3 after=$4
    shift 4
    before='[^0-9]*'
    [ -z "$after" ] || before=".*$after"
    found=$("$@" 2>/dev/null | sed -n "s/^$before\([0-9][0-9A-Za-z.+~_-]*\).*/\1/p" | head -n 1)
    agrees=no
    case $match in
    minor) [ "$(printf '%s' "$found" | cut -d. -f1-2)" = "$(printf '%s' "$wanted" | cut -d. -f1-2)" ] && agrees=yes ;;
    series) case $found in "$wanted" | "$wanted"[.+~_-]*) agrees=yes ;; esac ;;
    # A wheel of an index of its maker's may have a label behind its release: 2.9.1+cpu.
    *) [ "$found" = "$wanted" ] || [ "${found%%+*}" = "$wanted" ] && agrees=yes ;;
    esac
    judge "$name" "${found:-nothing}" "$wanted" "$*"
}

# effect NAME WANTED OTHERWISE CONDITION FLAG...: the compiler, given the flags, meets the condition.
effect() {
    name=$1 wanted=$2 otherwise=$3 condition=$4
    shift 4
    found=$otherwise
    agrees=no
    if ! printf 'int probe;\n' | cc "$@" -x c -c -o "$scratch/probe.o" - 2>/dev/null; then
        found='no compiler'
    elif printf '#if !(%s)\n#error\n#endif\nint probe;\n' "$condition" |
        cc "$@" -x c -c -o "$scratch/probe.o" - 2>/dev/null; then
        found=$wanted
        agrees=yes
    fi
    judge "$name" "$found" "$wanted" "cc $*"
}

# setting NAME VALUE FLAG: the flag is one of the words of a variable of the image.
setting() {
    agrees=no
    case " $2 " in *" $3 "*) agrees=yes ;; esac
    [ "$agrees" = yes ] && found=$3 || found=${2:-nothing}
    judge "$1" "$found" "$3" "echo \$$1"
}

# holds NAME ARCHS DRIVER FLAG...: what the driver compiles holds code for these archs and no other. Flags are given by
# hand where the image does not set them.
holds() {
    name=$1 wanted=$2
    shift 2
    found=$("$name" "$@" 2>/dev/null | sort -u | paste -sd, -)
    agrees=no
    [ "$found" = "$wanted" ] && agrees=yes
    judge "$name" "${found:-nothing}" "$wanted" "$*"
}

# stages DRIVER FLAG...: what the driver would run for a kernel, by its dry run: tools with their archs, host compiler.
stages() {
    printf '__global__ void probe() {}\n' >"$scratch/plan.cu"
    "$@" --dryrun -c "$scratch/plan.cu" -o "$scratch/plan.o" 2>&1 | sed -n '
        /^#\$ /!d
        h
        s/^#\$ "*[^ "]*\(cicc\)"* .*-arch *\(compute_[0-9a-z]*\).*/\1 \2/p
        g
        s/^#\$ "*[^ "]*\(ptxas\)"* .*-arch[ =]"*\([a-z]*_[0-9a-z]*\).*/\1 \2/p
        g
        s/^#\$ "*[^ "]*\(cudafe++\)"* .*/\1/p
        s/^#\$ "*[^ "]*\(fatbinary\)"* .*/\1/p
        g
        s/.*--gnu_version=\([0-9]*\)[0-9][0-9][0-9][0-9] .*/gcc \1/p
    '
}

# sm DRIVER FLAG...: the archs of an object, by the headers in its fat binary (magic 0xBA55ED50): of each image its
# kind, its length, its arch, and whether it is for that arch alone (a) or its family (f).
sm() {
    printf '__global__ void probe() {}\n' >"$scratch/probe.cu"
    "$@" -c "$scratch/probe.cu" -o "$scratch/probe.o" >&2 || return
    od -An -v -tu4 "$scratch/probe.o" | awk '
        { for (i = 1; i <= NF; i++) word[n++] = $i }
        END {
            for (i = 0; i < n; i++) if (word[i] == 3126193488) {
                place = i + int(word[i + 1] / 65536) / 4
                end = place + word[i + 2] / 4
                while (place < end && word[place + 1] > 0) {
                    kind = word[place] % 65536
                    flags = word[place + 10]
                    of = word[place + 7] (int(flags / 1048576) % 2 ? "a" : "") (int(flags / 2097152) % 2 ? "f" : "")
                    if (kind == 1) print "compute_" of
                    if (kind == 2) print "sm_" of
                    place += (word[place + 1] + word[place + 2]) / 4
                }
            }
        }'
}

agrees=no
machine=$(uname -m)
[ "$machine" = x86_64 ] && agrees=yes
judge machine "$machine" x86_64 'uname -m'
compare cuda 12.4.1 minor '' rpm -qa --qf '%{VERSION}\n' 'cuda-cudart-[0-9]*'
compare cudnn 9.1.0.70 series '' rpm -qa --qf '%{VERSION}\n' 'libcudnn[0-9]*'
compare distro 9 series 'rocky ' sh -c '. /etc/os-release && printf "%s %s\n" "$ID" "$VERSION_ID"'
if [ "${1:-}" != runtime ]; then
    compare cuda 12.4.1 minor 'release ' nvcc --version
    compare gcc 11 series '' gcc -dumpfullversion -dumpversion
    compare gcc 11 series '' g++ -dumpfullversion -dumpversion
    holds stages 'cicc compute_86,cudafe++,fatbinary,gcc 11,ptxas sm_86' nvcc
    holds sm compute_86,sm_86 nvcc
    :
fi

printf '%s checked, %s failed\n' "$checked" "$failed"
[ "$failed" -eq 0 ]
