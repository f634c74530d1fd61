"""Streams of blobs, recognized by their first bytes, unpacked, counted and hashed; and entries of tar archives in them.

Plain headers of POSIX (pax(1), "ustar Interchange Format") and GNU tar are read here, as layers have tens of thousands;
all others, such as of long names and sparse files, and damaged ones are left to `tarfile`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolmatrix.errors import SubjectError
from toolmatrix.images.limits import Budget

if TYPE_CHECKING:
    from typing_extensions import Self

BLOCK = 1 << 20
_LONGEST_HEAD = 512
# Bytes to read at once where fewer are requested.
_AHEAD = 64 << 10
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BZIP2 = b"BZh"
_XZ = b"\xfd7zXZ\0"
# Marks of what a blob may be by mistake, so that the error can name it.
_OTHER = {
    _BZIP2: "bzip2",
    _XZ: "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
    b"\x7fELF": "ELF",
}
ZSTD_WINDOW = 128 << 20
"""Bytes of the largest window of zstd that is honoured; that of `zstd --ultra -22`."""
# Bytes that unpacking xz may take; `xz -9` needs 65 MiB.
_XZ_MEMORY = 128 << 20


class Readable(Protocol):
    """A stream of bytes in order."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


class Closable(Readable, Protocol):
    """A stream that keeps a resource until it is closed."""

    def close(self) -> None:
        """Release it."""


def exhaust(stream: Readable) -> None:
    """Read a stream to its end, for its count and digest."""
    while stream.read(BLOCK):
        pass


def first(size: int, stream: Readable) -> bytes:
    """The first `size` bytes of a stream, fewer at its end."""
    pieces: list[bytes] = []
    while size > 0 and (data := stream.read(size)):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


class Counted:
    """A stream that counts the bytes read, and allows to peek."""

    __slots__ = ("_head", "_stream", "count")

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._head = b""
        self.count = 0

    def peek(self, size: int = _LONGEST_HEAD) -> bytes:
        """The next bytes, which will be read again; fewer at the end."""
        while len(self._head) < size and (more := self._stream.read(size - len(self._head))):
            self._head += more
        return self._head

    def read(self, size: int = BLOCK, /) -> bytes:
        """At most `size` bytes, none at the end."""
        size = BLOCK if size < 0 else size
        if self._head:
            # Fewer bytes than requested are allowed: joining the head with the rest would copy it.
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._stream.read(size)
        self.count += len(data)
        return data

    def readinto(self, buffer: bytearray | memoryview, /) -> int:
        """Fill a buffer by one read; the count of bytes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    @property
    def section(self) -> Section | None:
        """The rest of it, if that lies in a file as it is."""
        file = self._stream
        return file.part(file.position - len(self._head)) if isinstance(file, Section) else None

    @property
    def digest(self) -> str:
        """Empty: the bytes are not hashed."""
        return ""


class Hashed(Counted):
    """A stream that also hashes the bytes read."""

    __slots__ = ("_sha",)

    def __init__(self, stream: Readable) -> None:
        super().__init__(stream)
        self._sha = hashlib.sha256()

    def read(self, size: int = BLOCK, /) -> bytes:
        """At most `size` bytes, none at the end."""
        data = super().read(size)
        self._sha.update(data)
        return data

    @property
    def digest(self) -> str:
        """The digest of what was read so far, as OCI descriptors write it."""
        return f"sha256:{self._sha.hexdigest()}"


class Forward:
    """A stream as a file that is read from its start to its end; skipped bytes are read all the same."""

    __slots__ = ("_ahead", "_buffer", "_consumed", "_position", "_stream")

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        # Most of a file is skipped.
        self._ahead = _AHEAD if isinstance(stream, Section) else BLOCK
        self._buffer = b""
        self._consumed = 0
        self._position = 0

    def tell(self) -> int:
        """The count of bytes so far."""
        return self._position

    def seek(self, position: int, /) -> None:
        """Go on to a position or the end; raises OSError for one that lies behind."""
        if position < self._position:
            raise OSError("a stream does not go back")
        if isinstance(self._stream, Section):
            ahead = len(self._buffer) - self._consumed
            if position > self._position + ahead:
                self._position += ahead + self._stream.skip(position - self._position - ahead)
                self._buffer = b""
        while self._position < position and self.read(min(position - self._position, BLOCK)):
            pass

    def read(self, size: int, /) -> bytes:
        """Exactly `size` bytes, fewer at the end."""
        data = self.some(size)
        while len(data) < size and (more := self.some(size - len(data))):
            data += more
        return data

    def some(self, size: int, /) -> bytes:
        """At most `size` bytes, without joining pieces; none at the end."""
        # Headers have 512 bytes: read by themselves each would cost a call of every stream below.
        if self._consumed >= len(self._buffer) and size > 0:
            self._buffer, self._consumed = self._stream.read(max(size, self._ahead)), 0
        data = self._buffer[self._consumed : self._consumed + size]
        self._consumed += len(data)
        self._position += len(data)
        return data

    def next_section(self, size: int) -> Section | None:
        """The next `size` bytes, if they lie in a file as they are."""
        source = self._stream
        if not isinstance(source, Section):
            return None
        return source.part(source.position - len(self._buffer) + self._consumed, size)

    def unread(self, data: bytes) -> None:
        """Take bytes back that were just read."""
        self._buffer, self._consumed = data + self._buffer[self._consumed :], 0
        self._position -= len(data)


class Section:
    """A part of a file from a position on, so that several parts can be read in parallel.

    It is a seekable file itself; `position` counts from the start of the whole file, and a part may begin before it.
    """

    __slots__ = ("_end", "_start", "fd", "position")

    def __init__(self, fd: int, position: int, size: int) -> None:
        """`size` bytes of the open file of a descriptor."""
        self.fd = fd
        self.position = self._start = position
        self._end = position + size

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        if self.position >= self._end:
            return b""
        data = os.pread(self.fd, min(size, self._end - self.position), self.position)
        self.position += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Go to an offset from its start."""
        self.position = self._start + offset

    def skip(self, size: int) -> int:
        """Skip at most `size` bytes, and return how many."""
        size = min(size, self._end - self.position)
        self.position += size
        return size

    @property
    def left(self) -> int:
        """The count of bytes from its position on."""
        return self._end - self.position

    def part(self, position: int, size: int = sys.maxsize) -> Section:
        """A part of the file from a position on, of `size` bytes or up to the end of this one."""
        return Section(self.fd, position, min(size, max(0, self._end - position)))


