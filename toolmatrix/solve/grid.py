"""A grid of two components: what facts say of each pair of releases by themselves, without solving for the rest.

A cell is `yes`, `no` or `unknown` (no fact speaks), with the evidence and the records that say so.
Conditions on further components must hold for all of their releases that the request admits, or
the fact is left out.
"""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.solve.assemble import Assembly


class GridCell(Value):
    """One pair: the word, its evidence, and the numbers of the records that say so."""

    word: str
    evidence: str
    records: tuple[int, ...]


_UNKNOWN = GridCell(word="unknown", evidence="unknown", records=())


class Grid(Value):
    """Rows and columns by release; `spoken`: whether any release of the rows ever goes with a column."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell, ...], ...]
    spoken: tuple[bool, ...]


def grid(assembly: Assembly, target: str, rows: str, columns: str) -> Grid:
    """The grid of two components over the releases that the request admits."""
    maker = _Grid(assembly, target, rows, columns)
    down, across = maker.admitted(rows), maker.admitted(columns)
    return Grid(
        rows=tuple(assembly.component(rows).versions[place] for place in down),
        columns=tuple(assembly.component(columns).versions[place] for place in across),
        cells=tuple(tuple(maker.cell(row, column) for column in across) for row in down),
        spoken=tuple(bool(maker.ever >> column + 1 & 1) for column in across),
    )


class _Statement(NamedTuple):
    """A fact or row about the pair, as masks of its subject and the other; `turned`: columns are its subject."""

    mask: int
    allowed: int
    evidence: str
    cites: int
    turned: bool


class _Grid:
    def __init__(self, assembly: Assembly, target: str, rows: str, columns: str) -> None:
        self.assembly = assembly
        self.target = target
        self.hard = list(self.statements(rows, columns, turned=False)) + list(
            self.statements(columns, rows, turned=True)
        )
        self.soft = list(self.rows(rows, columns, turned=False)) + list(
            self.rows(columns, rows, turned=True)
        )
        self.ever = 0
        for said in (*self.hard, *self.soft):
            self.ever |= (said.mask if said.allowed > 1 else 0) if said.turned else said.allowed

    def admitted(self, component: str) -> list[int]:
        part = self.assembly.component(component)
        asked = self.assembly.asked.get((self.target, component), -1)
        usable = asked & ~part.yanked
        at = self.assembly.request.at
        return [
            place
            for place, date in enumerate(part.dates)
            if usable >> place + 1 & 1 and not (at and date > at)
        ]

    def statements(self, subject: str, other: str, *, turned: bool) -> Iterator[_Statement]:
        """Hard facts about the pair."""
        for binding in self.assembly.component(subject).bindings:
            if (
                binding.component == other
                and binding.kind in ("requires", "limits")
                and self.certain(binding.conditions)
            ):
                yield _Statement(
                    binding.mask, binding.allowed, binding.evidence, binding.cites, turned
                )

    def rows(self, subject: str, other: str, *, turned: bool) -> Iterator[_Statement]:
        """Rows that speak of both."""
        for group in self.assembly.component(subject).row_groups:
            if other in group.components[1:] and self.certain(group.conditions):
                place = group.components.index(other, 1)
                known = words.weaker(group.evidence, group.evidences[place])
                for mask, allowed, cites in zip(
                    group.subjects, group.columns[place], group.cites, strict=True
                ):
                    yield _Statement(mask, allowed, known, cites, turned)

    def certain(self, conditions: Mapping[str, int]) -> bool:
        """True if conditions hold whatever else is chosen: only the fixed context can promise that."""
        left = self.assembly.remaining[self.target]
        return all(not left.get(name, 1) & ~mask for name, mask in conditions.items())

    def cell(self, row: int, column: int) -> GridCell:
        """Hard facts decide; a tested row says yes with its own evidence where no hard fact does."""
        allowing: list[_Statement] = []
        for said in self.hard:
            subject, other = (column, row) if said.turned else (row, column)
            if not said.mask >> subject + 1 & 1:
                continue
            if not said.allowed >> other + 1 & 1:
                records = self.cited(said.cites, subject)
                return GridCell(word="no", evidence=said.evidence, records=records)
            allowing.append(said)
        testing = [
            said
            for said in self.soft
            if said.mask >> (column if said.turned else row) + 1 & 1
            and said.allowed >> (row if said.turned else column) + 1 & 1
        ]
        found = allowing or testing
        if not found:
            return _UNKNOWN
        best = max(found, key=lambda said: words.rank(said.evidence))
        return GridCell(
            word="yes", evidence=best.evidence, records=self.cited(best.cites, row, column)
        )

    def cited(self, number: int, *places: int) -> tuple[int, ...]:
        bits = 0
        for place in places:
            bits |= 2 << place
        cites = self.assembly.index.cites(number)
        return tuple(cite.record for cite in cites if cite.touches(bits))
