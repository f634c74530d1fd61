"""Records of package managers: dpkg (whole and split), apk, rpm and conda.

A record whose files are gone is no witness of what they were.
"""

from __future__ import annotations

import re

from toolmatrix.inventory import listings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.inventory.record import Record, View

# Managers, where their records are, and what fields are called in them: deb-control(5), and APKINDEX of apk-tools.
_STANZAS = (
    ("dpkg", r"var/lib/dpkg/(status|status\.d/[^/]+)", "Package", "Version"),
    ("apk", r"(usr/)?lib/apk/db/installed", "P", "V"),
)
_CONDA = re.compile(r"(?:.*/)?conda-meta/(.+)-([^-]+)-[^-]+\.json")
_RPM = ("var/lib/rpm", "usr/lib/sysimage/rpm", "usr/share/rpm")
# Databases of rpm, of which the first is in use where an upgrade has left another.
_DATABASES = ("rpmdb.sqlite", "Packages.db", "Packages")
# What SQLite calls the file of changes that are not yet in the database, https://www.sqlite.org/wal.html
_JOURNAL = "-wal"
GONE = "missing-files"
"""The feature that names packages of which no file is left."""
MANAGERS = ("dpkg", "apk", "rpm")
"""Managers of distributions."""

_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)*)")
# Packages of which the version is that of a component, and how many of its numbers are.
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
LISTED = (
    *(names for names, *_ in _COMPONENTS),
    r"hipcc",
    r"gcc(-\d+)?",
    r"clang(-\d+)?",
    r"python3(\.\d+(-minimal)?)?",
)
"""Packages whose lists of files are read: those of components, and of programs."""


def observe(view: View, record: Record) -> None:
    """Put in every package as a feature such as `dpkg:libc6`, and components that packages name."""
    for manager, path, name, version in _packages(view):
        gone = manager == "dpkg" and listings.are_gone(view, listings.of_package(view, name))
        put(record, manager, path, name, version, gone=gone)
    _unread(view, record)


def _unread(view: View, record: Record) -> None:
    """Say what of rpm's records could not be read."""
    for folder, path in _databases(view):
        if not path:
            if view.tree.names(folder):
                record.skip("rpm", f"/{folder} holds no database that is known")
            continue
        if view.databases[path].damaged:
            record.skip("rpm", f"/{path}: {view.databases[path].damaged}")
        journal = view.tree.entry(path + _JOURNAL)
        if journal is not None and journal.size:
            record.skip("rpm", f"/{path}{_JOURNAL} holds changes that are not in the database yet")


def _databases(view: View) -> list[tuple[str, str]]:
    """The directories of rpm with the database in each; an empty path where it has none."""
    folders = dict.fromkeys(filter(None, map(view.tree.real, _RPM)))
    return [
        (
            folder,
            next((p for name in _DATABASES if (p := f"{folder}/{name}") in view.databases), ""),
        )
        for folder in folders
    ]


def put(
    record: Record, manager: str, where: str, name: str, version: str, *, gone: bool = False
) -> None:
    """Put in one package, and the component whose version is that of it, unless its files are gone."""
    record.feature(f"{manager}:{name}", version, manager, where)
    if gone:
        record.feature(GONE, f"{name} {version}", manager, where)
        return
    for pattern, component, numbers in _COMPONENTS:
        if re.fullmatch(pattern, name):
            record.component(component, upstream(version, numbers), manager, where)


def upstream(version: str, numbers: int = 9) -> str:
    """The first numbers of a version, without epoch and revision."""
    found = _UPSTREAM.match(version)
    return ".".join(found[1].split(".")[:numbers]) if found else ""


def _packages(view: View) -> Iterator[tuple[str, str, str, str]]:
    """Manager, place, name and version of each installed package."""
    for manager, pattern, name, version in _STANZAS:
        for path, data in view.kept.items():
            if re.fullmatch(pattern, path):
                for fields in stanzas(data.decode("utf-8", "replace").splitlines()):
                    if name in fields and version in fields and _is_installed(fields):
                        yield manager, path, fields[name], fields[version]
    for _, path in _databases(view):
        for package, number in view.databases[path].packages if path else ():
            yield "rpm", path, package, number
    for path in view.kept:
        found = _CONDA.fullmatch(path)
        if found:
            yield "conda", path, found[1], found[2]


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
    """Whether a record is of a package that is there; one without a status is, as in status.d of distroless images."""
    return fields.get("Status", "installed").split()[-1:] == ["installed"]
