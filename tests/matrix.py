"""The built-in matrix, compiled once for all tests of a run, whichever of its processes they are in."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from toolmatrix import resources
from toolmatrix.facts.store import open_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.facts.index import Index

_VARIABLE = "TESTS_OF_TOOLMATRIX_CACHE"
_OURS = """\
schema: toolmatrix.facts/1
sources:
  ours: {title: our mirror, at: "mirror, index page", read: 2026-11-20}
releases:
  - id: ours-numpy
    component: numpy
    source: ours
    evidence: artifact
    where: index page
    versions:
      "1.19.99": {date: 2026-11-20}
"""


def make_folder() -> None:
    """Make the folder of the index; the processes of pytest-xdist inherit where it is."""
    os.environ[_VARIABLE] = mkdtemp(prefix="toolmatrix-tests-")
    Path(ours()).write_text(_OURS)


def compile_ahead() -> subprocess.Popen[bytes]:
    """Compile the index while the processes of pytest-xdist still read the tests."""
    return subprocess.Popen([sys.executable, "-m", "tests.matrix"], cwd=Path(__file__).parents[1])


def remove_folder() -> None:
    """Remove it, once, in the process that made it."""
    shutil.rmtree(os.environ.pop(_VARIABLE), ignore_errors=True)


def folder() -> str:
    """Where the index is kept: with `XDG_CACHE_HOME` set to it a command finds it."""
    return os.environ[_VARIABLE]


def ours() -> str:
    """A file of facts for on top, one for all tests, so that the matrix is compiled with it once."""
    return os.path.join(folder(), "ours.yaml")


def index() -> Index:
    """The built-in matrix."""
    return _opened(resources.matrix_root())


@cache
def _opened(_root: str, *overlays: str) -> Index:
    # Who comes while another compiles it waits for that one.
    with open(os.path.join(folder(), f"{len(overlays)}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return open_index(overlays, {"XDG_CACHE_HOME": folder()})


def opened_once(overlays: Sequence[str], env: Mapping[str, str], *making: Any) -> Index:
    """`open_index` of a run in this process: what an earlier one read of the built-in matrix need not be read again."""
    shared = set(overlays) <= {ours()} and resources.builtin_index() is None
    if shared and env.get("XDG_CACHE_HOME") == folder():
        return _opened(resources.matrix_root(), *overlays)
    return open_index(overlays, env, *making)


if __name__ == "__main__":
    index()
