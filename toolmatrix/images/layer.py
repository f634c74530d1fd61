"""One layer: its entries in the order in which they were written, read ahead, and what it takes from those below."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from toolmatrix.images import headers, streams
from toolmatrix.images.headers import Member
from toolmatrix.images.limits import LONGEST_NAME, MOST_PADDING, Budget
from toolmatrix.images.streams import BLOCK, Hashed, Section, Unpacked
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable

    Look = Callable[[str, int, Readable], object]

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
# How names begin that mean something to AUFS alone; https://github.com/opencontainers/image-spec/blob/main/layer.md
_OWN = ".wh..wh."
DIRECTORY, FILE, LINK, HARD_LINK = "directory", "file", "link", "hard link"
LEFT_OUT = "left out"
"""What is kept of a file that would be too large together with the others of its layer."""


class Entry:
    """A file, directory or link. `held` is what was kept of a file's contents: bytes, or what a reader made of them."""

    __slots__ = ("held", "kind", "layer", "link", "mode", "size")

    def __init__(
        self, kind: str, *, size: int = 0, mode: int = 0, link: str = "", held: object = None
    ) -> None:
        self.kind = kind
        self.size = size
        self.mode = mode
        self.link = link
        self.held = held
        self.layer = ""

    @property
    def is_program(self) -> bool:
        """True for a file that somebody may run."""
        return self.kind == FILE and bool(self.mode & 0o111)


class Layer(Value):
    """Additions and removals of one layer, by paths without a leading slash.

    `digest` is that of the blob as stored, of `packed` bytes, `diff_id` that of it unpacked, of `size` bytes. `gone`
    are the paths that it removes from the layers below, `opaque` the directories of which it removes all that is below.
    `count` are the entries of its archive, `held` the bytes of files that are kept.
    """

    digest: str
    diff_id: str
    entries: tuple[tuple[str, Entry], ...] = ()
    gone: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    count: int = 0
    packed: int = 0
    size: int = 0
    held: int = 0


def read_layer(packed: Hashed, budget: Budget, look: Look) -> Layer:
    """A layer out of its blob, which is read to its end; raises SubjectError for what is no sound layer.

    `budget` is for this layer alone. `look` is given the path, size and contents of each regular file and returns what
    to keep of it, or None.
    """
    entries: list[tuple[str, Entry]] = []
    gone: list[str] = []
    opaque: list[str] = []
    try:
        unpacked = streams.Unpacked(packed, budget)
        with closing(read_ahead(unpacked)) as ahead:
            file = streams.Forward(ahead)
            for member in headers.members(file):
                budget.enter(member.name)
                path = inner_path(member.name, budget)
                folder, _, name = path.rpartition("/")
                if name == OPAQUE:
                    opaque.append(folder)
                elif name.startswith(WHITEOUT):
                    if not name.startswith(_OWN):
                        gone.append(f"{folder}/{name[4:]}".lstrip("/"))
                elif (entry := _entry(path, member, budget, look)) is not None:
                    entries.append((path, entry))
            # The diff id is that of all bytes, whatever stands behind the last file.
            _finish(file, packed, budget)
    except streams.errors() as error:
        raise damaged(budget, error) from None
    return Layer(
        digest=packed.digest,
        diff_id=unpacked.digest,
        entries=tuple(entries),
        gone=tuple(gone),
        opaque=tuple(opaque),
        count=budget.entries,
        packed=packed.count,
        size=budget.unpacked,
        held=budget.held,
    )


