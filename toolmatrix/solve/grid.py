"""A grid of two components: what facts say of each pair of releases by themselves, without solving for the rest.

A cell is `yes`, `no` or `unknown` (no fact speaks), with the evidence and the records that say so.
Conditions on further components must hold for all of their releases that the request admits, or
the fact is left out.
"""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from toolmatrix.solve.assemble import Assembly


class Cell(Value):
    """One pair: the word, its evidence, and the numbers of the records that say so."""

    word: str
    evidence: str
    records: tuple[int, ...]


_UNKNOWN = Cell(word="unknown", evidence="unknown", records=())


class Grid(Value):
    """Rows and columns by release; `spoken`: whether any release of the rows ever goes with a column."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    spoken: tuple[bool, ...]


def grid(assembly: Assembly, target: str, rows: str, columns: str) -> Grid:
    """The grid of two components over the releases that the request admits."""
    maker = _Grid(assembly, target, rows, columns)
    down, across = maker.admitted(rows), maker.admitted(columns)
    return Grid(
        rows=tuple(assembly.component(rows)["versions"][place] for place in down),
        columns=tuple(assembly.component(columns)["versions"][place] for place in across),
        cells=tuple(tuple(maker.cell(row, column) for column in across) for row in down),
        spoken=tuple(bool(maker.ever >> column + 1 & 1) for column in across),
    )


class _Grid:
    def __init__(self, assembly: Assembly, target: str, rows: str, columns: str) -> None:
        self.assembly = assembly
        self.target = target
        self.hard = list(self.statements(rows, columns, flip=False)) + list(
            self.statements(columns, rows, flip=True)
        )
        self.soft = list(self.rows(rows, columns, flip=False)) + list(
            self.rows(columns, rows, flip=True)
        )
        self.ever = 0
        for mask, allowed, _, _, turned in (*self.hard, *self.soft):
            self.ever |= (mask if allowed > 1 else 0) if turned else allowed

    def admitted(self, component: str) -> list[int]:
        part = self.assembly.component(component)
        asked = self.assembly.asked.get((self.target, component), -1)
        usable = asked & ~part["yanked"]
        at = self.assembly.request.at
        return [
            place
            for place, date in enumerate(part["dates"])
            if usable >> place + 1 & 1 and not (at and date > at)
        ]

    def statements(
        self, subject: str, other: str, *, flip: bool
    ) -> Iterator[tuple[int, int, str, int, bool]]:
        """Hard: (mask of the subject, allowed of the other, evidence, cites, whether the pair is turned)."""
        for kind, when, component, allowed, _, evidence, cites in self.assembly.component(subject)[
            "bindings"
        ]:
            if component == other and kind in ("requires", "limits") and self.certain(when[1:]):
                yield when[0][1], allowed, evidence, cites, flip

    def rows(
        self, subject: str, other: str, *, flip: bool
    ) -> Iterator[tuple[int, int, str, int, bool]]:
        part = self.assembly.component(subject)
        for context, names, evidences, evidence, _, columns, cites in part["vouches"]:
            if other in names[1:] and self.certain(context):
                place = names.index(other, 1)
                known = words.weaker(evidence, evidences[place])
                for mask, allowed, cited in zip(columns[0], columns[place], cites, strict=True):
                    yield mask, allowed, known, cited, flip

    def certain(self, terms: Sequence[Any]) -> bool:
        """Whether conditions hold whatever else is chosen: only the fixed context can promise that."""
        left = self.assembly.left[self.target]
        return all(not left.get(name, 1) & ~mask for name, mask in terms)

    def cell(self, row: int, column: int) -> Cell:
        """Hard facts decide; a row that vouches for the pair says yes with its own evidence where no hard fact does."""
        allowing: list[tuple[str, int]] = []
        for mask, allowed, evidence, cites, flip in self.hard:
            subject, other = (column, row) if flip else (row, column)
            if not mask >> subject + 1 & 1:
                continue
            if not allowed >> other + 1 & 1:
                return Cell(word="no", evidence=evidence, records=self.cited(cites, subject))
            allowing.append((evidence, cites))
        vouching = [
            (evidence, cites)
            for mask, allowed, evidence, cites, flip in self.soft
            if mask >> (column if flip else row) + 1 & 1
            and allowed >> (row if flip else column) + 1 & 1
        ]
        found = allowing or vouching
        if not found:
            return _UNKNOWN
        evidence, cites = max(found, key=lambda part: words.rank(part[0]))
        return Cell(word="yes", evidence=evidence, records=self.cited(cites, row, column))

    def cited(self, cites: int, *places: int) -> tuple[int, ...]:
        from toolmatrix.facts.index import in_ranges

        bits = 0
        for place in places:
            bits |= 2 << place
        return tuple(
            number
            for ranges, number, _, _ in self.assembly.index.cites(cites)
            if in_ranges(ranges, bits)
        )
