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
    from toolmatrix.solve.assemble import Reached
    from toolmatrix.solve.request import Stipulation

    Terms = Mapping[int, int]
    """The masks of some variables, all of which hold."""
    Literal = tuple[Terms, ...]
    """Terms of which one holds: empty where nothing can hold, and with empty terms where it always does."""


def statements(reached: Reached) -> Iterator[Statement]:
    """The nogoods of the stipulations of a request, for each of its targets."""
    for target in reached.request.targets:
        builds = _builds(reached, target)
        for part in reached.request.stipulations:
            for terms in _nogoods(reached, target, part, builds):
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
    reached: Reached, target: str, part: Stipulation, builds: Mapping[str, Sequence[Terms]]
) -> Iterable[Terms]:
    # Most are about a component that the question does not come to: it is absent, and nothing is asked of it.
    if any(not reached.possible(target, _masks(reached, [one])) for one in part.when):
        return ()
    ways = [_held(reached, target, one) for one in part.when]
    found = [terms for way in product(*ways) if (terms := _together(way)) is not None]
    for conditions in part.one_of:
        found = _less(
            [terms for way in conditions for terms in _broken(reached, target, way)], found
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


def _masks(reached: Reached, conditions: Iterable[tuple[str, str]]) -> dict[str, int]:
    return {component: reached.mask(component, selector) for component, selector in conditions}


def _held(reached: Reached, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition holds: one for each of several archs or devices."""
    component, selector = condition
    mask = reached.mask(component, selector)
    several = _several(reached, target, component)
    if several:
        return tuple({number: mask & ~1} for number in several if mask & ~1)
    variable = reached.pick(target, component)
    if variable is None:
        return ({},) if mask & 1 else ()
    return ({variable.number: mask & (2 << variable.count) - 1},)


def _broken(reached: Reached, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition does not hold."""
    component, selector = condition
    mask = reached.mask(component, selector)
    several = _several(reached, target, component)
    if several:
        held = reached.variables
        return ({number: (2 << held[number].count) - 1 & ~(mask & ~1) for number in several},)
    variable = reached.pick(target, component)
    if variable is None:
        return () if mask & 1 else ({},)
    rest = (2 << variable.count) - 1 & ~mask
    return ({variable.number: rest},) if rest else ()


def _several(reached: Reached, target: str, component: str) -> list[int]:
    # Codegen archs and devices that are asked for are never absent, and a condition holds where one of them meets it.
    if component not in SEVERAL:
        return []
    numbers = reached.multi_instance[target].get(component, ())
    return [reached.instance(target, component, number).number for number in sorted(numbers)]


def _builds(reached: Reached, target: str) -> dict[str, list[Terms]]:
    """By component: for each framework that may bring it the builds, or the lack of one, that do not."""
    found: dict[str, list[Terms]] = {}
    for owner, name in reached.by_name:
        if owner == target and reached.header["components"][name]["variant_of"]:
            variable = reached.variable(target, name)
            whole = (2 << variable.count) - 1
            for about, mask in inside(reached.index, name).items():
                found.setdefault(about, []).append({variable.number: whole & ~mask})
    return found
