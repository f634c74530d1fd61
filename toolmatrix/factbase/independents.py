"""Packages of Python alone, in rows of one table: each becomes a component when something names it, and not before.

A row lists releases with their days, and what METADATA of each says, so that only what is asked for is worked out. The
cells are `1.0@2020-01-01 1.1+30 1.2!+5` (releases, the oldest first, with the days since the one before; `!` is
yanked), `>=3.8: 1.1..; >=3.6: ..1.0` (a Requires-Python and the runs of releases that declare it, open at the oldest
or the newest one), and `numpy <2 if python=3.8-3.9: 1.0 1.2..` likewise (a package, a selector and conditions). The
last cell is how many releases the index lists, read or not.
"""

from __future__ import annotations

from toolmatrix.factbase.compiled import union
from toolmatrix.factbase.records import (
    MINIMUM,
    PURE,
    BindingGroup,
    CitedClaim,
    ClaimRecord,
    ComponentFacts,
    ReleaseRecord,
)
from toolmatrix.factbase.versions import SelectorError, key
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import ComponentHead

_PYTHON = "python"
_OPEN = ".."


class ReleaseStatement(NamedTuple):
    """What some releases say of a component: its selector, under conditions; `runs` are first and last places."""

    component: str
    selector: str
    conditions: Mapping[str, str]
    runs: Sequence[tuple[int, int]]


class IndependentRow(NamedTuple):
    """A row as it was read: releases with their days, the oldest first, the yanked ones, and the statements.

    The index has as many releases as are `published`.
    """

    name: str
    versions: Sequence[str]
    dates: Sequence[str]
    yanked: Sequence[int]
    pythons: Sequence[ReleaseStatement]
    requires: Sequence[ReleaseStatement]
    published: int


def read(cells: Sequence[str]) -> IndependentRow:
    """A row of the table. Raises ValueError for what cannot be read."""
    name, releases, pythons, requires, published = cells
    versions, dates, yanked = _releases(releases.split())
    places = {version: place for place, version in enumerate(versions)}
    return IndependentRow._make(
        (
            name,
            versions,
            dates,
            yanked,
            [*_statements(pythons, places, _PYTHON)],
            [*_statements(requires, places)],
            int(published),
        )
    )


def _releases(words: Sequence[str]) -> tuple[list[str], list[str], list[int]]:
    from datetime import date, timedelta

    versions: list[str] = []
    dates: list[str] = []
    yanked: list[int] = []
    day: date | None = None
    for word in words:
        version = word
        for sign in "@+-":
            version, mark, distance = word.partition(sign)
            # Days between releases are shorter to write than dates, and few releases have none.
            if mark:
                ahead = timedelta(int(mark + distance)) if sign != "@" else timedelta()
                day = (day or date.min) + ahead if sign != "@" else date.fromisoformat(distance)
                break
        else:
            distance = ""
        if version.endswith("!"):
            version = version[:-1]
            yanked.append(len(versions))
        # What is no version would be admitted by no selector, and no error would say so.
        key(version)
        versions.append(version)
        dates.append(day.isoformat() if distance and day else "")
    if not versions:
        raise ValueError("no release")
    return versions, dates, yanked


def _statements(
    text: str, places: Mapping[str, int], component: str = ""
) -> Iterator[ReleaseStatement]:
    for entry in filter(None, text.split("; ")):
        stated, colon, spans = entry.rpartition(": ")
        if not colon:
            raise ValueError(f"no releases in `{entry}`")
        stated, _, when = stated.partition(" if ")
        # A Requires-Python needs no name: its cell has those of Python alone.
        name, _, selector = stated.partition(" ") if not component else (component, "", stated)
        conditions = dict(_condition(word) for word in when.split(",") if word)
        runs = [_run(span, places) for span in spans.split()]
        yield ReleaseStatement._make((name, selector, conditions, runs))


def _condition(word: str) -> tuple[str, str]:
    name, sign, selector = word.partition("=")
    if not sign:
        raise ValueError(f"`{word}` is no condition")
    return name, selector


def _run(span: str, places: Mapping[str, int]) -> tuple[int, int]:
    first, dots, last = span.partition(_OPEN)
    ends = first or next(iter(places)), (last or [*places][-1]) if dots else first
    for end in ends:
        if end not in places:
            raise ValueError(f"`{end}` is none of the releases")
    return places[ends[0]], places[ends[1]]


def head(name: str, usual: Mapping[str, object]) -> ComponentHead:
    """The head of an independent package as a component; `usual` are the fields that most have."""
    own = {"name": name, "title": name, "scheme": "pep440", "code": PURE}
    return {**usual, **own}  # type: ignore[typeddict-item]


