"""The entries of a tar archive, one at a time as it passes and none kept.

A header that is a plain one of POSIX (pax(1), "ustar Interchange Format") or GNU tar is read here, as layers have tens
of thousands; every other one, such as of a long name or a sparse file, and whatever is damaged is left to `tarfile`.
"""

from __future__ import annotations

import io
import re
import tarfile
import zlib
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from toolmatrix.images.streams import Forward, Section

if TYPE_CHECKING:
    from typing_extensions import Self

    from toolmatrix.images.streams import Readable


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
    rb"[^\0].{99}(%b)%b{2}(%b)%b([0-7]{6})(?:\0 | \0|\0\0)([01250\0])(.{100})ustar(?:\x0000|  \0)"
    rb".{64}(?:\0{8}|%b){2}(.{155}).{12}" % (_NUMBER, _NUMBER, _LARGE, _LARGE, _NUMBER),
    re.DOTALL,
)
# Where the checksum stands, which counts as blanks in it.
_SUM = slice(148, 156)
_BLANKS = 8 * 0x20
_NOTHING = bytes(155)
_FOLDER, _LINK, _HARD_LINK = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


class Member:
    """One entry: its name as it stands there, its type as of `tarfile`, and what is in it where it is a file."""

    __slots__ = ("contents", "link", "mode", "name", "size", "type")

    def __init__(
        self, name: str, type: bytes, size: int, mode: int, link: str, contents: Readable | None
    ) -> None:
        self.name = name
        self.type = type
        self.size = size
        self.mode = mode
        self.link = link
        self.contents = contents

    @property
    def plain(self) -> bool:
        """True for contents that stand behind the header as they are."""
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
        """True for another name of an entry."""
        return self.type == _HARD_LINK


class _Header(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Self:
        made = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        # tarfile takes an extended header to memory whole, of whatever size it says that it is.
        if made.type in _EXTENDED and made.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {made.size} bytes")
        return made


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
        """What is left of it, if that lies in a file as it is."""
        return self._file.next_section(self._left)


def is_tar(head: bytes) -> bool:
    """Check whether a file that begins so is a tar archive as POSIX and GNU mark it."""
    return head[257:262] == _MAGIC


def members(file: Forward) -> Iterator[Member]:
    """The entries of a tar archive, the contents of each to be read before the next; raises what tarfile raises."""
    while True:
        block = file.read(_BLOCK)
        made = _plain(block, file)
        if made is None:
            file.unread(block)
            if not (yield from _odd(file)):
                return
            continue
        end = file.tell() + -(-made.size // _BLOCK) * _BLOCK
        yield made
        _go_on(file, end)


def _plain(block: bytes, file: Forward) -> Member | None:
    found = _PLAIN.fullmatch(block)
    if found is None:
        return None
    mode, size, checksum, type, link, prefix = found.groups()
    if _total(block) - _total(block[_SUM]) + _BLANKS != int(checksum, 8):
        return None
    # In these places GNU tar may keep times.
    if prefix != _NOTHING and block[262:263] != b"\0":
        return None
    name = _text(block[:100])
    if name.endswith("/"):
        # Before POSIX this was how a directory was written.
        type = _FOLDER if type == tarfile.AREGTYPE else type
        name = name.rstrip("/") if type == _FOLDER else name
    if prefix[:1] != b"\0":
        name = f"{_text(prefix)}/{name}"
    is_file = type in tarfile.REGULAR_TYPES
    length = int(size[:11], 8) if is_file else 0
    contents = _Contents(file, length) if is_file else None
    return Member(name, type, length, int(mode[:7], 8), _text(link), contents)


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
        # Asked again behind the end, tarfile would look for its beginning.
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
        # Without the buffer that tarfile puts around it, which would copy once more.
        contents = opened.raw
    type = tarfile.REGTYPE if contents is not None else member.type
    return Member(member.name, type, member.size, member.mode, member.linkname, contents)


def _go_on(file: Forward, end: int) -> None:
    file.seek(end)
    if file.tell() < end:
        raise tarfile.ReadError("unexpected end of data")
