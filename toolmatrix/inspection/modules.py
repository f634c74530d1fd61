"""Modules on an import path: the file that `import` takes, the version in it, and whether the interpreter can load it.

Names of extension modules are those of PEP 3149 (tags) and PEP 384 (abi3). The order within a directory is that of
`importlib.machinery.FileFinder`: a package, an extension module, a source file; a directory without `__init__` counts
only where nothing else has the name (PEP 420).
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from toolmatrix.images.layers import FILE
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.imports import Folder, ImportPath
from toolmatrix.inspection.record import NO_PROCESSORS, View
from toolmatrix.inspection.stated import VERSION_FILES, Stated, search
from toolmatrix.processors import processor
from toolmatrix.value import Value

_EXTENSION = re.compile(r"(?P<stem>[^./]+)(?:\.(?P<tag>(?:cpython|pypy)[^./]*|abi3))?\.so")
_CPYTHON = re.compile(r"cpython-(\d+)([a-z]*)(?:-(.*))?")
_COMPILED = re.compile(rb"^\"?([^,\n\"]+\.(?:cpython-[^./,\n]+|abi3)\.so)\"?,", re.MULTILINE)
_MOST_FILES = 20_000
# Dots in the name of a module.
_DEEPEST = 50


class Module(Value):
    """A module that an import takes.

    `path` is that of its file or directory as the path has it, `file` the one behind its links, `folder` the place on
    the path.
    """

    name: str
    path: str
    file: str
    folder: Folder
    is_package: bool = True

    @property
    def site(self) -> str:
        """The real directory that a record of it lies in."""
        depth = self.name.count(".") + 1 + self.is_package
        path = self.file
        for _ in range(depth):
            path = path.rpartition("/")[0]
        return path


class _Names(NamedTuple):
    every: frozenset[str]
    # The names of extension modules by what they are imported as, the most special first.
    extensions: Mapping[str, Sequence[str]]


class Modules:
    """What one interpreter imports."""

    def __init__(self, view: View, path: ImportPath) -> None:
        self.view = view
        self.path = path
        self.known: dict[str, Module | None] = {}
        self._packed_of: dict[str, Mapping[str, str]] = {}
        self._names_of: dict[str, _Names] = {}

    def find(self, name: str) -> Module | None:
        """The module of a name; None where an import of it fails."""
        if name not in self.known:
            is_deep = name.count(".") > _DEEPEST
            self.known[name] = None if is_deep else self._search(name)
        return self.known[name]

    def _search(self, name: str) -> Module | None:
        above, _, base = name.rpartition(".")
        places = [(folder, folder.path) for folder in self.path.folders]
        if above:
            package = self.find(above)
            if package is None:
                return None
            if package.file:
                places = [(package.folder, package.path)]
            else:
                part = above.replace(".", "/")
                places = [(folder, f"{path}/{part}") for folder, path in places]
        portion: Module | None = None
        for folder, path in places:
            module = self._in(folder, path, name, base)
            if module is not None and module.file:
                return module
            portion = portion or module
        if portion is None and not above:
            for package_name, path in self.path.mapping:
                if package_name == name:
                    folder = Folder(path=posixpath.dirname(path), origin="an editable install")
                    return self._in(folder, folder.path, name, posixpath.basename(path))
        return portion

    def _in(self, folder: Folder, path: str, name: str, base: str) -> Module | None:
        tree = self.view.tree
        entry = tree.entry(folder.path)
        if entry is not None and entry.kind == FILE:
            return self._in_archive(folder, f"/{path.strip('/')}/{base}", name)
        below = self._names(path)
        if base in below.every:
            inner = self._names(f"{path}/{base}")
            for file in ("__init__.py", "__init__.pyc", *inner.extensions.get("__init__", ())):
                if file in inner.every:
                    where = f"{path}/{base}".strip("/")
                    real = tree.real(f"{where}/{file}") or ""
                    return Module(name=name, path=f"/{where}", file=real, folder=folder)
        tagged = below.extensions.get(base, ())
        extensions = [file for file in tagged if self.loads(f"{path}/{file}") == ""]
        for file in (*extensions, f"{base}.py", f"{base}.pyc"):
            if file in below.every:
                where = f"{path}/{file}".strip("/")
                real = tree.real(where) or ""
                return Module(
                    name=name, path=f"/{where}", file=real, folder=folder, is_package=False
                )
        if base in below.every and tree.names(f"{path}/{base}"):
            return Module(name=name, path=f"/{path.strip('/')}/{base}", file="", folder=folder)
        return None

    def _in_archive(self, folder: Folder, path: str, name: str) -> Module | None:
        if name in self._packed(folder):
            real = self.view.tree.real(folder.path) or ""
            return Module(name=name, path=path, file=real, folder=folder, is_package=False)
        is_portion = name in self.view.archive(folder.path).portions
        return Module(name=name, path=path, file="", folder=folder) if is_portion else None

    def _packed(self, folder: Folder) -> Mapping[str, str]:
        if folder.path not in self._packed_of:
            self._packed_of[folder.path] = dict(self.view.archive(folder.path).names)
        return self._packed_of[folder.path]

    def _names(self, path: str) -> _Names:
        if path not in self._names_of:
            names = self.view.tree.names(path) if self.view.is_open(path) else []
            extensions: dict[str, list[str]] = {}
            # The name with a tag goes before the plain one.
            for name in sorted(names, key=lambda name: -name.count(".")):
                if match := _EXTENSION.fullmatch(name):
                    extensions.setdefault(match["stem"], []).append(name)
            self._names_of[path] = _Names(frozenset(names), extensions)
        return self._names_of[path]

    def stated(self, module: Module) -> tuple[str, Stated] | None:
        """The file of a module that states its version, and that; None where there is none."""
        if packed := self._packed(module.folder):
            version = packed.get(module.name, "")
            return (module.file, Stated(version=version)) if version else None
        files = [f"{module.path}/{name}" for name in VERSION_FILES] if module.is_package else []
        for path in files:
            entry = self.view.tree.entry(path)
            content = entry.content if entry is not None else None
            if isinstance(content, Stated):
                return path.strip("/"), content
            # Another observer keeps the whole text.
            if isinstance(content, bytes) and (stated := search(content)) is not None:
                return path.strip("/"), stated
        return None

    def loads(self, path: str) -> str:
        """Why the interpreter cannot load an extension module; empty where it can."""
        match = _EXTENSION.fullmatch(path.rpartition("/")[2])
        if match is None:
            return ""
        tag = _CPYTHON.fullmatch(match["tag"] or "")
        wanted = self.path.series.replace(".", "")
        if tag is not None and wanted and tag[1] != wanted:
            return f"it is made for {tag[0].partition('-')[0]} {_series(tag[1])}"
        if tag is not None and ("t" in tag[2]) != self.path.is_threaded:
            return "it is made for a Python with another lock (free threading)"
        if tag is not None and (tag[3] or "").endswith("-musl") and not self.path.is_musl:
            return "it is made for musl, and the interpreter for glibc"
        elf = self.view.elves.get(self.view.tree.real(path) or "")
        return self._other_machine(elf) if elf is not None else ""

    def _other_machine(self, elf: Elf) -> str:
        machine = self.view.machine
        if elf.machine in NO_PROCESSORS or elf.machine in (machine, processor(machine).also_runs):
            return ""
        return f"it is made for {elf.machine}"

    def broken(self, module: Module) -> tuple[str, str]:
        """An extension module of a package that cannot be loaded, and why; empty where enough of them can.

        A package may carry modules for several interpreters, of which this one needs its own.
        """
        if not module.is_package or not module.file:
            return "", ""
        bad: dict[tuple[str, str], tuple[str, str]] = {}
        good: set[tuple[str, str]] = set()
        for path in self._compiled(posixpath.dirname(module.file)):
            folder, _, name = path.rpartition("/")
            match = _EXTENSION.fullmatch(name)
            if match is None or (match["tag"] is None and name.startswith("lib")):
                continue
            reason = self.loads(path)
            if reason:
                bad.setdefault((folder, match["stem"]), (path, reason))
            elif match["tag"]:
                good.add((folder, match["stem"]))
        return ("", "") if good or not bad else next(iter(bad.values()))

    def _compiled(self, folder: str) -> Iterator[str]:
        start = bisect_left(self._libraries, f"{folder}/")
        for path in self._libraries[start : start + _MOST_FILES]:
            if not path.startswith(f"{folder}/"):
                return
            yield path

    @cached_property
    def _libraries(self) -> list[str]:
        return sorted(path for path in self.view.elves if path.endswith(".so"))


def missing(view: View, site: str, record: bytes) -> str:
    """An extension module that the record of a package lists, and that is gone; empty where all are there."""
    for match in _COMPILED.finditer(record):
        name = match[1].decode("utf-8", "replace")
        # Tests are left out of images to save space.
        if "test" not in name and view.tree.entry(f"{site}/{name}") is None:
            return posixpath.normpath(f"{site}/{name}")
    return ""


def _series(digits: str) -> str:
    return f"{digits[0]}.{digits[1:]}"
