"""The installed packages of rpm, out of its database in each of its three forms and without rpm.

A database maps numbers to headers: SQLite (rpm 4.16 and later: Fedora, RHEL 9), rpm's own "ndb" (SUSE), and Berkeley
DB's hash (RHEL 8 and before). Headers are laid out as in
https://rpm-software-management.github.io/rpm/manual/hregions.html and format_header.html, ndb as in
lib/backend/ndb/rpmpkg.c of rpm, Berkeley DB as src/dbinc/db_page.h of it. PyPI has readers of .rpm files and bindings
of librpm, but not of databases of other machines.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from toolmatrix.images.streams import Readable, first
from toolmatrix.value import Value

MOST_PACKAGES = 100_000
LARGEST = 128 << 20
"""Bytes of a database; it is in memory as long as it is read, and that of a full desktop has some 50 MiB."""

_NAME, _VERSION, _RELEASE, _EPOCH = 1000, 1001, 1002, 1003
_STRING, _INT32 = 6, 4
# Tag, type, offset and count.
_ENTRY = struct.Struct(">IIII")
_LONGEST = 1024

_SQLITE = b"SQLite format 3\0"
_SQLITE_STEPS, _SQLITE_CALLS = 10_000, 10_000
"""Steps of SQLite's machine between two calls of us, and calls; reading a package takes about ten steps."""

_NDB, _NDB_SLOT, _NDB_BLOB = b"RpmP", b"Slot", b"BlbS"
_NDB_PAGE, _NDB_BLOCK, _NDB_FIRST = 4096, 16, 2
"""Bytes of a page of slots and of a block of data; the header takes the place of the first two slots."""

_BDB_MAGIC, _BDB_META = 0x061561, b"\x08"
# P_HASH_UNSORTED, P_HASH and P_OVERFLOW; below, H_KEYDATA and H_OFFPAGE.
_BDB_HASH, _BDB_OVERFLOW = (2, 13), 7
_BDB_INLINE, _BDB_ELSEWHERE = 1, 3
_BDB_HEADER = 26


class Database(Value):
    """Names with versions (`epoch:version-release`, the epoch where there is one), and why not all could be read."""

    packages: tuple[tuple[str, str], ...] = ()
    damaged: str = ""


class DamagedDatabase(Exception):
    """A database with content that rpm does not write."""


def read_stream(size: int, stream: Readable) -> Database:
    """The packages of a database in a stream; raises nothing."""
    if size > LARGEST:
        reason = f"{size >> 20} MiB, and at most {LARGEST >> 20} are read"
        return Database(damaged=f"the database is too large: {reason}")
    return read(first(size, stream))


def read(data: bytes) -> Database:
    """The packages in the bytes of a database; a damaged one gives those before the damage, and says so."""
    packages: dict[tuple[str, str], None] = {}
    try:
        for blob in _bounded(_blobs(data), len(data)):
            package = header(blob)
            if package is not None:
                packages[package] = None
    except (DamagedDatabase, struct.error) as error:
        return Database(packages=tuple(packages), damaged=f"the database is damaged: {error}")
    return Database(packages=tuple(packages))


def _bounded(blobs: Iterator[bytes], size: int) -> Iterator[bytes]:
    # A damaged database may repeat a header: all together cannot exceed its size.
    for count, blob in enumerate(blobs):
        size -= len(blob)
        if size < 0 or count > MOST_PACKAGES:
            raise DamagedDatabase("its headers are more than it can hold")
        yield blob


def header(blob: bytes) -> tuple[str, str] | None:
    """Name and version of a header; None where it has none. Raises DamagedDatabase."""
    if len(blob) < 8:
        return None
    count, size = struct.unpack_from(">II", blob)
    start = 8 + _ENTRY.size * count
    if start + size > len(blob):
        raise DamagedDatabase(f"a header of {count} entries and {size} bytes in {len(blob)}")
    fields: dict[int, str] = {}
    for position in range(8, start, _ENTRY.size):
        tag, kind, offset, _ = _ENTRY.unpack_from(blob, position)
        if tag in (_NAME, _VERSION, _RELEASE) and kind == _STRING:
            text = blob[start + offset : start + offset + _LONGEST].partition(b"\0")[0]
            fields[tag] = text.decode("utf-8", "replace")
        elif tag == _EPOCH and kind == _INT32:
            fields[tag] = str(struct.unpack_from(">I", blob, start + offset)[0])
        # rpm sorts the entries by their tags when it writes a header.
        elif tag > _EPOCH:
            break
    if _NAME not in fields or _VERSION not in fields:
        return None
    epoch = f"{fields[_EPOCH]}:" if _EPOCH in fields else ""
    release = f"-{fields[_RELEASE]}" if _RELEASE in fields else ""
    return fields[_NAME], f"{epoch}{fields[_VERSION]}{release}"


