"""The releases that were not taken, and why: what forbids each, or what ranked above it."""

from __future__ import annotations

from toolmatrix.solve.assemble import assembled
from toolmatrix.solve.engine.conflict import combinations, excludes, excluding
from toolmatrix.solve.grounds import lines
from toolmatrix.solve.preferences import Anchors
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.engine import Problem
    from toolmatrix.solve.grounds import CoreLine
    from toolmatrix.solve.parts import TestedRow, Variable
    from toolmatrix.solve.preferences import Anchor
    from toolmatrix.solve.resolve import Choice, Resolution

# So many facts of a core a reader can still follow in one line.
_SHORT = 3


class Alternative(Value):
    """Releases not taken for one reason.

    `kind`: `forbidden` (by the nogoods of `core`, given the request), `entangled` (no combination has them, for a
    reason that takes many facts; `core` is what stands against them in the answer as it is), `later` (they go with
    other choices than those made before; `core` is what stands against them then), `outranked` (a row speaks for what
    was taken), `apart` (no source joins them with these `anchors`, as one does what was taken), `older` (nothing tells
    them apart but age).
    """

    kind: str
    releases: tuple[str, ...]
    core: tuple[CoreLine, ...] = ()
    anchors: tuple[str, ...] = ()


def alternatives(found: Resolution, choice: Choice, within: int = -1) -> list[Alternative]:
    """Group the releases of a component but the chosen one by why each was not taken; of all, or of a mask."""
    assembly, values = assembled(found.index, found.request), found.values
    # What the answer lets go has no say in it, and what nobody knows has none in what was asked for.
    let_go: Sequence[int] = assembly.broken(values)
    if found.request.min_evidence:
        # Unread facts bind then.
        let_go = ()
    elif choice.component in found.request.wanted:
        last = assembly.last.difference(let_go)
        let_go = [number for number in assembly.unread if number not in last]
    assembly = assembly.without(let_go).stating(found.set_apart)
    variable = assembly.variable(choice.target, choice.component, choice.instance)
    number = variable.number
    problem = assembly.problem()
    narrowed = problem.forbidding(problem.nogoods)
    narrowed.domains = [*problem.domains]
    narrowed.domains[number] &= within
    rows = assembly.tested_rows
    # Two questions: with which releases is there an answer at all, and with which beside all that was chosen before?
    possible = {first for first, *_ in combinations(narrowed, [number])}
    decided = narrowed.fixing(dict(enumerate(values[:number])), problem.nogoods)
    near = {first for first, *_ in combinations(decided, [number])}
    anchored = _anchored(assembly, choice, values[number])
    best = _level(rows, values, number, values[number])
    lower: dict[tuple[str, tuple[str, ...]], list[str]] = {("outranked", ()): [], ("older", ()): []}
    later: dict[tuple[int, ...], list[str]] = {}
    refused = []
    for candidate in range(1, variable.count + 1):
        if not within >> candidate & 1:
            continue
        release = assembly.version(variable, candidate) or ""
        if candidate not in possible:
            refused.append(candidate)
        elif candidate not in near:
            # Against what was chosen later it may stand as well, but that had no say in it.
            broken = _broken(problem, values, number, candidate, last=number)
            later.setdefault(broken, []).append(release)
        elif candidate != values[number]:
            kind = "outranked" if _level(rows, values, number, candidate) < best else "older"
            lacking = tuple(one.text for one in anchored if not one.joined >> candidate & 1)
            reason = ("apart", lacking) if kind == "older" and lacking else (kind, ())
            lower.setdefault(reason, []).append(release)
    groups = [
        Alternative(kind=kind, releases=tuple(held), anchors=lacking)
        for (kind, lacking), held in lower.items()
        if held
    ]
    groups += _grouped(assembly, "later", later)
    return groups + _refused(assembly, problem, values, variable, refused)


def _grouped(
    assembly: Assembly, kind: str, by_core: Mapping[tuple[int, ...], Sequence[str]]
) -> list[Alternative]:
    return [
        Alternative(kind=kind, releases=tuple(releases), core=tuple(lines(assembly, core)))
        for core, releases in by_core.items()
    ]


def _refused(
    assembly: Assembly,
    problem: Problem,
    values: tuple[int, ...],
    variable: Variable,
    refused: list[int],
) -> list[Alternative]:
    """The refused releases, each group with one core that refuses all of it; newest first."""
    groups: list[Alternative] = []
    entangled: dict[tuple[int, ...], list[str]] = {}
    number, asked = variable.number, assembly.asked_nogoods
    left = refused[::-1]
    while left:
        core = excluding(problem, {number: left[0]}, asked)
        same = [left[0]]
        # No nogood is needed against what a preference of the target leaves out.
        if core:
            same += [part for part in left[1:] if excludes(problem, core, {number: part})]
        left = [candidate for candidate in left if candidate not in same]
        releases = {part: assembly.version(variable, part) or "" for part in same}
        if len({*core} - {*asked}) <= _SHORT:
            groups += _grouped(assembly, "forbidden", {core: [*releases.values()]})
            continue
        ends = _ends(assembly, core, variable.component)
        for candidate, release in releases.items():
            broken = ends or _broken(problem, values, number, candidate, last=len(values))
            entangled.setdefault(broken, []).append(release)
    return groups + _grouped(assembly, "entangled", entangled)


def _ends(assembly: Assembly, core: Sequence[int], component: str) -> tuple[int, ...]:
    """Of a long core the facts about what else the request names: there its chain ends."""
    request = assembly.request
    named = {ask.component for ask in request.asks if not ask.implied} - {component}
    named |= {"device"} if request.devices else set()
    return tuple(
        number
        for number in core
        if assembly.statements[number].binding
        and not named.isdisjoint(
            (assembly.statements[number].subject, assembly.statements[number].component)
        )
    )


def _broken(
    problem: Problem, values: tuple[int, ...], variable: int, candidate: int, last: int
) -> tuple[int, ...]:
    """The first nogood up to a last variable that the answer would break if only this release were another."""
    changed = [*values]
    changed[variable] = candidate
    for number, nogood in enumerate(problem.nogoods):
        if all(place <= last and mask >> changed[place] & 1 for place, mask in nogood):
            return (number,)
    return ()


def _anchored(assembly: Assembly, choice: Choice, value: int) -> list[Anchor]:
    """The anchors that sources join with what was taken."""
    if choice.component not in assembly.request.wanted:
        return []
    found = Anchors(assembly, choice.target).of(choice.component)
    return [anchor for anchor in found if anchor.joined >> value & 1]


def _level(
    rows: Sequence[TestedRow], values: tuple[int, ...], variable: int, candidate: int
) -> tuple[int, int]:
    """The rank of a candidate given what was chosen before it (see `engine`)."""
    return max((row.level(variable, candidate, values) or (0, 0) for row in rows), default=(0, 0))