def section(stream: Readable) -> Section | None:
    """The rest of a stream that is a regular file or lies in one as it is, None for any other."""
    if hasattr(stream, "section"):
        rest: Section | None = stream.section
        return rest
    try:
        fd, position = stream.fileno(), stream.tell()  # type: ignore[attr-defined]
        status = os.fstat(fd)
    except (AttributeError, OSError, ValueError):
        return None
    size = status.st_size - position
    return Section(fd, position, size) if stat.S_ISREG(status.st_mode) else None


def other_size(promised: int, actual: str, budget: Budget) -> SubjectError:
    """The refusal of content without the size of its descriptor."""
    return budget.refusal(
        "content does not have the size of its descriptor", f"{promised} bytes", actual
    )


class Sized:
    """A stream of known length; raises SubjectError for another one."""

    __slots__ = ("_budget", "_count", "_size", "_stream")

    def __init__(self, stream: Readable, size: int, budget: Budget) -> None:
        self._stream = stream
        self._size = size
        self._budget = budget
        self._count = 0

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        # One byte more than promised, to notice a longer stream.
        data = self._stream.read(min(size, self._size - self._count + 1))
        self._count += len(data)
        if self._count > self._size or (not data and self._count < self._size):
            actual = "more than that" if data else f"{self._count} bytes"
            raise other_size(self._size, actual, self._budget)
        return data


class Unpacked:
    """A blob without its compression; `digest` is that of the unpacked bytes, OCI's diff id, if the blob's is taken.

    A whole `archive` may be packed in more ways than a layer: `docker load` takes bzip2 and xz as well.
    """

    __slots__ = ("_budget", "_inside", "_packed", "is_plain")

    def __init__(self, packed: Counted, budget: Budget, *, archive: bool = False) -> None:
        self._packed = packed
        self._budget = budget
        opened = _opened(packed, budget, archive=archive)
        self.is_plain = opened is None
        self._inside = packed if opened is None else type(packed)(opened)

    def peek(self, size: int = _LONGEST_HEAD) -> bytes:
        """The next bytes, which will be read again."""
        return self._inside.peek(size)

    def read(self, size: int = BLOCK, /) -> bytes:
        """At most `size` bytes; raises SubjectError for a decompression bomb."""
        data = self._inside.read(size)
        self._budget.unpack(len(data), self._inside.count, self._packed.count)
        return data

    @property
    def section(self) -> Section | None:
        """The rest of it, if that lies in a file as it is."""
        return self._inside.section

    @property
    def digest(self) -> str:
        """The digest of the unpacked bytes so far."""
        return self._inside.digest


