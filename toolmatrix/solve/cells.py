"""Every consistent combination of some components, and every excluded one with the reason: the cells of a CI matrix."""

from __future__ import annotations

from itertools import product

from toolmatrix.errors import UsageError
from toolmatrix.solve.engine.conflict import excludes, excluding, explain
from toolmatrix.solve.engine.enumeration import combinations
from toolmatrix.solve.grounds import core
from toolmatrix.solve.parts import Closed, Pin
from toolmatrix.solve.request import Ask
from toolmatrix.solve.resolve import Resolution, attempt
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.engine import Problem
    from toolmatrix.solve.grounds import Core
    from toolmatrix.solve.parts import Variable

LIMIT = 20_000
"""Combinations looked at; more is a mistake in the request rather than a CI matrix."""


class Cells(Value):
    """Combinations of releases of the varied components on one target, the excluded ones each with a core."""

    target: str
    consistent: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[tuple[str, ...], Core], ...]


def cells(assembly: Assembly, target: str, varied: Sequence[str]) -> Cells:
    """All combinations of the releases that the request admits. Raises UsageError when there are too many."""
    variables = [
        variable for name in varied if (variable := assembly.pick(target, name)) is not None
    ]
    numbers = [variable.number for variable in variables]
    problem = assembly.problem()
    sides = [_admitted(assembly, target, variable, problem) for variable in variables]
    # Counted before anything is made: the product may be of millions.
    count = 1
    for side in sides:
        count *= len(side)
    if count > LIMIT:
        raise UsageError(
            "too many combinations",
            expected=f"at most {LIMIT}",
            found=str(count),
            help="narrow them with `--where`, as in --where 'tensorflow>=2.6,<2.9'",
        )
    good = set(combinations(problem, numbers))
    consistent, excluded = [], []
    cores: list[tuple[int, ...]] = []
    for found in product(*sides):
        names = tuple(
            assembly.version(variable, part) or ""
            for variable, part in zip(variables, found, strict=True)
        )
        pins = [
            Pin(target, variable.component, name)
            for variable, name in zip(variables, names, strict=True)
        ]
        weak = _weak(assembly, pins) if found in good else None
        if weak:
            excluded.append((names, weak))
        elif found in good:
            consistent.append(names)
        else:
            values = dict(zip(numbers, found, strict=True))
            # A core that was found before excludes most further combinations too, and is the reason of all of these.
            known = next((known for known in cores if excludes(problem, known, values)), None)
            if known is None:
                known = excluding(problem, values, assembly.asked_nogoods)
                cores.append(known)
            excluded.append((names, core(assembly, known, pins)))
    return Cells(target=target, consistent=tuple(consistent), excluded=tuple(excluded))


def _weak(assembly: Assembly, pins: Sequence[Pin]) -> Core | None:
    """Why a combination is known less well than the request asks, if it is."""
    request = assembly.request
    if not request.min_evidence:
        return None
    asks = [
        Ask(
            component=pin.component,
            selector=assembly.scale(pin.component).exact(pin.release),
            text="",
            target=pin.target,
        )
        for pin in pins
    ]
    # How well a choice is known is seen in a whole answer: the cell is asked as somebody would who pins it.
    found = attempt(assembly.index, request.replace(asks=(*request.asks, *asks)))
    if isinstance(found, Resolution):
        return None
    return core(found, explain(found.problem(), found.asked_nogoods), pins)


def _admitted(assembly: Assembly, target: str, variable: Variable, problem: Problem) -> list[int]:
    asked = assembly.asked.get((target, variable.component), -2) & (2 << variable.count) - 2
    usable = asked & problem.domains[variable.number]
    # Nobody asks of withdrawn releases, nor of those from after the day, and cells without them need no reason.
    for part in assembly.statements:
        if isinstance(part.said, Closed) and part.terms[0][0] == variable.number:
            usable &= ~part.terms[0][1] if len(part.terms) == 1 else -1
    # Cells come in the order in which an answer would prefer them.
    places = range(1, variable.count + 1)
    return [
        candidate
        for candidate in (places if variable.oldest else reversed(places))
        if usable >> candidate & 1
    ]
