"""Which file the dynamic loader takes for each library that a file needs, by ld.so(8) of glibc, and of musl.

The cache of ldconfig is not believed: layers may have changed what it lists. Libraries that a process has loaded before
count as found, which reading cannot know; so what lies in the image, but where no search reaches it, is a skip.
"""

from __future__ import annotations

import posixpath
import re

from toolmatrix.inventory.model import Soname

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.inventory.elf import Elf
    from toolmatrix.inventory.record import Record, View

_MULTIARCH = {
    "386": "i386-linux-gnu",
    "amd64": "x86_64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
    "arm64": "aarch64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "s390x": "s390x-linux-gnu",
}
"""Debian's names, https://wiki.debian.org/Multiarch/Tuples."""
_DEFAULTS = ("lib/{}", "usr/lib/{}", "lib64", "usr/lib64", "lib", "usr/lib")
_MUSL = ("lib", "usr/local/lib", "usr/lib")
_KERNEL = ("linux-vdso.so", "linux-gate.so")
_DRIVER = ("libcuda.so.", "libnvidia-", "libnvcuvid.so.")
"""What the NVIDIA container toolkit mounts from the host when a container starts."""
_MOST_USERS = 8
_DEEPEST_INCLUDE = 8


def observe(view: View, record: Record) -> tuple[Soname, ...]:
    """Every soname that files of the image's own architecture need, with what the loader takes for it."""
    if not view.elves:
        record.skip("sonames", "no ELF file is in it")
        return ()
    search = _Search(view)
    users: dict[tuple[str, str], list[str]] = {}
    for path, elf in sorted(view.elves.items()):
        if elf.machine != view.machine:
            continue
        for name in elf.dynamic.needed:
            if not name.startswith(_KERNEL):
                users.setdefault((name, search.find(name, path, elf)), []).append(path)
    _offered(view, record, search)
    made: list[Soname] = []
    for (name, found), several in sorted(users.items()):
        there = "" if found else search.anywhere(name)
        if there:
            reason = f"/{there} is outside of what /{several[0]} searches: the process has to load it first"
            record.skip(f"soname:{name}", reason)
            continue
        others = () if found or name.startswith(_DRIVER) else search.majors(name)
        made.append(
            Soname(name=name, needed_by=tuple(several[:_MOST_USERS]), found=found, others=others)
        )
    return tuple(made)


def _offered(view: View, record: Record, search: _Search) -> None:
    """Put in the libraries that any program finds, by soname."""
    for folder in search.common:
        for name in view.tree.names(folder):
            path = search.fitting(folder, name, view.machine)
            if path and ".so" in name:
                record.feature(f"soname:{name}", path, "soname", path)


def folders(view: View) -> list[str]:
    """The directories in which every program looks for libraries, in the order of the loader."""
    return view.folders("LD_LIBRARY_PATH") + _standard(view)


class _Search:
    """Where libraries are looked for in one image."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.variable = view.folders("LD_LIBRARY_PATH")
        self.common = self.variable + _standard(view)
        self.names: dict[str, str] = {}
        for path, elf in view.elves.items():
            if elf.machine == view.machine:
                for name in (path.rpartition("/")[2], elf.dynamic.soname):
                    self.names.setdefault(name, path)
        self.known: dict[tuple[str, str, str], str] = {}

    def find(self, name: str, path: str, elf: Elf) -> str:
        """The file that the loader takes for a name that a file needs; empty where it finds none."""
        folder, slash, base = name.rpartition("/")
        if slash:
            folders = _expanded((folder,), path, elf.machine)
        else:
            held = elf.dynamic
            rpath = () if held.runpath else held.rpath
            folders = [
                *_expanded(rpath, path, elf.machine),
                *self.variable,
                *_expanded(held.runpath, path, elf.machine),
                *self.common,
            ]
        found = (self.fitting(one, base, elf.machine) for one in folders)
        return next(filter(None, found), "")

    def fitting(self, folder: str, name: str, machine: str) -> str:
        """The file of a name in a directory, if it is an ELF file for this architecture."""
        key = (folder, name, machine)
        if key not in self.known:
            real = self.view.tree.real(f"{folder}/{name}")
            elf = self.view.elves.get(real or "")
            self.known[key] = real or "" if elf is not None and elf.machine == machine else ""
        return self.known[key]

    def anywhere(self, name: str) -> str:
        """A file of this name or soname, wherever it lies."""
        return self.names.get(name, "")

    def majors(self, name: str) -> tuple[str, ...]:
        """Sonames of the same library under another number, wherever they lie."""
        stem, so, _ = name.partition(".so")
        if not so:
            return ()
        sonames = {elf.dynamic.soname for elf in self.view.elves.values()}
        return tuple(
            sorted(one for one in sonames if one.startswith(f"{stem}.so.") and one != name)
        )


def _standard(view: View) -> list[str]:
    """The directories of the loader's configuration, then those that it always searches."""
    musl = view.tree.glob("etc/ld-musl-*.path")
    if musl or view.tree.glob("lib/ld-musl-*"):
        words = re.split(r"[:\n]", view.tree.text(musl[0])) if musl else []
        return [word.strip("/ ") for word in words if word.strip()] or list(_MUSL)
    multiarch = _MULTIARCH.get(view.machine, view.machine)
    return [*_configured(view, "etc/ld.so.conf", 0), *(one.format(multiarch) for one in _DEFAULTS)]


def _configured(view: View, path: str, depth: int) -> Iterator[str]:
    """The directories of an ld.so.conf, with the files that it includes."""
    for line in view.tree.text(path).splitlines():
        words = line.partition("#")[0].replace(",", " ").split()
        if words[:1] == ["include"] and depth < _DEEPEST_INCLUDE:
            for pattern in words[1:]:
                base = "" if pattern.startswith("/") else posixpath.dirname(path) + "/"
                for included in view.tree.glob(base + pattern):
                    yield from _configured(view, included, depth + 1)
        else:
            yield from (word.strip("/") for word in words if word.startswith("/"))


def _expanded(folders: tuple[str, ...], path: str, machine: str) -> list[str]:
    """Directories of RPATH or RUNPATH with the words that the loader puts in; relative ones never match."""
    lib = f"lib/{_MULTIARCH.get(machine, machine)}"
    origin = "/" + posixpath.dirname(path)
    found = [
        re.sub(r"\$\{?(ORIGIN|LIB)\}?", lambda word: origin if word[1] == "ORIGIN" else lib, one)
        for one in folders
    ]
    return [posixpath.normpath(one).strip("/") for one in found if one.startswith("/")]
