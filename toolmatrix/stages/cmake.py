"""How CMake shows what a compiler printed: in its log with every backslash twice, in an error wrapped like prose."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MARK = "#$"
# Characters of a line of `message()` behind its indent (CMake, cmMessenger: 77 with it).
_WIDTH = 75
_EVENT = re.compile(r' {4}kind: "[a-z_]+-v\d+"\s*')
_IN_EVENT = " " * 6
# A name that a shell gets in quotes, as CMakeConfigureLog.yaml has it; no driver prints that.
_DOUBLED = re.compile(r'"\\\\"[^"]*\\\\""')


def plain(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
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
    """Each marked line joined with those that follow in its paragraph, where they are as CMake wraps words.

    CMake breaks a line where the next word does not fit, so a line with room for it was not wrapped.
    """
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
    """Whether a line is the next of a paragraph: its first word did not fit on the last."""
    if not content or (len(last) > _WIDTH and " " in last.removeprefix(_MARK).strip()):
        return False
    return len(last) + 1 + len(content.partition(" ")[0]) > _WIDTH
