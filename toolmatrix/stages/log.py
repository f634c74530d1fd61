"""From the text of a log to plans: clean lines, one reader for each driver, one plan for each invocation.

CMake shows what a compiler printed in its own ways: in its log with every backslash twice, in an error wrapped like
prose. Both are undone before a reader sees a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TextIO, TypeAlias

from toolmatrix.lines import MARK, clean
from toolmatrix.process import uncollected
from toolmatrix.stages.model import Diagnostic, Log

if TYPE_CHECKING:
    from toolmatrix.stages.drivers.clang import ClangReader
    from toolmatrix.stages.drivers.nvcc import NvccReader
    from toolmatrix.stages.model import Plan

    # Drivers say lines; `read` takes those that are its own, `message` hears of the others while it spoke last.
    Reader: TypeAlias = "ClangReader | NvccReader"


# Characters of the longest line that is read; a shell takes far less for a command.
LONGEST = 4 << 20

_LINES = 'give it the open file, `open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
_BLOCK = 1 << 20
# So many lines before the first that a reader takes are kept, as they may say why a driver gave up.
_EARLY = 20
# What a text without a plan is, each worse than the one before.
_NO_PLAN = (
    "the text is empty",
    "no line is one of a dry run of nvcc, hipcc or clang",
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

    rest = iter(lines)
    first = next(rest, "")
    if not isinstance(first, str):
        raise TypeError(f"the lines of a log are str, not {type(first).__name__}: {_LINES}")
    with uncollected():
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
            said = f"a line of more than {LONGEST} characters is not a command; it is left out"
            diagnostics.append(Diagnostic(line=number, severity="warning", text=said))
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
        plans = [_doubted(plan) if plan.unread else plan for plan in plans]
    elif not plans:
        diagnostics.append(Diagnostic(line=0, severity="error", text=_NO_PLAN[doubt]))
    return Log(
        plans=tuple(sorted(plans, key=lambda plan: plan.line)), diagnostics=tuple(diagnostics)
    )


def _doubted(plan: Plan) -> Plan:
    said = Diagnostic(line=plan.line, severity="warning", text=plan.unread)
    return plan.replace(diagnostics=(said,))


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
    held = ""
    begin = 0
    last = ""
    indent = ""
    after_blank = False
    for number, line in enumerate(lines, 1):
        if held:
            content = line.strip()
            if content[:2] != _MARK and line.startswith(indent) and _goes_on(last, content):
                held += f" {content}"
                last = content
                continue
            yield begin, held
            held = ""
        if after_blank and line[:1] == " " and line.lstrip()[:2] == _MARK:
            held, begin, last = line.rstrip(), number, line.strip()
            indent = line[: line.index(_MARK)]
        else:
            yield number, line
        after_blank = line[:1] in "\r\n " and not line.strip()
    if held:
        yield begin, held


def _goes_on(last: str, content: str) -> bool:
    # CMake breaks a line where the next word does not fit, so a line with room for it was not wrapped; nor was one that
    # is too long although it could have been broken.
    if not content or (len(last) > _WIDTH and " " in last.removeprefix(_MARK).strip()):
        return False
    return len(last) + 1 + len(content.partition(" ")[0]) > _WIDTH
