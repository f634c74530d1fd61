"""The compiled index: what a `resolve` reads instead of YAML.

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO, TypeVar

    from toolmatrix.facts.compile import Compiled, Reading, Vouch
    from toolmatrix.facts.model import Claim, Release, Row, Source

    _Part = TypeVar("_Part")

FORMAT = "toolmatrix-index/1"


class IndexDamaged(Exception):
    """Not an index, an index of another format, or a damaged one: rebuild it."""


_CLAIM = (
    *("id", "row", "kind", "when", "component", "selector", "alternatives"),
    *("evidence", "source", "where", "says", "note", "rule"),
)
_RELEASE = (
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
_ROW = ("id", "kind", "table", "about", "subject", "cells", "evidence", "source", "where", "note")
_SHAPES = (_CLAIM, _RELEASE, _ROW)
_ENTRY = 8
"""Bytes of an entry of the record table: where the record ends, and its CRC."""


class Index:
    """Read access to an index file. Raises IndexDamaged when it is not one."""

    __slots__ = (
        *("_body", "_file", "_head", "_loaded", "_repair", "_size", "_table"),
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
        except (ValueError, RecursionError) as error:
            raise IndexDamaged(path) from error
        self._body = len(self._head) + len(header)
        self._loaded: dict[str | int, Any] = {}
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


class _Writer:
    """Numbers records as they are needed and gathers sections."""

    def __init__(self, compiled: Compiled, files: Mapping[str, int]) -> None:
        self.compiled = compiled
        self.files = files
        self.sources: Mapping[str, Source] = compiled.matrix.sources
        self.records: list[bytes] = []
        self.ids: dict[str, int] = {}
        self.sections: dict[str, bytes] = {}

    def put(self, record: Any) -> int:
        self.records.append(_dump(record))
        return len(self.records) - 1

    def claim(self, claim: Claim) -> int:
        if claim.id not in self.ids:
            self.ids[claim.id] = self.put([0, *(getattr(claim, key) for key in _CLAIM)])
        return self.ids[claim.id]

    def release(self, release: Release) -> int:
        name = f"{release.component}=={release.version}"
        if name not in self.ids:
            given = {
                "kind": "release",
                "selector": release.version,
                "attributes": dict(sorted(release.attributes.items())),
            }
            self.ids[name] = self.put(
                [1, *(given[key] if key in given else getattr(release, key) for key in _RELEASE)]
            )
        return self.ids[name]

    def row(self, row: Row) -> int:
        return self.put([2, *("row" if key == "kind" else getattr(row, key) for key in _ROW)])

    def cites(self, cites: list[tuple[int, Reading]]) -> int:
        return self.put(
            [
                [_ranges(mask), self.claim(reading.claim), reading.evidence, reading.rules]
                for mask, reading in cites
            ]
        )

    def components(self) -> None:
        matrix = self.compiled.matrix
        bindings = _by(self.compiled.bindings, lambda binding: binding.when[0][0])
        vouches = _by(self.compiled.vouches, lambda vouch: vouch.terms[0][0])
        disputes = _by(self.compiled.disputes, lambda dispute: dispute.subject)
        for name, scale in self.compiled.scales.items():
            releases = [matrix.releases[name, version] for version in scale.versions]
            self.sections["c:" + name] = _dump(
                {
                    "versions": scale.versions,
                    "dates": [release.date for release in releases],
                    "yanked": sum(
                        2 << place for place, release in enumerate(releases) if release.yanked
                    ),
                    "releases": [self.release(release) for release in releases],
                    "bindings": [
                        [
                            *(
                                binding.kind,
                                binding.when,
                                binding.component,
                                binding.allowed,
                                binding.alternatives,
                            ),
                            *(binding.evidence, self.cites(list(binding.cites))),
                        ]
                        for binding in bindings.get(name, ())
                    ],
                    "vouches": self.vouches(vouches.get(name, ())),
                    "disputes": [
                        [
                            *(
                                dispute.component,
                                dispute.mask,
                                dispute.rival.when[1:],
                                self.claim(dispute.rival.claim),
                            ),
                            *(
                                dispute.rival.evidence,
                                self.claim(dispute.deciding.claim),
                                dispute.rival.allowed,
                            ),
                            dispute.rival.claim.kind,
                        ]
                        for dispute in disputes.get(name, ())
                    ],
                }
            )

    def vouches(self, vouches: Sequence[Vouch]) -> list[Any]:
        """Rows that vouch, those about the same components with the same evidence under one head."""
        heads: dict[Any, list[Any]] = {}
        for vouch in vouches:
            names, masks, evidences = zip(*vouch.terms, strict=True)
            cells = [(mask, cell) for mask, held in vouch.cites for cell in held]
            carried = any(cell.claim.carried for _, cell in cells)
            head = (vouch.context, names, evidences, vouch.evidence, carried)
            heads.setdefault(head, []).append([masks, self.cites(cells)])
        return [[*head, rows] for head, rows in heads.items()]

    def finish(self) -> bytes:
        matrix = self.compiled.matrix
        self.components()
        for _, row in sorted(matrix.rows.items()):
            self.ids[row.id] = self.row(row)
        for _, claim in sorted(matrix.claims.items()):
            self.claim(claim)
        self.sections["ids"] = _dump(dict(sorted(self.ids.items())))
        self.sections["sources"] = _dump(
            {
                name: {"title": source.title, "at": source.at, "read": source.read}
                for name, source in sorted(self.sources.items())
            }
        )
        self.sections["records"] = b"".join(self.records)
        end = 0
        table = []
        for record in self.records:
            end += len(record)
            table += [end.to_bytes(4, "little"), zlib.crc32(record).to_bytes(4, "little")]
        self.sections["table"] = b"".join(table)
        return self.join()

    def join(self) -> bytes:
        places: dict[str, tuple[int, int, int]] = {}
        body = b"".join(self.sections.values())
        start = 0
        for name, data in self.sections.items():
            places[name] = (start, len(data), zlib.crc32(data))
            start += len(data)
        header = _dump(self.head() | {"sections": places})
        return f"{FORMAT} {zlib.crc32(header)} {len(header)}\n".encode() + header + body

    def head(self) -> dict[str, Any]:
        matrix = self.compiled.matrix
        return {
            "digest": self.compiled.digest,
            "date": matrix.date,
            "files": dict(sorted(self.files.items())),
            "facts": len(matrix.claims) + len(matrix.releases),
            "components": {
                name: {key: getattr(part, key) for key in part._fields}
                for name, part in matrix.components.items()
            },
            "targets": {
                name: {
                    "context": dict(sorted(part.context.items())),
                    "accelerator": part.accelerator,
                    "policies": dict(sorted(part.policies.items())),
                }
                for name, part in matrix.targets.items()
            },
            "rules": {
                name: {"evidence": rule.evidence, "reason": rule.reason}
                for name, rule in sorted(matrix.rules.items())
            },
        }


def _by(parts: Sequence[_Part], subject: Callable[[_Part], str]) -> dict[str, list[_Part]]:
    found: dict[str, list[_Part]] = {}
    for part in parts:
        found.setdefault(subject(part), []).append(part)
    return found


def _entry(entry: bytes) -> tuple[int, int]:
    """Where a record ends, and its CRC."""
    return int.from_bytes(entry[:4], "little"), int.from_bytes(entry[4:], "little")


def write(compiled: Compiled, files: Mapping[str, int]) -> bytes:
    """The bytes of the index of a compiled matrix; `files` are the sizes of what it was made from, by relative name."""
    return _Writer(compiled, files).finish()


def _ranges(mask: int) -> list[int]:
    """The set bits as first, last, first, last, ...: short where a mask of hundreds of releases would be long."""
    found: list[int] = []
    place = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        length = (~mask & mask + 1).bit_length() - 1
        found += [place + skipped, place + skipped + length - 1]
        place += skipped + length
        mask >>= length
    return found


def in_ranges(ranges: Sequence[int], mask: int) -> bool:
    """Whether a mask has a bit inside the ranges."""
    return any(
        mask >> ranges[place] & (2 << ranges[place + 1] - ranges[place]) - 1
        for place in range(0, len(ranges), 2)
    )


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


def _dump(value: Any) -> bytes:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode()
