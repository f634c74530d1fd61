"""Records of package managers: dpkg (whole and split), apk, rpm and conda, and the files that they list.

A record whose files are gone is no witness of them. Lists are those of dpkg(1), /var/lib/dpkg/info, and
`RECORD` of PyPA's "Recording installed projects".
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from toolmatrix.inspection import rpm
from toolmatrix.inspection.model import GONE, FilePattern
from toolmatrix.inspection.record import Record, View

# Managers, where their records are, and what fields are called in them: deb-control(5), and APKINDEX of apk-tools.
# Distroless images have no `status`, but a file in status.d for each package.
_STANZAS = (
    (
        "dpkg",
        FilePattern(r"var/lib/dpkg/(status|status\.d/[^/]+)", 32 << 20),
        "Package",
        "Version",
    ),
    ("apk", FilePattern(r"(usr/)?lib/apk/db/installed", 32 << 20), "P", "V"),
)
# The name is enough, and such a file has megabytes of paths.
_CONDA = FilePattern(r"(?:.*/)?conda-meta/([^/]+)-([^-/]+)-[^-/]+\.json", 0)
_RPM = ("var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm")
# Databases of rpm; the first is in use where an upgrade has left another.
_DATABASES = ("rpmdb.sqlite", "Packages.db", "Packages")
_RPM_FILES = FilePattern(
    rf"({'|'.join(_RPM)})/({'|'.join(map(re.escape, _DATABASES))})", rpm.LARGEST, rpm.read_stream
)
# What SQLite calls the file of changes that are not yet in the database, https://www.sqlite.org/wal.html
_JOURNAL = "-wal"
MANAGERS = ("dpkg", "apk", "rpm")
"""Managers of distributions."""

_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")
# Packages that have the version of a component, and how many of its numbers are shared.
_COMPONENTS = (
    (r"cuda-toolkit-\d+-\d+|cuda-toolkit|cuda", "cuda", 3),
    (r"cuda-(cudart|nvcc|compiler|libraries|runtime)-\d+-\d+|cuda-version|cudatoolkit", "cuda", 2),
    (r"libcudnn\d+(-cuda-\d+)?|cudnn\d*(-cuda-\d+)?", "cudnn", 3),
    (r"libnccl2?|nccl", "nccl", 3),
    (r"libnvinfer\d+", "tensorrt", 3),
    (r"rocm-core|rocm-libs|rocm-dev", "rocm", 3),
    (r"libc6|glibc", "glibc", 2),
    (r"bazel|bazel-bootstrap", "bazel", 3),
    (r"binutils", "binutils", 3),
    (r"cmake", "cmake", 3),
    (r"ninja|ninja-build", "ninja", 3),
)
# Lists are read of packages that name components, and of programs; those of all would fill the memory.
_PROGRAMS = (r"hipcc", r"gcc(-\d+)?", r"clang(-\d+)?", r"python3(\.\d+(-minimal)?)?")
_WITH_FILE_LIST = "|".join((*(names for names, *_ in _COMPONENTS), *_PROGRAMS))
_may_have_list = re.compile(_WITH_FILE_LIST).fullmatch
_LISTS = "var/lib/dpkg/info"
RECORD = FilePattern(r".*\.dist-info/RECORD", 4 << 20)
"""The list of files of a Python package, which its metadata lies beside."""
READS = (
    *(declared for _, declared, *_ in _STANZAS),
    *(_CONDA, _RPM_FILES, FilePattern(rf"{_LISTS}/({_WITH_FILE_LIST})(:[^/]+)?\.list", 256 << 10)),
)
_LIBRARY = re.compile(r".*\.so(\.[\d.]+)?")
# The record itself, what images are made without (documentation, licences), and what is regenerated.
_SAYING_NOTHING = re.compile(r".*\.(dist|egg)-info/.*|usr/share/.*|.*\.pyc")
# Files of a record that are looked for; it is no witness where none of the first ones is there.
_MOST_FILES = 2000


def observe(view: View, record: Record) -> None:
    """Record every package as a feature such as `dpkg:libc6`, and components that packages name."""
    for manager, path, name, version in _packages(view):
        # Images are made smaller by removing files behind the back of the manager, whose record stays.
        lists = _dpkg_lists(view, name) if manager == "dpkg" else ()
        gone = are_gone(view, [file for listing in lists for file in _list_files(view, listing)])
        record_package(record, manager, path, name, version, gone=gone)
    _unread(view, record)


def _unread(view: View, record: Record) -> None:
    for folder, path in _databases(view):
        if not path:
            if view.tree.names(folder):
                record.skip("rpm", f"/{folder} has no known database")
            continue
        if view.databases[path].damaged:
            record.skip("rpm", f"/{path}: {view.databases[path].damaged}")
        journal = view.tree.entry(path + _JOURNAL)
        if journal is not None and journal.size:
            record.skip("rpm", f"/{path}{_JOURNAL} has changes that are not in the database yet")


def _databases(view: View) -> Iterator[tuple[str, str]]:
    # Distributions link some of these directories to another, whose packages would count twice.
    for folder in dict.fromkeys(filter(None, map(view.tree.real, _RPM))):
        paths = (f"{folder}/{name}" for name in _DATABASES)
        yield folder, next((path for path in paths if path in view.databases), "")


def record_package(
    record: Record, manager: str, where: str, name: str, version: str, *, gone: bool = False
) -> None:
    """Record one package, and the component whose version is that of it, unless its files are gone."""
    record.feature(f"{manager}:{name}", version, manager, where)
    if gone:
        record.feature(GONE, f"{name} {version}", manager, where)
        return
    for pattern, component, numbers in _COMPONENTS:
        if re.fullmatch(pattern, name):
            record.component(component, upstream(version, numbers), manager, where)


def upstream(version: str, numbers: int = 9) -> str:
    """The first numbers of a version, without epoch and revision."""
    match = _UPSTREAM.match(version)
    return ".".join(match[1].split(".")[:numbers]) if match else ""


def _packages(view: View) -> Iterator[tuple[str, str, str, str]]:
    for manager, declared, name, version in _STANZAS:
        for match, text in view.files(declared):
            for fields in stanzas(text.splitlines()):
                if name in fields and version in fields and _is_installed(fields):
                    yield manager, match[0], fields[name], fields[version]
    for _, path in _databases(view):
        for package, release in view.databases[path].packages if path else ():
            yield "rpm", path, package, release
    for match, _ in view.files(_CONDA):
        yield "conda", match[0], match[1], match[2]


def stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Blocks of `name: value` lines, parted by blank lines; lines that go on are left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            if fields:
                yield fields
            fields = {}
        elif not line[0].isspace():
            name, colon, value = line.partition(":")
            if colon:
                fields[name] = value.strip()
    if fields:
        yield fields


def _is_installed(fields: dict[str, str]) -> bool:
    # A package that was removed keeps its record as long as its configuration is there (`deinstall ok config-files`).
    # Records of distroless images have no status.
    return fields.get("Status", "installed").split()[-1:] == ["installed"]


def owners(view: View, path: str, package: str) -> tuple[str, ...]:
    """The managers that list a file under a package, unless it was replaced since."""
    entry = view.tree.entry(path)
    lists = [
        listing for listing in _dpkg_lists(view, package) if path in _list_files(view, listing)
    ]
    # A file that a later layer has replaced is not the package's, though its list still names it.
    fresh = (entry is not None and view.layers.get(listing, "") == entry.layer for listing in lists)
    return ("dpkg",) if any(fresh) else ()


def dist_files(view: View, metadata: str) -> list[str]:
    """The files that the record beside the metadata of a Python package lists, none where there is no record."""
    folder = posixpath.dirname(metadata)
    site = posixpath.dirname(folder)
    lines = view.contents.get(f"{folder}/RECORD", b"").splitlines()[:_MOST_FILES]
    names = (line.decode("utf-8", "replace").rsplit(",", 2)[0].strip('"') for line in lines)
    return [
        posixpath.normpath(posixpath.join("/", site, name)).strip("/") for name in names if name
    ]


def are_gone(view: View, files: Iterable[str]) -> bool:
    """Check whether nothing is left of what a record lists: no library where it lists some, else no file at all."""
    recorded = [path for path in files if not _SAYING_NOTHING.fullmatch(path)]
    telling = [path for path in recorded if _LIBRARY.fullmatch(path)] or recorded
    return bool(telling) and all(view.tree.entry(path) is None for path in telling)


def _dpkg_lists(view: View, package: str) -> list[str]:
    # Of all others no list is kept.
    if not _may_have_list(package):
        return []
    # A package that may be installed for several architectures has a list for each.
    plain = f"{_LISTS}/{package}.list"
    return [plain] if plain in view.contents else view.tree.glob(f"{_LISTS}/{package}:*.list")


def _list_files(view: View, path: str) -> list[str]:
    lines = view.tree.text(path).splitlines()[:_MOST_FILES]
    names = [line.strip("/") for line in lines]
    # dpkg lists the directories above its files too, which stay where other packages use them.
    above = {posixpath.dirname(name) for name in names}
    return [name for name in names if name not in above and name != "."]
