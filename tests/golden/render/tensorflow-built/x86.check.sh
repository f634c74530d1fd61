#!/bin/sh
# Compares the tools of this image with sha256:ec4507d45bc2f8e28edbea9cf708a4127f96410dcc49c8bd3cb353bfe71375d0.
# Written by toolmatrix 0 for x86; it does not overwrite edited files.
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# Exits with 1 where they differ, and says for each difference what was expected and what was found.
# With the argument `runtime` it asks only for what a runtime image has, with `tools` for what builds.
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
    printf '%s  %-10s  %-14s wanted %-14s %s\n' "$word" "$1" "$2" "$3" "$4"
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

agrees=no
machine=$(uname -m)
[ "$machine" = x86_64 ] && agrees=yes
judge machine "$machine" x86_64 'uname -m'
compare cuda 11.2.2 minor '' dpkg-query -W -f '${Version}\n' 'cuda-cudart-[0-9]*'
compare cudnn 8.1.1.33 series '' dpkg-query -W -f '${Version}\n' 'libcudnn[0-9]*'
compare distro 20.04 series 'ubuntu ' sh -c '. /etc/os-release && printf "%s %s\n" "$ID" "$VERSION_ID"'
compare python 3.9 series '' python --version
compare python 3.9 series '' python3 --version
compare numpy 1.19.5 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' numpy
compare protobuf 3.19.6 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' protobuf
compare keras 2.6.0 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' keras
compare h5py 3.1.0 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' h5py
compare wrapt 1.12.1 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' wrapt
compare gast 0.4.0 exact '' python -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' gast
if [ "${1:-}" != tools ]; then
    compare tensorflow 2.6.5 exact '' python -c 'import tensorflow as tf; print(tf.__version__)'
fi
if [ "${1:-}" != runtime ]; then
    compare cuda 11.2.2 minor 'release ' nvcc --version
    compare gcc 7 series '' gcc -dumpfullversion -dumpversion
    compare gcc 7 series '' g++ -dumpfullversion -dumpversion
    compare bazel 3.7.2 series '' bazel --version
    if [ "${1:-}" = tools ]; then
        holds stages 'cicc compute_52,cudafe++,fatbinary,gcc 7,ptxas sm_52' nvcc
    else
        holds stages 'cicc compute_52,cudafe++,fatbinary,gcc 7,ptxas sm_52' nvcc
    fi
    :
fi

printf '%s checked, %s failed\n' "$checked" "$failed"
[ "$failed" -eq 0 ]
