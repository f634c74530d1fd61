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

FROM debian:12 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=debian12-amd64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=debian12-amd64-lists,target=/var/lib/apt/lists,sharing=locked \
    set -eux; \
    rm -f /etc/apt/apt.conf.d/docker-clean; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends hipcc gcc-12 g++-12 make python3.11 python3.11-dev python3.11-venv python3-distutils; \
    rm -rf /var/log/* /var/cache/ldconfig/aux-cache

ENV PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

ENV HIPCC_COMPILE_FLAGS_APPEND="--offload-arch=gfx90a"

RUN set -eux; \
    ln -sf /usr/bin/g++-12 /usr/local/bin/c++; \
    ln -sf /usr/bin/gcc-12 /usr/local/bin/cc; \
    ln -sf /usr/bin/g++-12 /usr/local/bin/g++; \
    ln -sf /usr/bin/gcc-12 /usr/local/bin/gcc; \
    ln -sf /usr/bin/g++-12 /usr/local/bin/x86_64-linux-gnu-g++; \
    ln -sf /usr/bin/gcc-12 /usr/local/bin/x86_64-linux-gnu-gcc; \
    ln -sf /usr/bin/gcc-ar-12 /usr/local/bin/x86_64-linux-gnu-gcc-ar; \
    python3.11 -m venv /opt/venv

RUN set -eux; \
    groupadd --gid 10001 builder; \
    useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder; \
    install -d -o 10001 -g 10001 /work

COPY --chmod=0555 toolmatrix.lock amd.check.sh /usr/share/toolmatrix/
WORKDIR /work
USER 10001:10001

# What was installed is what was resolved, or the build ends here.
RUN ["sh", "/usr/share/toolmatrix/amd.check.sh"]

ARG CREATED=""
ARG REVISION=""
ARG SOURCE=""
LABEL org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      io.github.toolmatrix.components="base-image distro gcc python rocm" \
      io.github.toolmatrix.lock.digest="sha256:4048aece749378013f65dc092b802b064818086d4b4f13581e539515f537bef7" \
      io.github.toolmatrix.target="amd" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="debian:12" \
      org.opencontainers.image.description="the resolved tools and nothing built with them, for CI images" \
      org.opencontainers.image.title="toolchain for amd" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
