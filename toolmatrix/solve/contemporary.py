"""Answers for code of its time: where no fact joins an extension with a framework, none that came out after it."""

from __future__ import annotations

from toolmatrix.factbase.index import Index
from toolmatrix.solve.assemble import Assembly, assembled
from toolmatrix.solve.engine import Conflict
from toolmatrix.solve.known import BOUND
from toolmatrix.solve.parts import Statement
from toolmatrix.solve.request import Request, with_default_accelerators
from toolmatrix.solve.resolve import Resolution, attach_evidence, without_unread
from toolmatrix.solve.revised import revised
from toolmatrix.solve.support import targets_of


def contemporary(index: Index, request: Request) -> Resolution | None:
    """The best answer in which nothing is newer than what was compiled against it, where no fact joins the two.

    None where there is none, or where the few pairs that are looked at lead to none.
    """
    for variant in with_default_accelerators(index, request):
        assembly = assembled(index, variant)
        unread, solution = without_unread(assembly)
        if isinstance(solution, Conflict):
            continue
        # An older framework may take an older extension, and that an older framework.
        if solved := revised(assembly, solution.values, _later_nogoods, unread):
            return attach_evidence(*solved)
    return None


def _later_nogoods(assembly: Assembly, values: tuple[int, ...]) -> list[Statement]:
    """Nogoods for each release of a component after that of what is bound to it and not joined with it."""
    stated = []
    for answer in targets_of(assembly, values).values():
        for pair in answer.touching():
            first = assembly.variable(pair.target, pair.component)
            other = assembly.pick(pair.target, pair.other)
            day = assembly.component(pair.component).dates[values[first.number] - 1]
            if pair.reason != BOUND or other is None or not day:
                continue
            dates = assembly.component(pair.other).dates
            later = sum(2 << place for place, date in enumerate(dates) if date > day)
            if later >> values[other.number] & 1:
                terms = sorted([(first.number, 1 << values[first.number]), (other.number, later)])
                about = pair.target, pair.component, pair.other, 0
                stated.append(Statement(tuple(terms), *about))
    return stated
