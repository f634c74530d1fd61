"""Small random problems against brute force: everything the engine promises, exactly."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from toolmatrix.solve.engine import Problem, Solution, Support, settle, solve
from toolmatrix.solve.engine.conflict import combinations, cores, explain

from . import oracle
from .generate import scattered
from .judge import assert_core_by_force, refused, requests, shuffled, solved

ORDERS = ("rank", "index", "reverse")


def small(seed: int) -> Problem:
    """Return a problem of two to six variables."""
    rng = Random(seed)
    return scattered(
        seed,
        rng.randint(2, 6),
        rng.randint(2, 5),
        rng.randint(0, 25),
        rng.randint(0, 8),
        rng.randint(1, 4),
    )


@pytest.mark.parametrize("block", range(40))
def test_solution_is_the_best_of_all(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed)
        found = oracle.solutions(problem)
        for order in ORDERS:
            assert solved(problem, order) == oracle.best(problem, found, order), (seed, order)


@pytest.mark.parametrize("block", range(4))
def test_what_gives_way_is_what_has_to(block: int) -> None:
    moved = 0
    for seed in range(100 * block, 100 * block + 100):
        problem, rng = small(seed), Random(seed)
        numbers = [*range(len(problem.nogoods))]
        numbered = rng.sample(numbers, rng.randint(0, len(numbers)))
        first = rng.sample(range(len(problem.sizes)), rng.randint(0, 2))
        firm = [terms for number, terms in enumerate(problem.nogoods) if number not in numbered]
        start = solve(
            Problem(
                problem.sizes,
                firm,
                problem.supports,
                problem.domains,
                problem.oldest,
                problem.optional,
            )
        )
        expected = oracle.settled(problem, numbered, first)
        assert isinstance(start, Solution) == (expected is not None), seed
        if isinstance(start, Solution):
            assert settle(problem, numbered, first, start).values == expected, seed
            moved += start.values != expected
    assert moved, "no case in which anything binds"


@pytest.mark.parametrize("block", range(20))
def test_cores_are_unsatisfiable_and_irreducible(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed)
        if oracle.solutions(problem):
            continue
        assert not oracle.solutions(problem, refused(problem)), seed
        asked = requests(problem)
        assert_core_by_force(problem, explain(problem, asked))


@pytest.mark.parametrize("block", range(20))
def test_cores_share_nothing_but_requests(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed)
        asked = requests(problem)
        found = cores(problem, asked, limit=3)
        assert len(found) <= 3
        assert bool(found) == (not oracle.solutions(problem))
        spent: set[int] = set()
        for core in found:
            assert_core_by_force(problem, core)
            assert not spent & set(core)
            spent |= set(core).difference(asked)


@pytest.mark.parametrize("block", range(20))
def test_every_combination_is_listed_once(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed)
        rng = Random(seed)
        count = len(problem.sizes)
        chosen = rng.sample(range(count), rng.randint(1, count))
        listed = list(combinations(problem, chosen))
        expected = {tuple(values[v] for v in chosen) for values in oracle.solutions(problem)}
        assert len(listed) == len(set(listed)), seed
        assert set(listed) == expected, seed
        assert list(combinations(problem, chosen, limit=2)) == listed[:2]


@pytest.mark.parametrize("block", range(8))
def test_order_of_input_does_not_matter(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed)
        expected = solved(problem)
        for again in range(4):
            assert solved(shuffled(problem, again)) == expected, seed


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Draw a problem of up to five variables, which hypothesis can shrink."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    variables = st.lists(st.integers(0, len(sizes) - 1), unique=True, min_size=1, max_size=4)

    def mask(variable: int) -> int:
        return draw(st.integers(0, (1 << sizes[variable]) - 1))

    nogoods = [
        tuple((v, mask(v)) for v in draw(variables)) for _ in range(draw(st.integers(0, 15)))
    ]
    supports = [
        Support(
            tuple((v, mask(v), draw(st.integers(0, 2))) for v in draw(variables)),
            draw(st.integers(0, 2)),
        )
        for _ in range(draw(st.integers(0, 5)))
    ]
    return Problem(sizes, nogoods, supports, None, draw(st.integers(0, 31)))


@settings(max_examples=examples(400), derandomize=True, deadline=None, database=None)
@given(problems())
def test_drawn_problems_agree_with_brute_force(problem: Problem) -> None:
    found = oracle.solutions(problem)
    for order in ORDERS:
        assert solved(problem, order) == oracle.best(problem, found, order)
    if not found:
        assert_core_by_force(problem, explain(problem, requests(problem)))


@settings(max_examples=examples(200), derandomize=True, deadline=None, database=None)
@given(problems(), st.data())
def test_one_more_nogood_never_adds_a_solution(problem: Problem, data: st.DataObject) -> None:
    variable = data.draw(st.integers(0, len(problem.sizes) - 1))
    extra = ((variable, data.draw(st.integers(0, (1 << problem.sizes[variable]) - 1))),)
    tighter = Problem(
        problem.sizes,
        [*problem.nogoods, extra],
        problem.supports,
        None,
        problem.oldest,
        problem.optional,
    )
    before = set(combinations(problem, range(len(problem.sizes))))
    assert set(combinations(tighter, range(len(problem.sizes)))) <= before
