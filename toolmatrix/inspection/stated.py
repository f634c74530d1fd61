"""The versions that Python sources state, in files of their own and in zip archives; nothing is compiled or run."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping

from toolmatrix.images.streams import Readable, first
from toolmatrix.inspection.model import FilePattern
from toolmatrix.value import Value

# Bytes of a file that are searched for a version.
_MOST_TEXT = 64 << 10
# Files of a package in which its version is, the best first.
VERSION_FILES = ("version.py", "_version.py", "__version__.py", "_version_meson.py", "__init__.py")
# Bytes of a zip archive that is read; a larger one makes unknown what is imported from it.
_LARGEST_ARCHIVE = 16 << 20
# The record at the end without which zipimport sees no archive, and the bytes in which it looks for it, with a comment.
_END, _LONGEST_END = b"PK\x05\x06", (1 << 16) + 21
# Files of an archive that are looked at, and packages of which the version is read.
_MOST_FILES = 20_000
_MOST_PACKAGES = 200
# Parts of the name of a package that is looked at.
_MOST_PARTS = 3
# The files that make a directory a package, and those with its version, the best first.
_PACKAGE_FILES = (*VERSION_FILES, "__init__.pyc")
_IS_MODULE = re.compile(r"^[^/]*$|/__init__\.pyc?$")
# Metadata that an archive has for all of it, or for a package in it.
_RECORD = re.compile(r"[^/]+\.dist-info/METADATA|EGG-INFO/PKG-INFO")
_MOST_METADATA = 4 << 10
# Bytes of the lists of files of an archive, all together.
_MOST_RECORDS = 4 << 20
# Name and version stand in the first lines; a description may follow, of any length.
_FIELD = re.compile(r"^(Name|Version):\s*(\S+)\s*$", re.MULTILINE)
# Bytes of a first line that Linux looks at, execve(2).
_LONGEST_LINE = 256
_STATED = re.compile(
    rb"""^(?:__version__|_?version|full_version|VERSION)(?:[ \t]*:[^=\n]*)?[ \t]*=[ \t]*(?:\w+[ \t]*=[ \t]*)*"""
    rb"""["']([0-9][\w.+!-]{0,80})["']|^[ \t]*"version":[ \t]*"([0-9][\w.+!-]{0,80})"(?=\s*\})""",
    re.MULTILINE,
)


class Stated(Value):
    """The version that a source file states, and the digest of the file as records have it."""

    version: str
    digest: str = ""


def _read(size: int, stream: Readable) -> Stated | None:
    data = first(min(size, _MOST_TEXT), stream)
    if b"ersion" not in data and b"VERSION" not in data:
        return None
    stated = search(data)
    # Of a part of a file the digest says nothing.
    return stated.replace(digest="") if stated is not None and size > _MOST_TEXT else stated


def search(data: bytes) -> Stated | None:
    """The version that a source states; None where it states none."""
    match = _STATED.search(data)
    if match is None:
        return None
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    version = (match[1] or match[2]).decode("ascii", "replace")
    return Stated(version=version, digest=digest.decode())


_TEXTS = FilePattern(rf".*/(?:{'|'.join(map(re.escape, VERSION_FILES))})", _MOST_TEXT, _read)


def name_and_version(metadata: str) -> tuple[str, str]:
    """The name and the version in the metadata of a package; empty where it lacks them."""
    fields = dict(_FIELD.findall(metadata))
    return fields.get("Name", ""), fields.get("Version", "")


def roots(record: bytes) -> list[str]:
    """The packages and modules that the record of a package lists, each the uppermost one."""
    uppermost: dict[str, None] = {}
    names = re.findall(
        rb"^\"?((?:[A-Za-z_]\w*/){0,3})(?:__init__\.py|([A-Za-z_]\w*)(?:\.(?:cpython-|abi3)[^/,\n]*)?\.(?:py|so))\"?,",
        record,
        re.MULTILINE,
    )
    for folders, module in names:
        path = folders.decode().strip("/").replace("/", ".")
        if path and not module:
            uppermost[path] = None
        elif not path and module:
            uppermost[module.decode()] = None
    upper: dict[str, None] = {}
    for name in sorted(uppermost, key=lambda name: name.count(".")):
        parts = name.split(".")
        if not any(".".join(parts[:count]) in upper for count in range(1, len(parts))):
            upper[name] = None
    return [*upper]


