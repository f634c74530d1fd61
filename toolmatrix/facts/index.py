"""The compiled index: what a `resolve` reads instead of YAML; `writer` makes it.

One file: a line `toolmatrix-index/1 CRC HEADER`, a JSON header of HEADER bytes with that CRC, then the sections it
points to: one per component (its releases and what is said with it as the subject), then the records (claims with their
sources, rows as printed). Sections and records are read one by one as an answer needs them, and each has a checksum of
its own, so that what a request does not reach costs nothing and damage is seen before anything of it is used.
It is JSON and masks throughout: nothing in it can run. Equal facts make equal bytes.
"""

from __future__ import annotations

import io
import zlib

from toolmatrix.errors import MatrixError, Position
from toolmatrix.facts.versions import Scale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

FORMAT = "toolmatrix-index/1"


class IndexDamaged(Exception):
    """Not an index, an index of another format, or a damaged one: rebuild it."""


CLAIM = (
    *("id", "row", "kind", "when", "component", "selector", "alternatives"),
    *("evidence", "source", "where", "says", "note", "rule", "beside"),
)
RELEASE = (
    "id",
    "kind",
    "component",
    "selector",
    "evidence",
    "source",
    "where",
    "date",
    "attributes",
)
ROW = ("id", "kind", "table", "about", "subject", "cells", "evidence", "source", "where", "note")
_SHAPES = (CLAIM, RELEASE, ROW)
_ENTRY = 8
"""Bytes of an entry of the record table: where the record ends, and its CRC."""


class Index:
    """Read access to an index file. Raises IndexDamaged when it is not one."""

    __slots__ = (
        *("_body", "_file", "_head", "_loaded", "_repair", "_scales", "_size", "_table"),
        *("header", "path"),
    )

    def __init__(
        self, file: BinaryIO, path: str = "", repair: Callable[[Index], bytes] | None = None
    ) -> None:
        """`repair` makes the index anew when a part that is read later turns out to be damaged."""
        self._file = file
        self.path = path
        self._repair = repair
        self._size = file.seek(0, 2)
        file.seek(0)
        self._head = file.readline(120)
        try:
            name, crc, length = self._head.decode("ascii").split()
            if name != FORMAT or not (crc.isdigit() and length.isdigit()):
                raise IndexDamaged(path)
            header = file.read(min(int(length), self._size))
            if len(header) != int(length) or int(crc) != zlib.crc32(header):
                raise IndexDamaged(path)
            self.header: dict[str, Any] = _load(header)
            usual = self.header.pop("usual")
            components = self.header["components"]
            self.header["components"] = {name: usual | components[name] for name in components}
        except (ValueError, KeyError, RecursionError) as error:
            raise IndexDamaged(path) from error
        self._body = len(self._head) + len(header)
        self._loaded: dict[str | int, Any] = {}
        self._scales: dict[str, Scale] = {}
        self._table: bytes | None = None

    def _part(self, start: int, length: int, crc: int) -> bytes:
        """Bytes of the file; where they are damaged, those of a new one that begins with the same line."""
        try:
            self._file.seek(self._body + start)
            data = self._file.read(min(length, self._size))
        except OSError:
            data = b""
        if len(data) == length and zlib.crc32(data) == crc:
            return data
        if self._repair is None:
            raise IndexDamaged(self.path)
        repair, self._repair = self._repair, None
        made = repair(self)
        if not made.startswith(self._head):
            raise MatrixError(
                "the matrix changed while it was read",
                where=Position(self.path),
                expected="the files the index was made from",
                found="others",
                help="run the command again",
            )
        self._file = io.BytesIO(made)
        self._size = len(made)
        return self._part(start, length, crc)

    def _slice(self, name: str) -> bytes:
        start, length, crc = self.header["sections"][name]
        return self._part(start, length, crc)

    def section(self, name: str) -> Any:
        """A section as JSON, read once."""
        if name not in self._loaded:
            self._loaded[name] = _load(self._slice(name))
        return self._loaded[name]

    def component(self, name: str) -> dict[str, Any]:
        """The section of a component."""
        found: dict[str, Any] = self.section("c:" + name)
        return found

    def scale(self, name: str) -> Scale:
        """The releases of a component, for reading selectors."""
        if name not in self._scales:
            scheme = self.header["components"][name]["scheme"]
            self._scales[name] = Scale(scheme, self.component(name)["versions"])
        return self._scales[name]

    def cites(self, number: int) -> list[tuple[list[int], int, str, list[str]]]:
        """The claims behind a binding or row: (ranges of subject releases, record of the claim, evidence, rules)."""
        found: list[tuple[list[int], int, str, list[str]]] = self._read(number)
        return found

    def record(self, number: int) -> dict[str, Any]:
        """One record: a claim, a release or a row, as a dictionary."""
        shape, *values = self._read(number)
        return dict(zip(_SHAPES[shape], values, strict=True))

    def _read(self, number: int) -> Any:
        if number not in self._loaded:
            if self._table is None:
                self._table = self._slice("table")
            entries = self._table[max(0, number - 1) * _ENTRY : (number + 1) * _ENTRY]
            end, crc = _entry(entries[-_ENTRY:])
            start = _entry(entries[:_ENTRY])[0] if number else 0
            records = self.header["sections"]["records"][0]
            data = self._part(records + start, end - start, crc)
            self._loaded[number] = _load(data)
        return self._loaded[number]


def _entry(entry: bytes) -> tuple[int, int]:
    """Where a record ends, and its CRC."""
    return int.from_bytes(entry[:4], "little"), int.from_bytes(entry[4:], "little")


def in_ranges(ranges: Sequence[int], mask: int) -> bool:
    """Whether a mask has a bit inside the ranges."""
    inside = 0
    for place in range(0, len(ranges), 2):
        inside |= (2 << ranges[place + 1]) - (1 << ranges[place])
    return bool(mask & inside)


def _load(data: bytes) -> Any:
    """JSON by the C scanner behind `json`, which itself takes as long to import as all sections to read."""
    try:
        from _json import make_scanner

        scan = make_scanner(_Plain)  # type: ignore[arg-type]
    except (ImportError, AttributeError):
        import json

        return json.loads(data)
    text = data.decode()
    try:
        value, end = scan(text, 0)
    except StopIteration as error:
        raise ValueError(f"no JSON value at {error.value}") from error
    if end != len(text):
        raise ValueError(f"more than one JSON value, at {end}")
    return value


class _Plain:
    """What the scanner asks of its decoder: plain values, no hooks."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None
