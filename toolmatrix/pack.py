"""What this interpreter loads faster than the original: modules and sections of the index, marshalled, in one file.

A pack is to an installed package what `.pyc` files are to its sources. The command makes it in `__pycache__` and adds
what it had to load from elsewhere; where that cannot be written all is as without it, and a source checkout has none.
marshal is no form to exchange, so a pack begins with the interpreter that it is for and a checksum, and each part tells
which state of the original it was made from: what does not fit counts as not there. It holds no answers, only what is
read. It takes 2.5 of 28 milliseconds off a `resolve`, half of it by each sort of part.
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

FORMAT = "toolmatrix-pack/2"
# Bytes of the CRC between the first line and the parts.
_CRC = 4


class Pack:
    """The parts in a file, and those that were missing; what is no pack or one for another interpreter is empty."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.added: dict[str, tuple[Any, bytes]] = {}
        self._parts: dict[str, tuple[Any, bytes]] = {}
        """State of the original, and the part."""
        try:
            with open(path, "rb", buffering=0) as stream:
                data = stream.read()
        except OSError:
            return
        head = _head()
        body = memoryview(data)[len(head) + _CRC :]
        if data.startswith(head) and data[len(head) : len(head) + _CRC] == _crc(body):
            self._parts = marshal.loads(body)  # noqa: S302 - of this interpreter, and undamaged

    def load(self, name: str, state: Any, make: Callable[[], Any]) -> Any:
        """A part made from that state of the original; made now, and added by `keep`, where there is none."""
        made_from, data = self._parts.get(name, (None, b""))
        if made_from == state:
            return marshal.loads(data)  # noqa: S302 - as above
        made = make()
        self.added[name] = state, marshal.dumps(made)
        return made

    def keep(self) -> None:
        """Write the file anew where something was added; without it all goes on as well."""
        if self.added and not sys.dont_write_bytecode:
            body = marshal.dumps(self._parts | self.added)
            replace(self.path, _head() + _crc(body) + body)


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
    """What a pack of this interpreter begins with."""
    return f"{FORMAT} {sys.flags.optimize} {sys.version}\n".encode()


def _crc(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(_CRC, "little")


class _Loader(SourceFileLoader):
    """Loads a module as its source says, with code from the pack."""

    def __init__(self, name: str, path: str, pack: Pack, state: Any) -> None:
        super().__init__(name, path)
        self._pack = pack
        self._state = state

    def get_code(self, fullname: str) -> Any:
        return self._pack.load(
            fullname, self._state, lambda: super(_Loader, self).get_code(fullname)
        )


class _Finder:
    """Finds the modules of this package, by their sources as ever: one that changed is not in the pack."""

    def __init__(self, root: str, pack: Pack) -> None:
        self._root = os.path.dirname(root)
        self._package = os.path.basename(root)
        self._pack = pack

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _old: Any = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != self._package:
            return None
        base = os.path.join(self._root, *name.split("."))
        for path, inside in ((f"{base}.py", False), (os.path.join(base, "__init__.py"), True)):
            try:
                found = os.stat(path)
            except OSError:
                continue
            loader = _Loader(name, path, self._pack, (path, found.st_mtime_ns, found.st_size))
            spec = ModuleSpec(name, loader, origin=path, is_package=inside)
            spec.has_location = True
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
        sys.meta_path.insert(0, _Finder(root, current))


def keep() -> None:
    """Let later runs have what this one had to load from elsewhere."""
    if current is not None:
        current.keep()
