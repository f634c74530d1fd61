# toolchain for x86: the resolved tools and nothing built with them, for CI images
#
# Written by toolmatrix 0; it does not overwrite edited files. To regenerate:
#   toolmatrix render --lock toolmatrix.lock --output .
#
# lock    sha256:a8ceaa6d210f719e29e7309a23f3aa0eadedc9a1f0b65641f7dc1e89cdaa230e
# matrix  2026-11-20 sha256:de1ddcd14fae519f175eb3f7aa3a2c8cc96a00dab4a51c8af49615f872730cf3
# file    sha256:0000000000000000000000000000000000000000000000000000000000000000
# answer  x86 (linux/amd64), cuda, from source
#   base-image  nvidia/cuda:12.4.1-cudnn-devel-rockylinux9  artifact
#   cuda        12.4.1                                      artifact
#   cudnn       9.1.0.70                                    artifact
#   distro      rockylinux9                                 artifact
#   driver      >=525.60.13                                 stated
#   gcc         11                                          artifact

FROM nvidia/cuda:12.4.1-cudnn-devel-rockylinux9 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3041
RUN --mount=type=cache,id=rockylinux9-amd64-dnf,target=/var/cache/dnf,sharing=locked \
    set -eux; \
    dnf install -y --setopt=install_weak_deps=False --setopt=keepcache=1 gcc gcc-c++ make; \
    rm -rf /var/log/* /var/cache/ldconfig/aux-cache

ENV NVCC_APPEND_FLAGS="-gencode=arch=compute_86,code=sm_86 -gencode=arch=compute_86,code=compute_86"

RUN set -eux; \
    ln -sf /usr/bin/g++ /usr/local/bin/c++; \
    ln -sf /usr/bin/gcc /usr/local/bin/cc

RUN set -eux; \
    groupadd --gid 10001 builder; \
    useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder; \
    install -d -o 10001 -g 10001 /work

COPY --chmod=0555 toolmatrix.lock x86.check.sh /usr/share/toolmatrix/
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
      io.github.toolmatrix.components="base-image cuda cudnn distro gcc" \
      io.github.toolmatrix.driver.floor="525.60.13" \
      io.github.toolmatrix.lock.digest="sha256:a8ceaa6d210f719e29e7309a23f3aa0eadedc9a1f0b65641f7dc1e89cdaa230e" \
      io.github.toolmatrix.target="x86" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="nvidia/cuda:12.4.1-cudnn-devel-rockylinux9" \
      org.opencontainers.image.description="the resolved tools and nothing built with them, for CI images" \
      org.opencontainers.image.title="toolchain for x86" \
      org.opencontainers.image.version=""

CMD ["/bin/bash"]
