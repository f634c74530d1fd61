"""The built-in matrix, compiled once for all processes of a run, and kept for later runs while it stays the same."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from toolmatrix import resources
from toolmatrix.factbase import load, store
from toolmatrix.factbase.store import open_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pytest

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.model import Matrix

SMALL = Path(__file__).parent / "cli" / "fixtures" / "small"
_load = load.load
_DAY = 24 * 60 * 60
_VARIABLE = "TESTS_OF_TOOLMATRIX_CACHE"
USERS_CACHE = "TESTS_OF_TOOLMATRIX_USERS_CACHE"
"""The variable that says where `users_cache` is, as a test has a cache of its own."""
_OVERLAY = "TESTS_OF_TOOLMATRIX_OVERLAY"
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


def make_folder(kept: Path) -> None:
    """Make the cache of this run, with the indexes that earlier runs left in `kept`; workers inherit where it is."""
    os.environ[_VARIABLE] = mkdtemp(prefix="toolmatrix-tests-")
    os.environ[USERS_CACHE] = users_cache()
    # An index names the files that it was made from, with their times: this one has to outlive the run.
    overlay = kept / "ours.yaml"
    if not overlay.is_file() or overlay.read_text() != _OURS:
        overlay.write_text(_OURS)
    os.environ[_OVERLAY] = str(overlay)
    cache_folder = Path(folder(), "toolmatrix")
    cache_folder.mkdir()
    for compiled in filter(Path.is_dir, kept.glob("index-*")):
        shutil.copytree(compiled, cache_folder / compiled.name)


def users_cache() -> str:
    """The cache folder of the user."""
    return os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")


def compile_ahead() -> subprocess.Popen[bytes]:
    """Compile the index while the processes of pytest-xdist still read the tests."""
    return subprocess.Popen([sys.executable, "-m", "tests.matrix"], cwd=Path(__file__).parents[1])


@contextmanager
def first_alone() -> Iterator[None]:
    """Let the process that comes first be done with something before others do it, all at once."""
    with open(os.path.join(folder(), "first.lock"), "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def remove_folder(kept: Path) -> None:
    """Remove the cache of this run, once, in the process that made it; the indexes of today's matrix go to `kept`."""
    built_in = os.path.join(resources.matrix_root(), "matrix.yaml")
    current = {store._name([built_in]), store._name([built_in, ours()])}
    for compiled in kept.glob("index-*"):
        if compiled.name not in current:
            shutil.rmtree(compiled, ignore_errors=True)
    for name in current:
        compiled = Path(folder(), "toolmatrix", name)
        if compiled.is_dir():
            files = {
                str(file.relative_to(compiled)): file.read_bytes()
                for file in compiled.rglob("*.json*")
            }
            # Beside, then renamed: another run may read it now.
            store._keep(str(kept / name), files)
    shutil.rmtree(os.environ.pop(_VARIABLE), ignore_errors=True)


def folder() -> str:
    """Where the index is kept, without pytest the user's cache: with `XDG_CACHE_HOME` set to it a command finds it."""
    own = resources.user_folder(os.environ, "XDG_CACHE_HOME", ".cache")
    return os.environ.get(_VARIABLE) or os.path.dirname(own)


def ours() -> str:
    """A file of facts for on top, one for all tests, so that the matrix is compiled with it once."""
    return os.environ[_OVERLAY]


def index() -> Index:
    """The built-in matrix."""
    return _opened(resources.matrix_root())


@cache
def _opened(_root: str, *overlays: str) -> Index:
    # Who comes while another compiles it waits for that one.
    with open(os.path.join(folder(), f"{len(overlays)}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = open_index(overlays, {"XDG_CACHE_HOME": folder()})
        # A program that a test starts keeps the newest indexes: it would remove this one, and the next compile it anew.
        later = time.time() + _DAY
        os.utime(found.path, (later, later))
        return found


@cache
def _loaded(front: str) -> Matrix:
    return _load([front])


def loaded_once(paths: Sequence[str], **left_out: Any) -> Matrix:
    """`load` of a run in this process: the files of the built-in matrix alone are read once."""
    front = os.path.join(resources.matrix_root(), "matrix.yaml")
    return _loaded(front) if [*paths] == [front] and not left_out else _load(paths, **left_out)


def forget_loaded() -> None:
    """Let go of what was read: it is some hundred megabytes."""
    _loaded.cache_clear()


def opened_once(overlays: Sequence[str], env: Mapping[str, str], *making: Any) -> Index:
    """`open_index` of a run in this process: what an earlier one read of the built-in matrix need not be read again."""
    shared = set(overlays) <= {ours()} and resources.builtin_index() is None
    if shared and env.get("XDG_CACHE_HOME") == folder():
        return _opened(resources.matrix_root(), *overlays)
    return open_index(overlays, env, *making)


if __name__ == "__main__":
    index()


def small_built_in(root: Path, monkeypatch: pytest.MonkeyPatch, families: str = "") -> Path:
    """A copy of the small matrix in the place of the built-in one, with what its harvesters read."""
    shutil.copytree(SMALL, root)
    if families:
        (root / "matrix").mkdir()
        (root / "matrix" / "families.yaml").write_text(families)
    monkeypatch.setattr(resources, "matrix_root", lambda: str(root))
    monkeypatch.setattr(resources, "builtin_index", lambda: None)
    return root
