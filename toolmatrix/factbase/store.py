"""Finds the index for a matrix: that of an update, the one shipped in the wheel, one in the user's cache, or a new one.

An index says in its header from which files it was made, and in which state (size and time) they were; one in the cache
is named by the paths of its matrices and by the state of the modules here, which make it. YAML is parsed only when that
changed, and an index of another format is made again. Where the cache cannot be written the index is made in memory.
"""

from __future__ import annotations

import os
import zlib

from toolmatrix import resources
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import installed
from toolmatrix.factbase.index import HEADER, Index, IndexDamaged, IndexFolder, in_memory
from toolmatrix.factbase.installed import states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from toolmatrix.factbase.installed import InstalledMatrix
    from toolmatrix.factbase.model import Matrix
    from toolmatrix.factbase.records import States

# Seconds by which a file of an installed wheel may be younger than its index: installers write in any order.
_SLACK = 600
# Indexes in a cache with files on top, one for each set of files in use, and as many without, which those must not
# push out: some 8 MB each. As many models, of 12 MB.
_MAX_INDEXES = 4
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
    updated = installed_matrix(env)
    # An update whose folder was removed is none.
    if updated and (index := _read(updated.index)):
        if not overlays:
            return index
        built_in, *on_top = updated.paths
        overlays = (*on_top, *overlays)
    return _open(overlays, built_in, env, making)


def _open(
    overlays: Sequence[str],
    built_in: str,
    env: Mapping[str, str],
    making: Callable[[], AbstractContextManager[object]] | None = None,
) -> Index:
    shipped = "" if overlays else resources.builtin_index()
    if shipped:
        index = _read(shipped)
        if index is not None and _is_current(index, os.path.dirname(built_in)):
            return index
    paths = [built_in, *overlays]
    folder = cache_folder(env)
    cached = os.path.join(folder, _name(paths)) if folder else ""
    index = _read(cached) if cached else None
    if index is not None and _is_current(index, ""):
        return index
    if making is None:
        return _rebuild(paths, cached)
    with making():
        return _rebuild(paths, cached)


def _read(path: str) -> Index | None:
    try:
        return Index(path, IndexFolder(path))
    except (OSError, IndexDamaged):
        return None


def _is_current(index: Index, root: str) -> bool:
    # Installers give files times of their own: those of a wheel, which lie below `root`, have none in the header, and
    # need only be about as old as its index.
    files, below = index.header["files"], os.path.join(root, "")
    try:
        latest = os.stat(os.path.join(index.path, HEADER)).st_mtime + _SLACK
        for name, (size, time) in files.items():
            status = os.stat(below + name)
            if status.st_size != size or (
                status.st_mtime_ns != time if time else status.st_mtime > latest
            ):
                return False
    except OSError:
        return False
    return bool(files)


def built_in_index(env: Mapping[str, str]) -> Index:
    """The index of the matrix that the program came with, whatever is installed by an update. Raises MatrixError."""
    return _open((), os.path.join(resources.matrix_root(), "matrix.yaml"), env)


def installed_matrix(env: Mapping[str, str]) -> InstalledMatrix | None:
    """The matrix of an update that is in use instead of the built-in one. Raises MatrixError."""
    return installed.current(env, lambda: built_in_index(env).header["date"])