class IndependentSection:
    """The facts of an independent package as the section of a component.

    `records` are those behind them by number, and `ids` the numbers of claims.
    """

    def __init__(self, index: Index, row: IndependentRow, source: RowSource, first: int) -> None:
        self.index = index
        self.row = row
        self.source = source
        self.first = first
        self.records: dict[int, object] = {}
        self.ids: dict[str, int] = {}

    def facts(self) -> ComponentFacts:
        """The section; `records` are complete then."""
        # Answers without such a package do not load what compiles a matrix.
        from toolmatrix.factbase.writer import since

        row = self.row
        days, masks = since(row.versions, row.dates)
        releases = [self._add(self._release(place)) for place in range(len(row.versions))]
        groups = [*self._groups()]
        # Releases whose METADATA was not read whole are not in the row.
        everything = (2 << len(row.versions)) - 2
        return ComponentFacts(
            blocks=[0],
            versions=row.versions,
            dates=row.dates,
            since_days=days,
            since_masks=masks,
            yanked=sum(2 << place for place in row.yanked),
            releases=releases,
            packages={},
            brings=0,
            unreviewed=0,
            complete=everything,
            unbounded={},
            binding_groups=groups,
            row_groups=[],
            disputes=[],
        )

    def _add(self, record: object) -> int:
        number = self.first + len(self.records)
        self.records[number] = record
        return number

    def _release(self, place: int) -> ReleaseRecord:
        row, source = self.row, self.source
        id, version = f"{source.table}/{row.name}", row.versions[place]
        return ReleaseRecord(
            id,
            "release",
            row.name,
            version,
            source.evidence,
            source.name,
            source.where,
            row.dates[place],
            {},
        )

    def _groups(self) -> Iterator[BindingGroup]:
        """Groups of bindings, one for each component and condition; those that leave something unread follow."""
        known = self.index.header["components"]
        grouped: dict[tuple[str, tuple[tuple[str, str], ...]], list[ReleaseStatement]] = {}
        for statement in (*self.row.pythons, *self.row.requires):
            # What the matrix does not know is in no request.
            if statement.component in known and all(name in known for name in statement.conditions):
                name = statement.component, tuple(statement.conditions.items())
                grouped.setdefault(name, []).append(statement)
        for (component, conditions), statements in grouped.items():
            yield from self._of(component, dict(conditions), statements)

    def _of(
        self, component: str, conditions: Mapping[str, str], statements: Sequence[ReleaseStatement]
    ) -> Iterator[BindingGroup]:
        scale = self.index.scale
        masks_of = {name: scale(name).select(text) for name, text in conditions.items()}
        bound: list[tuple[int, int, int]] = []
        unread: list[tuple[int, int, int]] = []
        for number, statement in enumerate(statements):
            try:
                allowed = scale(component).select(statement.selector) | 1
            except SelectorError:
                # Not even a version: nothing that is known satisfies it.
                allowed = 1
            mask = mask_of(statement.runs)
            claim = self._claim(statement, number)
            record = self.ids[claim.id] = self._add(claim)
            bound.append((mask, allowed, self._cite(statement.runs, record)))
            # A minimum admits what came later, of which its author knew nothing.
            for left, runs in self._later(statement).items():
                rest = (scale(component).everything | 1) & ~left
                unread.append((mask_of(runs), rest, self._cite(runs, record, unread=True)))
        for rows, evidence in ((bound, self.source.evidence), (unread, "unknown")):
            if rows:
                masks, alloweds, cites = zip(*rows, strict=True)
                yield BindingGroup(
                    union(masks),
                    "limits",
                    masks_of,
                    component,
                    (),
                    evidence,
                    masks,
                    alloweds,
                    cites,
                )

    def _later(self, statement: ReleaseStatement) -> dict[int, list[tuple[int, int]]]:
        """What a minimum leaves unread: releases of the component, by the runs of releases whose days leave them."""
        heads, component = self.index.header["components"], statement.component
        # Of a component that breaks nothing every later release will do.
        if not (heads[component]["major"] or self.index.breaks(component)):
            return {}
        from toolmatrix.factbase.minimums import find_later, of_index

        counterpart = of_index(self.index, component, self.row.name)
        left: dict[int, list[tuple[int, int]]] = {}
        for first, last in statement.runs:
            for place in range(first, last + 1):
                # A release without a day was out when the list was read.
                day = self.row.dates[place] or self.index.source(self.source.name).read
                later = find_later(counterpart, statement.selector, day)
                if later is not None:
                    left.setdefault(later.mask, []).append((place, place))
        return left

    def _cite(self, runs: Sequence[tuple[int, int]], record: int, *, unread: bool = False) -> int:
        ranges = [end for run in _shifted(runs) for end in run]
        evidence = "unknown" if unread else self.source.evidence
        return self._add([CitedClaim(ranges, record, evidence, [MINIMUM] if unread else [])])

    def _claim(self, statement: ReleaseStatement, number: int) -> ClaimRecord:
        row, source = self.row, self.source
        id = f"{source.table}/{row.name}"
        spans = (
            f">={row.versions[first]},<={row.versions[last]}" for first, last in statement.runs
        )
        python = statement.component == _PYTHON
        return ClaimRecord(
            f"{id}#{statement.component}.{number + 1}",
            id,
            "limits",
            row.name,
            " ".join(spans),
            [*statement.conditions.items()],
            statement.component,
            statement.selector,
            (),
            source.evidence,
            source.name,
            source.where,
            "declares Python {value}" if python else "requires {component} {value}",
            "",
            "",
            beside=False,
            exact=False,
        )


class RowSource(NamedTuple):
    """What the rows of the table share: its name, and what was read where, and how well it is known."""

    table: str
    name: str
    where: str
    evidence: str


def mask_of(runs: Sequence[tuple[int, int]]) -> int:
    """The releases of some runs as a mask."""
    return union((2 << last) - (1 << first) for first, last in _shifted(runs))


def _shifted(runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    # Bit 0 of a mask is the absence of the component.
    return ((first + 1, last + 1) for first, last in runs)
