"""An answer that is solved again until no objection to it is left."""

from __future__ import annotations

from toolmatrix.solve.engine import Conflict, solve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import Statement

TRIES = 8
"""Answers of a changed request that are tried where some evidence is demanded."""


def revised(
    assembly: Assembly,
    values: tuple[int, ...],
    objections: Callable[[Assembly, tuple[int, ...]], Sequence[Statement]],
    unread: Sequence[int] = (),
) -> tuple[Assembly, tuple[int, ...]] | None:
    """The best answer to which there are no objections, with its problem, if few answers are before it.

    The statements that are `unread` do not bind.
    """
    # A refusal is about the pairs of one answer; the next best has pairs of its own.
    for _ in range(TRIES):
        stated = objections(assembly, values)
        if not stated:
            return assembly, values
        assembly = assembly.stating(stated)
        solution = solve(assembly.without(unread).problem())
        if isinstance(solution, Conflict):
            break
        values = solution.values
    return None
