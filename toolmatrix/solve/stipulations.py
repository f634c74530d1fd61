"""Stipulations as nogoods: what a recipe asks of an answer binds as facts do.

"One of these must hold" is broken where each of them is: every way to break all of them is a nogood, less those that
another one holds already.
"""

from __future__ import annotations

from itertools import product

from toolmatrix.solve.parts import SEVERAL, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.assemble import Reachable
    from toolmatrix.solve.request import Stipulation

    Terms = Mapping[int, int]
    """The masks of some variables, all of which hold."""
    Literal = tuple[Terms, ...]
    """Terms of which one holds: empty where nothing can hold, and with empty terms where it always does."""


def statements(reachable: Reachable) -> Iterator[Statement]:
    """The nogoods of the stipulations of a request, for each of its targets."""
    for target in reachable.request.targets:
        builds = _builds(reachable, target)
        for part in reachable.request.stipulations:
            for terms in _nogoods(reachable, target, part, builds):
                yield Statement(tuple(sorted(terms.items())), target, part.subject, part, 0)


def inside(index: Index, variant: str, wanted: int = -1) -> dict[str, int]:
    """By component of the toolkit: the builds among the wanted that bring it, inside them or as packages."""
    components = index.header["components"]
    found: dict[str, int] = {}
    for binding in index.component(variant).bindings:
        about = components[binding.component] if binding.component else None
        if binding.kind != "requires" or not about or not binding.mask & wanted:
            continue
        # A framework beside it, or what has builds, is one of its own, whichever build it came with.
        if not about["accelerators"] or about["framework"] or about["variants"]:
            continue
        for cite in index.cites(binding.cites):
            if not index.claim(cite.record).beside:
                covered = found.get(binding.component, 0) | cite.mask & binding.mask
                found[binding.component] = covered
    return found


def _nogoods(
    reachable: Reachable, target: str, part: Stipulation, builds: Mapping[str, Sequence[Terms]]
) -> Iterable[Terms]:
    # Most are about a component that the question does not come to: it is absent, and nothing is asked of it.
    if any(not reachable.possible(target, _masks(reachable, [one])) for one in part.when):
        return ()
    ways = [_ways_to_meet(reachable, target, one) for one in part.when]
    found = [terms for way in product(*ways) if (terms := _together(way)) is not None]
    for conditions in part.one_of:
        found = _less(
            [terms for way in conditions for terms in _broken(reachable, target, way)], found
        )
    for terms in builds.get(part.subject, ()) if part.brought else ():
        found = _less([terms], found)
    return found


def _less(broken: Iterable[Terms], found: Iterable[Terms]) -> list[Terms]:
    # Each nogood so far, and one of the ways to break the next alternative; what is within another says nothing new.
    both = [terms for way in product(found, [*broken]) if (terms := _together(way)) is not None]
    kept: list[Terms] = []
    for terms in sorted(both, key=len):
        if not any(_within(terms, other) for other in kept):
            kept = [other for other in kept if not _within(other, terms)] + [terms]
    return kept


def _within(terms: Terms, other: Terms) -> bool:
    return all(not terms.get(number, -1) & ~mask for number, mask in other.items())


def _together(way: Iterable[Terms]) -> Terms | None:
    # None where they cannot all hold.
    found: dict[int, int] = {}
    for terms in way:
        for number, mask in terms.items():
            found[number] = found.get(number, -1) & mask
            if not found[number]:
                return None
    return found


def _masks(reachable: Reachable, conditions: Iterable[tuple[str, str]]) -> dict[str, int]:
    return {component: reachable.mask(component, selector) for component, selector in conditions}


def _ways_to_meet(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition holds: one for each of several archs or devices."""
    component, selector = condition
    mask = reachable.mask(component, selector)
    several = _several(reachable, target, component)
    if several:
        return tuple({number: mask & ~1} for number in several if mask & ~1)
    variable = reachable.pick(target, component)
    if variable is None:
        return ({},) if mask & 1 else ()
    return ({variable.number: mask & (2 << variable.count) - 1},)


def _broken(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition does not hold."""
    component, selector = condition
    mask = reachable.mask(component, selector)
    several = _several(reachable, target, component)
    if several:
        held = reachable.variables
        return ({number: (2 << held[number].count) - 1 & ~(mask & ~1) for number in several},)
    variable = reachable.pick(target, component)
    if variable is None:
        return () if mask & 1 else ({},)
    rest = (2 << variable.count) - 1 & ~mask
    return ({variable.number: rest},) if rest else ()


def _several(reachable: Reachable, target: str, component: str) -> list[int]:
    # Codegen archs and devices that are asked for are never absent, and a condition holds where one of them meets it.
    if component not in SEVERAL:
        return []
    numbers = reachable.multi_instance[target].get(component, ())
    return [reachable.instance(target, component, number).number for number in sorted(numbers)]


def _builds(reachable: Reachable, target: str) -> dict[str, list[Terms]]:
    """By component: for each framework that may bring it the builds, or the lack of one, that do not."""
    found: dict[str, list[Terms]] = {}
    for owner, name in reachable.by_name:
        if owner == target and reachable.header["components"][name]["variant_of"]:
            variable = reachable.variable(target, name)
            whole = (2 << variable.count) - 1
            for about, mask in inside(reachable.index, name).items():
                found.setdefault(about, []).append({variable.number: whole & ~mask})
    return found
