"""A compiled matrix as one file, a bundle, which a program takes instead of the matrix that it came with.

It is one line of JSON, which says what it is and for which programs, and behind that line a zip archive: the index, and
the front page and fact files, with which users' files on top are compiled. Equal facts make equal bytes. Nothing in it
can run: an index is JSON, and fact files are read as data.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from toolmatrix import __version__
from toolmatrix.errors import MatrixError, Position
from toolmatrix.factbase import installed, load
from toolmatrix.factbase.index import FORMAT, Index, IndexDamaged, in_memory

SCHEMA = "toolmatrix.bundle/1"
NAME = f"matrix-{FORMAT.rpartition('/')[2]}.tmx"
"""The name of a bundle in a folder, which may have one for each format of an index."""
LONGEST_HEAD, LARGEST = 8 << 10, 1 << 28
"""Bytes of the line, and of the archive: many times what they have."""
_LARGEST_UNPACKED = 1 << 30
_MEMBER = re.compile(r"(?!.*\.\.)[\w+-][\w.+-]*(/[\w+-][\w.+-]*)*", re.ASCII)
_INDEX = "index/"
_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("schema", "digest", "date", "format", "programs", "sha256"), str),
    "facts": int,
    "size": int,
    "paths": list,
}


def make(index: Index, paths: Sequence[str]) -> bytes:
    """The bundle of a matrix: its index, and the front page and files on top that it was compiled from.

    Raises MatrixError.
    """
    files = {_INDEX + name: data for name, data in index.files().items()}
    fronts = []
    for number, path in enumerate(paths):
        # Files on top may have the names of those of the matrix.
        below = f"on-top/{number}/" if number else ""
        fronts.append(below + os.path.basename(path))
        for name in load.files(path):
            member = below + os.path.relpath(name, os.path.dirname(path) or os.curdir)
            if not _MEMBER.fullmatch(member):
                raise MatrixError(
                    "a bundle cannot have this file",
                    where=Position(name),
                    expected=f"a file below {os.path.dirname(path) or os.curdir}, in letters and digits",
                )
            with open(name, "rb") as file:
                files[member] = file.read()
    packed = zipped(files.items())
    head = {
        "schema": SCHEMA,
        **{key: index.header[key] for key in ("digest", "date", "facts")},
        "format": FORMAT,
        "programs": installed.programs(),
        "paths": fronts,
        "size": len(packed),
        "sha256": sha256(packed).hexdigest(),
    }
    return json.dumps(head, sort_keys=True).encode() + b"\n" + packed


def zipped(files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive of files by name; equal files make equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files:
            # A ZipInfo without a date has that of 1980.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def read_head(line: bytes, place: str) -> dict[str, Any]:
    """What a bundle declares in its first line. Raises MatrixError, also where it is for other programs."""
    where = Position(place)
    try:
        head = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        head = None
    schema = head.get("schema") if isinstance(head, dict) else None
    if not isinstance(head, dict) or schema != SCHEMA:
        raise MatrixError(
            "this is not a bundle of a matrix",
            where=where,
            expected=f"`{SCHEMA}`, as `toolmatrix export --bundle` writes it",
            found=f"`{schema}`"[:80] if schema else f"{line[:40]!r}",
            help="`toolmatrix update` renews the matrix; `toolmatrix upgrade` moves a lock",
        )
    wrong = [name for name, kind in _FIELDS.items() if type(head.get(name)) is not kind]
    paths = head["paths"] if not wrong else []
    if not paths or not all(isinstance(path, str) and _MEMBER.fullmatch(path) for path in paths):
        raise MatrixError(
            "the head of a bundle is damaged",
            where=where,
            expected=", ".join(_FIELDS),
            found="no valid " + ", ".join(wrong or ("paths",)),
        )
    try:
        is_read = installed.is_read(head)
    except ValueError:
        is_read = False
    if not is_read:
        raise MatrixError(
            "this bundle is for other versions of toolmatrix",
            where=where,
            expected=f"one for {__version__}, with the format {FORMAT}",
            found=f"toolmatrix {head['programs']}, {head['format']}",
            help="`pip install --upgrade toolmatrix` takes a newer program, if this bundle is for one",
        )
    return head


def unpack(data: bytes, place: str) -> dict[str, bytes]:
    """The files of a bundle, all of which were read and checked. Raises MatrixError for one that is not as declared."""
    line, _, packed = data.partition(b"\n")
    head = read_head(line + b"\n", place)

    def damaged(expected: str, found: str) -> MatrixError:
        return MatrixError(
            "this bundle is damaged", where=Position(place), expected=expected, found=found
        )

    # What is cheap to see comes first: an archive that was cut needs no digest.
    if len(packed) != head["size"]:
        raise damaged(f"{head['size']} bytes behind the first line", f"{len(packed)}")
    if (digest := sha256(packed).hexdigest()) != head["sha256"]:
        raise damaged(f"the SHA-256 {head['sha256']}", digest)
    files = _members(packed, damaged)
    try:
        index = _index(files, "")
        index.check()
    except IndexDamaged as error:
        raise damaged(f"an index of the format {FORMAT}", str(error.where)) from None
    # The first line alone decides whether there is anything new.
    declared = {key: head[key] for key in ("digest", "date", "facts")}
    inside = {key: index.header[key] for key in declared}  # type: ignore[literal-required]
    if inside != declared:
        raise damaged(str(declared), str(inside))
    return files


def index(data: bytes, place: str) -> Index:
    """The index in a bundle. Raises MatrixError."""
    return _index(unpack(data, place), place)


def _index(files: Mapping[str, bytes], place: str) -> Index:
    return Index(
        place, in_memory({name.removeprefix(_INDEX): data for name, data in files.items()})
    )


def _members(packed: bytes, damaged: Callable[[str, str], MatrixError]) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > _LARGEST_UNPACKED:
                raise damaged(f"at most {_LARGEST_UNPACKED >> 20} MiB unpacked", f"{size} bytes")
            for entry in entries:
                if not _MEMBER.fullmatch(entry.filename):
                    raise damaged("names of files below a folder", f"`{entry.filename[:80]!r}`")
            # All of it, as each file has its checksum there.
            return {entry.filename: archive.read(entry) for entry in entries}
    except (
        *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError),
        *(EOFError, OSError, ValueError),
    ) as error:
        raise damaged("a zip archive", f"{error}"[:80]) from None