def built_in_paths(env: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of the files that an answer without files on top is compiled from."""
    updated = installed_matrix(env)
    return updated.paths if updated else (os.path.join(resources.matrix_root(), "matrix.yaml"),)


def cache_folder(env: Mapping[str, str]) -> str:
    """The user's directory for what can be made again, "" where there is none."""
    return resources.user_folder(env, "XDG_CACHE_HOME", ".cache")


def _program() -> str:
    # The times of the modules represent their contents, which saves reading them.
    with os.scandir(os.path.dirname(os.path.abspath(__file__))) as entries:
        code = sorted(entry.path for entry in entries if entry.name.endswith(".py"))
    return "\n".join(f"{name} {state}" for name, state in states(code).items())


def _name(paths: Sequence[str]) -> str:
    text = "\n".join([_program(), *map(os.path.abspath, paths)])
    data = text.encode("utf-8", "surrogateescape")
    kind = _WITH if len(paths) > 1 else _WITHOUT
    return f"{kind}{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


def _rebuild(paths: Sequence[str], cached: str) -> Index:
    from toolmatrix.factbase import load

    try:
        before = states(name for path in paths for name in load.files(path))
    except MatrixError:
        # `load` reports the error and its place, as it checks more before it reads the list.
        before = {}
    files = build(paths, before, os.path.dirname(cached))
    # Files that changed meanwhile make an index of neither state.
    if cached and before and before == states(before):
        _keep(cached, files)
    return Index(cached, in_memory(files))


def build(paths: Sequence[str], files: States | None = None, cache: str = "") -> dict[str, bytes]:
    """Parse, check and compile the matrices at `paths` into the files of an index. Raises MatrixError.

    What lies below files on top may come from a folder of the cache.
    """
    from toolmatrix.factbase import load, writer
    from toolmatrix.factbase.compile import compile_matrix
    from toolmatrix.process import without_collector

    with without_collector():
        if cache:
            try:
                return _build_on_top(paths, files or {}, cache)
            except IndexDamaged:
                pass
            except MatrixError as error:
                # What comes from the cache has no place.
                if error.where is None or error.where.path:
                    raise
        return writer.write(compile_matrix(load.load(paths)), files or {})


def _build_on_top(paths: Sequence[str], files: States, cache: str) -> dict[str, bytes]:
    from toolmatrix.factbase import load, model_cache, writer
    from toolmatrix.factbase.compile import compile_matrix

    only: set[str] | None = None
    below: Index | None = None
    fronts: list[tuple[Matrix, str]] = []

    def base(path: str) -> Matrix | None:
        front = model_cache.front(path, cache, _program())
        fronts.extend([front] if front else [])
        return front[0].copy() if front else None

    matrix = load.load(paths, base=base)
    for front, digest in fronts:
        below = _find_compiled(paths, cache, digest)
        only = model_cache.changed(front, matrix) if below else None
    return writer.write(compile_matrix(matrix, only), files, None if only is None else below)


def _find_compiled(paths: Sequence[str], cache: str, digest: str) -> Index | None:
    """The index without files on top, if one of that digest is there."""
    # A wheel and an update have it beside the front page.
    beside = os.path.join(os.path.dirname(paths[0]), "index")
    for path in (beside, os.path.join(cache, _name(paths[:1]))):
        index = _read(path)
        if index is not None and index.header["digest"] == digest:
            return index
    return None


def write_folder(path: str, files: Mapping[str, bytes]) -> None:
    """Write the files of an index or of a bundle into a new folder. Raises OSError."""
    for name, data in files.items():
        place = os.path.join(path, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as stream:
            stream.write(data)


def _keep(path: str, files: Mapping[str, bytes]) -> None:
    from contextlib import suppress
    from shutil import rmtree

    # A cache that cannot be written is no reason to fail. Several runs may write at once: each renames a folder of its
    # own, and a reader of the one before has it open.
    beside, before = (f"{path}.{kind}{os.getpid()}" for kind in ("new", "old"))
    try:
        write_folder(beside, files)
        with suppress(FileNotFoundError):
            os.rename(path, before)
        os.rename(beside, path)
        _remove_superseded(path)
    except OSError:
        pass
    finally:
        for folder in (beside, before):
            rmtree(folder, ignore_errors=True)


def keep_file(path: str, data: bytes) -> None:
    """Write a file of the cache, and remove the oldest of its kind; one that cannot be written is done without."""
    from contextlib import suppress

    beside = f"{path}.new{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(beside, "wb") as stream:
            stream.write(data)
        os.replace(beside, path)
        _remove_superseded(path)
    with suppress(OSError):
        os.remove(beside)


def _remove_superseded(path: str) -> None:
    # Whenever code or paths change so does the name, and what has the old name stays behind: the oldest go.
    from shutil import rmtree

    kind = _kind(os.path.basename(path))
    with os.scandir(os.path.dirname(path)) as entries:
        old = sorted(
            (entry.stat().st_mtime, entry.path)
            for entry in entries
            # After a clock was set back the newest would seem to be the oldest.
            if _kind(entry.name) == kind and entry.path != path
        )
    for _, superseded in old[: 1 - _MAX_INDEXES]:
        # An index of format 9 and before was one file.
        (rmtree if os.path.isdir(superseded) else os.remove)(superseded)


def _kind(name: str) -> str:
    return name.rpartition("-")[0]


def build_index(source_root: str, destination: str) -> None:
    """Compile the matrix under `source_root` into the index of a wheel."""
    from toolmatrix.factbase import load

    front = os.path.join(source_root, "matrix.yaml")
    sizes = {
        os.path.relpath(name, source_root): (os.stat(name).st_size, 0) for name in load.files(front)
    }
    write_folder(destination, build([front], sizes))
