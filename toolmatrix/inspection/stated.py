"""The versions that Python sources state, in files of their own and in zip archives; nothing is compiled or run."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
import zlib

from toolmatrix.images.streams import Readable, first
from toolmatrix.inspection.model import FilePattern
from toolmatrix.value import Value

# Bytes of a file that are searched for a version.
_MOST_TEXT = 64 << 10
# Files of a package in which its version is, the best first.
VERSION_FILES = ("version.py", "_version.py", "__version__.py", "_version_meson.py", "__init__.py")
# Bytes of a zip archive that is read; a larger one makes unknown what is imported from it.
_LARGEST_ARCHIVE = 8 << 20
# Files of an archive that are looked at, and packages of which the version is read.
_MOST_FILES = 20_000
_MOST_PACKAGES = 200
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


class ModuleArchive(Value):
    """The packages and modules in a zip archive, which Python imports from it; each with the version that it states.

    `is_partial`: it is too large to be read, or damaged. `line` is the text behind `#!` of one that is a program.
    """

    names: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False
    line: str = ""


def _read_archive(size: int, stream: Readable) -> ModuleArchive:
    data = first(size if size <= _LARGEST_ARCHIVE else _LONGEST_LINE, stream)
    head = data[:_LONGEST_LINE].partition(b"\n")[0]
    line = head[2:].decode("utf-8", "surrogateescape") if head.startswith(b"#!") else ""
    if size > _LARGEST_ARCHIVE:
        return ModuleArchive(is_partial=True, line=line)
    names: dict[str, str] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[:_MOST_FILES]:
                module, _, file = info.filename.partition("/")
                if not file and module.endswith((".py", ".pyc")):
                    source = module.endswith(".py") and len(names) < _MOST_PACKAGES
                    version = _version_in(archive, info) if source else ""
                    names.setdefault(module.partition(".")[0], version)
                elif file in (*VERSION_FILES, "__init__.pyc"):
                    unread = not names.get(module) and len(names) < _MOST_PACKAGES
                    names[module] = _version_in(archive, info) if unread else names.get(module, "")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error):
        return ModuleArchive(is_partial=True, line=line)
    return ModuleArchive(names=tuple(names.items()), line=line)


def _version_in(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    with archive.open(info) as file:
        stated = search(file.read(_MOST_TEXT))
    return stated.version if stated is not None else ""


_ARCHIVES = FilePattern(r".*\.(?:egg|pyz|whl|zip)", _LARGEST_ARCHIVE, _read_archive)
READS = (_TEXTS, _ARCHIVES)
