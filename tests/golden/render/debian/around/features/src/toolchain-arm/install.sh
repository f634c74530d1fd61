#!/bin/bash
# toolchain for arm: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:cc221b4b54dbee3d40d575e1d04ce9a3aa2b40a234433cbb711826d38d54353a
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# answer  arm (linux/arm64), none, from source
#   base-image  debian:12  artifact
#   bazel       4.2.3      stated
#   distro      debian12   derived
#   gcc         12         artifact
#   numpy       2.4.6      artifact
#   python      3.11       stated
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
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-12 g++-12 make bazel-bootstrap python3.11 python3.11-dev python3.11-venv python3-distutils
rm -rf /var/log/* /var/cache/ldconfig/aux-cache

export CFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export CXXFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONUNBUFFERED=1
export VIRTUAL_ENV=/opt/venv
export PATH="/opt/venv/bin:${PATH}"
ln -sf /usr/bin/g++-12 /usr/local/bin/aarch64-linux-gnu-g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/aarch64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-12 /usr/local/bin/aarch64-linux-gnu-gcc-ar
ln -sf /usr/bin/g++-12 /usr/local/bin/c++
ln -sf /usr/bin/gcc-12 /usr/local/bin/cc
ln -sf /usr/bin/g++-12 /usr/local/bin/g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc
python3.11 -m venv /opt/venv
python -m pip install --no-cache-dir numpy==2.4.6
python -m pip check

# What was installed is what was resolved, or the build ends here.
sh arm.check.sh
