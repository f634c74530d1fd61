# syntax=docker/dockerfile:1
# check=error=true
# wheel for x86: Python packages of the index from their wheels, and what runs them
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# answer  x86 (linux/amd64), cuda, from wheel
#   base-image  ubuntu:24.04  artifact
#   cuda        12.8.1        artifact
#   cudnn       9.10.2.21     artifact
#   distro      ubuntu24.04   artifact
#   driver      >=525.60.13   stated
#   nccl        2.27.5        artifact
#   python      3.12          artifact
#   torch       2.9.1         artifact
#   triton      3.5.1         artifact
#
# Support of ubuntu24.04 ends on 2029-05-31; its packages move to an archive some time after.

FROM ubuntu:24.04 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=ubuntu24.04-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=ubuntu24.04-amd64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.12 python3.12-venv
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_VISIBLE_DEVICES="all" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN <<EOF
set -eux
python3.12 -m venv /opt/venv
EOF

RUN --mount=type=cache,id=ubuntu24.04-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install torch==2.9.1 triton==3.5.1
python -m pip check
for seed in setuptools wheel; do python -m pip show "$seed" 2> /dev/null | grep '^Required-by: .' > /dev/null || python -m pip uninstall --yes "$seed"; done
if python -m pip show setuptools > /dev/null 2>&1; then rm -rf /opt/venv/lib/python*/site-packages/pkg_resources-*-info; else python -m pip uninstall --yes pkg-resources; fi
python -m pip uninstall --yes pip
EOF

FROM ubuntu:24.04 AS runtime
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=ubuntu24.04-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=ubuntu24.04-amd64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.12
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_VISIBLE_DEVICES="all" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

COPY --link --from=toolchain /opt/venv /opt/venv
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
RUN ["sh", "/usr/share/toolmatrix/x86.check.sh", "runtime"]

ARG CREATED=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.github.toolmatrix.components="base-image distro python torch triton" \
      io.github.toolmatrix.driver.floor="525.60.13" \
      io.github.toolmatrix.target="x86" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="ubuntu:24.04" \
      org.opencontainers.image.description="Python packages of the index from their wheels, and what runs them" \
      org.opencontainers.image.title="wheel for x86" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