class ModuleArchive(Value):
    """The packages and modules in a zip archive, which Python imports from it; each with the version that it states.

    `portions` are directories without code of their own, which packages may share. `records` are the path of the
    metadata of a package, its name, its version and its modules. `is_partial`: it is too large to be read, or damaged.
    `is_implied`: it has packages in directories without an entry of their own. `line` is the text behind `#!` of one
    that is a program. What is no archive at all has nothing that Python imports.
    """

    names: tuple[tuple[str, str], ...] = ()
    portions: tuple[str, ...] = ()
    records: tuple[tuple[str, ...], ...] = ()
    is_partial: bool = False
    is_implied: bool = False
    line: str = ""


def _read_archive(size: int, stream: Readable) -> ModuleArchive:
    data = first(size if size <= _LARGEST_ARCHIVE else _LONGEST_LINE, stream)
    head = data[:_LONGEST_LINE].partition(b"\n")[0]
    line = head[2:].decode("utf-8", "surrogateescape") if head.startswith(b"#!") else ""
    if size > _LARGEST_ARCHIVE:
        return ModuleArchive(is_partial=True, line=line)
    if _END not in data[-_LONGEST_END:]:
        return ModuleArchive(line=line)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _modules(archive).replace(line=line)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error):
        return ModuleArchive(is_partial=True, line=line)


def _modules(archive: zipfile.ZipFile) -> ModuleArchive:
    infos = {info.filename: info for info in archive.infolist()[:_MOST_FILES]}
    sources: dict[str, list[str]] = {}
    folders: set[str] = set()
    for path in infos:
        folder, _, file = path.rpartition("/")
        name = folder.replace("/", ".")
        if not file:
            folders.add(name)
        elif not folder and file.endswith((".py", ".pyc")):
            sources.setdefault(file.partition(".")[0], []).append(path)
        elif file in _PACKAGE_FILES and name.count(".") < _MOST_PARTS:
            sources.setdefault(name, []).append(path)
    shallow = sorted(sources, key=lambda name: name.count("."))
    names = {name: "" for name in shallow if any(map(_IS_MODULE.search, sources[name]))}
    for name in [*names][:_MOST_PACKAGES]:
        names[name] = _version_in(
            archive, [infos[path] for path in sorted(sources[name], key=_rank)]
        )
    implied = {name.partition(".")[0] for name in names} - names.keys() - folders
    return ModuleArchive(
        names=tuple(names.items()),
        portions=tuple(sorted(filter(str.isidentifier, folders - names.keys()))),
        records=tuple(_records(archive, infos)),
        is_implied=any(map(str.isidentifier, implied)),
    )


def _rank(path: str) -> int:
    file = path.rpartition("/")[2]
    return _PACKAGE_FILES.index(file) if file in _PACKAGE_FILES else 0


def _version_in(archive: zipfile.ZipFile, infos: Iterable[zipfile.ZipInfo]) -> str:
    for info in infos:
        if info.filename.endswith(".py") and (stated := search(_bytes(archive, info, _MOST_TEXT))):
            return stated.version
    return ""


def _records(
    archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo]
) -> Iterator[tuple[str, ...]]:
    left = _MOST_RECORDS
    for path in [path for path in infos if _RECORD.fullmatch(path)][:_MOST_PACKAGES]:
        folder = path.rpartition("/")[0]
        files, top = (
            _bytes(archive, infos[f"{folder}/{name}"], left) if f"{folder}/{name}" in infos else b""
            for name in ("RECORD", "top_level.txt")
        )
        left -= len(files)
        names = roots(files) or top[:_MOST_TEXT].decode("utf-8", "replace").split()
        metadata = _bytes(archive, infos[path], _MOST_METADATA).decode("utf-8", "replace")
        yield (path, *name_and_version(metadata), *names)


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    with archive.open(info) as file:
        return file.read(size)


_ARCHIVES = FilePattern(r".*\.(?:egg|pyz|whl|zip)", _LARGEST_ARCHIVE, _read_archive)
READS = (_TEXTS, _ARCHIVES)
