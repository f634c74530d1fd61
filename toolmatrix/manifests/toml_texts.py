"""Where the strings of a TOML file are, its values by kind, and constraints as Poetry writes them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from toolmatrix.manifests.model import FileText, Traced

_HEAD = re.compile(r"^[^\S\n]*(?:\[(?P<table>[^\]\n]*)\]|(?P<key>[\w.-]+)[^\S\n]*=)", re.MULTILINE)


class TomlTexts:
    """The positions of the strings of a TOML file: its parser has none, so they are searched for in their order.

    All heads and all texts between two quotes are looked up once, as any of them may be asked for any number of times.
    """

    def __init__(self, source: FileText) -> None:
        self.source = source
        self.position = 0
        self.heads: dict[str, int] = {}
        for match in _HEAD.finditer(source.text):
            self.heads.setdefault(match["table"] or match["key"], match.start())
        self.quoted = [_between(source.text, quote) for quote in "\"'"]

    def section(self, header: str) -> None:
        """Look from the head of a table on, if it is there."""
        self.position = self.heads.get(header, self.position)

    def of(self, text: str) -> Traced:
        """The next place of a string; where it is not found as it is, the place of nothing."""
        for quoted in self.quoted:
            places = quoted.get(text, [])
            at = bisect_left(places, self.position)
            if at < len(places):
                return self.source.whole()[places[at] + 1 : places[at] + 1 + len(text)]
        return Traced(self.source, text, [min(self.position, len(self.source.text))] * len(text))


def _between(text: str, quote: str) -> dict[str, list[int]]:
    """The texts between two quotes that follow each other, with the places of the first."""
    positions: dict[str, list[int]] = {}
    before, *parts = text.split(quote)
    position = len(before)
    for part in parts:
        positions.setdefault(part, []).append(position)
        position += len(part) + 1
    # Nothing follows the last quote.
    if parts:
        positions[parts[-1]].pop()
    return positions


def table(value: object) -> Mapping[str, Any]:
    """A table; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[Mapping[str, Any]]:
    """The tables of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def caret(version: str) -> str:
    """A constraint of Poetry as PEP 440 writes it: `^1.2` is all up to what may break (Dependency specification)."""
    return ",".join(_clause(part.strip()) for part in version.split(",") if part.strip()) or "*"


def _clause(part: str) -> str:
    sign, rest = part[:1], part[1:].strip()
    numbers = rest.split(".")
    if sign == "^" and all(number.isdecimal() for number in numbers):
        first = next((at for at, number in enumerate(numbers) if int(number)), len(numbers) - 1)
        top = [*numbers[:first], str(int(numbers[first]) + 1)]
        return f">={rest},<{'.'.join(top)}"
    if sign == "~" and not rest.startswith("="):
        top = numbers[:2] if len(numbers) > 1 else numbers[:1]
        if all(number.isdecimal() for number in top):
            return f">={rest},<{'.'.join([*top[:-1], str(int(top[-1]) + 1)])}"
    return part if sign in "<>=!~*" else f"=={part}"
