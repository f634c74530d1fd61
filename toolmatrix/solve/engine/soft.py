"""Nogoods that give way: the best solution of a problem some of whose nogoods may be broken.

The variables in ``first`` take the values of the best solution without the soft nogoods, so that none of these changes
them. Then the soft nogoods are taken in the order given: each binds if it can be kept together with all other nogoods
and with the soft ones kept before it. The result is the best solution that keeps those.
"""

from __future__ import annotations

from toolmatrix.solve.engine import Conflict, Problem, solve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolmatrix.solve.engine import Solution


def settle(
    problem: Problem, soft: Sequence[int], first: Iterable[int], start: Solution
) -> Solution:
    """The best solution, where ``start`` is the best one without the soft nogoods, which are given by their numbers."""
    # What the best of all solutions keeps anyway changes nothing.
    if not any(_broken(problem, number, start) for number in soft):
        return start
    domains = list(problem.domains)
    for variable in first:
        domains[variable] = 1 << start.values[variable]
    given_up: set[int] = set()
    end = len(soft)
    while True:
        # Soft nogoods behind `end` wait until it is known whether the one at `end` has to be given up.
        out = given_up.union(soft[end:])
        numbers = [number for number in range(len(problem.nogoods)) if number not in out]
        nogoods = [problem.nogoods[number] for number in numbers]
        found = solve(
            Problem(
                problem.sizes, nogoods, problem.supports, domains, problem.oldest, problem.optional
            )
        )
        if isinstance(found, Conflict):
            clash = {numbers[place] for place in found.core}
            end = max(place for place, number in enumerate(soft) if number in clash)
        elif end == len(soft):
            return found
        else:
            # All before it can be kept, and with it no more: it is the one that gives way.
            given_up.add(soft[end])
            end = len(soft)


def _broken(problem: Problem, number: int, solution: Solution) -> bool:
    return all(mask >> solution.values[variable] & 1 for variable, mask in problem.nogoods[number])