# Contents of packed streams, one after another. A decompressor of bz2 or lzma makes no more than requested; their file
# objects would do, but for the bound on the memory of xz, which they do not take.
class _Stepwise:
    def __init__(self, packed: Counted, make: Callable[[], Any]) -> None:
        self._packed = packed
        self._make = make
        self._inside = make()
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        while True:
            if self._inside.eof:
                # xz pads streams with zeros.
                self._rest = (self._inside.unused_data or self._rest).lstrip(b"\0")
                while not self._rest and (more := self._packed.read(_AHEAD)):
                    self._rest = more.lstrip(b"\0")
                if not self._rest:
                    return b""
                self._inside = self._make()
            elif self._inside.needs_input and not self._rest:
                self._rest = self._packed.read(_AHEAD)
                if not self._rest:
                    raise EOFError("the packed data ends too early")
            data: bytes = self._inside.decompress(self._rest, size)
            self._rest = b""
            if data:
                return data


def _opened(packed: Counted, budget: Budget, *, archive: bool) -> Any:
    head = packed.peek()
    if head.startswith(_GZIP):
        # It continues over members: eStargz and pigz write many.
        return _gzip()(fileobj=packed, mode="rb")
    if head.startswith(_ZSTD):
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        # zstd:chunked, which Podman writes, is one frame after another.
        return decompressor.stream_reader(packed, read_across_frames=True)  # type: ignore[arg-type]
    if archive and head.startswith(_BZIP2):
        import bz2

        return _Stepwise(packed, bz2.BZ2Decompressor)
    if archive and head.startswith(_XZ):
        import lzma

        return _Stepwise(packed, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))
    for mark, name in _OTHER.items():
        if head.startswith(mark):
            raise budget.refusal(
                "a blob has an unsupported compression",
                "tar, plain or packed with gzip or zstd",
                name,
            )
    return None


def _gzip() -> Any:
    # There are wheels of isal for x86 and ARM alone.
    try:
        from isal.igzip import IGzipFile
    except ImportError:
        from gzip import GzipFile

        return GzipFile
    return IGzipFile


def _errors_of_isal() -> tuple[type[Exception], ...]:
    try:
        from isal.igzip_lib import IsalError
    except ImportError:
        return ()
    error: Any = IsalError  # a class, which its stub calls an exception
    return (error,)


def errors() -> tuple[type[Exception], ...]:
    """The exceptions of the unpackers for damaged data."""
    import lzma

    import zstandard

    # The last four are what readers raise for damage that they do not check.
    return (
        *(tarfile.TarError, zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, OSError),
        *_errors_of_isal(),
        *(ValueError, OverflowError, IndexError, KeyError),
    )


def file_identity(path: str) -> str:
    """Size, times of the last changes of contents and of anything, and inode; empty where there is no file.

    A file that is written or replaced gets another time of the latter kind, which cannot be set (stat(2), `st_ctim`).
    """
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return ""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def blobs_identity(document: str, folder: str) -> str:
    """A document that names blobs by their digests, with the sizes of those that are there; empty where it is not."""
    try:
        with open(document, "rb") as file:
            digest = hashlib.sha256(file.read())
        with os.scandir(folder) as entries:
            sizes = sorted((entry.name, entry.stat().st_size) for entry in entries)
    except OSError:
        return ""
    digest.update(repr(sizes).encode())
    return f"sha256:{digest.hexdigest()}"


_BLOCK = tarfile.BLOCKSIZE
# Bytes of an extended header; a path has at most 4096.
_LARGEST_HEADER = 1 << 20
_EXTENDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MAGIC = b"ustar"
# Mode, owner, group, size and time; a checksum; numbers of a device.
_NUMBER = rb"(?:[0-7]{7}[ \0]|[0-7]{6} \0)"
_LARGE = rb"[0-7]{11}[ \0]"
_PLAIN = re.compile(
    rb"[^\0].{99}(%b)(%b)(%b)(%b)%b([0-7]{6})(?:\0 | \0|\0\0)([01250\0])(.{100})ustar(?:\x0000|  \0)"
    rb".{64}(?:\0{8}|%b){2}(.{155}).{12}" % (_NUMBER, _NUMBER, _NUMBER, _LARGE, _LARGE, _NUMBER),
    re.DOTALL,
)
# The position of the checksum, which counts as blanks in it.
_SUM = slice(148, 156)
_BLANKS = 8 * 0x20
_NOTHING = bytes(155)
_FOLDER, _LINK, _HARD_LINK = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


