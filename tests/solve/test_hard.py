"""Adversarial instances have the right answer; how long they take is for the benchmarks."""

from __future__ import annotations

import pytest

from tests.amount import sampled
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.engine.conflict import combinations, explain

from . import oracle
from .generate import backjump, banded, diamonds, guarded, pigeons, puzzles, scrambled
from .judge import refused, solved

BEYOND = {"pigeons-9", "pigeons-10", "guarded-9-100"}
"""Puzzles that take the SAT solver seconds: it does not count."""


@pytest.mark.parametrize("name", sampled(sorted(puzzles().keys() - BEYOND), every=4))
def test_puzzles_agree_with_the_sat_solver(name: str) -> None:
    problem = puzzles()[name]
    sat = oracle.Sat(problem)
    values = solved(problem)
    assert values == sat.best()
    if values is None:
        assert not sat.satisfiable(refused(problem))
    sat.close()


@pytest.mark.parametrize("holes", [8, 9, 10])
def test_many_pigeons_are_refused_by_all_their_nogoods(holes: int) -> None:
    problem = pigeons(holes)
    assert refused(problem) == tuple(range(len(problem.nogoods)))


@pytest.mark.parametrize("holes", [7, 9])
def test_pigeons_behind_a_choice_leave_its_worst_candidate(holes: int) -> None:
    assert solved(guarded(holes, 100)) == (0, *[4] * 100, *[holes - 1] * (holes + 1))


def test_a_far_choice_is_found_guilty() -> None:
    values = solved(backjump(40))
    assert values is not None
    assert values[0] == 0


@pytest.mark.parametrize("holes", [3, 4, 5])
def test_pigeons_need_every_nogood(holes: int) -> None:
    problem = pigeons(holes)
    assert explain(problem) == tuple(range(len(problem.nogoods)))


def test_diamonds_blame_their_bottom() -> None:
    problem = diamonds(7)
    assert explain(problem) == (len(problem.nogoods) - 2, len(problem.nogoods) - 1)


def test_pigeons_that_fit_are_listed_in_every_way() -> None:
    problem = pigeons(5)
    fitting = [terms for terms in problem.nogoods if all(v < 5 for v, _ in terms)]
    assert len(list(combinations(Problem([5] * 5, fitting), range(5)))) == 120


@pytest.mark.slow
def test_a_random_problem_without_a_solution_is_refused() -> None:
    problem = scrambled(16, 3, planted=False)
    sat = oracle.Sat(problem)
    assert solved(problem) == sat.best()
    sat.close()


@pytest.mark.slow
def test_a_large_matrix_with_late_requests_is_solved() -> None:
    problem = banded(448, 60, 0, pins=10)
    values = solved(problem)
    assert values is not None
    assert not any(oracle.violated(problem, values, i) for i in range(len(problem.nogoods)))
