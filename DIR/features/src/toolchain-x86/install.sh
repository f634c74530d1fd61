#!/bin/bash
# toolchain for x86: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0.2.0; what is edited by hand is kept. To write it again:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:e82797cc8224a3409e4ebe95caa4b762b973ba013a76c0bba551ad6eeaf0f320
# matrix  2026-11-20 sha256:30225b4016c75b6bbdb597f7cc1a856d3226b15821adec7698f85481c17feba1
# file    sha256:b79834ab10afa2b6f42b01ad9e075cd6f917b3d7505dfa80e2262f5afab534ef
# answer  x86 (linux/amd64), cuda, from source
#   base-image  nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04  artifact
#   bazel       3.7.2                                        derived
#   cuda        11.2.2                                       derived
#   cudnn       8.1.1.33                                     derived
#   distro      ubuntu20.04                                  artifact
#   driver      >=450.80.02                                  stated
#   gast        0.4.0                                        artifact
#   gcc         7                                            derived
#   h5py        3.1.0                                        artifact
#   keras       2.6.0                                        artifact
#   numpy       1.19.5                                       artifact
#   protobuf    3.19.6                                       artifact
#   python      3.9                                          artifact
#   tensorflow  2.6.5                                        artifact
#   wrapt       1.12.1                                       artifact
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
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-7 g++-7 make python3.9 python3.9-dev python3.9-venv ca-certificates curl
rm -rf /var/log/* /var/cache/ldconfig/aux-cache

export PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONUNBUFFERED=1
export VIRTUAL_ENV=/opt/venv
export PATH="/opt/venv/bin:${PATH}"
curl -fsSL --retry 3 -o /usr/local/bin/bazel https://github.com/bazelbuild/bazel/releases/download/3.7.2/bazel-3.7.2-linux-x86_64
printf '%s  %s\n' 70dc0bee198a4c3d332925a32d464d9036a831977501f66d4996854ad4e4fc0d /usr/local/bin/bazel | sha256sum -c -
chmod 0755 /usr/local/bin/bazel

ln -sf /usr/bin/g++-7 /usr/local/bin/c++
ln -sf /usr/bin/gcc-7 /usr/local/bin/cc
ln -sf /usr/bin/g++-7 /usr/local/bin/g++
ln -sf /usr/bin/gcc-7 /usr/local/bin/gcc
ln -sf /usr/bin/g++-7 /usr/local/bin/x86_64-linux-gnu-g++
ln -sf /usr/bin/gcc-7 /usr/local/bin/x86_64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-7 /usr/local/bin/x86_64-linux-gnu-gcc-ar
python3.9 -m venv /opt/venv
python -m pip install --no-cache-dir numpy==1.19.5 protobuf==3.19.6 keras==2.6.0 h5py==3.1.0 wrapt==1.12.1 gast==0.4.0
python -m pip check

# What was installed is what was resolved, or the build ends here.
sh x86.check.sh
