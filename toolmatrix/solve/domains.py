"""What can be chosen before facts of pairs speak: no release that was withdrawn, nor with `--at` one of a later day.

A hidden component is there where something requires it, and never to get round a fact.
"""

from __future__ import annotations

from toolmatrix.solve.parts import Closed, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.facts.records import BindingGroup
    from toolmatrix.solve.assemble import Reachable
    from toolmatrix.solve.engine import Nogood
    from toolmatrix.solve.parts import Variable

    _Naming = dict[tuple[str, str], list[tuple[str, BindingGroup]]]
    """By target and component the groups that name it and limit nothing, each with the component that it is of."""

_EXACTLY = ("==", "===", "name")


def domains(reachable: Reachable) -> list[int]:
    """The candidates of each variable, as masks."""
    request = reachable.request
    found = [(2 << variable.count) - 1 for variable in reachable.variables]
    for target, component, releases in request.policies:
        if target in request.targets:
            number = reachable.by_name[target, component][0].number
            # A policy that cannot be had leaves the component absent.
            found[number] = 1 | reachable.mask(component, " ".join(releases))
    return found


def statements(reachable: Reachable) -> Iterator[Statement]:
    """The nogoods of releases that were withdrawn, or were not out on the day of `--at`."""
    day = reachable.request.at
    done: set[int] = set()
    naming = _naming(reachable)
    for (target, name), held in reachable.by_name.items():
        part = reachable.component(name)
        if reachable.header["components"][name]["hidden"] and (target, name) not in reachable.asked:
            yield from _unneeded(reachable, target, name, naming)
        later = 0
        for place, date in enumerate(part.dates if day else ()):
            later |= 2 << place if date > day else 0
        withdrawn = part.yanked and part.yanked & ~_named(reachable, name, part.yanked)
        for variable in held if later or withdrawn else ():
            # An aligned variable is one on all targets.
            if variable.number in done:
                continue
            done.add(variable.number)
            if later:
                yield Statement(((variable.number, later),), target, name, Closed("later", day), 0)
            for terms in _withdrawn(reachable, variable, withdrawn, naming):
                yield Statement(terms, target, name, Closed("withdrawn", ""), 0)


def _naming(reachable: Reachable) -> _Naming:
    found: _Naming = {}
    for target, name in reachable.by_name:
        for group in reachable.component(name).binding_groups:
            if group.kind != "limits":
                for other in group.named:
                    found.setdefault((target, other), []).append((name, group))
    return found


def _unneeded(reachable: Reachable, target: str, name: str, naming: _Naming) -> Iterator[Statement]:
    # It is there although none of those is that would require it: that is what cannot be.
    terms: dict[int, int] = {}
    for other, group in naming.get((target, name), ()):
        for variable in reachable.by_name[target, other]:
            without = terms.get(variable.number, (2 << variable.count) - 1)
            terms[variable.number] = without & ~group.releases
    (variable,) = reachable.by_name[target, name]
    terms[variable.number] = (2 << variable.count) - 2
    if all(terms.values()):
        yield Statement(tuple(sorted(terms.items())), target, name, Closed("unneeded", ""), 0)


def _named(reachable: Reachable, component: str, withdrawn: int) -> int:
    """The withdrawn releases that the request names exactly: who does gets them, as pip does with `==` (PEP 592).

    Of what is no package, who admits none but withdrawn ones, such as a series that has ended, names these.
    """
    found = 0
    for (_, name), allowed in reachable.asked.items():
        if name == component and not reachable.header["components"][name]["code"]:
            found |= 0 if allowed & ~withdrawn & ~1 else allowed
    for ask in reachable.request.asks:
        if ask.component != component:
            continue
        scale = reachable.scale(component)
        for clauses in scale.parse(ask.selector):
            for clause in clauses:
                mask = scale.bit(clause.text) or scale.mask(((clause,),))
                # A series stands for each release of its own: who names 2.7.18 names 2.7.
                if clause.operator in _EXACTLY and not mask & (mask - 1):
                    found |= mask
    return found & withdrawn


def _withdrawn(
    reachable: Reachable, variable: Variable, withdrawn: int, naming: _Naming
) -> Iterator[Nogood]:
    # By release: the variables that pin it, and where. Nobody has to find what a build brings, and pip takes what is
    # pinned: beside these, a withdrawn release is taken as well.
    pins: dict[int, dict[int, int]] = {}
    for target in (variable.target,) if variable.target else reachable.request.targets:
        for name, group in naming.get((target, variable.component), ()) if withdrawn else ():
            if group.kind != "requires" or group.component != variable.component:
                continue
            brings, owner = reachable.component(name).brings, reachable.by_name[target, name][0]
            for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                if allowed & ~withdrawn & ~1 or (allowed & allowed - 1 and not mask & brings):
                    continue
                for bit in _bits(allowed):
                    by = pins.setdefault(bit, {})
                    by[owner.number] = by.get(owner.number, 0) | mask
    # Releases that the same pin are one nogood.
    rest = withdrawn & ~sum(pins)
    alike: dict[tuple[tuple[int, int], ...], int] = {(): rest} if rest else {}
    for bit, by in pins.items():
        held = tuple(sorted(by.items()))
        alike[held] = alike.get(held, 0) | bit
    for held, bits in alike.items():
        unpinned = [(one, (2 << reachable.variables[one].count) - 1 & ~mask) for one, mask in held]
        yield tuple(sorted([(variable.number, bits), *unpinned]))


def _bits(mask: int) -> Iterator[int]:
    mask &= ~1
    while mask:
        yield mask & -mask
        mask &= mask - 1
