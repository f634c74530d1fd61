"""From a log, as text or as a saved file, to plans: one reader for each driver, one plan for each invocation.

CMake shows what a compiler printed in its own ways: in its log with every backslash twice, in an error wrapped like
prose. Both are undone before a reader sees a line. A file may have any encoding; one without output of a driver is
refused with a description of its contents. The path `-` is stdin, which the caller passes.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from toolmatrix.compilation.model import Diagnostic, Log, Plan
from toolmatrix.errors import LogError, Position
from toolmatrix.lines import MARK, strip_prefixes
from toolmatrix.opener import open_file
from toolmatrix.process import without_collector

if TYPE_CHECKING:
    from toolmatrix.compilation.drivers.clang import ClangReader
    from toolmatrix.compilation.drivers.nvcc import NvccReader

    # `read` takes the lines of its own driver; other lines after them go to its `message`.
    Reader: TypeAlias = "ClangReader | NvccReader"


# Characters of the longest line that is read; a shell takes far less for a command.
LONGEST = 4 << 20

_LINES = 'give it the open file, `open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
_BLOCK = 1 << 20
# The number of lines kept from before the first of a driver, as they may say why it gave up.
_EARLY = 20
# The reasons why a text has no plan, each worse than the one before.
_NO_PLAN = (
    "the text is empty",
    "no line comes from a dry run of nvcc, hipcc or clang",
    "this is binary data, not the log of a driver",
)

# The mark as it stands on a line that CMake has wrapped: at its end the blank behind it is gone.
_MARK = MARK.rstrip()
# Characters of a line of `message()` behind its indent (CMake, cmMessenger: 77 with it).
_WIDTH = 75
_EVENT = re.compile(r' {4}kind: "[a-z_]+-v\d+"\s*')
_IN_EVENT = " " * 6
# A name that a shell gets in quotes, as CMakeConfigureLog.yaml has it; no driver prints that.
_DOUBLED = re.compile(r'"\\\\"[^"]*\\\\""')


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a text file without their ends, each cut if it is too long; needs little memory."""
    rest = ""
    dropping = False
    while block := stream.read(_BLOCK):
        lines = (rest + block).split("\n")
        rest = lines.pop()
        yield from lines[1:] if dropping and lines else lines
        dropping = dropping and not lines
        if dropping:
            rest = ""
        elif len(rest) > LONGEST:
            yield rest
            rest = ""
            dropping = True
    if rest and not dropping:
        yield rest


def parse_log(lines: Iterable[str]) -> Log:
    """Every invocation in the lines of a log; raises TypeError unless they are lines."""
    if isinstance(lines, (str, bytes)):
        raise TypeError(
            f"parse_log takes the lines of a log, not a {type(lines).__name__}: {_LINES}"
        )
    from toolmatrix.compilation.drivers.clang import ClangReader
    from toolmatrix.compilation.drivers.nvcc import NvccReader

    rest = iter(lines)
    first = next(rest, "")
    if not isinstance(first, str):
        raise TypeError(f"the lines of a log are str, not {type(first).__name__}: {_LINES}")
    with without_collector():
        return _read(chain((first,), rest), [NvccReader(), ClangReader()])


def _read(lines: Iterable[str], readers: list[Reader]) -> Log:
    latest: Reader | None = None
    early: list[tuple[int, str]] = []
    diagnostics: list[Diagnostic] = []
    doubt = 0
    for number, raw in _without_cmake(lines):
        # Patterns on a line take time that grows with it, and a hostile one may fill the memory.
        if len(raw) > LONGEST:
            doubt = max(doubt, 1)
            too_long = f"a line of more than {LONGEST} characters is not a command and was skipped"
            diagnostics.append(Diagnostic(line=number, severity="warning", text=too_long))
            continue
        line = strip_prefixes(raw)
        for reader in readers:
            if reader.read(number, line):
                latest = reader
                break
        else:
            if latest is not None:
                latest.message(number, line)
            elif line:
                doubt = max(doubt, 2 if "\0" in line or "\ufffd" in line else 1)
                if len(early) < _EARLY:
                    early.append((number, line))
            continue
        while early:
            latest.message(*early.pop(0))
    plans = [plan for reader in readers for plan in reader.plans()]
    unread = [plan for plan in plans if plan.unread]
    if unread and len(unread) == len(plans):
        last = unread[-1]
        diagnostics.append(Diagnostic(line=last.line, severity="error", text=last.unread))
        plans = []
    elif unread:
        plans = [_with_warning(plan) if plan.unread else plan for plan in plans]
    elif not plans:
        diagnostics.append(Diagnostic(line=0, severity="error", text=_NO_PLAN[doubt]))
    return Log(
        plans=tuple(sorted(plans, key=lambda plan: plan.line)), diagnostics=tuple(diagnostics)
    )


