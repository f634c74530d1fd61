"""The part of an answer that facts tie to the request, by claims that hold and rows that speak.

A claim that a component must be there, at whatever release, ties none of them. What the
request fixes (target, machine, accelerator, from) is where facts hold and not what they are about.
"""

from __future__ import annotations

from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve.parts import SEVERAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import Binding
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import TestedRow, Variable

    Claim = tuple[Variable, Binding]
    """The variable that speaks, and the binding."""
    Claims = Mapping[int, Sequence[Claim]]
    """By the variable that is spoken about."""


def joined(
    assembly: Assembly,
    target: str,
    claims: Claims,
    rows: Iterable[TestedRow],
    values: Sequence[int],
) -> dict[int, set[int]]:
    """By variable, those that a fact joins its chosen release with."""
    found: dict[int, set[int]] = {}
    for edge in (*_claimed(assembly, target, claims, values), *_tested(rows, values)):
        for one in edge:
            found.setdefault(one, set()).update(other for other in edge if other != one)
    return found


def closure(roots: Iterable[int], edges: Mapping[int, set[int]]) -> set[int]:
    """The variables that lead back to the roots."""
    found = set(roots)
    queue = list(found)
    while queue:
        for other in edges.get(queue.pop(), ()):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def roots(assembly: Assembly, target: str) -> set[int]:
    """The components that were asked for, and all else whose release the request names."""
    found: set[int] = set()
    parts = assembly.parts(target)
    for name in assembly.request.wanted:
        if name in parts:
            found.add(parts[name].number)
    for (owner, name), mask in assembly.asked.items():
        # One bit: the request names a release and not a range.
        if owner == target and mask & (mask - 1) == 0:
            found.add(parts[name].number)
    for name in SEVERAL:
        for instance, _ in assembly.named(target, name):
            found.add(assembly.instance(target, name, instance).number)
    return found


def _claimed(
    assembly: Assembly, target: str, claims: Claims, values: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    index, components = assembly.index, assembly.header["components"]
    for about, told in claims.items():
        variable = assembly.variables[about]
        if components[variable.component]["given"] or not values[about]:
            continue
        whole = (2 << variable.count) - 2
        for owner, binding in told:
            # That something must be there ties no release of it.
            if binding.kind == "needs" or not names(index, binding, whole):
                continue
            # What nobody knows ties nothing.
            if binding.evidence == UNKNOWN and not binding.allowed >> values[about] & 1:
                continue
            parts = assembly.parts(target, owner.instance or variable.instance)
            named = {about}
            for name in (owner.component, *binding.conditions):
                part = parts.get(name)
                if part is not None and not components[name]["given"]:
                    named.add(part.number)
            yield tuple(sorted(named))


def names(index: Index, binding: Binding, whole: int) -> bool:
    """Whether a binding speaks of releases of a component, of which `whole` are all, and somebody knows any of it."""
    cites = index.cites(binding.cites)
    if binding.evidence == UNKNOWN and all(cite.evidence == UNKNOWN for cite in cites):
        return False
    # A claim that admits every release there is joins the two only if it names them: "any" ties nothing.
    return binding.allowed & whole != whole or any(
        index.claim(cite.record).selector != "*" for cite in cites
    )


def _tested(rows: Iterable[TestedRow], values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for row in rows:
        if all(mask >> values[number] & 1 for number, mask, _ in row.terms):
            yield tuple(number for number, _, _ in row.terms)
