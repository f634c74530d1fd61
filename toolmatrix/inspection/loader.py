"""The file that the dynamic loader takes for each library that a file needs, by ld.so(8) of glibc, and of musl.

Directories are those of ldconfig(8) and of musl's ldso/dynlink.c. The cache of ldconfig is not used: layers may
have changed what it lists. Libraries that a process has loaded before count as found, which reading cannot know; so a
library in the image outside of the search path is a skip.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from toolmatrix.images.limits import MOST_SEARCHED, Budget
from toolmatrix.inspection.dynamic import Dynamic
from toolmatrix.inspection.model import (
    BY_VARIABLE,
    DRIVER,
    OLDER,
    OTHER_SONAME,
    OWN_DRIVER,
    STUB,
    UNREACHED,
    FilePattern,
    Soname,
)
from toolmatrix.inspection.record import Record, View
from toolmatrix.processors import processor
from toolmatrix.value import Value

_LD_CONF = "etc/ld.so.conf"
_PRELOAD = "etc/ld.so.preload"
# ld.so.conf may include any file; every known distribution keeps its includes in this directory.
READS = (
    FilePattern(
        r"etc/ld\.so\.(conf|preload)|etc/ld\.so\.conf\.d/[^/]+|etc/ld-musl-[^/]+\.path", 64 << 10
    ),
)
_MUSL = ("lib", "usr/local/lib", "usr/lib")
_TOKENS = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)|\{(ORIGIN|LIB|PLATFORM)\})")
_FOLDER, _PATTERN, _FILE = "folder", "pattern", "file"
_KERNEL = ("linux-vdso.so", "linux-gate.so")
# Where CUDA keeps libraries of the driver to link with, not to run with.
_STUBS = re.compile(r"(^|/)stubs/")
# Libraries of the driver that applications load, by the names with and without a number, and directories of an image
# in which they belong: for a driver older than the toolkit, and on Jetson.
_DRIVER_NAMES = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so")
_OF_IMAGE = re.compile(r"/(compat|tegra[^/]*)/")
# The names of files that ldconfig lists.
_CACHED = re.compile(r"(lib|ld-).*\.so.*")
# A directory in any other with variants for newer processors, "Hardware capabilities" of ld.so(8).
_HWCAPS = "glibc-hwcaps"
# Libraries that musl replaces by itself.
_MUSL_OWN = re.compile(r"lib(c|pthread|rt|m|dl|util|xnet)\.")
# Python packages that load libraries of other packages before their own, and where those are beside them.
_PRELOADED = (("torch", "nvidia/*/lib"),)
_SITE = re.compile(r"(.*/(?:site|dist)-packages)/([^/]+)/.*")
_MOST_USERS = 8
# Files that are followed for the RPATH of others.
_MOST_STEPS = 100_000


def observe(view: View, record: Record) -> tuple[Soname, ...]:
    """Every soname that files of the image's own architecture need, with the file that the loader takes."""
    if not view.elves:
        record.skip("sonames", "it has no ELF file")
        return ()
    search = LibrarySearch(view, library_path(view))
    users: dict[tuple[str, str], list[str]] = {}
    for name, path in search.preloaded:
        users.setdefault((name, search.find(name, "", Dynamic())), []).append(path)
    for path, dynamic in search.files.items():
        for name in (*dynamic.needed, *filter(None, (dynamic.interpreter,))):
            if not name.startswith(_KERNEL):
                users.setdefault((name, search.find(name, path, dynamic)), []).append(path)
    _offered(record, search)
    _driver(record, search)
    _misnamed(record, search, users)
    _older(record, search)
    _by_variable(record, search, users)
    sonames: list[Soname] = []
    for (name, library), paths in sorted(users.items()):
        elsewhere = "" if library else search.anywhere.get(name, "")
        if elsewhere:
            reason = f"/{elsewhere} is not on the search path of /{paths[0]}: the process has to load it first"
            record.skip(f"soname:{name}", reason)
            # Nothing is loaded before what a program needs, unless its caller arranges for that.
            for user in paths:
                if search.files.get(user, Dynamic()).interpreter:
                    record.feature(f"{UNREACHED}:{name}", user, "loader", elsewhere)
            continue
        others = () if library or name.startswith(DRIVER) else search.majors(name)
        sonames.append(
            Soname(name=name, needed_by=tuple(paths[:_MOST_USERS]), found=library, others=others)
        )
    return tuple(sonames)


