# tensorflow for arm: TensorFlow as a Python package, built from source
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

FROM ubuntu:20.04 AS toolchain
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# A build that is told a time writes that into files instead of its own.
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=ubuntu20.04-arm64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=ubuntu20.04-arm64-lists,target=/var/lib/apt/lists,sharing=locked \
    set -eux; \
    rm -f /etc/apt/apt.conf.d/docker-clean; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc-7 g++-7 make python3.9 python3.9-dev python3.9-venv python3-distutils git patch unzip zip rsync ca-certificates p11-kit curl; \
    rm -rf /var/log/* /var/cache/ldconfig/aux-cache

ENV CFLAGS="-fsigned-char -march=armv8-a+crc -frecord-gcc-switches" \
    CXXFLAGS="-fsigned-char -march=armv8-a+crc -frecord-gcc-switches" \
    PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    set -eux; \
    curl -fsSL --retry 3 -o /usr/local/bin/bazel https://github.com/bazelbuild/bazel/releases/download/3.7.2/bazel-3.7.2-linux-arm64; \
    printf '%s  %s\n' 6ebd9eccbcb8f63c92a324c0c86cec11963aa9dcb914dd4718f592fdfeda9823 /usr/local/bin/bazel | sha256sum -c -; \
    chmod 0755 /usr/local/bin/bazel

RUN set -eux; \
    ln -sf /usr/bin/g++-7 /usr/local/bin/aarch64-linux-gnu-g++; \
    ln -sf /usr/bin/gcc-7 /usr/local/bin/aarch64-linux-gnu-gcc; \
    ln -sf /usr/bin/gcc-ar-7 /usr/local/bin/aarch64-linux-gnu-gcc-ar; \
    ln -sf /usr/bin/g++-7 /usr/local/bin/c++; \
    ln -sf /usr/bin/gcc-7 /usr/local/bin/cc; \
    ln -sf /usr/bin/g++-7 /usr/local/bin/g++; \
    ln -sf /usr/bin/gcc-7 /usr/local/bin/gcc; \
    python3.9 -m venv /opt/venv

RUN --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    printf '%s\n' 'pip==25.0.1 --hash=sha256:c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f' | python -m pip install --require-hashes --no-deps --requirement /dev/stdin; \
    python -m pip config get global.cert > /dev/null 2>&1 || python -m pip config --site set global.cert /etc/ssl/certs/ca-certificates.crt; \
    python -m pip install numpy==1.19.5 protobuf==3.19.6 keras==2.6.0 h5py==3.1.0 wrapt==1.12.1 gast==0.4.0; \
    python -m pip check

FROM toolchain AS tools
# The tools are what was resolved, or the build ends here. Nothing is built upon this stage, so that another date or
# digest in the lock builds nothing anew.
COPY --chmod=0555 toolmatrix.lock arm.check.sh /usr/share/toolmatrix/
RUN ["sh", "/usr/share/toolmatrix/arm.check.sh", "tools"]

FROM toolchain AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /work

# fetch: source
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    set -eux; \
    curl -fsSL --retry 3 -o /tmp/v2.6.5.tar.gz https://github.com/tensorflow/tensorflow/archive/v2.6.5.tar.gz; \
    printf '%s  %s\n' 305da42845ac584a42494e521c92a88ce92ee47d93022d4c0bb45180b5c19a8c /tmp/v2.6.5.tar.gz | sha256sum -c -

RUN set -eux; \
    mkdir -p /work/tensorflow; \
    tar -xf /tmp/v2.6.5.tar.gz -C /work/tensorflow --strip-components=1; \
    rm /tmp/v2.6.5.tar.gz

# configure: python-packages, keras-preprocessing
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    python -m pip install six==1.15.0 wheel==0.37.1 setuptools==59.6.0 packaging==21.3; \
    python -m pip install --no-deps keras_preprocessing==1.1.2

# configure: configure
WORKDIR /work/tensorflow
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    export CC_OPT_FLAGS=-Wno-sign-compare; \
    export PYTHON_BIN_PATH=/opt/venv/bin/python; \
    export TF_DOWNLOAD_CLANG=0; \
    export TF_ENABLE_XLA=1; \
    export TF_NEED_CUDA=0; \
    export TF_NEED_ROCM=0; \
    export TF_SET_ANDROID_WORKSPACE=0; \
    export USE_DEFAULT_PYTHON_LIB_PATH=1; \
    ./configure

# configure: bazelrc-v2
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    sed -i '$a build --config=v2' .tf_configure.bazelrc

# configure: bazelrc-flags
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    export FLAGS='-fsigned-char -march=armv8-a+crc -frecord-gcc-switches'; \
    for flag in $FLAGS; do echo "build --copt=$flag --host_copt=$flag"; done >> .tf_configure.bazelrc

# build: certificates, bazelrc-certificates, build, wheel
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    trust extract --overwrite --format=java-cacerts --filter=ca-anchors --purpose=server-auth /var/cache/toolmatrix/certificates.jks; \
    echo 'startup --host_jvm_args=-Djavax.net.ssl.trustStore=/var/cache/toolmatrix/certificates.jks' > ~/.bazelrc; \
    bazel build --config=opt --verbose_failures --repository_cache=/var/cache/toolmatrix/repository --disk_cache=/var/cache/toolmatrix/disk //tensorflow/tools/pip_package:build_pip_package; \
    bazel-bin/tensorflow/tools/pip_package/build_pip_package /work/wheels

# What only the build takes stays behind: here are the tools as they were resolved, and what was built.
FROM toolchain AS package
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
COPY --from=build /work/wheels /work/wheels
WORKDIR /work

# package: install
WORKDIR /work/wheels
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    python -m pip install tensorflow-*.whl; \
    python -m pip check

# verify: import
WORKDIR /work
RUN --mount=type=cache,id=ubuntu20.04-arm64-build,target=/var/cache/toolmatrix \
    --mount=type=cache,id=ubuntu20.04-arm64-pip,target=/root/.cache/pip \
    --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,mode=0444 \
    --mount=type=secret,id=pip,target=/etc/pip.conf,mode=0444 \
    set -eux; \
    python -c 'import tensorflow as tf; print(tf.__version__); assert tf.__version__ == "2.6.5"'

FROM ubuntu:20.04 AS runtime
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG SOURCE_DATE_EPOCH

# Versions are left to the distribution: the last step checks what came.
# hadolint ignore=DL3008
RUN --mount=type=cache,id=ubuntu20.04-arm64-apt,target=/var/cache/apt,sharing=locked \
    --mount=type=cache,id=ubuntu20.04-arm64-lists,target=/var/lib/apt/lists,sharing=locked \
    set -eux; \
    rm -f /etc/apt/apt.conf.d/docker-clean; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libstdc++6 libgomp1 python3.9 python3-distutils; \
    rm -rf /var/log/* /var/cache/ldconfig/aux-cache

ENV CFLAGS="-fsigned-char -march=armv8-a+crc -frecord-gcc-switches" \
    CXXFLAGS="-fsigned-char -march=armv8-a+crc -frecord-gcc-switches" \
    PIP_DISABLE_PIP_VERSION_CHECK="1" \
    PYTHONUNBUFFERED="1" \
    VIRTUAL_ENV="/opt/venv" \
    PATH="/opt/venv/bin:${PATH}"

COPY --from=package /opt/venv /opt/venv
RUN set -eux; \
    groupadd --gid 10001 builder; \
    useradd --uid 10001 --gid 10001 --no-log-init --create-home --shell /bin/bash builder; \
    install -d -o 10001 -g 10001 /work; \
    rm -f /opt/venv/pip.conf

COPY --from=tools /usr/share/toolmatrix/ /usr/share/toolmatrix/
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
      io.github.toolmatrix.components="base-image distro gast h5py keras numpy protobuf python tensorflow wrapt" \
      io.github.toolmatrix.lock.digest="sha256:ec4507d45bc2f8e28edbea9cf708a4127f96410dcc49c8bd3cb353bfe71375d0" \
      io.github.toolmatrix.target="arm" \
      org.opencontainers.image.base.digest="" \
      org.opencontainers.image.base.name="ubuntu:20.04" \
      org.opencontainers.image.description="TensorFlow as a Python package, built from source" \
      org.opencontainers.image.title="tensorflow for arm" \
      org.opencontainers.image.version="2.6.5"

CMD ["/bin/bash"]
