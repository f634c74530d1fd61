#!/bin/sh
# Compares the tools of this image with sha256:4048aece749378013f65dc092b802b064818086d4b4f13581e539515f537bef7.
# Written by toolmatrix 0 for amd; it does not overwrite edited files.
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
    printf '__global__ void probe() {}\n' >"$scratch/plan.hip"
    HIP_PLATFORM=amd "$@" '-###' -c "$scratch/plan.hip" -o "$scratch/plan.o" 2>&1 | sed -n '
        h
        s/^ *"[^"]*clang[^"/]*" .*"-triple" "amdgcn-[^"]*" .*"-target-cpu" "\([^"]*\)".*/clang \1/p
        g
        s/^ *"[^"]*lld" .*mcpu=\([0-9a-z]*\).*/lld \1/p
        g
        s/^ *"[^"]*\(clang-offload-bundler\)" .*/\1/p
    '
}

# gfx DRIVER FLAG...: the archs of an object, by the names in its bundle.
gfx() {
    printf '#include <hip/hip_runtime.h>\n__global__ void probe(float *x) { *x = 1; }\n' >"$scratch/probe.hip"
    HIP_PLATFORM=amd "$@" -c "$scratch/probe.hip" -o "$scratch/probe.o"
    grep -ao 'amdgcn-amd-amdhsa-[a-z]*-gfx[0-9a-z:+-]*' "$scratch/probe.o" | sed 's/.*-gfx/gfx/'
}

agrees=no
machine=$(uname -m)
[ "$machine" = x86_64 ] && agrees=yes
judge machine "$machine" x86_64 'uname -m'
compare rocm 5.2.3 minor 'HIP version: ' hipcc --version
compare distro 12 series 'debian ' sh -c '. /etc/os-release && printf "%s %s\n" "$ID" "$VERSION_ID"'
compare python 3.11 series '' python --version
compare python 3.11 series '' python3 --version
if [ "${1:-}" != runtime ]; then
    compare gcc 12 series '' gcc -dumpfullversion -dumpversion
    compare gcc 12 series '' g++ -dumpfullversion -dumpversion
    holds stages 'clang gfx90a,clang-offload-bundler,lld gfx90a' hipcc
    holds gfx gfx90a hipcc
    :
fi

printf '%s checked, %s failed\n' "$checked" "$failed"
[ "$failed" -eq 0 ]
