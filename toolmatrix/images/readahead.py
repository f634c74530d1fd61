"""Streams that a thread reads ahead, so that hashing and unpacking go beside what is made of them."""

from __future__ import annotations

import os
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from toolmatrix.images.streams import BLOCK, Section, Unpacked

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable

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
