"""From the text of a log to plans: clean lines, one reader for each driver, one plan for each invocation."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from itertools import chain

from toolmatrix.lines import clean
from toolmatrix.stages import cmake
from toolmatrix.stages.model import Diagnostic, Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol, TextIO

    from toolmatrix.stages.model import Plan

    class Reader(Protocol):
        """What understands one family of drivers."""

        def read(self, number: int, line: str) -> bool:
            """Take a line if it is this driver's; `line` has no prefix, no colour and no line end."""

        def message(self, number: int, line: str) -> None:
            """Hear a line that no reader took, while this one's invocation is the latest."""

        def plans(self) -> list[Plan]:
            """What was read, one plan for each invocation; called once, at the end."""


LONGEST = 4 << 20
"""Characters of the longest line that is read; a shell takes far less for a command."""

_LINES = 'give it the open file, `open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
_BLOCK = 1 << 20
# So many lines before the first that a reader takes are kept, as they may say why a driver gave up.
_EARLY = 20


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a text file without their ends, each cut where it is too long to be read; holds little at once."""
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
    """Every invocation that the lines of a log tell of, whatever they are; raises TypeError for what is no lines."""
    if isinstance(lines, (str, bytes)):
        raise TypeError(
            f"parse_log takes the lines of a log, not a {type(lines).__name__}: {_LINES}"
        )
    from toolmatrix.stages.drivers.clang import ClangReader
    from toolmatrix.stages.drivers.nvcc import NvccReader

    with _no_collector():
        return _read(_texts(lines), [NvccReader(), ClangReader()])


def _texts(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    first = next(rest, "")
    if not isinstance(first, str):
        raise TypeError(f"the lines of a log are str, not {type(first).__name__}: {_LINES}")
    return chain((first,), rest)


def _read(lines: Iterable[str], readers: list[Reader]) -> Log:
    latest: Reader | None = None
    early: list[tuple[int, str]] = []
    doubts = _Doubts()
    for number, raw in cmake.plain(lines):
        if len(raw) > LONGEST:
            doubts.too_long(number)
            continue
        line = clean(raw)
        for reader in readers:
            if reader.read(number, line):
                latest = reader
                break
        else:
            if latest is not None:
                latest.message(number, line)
            elif line:
                doubts.look(line)
                if len(early) < _EARLY:
                    early.append((number, line))
            continue
        while early:
            latest.message(*early.pop(0))
    plans = [plan for reader in readers for plan in reader.plans()]
    return Log(
        plans=tuple(sorted(plans, key=lambda plan: plan.line)),
        diagnostics=doubts.of(plans=len(plans)),
    )


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the cyclic collector from going again and again through all that was read: nothing of it is a cycle."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Doubts:
    """Why a text is perhaps not a log, or not all of one."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.text = False
        self.binary = False

    def too_long(self, number: int) -> None:
        """A line is longer than any command."""
        self.text = True
        said = f"a line of more than {LONGEST} characters is no command; it is left out"
        self.found.append(Diagnostic(line=number, severity="warning", text=said))

    def look(self, line: str) -> None:
        """Look at a line that no reader took, before any that one took."""
        self.text = True
        self.binary = self.binary or "\0" in line or "\ufffd" in line

    def of(self, *, plans: int) -> tuple[Diagnostic, ...]:
        """What is to be said once all is read."""
        if not plans:
            if not self.text:
                said = "the text is empty"
            elif self.binary:
                said = "this is binary data, not the log of a driver"
            else:
                said = "no line is one of a dry run of nvcc, hipcc or clang"
            self.found.append(Diagnostic(line=0, severity="error", text=said))
        return tuple(self.found)
