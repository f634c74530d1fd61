"""A wheel at an index, read by ranges: its directory, and all or the beginning of any member.

zipfile reads the archive; the ranges that it needs are fetched piece by piece, and cached.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from toolmatrix.errors import HarvestRefused, Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.harvest.transport import Session

# PEP 427 recommends .dist-info at the end of a wheel. 269 of 339 wheels needed only this and METADATA itself; those of
# torch and TensorFlow have ten thousand members, and a directory of 1.3 MB.
TAIL = 64 << 10
"""Bytes at the end that are read first: most wheels have their directory there, and METADATA just before it."""
LARGEST_DIRECTORY = 64 << 20
"""Bytes; a hundred thousand members take 16 MiB."""
# Some streams stop early, and others have hundreds of MiB: pieces that grow suit both, without many wasted bytes or
# many requests.
FIRST_PIECE = 256 << 10
LARGEST_PIECE = 8 << 20
"""Bytes of the first piece of a member, and of the largest: each is twice the one before."""
_STEP = 64 << 10
# Exceptions of zipfile and zlib for an archive that is damaged, encrypted or compressed in an unknown format.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class RemoteWheel:
    """One wheel at an address; nothing is read before it is needed.

    Members are read one at a time. `digest` is its sha256 in the index, "" for none, in which case nothing is cached.
    Every method raises IndexFailed if the index does not answer or sends a wrong range, and HarvestRefused if the
    archive is damaged or a member is too large.
    """

    def __init__(self, session: Session, url: str, digest: str = "") -> None:
        self.name = url.partition("#")[0].rpartition("/")[2]
        self._session = session
        self._digest = digest
        self._file = RemoteFile(session, url, digest)
        self._archive: zipfile.ZipFile | None = None

    def names(self) -> list[str]:
        """The names of all members, in the order of the directory."""
        return self._opened().namelist()

    def size(self, name: str) -> int:
        """The unpacked size of a member in the directory; KeyError if it is missing."""
        return self._opened().getinfo(name).file_size

    def read(self, name: str, limit: int) -> bytes:
        """A whole member of at most `limit` bytes; KeyError if it is missing."""
        if self.size(name) > limit:
            raise self._refusal(
                f"`{name}` is too large", f"at most {limit} bytes", f"{self.size(name)} bytes"
            )
        return b"".join(self.stream(name))

    def stream(self, name: str) -> Iterator[bytes]:
        """A member from its beginning, unpacked, in pieces of at most 64 KiB; KeyError if it is missing.

        Stopping early wastes at most the rest of one piece of the file (`LARGEST_PIECE`).
        """
        archive = self._opened()
        member = archive.getinfo(name)
        # The directory does not have the length of the header before a member, so the start of the next member is the
        # only known bound of its end.
        begins = [info.header_offset for info in archive.infolist()]
        after = (offset for offset in begins if offset > member.header_offset)
        self._file.until(min(after, default=archive.start_dir))
        with self._whole(), archive.open(member) as opened:
            while piece := opened.read(_STEP):
                yield piece

    def _opened(self) -> zipfile.ZipFile:
        if self._archive is None:
            with self._whole():
                self._archive = zipfile.ZipFile(self._file)
        return self._archive

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            # The cached pieces may be damaged.
            self._session.forget(self._digest)
            raise self._refusal("the wheel is damaged", "a zip archive", str(error)) from None

    def _refusal(self, what: str, expected: str, found: str) -> HarvestRefused:
        return HarvestRefused(what, where=Position(self.name), expected=expected, found=found)


class RemoteFile(io.RawIOBase):
    """A file at an address, for zipfile and tarfile; missing pieces are fetched."""

    def __init__(self, session: Session, url: str, digest: str) -> None:
        super().__init__()
        self._session = session
        self._url = url
        self._digest = digest
        self._position = 0
        self._size = -1
        # Pieces in memory, each with its offset: the end of the file, and the piece fetched last.
        self._tail = (0, b"")
        self._piece = (0, b"")
        self._stop = 0
        self._next = 0

    def until(self, stop: int) -> None:
        """Expect reads up to `stop`, and fetch pieces of growing size for them."""
        self._stop = stop
        self._next = FIRST_PIECE

    def rewind(self) -> None:
        """Go to the beginning, to read the whole file."""
        self._position = 0
        self.until(self._length())

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position}.get(whence)
        position = (self._length() if begin is None else begin) + offset
        if position < 0:
            raise ValueError("an entry of the directory begins before the file")
        self._position = position
        return position

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._length() - self._position
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted > LARGEST_DIRECTORY:
            raise ValueError(f"the directory says {wanted} bytes")
        chunks = []
        while wanted > 0:
            chunk = self._here(wanted)
            chunks.append(chunk)
            self._position += len(chunk)
            wanted -= len(chunk)
        return b"".join(chunks)

    def _length(self) -> int:
        if self._size < 0:
            start, data = self._session.tail(self._url, TAIL, self._digest)
            self._tail = (start, data)
            self._size = start + len(data)
        return self._size

    def _here(self, wanted: int) -> bytes:
        """At least one, and at most `wanted`, of the bytes at the position."""
        # zipfile reads a few bytes of a header at a time, and each would be a request.
        for start, data in (self._tail, self._piece):
            if start <= self._position < start + len(data):
                return data[self._position - start :][:wanted]
        stop = max(self._position + wanted, min(self._stop, self._position + self._next))
        # The end is in memory already.
        stop = min(stop, self._tail[0])
        self._next = min(2 * self._next, LARGEST_PIECE)
        data = self._session.range(self._url, self._position, stop, self._digest)
        self._piece = (self._position, data)
        return data[:wanted]
