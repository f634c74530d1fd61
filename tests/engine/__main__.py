"""Make Debian base images and load them into the engine that runs: `python -m tests.engine SUITE ARCH...`, as root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests import matrix
from tests.engine import bases, docker


def folder() -> Path:
    """Where archives of base images are kept between runs: in the cache of the user, whatever that of a test is."""
    return Path(os.environ.get(matrix.USERS_CACHE) or matrix.users_cache(), "toolmatrix-tests")


def main(suite: str, *archs: str) -> int:
    """Load the base images and say their names; returns 1 where one cannot be made."""
    try:
        with docker.running() as engine:
            for arch in archs:
                base = bases.Base(suite, arch)
                engine.done("load", "--quiet", "--input", str(bases.archive(base, folder())))
                print(base.tag)  # noqa: T201
    except (bases.BaseFailed, docker.EngineFailed) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ("bookworm", "amd64", "arm64"))))
