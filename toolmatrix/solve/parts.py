"""The parts of an assembly: variables with what can be chosen for each, tested rows, and statements behind nogoods.

Before facts of pairs speak, no release can be chosen that was withdrawn, nor with `--at` one of a later day. A hidden
component is there where something requires it, and never to get round a fact.
"""

from __future__ import annotations

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import FAILS, BindingGroup
from toolmatrix.solve.engine import Support, SupportGroup
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding, RowGroup
    from toolmatrix.solve.assemble import Reachable
    from toolmatrix.solve.engine import Nogood
    from toolmatrix.solve.request import Ask, Stipulation

    _Naming = dict[str, list[tuple[str, BindingGroup]]]
    """By target and component the groups that name it and limit nothing, each with the component that it is of."""

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

    That is a line of the request, a fact of a group about `subject`, a stipulation, releases of `subject` that are
    closed, or the component with which the evidence does not reach.
    """

    terms: tuple[tuple[int, int], ...]
    target: str
    subject: str
    origin: Ask | BindingGroup | Stipulation | Closed | str
    position: int

    @property
    def binding(self) -> Binding | None:
        """The fact, if it is one."""
        return self.origin.binding(self.position) if isinstance(self.origin, BindingGroup) else None

    @property
    def component(self) -> str:
        """The component that it speaks about; a line of the request speaks about no other."""
        if isinstance(self.origin, str):
            return self.origin
        return self.origin.component if isinstance(self.origin, BindingGroup) else ""


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


class TestedRowGroup(SupportGroup):
    """Rows of one group of the index; they are numbered from `start` on.

    `admitted` is what the request leaves of their subject, `left` the same of other components.
    """

    __slots__ = (
        *("admitted", "can", "cites", "columns", "evidence", "owner", "start"),
        *("subject", "subjects", "target", "worth"),
    )

    def __init__(
        self,
        target: str,
        subject: str,
        group: RowGroup,
        variables: Mapping[str, Variable],
        count: int,
        start: int,
        admitted: int,
        left: Mapping[str, int],
    ) -> None:
        names = group.components
        # A component that is not reached is absent, and a row says nothing of it.
        positions = [position for position, name in enumerate(names) if name in variables]
        positions.sort(key=lambda position: variables[names[position]].number)
        numbers = [variables[names[position]].number for position in positions]
        # How early comes before how well known, so one number in base EVIDENCE sorts by both.
        earliness = (count - numbers[0]) * EVIDENCE
        whole = (2 << variables[names[positions[0]]].count) - 1
        super().__init__(numbers, whole, earliness + words.rank(group.evidence))
        self.worth = [earliness + words.rank(group.evidences[position]) for position in positions]
        self.evidence = group.evidence
        self.cites = group.cites
        self.target = target
        self.start = start
        self.subject = subject
        self.owner = variables[subject].number
        self.subjects = group.subjects
        self.columns = [group.columns[position] for position in positions]
        self.admitted = admitted
        self.can = left.get(names[positions[0]], -1)

    def make(self, values: int) -> Sequence[TestedRow]:
        # Most rows are about other values of the first variable, or another release of their subject.
        can, admitted, subjects = self.can & values, self.admitted, self.subjects
        return [
            self._row(position)
            for position, mask in enumerate(self.columns[0])
            if mask & can and subjects[position] & admitted
        ]

    def _row(self, position: int) -> TestedRow:
        terms = [
            (number, column[position], worth)
            for number, column, worth in zip(self.variables, self.columns, self.worth, strict=True)
        ]
        return TestedRow(self, terms, position)


class TestedRow(Support):
    """A support with where it came from; its terms come in the order of their variables."""

    __slots__ = ("cites", "evidence", "owner", "position", "subject", "target")

    def __init__(
        self, group: TestedRowGroup, terms: list[tuple[int, int, int]], position: int
    ) -> None:
        # The terms come sorted by variable, so that the constructor of `Support` is not needed.
        self.terms = terms
        self.weight = group.weight
        self.target = group.target
        self.subject = group.subject
        self.owner = group.owner
        self.evidence = group.evidence
        self.cites = group.cites[position]
        self.position = group.start + position


def expand_rows(
    support_groups: Iterable[SupportGroup], values: Sequence[int] = ()
) -> list[TestedRow]:
    """The rows of some groups of a target, in the order of the index; with values, those that may speak there."""
    rows = [
        row
        for group in support_groups
        for row in group.rows(1 << values[group.variables[0]] if values else -1)
        if isinstance(row, TestedRow)
    ]
    return sorted(rows, key=lambda row: row.position)


def only_excludes(index: Index, binding: Binding) -> bool:
    """True where claims only exclude names, or releases that fail: that supports no other one."""
    names = index.header["components"][binding.component]["scheme"] == "names"
    return binding.kind == FAILS or (
        names
        and all(
            clause.startswith("!=")
            for cite in index.cites(binding.cites)
            for clause in index.claim(cite.record).selector.split(",")
        )
    )


_EXACTLY = ("==", "===", "name")


def candidate_domains(reachable: Reachable) -> list[int]:
    """The candidates of each variable, as masks."""
    request = reachable.request
    domains = [(2 << variable.count) - 1 for variable in reachable.variables]
    for target, component, releases in request.policies:
        if target in request.targets:
            number = reachable.by_name[target, component][0].number
            # A policy that cannot be had leaves the component absent.
            domains[number] = 1 | reachable.mask(component, " ".join(releases))
    return domains


def withdrawal_statements(reachable: Reachable) -> Iterator[Statement]:
    """The nogoods of releases that were withdrawn, or were not out on the day of `--at`."""
    day = reachable.request.at
    done: set[int] = set()
    naming = _naming(reachable)
    for (target, name), variables in reachable.by_name.items():
        facts = reachable.component(name)
        if (
            reachable.header["components"][name]["hidden"]
            and (target, name) not in reachable.requested
        ):
            yield from _unneeded(reachable, target, name, naming)
        later = sum(2 << i for i, date in enumerate(facts.dates if day else ()) if date > day)
        withdrawn = facts.yanked and facts.yanked & ~_named(reachable, name, facts.yanked)
        for variable in variables if later or withdrawn else ():
            # An aligned variable is one on all targets.
            if variable.number in done:
                continue
            done.add(variable.number)
            if later:
                yield Statement(((variable.number, later),), target, name, Closed("later", day), 0)
            for terms in _withdrawn(reachable, variable, withdrawn, naming):
                yield Statement(terms, target, name, Closed("withdrawn", ""), 0)


def _naming(reachable: Reachable) -> _Naming:
    naming: _Naming = {}
    for name in dict.fromkeys(name for _, name in reachable.by_name):
        for group in reachable.index.requirements(name):
            for other in group.named:
                naming.setdefault(other, []).append((name, group))
    return naming


def _unneeded(reachable: Reachable, target: str, name: str, naming: _Naming) -> Iterator[Statement]:
    # It is there although none of those is that would require it: that is what cannot be.
    terms: dict[int, int] = {}
    for other, group in naming.get(name, ()):
        for variable in reachable.by_name.get((target, other), ()):
            without = terms.get(variable.number, (2 << variable.count) - 1)
            terms[variable.number] = without & ~group.releases
    (variable,) = reachable.by_name[target, name]
    terms[variable.number] = (2 << variable.count) - 2
    if all(terms.values()):
        yield Statement(tuple(sorted(terms.items())), target, name, Closed("unneeded", ""), 0)


def _named(reachable: Reachable, component: str, withdrawn: int) -> int:
    """The withdrawn releases that the request names exactly, which it gets, as from pip with `==` (PEP 592).

    Except for packages, a selector of withdrawn releases alone, such as a series that has ended, names these.
    """
    releases = 0
    for (_, name), allowed in reachable.requested.items():
        if name == component and not reachable.header["components"][name]["code"]:
            releases |= 0 if allowed & ~withdrawn & ~1 else allowed
    for ask in reachable.request.asks:
        if ask.component != component:
            continue
        scale = reachable.scale(component)
        for clauses in scale.parse(ask.selector):
            for clause in clauses:
                mask = scale.bit(clause.text) or scale.mask(((clause,),))
                # A series includes its releases: 2.7.18 names 2.7.
                if clause.operator in _EXACTLY and not mask & (mask - 1):
                    releases |= mask
    return releases & withdrawn


def _withdrawn(
    reachable: Reachable, variable: Variable, withdrawn: int, naming: _Naming
) -> Iterator[Nogood]:
    # By release: the variables that pin it, and where. A build brings its own, and pip installs what is pinned:
    # with these, a withdrawn release is used as well.
    pins: dict[int, dict[int, int]] = {}
    for target in (variable.target,) if variable.target else reachable.request.targets:
        for name, group in naming.get(variable.component, ()) if withdrawn else ():
            if group.kind != "requires" or group.component != variable.component:
                continue
            # The builds of a release are no reason to take it.
            own_builds = reachable.header["components"][name]["variant_of"] == variable.component
            if own_builds or (target, name) not in reachable.by_name:
                continue
            brings, owner = reachable.component(name).brings, reachable.by_name[target, name][0]
            for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                if allowed & ~withdrawn & ~1 or (allowed & allowed - 1 and not mask & brings):
                    continue
                for bit in bits_of(allowed & ~1):
                    by = pins.setdefault(bit, {})
                    by[owner.number] = by.get(owner.number, 0) | mask
    # Releases that the same pin are one nogood.
    rest = withdrawn & ~sum(pins)
    alike: dict[tuple[tuple[int, int], ...], int] = {(): rest} if rest else {}
    for bit, by in pins.items():
        pin = tuple(sorted(by.items()))
        alike[pin] = alike.get(pin, 0) | bit
    for pin, bits in alike.items():
        unpinned = [(v, (2 << reachable.variables[v].count) - 1 & ~mask) for v, mask in pin]
        yield tuple(sorted([(variable.number, bits), *unpinned]))


def union(masks: Iterable[int]) -> int:
    """All bits that are set in any of some masks."""
    bits = 0
    for mask in masks:
        bits |= mask
    return bits


def bits_of(mask: int) -> Iterator[int]:
    """Each bit of a mask that is set, the lowest first."""
    while mask:
        yield mask & -mask
        mask &= mask - 1
