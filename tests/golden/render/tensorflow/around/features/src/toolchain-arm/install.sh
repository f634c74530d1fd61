#!/bin/bash
# toolchain for arm: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:ec4507d45bc2f8e28edbea9cf708a4127f96410dcc49c8bd3cb353bfe71375d0
# matrix  2026-11-20 sha256:5fab926a265f8ebc7320a2d6edef8bde9ea4fc851a7da214d4a12c108e116cc7
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# answer  arm (linux/arm64), none, from source
#   base-image  ubuntu:20.04  artifact
#   bazel       3.7.2         derived
#   distro      ubuntu20.04   derived
#   gast        0.4.0         artifact
#   gcc         7             derived
#   h5py        3.1.0         artifact
#   keras       2.6.0         artifact
#   numpy       1.19.5        artifact
#   protobuf    3.19.6        artifact
#   python      3.9           artifact
#   tensorflow  2.6.5         artifact
#   wrapt       1.12.1        artifact
#
# Support of ubuntu20.04 ends on 2025-05-31; its packages move to an archive some time after.

set -euo pipefail
cd "$(dirname "$0")"

# Packages are called as this distribution calls them.
. /etc/os-release
if [ "$ID $VERSION_ID" != "ubuntu 20.04" ]; then
    echo "this feature is for ubuntu 20.04, and not for $ID $VERSION_ID" >&2
    exit 1
fi

# Versions are left to the distribution: the last step checks what came.
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-7 g++-7 make python3.9 python3.9-dev python3.9-venv python3-distutils ca-certificates curl
rm -rf /var/log/* /var/cache/ldconfig/aux-cache

export CFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export CXXFLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'
export PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONUNBUFFERED=1
export VIRTUAL_ENV=/opt/venv
export PATH="/opt/venv/bin:${PATH}"
curl -fsSL --retry 3 -o /usr/local/bin/bazel https://github.com/bazelbuild/bazel/releases/download/3.7.2/bazel-3.7.2-linux-arm64
printf '%s  %s\n' 6ebd9eccbcb8f63c92a324c0c86cec11963aa9dcb914dd4718f592fdfeda9823 /usr/local/bin/bazel | sha256sum -c -
chmod 0755 /usr/local/bin/bazel

ln -sf /usr/bin/g++-7 /usr/local/bin/aarch64-linux-gnu-g++
ln -sf /usr/bin/gcc-7 /usr/local/bin/aarch64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-7 /usr/local/bin/aarch64-linux-gnu-gcc-ar
ln -sf /usr/bin/g++-7 /usr/local/bin/c++
ln -sf /usr/bin/gcc-7 /usr/local/bin/cc
ln -sf /usr/bin/g++-7 /usr/local/bin/g++
ln -sf /usr/bin/gcc-7 /usr/local/bin/gcc
python3.9 -m venv /opt/venv
printf '%s\n' 'pip==25.0.1 --hash=sha256:c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f' | python -m pip install --no-cache-dir --require-hashes --no-deps --requirement /dev/stdin
python -m pip config get global.cert > /dev/null 2>&1 || python -m pip config --site set global.cert /etc/ssl/certs/ca-certificates.crt
python -m pip install --no-cache-dir numpy==1.19.5 protobuf==3.19.6 keras==2.6.0 h5py==3.1.0 wrapt==1.12.1 gast==0.4.0
python -m pip check

# What was installed is what was resolved, or the build ends here.
sh arm.check.sh
