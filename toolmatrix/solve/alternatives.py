"""The releases that were not taken, and why: what forbids each, or what ranked above it."""

from __future__ import annotations

from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Conflict, Problem, solve
from toolmatrix.solve.engine.conflict import explain
from toolmatrix.solve.engine.enumeration import combinations
from toolmatrix.solve.grounds import lines
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.solve.grounds import CoreLine
    from toolmatrix.solve.parts import Variable
    from toolmatrix.solve.resolve import Choice, Resolution

# So many facts of a core a reader can still follow in one line.
_SHORT = 3


class Alternative(Value):
    """Releases not taken for one reason.

    `kind`: `forbidden` (by the nogoods of `core`, given the request), `entangled` (no combination has them, for a
    reason that takes many facts; `core` is what stands against them in the answer as it is), `later` (they go with
    other choices than those made before; `core` is what stands against them then), `outranked` (a row speaks for what
    was taken), `older` (nothing tells them apart but age).
    """

    kind: str
    releases: tuple[str, ...]
    core: tuple[CoreLine, ...] = ()


def alternatives(found: Resolution, choice: Choice) -> list[Alternative]:
    """Group every release of a component but the chosen one by why it was not taken."""
    assembly, values = Assembly(found.index, found.request), found.values
    variable = assembly.variable(choice.target, choice.component, choice.instance)
    problem = assembly.problem()
    chosen = values[variable.number]
    possible = {first for first, *_ in combinations(problem, [variable.number])}
    settled = [((number, ~(1 << values[number])),) for number in range(variable.number)]
    decided = problem.forbidding([*problem.nogoods, *settled])
    near = {first for first, *_ in combinations(decided, [variable.number])}
    best = _level(assembly, values, variable, chosen)
    lower: dict[str, list[str]] = {"outranked": [], "older": []}
    later: dict[tuple[int, ...], list[str]] = {}
    refused = []
    for candidate in range(1, variable.count + 1):
        release = assembly.version(variable, candidate) or ""
        if candidate not in possible:
            refused.append(candidate)
        elif candidate not in near:
            broken = _broken(problem, values, variable, candidate, before=True)
            later.setdefault(broken, []).append(release)
        elif candidate != chosen:
            kind = "outranked" if _level(assembly, values, variable, candidate) < best else "older"
            lower[kind].append(release)
    groups = [Alternative(kind=kind, releases=tuple(held)) for kind, held in lower.items() if held]
    groups += [
        Alternative(kind="later", releases=tuple(held), core=tuple(lines(assembly, core)))
        for core, held in later.items()
    ]
    return groups + _refused(assembly, problem, values, variable, refused)


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
    left = refused[::-1]
    while left:
        core = _core(problem, variable, left[0], assembly.asked_nogoods)
        same = [left[0]]
        if core:
            same += [part for part in left[1:] if _refuses(problem, core, variable, part)]
        left = [candidate for candidate in left if candidate not in same]
        releases = tuple(assembly.version(variable, candidate) or "" for candidate in same)
        if sum(number not in assembly.asked_nogoods for number in core) <= _SHORT:
            told = tuple(lines(assembly, core))
            groups.append(Alternative(kind="forbidden", releases=releases, core=told))
            continue
        for candidate, release in zip(same, releases, strict=True):
            broken = _broken(problem, values, variable, candidate)
            entangled.setdefault(broken, []).append(release)
    return groups + [
        Alternative(kind="entangled", releases=tuple(releases), core=tuple(lines(assembly, core)))
        for core, releases in entangled.items()
    ]


def _broken(
    problem: Problem,
    values: tuple[int, ...],
    variable: Variable,
    candidate: int,
    *,
    before: bool = False,
) -> tuple[int, ...]:
    """The first nogood that the answer would break if only this component were another release.

    With `before` only what was chosen before it counts.
    """
    changed = [*values]
    changed[variable.number] = candidate
    for number, nogood in enumerate(problem.nogoods):
        if all(
            mask >> changed[place] & 1 and not (before and place > variable.number)
            for place, mask in nogood
        ):
            return (number,)
    return ()


def _core(
    problem: Problem, variable: Variable, candidate: int, asked: Sequence[int]
) -> tuple[int, ...]:
    """The reason why a candidate cannot be: a core of the problem with the candidate demanded, without that demand."""
    number = len(problem.nogoods)
    core = explain(
        _demanding(problem, problem.nogoods, variable, candidate), requests=(*asked, number)
    )
    return tuple(part for part in core if part != number)


def _refuses(problem: Problem, core: Sequence[int], variable: Variable, candidate: int) -> bool:
    nogoods = [problem.nogoods[number] for number in core]
    return isinstance(solve(_demanding(problem, nogoods, variable, candidate)), Conflict)


def _demanding(
    problem: Problem,
    nogoods: Sequence[tuple[tuple[int, int], ...]],
    variable: Variable,
    candidate: int,
) -> Problem:
    everything_else = (2 << variable.count) - 1 & ~(1 << candidate)
    return problem.forbidding([*nogoods, ((variable.number, everything_else),)])


def _level(
    assembly: Assembly, values: tuple[int, ...], variable: Variable, candidate: int
) -> tuple[int, int]:
    """The rank of a candidate given what was chosen before it (see `engine`)."""
    levels = [
        row.level(variable.number, candidate, values) or (0, 0) for row in assembly.tested_rows
    ]
    return max(levels, default=(0, 0))
