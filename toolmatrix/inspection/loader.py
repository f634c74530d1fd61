"""The file that the dynamic loader takes for each library that a file needs, by ld.so(8) of glibc, and of musl.

Directories of the system are those of glibc's Makeconfig and of musl's ldso/dynlink.c. The loader reads the cache that
ldconfig(8) wrote, and never ld.so.conf. Libraries that a process has loaded before count as found, which reading
cannot know; so a library in the image outside of the search path is a skip.
"""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType

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

_CACHE = "etc/ld.so.cache"
_PRELOAD = "etc/ld.so.preload"
READS = (
    FilePattern(re.escape(_CACHE), 1 << 20),
    FilePattern(r"etc/ld\.so\.preload|etc/ld-musl-[^/]+\.path", 64 << 10),
)
_MUSL = ("lib", "usr/local/lib", "usr/lib")
_TOKENS = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)|\{(ORIGIN|LIB|PLATFORM)\})")
# The cache, sysdeps/generic/dl-cache.h of glibc: its beginning, which older glibc puts behind a table of another form,
# the size of its head with the number of libraries, and for each the places of its name and path, and what it needs of
# the processor.
_CACHED_FROM, _CACHE_HEAD, _CACHE_ENTRY = b"glibc-ld.so.cache1.1", 48, struct.Struct("<4xII4xQ")
_KERNEL = ("linux-vdso.so", "linux-gate.so")
# Where CUDA keeps libraries of the driver to link with, not to run with.
_STUBS = re.compile(r"(^|/)stubs/")
# Libraries of the driver that applications load, by the names with and without a number, and directories of an image
# in which they belong: for a driver older than the toolkit, and on Jetson.
_DRIVER_NAMES = ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so")
_OF_IMAGE = re.compile(r"/(compat|tegra[^/]*)/")
# A directory in any other with variants for newer processors, "Hardware capabilities" of ld.so(8).
_HWCAPS = "glibc-hwcaps"
# Libraries that musl replaces by itself.
_MUSL_OWN = re.compile(r"lib(c|pthread|rt|m|dl|util|xnet)\.")
# Python packages that load libraries of other packages before their own, and where those are beside them.
_PRELOADED = (("torch", "nvidia/*/lib"),)
_SITE = re.compile(r"(.*/(?:site|dist)-packages)/([^/]+)/.*")
_MOST_USERS = 8
# Bytes of a name or a path in the cache; real ones have a hundred.
_LONGEST = 256
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
        elsewhere = "" if library or name in search.stopped else search.anywhere.get(name, "")
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
        cached = search.path.cache.get(name, ())[:1]
        for path in (*(f"{folder}/{name}" for folder in variable), *cached):
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
    for name, path in chain.from_iterable(search.offered()):
        if path in search.files and ".so" in name:
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
        # By a library those that the loader takes in its place on newer processors.
        self.alternatives: dict[str, list[str]] = {}
        # Files at which the loader stops, as they are no libraries, by the names under which it looks for them.
        self.stopped: dict[str, str] = {}
        self.preloaded = tuple(_preloaded(view))
        self.loaded: dict[str, str] = {}
        for name, _ in self.preloaded:
            library = self.find(name, "", Dynamic())
            if library:
                self.loaded |= dict.fromkeys(
                    (name.rpartition("/")[2], self.files[library].soname), library
                )

    def find(self, name: str, path: str, dynamic: Dynamic) -> str:
        """The library that the loader takes for a name that a file needs; empty where it finds none or stops."""
        library = self._searched(name, path, dynamic)
        if library and library not in self.files:
            self.stopped[name] = library
        return library if library in self.files else ""

    def _searched(self, name: str, path: str, dynamic: Dynamic) -> str:
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
                loaders = self.view.tree.glob("lib/ld-musl-*")
                return next(filter(None, map(self.view.tree.real, loaders)), "")
            own = expanded((*dynamic.rpath, *dynamic.runpath), path)
            return self._first((*variable, *own, *above, *self.path.system), name)
        # RUNPATH switches the RPATH of its file off, and is for this file alone; RPATH is for all that it loads, and
        # goes before LD_LIBRARY_PATH.
        before = () if dynamic.runpath else (*expanded(dynamic.rpath, path), *above)
        first = self._first((*before, *variable, *expanded(dynamic.runpath, path)), name)
        cached = first or self._cached(name)
        if not dynamic.is_apart:
            return cached or self._first(self.path.system, name)
        return cached if first or posixpath.dirname(cached) not in self.path.system else ""

    # The file of the cache; where that is gone, no other one of the name is looked for in the cache.
    def _cached(self, name: str) -> str:
        for path in self.path.cache.get(name, ()):
            library = self.fitting(*posixpath.split(path))
            if library or self.view.tree.entry(path) is None:
                return library
        return ""

    def _first(self, folders: Iterable[str], name: str) -> str:
        return next(filter(None, (self.fitting(folder, name) for folder in folders)), "")

    def fitting(self, folder: str, name: str) -> str:
        """The file of a name in a directory with which the search ends; empty where it goes on.

        The loader skips libraries for other processors. At any other file, such as an empty one, it stops.
        """
        key = (folder, name)
        if key not in self.known:
            if folder not in self.variants:
                self.variants[folder] = self.view.tree.glob(f"{folder}/{_HWCAPS}/*")
            directories = (folder, *self.variants[folder])
            reals = (self.view.tree.real(f"{directory}/{name}") or "" for directory in directories)
            usable = [path for path in reals if self._ends(path) and not _STUBS.search(path)]
            self.known[key] = usable[0] if usable else ""
            for path in usable[1:]:
                self.alternatives.setdefault(usable[0], []).append(path)
        return self.known[key]

    def _ends(self, path: str) -> bool:
        is_other = path in self.view.elves and path not in self.files
        return bool(path) and self.view.tree.entry(path) is not None and not is_other

    @cached_property
    def interpreters(self) -> dict[str, str]:
        """The loaders that programs ask for and that are there, by file name and by soname: each is in its process."""
        loaders: dict[str, str] = {}
        for interpreter in dict.fromkeys(dynamic.interpreter for dynamic in self.files.values()):
            folder, _, base = interpreter.rpartition("/")
            real = self._first(self.path.expanded((folder,), ""), base)
            for name in (base, self.files[real].soname) if real in self.files else ():
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
                libraries &= self.files.keys()
                todo += sorted(libraries - visited)
                visited |= libraries
                steps += 1
            for library in visited:
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

    def offered(self) -> Iterator[Iterator[tuple[str, str]]]:
        """The names and files in each place of the loader, in its order; a file is empty where it is no library."""
        for folder in self.path.fixed:
            yield self._below(folder)
        yield ((name, self._cached(name)) for name in self.path.cache)
        for folder in self.path.system:
            yield self._below(folder)

    def _below(self, folder: str) -> Iterator[tuple[str, str]]:
        return ((name, self.fitting(folder, name)) for name in self.view.tree.names(folder))

    def first(self, is_wanted: Callable[[str], bool]) -> set[str]:
        """The libraries of such names in the first place of the loader that has one."""
        for place in self.offered():
            libraries = {path for name, path in place if is_wanted(name)} & self.files.keys()
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

    `variable` is LD_LIBRARY_PATH, whose tokens are those of the program that looks; `cache` are the files that ldconfig
    found, by name, for any processor; `system` is always searched. `lib` is the value of `$LIB`.
    musl has no cache.
    """

    machine: str
    lib: str
    variable: tuple[str, ...] = ()
    cache: Mapping[str, Sequence[str]] = MappingProxyType({})
    system: tuple[str, ...] = ()
    is_musl: bool = False

    @property
    def fixed(self) -> list[str]:
        """Those of the variable that are not relative to a program."""
        return self.expanded([folder for folder in self.variable if "ORIGIN" not in folder], "")

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them, but for those that lie relative to a program."""
        cached = (posixpath.dirname(path) for path in chain.from_iterable(self.cache.values()))
        return (*self.fixed, *dict.fromkeys(cached), *self.system)

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
        cache=_of_ldconfig(view),
        system=(lib, f"usr/{lib}", "lib", "usr/lib"),
    )


