"""The step at which a build ended, in the words of each engine."""

from __future__ import annotations

import pytest

from toolmatrix.logs.log import Steps

BUILDKIT = """\
#1 [internal] load build definition from x86.Dockerfile
#1 DONE 0.0s
#6 [toolchain 3/8] RUN set -eux;     ln -sf /usr/bin/g++-12 /usr/local/bin/c++;
#6 sha256:d1b82fada93624ff0d48d650a540f2f75c2ba9ec07da72d714c54e0826b1a14a
#6 0.189 + ln -sf /usr/bin/g++-12 /usr/local/bin/c++
#7 [build 2/4] RUN make
#7 12.0 make: *** [Makefile:3: all] Error 2
#6 CANCELED
#7 ERROR: executor failed running [/bin/bash -o pipefail -c make]: exit code: 2
------
 > [build 2/4] RUN make:
------
executor failed running [/bin/bash -o pipefail -c make]: exit code: 2
"""
ADDED = """\
#4 [toolchain 1/8] FROM docker.io/local/debian:bookworm-amd64
#8 https://files.example/bazel-6.1.0
#8 ERROR: failed to load cache key: dial tcp: lookup files.example: no such host
"""
CLASSIC = """\
Step 1/9 : FROM debian:12
 ---> 0123456789ab
Step 5/9 : RUN make
 ---> Running in 0123456789ab
The command '/bin/sh -c make' returned a non-zero code: 2
"""
BUILDAH = """\
STEP 1/9: FROM debian:12
STEP 5/9: RUN make
error building at STEP "RUN make": while running runtime: exit status 2
"""


@pytest.mark.parametrize(
    ("log", "step"),
    [
        (BUILDKIT, "[build 2/4] RUN make"),
        (ADDED, "https://files.example/bazel-6.1.0"),
        (CLASSIC, "[5/9] RUN make"),
        (BUILDAH, "[5/9] RUN make"),
        ("", ""),
        ("Cannot connect to the Docker daemon\n", ""),
    ],
)
def test_the_step_that_failed(log: str, step: str) -> None:
    steps = Steps()
    for line in log.splitlines():
        steps.read(line)
    assert steps.failed == step
