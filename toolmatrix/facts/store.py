"""Finds the index for a matrix: the one shipped in the wheel, one in the user's cache, or a new one made from YAML.

A cached index is named by the state (path, size, time) of the files it came from; YAML is parsed only when that changed.
A damaged or foreign index is rebuilt, never trusted. When the cache cannot be written the index is made in memory.
"""

from __future__ import annotations

import os
import zlib

from toolmatrix import resources
from toolmatrix.facts.index import Index, IndexDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SLACK = 600.0
"""Seconds by which a file of an installed wheel may be younger than the index beside it: installers write in any order."""
_KEPT = 8


def open_index(overlays: Sequence[str], env: Mapping[str, str]) -> Index:
    """The index of the built-in matrix with the user's files on top. Raises MatrixError for a file that cannot be used."""
    built_in = os.path.join(resources.matrix_root(), "matrix.yaml")
    if not overlays:
        shipped = resources.builtin_index()
        if shipped is not None:
            index = _shipped(shipped, built_in)
            if index is not None:
                return index
    paths = [built_in, *overlays]
    folder = _cache_folder(env)
    state = _state(paths)
    if folder and state:
        index = _read(os.path.join(folder, state))
        if index is not None:
            return index
    return _rebuild(paths, folder)


def _shipped(path: str, built_in: str) -> Index | None:
    index = _read(path)
    if index is None:
        return None
    stamp = os.stat(path).st_mtime + _SLACK
    root = os.path.dirname(built_in)
    for name, size in index.header.get("files", {}).items():
        try:
            found = os.stat(os.path.join(root, name))
        except OSError:
            return None
        if found.st_size != size or found.st_mtime > stamp:
            return None
    return index


def _read(path: str) -> Index | None:
    try:
        stream = open(path, "rb")  # noqa: SIM115 - the index reads records from it until the process ends
    except OSError:
        return None
    try:
        return Index(stream, path)
    except (OSError, IndexDamaged):
        stream.close()
        return None


def _cache_folder(env: Mapping[str, str]) -> str:
    home = env.get("XDG_CACHE_HOME") or (os.path.join(env["HOME"], ".cache") if env.get("HOME") else "")
    return os.path.join(home, "toolmatrix") if home else ""


def _state(paths: Sequence[str]) -> str:
    """A name made of the state of the files; empty when they must be read to know which they are (first use)."""
    from toolmatrix import __version__

    parts = [__version__]
    for path in paths:
        folder = os.path.dirname(os.path.abspath(path))
        for name in _listed(path):
            try:
                found = os.stat(os.path.join(folder, name))
            except OSError:
                return ""
            parts.append(f"{folder}/{name} {found.st_size} {found.st_mtime_ns}")
    text = "\n".join(parts).encode()
    return f"index-{zlib.crc32(text):08x}{zlib.adler32(text):08x}.bin"


def _listed(path: str) -> list[str]:
    """The front page and the files it lists, read line by line: cheap, and only a guess at what changed."""
    names = [os.path.basename(path)]
    try:
        with open(path, "rb") as stream:
            head = stream.read(1 << 20)
    except OSError:
        return names
    _, found, listed = head.partition(b"\nfiles:")
    if found:
        for line in listed.split(b"\n"):
            word = line.strip()
            if word.startswith(b"- "):
                names.append(word[2:].strip().strip(b"\"'").decode("utf-8", "replace"))
            elif word and not word.startswith(b"#") and not line.startswith((b" ", b"-")):
                break
    return names


def _rebuild(paths: Sequence[str], folder: str) -> Index:
    data = build(paths)
    state = _state(paths)
    if folder and state:
        _keep(folder, state, data)
    import io

    return Index(io.BytesIO(data))


def build(paths: Sequence[str], files: Mapping[str, int] | None = None) -> bytes:
    """Parse, check and compile the matrices at `paths`. Raises MatrixError."""
    from toolmatrix.facts import compile, index, load

    return index.write(compile.compile_matrix(load.load(paths)), files or {})


def _keep(folder: str, name: str, data: bytes) -> None:
    """Write beside, then rename; a cache that cannot be written is no reason to fail."""
    try:
        os.makedirs(folder, exist_ok=True)
        beside = os.path.join(folder, f".{name}.{os.getpid()}")
        with open(beside, "wb") as stream:
            stream.write(data)
        os.replace(beside, os.path.join(folder, name))
        old = sorted(
            (entry.stat().st_mtime, entry.path)
            for entry in os.scandir(folder)
            if entry.name.startswith("index-") and entry.name.endswith(".bin")
        )
        for _, path in old[:-_KEPT]:
            os.remove(path)
    except OSError:
        return


def build_index(source_root: str, destination: str) -> None:
    """Compile the matrix under `source_root` into the index file of a wheel."""
    front = os.path.join(source_root, "matrix.yaml")
    sizes = {name: os.stat(os.path.join(source_root, name)).st_size for name in _listed(front)}
    data = build([front], sizes)
    with open(destination, "wb") as stream:
        stream.write(data)