def _variable(view: View) -> Iterator[str]:
    # An empty element is the directory in which the image's program starts.
    value = view.started_env.get("LD_LIBRARY_PATH", "")
    start = str(view.settings.get("WorkingDir") or "/")
    for folder in view.elements("LD_LIBRARY_PATH", value, ":;"):
        yield folder if folder.startswith(("/", "$")) else posixpath.join(start, folder)


def _of_ldconfig(view: View) -> dict[str, list[str]]:
    cache = _cache(view.tree.content(_CACHE) or b"")
    folders = {posixpath.dirname(path) for path in chain.from_iterable(cache.values())}
    if len(folders) > MOST_SEARCHED:
        what, limit = "the loader has too many search paths", f"{MOST_SEARCHED} directories"
        raise Budget(view.image.subject).excess(what, f"{limit} in ld.so.cache")
    return cache


# The plain entries of the cache; the variants for newer processors are beside the files.
def _cache(data: bytes) -> dict[str, list[str]]:
    data = data[max(0, data.find(_CACHED_FROM)) :]
    if not data.startswith(_CACHED_FROM) or len(data) < _CACHE_HEAD:
        return {}
    (count,) = struct.unpack_from("<I", data, len(_CACHED_FROM))
    size = min(count, (len(data) - _CACHE_HEAD) // _CACHE_ENTRY.size) * _CACHE_ENTRY.size
    paths: dict[str, list[str]] = {}
    for key, value, variant in _CACHE_ENTRY.iter_unpack(data[_CACHE_HEAD:][:size]):
        if not variant:
            paths.setdefault(_text(data, key), []).append(_text(data, value).strip("/"))
    return paths


def _text(data: bytes, place: int) -> str:
    return data[place : place + _LONGEST].partition(b"\0")[0].decode("utf-8", "surrogateescape")
