"""Saved logs: opened in whatever encoding they were saved, and refused with what they are where no driver speaks.

A path `-` is stdin, which whoever runs the program hands over.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TextIO

from toolmatrix.errors import LogError, Position
from toolmatrix.opener import opened
from toolmatrix.stages.log import lines_of, parse_log
from toolmatrix.stages.model import Log

# How a text may begin, and what it is then written in; PowerShell saves what it redirects in UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "surrogateescape"),
    (codecs.BOM_UTF16_LE, "utf-16", "replace"),
    (codecs.BOM_UTF16_BE, "utf-16", "replace"),
)
# How a packed log begins, and the module that unpacks it.
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "lzma", b"BZh": "bz2"}
_ZSTD = b"\x28\xb5\x2f\xfd"
# Bytes of zstd that are unpacked at once: three of them may stand for 128 KiB.
_PIECE = 128

_EXPECTED = (
    "lines that begin with `#$ ` (nvcc --dryrun), or commands in quotes (hipcc -###, clang -###)"
)
_STDIN = "`--from-log -` reads stdin"
_HELP = (
    "drivers print to stderr: `nvcc --dryrun ... 2> FILE`, `hipcc -### ... 2> FILE`; a build with nvcc:"
    " `NVCC_APPEND_FLAGS=--dryrun make 2>&1 | toolmatrix stages --from-log -`"
)


def read(path: str, stdin: TextIO | None = None) -> Log:
    """The plans of a log. Raises LogError for one that cannot be read or in which no driver speaks."""
    stream = unpacked(path, stdin)
    encoding, errors = _encoding(stream)
    with (
        io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="\n") as text,
        readable(path),
    ):
        return parse(lines_of(text), path)


def parse(lines: Iterable[str], path: str = "") -> Log:
    """The plans of the lines of a log; `path` names it. Raises LogError where no driver speaks in it."""
    count, first = 0, ""

    def heard() -> Iterator[str]:
        nonlocal count, first
        for line in lines:
            count += 1
            first = first or line.strip()
            yield line

    log = parse_log(heard())
    if not log.plans:
        silent = [said for said in log.diagnostics if said.line and said.severity == "error"]
        raise LogError(
            silent[0].text if silent else "no output of a driver in this log",
            where=Position(called(path), silent[0].line if silent else 0) if path else None,
            expected=_EXPECTED,
            found=_description(count, first),
            help=_HELP,
        )
    return log


def called(path: str) -> str:
    """The name of a log in headings and errors."""
    return "stdin" if path == "-" else path


def _description(count: int, first: str) -> str:
    if not count:
        return "nothing: it is empty"
    # Bytes that are no UTF-8 are read as lone surrogates (PEP 383).
    if any(letter == "\0" or "\udc80" <= letter <= "\udcff" for letter in first):
        return "binary data"
    lines = "1 line" if count == 1 else f"{count} lines"
    return f"text of {lines}" + (f", the first: `{first[:80]}`" if first else "")


def unpacked(path: str, stdin: TextIO | None = None, help: str = _STDIN) -> io.BufferedReader:
    """The bytes of a log without the compression that its first bytes tell. Raises LogError."""
    with readable(path, help):
        if path != "-" or stdin is None:
            stream = opened(path)
        # A stream that stands in for stdin, as one of text, has no bytes of its own.
        elif isinstance(piped := getattr(stdin, "buffer", None), io.BufferedReader):
            stream = piped
        else:
            text = stdin.read().encode("utf-8", "surrogateescape")
            stream = io.BufferedReader(io.BytesIO(text))
        start = stream.peek(6)
        for mark, module in _PACKED.items():
            if start.startswith(mark):
                return _Unpacking(import_module(module).open(stream), stream)
        if start.startswith(_ZSTD):
            return _Unpacking(_Zstandard(stream), stream)
    return stream


# Unpackers leave what they were handed open.
class _Unpacking(io.BufferedReader):
    def __init__(self, unpacked: io.RawIOBase, packed: io.BufferedReader) -> None:
        super().__init__(unpacked)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


# Its readers take a frame that is cut off for a whole one.
class _Zstandard(io.RawIOBase):
    def __init__(self, packed: io.BufferedReader) -> None:
        import zstandard

        from toolmatrix.images.streams import ZSTD_WINDOW

        self._packed = packed
        self._made = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._frame: Any = None
        self._rest = b""
        self._data = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._data:
            piece = self._rest or self._packed.read(_PIECE)
            if not piece:
                if self._frame is not None:
                    raise EOFError("the packed data ends too early")
                return 0
            # zstd appends frames, as gzip does members.
            self._frame = self._frame or self._made.decompressobj()
            self._data = memoryview(self._frame.decompress(piece))
            self._rest = b""
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._data))
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        return count


def as_utf8(stream: io.BufferedReader) -> io.BufferedReader | codecs.StreamRecoder:
    """The bytes of a log in UTF-8, whatever encoding it was saved in."""
    name, _ = _encoding(stream)
    if name.startswith("utf-8"):
        return stream
    return codecs.EncodedFile(stream, "utf-8", name, "replace")


def _encoding(stream: io.BufferedReader) -> tuple[str, str]:
    start = stream.peek(4)
    return next(
        ((name, errors) for mark, name, errors in _MARKS if start.startswith(mark)),
        ("utf-8", "surrogateescape"),
    )


@contextmanager
def readable(path: str, help: str = _STDIN) -> Iterator[None]:
    """Say what is wrong with a log that cannot be read to its end; raises LogError."""
    from toolmatrix.images import streams

    try:
        yield
    except streams.errors() as error:
        raise LogError(
            "cannot read the log",
            where=Position(called(path)),
            found=getattr(error, "strerror", None) or str(error),
            help=help,
        ) from None
