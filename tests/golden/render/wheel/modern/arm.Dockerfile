# syntax=docker/dockerfile:1
# check=error=true
# wheel for arm: Python packages of the index from their wheels, and what runs them
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# answer  arm (linux/arm64), none, from wheel
#   base-image   debian:12  artifact
#   distro       debian12   derived
#   numpy        1.26.4     artifact
#   onnxruntime  1.18.1     artifact
#   protobuf     5.27.5     artifact
#   python       3.11       artifact
#
# Support of debian12 ends on 2028-06-10; its packages move to an archive some time after.

FROM debian:12 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-arm64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-arm64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.11 python3.11-venv python3-distutils
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN <<EOF
set -eux
python3.11 -m venv /opt/venv
EOF

RUN --mount=type=cache,id=debian12-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install onnxruntime==1.18.1 numpy==1.26.4 protobuf==5.27.5
python -m pip check
for seed in setuptools wheel; do python -m pip show "$seed" 2> /dev/null | grep '^Required-by: .' > /dev/null || python -m pip uninstall --yes "$seed"; done
if python -m pip show setuptools > /dev/null 2>&1; then rm -rf /opt/venv/lib/python*/site-packages/pkg_resources-*-info; else python -m pip uninstall --yes pkg-resources; fi
python -m pip uninstall --yes pip
EOF

FROM debian:12 AS runtime
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-arm64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-arm64-lists,target=/var/lib/apt/lists,sharing=locked <<EOF
set -eux
rm -f /etc/apt/apt.conf.d/docker-clean
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3.11 python3-distutils
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

COPY --link --from=toolchain /opt/venv /opt/venv
RUN <<EOF
set -eux
groupadd --gid 10001 builder
useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder
install -d -o 10001 -g 10001 /work
EOF

COPY --link --chmod=0555 toolmatrix.lock arm.check.sh /usr/share/toolmatrix/
WORKDIR /work
USER 10001:10001

# What was installed is what was resolved, or the build ends here.
RUN ["sh", "/usr/share/toolmatrix/arm.check.sh", "runtime"]

ARG CREATED=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.github.toolmatrix.components="base-image distro numpy onnxruntime protobuf python" \
      io.github.toolmatrix.target="arm" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="debian:12" \
      org.opencontainers.image.description="Python packages of the index from their wheels, and what runs them" \
      org.opencontainers.image.title="wheel for arm" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
