"""Stipulations as nogoods: what a recipe asks of an answer binds as facts do.

"One of these must hold" is broken where each of them is: every way to break all of them is a nogood, less those that
another one holds already.
"""

from __future__ import annotations

from itertools import chain, product

from toolmatrix.solve.parts import Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.assemble import Reachable
    from toolmatrix.solve.parts import Variable
    from toolmatrix.solve.request import Stipulation

    Terms = Mapping[int, int]
    """The masks of some variables, all of which hold."""
    Literal = tuple[Terms, ...]
    """Terms of which one holds: empty where nothing can hold, and with empty terms where it always does."""


def statements(reachable: Reachable) -> Iterator[Statement]:
    """The nogoods of the stipulations of a request, for each of its targets."""
    for target in reachable.request.targets:
        builds = _builds(reachable, target)
        for rule in reachable.request.stipulations:
            for terms in _nogoods(reachable, target, rule, builds):
                yield Statement(tuple(sorted(terms.items())), target, rule.subject, rule, 0)


def inside(index: Index, variant: str, wanted: int = -1) -> dict[str, int]:
    """By component of the toolkit: the builds among the wanted that bring it, inside them or as packages."""
    components = index.header["components"]
    builds: dict[str, int] = {}
    for binding in index.component(variant).bindings:
        about = components[binding.component] if binding.component else None
        if binding.kind != "requires" or not about or not binding.mask & wanted:
            continue
        # A framework beside it, or what has builds, is one of its own, whichever build it came with.
        if not about["accelerators"] or about["framework"] or about["variants"]:
            continue
        for cite in index.cites(binding.cites):
            if not index.claim(cite.record).beside:
                covered = builds.get(binding.component, 0) | cite.mask & binding.mask
                builds[binding.component] = covered
    return builds


def _nogoods(
    reachable: Reachable, target: str, rule: Stipulation, builds: Mapping[str, Sequence[Terms]]
) -> Iterable[Terms]:
    # Most are about a component that the question does not come to: it is absent, and nothing is asked of it.
    for component, selector in rule.when:
        if not reachable.possible(target, {component: reachable.mask(component, selector)}):
            return ()
    nogoods = _conjunctions(_meeting(reachable, target, condition) for condition in rule.when)
    for conditions in rule.one_of:
        broken = (_breaking(reachable, target, condition) for condition in conditions)
        nogoods = _extended(nogoods, chain.from_iterable(broken))
    for terms in builds.get(rule.subject, ()) if rule.or_in_build else ():
        nogoods = _extended(nogoods, [terms])
    return nogoods


def _extended(nogoods: Iterable[Terms], broken: Iterable[Terms]) -> list[Terms]:
    # Each nogood so far, and one of the ways to break the next alternative; what is within another says nothing new.
    minimal: list[Terms] = []
    for terms in sorted(_conjunctions((nogoods, broken)), key=len):
        if not any(_within(terms, other) for other in minimal):
            minimal = [other for other in minimal if not _within(other, terms)] + [terms]
    return minimal


def _within(terms: Terms, other: Terms) -> bool:
    return all(not terms.get(number, -1) & ~mask for number, mask in other.items())


def _conjunctions(alternatives: Iterable[Iterable[Terms]]) -> list[Terms]:
    """Each combination of one of each alternative whose terms can all hold."""
    return [terms for each in product(*alternatives) if (terms := _conjunction(each)) is not None]


def _conjunction(combination: Iterable[Terms]) -> Terms | None:
    # None where they cannot all hold.
    masks: dict[int, int] = {}
    for terms in combination:
        for number, mask in terms.items():
            masks[number] = masks.get(number, -1) & mask
            if not masks[number]:
                return None
    return masks


def _meeting(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition holds: one for each of several archs or devices."""
    mask, variables = _terms(reachable, target, condition)
    if not variables:
        return ({},) if mask & 1 else ()
    return tuple({v.number: mask & (2 << v.count) - 1} for v in variables)


def _breaking(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition does not hold."""
    mask, variables = _terms(reachable, target, condition)
    if not variables:
        return () if mask & 1 else ({},)
    return ({v.number: (2 << v.count) - 1 & ~mask for v in variables},)


def _terms(
    reachable: Reachable, target: str, condition: tuple[str, str]
) -> tuple[int, list[Variable]]:
    """What a condition admits, and the variables that it is about, none where they are absent."""
    component, selector = condition
    mask = reachable.mask(component, selector)
    # Codegen archs and devices that are asked for are never absent, and a condition holds where one of them meets it.
    if numbers := reachable.multi_instance[target].get(component):
        return mask & ~1, [reachable.instance(target, component, n) for n in sorted(numbers)]
    variable = reachable.pick(target, component)
    return mask, [] if variable is None else [variable]


def _builds(reachable: Reachable, target: str) -> dict[str, list[Terms]]:
    """By component: for each framework that may bring it the builds, or the lack of one, that do not."""
    lacking: dict[str, list[Terms]] = {}
    for owner, name in reachable.by_name:
        if owner == target and reachable.header["components"][name]["variant_of"]:
            variable = reachable.variable(target, name)
            whole = (2 << variable.count) - 1
            for about, mask in inside(reachable.index, name).items():
                lacking.setdefault(about, []).append({variable.number: whole & ~mask})
    return lacking