def _driver(record: Record, search: LibrarySearch) -> None:
    tree = search.view.tree
    variable = search.path.expanded(search.path.variable, "")
    for name in _DRIVER_NAMES:
        for folder in (*variable, *search.path.configured):
            path = f"{folder}/{name}"
            real = tree.real(path) or ""
            if real in search.files and (_STUBS.search(path) or _STUBS.search(real)):
                record.feature(f"{STUB}:{name}", path, "loader", path)
                break
        library = search.find(name, "", Dynamic())
        if library and not _OF_IMAGE.search(f"/{library}"):
            record.feature(f"{OWN_DRIVER}:{name}", library, "loader", library)


def _misnamed(
    record: Record, search: LibrarySearch, users: Mapping[tuple[str, str], Sequence[str]]
) -> None:
    for (name, library), paths in sorted(users.items()):
        soname = search.files[library].soname if library else ""
        stem, so, number = name.rpartition("/")[2].partition(".so.")
        other, _, other_number = soname.partition(".so.")
        if so and other_number and stem == other and number != other_number:
            record.feature(f"{OTHER_SONAME}:{name}", soname, f"needed by {paths[0]}", library)


def loaded_libraries(
    search: LibrarySearch, sonames: Iterable[str], sites: Sequence[str]
) -> dict[str, str]:
    """The libraries that the loader takes for some names: by packages of Python, else by any program; by name."""
    libraries: dict[str, str] = {}
    below = tuple(f"{site}/" for site in sites)
    for name in sonames:
        users = search.users.get(name, ())
        packaged = [path for path in users if path.startswith(below)] if below else []
        by_package = {search.find(name, path, search.files[path]) for path in packaged} - {""}
        plain = search.find(name, "", Dynamic())
        libraries[name] = min(by_package) if by_package else plain
    return libraries


def _older(record: Record, search: LibrarySearch) -> None:
    for path, dynamic in search.files.items():
        for name, version in dynamic.asks:
            family, _, wanted = version.rpartition("_")
            library = search.find(name, path, dynamic)
            available = dict(search.files[library].gives).get(family) if library else None
            # Families are compatible from one version to the next; nothing is known of a family that a library lacks.
            if available and _number(wanted) > _number(available):
                record.feature(f"{OLDER}:{name}", version, "loader", path)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _by_variable(
    record: Record, search: LibrarySearch, users: Mapping[tuple[str, str], Sequence[str]]
) -> None:
    if not search.path.variable:
        return
    # A new search, not a copy: preloaded libraries may themselves be found by the variable alone.
    bare = LibrarySearch(search.view, search.path.replace(variable=()))
    for (name, library), paths in sorted(users.items()):
        dynamic = search.files.get(paths[0], Dynamic())
        if library and not bare.find(name, paths[0], dynamic):
            record.feature(f"{BY_VARIABLE}:LD_LIBRARY_PATH", name, "loader", library)


def _offered(record: Record, search: LibrarySearch) -> None:
    for folder in search.path.folders:
        for name in search.view.tree.names(folder):
            path = search.fitting(folder, name)
            if path and ".so" in name:
                record.feature(f"soname:{name}", path, "soname", path)


