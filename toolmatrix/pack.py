"""Modules and sections of the index in a form that this interpreter loads faster: marshalled, in one file.

A pack is to an installed package what `.pyc` files are to its sources. The command makes it in `__pycache__` and adds
what it had to load from elsewhere; where that cannot be written all is as without it, and a source checkout has none.
A pack begins with the interpreter that it is for, and each part has a checksum and tells which state of the original it
was made from: what does not fit counts as not there. It holds no answers, only
what is read.
"""

# It takes 2.5 of 28 milliseconds off a `resolve`, half of it by modules and half by sections.

from __future__ import annotations

import marshal
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from typing import Any
else:
    # As the interpreter has them already: importing importlib takes as long as a pack saves.
    ModuleSpec, SourceFileLoader = type(__spec__), type(__spec__.loader)

FORMAT = "toolmatrix-pack/2"
# The CRC and the length of a table take no more.
_NUMBERS = 40


class Damaged(Exception):
    """A file that is none of its form, or that is damaged: make it anew."""


class Pieces:
    """Bytes that lie elsewhere in pieces of one size, each of which is fetched when it is first read."""

    def __init__(self, size: int, step: int, fetch: Callable[[int], bytes]) -> None:
        """So many bytes; `fetch` gives a piece by its number, the last one may be shorter."""
        self.size = size
        self.step = step
        self.fetch = fetch
        self.held: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: slice) -> bytes:
        start, stop, _ = place.indices(self.size)
        first = start // self.step
        for number in range(first, -(-stop // self.step)):
            if number not in self.held:
                self.held[number] = self.fetch(number)
        found = b"".join([self.held[number] for number in range(first, -(-stop // self.step))])
        return found[start - first * self.step : stop - first * self.step]


class Parts:
    """A file of parts: a line `FORM CRC LENGTH`, a table of that length with that CRC, then what the table points to.

    Raises OSError for a file that cannot be opened, and Damaged for whatever does not fit.
    """

    def __init__(self, path: str, form: bytes, data: bytes | Pieces | None = None) -> None:
        """The parts at `path`, or those in memory, which came from there."""
        self.path = path
        self._data = data
        # A descriptor: dozens of pieces are read of it, by place, so that forked processes may share it.
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if data is None else -1
        self.size = os.fstat(self._file).st_size if data is None else len(data)
        first = self.read(0, min(len(form) + _NUMBERS, self.size))
        # A form may have line breaks inside: it names the interpreter as that names itself.
        self.line = first[: first.find(b"\n", len(form)) + 1]
        named, *numbers = self.line[:-1].rsplit(b" ", 2)
        if named != form or len(numbers) != 2 or not all(map(bytes.isdigit, numbers)):
            raise Damaged(path)
        self._crc, self._length = map(int, numbers)
        self.body = len(self.line) + self._length

    # At the end of the interpreter `os` may be gone before the last pack is.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if getattr(self, "_file", -1) >= 0:
            close(self._file)

    def read(self, start: int, length: int) -> bytes:
        """So many bytes of the file."""
        # Bounds first: a damaged length may be any number, and must not take memory.
        if not 0 <= start <= start + length <= self.size:
            raise Damaged(self.path)
        if self._data is not None:
            return self._data[start : start + length]
        try:
            data = os.pread(self._file, length, start)
        except OSError:
            data = b""
        if len(data) != length:
            raise Damaged(self.path)
        return data

    def part(self, start: int, length: int, crc: int) -> bytes:
        """The part at a place behind the table."""
        data = self.read(self.body + start, length)
        if zlib.crc32(data) != crc:
            raise Damaged(self.path)
        return data

    def table(self) -> bytes:
        return self.part(-self._length, self._length, self._crc)


def places(parts: Mapping[str, bytes]) -> dict[str, tuple[int, int, int]]:
    """Start, length and CRC of parts that stand one behind the other."""
    found: dict[str, tuple[int, int, int]] = {}
    start = 0
    for name, data in parts.items():
        found[name] = start, len(data), zlib.crc32(data)
        start += len(data)
    return found


def joined(form: bytes, table: bytes, parts: Mapping[str, bytes]) -> bytes:
    """A file of parts."""
    numbers = f" {zlib.crc32(table)} {len(table)}\n".encode()
    return b"".join([form, numbers, table, *parts.values()])


class Pack:
    """The parts in a file, and those that were missing; what is no pack or one for another interpreter is empty."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.added: dict[str, tuple[Any, bytes]] = {}
        # The state of the original, and where the part lies.
        self._table: dict[str, tuple[Any, tuple[int, int, int]]] = {}
        self._parts: Parts | None = None
        try:
            self._parts = Parts(path, _form())
            self._table = marshal.loads(self._parts.table())  # noqa: S302 - of this interpreter, and undamaged
        except (OSError, Damaged):
            return

    def load(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        """A part made from that state of the original; made now, and added by `keep`, where there is none."""
        data = self._held(name, state)
        if data:
            return marshal.loads(data)  # noqa: S302 - as above
        made = make()
        self.added[name] = state, marshal.dumps(_shared(made, {}))
        return made

    def _held(self, name: str, state: Any) -> bytes:
        made_from, place = self._table.get(name, (None, None))
        if self._parts is None or place is None or made_from != state:
            return b""
        try:
            return self._parts.part(*place)
        except Damaged:
            return b""

    def keep(self) -> None:
        """Write the file anew where something was added, and close it: without it all goes on as well."""
        # Whoever wants no `.pyc` files wants none of these: a pack is the same thing.
        if self.added and not sys.dont_write_bytecode:
            replace(self.path, self._written())
        self._table, self._parts = {}, None

    def _written(self) -> bytes:
        held = {name: (state, self._held(name, state)) for name, (state, _) in self._table.items()}
        states = {name: part for name, part in (held | self.added).items() if part[1]}
        parts = {name: data for name, (_, data) in states.items()}
        found = places(parts)
        table = marshal.dumps({name: (state, found[name]) for name, (state, _) in states.items()})
        return joined(_form(), table, parts)


def replace(path: str, data: bytes) -> bool:
    """Write a file of a cache beside its place and rename it; False where that cannot be done, which does no harm."""
    # By the process, as several runs may write at once: each renames a file of its own, and the last one stays.
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


def _shared(value: Any, seen: dict[Any, Any]) -> Any:
    # What stands in a section many times, as names of releases and masks do, is written and read once.
    if type(value) is list:
        return [_shared(part, seen) for part in value]
    if type(value) is dict:
        return {_shared(name, seen): _shared(part, seen) for name, part in value.items()}
    # By type as well: 1 is equal to True.
    return seen.setdefault((type(value), value), value)


def _form() -> bytes:
    # marshal is no form to exchange: each version reads its own, and code differs by what is optimized away.
    return f"{FORMAT} {sys.flags.optimize} {sys.version}".encode()


class _ModuleLoader(SourceFileLoader):
    # All but the code is as the interpreter's own loader has it: sources, tracebacks and `inspect` go on working.
    def __init__(self, name: str, path: str, pack: Pack, state: Any) -> None:
        super().__init__(name, path)
        self._pack = pack
        self._state = state

    def get_code(self, fullname: str) -> Any:
        return self._pack.load(
            fullname, self._state, lambda: super(_ModuleLoader, self).get_code(fullname)
        )


class _ModuleFinder:
    # By their sources as ever: a module that changed is not in the pack.
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
            # A package needs the folder of its modules, or importing one of them fails.
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(base)
            return spec
        return None


current: Pack | None = None
"""The pack in use, if there is one."""


def use(root: str) -> None:
    """Use the pack of the package at `root`, where that is installed and compiled modules are kept beside sources."""
    global current  # noqa: PLW0603 - a process has one, as it has one list of modules
    # Without a tag the interpreter keeps no code; with a prefix it keeps it elsewhere, and nothing beside sources.
    tag = sys.implementation.cache_tag
    if tag and not sys.pycache_prefix and os.path.isfile(os.path.join(root, "data", "index.bin")):
        current = Pack(os.path.join(root, "__pycache__", f"toolmatrix.{tag}.pack"))
        # In front of the finder of sources, which would find the same modules and load them from their own files.
        sys.meta_path.insert(0, _ModuleFinder(root, current))


def keep() -> None:
    """Let later runs have what this one had to load from elsewhere."""
    if current is not None:
        current.keep()
