"""Rows in groups rank as they do one by one; a conflict without a choice is the same in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.solve.generate import scattered
from toolmatrix.solve.engine import Conflict, Problem, Solution, Support, SupportGroup, solve

if TYPE_CHECKING:
    from collections.abc import Sequence


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