class LibrarySearch:
    """Looks for libraries in one image; `files` are those of its own architecture, by path."""

    def __init__(self, view: View, directories: LibraryPath) -> None:
        self.view = view
        self.path = directories
        self.files = {path: elf.dynamic for path, elf in sorted(view.own.items())}
        # By file name and by soname, wherever a file lies; the first that has the name.
        self.anywhere: dict[str, str] = {}
        for path, dynamic in self.files.items():
            if not _STUBS.search(path):
                for name in (path.rpartition("/")[2], dynamic.soname):
                    self.anywhere.setdefault(name, path)
        self.known: dict[tuple[str, str], str] = {}
        self.variants: dict[str, list[str]] = {}
        self.preloaded = tuple(_preloaded(view))
        self.loaded: dict[str, str] = {}
        for name, _ in self.preloaded:
            library = self.find(name, "", Dynamic())
            if library:
                self.loaded |= dict.fromkeys(
                    (name.rpartition("/")[2], self.files[library].soname), library
                )

    def find(self, name: str, path: str, dynamic: Dynamic) -> str:
        """The file that the loader takes for a name that a file needs; empty where it finds none."""
        folder, slash, base = name.rpartition("/")
        if slash:
            return self._first(self.path.expanded((folder,), path), base)
        # A library is taken once a process, by its name or soname; the first one that was loaded stays.
        if base in self.loaded:
            return self.loaded[base]
        library = self._search(base, path, dynamic, ())
        if not library and not dynamic.runpath:
            library = self._first(self.inherited.get(path, ()), base)
        return library or self._first(self._beside(path), base) or self.interpreters.get(base, "")

    # `above` is the RPATH of those that load the file.
    def _search(self, name: str, path: str, dynamic: Dynamic, above: Iterable[str]) -> str:
        expanded = self.path.expanded
        variable = expanded(self.path.variable, path)
        if self.path.is_musl:
            # musl is one file; these names are kept for programs that ask for them.
            if _MUSL_OWN.match(name):
                return next(iter(self.view.tree.glob("lib/ld-musl-*")), "")
            own = expanded((*dynamic.rpath, *dynamic.runpath), path)
            return self._first((*variable, *own, *above, *self.path.system), name)
        # RUNPATH switches the RPATH of its file off, and is for this file alone; RPATH is for all that it loads, and
        # goes before LD_LIBRARY_PATH.
        before = () if dynamic.runpath else (*expanded(dynamic.rpath, path), *above)
        cached = self.path.configured if _CACHED.fullmatch(name) else ()
        after = (*expanded(dynamic.runpath, path), *cached, *self.path.system)
        return self._first((*before, *variable, *after), name)

    def _first(self, folders: Iterable[str], name: str) -> str:
        return next(filter(None, (self.fitting(folder, name) for folder in folders)), "")

    def fitting(self, folder: str, name: str) -> str:
        """The library of a name in a directory, if it is one for this architecture that programs can run with."""
        key = (folder, name)
        if key not in self.known:
            if folder not in self.variants:
                self.variants[folder] = self.view.tree.glob(f"{folder}/{_HWCAPS}/*")
            directories = (folder, *self.variants[folder])
            reals = (self.view.tree.real(f"{directory}/{name}") or "" for directory in directories)
            usable = (path for path in reals if path in self.files and not _STUBS.search(path))
            self.known[key] = next(usable, "")
        return self.known[key]

    @cached_property
    def interpreters(self) -> dict[str, str]:
        """The loaders that programs ask for and that are there, by file name and by soname: each is in its process."""
        loaders: dict[str, str] = {}
        for interpreter in dict.fromkeys(dynamic.interpreter for dynamic in self.files.values()):
            folder, _, base = interpreter.rpartition("/")
            real = self._first(self.path.expanded((folder,), ""), base)
            for name in (base, self.files[real].soname) if real else ():
                loaders.setdefault(name, real)
        return loaders

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """The files that need a library, by its name."""
        users: dict[str, list[str]] = {}
        for path, dynamic in self.files.items():
            for name in dict.fromkeys(dynamic.needed):
                users.setdefault(name, []).append(path)
        return users

    @cached_property
    def inherited(self) -> dict[str, list[str]]:
        """The directories that a file gets by RPATH from files which need it, by its path; computed on first use."""
        directories: dict[str, list[str]] = {}
        # Files with the same RPATH, as those of one environment have it, are followed together.
        sources: dict[tuple[str, ...], list[str]] = {}
        for path, dynamic in self.files.items():
            if dynamic.rpath and not dynamic.runpath:
                folders = tuple(self.path.expanded(dynamic.rpath, path))
                sources.setdefault(folders, []).append(path)
        steps = 0
        for folders, paths in sources.items():
            todo, visited = [*paths], {*paths}
            while todo:
                user = todo.pop()
                needed = self.files[user].needed
                libraries = {self._search(name, user, self.files[user], folders) for name in needed}
                todo += sorted(libraries - visited - {""})
                visited |= libraries
                steps += 1
            for library in visited - {""}:
                directories.setdefault(library, []).extend(folders)
            if steps > _MOST_STEPS:
                what, limit = "libraries inherit too many search paths", f"{_MOST_STEPS} files"
                raise Budget(self.view.image.subject).excess(what, limit)
        return directories

    # Directories from which a Python package has loaded libraries before this one of its own.
    def _beside(self, path: str) -> list[str]:
        site = _SITE.fullmatch(path)
        if site is None:
            return []
        patterns = (f"{site[1]}/{folder}" for package, folder in _PRELOADED if package == site[2])
        return [folder for pattern in patterns for folder in self.view.tree.glob(pattern)]

    def first(self, is_wanted: Callable[[str], bool]) -> set[str]:
        """The libraries of such names in the first directory of the loader that has one."""
        for folder in self.path.folders:
            names = filter(is_wanted, self.view.tree.names(folder))
            libraries = {self.fitting(folder, name) for name in names} - {""}
            if libraries:
                return libraries
        return set()

    def majors(self, name: str) -> tuple[str, ...]:
        """Sonames of the same library under another number, wherever they lie."""
        stem, so, _ = name.partition(".so")
        return tuple(soname for soname in self.stems.get(stem, ()) if so and soname != name)

    @cached_property
    def stems(self) -> dict[str, list[str]]:
        """Sonames with a number, sorted, by the part before `.so`."""
        by_stem: dict[str, list[str]] = {}
        for name in sorted({dynamic.soname for dynamic in self.files.values()}):
            stem, so, _ = name.partition(".so.")
            if so:
                by_stem.setdefault(stem, []).append(name)
        return by_stem


