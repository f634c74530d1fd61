# syntax=docker/dockerfile:1
# check=error=true
# extension for x86: extensions of PyTorch, built from their source distributions against its wheel
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# answer  x86 (linux/amd64), cuda, from source
#   base-image     nvidia/cuda:13.0.2-devel-ubuntu24.04  artifact
#   cuda           13.0.2                                artifact
#   cudnn          9.20.0.48                             artifact
#   distro         ubuntu24.04                           artifact
#   driver         >=580.65.06                           stated
#   gcc            13                                    artifact
#   nccl           2.29.7                                artifact
#   numpy          1.26.4                                stated
#   python         3.12                                  artifact
#   torch          2.12.1                                artifact
#   torch-scatter  2.1.2                                 artifact
#
# Support of ubuntu24.04 ends on 2029-05-31; its packages move to an archive some time after.

FROM nvidia/cuda:13.0.2-devel-ubuntu24.04 AS toolchain
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
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-13 g++-13 make python3.12 python3.12-dev python3.12-venv
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_VISIBLE_DEVICES="all" \
    PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN <<EOF
set -eux
ln -sf /usr/bin/g++-13 /usr/local/bin/c++
ln -sf /usr/bin/gcc-13 /usr/local/bin/cc
ln -sf /usr/bin/g++-13 /usr/local/bin/g++
ln -sf /usr/bin/gcc-13 /usr/local/bin/gcc
ln -sf /usr/bin/g++-13 /usr/local/bin/x86_64-linux-gnu-g++
ln -sf /usr/bin/gcc-13 /usr/local/bin/x86_64-linux-gnu-gcc
ln -sf /usr/bin/gcc-ar-13 /usr/local/bin/x86_64-linux-gnu-gcc-ar
python3.12 -m venv /opt/venv
EOF

RUN --mount=type=cache,id=ubuntu24.04-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install torch==2.12.1 numpy==1.26.4
python -m pip check
EOF

FROM toolchain AS tools
# The tools are what was resolved, or the build ends here. Nothing is built upon this stage, so that another date or
# digest in the lock builds nothing anew.
COPY --link --chmod=0555 toolmatrix.lock x86.check.sh /usr/share/toolmatrix/
RUN ["sh", "/usr/share/toolmatrix/x86.check.sh", "tools"]

FROM toolchain AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /work

# configure: python-packages
RUN --mount=type=cache,id=ubuntu24.04-amd64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu24.04-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip install setuptools==80.9.0 wheel==0.45.1 ninja==1.13.0 packaging==25.0 psutil==7.0.0
EOF

# build: build
RUN --mount=type=cache,id=ubuntu24.04-amd64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu24.04-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
export CUDA_HOME=/usr/local/cuda
export FORCE_ONLY_CUDA=1
export TORCH_CUDA_ARCH_LIST='8.0;9.0'
echo "torch-scatter==2.1.2" | tr " " "\n" > requirements.txt
python -m pip wheel --no-cache-dir --no-build-isolation --no-deps --no-binary :all: --wheel-dir /work/wheels --requirement requirements.txt
EOF

# What only the build takes stays behind: here are the tools as they were resolved, and what was built.
FROM toolchain AS package
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
COPY --link --from=build /work/wheels /work/wheels
WORKDIR /work

# package: install
WORKDIR /work/wheels
RUN --mount=type=cache,id=ubuntu24.04-amd64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu24.04-amd64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 <<EOF
set -eux
python -m pip freeze --all > /work/held.txt
python -m pip install --constraint /work/held.txt ./*.whl
python -m pip check
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
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libstdc++6 libgomp1 python3.12
rm -rf /var/log/* /var/cache/ldconfig/aux-cache
EOF

ENV NVIDIA_DRIVER_CAPABILITIES="compute,utility" \
    NVIDIA_VISIBLE_DEVICES="all" \
    PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

COPY --link --from=package /opt/venv /opt/venv
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
      io.github.toolmatrix.components="distro numpy python torch torch-scatter" \
      io.github.toolmatrix.driver.floor="580.65.06" \
      io.github.toolmatrix.target="x86" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="ubuntu:24.04" \
      org.opencontainers.image.description="extensions of PyTorch, built from their source distributions against its wheel" \
      org.opencontainers.image.title="extension for x86" \
      org.opencontainers.image.version="2.1.2"

CMD ["/bin/bash"]
