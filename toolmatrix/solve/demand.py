"""A minimum of evidence as nogoods: what is not known well enough is refused.

For every two components of which some row speaks, a release of the one goes only with those releases
of the other that a row or requirement of at least that evidence names.
"""

from __future__ import annotations

from itertools import combinations

from toolmatrix.facts import evidence as words
from toolmatrix.solve.parts import EVIDENCE, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.solve.assemble import Assembly

    Pair = tuple[str, int, int]
    """(target, one variable, a later variable)"""
    Nogood = tuple[tuple[int, int], ...]


def nogoods(assembly: Assembly) -> Iterator[Statement]:
    """The nogoods of pairs of components that are not known well enough to go together."""
    least = words.rank(assembly.request.min_evidence)
    spoken: dict[Pair, dict[int, int]] = {pair: {} for pair in _pairs(assembly)}
    for row in assembly.every_row():
        # That an image carries both is no statement about what goes together.
        for (one, mask, weight), (other, allowed, further) in combinations(
            () if row.carried else row.terms, 2
        ):
            worth = min(words.rank(row.evidence), weight % EVIDENCE, further % EVIDENCE)
            _speak(spoken, (row.target, one, other), mask, allowed if worth >= least else 0)
    for statement in assembly.statements:
        fact, terms = statement.binding, statement.terms
        if fact is None or fact.kind != "requires" or len(terms) != 2:
            continue
        (one, mask), (other, broken) = terms
        # What a good enough claim requires counts as tested.
        if words.rank(fact.evidence) >= least and (statement.target, one, other) in spoken:
            whole = (2 << assembly.variables[other].count) - 1
            _speak(spoken, (statement.target, one, other), mask, whole & ~broken)
    for (target, one, other), table in sorted(spoken.items()):
        subject, about = (assembly.variables[number].component for number in (one, other))
        for terms in _pair(assembly, one, other, table):
            yield Statement(terms, target, subject, about, 0)


def _pairs(assembly: Assembly) -> Iterator[Pair]:
    # A row about other releases than the ones asked for counts too: it is why these are not known well enough.
    for target, name in assembly.by_name:
        for group in assembly.component(name).row_groups:
            if group.carried or not assembly.possible(target, group.conditions):
                continue
            held = sorted(
                variable.number
                for component in group.components
                if (variable := assembly.pick(target, component)) is not None
            )
            for one, other in combinations(held, 2):
                yield target, one, other


def _speak(spoken: dict[Pair, dict[int, int]], pair: Pair, mask: int, allowed: int) -> None:
    # Rows overlap: what a release goes with is the union over all rows that hold it, so they are taken bit by bit.
    table = spoken.setdefault(pair, {})
    while mask:
        bit = mask & -mask
        table[bit] = table.get(bit, 0) | allowed
        mask ^= bit


def _pair(assembly: Assembly, one: int, other: int, table: dict[int, int]) -> Iterator[Nogood]:
    # Releases that are joined with the same others share a nogood: tables have hundreds of releases and few such sets.
    by_allowed: dict[int, int] = {}
    for place in range(assembly.variables[one].count):
        allowed = table.get(2 << place, 0)
        by_allowed[allowed] = by_allowed.get(allowed, 0) | 2 << place
    # Without bit 0: that one of the two is absent takes no evidence.
    releases = (2 << assembly.variables[other].count) - 2
    for allowed, bits in sorted(by_allowed.items()):
        if releases & ~allowed:
            yield ((one, bits), (other, releases & ~allowed))
