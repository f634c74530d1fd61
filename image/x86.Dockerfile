# syntax=docker/dockerfile:1
# check=error=true
# toolmatrix for x86: toolmatrix as a command, with its matrix
#
# Written by toolmatrix 0.3.0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:3396b160d9f09ef19837c35d31d5b2634b281d8fe74188062ba6da4604a22d7c
# matrix  2026-11-20 sha256:59180392d73f17b1611610623d9e4e89e9aa319ed0896218b58ddb8222215cd8
# file    sha256:09ec71c64604c9fe93de51a5d3c3e5735a48c517b22b4fa0137b1365d7462281
# answer  x86 (linux/amd64), none, from source
#   base-image  debian:12  artifact
#   distro      debian12   artifact
#   python      3.11       stated
#
# Support of debian12 ends on 2028-06-10; its packages move to an archive some time after.

FROM debian:12 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-amd64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.11 python3.11-venv
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN <<EOF
set -eux
python3.11 -m venv /opt/venv
EOF

FROM toolchain AS tools
# The tools are what was resolved, or the build ends here. Nothing is built upon this stage, so that another date or
# digest in the lock builds nothing anew.
COPY --link --chmod=0555 toolmatrix.lock x86.check.sh /usr/share/toolmatrix/
RUN ["sh", "/usr/share/toolmatrix/x86.check.sh", "tools"]

FROM toolchain AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /work

# build: toolmatrix
RUN --mount=type=cache,id=debian12-amd64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=debian12-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install --no-cache-dir "toolmatrix[mcp]==0.3.0"
EOF

# verify: answers
RUN --mount=type=cache,id=debian12-amd64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=debian12-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
toolmatrix resolve torch --from wheel
toolmatrix mcp < /dev/null
EOF

FROM debian:12 AS runtime
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-amd64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.11
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

COPY --link --from=build /opt/venv /opt/venv
RUN <<EOF
set -eux
groupadd --gid 10001 builder
useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder
install -d -o 10001 -g 10001 /work
EOF

COPY --link --from=tools /usr/share/toolmatrix/ /usr/share/toolmatrix/
WORKDIR /work
USER 10001:10001

# What was installed is what was resolved, or the build ends here.
RUN ["sh", "/usr/share/toolmatrix/x86.check.sh", "runtime"]

ARG CREATED=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.github.toolmatrix.components="base-image distro python" \
      io.github.toolmatrix.lock.digest="sha256:3396b160d9f09ef19837c35d31d5b2634b281d8fe74188062ba6da4604a22d7c" \
      io.github.toolmatrix.target="x86" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="debian:12" \
      org.opencontainers.image.description="toolmatrix as a command, with its matrix" \
      org.opencontainers.image.title="toolmatrix for x86" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