def _preloaded(view: View) -> Iterator[tuple[str, str]]:
    # In the order of ld.so(8): the variable goes before the file.
    settings = (
        (view.started_env.get("LD_PRELOAD", ""), "Env LD_PRELOAD"),
        (view.tree.text(_PRELOAD), _PRELOAD),
    )
    for text, where in settings:
        names = view.elements(where, text, r"\s:")
        yield from ((name, where) for name in filter(None, names))


class LibraryPath(Value):
    """The directories of an image in the order of its loader, after those that a file names itself.

    `variable` is LD_LIBRARY_PATH, whose tokens are those of the program that looks; `configured` is what ldconfig
    lists, and only files that are called like libraries; `system` is always searched. `lib` is the value of `$LIB`.
    musl has no list of ldconfig.
    """

    machine: str
    lib: str
    variable: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    is_musl: bool = False

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them, but for those that lie relative to a program."""
        fixed = self.expanded([folder for folder in self.variable if "ORIGIN" not in folder], "")
        return (*fixed, *self.configured, *self.system)

    def expanded(self, folders: Collection[str], path: str) -> list[str]:
        """Directories that a file names, with the tokens of the loader replaced; relative ones never match."""
        if not folders:
            return []
        tokens = {
            "ORIGIN": "/" + posixpath.dirname(path),
            "LIB": self.lib,
            "PLATFORM": processor(self.machine).at_platform,
        }
        paths = (_TOKENS.sub(lambda match: tokens[match[1] or match[2]], raw) for raw in folders)
        return [posixpath.normpath(path).strip("/") for path in paths if path.startswith("/")]


def library_path(view: View) -> LibraryPath:
    """The directories of an image."""
    multiarch = processor(view.machine).multiarch
    has_multiarch = bool(
        view.tree.names(f"usr/lib/{multiarch}") or view.tree.names(f"lib/{multiarch}")
    )
    lib = f"lib/{multiarch}" if has_multiarch else "lib64"
    bare = LibraryPath(machine=view.machine, lib=lib)
    variable = tuple(_variable(view))
    paths = view.tree.glob("etc/ld-musl-*.path")
    if paths or view.tree.glob("lib/ld-musl-*"):
        folders = re.split(r"[:\n]", view.tree.text(paths[0])) if paths else []
        system = tuple(folder.strip("/ ") for folder in folders if folder.strip()) or _MUSL
        return bare.replace(variable=variable, system=system, is_musl=True)
    return bare.replace(
        variable=variable,
        configured=tuple(_configured(view)),
        system=(lib, f"usr/{lib}", "lib", "usr/lib"),
    )


def _variable(view: View) -> Iterator[str]:
    # An empty element is the directory in which the image's program starts.
    value = view.started_env.get("LD_LIBRARY_PATH", "")
    start = str(view.settings.get("WorkingDir") or "/")
    for folder in view.elements("LD_LIBRARY_PATH", value, ":;"):
        yield folder if folder.startswith(("/", "$")) else posixpath.join(start, folder)


# The directories of ld.so.conf and of the files that it includes, in their order. Each is visited once,
# and all are counted: a file may include itself on every line.
def _configured(view: View) -> Iterator[str]:
    budget = Budget(view.image.subject)
    visited: set[tuple[str, str]] = set()
    todo = [(_FILE, _LD_CONF)]
    while todo:
        kind, target = step = todo.pop()
        if step in visited:
            continue
        visited.add(step)
        if len(visited) + len(todo) > MOST_SEARCHED:
            raise budget.excess(
                "the loader has too many search paths",
                f"{MOST_SEARCHED} directories and files below ld.so.conf",
            )
        if kind == _FOLDER:
            yield target
        elif kind == _FILE:
            todo += reversed(list(dict.fromkeys(_lines(view, target))))
        else:
            todo += reversed([(_FILE, path) for path in view.tree.glob(target)])


def _lines(view: View, path: str) -> Iterator[tuple[str, str]]:
    for line in dict.fromkeys(view.tree.text(path).splitlines()):
        words = line.partition("#")[0].replace(",", " ").replace(":", " ").split()
        if words[:1] == ["include"]:
            base = posixpath.dirname(path)
            yield from ((_PATTERN, posixpath.join("/", base, pattern)) for pattern in words[1:])
        else:
            yield from ((_FOLDER, folder.strip("/")) for folder in words if folder.startswith("/"))
