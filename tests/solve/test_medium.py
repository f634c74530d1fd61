"""Problems too large for brute force, against CaDiCaL and clingo."""

from __future__ import annotations

from random import Random

import clingo
import pytest

from tests.amount import sampled
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.engine.conflict import combinations, explain

from . import oracle
from .generate import banded, scattered
from .judge import assert_valid, refused, requests, shuffled, solved


def medium(seed: int) -> Problem:
    """Return a matrix of 8 to 20 variables, with bands, pins and some nogoods at random."""
    rng = Random(seed)
    variables, candidates = rng.randint(8, 20), rng.randint(3, 10)
    matrix = banded(variables, candidates, seed, links=rng.randint(1, 3), vouched=0.4)
    noise = scattered(seed, variables, 3, rng.randint(0, 4 * variables), rng.randint(0, 10), 3)
    chosen = rng.sample(range(variables), rng.randint(0, 3))
    pins = [((v, rng.randrange(1, 1 << candidates)),) for v in chosen]
    unequal = [terms for terms in noise.nogoods if len(terms) > 1]
    return Problem(
        matrix.sizes,
        [*matrix.nogoods, *unequal, *pins],
        [*matrix.supports, *noise.supports],
        None,
        noise.oldest,
        noise.optional,
    )


def clingo_satisfiable(problem: Problem) -> bool:
    """Return whether clingo finds a solution."""
    lines = [f"1 {{ x({v},0..{size - 1}) }} 1." for v, size in enumerate(problem.sizes)]
    for index, terms in enumerate(problem.nogoods):
        for place, (variable, mask) in enumerate(terms):
            holding = [
                f"x({variable},{i})" for i in range(problem.sizes[variable]) if mask >> i & 1
            ]
            lines += [f"t({index},{place}) :- {atom}." for atom in holding]
        body = ", ".join(f"t({index},{place})" for place in range(len(terms)))
        lines.append(f"#defined t/2. :- {body}.")
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    return bool(control.solve().satisfiable)


@pytest.mark.parametrize("block", sampled(range(26), every=5))
def test_medium_matrices_agree_with_the_sat_solver(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem = medium(seed)
        sat = oracle.Sat(problem)
        values = solved(problem)
        if values is None:
            assert not sat.satisfiable(refused(problem)), seed
            assert oracle.irreducible(sat, explain(problem, requests(problem))), seed
        else:
            assert_valid(problem, values)
            for order in ("rank", "index", "reverse"):
                assert solved(problem, order) == sat.best(order), (seed, order)
        sat.close()


@pytest.mark.parametrize("block", sampled(range(26), every=5))
def test_medium_matrices_agree_with_clingo(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem = medium(seed)
        assert clingo_satisfiable(problem) == (solved(problem) is not None), seed


def test_both_answers_occur_often_enough_to_mean_something() -> None:
    refusals = sum(solved(medium(seed)) is None for seed in range(520))
    assert 130 <= refusals <= 390


@pytest.mark.parametrize("seed", sampled(range(30), every=3))
def test_order_of_input_does_not_matter(seed: int) -> None:
    problem = medium(seed)
    expected = solved(problem)
    assert all(solved(shuffled(problem, again)) == expected for again in range(3))


@pytest.mark.parametrize("seed", sampled(range(30), every=3))
def test_listed_combinations_are_exactly_the_possible_ones(seed: int) -> None:
    problem = medium(seed)
    chosen = Random(seed).sample(range(len(problem.sizes)), 2)
    sat = oracle.Sat(problem)
    expected = {
        (a, b)
        for a in range(problem.sizes[chosen[0]])
        for b in range(problem.sizes[chosen[1]])
        if sat.satisfiable(chosen=[(chosen[0], a), (chosen[1], b)])
    }
    listed = list(combinations(problem, chosen))
    assert len(listed) == len(set(listed))
    assert set(listed) == expected
    sat.close()


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.long] * (seed > 0)) for seed in range(6)]
)
def test_a_matrix_of_real_size_has_the_best_solution(seed: int) -> None:
    problem = banded(28, 60, seed, pins=seed % 3, vouched=0.3)
    sat = oracle.Sat(problem)
    assert solved(problem) == sat.best()
    sat.close()
