"""Shared checks: what makes an answer or a core right."""

from __future__ import annotations

from random import Random

from toolmatrix.solve.engine import Conflict, Problem, Solution, solve

from . import oracle


def solved(problem: Problem, order: str = "rank") -> tuple[int, ...] | None:
    """Return the values of the solution, or ``None`` where there is a conflict."""
    result = solve(problem, order=order)
    if isinstance(result, Solution):
        return result.values
    assert isinstance(result, Conflict)
    return None


def refused(problem: Problem) -> tuple[int, ...]:
    """Return the core of a problem known to have no solution."""
    result = solve(problem)
    assert isinstance(result, Conflict)
    return result.core


def assert_core_by_force(problem: Problem, core: tuple[int, ...]) -> None:
    """Check that a core is sorted, unsatisfiable alone and irreducible, by brute force."""
    assert list(core) == sorted(set(core))
    assert not oracle.solutions(problem, core)
    for gone in core:
        assert oracle.solutions(problem, [index for index in core if index != gone])


def assert_valid(problem: Problem, values: tuple[int, ...]) -> None:
    """Check that values lie in their domains and violate nothing."""
    assert len(values) == len(problem.sizes)
    assert all(problem.domains[v] >> value & 1 for v, value in enumerate(values))
    assert not any(oracle.violated(problem, values, i) for i in range(len(problem.nogoods)))


def shuffled(problem: Problem, seed: int) -> Problem:
    """Return the same problem with nogoods, supports and their terms in another order."""
    rng = Random(seed)
    nogoods = [tuple(rng.sample(terms, len(terms))) for terms in problem.nogoods]
    supports = list(problem.supports)
    rng.shuffle(nogoods)
    rng.shuffle(supports)
    return Problem(
        problem.sizes, nogoods, supports, problem.domains, problem.oldest, problem.optional
    )


def requests(problem: Problem) -> list[int]:
    """Return the nogoods of one term: what a user would have asked for."""
    return [index for index, terms in enumerate(problem.nogoods) if len(terms) == 1]
