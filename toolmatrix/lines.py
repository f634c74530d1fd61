"""Prefixes that CI systems, build tools and terminals put in front of a line, taken off again."""

from __future__ import annotations

import re
from typing import AnyStr

MARK = "#$ "
"""The prefix of all that nvcc says of its plan."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[\]_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_ANSI_BYTES = re.compile(_ANSI.pattern.encode())

# Prefixes that only log writers put at the beginning of a line; each takes the one blank after it.
# Every repetition has a bound, so that no line takes long to match.
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DATE = rf"\d{{4}}-\d\d-\d\d[T ]{_TIME}(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_SURE = re.compile(
    rf"(?:"
    rf"{_DATE}(?: (?:\d\d[OE][ +]|std(?:out|err) [FP] |{_LEVEL} [\w.-]{{1,80}}: )|: | )?"
    # GitHub, GitLab (with stream and continuation), Azure, docker --timestamps, Kubernetes, Python's logging
    rf"|##\[[a-z]{{1,20}}\]"  # Azure
    rf"|\[(?:{_DATE}|{_TIME})\] ?"  # Jenkins timestamper, GitLab
    rf"|{_TIME} "  # the same without brackets
    rf"|\[\d{{1,6}}/\d{{1,6}}\] "  # ninja
    rf"|\[ ?\d{{1,3}}%\] "  # make as CMake writes it
    rf"|#\d{{1,4}} \d{{1,6}}\.\d{{1,3}} "  # buildkit, --progress=plain
    rf"|(?!WARN)[A-Za-z][\w.-]{{0,60}} {{1,40}}\| "  # docker compose, but no level, which says how bad it is
    rf"|[^\t\"]{{1,80}}\t(?=[^\t\"]{{0,80}}\t?\ufeff?{_DATE})"  # gh run view --log: job and step
    rf"|\d{{1,4}}>"  # MSBuild
    rf"|│ "  # a panel of rich
    rf"|E {{3}}(?=[#\w [])"  # pytest
    rf"|(?: {{5}}|  >> )\d[\d ]{{5}} "  # Spack
    rf")"
)
# Pieces that are only believed in front of the mark of nvcc.
_MAYBE = re.compile(
    r"(?:"
    r"\s+|\+ "
    r"|\[[^\]\"]{1,80}\]"
    r"|#\d{1,4}(?= )"
    r"|[\w.@/+-]{1,80}(?:\[\d{1,9}\])?[:|>]"  # make[2]:, 12: of ctest, sshd[3]:, name>
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,80}"  # syslog
    r"|[\w.-]{1,60}(?= {1,40}\|)|\||[>:-]"
    r")"
)
# Characters that may precede the mark.
_FURTHEST = 400


def strip_prefixes(line: str) -> str:
    """A line as its program wrote it: no line end, no colour, nothing that a log writer put in front."""
    # Most lines of a dry run need nothing else.
    if line.startswith(MARK):
        if "\x1b" not in line and "\r" not in line:
            return line.rstrip("\n")
    elif not line:
        return line
    line = line.rstrip("\r\n")
    if "\x1b" in line:
        line = without_colours(line)
    # A progress bar writes its line over and over; what it wrote last stays on the screen.
    if "\r" in line:
        line = line[line.rindex("\r") + 1 :]
    end = _run(_SURE, line, _after_mark(line))
    if line.startswith(MARK, end):
        return line[end:]
    mark = line.find(MARK, end, end + _FURTHEST)
    if mark > end and _run_of_both(line, end, mark) == mark:
        return line[mark:]
    return line[end:]


def without_colours(text: AnyStr) -> AnyStr:
    """Text of one or more lines, or its bytes, without what a terminal would obey; the lines stay."""
    if isinstance(text, bytes):
        return _ANSI_BYTES.sub(b"", text)
    return _ANSI.sub("", text)


def _after_mark(line: str) -> int:
    # Logs of GitHub have a byte order mark at their beginning, also behind what `gh run view --log` puts there.
    return 1 if line.startswith("\ufeff") else 0


def _run(piece: re.Pattern[str], line: str, start: int) -> int:
    while (match := piece.match(line, start)) is not None and match.end() > start:
        start = _after_mark(line[match.end() : match.end() + 1]) + match.end()
    return start


def _run_of_both(line: str, start: int, end: int) -> int:
    while start < end:
        match = _SURE.match(line, start, end) or _MAYBE.match(line, start, end)
        if match is None or match.end() == start:
            break
        start = match.end()
    return start
