"""The parts of an assembly: variables, tested rows, and the statements behind nogoods."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.facts.records import BindingGroup
from toolmatrix.solve.engine import Support, SupportGroup
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import Binding, RowGroup
    from toolmatrix.solve.request import Ask, Stipulation

SEVERAL = ("arch", "device")
"""The components a target may have several of."""

EVIDENCE = 32
"""Weights are (how early the row's first component is chosen) * EVIDENCE + rank of the evidence word."""


class Pin(NamedTuple):
    """A release of a component on a target."""

    target: str
    component: str
    release: str


class Closed(NamedTuple):
    """That releases were `withdrawn`, were not out on the day of `--at` (`later`), or that nothing needs them."""

    kind: str
    day: str


class Statement(NamedTuple):
    """A nogood with what it says.

    That is a line of the request, the fact at a place of a group about `subject`, a stipulation, releases of `subject`
    that are closed, or the component with which the evidence does not reach.
    """

    terms: tuple[tuple[int, int], ...]
    target: str
    subject: str
    said: Ask | BindingGroup | Stipulation | Closed | str
    place: int

    @property
    def binding(self) -> Binding | None:
        """The fact, if it is one."""
        return self.said.binding(self.place) if isinstance(self.said, BindingGroup) else None

    @property
    def component(self) -> str:
        """The component that it speaks about; a line of the request speaks about no other."""
        if isinstance(self.said, str):
            return self.said
        return self.said.component if isinstance(self.said, BindingGroup) else ""


class Variable:
    """One unknown: a component in a target, with the number of its releases; candidate 0 is its absence."""

    __slots__ = ("component", "count", "instance", "number", "oldest", "target")

    def __init__(
        self, target: str, component: str, instance: int, count: int, oldest: bool
    ) -> None:
        self.target = target
        self.component = component
        self.instance = instance
        self.count = count
        self.number = -1
        self.oldest = oldest


class RowHead:
    """Rows of one group of the index; they are numbered from `start` on."""

    def __init__(
        self,
        target: str,
        subject: str,
        group: RowGroup,
        parts: Mapping[str, Variable],
        count: int,
        start: int,
    ) -> None:
        names = group.components
        self.evidence = group.evidence
        self.cites = group.cites
        self.target = target
        self.start = start
        self.subject = parts[subject]
        self.subjects = group.subjects
        # A component that is not reached is absent, and a row says nothing of it.
        held = [place for place, name in enumerate(names) if name in parts]
        held.sort(key=lambda place: parts[names[place]].number)
        self.variables = [parts[names[place]] for place in held]
        self.numbers = [variable.number for variable in self.variables]
        self.columns = [group.columns[place] for place in held]
        # How early comes before how well known, so one number in base EVIDENCE sorts by both.
        earliness = (count - self.numbers[0]) * EVIDENCE
        self.weight = earliness + words.rank(self.evidence)
        self.worth = [earliness + words.rank(group.evidences[place]) for place in held]

    def support_groups(self, asked: int, left: Mapping[str, int]) -> Iterator[TestedRowGroup]:
        """The rows by what they say of the first variable; `asked` is what the request leaves of their subject."""
        first = self.variables[0]
        # Nothing is said of one component alone.
        if len(self.variables) < 2:
            return
        can = left.get(first.component, -1)
        found: dict[int, list[int]] = {}
        # What nothing limits is -1: most rows need not be looked into.
        for place, mask in enumerate(self.columns[0]):
            if (can == -1 or mask & can) and (asked == -1 or self.subjects[place] & asked):
                found.setdefault(mask, []).append(place)
        for mask, places in found.items():
            yield TestedRowGroup(self, mask, places)

    def row(self, place: int) -> TestedRow:
        """One row."""
        terms = [
            (number, column[place], worth)
            for number, column, worth in zip(self.numbers, self.columns, self.worth, strict=True)
        ]
        return TestedRow(self, terms, place)


class TestedRowGroup(SupportGroup):
    """Rows under one head that say the same of their first variable."""

    __slots__ = ("head", "owner", "places")

    def __init__(self, head: RowHead, anchor_mask: int, places: Sequence[int]) -> None:
        super().__init__(head.numbers, anchor_mask, head.weight)
        self.head = head
        self.owner = head.subject.number
        self.places = places

    def make(self) -> Sequence[TestedRow]:
        return [self.head.row(place) for place in self.places]


class TestedRow(Support):
    """A support with where it came from; its terms come in the order of their variables."""

    __slots__ = ("cites", "evidence", "owner", "place", "subject", "target")

    def __init__(self, head: RowHead, terms: list[tuple[int, int, int]], place: int) -> None:
        # The terms come sorted by variable, so that the constructor of `Support` is not needed.
        self.terms = terms
        self.weight = head.weight
        self.target = head.target
        self.subject = head.subject.component
        self.owner = head.subject.number
        self.evidence = head.evidence
        self.cites = head.cites[place]
        self.place = head.start + place


def expand_rows(support_groups: Iterable[SupportGroup]) -> list[TestedRow]:
    """The rows of some groups of a target, in the order of the index."""
    rows = [
        row
        for support_group in support_groups
        for row in support_group.rows()
        if isinstance(row, TestedRow)
    ]
    return sorted(rows, key=lambda row: row.place)


def only_excludes(index: Index, component: str, cites: int) -> bool:
    """True where claims only say which names do not go with something: that speaks for no other one."""
    return index.header["components"][component]["scheme"] == "names" and all(
        part.startswith("!=")
        for cite in index.cites(cites)
        for part in index.claim(cite.record).selector.split(",")
    )
