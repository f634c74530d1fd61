"""Unified patches applied without a tool: every line that a patch takes away or keeps has to stand where it says."""

from __future__ import annotations

import re

HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def applied(text: str, patch: str) -> str:
    """The text of one file after a patch."""
    old = text.splitlines(keepends=True)
    lines = patch.splitlines(keepends=True)[2:]
    found: list[str] = []
    place = 0
    for at, line in enumerate(lines):
        if line.startswith("\\"):
            continue
        if hunk := HUNK.match(line):
            found += old[place : int(hunk[1]) - 1]
            place = int(hunk[1]) - 1
            continue
        told = line[1:]
        if at + 1 < len(lines) and lines[at + 1].startswith("\\"):
            told = told.removesuffix("\n")
        if line[0] in " -":
            assert old[place] == told
            place += 1
        if line[0] in " +":
            found.append(told)
    return "".join([*found, *old[place:]])