class Member(NamedTuple):
    """One entry: its name as stored, its type as in `tarfile`, the contents of a file, and its user and group."""

    name: str
    type: bytes
    size: int
    mode: int
    link: str
    contents: Readable | None
    owner: tuple[int, int]

    @property
    def plain(self) -> bool:
        """True for contents that follow the header as they are."""
        return isinstance(self.contents, _Contents)

    @property
    def is_folder(self) -> bool:
        """True for a directory."""
        return self.type == _FOLDER

    @property
    def is_link(self) -> bool:
        """True for a symbolic link."""
        return self.type == _LINK

    @property
    def is_hard_link(self) -> bool:
        """True for a hard link."""
        return self.type == _HARD_LINK


class _Header(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        # tarfile reads an extended header of any size into memory.
        if header.type in _EXTENDED and header.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


class _Contents:
    def __init__(self, file: Forward, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int, /) -> bytes:
        data = self._file.some(min(size, self._left))
        if not data and self._left and size:
            raise tarfile.ReadError("unexpected end of data")
        self._left -= len(data)
        return data

    @property
    def section(self) -> Section | None:
        """The rest of it, if that lies in a file as it is."""
        return self._file.next_section(self._left)


def is_tar(head: bytes) -> bool:
    """Check whether a file with this head is a tar archive of POSIX or GNU."""
    return head[257:262] == _MAGIC


def members(file: Forward) -> Iterator[Member]:
    """The entries of a tar archive, the contents of each to be read before the next; raises what tarfile raises."""
    while True:
        block = file.read(_BLOCK)
        member = _plain(block, file)
        if member is None:
            file.unread(block)
            if not (yield from _odd(file)):
                return
            continue
        end = file.tell() + -(-member.size // _BLOCK) * _BLOCK
        yield member
        _go_on(file, end)


def _plain(block: bytes, file: Forward) -> Member | None:
    match = _PLAIN.fullmatch(block)
    if match is None:
        return None
    mode, user, group, size, checksum, type, link, prefix = match.groups()
    if _total(block) - _total(block[_SUM]) + _BLANKS != int(checksum, 8):
        return None
    # GNU tar may store times in these fields.
    if prefix != _NOTHING and block[262:263] != b"\0":
        return None
    name = _text(block[:100])
    if name.endswith("/"):
        # The form of a directory before POSIX.
        type = _FOLDER if type == tarfile.AREGTYPE else type
        name = name.rstrip("/") if type == _FOLDER else name
    if prefix[:1] != b"\0":
        name = f"{_text(prefix)}/{name}"
    is_file = type in tarfile.REGULAR_TYPES
    length = int(size[:11], 8) if is_file else 0
    contents = _Contents(file, length) if is_file else None
    owner = int(user[:7], 8), int(group[:7], 8)
    return Member(name, type, length, int(mode[:7], 8), _text(link), contents, owner)


# The sum of the bytes of a block: the lower half of Adler-32 (RFC 1950) is that modulo a prime, which half a block
# cannot reach. `sum` takes five times as long.
def _total(block: bytes) -> int:
    return (zlib.adler32(block[:256], 0) & 0xFFFF) + (zlib.adler32(block[256:], 0) & 0xFFFF)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


# The next entry as tarfile reads it; all that are left where a header for all of them stands before it. Returned is
# whether there may be more.
def _odd(file: Forward) -> Generator[Member, None, bool]:
    start = file.tell()
    with tarfile.open(
        fileobj=file,  # type: ignore[call-overload]
        # `r:*` would unpack by itself, and neither count nor hash.
        mode="r:",
        tarinfo=_Header,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        # Called again behind the end, tarfile would look for its beginning.
        while tar.firstmember is not None or tar.offset > start:
            member = tar.next()
            if member is None:
                break
            yield _of_tarfile(tar, member)
            # tarfile keeps every header that it has read, by default for extracting.
            tar.members.clear()
            if not tar.pax_headers:
                _go_on(file, tar.offset)
                return True
    return False


def _of_tarfile(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Member:
    contents: Readable | None = None
    if member.isreg():
        opened = tar.extractfile(member)
        assert isinstance(opened, io.BufferedReader)  # noqa: S101 - a regular file
        # Without the buffer of tarfile, which would copy once more.
        contents = opened.raw
    type = tarfile.REGTYPE if contents is not None else member.type
    owner = member.uid, member.gid
    return Member(member.name, type, member.size, member.mode, member.linkname, contents, owner)


def _go_on(file: Forward, end: int) -> None:
    file.seek(end)
    if file.tell() < end:
        raise tarfile.ReadError("unexpected end of data")
