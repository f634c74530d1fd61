"""The corners of the interface, one small hand-written problem each."""

from __future__ import annotations

import pytest

from toolmatrix.solve.engine import Conflict, Problem, Solution, Support, solve
from toolmatrix.solve.engine.conflict import combinations, cores, explain

from .generate import Owned
from .judge import refused, solved


def test_nothing_to_choose() -> None:
    assert solved(Problem([], [])) == ()
    assert list(combinations(Problem([], []), [])) == [()]


def test_newest_is_taken_unless_told_otherwise() -> None:
    assert solved(Problem([3, 3], [])) == (2, 2)
    assert solved(Problem([3, 3], [], oldest=0b10)) == (2, 0)
    assert solved(Problem([3, 3], [], oldest=0b10), "index") == (2, 0)
    assert solved(Problem([3, 3], [], oldest=0b10), "reverse") == (0, 2)


def test_an_absence_comes_first_and_the_rest_as_ever() -> None:
    present = [((0, 0b001),), ((1, 0b001),)]
    assert solved(Problem([3, 3], [], oldest=0b10, optional=0b11)) == (0, 0)
    assert solved(Problem([3, 3], [], oldest=0b10, optional=0b11), "reverse") == (1, 2)
    assert solved(Problem([3, 3], present, oldest=0b10, optional=0b11)) == (2, 1)
    assert solved(Problem([1, 1], [], oldest=0b10, optional=0b11), "reverse") == (0, 0)


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown order: 'random'"):
        solve(Problem([1], []), order="random")


def test_an_empty_domain_is_a_conflict_of_nothing() -> None:
    problem = Problem([2, 2], [((0, 1),)], (), [3, 0])
    assert refused(problem) == ()
    assert explain(problem) == ()
    assert cores(problem) == [()]
    assert list(combinations(problem, [0])) == []


def test_an_empty_nogood_is_always_violated() -> None:
    problem = Problem([2], [((0, 1),), ()])
    assert refused(problem) == (1,)
    assert explain(problem) == (1,)
    assert cores(problem) == [(1,)]


def test_two_requests_may_be_the_whole_conflict() -> None:
    problem = Problem([2, 2], [((0, 0b01),), ((0, 0b10),), ((0, 0b11), (1, 0b01))])
    assert explain(problem, (0, 1)) == (0, 1)
    assert cores(problem, (0, 1)) == [(0, 1)]


def test_a_term_that_always_holds_counts_as_true() -> None:
    assert solved(Problem([2, 2], [((0, 0b11), (1, 0b10))])) == (1, 0)
    assert solved(Problem([2, 2, 2], [((0, 0b11), (1, 0b11), (2, 0b10))])) == (1, 1, 0)


def test_masks_may_reach_beyond_the_candidates() -> None:
    assert solved(Problem([2, 2], [((0, -1), (1, ~0b01))])) == (1, 0)


def test_explaining_what_can_be_solved_is_an_error() -> None:
    with pytest.raises(ValueError, match="has a solution"):
        explain(Problem([2], []))
    assert cores(Problem([2], [])) == []


def test_results_show_themselves() -> None:
    assert repr(solve(Problem([2], []))) == "Solution(values=(1,))"
    assert repr(solve(Problem([1], [((0, 1),)]))) == "Conflict(core=(0,), chosen=False)"
    assert isinstance(solve(Problem([2], [])), Solution)
    assert isinstance(solve(Problem([1], [((0, 1),)])), Conflict)


def test_full_agreement_beats_a_heavier_partial_one() -> None:
    whole = Support(((0, 0b10, 3), (2, 0b001, 1)), 3)
    partial = Support(((0, 0b10, 9), (1, 0b01, 9), (2, 0b010, 9)), 9)
    fixed = ((1, 0b01),)
    assert solved(Problem([2, 2, 3], [fixed], [whole, partial])) == (1, 1, 0)
    assert solved(Problem([2, 2, 3], [fixed], [partial])) == (1, 1, 1)
    assert solved(Problem([2, 2, 3], [fixed], [whole, partial]), "index") == (1, 1, 2)


def test_agreement_without_weight_still_counts() -> None:
    assert solved(Problem([2, 2], [], [Support(((0, 0b10, 0), (1, 0b01, 0)), 0)])) == (1, 0)


def test_a_row_speaks_only_after_its_first_variable() -> None:
    row = Support(((0, 0b01, 5), (1, 0b10, 5), (2, 0b001, 5)), 5)
    assert solved(Problem([2, 2, 3], [], [row])) == (1, 1, 2)


@pytest.mark.parametrize(
    ("allowed", "values"), [(0b01, (1, 0, 1)), (0b10, (1, 1, 0))], ids=["absent", "present"]
)
def test_a_row_of_what_is_absent_does_not_speak(allowed: int, values: tuple[int, ...]) -> None:
    row = Owned(((0, 0b10, 5), (1, 0b10, 5), (2, 0b01, 5)), 5)
    assert solved(Problem([2, 2, 2], [((1, ~allowed & 0b11),)], [row])) == values


def test_later_variables_never_influence_a_rank() -> None:
    fixed = ((1, 0b10),)
    row = Support(((0, 0b01, 5), (1, 0b01, 5)), 5)
    assert solved(Problem([2, 2], [fixed], [row])) == (1, 0)


def test_weight_is_the_smaller_of_row_and_term() -> None:
    strong = Support(((0, 0b10, 1), (1, 0b001, 2)), 9)
    weak = Support(((0, 0b10, 1), (1, 0b010, 9)), 1)
    assert solved(Problem([2, 3], [], [strong, weak])) == (1, 0)


def test_ties_of_rank_go_by_index() -> None:
    rows = [Support(((0, 0b1, 1), (1, 1 << value, 1)), 1) for value in (0, 1)]
    assert solved(Problem([1, 3], [], rows)) == (0, 1)
    assert solved(Problem([1, 3], [], rows, oldest=0b10)) == (0, 0)


def test_combinations_come_best_first() -> None:
    problem = Problem([2, 2, 2], [((0, 0b10), (2, 0b10))])
    assert list(combinations(problem, [2, 0])) == [(1, 0), (0, 1), (0, 0)]
    assert list(combinations(problem, [0, 0])) == [(1, 1), (0, 0)]
    assert list(combinations(problem, [1], limit=0)) == []
    older = Problem([2, 2, 2], [], oldest=0b100)
    assert next(combinations(older, [2, 1])) == (0, 1)


def test_no_chosen_variables_have_one_combination() -> None:
    assert list(combinations(Problem([2], []), [])) == [()]
    assert list(combinations(Problem([1], [((0, 1),)]), [])) == []