def _blobs(data: bytes) -> Iterator[bytes]:
    if data.startswith(_SQLITE):
        return _sqlite(data)
    if data.startswith(_NDB):
        return _ndb(data)
    for order in "<>":
        if data[12:16] == struct.pack(f"{order}I", _BDB_MAGIC):
            return _bdb(data, order)
    raise DamagedDatabase("it is not SQLite, ndb or Berkeley DB")


def _sqlite(data: bytes) -> Iterator[bytes]:
    try:
        import sqlite3
    except ImportError:
        raise DamagedDatabase("reading it needs Python's sqlite3, which is missing") from None
    import tempfile
    from contextlib import closing

    calls = iter(range(_SQLITE_CALLS))
    with tempfile.NamedTemporaryFile(prefix="toolmatrix-", suffix=".sqlite") as file:
        file.write(data)
        file.flush()
        try:
            # `immutable` keeps SQLite from looking for a journal beside the file, and from locking it.
            connection = sqlite3.connect(f"file:{file.name}?mode=ro&immutable=1", uri=True)
            with closing(connection):
                allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
                connection.text_factory = bytes
                # `Packages` of a hostile file may be a view that calls functions, or that never ends.
                connection.set_authorizer(lambda action, *_: 0 if action in allowed else 1)
                connection.set_progress_handler(lambda: next(calls, None) is None, _SQLITE_STEPS)
                for (blob,) in connection.execute("SELECT blob FROM Packages"):
                    if isinstance(blob, bytes):
                        yield blob
        except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
            raise DamagedDatabase(str(error)) from None


def _ndb(data: bytes) -> Iterator[bytes]:
    (pages,) = struct.unpack_from("<I", data, 12)
    end = min(pages * _NDB_PAGE, len(data))
    for slot in range(_NDB_FIRST * 16, end - 15, 16):
        magic, package, block, _ = struct.unpack_from("<4sIII", data, slot)
        if magic != _NDB_SLOT:
            raise DamagedDatabase(f"no slot at {slot}")
        if not package:
            continue
        start = block * _NDB_BLOCK
        magic, owner, _, size = struct.unpack_from("<4sIII", data, start)
        if magic != _NDB_BLOB or owner != package or start + 16 + size > len(data):
            raise DamagedDatabase(f"no header at {start}")
        yield data[start + 16 : start + 16 + size]


def _bdb(data: bytes, order: str) -> Iterator[bytes]:
    (size,) = struct.unpack_from(f"{order}I", data, 20)
    if data[25:26] != _BDB_META or not 512 <= size <= 1 << 16:
        raise DamagedDatabase("it is not a hash of Berkeley DB")
    # With pages in two chains a small file could have any amount of headers.
    used: set[int] = set()
    for start in range(size, len(data) - size + 1, size):
        page = data[start : start + size]
        if page[25] in _BDB_HASH:
            for item in _items(page, order):
                if item[0] == _BDB_INLINE:
                    yield item[1:]
                elif item[0] == _BDB_ELSEWHERE:
                    number, length = struct.unpack_from(f"{order}II", item, 4)
                    yield _chained(data, order, size, number, used)[:length]


def _items(page: bytes, order: str) -> Iterator[bytes]:
    # Items go from the end of a page down, each value behind its key.
    (count,) = struct.unpack_from(f"{order}H", page, 20)
    offsets = struct.unpack_from(f"{order}{count}H", page, _BDB_HEADER)
    for key, value in zip(offsets[::2], offsets[1::2], strict=False):
        if not _BDB_HEADER <= value < key <= len(page):
            raise DamagedDatabase(f"an item from {value} to {key} in a page of {len(page)} bytes")
        yield page[value:key]


def _chained(data: bytes, order: str, size: int, page_number: int, used: set[int]) -> bytes:
    pieces: list[bytes] = []
    while page_number:
        start = page_number * size
        page = data[start : start + size]
        if page_number in used or len(page) < size or page[25] != _BDB_OVERFLOW:
            raise DamagedDatabase(f"page {page_number} does not continue the chain")
        used.add(page_number)
        (page_number,) = struct.unpack_from(f"{order}I", page, 16)
        (length,) = struct.unpack_from(f"{order}H", page, 22)
        pieces.append(page[_BDB_HEADER : _BDB_HEADER + length])
    return b"".join(pieces)
