#!/bin/bash
# toolchain for amd: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:4048aece749378013f65dc092b802b064818086d4b4f13581e539515f537bef7
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# answer  amd (linux/amd64), rocm, from source
#   base-image  debian:12  artifact
#   distro      debian12   artifact
#   gcc         12         artifact
#   python      3.11       stated
#   rocm        5.2.3      stated
#
# Support of debian12 ends on 2028-06-10; its packages move to an archive some time after.

set -euo pipefail
cd "$(dirname "$0")"

# Packages are called as this distribution calls them.
. /etc/os-release
if [ "$ID $VERSION_ID" != "debian 12" ]; then
    echo "this feature is for debian 12, and not for $ID $VERSION_ID" >&2
    exit 1
fi

# Versions are left to the distribution: the last step checks what came.
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends hipcc gcc-12 g++-12 make python3.11 python3.11-dev python3.11-venv python3-distutils
rm -rf /var/log/* /var/cache/ldconfig/aux-cache

export HIPCC_COMPILE_FLAGS_APPEND=--offload-arch=gfx90a
export PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONUNBUFFERED=1
export VIRTUAL_ENV=/opt/venv
export PATH="/opt/venv/bin:${PATH}"
ln -sf /usr/bin/g++-12 /usr/local/bin/c++
ln -sf /usr/bin/gcc-12 /usr/local/bin/cc
ln -sf /usr/bin/g++-12 /usr/local/bin/g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc
ln -sf /usr/bin/g++-12 /usr/local/bin/x86_64-linux-gnu-g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/x86_64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-12 /usr/local/bin/x86_64-linux-gnu-gcc-ar
python3.11 -m venv /opt/venv

# What was installed is what was resolved, or the build ends here.
sh amd.check.sh