def inner_path(name: str, budget: Budget) -> str:
    """A name of an archive as a path from the root; raises SubjectError for one that climbs out of it."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise budget.refusal(
            "a file name leaves the root",
            "names below the root, without `..`",
            f"`{name[:LONGEST_NAME]}`",
            "no tool that makes images writes such a name: do not unpack this archive",
        )
    return "/".join(parts)


def check_digest(expected: str, found: str, budget: Budget) -> None:
    """Raise SubjectError where content is not what its name promises."""
    if expected != found:
        raise budget.refusal(
            "content has another digest than its name says",
            expected,
            found,
            "it was damaged or replaced on the way: save or pull the image again",
        )


def damaged(budget: Budget, error: Exception) -> Exception:
    """The refusal of data that its reader could not make sense of."""
    message = str(error) or type(error).__name__
    return budget.refusal(
        "the archive is damaged", "a tar archive, whole", message, "save or copy the image again"
    )


def _entry(path: str, member: Member, budget: Budget, look: Look) -> Entry | None:
    if member.is_folder:
        return Entry(DIRECTORY, mode=member.mode)
    if member.is_link:
        return Entry(LINK, link=member.link)
    if member.is_hard_link:
        return Entry(HARD_LINK, link=inner_path(member.link, budget))
    # Devices and pipes hold nothing to read.
    if member.contents is None:
        return None
    held = look(path, member.size, member.contents)
    return Entry(FILE, size=member.size, mode=member.mode, held=held)


def _finish(file: streams.Forward, packed: Hashed, budget: Budget) -> None:
    # tar ends an archive with zeros up to a whole record; what hides behind it is no file of the layer.
    padding = 0
    while data := file.read(streams.BLOCK):
        padding += len(data)
        if padding > MOST_PADDING or data.strip(b"\0"):
            what = "zeros" if padding > MOST_PADDING else "other data"
            raise budget.refusal(
                "the archive is damaged",
                "its end after the last file",
                f"{what} behind it",
                "save or copy the image again",
            )
    streams.exhaust(packed)


# Blocks that a thread reads before anybody takes them.
_PIECES = 8
# Bytes that it reads at once where nobody waits for them: after each it waits for the interpreter.
_BESIDE = 4 << 20


class Ahead:
    """A stream that a thread reads ahead, so that hashing and unpacking go beside what is made of it.

    Both leave other threads alone meanwhile. It is closed when it is read to its end or nobody wants the rest.
    """

    __slots__ = ("_closed", "_pieces", "_rest", "_room", "_stream", "_thread")

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._pieces: SimpleQueue[bytes | BaseException] = SimpleQueue()
        # One that is written in C, as each piece waits for a place.
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(_PIECES):
            self._room.put(None)
        self._thread: Thread | None = None
        self._rest = b""
        self._closed = False

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises what reading the stream raises."""
        if self._rest:
            data, self._rest = self._rest[:size], self._rest[size:]
            return data
        if self._thread is None:
            # Small layers are read before a thread has started.
            data = self._stream.read(BLOCK)
            if len(data) == BLOCK:
                self._thread = Thread(target=self._run, daemon=True)
                self._thread.start()
        else:
            piece = self._pieces.get()
            self._room.put(None)
            if isinstance(piece, BaseException):
                raise piece
            data = piece
            if not data:
                # What is asked for behind the end has none either.
                self._pieces.put(data)
        if len(data) > size:
            data, self._rest = data[:size], data[size:]
        return data

    def _run(self) -> None:
        try:
            while not self._closed:
                self._room.get()
                data = self._stream.read(BLOCK)
                self._pieces.put(data)
                if not data:
                    return
        except BaseException as error:  # noqa: BLE001 - raised again where it is read
            self._pieces.put(error)

    def close(self) -> None:
        """Stop reading, once the piece is there that is on its way."""
        self._closed = True
        if self._thread is not None:
            self._room.put(None)
            self._thread.join()


class Beside(Section):
    """A part of a file of which a thread reads all as `stream`, for count and digest; its end comes when that has them.

    What is read here may leave out most of it, and no piece waits until the other is done with it. Both must have read
    the same, so a file that changes meanwhile is an error.
    """

    __slots__ = ("_closed", "_error", "_state", "_stream", "_thread")

    def __init__(self, held: Section, stream: Readable) -> None:
        super().__init__(held.number, held.place, held.left)
        self._state = self._now()
        self._stream = stream
        self._error: BaseException | None = None
        self._closed = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises then what reading the stream raised, and OSError."""
        data = super().read(size)
        if not data:
            self._thread.join()
            if self._error is not None:
                raise self._error
            if self._now() != self._state:
                raise OSError("the file was changed while it was read")
        return data

    def _now(self) -> tuple[int, ...]:
        held = os.fstat(self.number)
        return held.st_size, held.st_mtime_ns, held.st_ctime_ns

    def _run(self) -> None:
        try:
            while not self._closed and self._stream.read(_BESIDE):
                pass
        except BaseException as error:  # noqa: BLE001 - raised again where it is read
            self._error = error

    def close(self) -> None:
        """Stop reading, once the piece is there that is on its way."""
        self._closed = True
        self._thread.join()


def read_ahead(stream: Unpacked) -> Ahead | Beside:
    """A stream that a thread hashes, and unpacks where it is packed, beside what is made of it."""
    held = stream.section
    return Ahead(stream) if held is None or held.left <= BLOCK else Beside(held, stream)
