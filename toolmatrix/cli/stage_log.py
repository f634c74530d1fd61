"""Saved logs: opened in whatever encoding they were saved, and refused with what they are where no driver speaks."""

from __future__ import annotations

import codecs
import io
from contextlib import closing, contextmanager
from importlib import import_module

from toolmatrix.errors import LogError, Position
from toolmatrix.stages.log import lines_of, parse_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from toolmatrix.cli.context import Context
    from toolmatrix.stages.model import Log

# How a text may begin, and what it is then written in; PowerShell saves what it redirects in UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "surrogateescape"),
    (codecs.BOM_UTF16_LE, "utf-16", "replace"),
    (codecs.BOM_UTF16_BE, "utf-16", "replace"),
)
# How a packed log begins, and the module that unpacks it.
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "lzma", b"BZh": "bz2"}

_EXPECTED = (
    "lines that begin with `#$ ` (nvcc --dryrun), or commands in quotes (hipcc -###, clang -###)"
)
_STDIN = "`--from-log -` reads stdin"
_HELP = (
    "drivers speak on stderr: `nvcc --dryrun ... 2> FILE`, `hipcc -### ... 2> FILE`; a build with nvcc:"
    " `NVCC_APPEND_FLAGS=--dryrun make 2>&1 | toolmatrix stages --from-log -`"
)


def read(context: Context, path: str) -> Log:
    """The plans of a log, `-` for stdin; raises LogError for one that cannot be read or in which no driver speaks."""
    with closing(opened(context, path)) as stream:
        lines = _Lines(stream)
        with readable(path):
            log = parse_log(lines)
    if not log.plans:
        raise LogError(
            "no driver speaks in this log",
            where=Position(called(path)),
            expected=_EXPECTED,
            found=lines.found(),
            help=_HELP,
        )
    return log


def called(path: str) -> str:
    """What a log is called in headings and errors."""
    return "stdin" if path == "-" else path


class _Lines:
    """The lines of a stream, and what it turned out to be."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.count = 0
        self.binary = False
        self.first = ""

    def __iter__(self) -> Iterator[str]:
        for line in lines_of(self.stream):
            self.count += 1
            if not self.first:
                self.first = line.strip()
                self.binary = "\0" in line or (not line.isprintable() and _escaped(line))
            yield line

    def found(self) -> str:
        """What the stream is, in words."""
        if not self.count:
            return "nothing: it is empty"
        if self.binary:
            return "binary data"
        count = "1 line" if self.count == 1 else f"{self.count} lines"
        return f"text of {count}" + (f", the first: `{self.first[:80]}`" if self.first else "")


def _escaped(line: str) -> bool:
    """Whether bytes of a line are no text."""
    return any("\udc80" <= letter <= "\udcff" for letter in line)


def opened(context: Context, path: str, help: str = _STDIN) -> TextIO:
    """A log, `-` for stdin, in whatever encoding it was saved; raises LogError for one that cannot be opened."""
    if path == "-" and not isinstance(_piped(context), io.BufferedReader):
        return io.StringIO(context.stdin.read())
    return _text(unpacked(context, path, help))


def unpacked(context: Context, path: str, help: str = _STDIN) -> io.BufferedReader:
    """The bytes of a log, `-` for stdin, without the compression its first bytes tell; raises LogError as `opened`."""
    try:
        stream = _piped(context) if path == "-" else open(path, "rb")  # noqa: SIM115 - returned
        if not isinstance(stream, io.BufferedReader):
            return io.BufferedReader(io.BytesIO(context.stdin.read().encode()))
        start = stream.peek(6)
        for mark, module in _PACKED.items():
            if start.startswith(mark):
                return io.BufferedReader(import_module(module).open(stream))
    except OSError as error:
        raise unreadable(path, error, help) from None
    return stream


def as_utf8(stream: io.BufferedReader) -> io.BufferedReader | codecs.StreamRecoder:
    """The bytes of a log in UTF-8, whatever encoding it was saved in."""
    name, _ = _encoding(stream)
    if name.startswith("utf-8"):
        return stream
    return codecs.EncodedFile(stream, "utf-8", name, "replace")


def _piped(context: Context) -> object:
    return getattr(context.stdin, "buffer", None)


def _text(stream: io.BufferedReader) -> TextIO:
    encoding, errors = _encoding(stream)
    return io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="\n")


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
        raise unreadable(path, error, help) from None


def unreadable(path: str, error: Exception, help: str = _STDIN) -> LogError:
    """What is wrong with a log that cannot be read."""
    return LogError(
        "cannot read the log",
        where=Position(called(path)),
        found=getattr(error, "strerror", None) or str(error),
        help=help,
    )
