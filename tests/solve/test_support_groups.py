"""Rows in groups rank as they do one by one; a conflict without a choice is the same in any order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from toolmatrix.solve.engine import (
    Conflict,
    Problem,
    Solution,
    Support,
    SupportGroup,
    ranking,
    search,
    solve,
)
from toolmatrix.solve.engine.free import Free, crowded

from . import oracle
from .generate import pigeons, scattered, seats
from .judge import shuffled


class Bound(SupportGroup):
    """A group of rows that are there already."""

    __slots__ = ("asked", "one_by_one")

    def __init__(self, rows: Sequence[Support]) -> None:
        anchored = 0
        for row in rows:
            anchored |= row.anchor_mask
        super().__init__(rows[0].variables, anchored, rows[0].weight)
        self.one_by_one = rows
        self.asked: list[int] = []

    def make(self, values: int) -> Sequence[Support]:
        self.asked.append(values)
        return [row for row in self.one_by_one if row.anchor_mask & values]


def bound(rows: Sequence[Support]) -> list[Bound]:
    """Rows in groups: those together that join the same variables."""
    same: dict[tuple[int, ...], list[Support]] = {}
    for row in rows:
        same.setdefault(tuple(row.variables), []).append(row)
    return [Bound(rows) for rows in same.values()]


@pytest.mark.parametrize("seed", range(150))
def test_groups_rank_as_their_rows(seed: int) -> None:
    problem = scattered(seed, 5, 4, 8, 120, 3)
    # In groups there are several rows only where few values are told apart.
    rows = [
        Support(
            [(row.terms[0][0], row.terms[0][1] & 3 or 1, row.terms[0][2]), *row.terms[1:]],
            row.weight,
        )
        for row in problem.supports
        if len(row.terms) > 1
    ]
    support_groups = bound(rows)
    assert len(support_groups) < len(rows)
    alone, together = (
        solve(
            Problem(
                problem.sizes,
                problem.nogoods,
                supports,
                problem.domains,
                problem.oldest,
                problem.optional,
            )
        )
        for supports in (rows, support_groups)
    )
    assert repr(alone) == repr(together)
    # Of one value at a time, and of each once.
    for group in support_groups:
        assert len(set(group.asked)) == len(group.asked)
        assert not any(values & values - 1 for values in group.asked)


def test_a_refusal_makes_no_rows() -> None:
    support_group = Bound([Support([(0, 1, 1), (1, 1, 1)], 1)])
    found = solve(Problem([2, 2], [((0, 1),), ((0, 2),)], [support_group]))
    assert isinstance(found, Conflict)
    assert not found.chosen
    assert not support_group.asked


@pytest.mark.parametrize("seed", range(150))
def test_a_conflict_without_a_choice_is_the_same_in_any_order(seed: int) -> None:
    problem = scattered(seed, 7, 5, 150, 10, 4)
    problem.nogoods = [nogood for nogood in problem.nogoods if len(nogood) > seed % 4]
    ranked, first, last = (solve(problem, order=order) for order in ("rank", "index", "reverse"))
    if isinstance(first, Solution):
        assert isinstance(last, Solution)
        return
    assert isinstance(ranked, Conflict)
    assert isinstance(last, Conflict)
    assert first.chosen == last.chosen == ranked.chosen
    if not first.chosen:
        assert first.core == last.core == ranked.core


# The search of hard problems, taken over at any moment, and counting: both against brute force.


def begin(problem: Problem, order: str = "rank") -> search.Search:
    """Return a search that has not begun."""
    return search.Search(problem.domains, problem.nogoods, ranking(problem, order))


def small(seed: int) -> Problem:
    """Return a problem of three to seven variables, most of which need a search."""
    rng = Random(f"free {seed}")
    shape = (rng.randint(3, 7), rng.randint(2, 4), rng.randint(5, 40), rng.randint(0, 8))
    return scattered(seed, *shape, rng.randint(2, 4))


def rooms(seed: int) -> Problem:
    """Return pigeons, mostly more than holes, that share some holes unless the last choice is 1."""
    rng = Random(f"rooms {seed}")
    holes = rng.randint(2, 4)
    count = holes + rng.randint(0, 1)
    nogoods: list[tuple[tuple[int, int], ...]] = []
    for one, two in combinations(range(count), 2):
        for hole in range(holes):
            terms = rng.sample([(one, 1 << hole), (two, 1 << hole)], 2)
            nogoods.append(tuple(terms + [(count, 0b10)] * (rng.random() < 0.2)))
    for _ in range(rng.randint(0, 3)):
        one, two = rng.sample(range(count), 2)
        nogoods.append(((one, rng.randrange(1, 1 << holes)), (two, rng.randrange(1, 1 << holes))))
    fixed = rng.choice((0b11, 0b11, 0b10))
    return Problem([holes] * count + [2], nogoods, (), [(1 << holes) - 1] * count + [fixed])


@pytest.mark.parametrize("block", range(20))
def test_it_finds_the_best_solution_whenever_it_takes_over(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed) if seed % 2 else rooms(seed)
        found = oracle.solutions(problem)
        for order in ("rank", "index", "reverse"):
            expected = oracle.best(problem, found, order)
            ordered = begin(problem, order)
            answer = ordered.run(seed % 7)
            if answer is None:
                answer = Free(ordered).run()
            assert (ordered.values() if answer else None) == expected, (seed, order)
            free = Free(begin(problem, order))
            if not free.search.failed:
                assert (free.search.values() if free.run() else None) == expected, (seed, order)


@pytest.mark.parametrize("block", range(20))
def test_its_cores_have_no_solution(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        problem = small(seed) if seed % 2 else rooms(seed)
        searched = begin(problem)
        if not searched.failed and not Free(searched).run():
            assert not oracle.solutions(problem, searched.core()), seed


def test_what_counting_finds_is_implied_by_what_it_used() -> None:
    found = 0
    for seed in range(400):
        problem = rooms(seed)
        searched = begin(problem)
        if searched.propagate() is not None:
            continue
        clash = crowded(searched, range(len(problem.sizes)))
        if clash is None:
            continue
        found += 1
        clashing = [((variable, ~mask),) for variable, mask in clash.terms.items()]
        both = Problem(problem.sizes, [*problem.nogoods, *clashing])
        assert not oracle.solutions(
            both, [*clash.used, *range(len(problem.nogoods), len(both.nogoods))]
        )
    assert found >= 50


@pytest.mark.parametrize("problem", [pigeons(7), seats(6)], ids=["domains", "nogoods"])
def test_counting_refutes_pigeons_without_any_search(problem: Problem) -> None:
    for seed in range(5):
        searched = begin(shuffled(problem, seed))
        assert searched.propagate() is None
        clash = crowded(searched, range(len(problem.sizes)))
        assert clash is not None
        assert sorted(clash.used) == list(range(len(problem.nogoods)))


def test_counting_refutes_nothing_that_fits() -> None:
    problem = pigeons(6)
    fitting = [terms for terms in problem.nogoods if all(v < 6 for v, _ in terms)]
    assert crowded(begin(Problem([6] * 6, fitting)), range(6)) is None