def _with_warning(plan: Plan) -> Plan:
    warning = Diagnostic(line=plan.line, severity="warning", text=plan.unread)
    return plan.replace(diagnostics=(warning,))


def _without_cmake(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers from 1, as the compiler printed them; those of no log of CMake stay as they are."""
    in_log = False
    for number, line in _unwrapped(lines):
        if "\\\\" in line:
            if (in_log and line.startswith(_IN_EVENT)) or _DOUBLED.search(line):
                line = line.replace("\\\\", "\\")
        elif not in_log and line.startswith("    kind: "):
            in_log = _EVENT.fullmatch(line) is not None
        yield number, line


def _unwrapped(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each marked line joined with those that follow in its paragraph, where they are as CMake wraps words."""
    paragraph = ""
    begin = 0
    last = ""
    indent = ""
    after_blank = False
    for number, line in enumerate(lines, 1):
        if paragraph:
            content = line.strip()
            if content[:2] != _MARK and line.startswith(indent) and _goes_on(last, content):
                paragraph += f" {content}"
                last = content
                continue
            yield begin, paragraph
            paragraph = ""
        if after_blank and line[:1] == " " and line.lstrip()[:2] == _MARK:
            paragraph, begin, last = line.rstrip(), number, line.strip()
            indent = line[: line.index(_MARK)]
        else:
            yield number, line
        after_blank = line[:1] in "\r\n " and not line.strip()
    if paragraph:
        yield begin, paragraph


def _goes_on(last: str, content: str) -> bool:
    # CMake breaks a line where the next word does not fit, so a line with room for it was not wrapped; neither was a
    # longer line that could have been broken.
    if not content or (len(last) > _WIDTH and " " in last.removeprefix(_MARK).strip()):
        return False
    return len(last) + 1 + len(content.partition(" ")[0]) > _WIDTH


# Byte order marks and their encodings; PowerShell redirects to files in UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", "surrogateescape"),
    (codecs.BOM_UTF16_LE, "utf-16", "replace"),
    (codecs.BOM_UTF16_BE, "utf-16", "replace"),
)
# How a packed log begins, and the module that unpacks it.
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "lzma", b"BZh": "bz2"}
_ZSTD = b"\x28\xb5\x2f\xfd"
# Bytes of zstd that are unpacked at once: three of them may expand to 128 KiB.
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
    """The plans of a log. Raises LogError for one that cannot be read or has no output of a driver."""
    stream = unpacked(path, stdin)
    encoding, errors = _encoding(stream)
    with (
        io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="\n") as text,
        readable(path),
    ):
        return parse(lines_of(text), path)


def parse(lines: Iterable[str], path: str = "") -> Log:
    """The plans of the lines of a log; `path` names it. Raises LogError if it has no output of a driver."""
    count, first = 0, ""

    def counted() -> Iterator[str]:
        nonlocal count, first
        for line in lines:
            count += 1
            first = first or line.strip()
            yield line

    log = parse_log(counted())
    if not log.plans:
        errors = [entry for entry in log.diagnostics if entry.line and entry.severity == "error"]
        raise LogError(
            errors[0].text if errors else "no output of a driver in this log",
            where=Position(display_name(path), errors[0].line if errors else 0) if path else None,
            expected=_EXPECTED,
            found=_description(count, first),
            help=_HELP,
        )
    return log


def display_name(path: str) -> str:
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
    """The bytes of a log, decompressed according to its first bytes. Raises LogError."""
    with readable(path, help):
        if path != "-" or stdin is None:
            stream = open_file(path)
        # A replacement of stdin, such as a text stream, has no bytes of its own.
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


# Decompressors do not close the underlying stream.
class _Unpacking(io.BufferedReader):
    def __init__(self, unpacked: io.RawIOBase, packed: io.BufferedReader) -> None:
        super().__init__(unpacked)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


# The readers of the package accept a truncated frame.
class _Zstandard(io.RawIOBase):
    def __init__(self, packed: io.BufferedReader) -> None:
        import zstandard

        from toolmatrix.images.streams import ZSTD_WINDOW

        self._packed = packed
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
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
            self._frame = self._frame or self._decompressor.decompressobj()
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
    """Turn errors of reading a log into LogError."""
    from toolmatrix.images import streams

    try:
        yield
    except streams.errors() as error:
        raise LogError(
            "cannot read the log",
            where=Position(display_name(path)),
            found=getattr(error, "strerror", None) or str(error),
            help=help,
        ) from None
