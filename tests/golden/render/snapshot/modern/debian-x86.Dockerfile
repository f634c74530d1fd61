# syntax=docker/dockerfile:1
# check=error=true
# toolchain for x86: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:cc221b4b54dbee3d40d575e1d04ce9a3aa2b40a234433cbb711826d38d54353a
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# answer  x86 (linux/amd64), none, from source
#   base-image  debian:12  artifact
#   bazel       4.2.3      stated
#   distro      debian12   artifact
#   gcc         12         artifact
#   numpy       2.4.6      artifact
#   python      3.11       stated
#
# Support of debian12 ends on 2028-06-10; its packages move to an archive some time after.

FROM debian:12 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH=1795132800

# Packages of Debian as they were at 20261120T000000Z.
RUN <<EOF
set -eux
rm -f /etc/apt/sources.list.d/debian.sources
printf '%s\n' 'deb [check-valid-until=no signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://snapshot.debian.org/archive/debian/20261120T000000Z/ bookworm main' 'deb [check-valid-until=no signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://snapshot.debian.org/archive/debian/20261120T000000Z/ bookworm-updates main' 'deb [check-valid-until=no signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://snapshot.debian.org/archive/debian-security/20261120T000000Z/ bookworm-security main' > /etc/apt/sources.list
EOF

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-amd64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
if apt-get indextargets --format "\$(REPO_URI)" 'Origin: Debian' | grep -v '/20261120T000000Z/' >&2; then echo 'this image also knows packages of Debian that are not of 20261120T000000Z' >&2; exit 1; fi
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-12 g++-12 make bazel-bootstrap python3.11 python3.11-dev python3.11-venv python3-distutils
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN <<EOF
set -eux
ln -sf /usr/bin/g++-12 /usr/local/bin/c++
ln -sf /usr/bin/gcc-12 /usr/local/bin/cc
ln -sf /usr/bin/g++-12 /usr/local/bin/g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc
ln -sf /usr/bin/g++-12 /usr/local/bin/x86_64-linux-gnu-g++
ln -sf /usr/bin/gcc-12 /usr/local/bin/x86_64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-12 /usr/local/bin/x86_64-linux-gnu-gcc-ar
python3.11 -m venv /opt/venv
EOF

RUN --mount=type=cache,id=debian12-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install numpy==2.4.6
python -m pip check
EOF

RUN <<EOF
set -eux
groupadd --gid 10001 builder
useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder
install -d -o 10001 -g 10001 /work
EOF

COPY --link --chmod=0555 toolmatrix.lock x86.check.sh /usr/share/toolmatrix/
WORKDIR /work
USER 10001:10001

# What was installed is what was resolved, or the build ends here.
RUN ["sh", "/usr/share/toolmatrix/x86.check.sh"]

ARG CREATED=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.github.toolmatrix.components="base-image bazel distro gcc numpy python" \
      io.github.toolmatrix.lock.digest="sha256:cc221b4b54dbee3d40d575e1d04ce9a3aa2b40a234433cbb711826d38d54353a" \
      io.github.toolmatrix.target="x86" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="debian:12" \
      org.opencontainers.image.description="the resolved tools and nothing built with them, for CI images" \
      org.opencontainers.image.title="toolchain for x86" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
