"""Finds the index for a matrix: the one shipped in the wheel, one in the user's cache, or a new one made from YAML.

An index says in its header from which files it was made, and in which state (size and time) they were; one in the cache
is named by the paths of its matrices and by the state of the modules here, which make it. YAML is parsed only when that
changed. A damaged or foreign index is rebuilt, never trusted. When the cache cannot be written the index is made in
memory.
"""

from __future__ import annotations

import os
import zlib

from toolmatrix import pack, resources
from toolmatrix.errors import MatrixError
from toolmatrix.facts.index import Index, IndexDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolmatrix.facts.index import Load
    from toolmatrix.facts.records import States

# Seconds by which a file of an installed wheel may be younger than its index: installers write in any order.
_SLACK = 600
# Indexes in a cache that are with files on top, one for each set that somebody works with, and as many without, which
# those must not push out: some 34 MB each.
_KEPT = 4
_WITH, _WITHOUT = "index-with-", "index-"


def open_index(
    overlays: Sequence[str],
    env: Mapping[str, str],
    making: Callable[[], AbstractContextManager[object]] | None = None,
) -> Index:
    """The index of the built-in matrix with the user's files on top. Raises MatrixError for a file that is no use.

    `making` is entered while one has to be made, which takes seconds.
    """
    built_in = os.path.join(resources.matrix_root(), "matrix.yaml")
    shipped = "" if overlays else resources.builtin_index()
    if shipped:
        load = pack.current.load if pack.current is not None else None
        index = _read(shipped, [built_in], load, keep=False)
        if index is not None and _is_current(index, os.path.dirname(built_in)):
            return index
    paths = [built_in, *overlays]
    folder = cache_folder(env)
    cached = os.path.join(folder, _name(paths)) if folder else ""
    index = _read(cached, paths, keep=True) if cached else None
    if index is not None and _is_current(index, ""):
        return index
    if making is None:
        return _rebuild(paths, cached)
    with making():
        return _rebuild(paths, cached)


def _read(path: str, paths: Sequence[str], load: Load | None = None, *, keep: bool) -> Index | None:
    # What an installer wrote is not kept anew: it has a digest of its own, and may not be ours to write.
    def repair(index: Index) -> bytes:
        # With the states that its header has, or the new one would not begin as the damaged one does.
        data = build(paths, index.header["files"])
        if keep:
            _keep(path, data)
        return data

    try:
        return Index(path, repair=repair, load=load)
    except (OSError, IndexDamaged):
        return None


def _is_current(index: Index, root: str) -> bool:
    # Installers give files times of their own: those of a wheel, which lie below `root`, have none in the header, and
    # need only be about as old as its index.
    files, below = index.header["files"], os.path.join(root, "")
    try:
        latest = os.stat(index.path).st_mtime + _SLACK
        for name, (size, time) in files.items():
            found = os.stat(below + name)
            if found.st_size != size or (
                found.st_mtime_ns != time if time else found.st_mtime > latest
            ):
                return False
    except OSError:
        return False
    return bool(files)


def cache_folder(env: Mapping[str, str]) -> str:
    """The user's directory for what can be made again, "" where there is none."""
    # The XDG base directory specification has a relative path ignored.
    home = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(env["HOME"], ".cache") if env.get("HOME") else ""
    return os.path.join(home, "toolmatrix") if home else ""


def _name(paths: Sequence[str]) -> str:
    # Times of modules stand for what is in them, which costs no reading.
    with os.scandir(os.path.dirname(os.path.abspath(__file__))) as entries:
        code = sorted(entry.path for entry in entries if entry.name.endswith(".py"))
    made_by = [f"{name} {state}" for name, state in _states(code).items()]
    text = "\n".join([*made_by, *map(os.path.abspath, paths)])
    data = text.encode("utf-8", "surrogateescape")
    kind = _WITH if len(paths) > 1 else _WITHOUT
    return f"{kind}{zlib.crc32(data):08x}{zlib.adler32(data):08x}.bin"


def _states(names: Iterable[str]) -> States:
    # Nothing where one is missing: then there is no state that an index could be of.
    try:
        found = {os.path.abspath(name): os.stat(name) for name in names}
    except OSError:
        return {}
    return {name: (state.st_size, state.st_mtime_ns) for name, state in found.items()}


def _rebuild(paths: Sequence[str], cached: str) -> Index:
    from toolmatrix.facts import load

    try:
        before = _states(name for path in paths for name in load.files(path))
    except MatrixError:
        # What is wrong, and where, is for `load` to say, which checks more before it looks at the list.
        before = {}
    data = build(paths, before)
    # Files that changed meanwhile make an index of neither state.
    if cached and before and before == _states(before):
        _keep(cached, data)
    return Index(cached, data)


def build(paths: Sequence[str], files: States | None = None) -> bytes:
    """Parse, check and compile the matrices at `paths`. Raises MatrixError."""
    from toolmatrix.facts import load, writer
    from toolmatrix.facts.compile import compile_matrix
    from toolmatrix.garbage import uncollected

    with uncollected():
        return writer.write(compile_matrix(load.load(paths)), files or {})


def _keep(path: str, data: bytes) -> None:
    # A cache that cannot be written is no reason to fail. Whenever code or paths change so does the name, and the index
    # of the old name stays behind: the oldest go.
    if not pack.replace(path, data):
        return
    with_files = os.path.basename(path).startswith(_WITH)
    try:
        with os.scandir(os.path.dirname(path)) as entries:
            old = sorted(
                (entry.stat().st_mtime, entry.path)
                for entry in entries
                if entry.name.startswith(_WITHOUT)
                and entry.name.endswith(".bin")
                and entry.name.startswith(_WITH) == with_files
                # After a clock was set back the newest would seem to be the oldest.
                and entry.path != path
            )
        for _, superseded in old[: 1 - _KEPT]:
            os.remove(superseded)
    except OSError:
        return


def build_index(source_root: str, destination: str) -> None:
    """Compile the matrix under `source_root` into the index file of a wheel."""
    from toolmatrix.facts import load

    front = os.path.join(source_root, "matrix.yaml")
    sizes = {
        os.path.relpath(name, source_root): (os.stat(name).st_size, 0) for name in load.files(front)
    }
    data = build([front], sizes)
    with open(destination, "wb") as stream:
        stream.write(data)
