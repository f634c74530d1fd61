"""Modules and sections of the index in a form that this interpreter loads faster: marshalled, in one file.

A pack is to an installed package what `.pyc` files are to its sources. The command makes it in `__pycache__` and adds
what it had to load from elsewhere; where that cannot be written all is as without it, and a source checkout has none.
marshal is no form to exchange, so a pack begins with the interpreter that it is for, and each part has a checksum and
tells which state of the original it was made from: what does not fit counts as not there. It holds no answers, only
what is read. It takes 2.5 of 28 milliseconds off a `resolve`, half of it by each sort of part.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from typing import Any
else:
    # As the interpreter has them already: importing importlib takes as long as a pack saves.
    ModuleSpec, SourceFileLoader = type(__spec__), type(__spec__.loader)

FORMAT = "toolmatrix-pack/1"
# Bytes of a number: before the table its CRC and its length.
_NUMBER = 4


class Pack:
    """The parts in a file, and those that were missing; what is no pack or one for another interpreter is empty."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.added: dict[str, tuple[Any, bytes]] = {}
        self._parts: dict[str, tuple[Any, int, int, int]] = {}
        """State of the original, where the part starts, its length and its CRC."""
        self._start = 0
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._open()
        except OSError:
            return

    def _open(self) -> None:
        head = _head()
        told = os.pread(self._file, len(head) + 2 * _NUMBER, 0)
        crc, length = _number(told[len(head) : -_NUMBER]), _number(told[-_NUMBER:])
        if not told.startswith(head) or length > os.fstat(self._file).st_size:
            return
        table = os.pread(self._file, length, len(told))
        if len(table) == length and zlib.crc32(table) == crc:
            self._parts = marshal.loads(table)  # noqa: S302 - of this interpreter, and undamaged
            self._start = len(told) + length

    def load(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        """A part made from that state of the original; made now, and added by `keep`, where there is none."""
        data = self._held(name, state)
        if data:
            return marshal.loads(data)  # noqa: S302 - as above
        made = make()
        self.added[name] = state, marshal.dumps(made)
        return made

    def _held(self, name: str, state: Any) -> bytes:
        made_from, start, length, crc = self._parts.get(name, (None, 0, 0, 0))
        if made_from != state:
            return b""
        try:
            data = os.pread(self._file, length, self._start + start)
        except OSError:
            return b""
        return data if len(data) == length and zlib.crc32(data) == crc else b""

    def keep(self) -> None:
        """Write the file anew where something was added, and close it: without it all goes on as well."""
        if self.added and not sys.dont_write_bytecode:
            replace(self.path, self._written())
        if self._file >= 0:
            os.close(self._file)
        self._parts, self._file = {}, -1

    def _written(self) -> bytes:
        held = {name: (part[0], self._held(name, part[0])) for name, part in self._parts.items()}
        parts, body, start = {}, [], 0
        for name, (state, data) in (held | self.added).items():
            if data:
                parts[name] = state, start, len(data), zlib.crc32(data)
                body.append(data)
                start += len(data)
        table = marshal.dumps(parts)
        numbers = (zlib.crc32(table), len(table))
        head = _head() + b"".join(number.to_bytes(_NUMBER, "little") for number in numbers)
        return b"".join([head, table, *body])


def replace(path: str, data: bytes) -> bool:
    """Write a file of a cache beside its place and rename it; False where that cannot be done, which does no harm."""
    beside = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(beside, "wb") as stream:
                stream.write(data)
            os.replace(beside, path)
        except OSError:
            os.remove(beside)
            raise
    except OSError:
        return False
    return True


def _head() -> bytes:
    """The first bytes of a pack of this interpreter."""
    return f"{FORMAT} {sys.flags.optimize} {sys.version}\n".encode()


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


class _ModuleLoader(SourceFileLoader):
    """Loads a module as its source says, with code from the pack."""

    def __init__(self, name: str, path: str, pack: Pack, state: Any) -> None:
        super().__init__(name, path)
        self._pack = pack
        self._state = state

    def get_code(self, fullname: str) -> Any:
        return self._pack.load(
            fullname, self._state, lambda: super(_ModuleLoader, self).get_code(fullname)
        )


class _ModuleFinder:
    """Finds the modules of this package, by their sources as ever: one that changed is not in the pack."""

    def __init__(self, root: str, pack: Pack) -> None:
        folder, self._package = os.path.split(root)
        self._prefix = os.path.join(folder, "")
        self._pack = pack

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _old: Any = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != self._package:
            return None
        base = self._prefix + name.replace(".", os.sep)
        for path, inside in ((f"{base}.py", False), (f"{base}{os.sep}__init__.py", True)):
            try:
                found = os.stat(path)
            except OSError:
                continue
            loader = _ModuleLoader(name, path, self._pack, (path, found.st_mtime_ns, found.st_size))
            spec = ModuleSpec(name, loader, origin=path, is_package=inside)
            spec.has_location = True
            # Else the machinery works out, for each module, where Python would have kept its code.
            spec.cached = self._pack.path
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(base)
            return spec
        return None


current: Pack | None = None
"""The pack in use, if there is one."""


def use(root: str) -> None:
    """Use the pack of the package at `root`, where that is installed and compiled modules are kept beside sources."""
    global current  # noqa: PLW0603 - a process has one, as it has one list of modules
    tag = sys.implementation.cache_tag
    if tag and not sys.pycache_prefix and os.path.isfile(os.path.join(root, "data", "index.bin")):
        current = Pack(os.path.join(root, "__pycache__", f"toolmatrix.{tag}.pack"))
        sys.meta_path.insert(0, _ModuleFinder(root, current))


def keep() -> None:
    """Let later runs have what this one had to load from elsewhere."""
    if current is not None:
        current.keep()
