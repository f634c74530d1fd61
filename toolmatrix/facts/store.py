"""Finds the index for a matrix: the one shipped in the wheel, one in the user's cache, or a new one made from YAML.

A cached index is named by the state (path, size, time) of the files it came from and of the modules that made it; YAML
is parsed only when that changed. A damaged or foreign index is rebuilt, never trusted. When the cache cannot be written
the index is made in memory.
"""

from __future__ import annotations

import io
import os
import zlib

from toolmatrix import pack, resources
from toolmatrix.facts.index import Index, IndexDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.facts.index import Load

# Seconds by which a file of an installed wheel may be younger than its index: installers write in any order.
_SLACK = 600
_KEPT = 8
_MAKERS = (
    *(
        "compile",
        "compiled",
        "evidence",
        "index",
        "load",
        "model",
        "pieces",
        "statements",
        "tables",
    ),
    *("variants", "versions", "vouches", "writer", "yamlfile"),
)
_FACTS = b"schema: toolmatrix.facts/"
# A fact file lists no files, and says what it is within so many bytes: it may be large, and need not be read.
_START = 4096
# `files:` as a plain list of plain names.
_LISTED = rb"^files:[ \t\r]*(?:#.*)?\n((?:[ \t]*(?:- [\w./-]+[ \t\r]*|#.*|)(?:\n|\Z))+)"


class _File(io.FileIO):
    """A file that stays open as long as somebody may read from it, and is then closed without a warning."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        # At the end of a process the module may be gone before the file.
        self._close = os.close
        super().__init__(descriptor, closefd=False)

    def __del__(self) -> None:
        self._close(self.descriptor)


def open_index(overlays: Sequence[str], env: Mapping[str, str]) -> Index:
    """The index of the built-in matrix with the user's files on top. Raises MatrixError for a file that is no use."""
    built_in = os.path.join(resources.matrix_root(), "matrix.yaml")
    if not overlays:
        shipped = resources.builtin_index()
        index = _shipped(shipped, built_in) if shipped else None
        if index is not None:
            return index
    paths = [built_in, *overlays]
    folder = _cache_folder(env)
    state = _state(paths)
    cached = os.path.join(folder, state) if folder and state else ""
    index = _read(cached, paths) if cached else None
    return index or _rebuild(paths, cached)


def _shipped(path: str, built_in: str) -> Index | None:
    load = pack.current.load if pack.current is not None else None
    index = _read(path, [built_in], load)
    if index is None or not index.header["files"]:
        return None
    root = os.path.dirname(built_in)
    try:
        stamp = os.stat(path).st_mtime + _SLACK
        for name, size in index.header["files"].items():
            found = os.stat(os.path.join(root, name))
            if found.st_size != size or found.st_mtime > stamp:
                return None
    except OSError:
        return None
    return index


def _read(path: str, paths: Sequence[str], load: Load | None = None) -> Index | None:
    """The index at `path`, made anew from the matrices at `paths` should a part that is read later be damaged."""

    def repair(index: Index) -> bytes:
        data = build(paths, index.header["files"])
        if not index.header["files"]:
            _keep(path, data)
        return data

    try:
        file = _File(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return Index(file, path, repair, load)
    except (OSError, IndexDamaged):
        return None


def _cache_folder(env: Mapping[str, str]) -> str:
    """The folder for indexes; the base directory specification has a relative path ignored."""
    home = env.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(env["HOME"], ".cache") if env.get("HOME") else ""
    return os.path.join(home, "toolmatrix") if home else ""


def _state(paths: Sequence[str]) -> str:
    """A name made of the state of the files; empty when one is missing."""
    folder = os.path.dirname(os.path.abspath(__file__))
    names = [os.path.join(folder, name + ".py") for name in _MAKERS]
    for path in paths:
        beside = os.path.dirname(os.path.abspath(path))
        names += [os.path.join(beside, name) for name in _listed(path)]
    parts = []
    for name in names:
        try:
            found = os.stat(name)
        except OSError:
            if name.startswith(folder):
                continue
            return ""
        parts.append(f"{name} {found.st_size} {found.st_mtime_ns}")
    text = "\n".join(parts).encode("utf-8", "surrogateescape")
    return f"index-{zlib.crc32(text):08x}{zlib.adler32(text):08x}.bin"


def _listed(path: str) -> list[str]:
    """The front page and the files it lists, relative to it; a front page of the usual form needs no YAML."""
    names = [os.path.basename(path)]
    if not os.path.isfile(path):
        return names
    try:
        with open(path, "rb") as stream:
            text = stream.read(_START)
            if text.startswith(_FACTS) or b"\n" + _FACTS in text:
                return names
            text += stream.read()
    except OSError:
        return names
    if b"toolmatrix.matrix/" not in text:
        return names
    import re

    found = re.findall(_LISTED, text, re.MULTILINE)
    rest = text[text.rfind(found[0]) + len(found[0]) :] if len(found) == 1 else b"-"
    if not rest or rest[:1].isalpha():
        return names + re.findall(r"^[ \t]*- ([\w./-]+)", found[0].decode(), re.MULTILINE)
    from toolmatrix.facts import load

    root = os.path.dirname(path)
    return names + [os.path.relpath(name, root or ".") for name in load.files(path)[1:]]


def _rebuild(paths: Sequence[str], cached: str) -> Index:
    data = build(paths)
    # Files that changed meanwhile make an index of neither state.
    if cached and os.path.basename(cached) == _state(paths):
        _keep(cached, data)
    return Index(io.BytesIO(data))


def build(paths: Sequence[str], files: Mapping[str, int] | None = None) -> bytes:
    """Parse, check and compile the matrices at `paths`. Raises MatrixError."""
    from toolmatrix.facts import load, writer
    from toolmatrix.facts.compile import compile_matrix

    return writer.write(compile_matrix(load.load(paths)), files or {})


def _keep(path: str, data: bytes) -> None:
    """Write beside, then rename; a cache that cannot be written is no reason to fail."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            with open(beside, "wb") as stream:
                stream.write(data)
            os.replace(beside, path)
        except OSError:
            os.remove(beside)
            raise
        old = sorted(
            (entry.stat().st_mtime, entry.path)
            for entry in os.scandir(folder)
            if entry.name.startswith("index-") and entry.name.endswith(".bin")
        )
        for _, superseded in old[:-_KEPT]:
            os.remove(superseded)
    except OSError:
        return


def build_index(source_root: str, destination: str) -> None:
    """Compile the matrix under `source_root` into the index file of a wheel."""
    front = os.path.join(source_root, "matrix.yaml")
    sizes = {name: os.stat(os.path.join(source_root, name)).st_size for name in _listed(front)}
    data = build([front], sizes)
    with open(destination, "wb") as stream:
        stream.write(data)
