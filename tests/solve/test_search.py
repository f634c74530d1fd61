"""The state of a search, step by step: propagation against the plainest way to do it, and what is taken back."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from toolmatrix.solve.engine import Conflict, Problem, Support, ranking, solve
from toolmatrix.solve.engine.search import Search

from . import oracle
from .generate import scattered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.solve.engine import Nogood


def at_rest(
    domains: Sequence[int], nogoods: Sequence[Nogood], decided: Mapping[int, int]
) -> list[int] | None:
    """The domains after every nogood has removed what it can; None where one of them is violated.

    `decided` are the candidates that decisions leave, by variable.
    """
    left = [domain & decided.get(place, -1) for place, domain in enumerate(domains)]
    before: list[int] = []
    while before != left:
        before = list(left)
        for terms in nogoods:
            open_terms = [(v, mask) for v, mask in terms if left[v] & ~mask]
            if not open_terms:
                return None
            if len(open_terms) == 1:
                variable, mask = open_terms[0]
                left[variable] &= ~mask
    return left


def started(problem: Problem, order: str = "index") -> Search:
    return Search(problem.domains, problem.nogoods, ranking(problem, order))


def drawn(seed: int) -> Problem:
    """A problem with nogoods of one to four terms."""
    rng = Random(seed)
    return scattered(seed, rng.randint(3, 6), rng.randint(2, 4), rng.randint(4, 16), 0, 4)


def crossed(seed: int) -> Problem:
    """A problem of which nothing follows at once: nogoods of two and three terms alone, and rows that rank."""
    rng = Random(seed)
    rows = [
        Support([(v, rng.choice((1, 2, 4)), rng.randint(1, 3)) for v in rng.sample(range(5), 2)], 2)
        for _ in range(8)
    ]
    return Problem(
        [3] * 5,
        [
            tuple(
                (v, rng.choice((1, 2, 4, 3, 5, 6)))
                for v in rng.sample(range(5), rng.choice((2, 3)))
            )
            for _ in range(10 + seed % 6)
        ],
        rows,
    )


def decide(search: Search, variable: int, bit: int) -> int:
    """Decide for a candidate; the decision excludes what is there besides, and nothing that comes back later."""
    removed = search.domains[variable] & ~bit
    search.remove(variable, removed, 1 << variable, ())
    search.decisions[variable] = search.trail[-1]
    return ~removed


def assert_rests_on_what_it_names(
    search: Search, problem: Problem, decided: Mapping[int, int]
) -> None:
    """Every event follows from the decisions that it names, and from no others."""
    for _, variable, bits, needs, _ in search.trail:
        assert not needs & ~sum(1 << place for place in decided)
        named = {place: bit for place, bit in decided.items() if needs >> place & 1}
        alone = at_rest(problem.domains, problem.nogoods, named)
        assert alone is None or not alone[variable] & bits


@pytest.mark.parametrize("block", range(10))
def test_what_is_decided_and_taken_back_leaves_what_plain_propagation_leaves(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        problem, rng = (crossed(seed) if seed % 2 else drawn(seed)), Random(seed)
        search, decided = started(problem), dict[int, int]()
        if search.failed:
            assert at_rest(problem.domains, problem.nogoods, {}) is None
            continue
        for _ in range(12):
            clash = search.propagate()
            expected = at_rest(problem.domains, problem.nogoods, decided)
            assert (clash is None) == (expected is not None), seed
            if expected is None:
                if not decided:
                    break
                gone = rng.choice(sorted(decided))
            else:
                assert search.domains == expected, seed
                assert_rests_on_what_it_names(search, problem, decided)
                wide = [
                    place
                    for place, domain in enumerate(search.domains)
                    if domain & domain - 1 and place not in decided
                ]
                if wide and rng.random() < 0.7:
                    variable = rng.choice(wide)
                    bits = [bit for bit in (1, 2, 4, 8) if search.domains[variable] & bit]
                    decided[variable] = decide(search, variable, rng.choice(bits))
                    continue
                if not decided:
                    break
                gone = rng.choice(sorted(decided))
            search.take_back(gone)
            del decided[gone]


@pytest.mark.parametrize("block", range(5))
def test_what_is_learned_follows_from_what_is_given_and_the_best_is_found(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        problem = crossed(seed) if seed % 2 else drawn(seed)
        search = started(problem)
        found = oracle.solutions(problem)
        assert search.run() == bool(found), seed
        if found:
            assert search.values() == oracle.best(problem, found, "index"), seed
        for terms in search.nogoods[len(problem.nogoods) :]:
            for values in found:
                assert not all(mask >> values[v] & 1 for v, mask in terms), seed


@pytest.mark.parametrize("block", range(10))
def test_the_best_is_found_whatever_was_decided_before(block: int) -> None:
    """A decision that is not the best, or stands in the way of an earlier variable, is taken back."""
    for seed in range(40 * block, 40 * block + 40):
        problem, rng = crossed(seed), Random(seed)
        found = oracle.solutions(problem)
        search = started(problem, "rank")
        for variable in rng.sample(range(5), seed % 6):
            if search.propagate() is not None:
                break
            if search.domains[variable] & search.domains[variable] - 1:
                bits = [bit for bit in (1, 2, 4) if search.domains[variable] & bit]
                decide(search, variable, rng.choice(bits))
        assert search.run() == bool(found), seed
        if found:
            assert search.values() == oracle.best(problem, found, "rank"), seed


@pytest.mark.parametrize("block", range(5))
def test_what_was_learned_is_propagated_like_what_was_given(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        problem, rng = crossed(seed), Random(seed)
        search = started(problem)
        if not search.run():
            continue
        for gone in rng.sample(sorted(search.decisions), len(search.decisions)):
            search.take_back(gone)
            assert search.propagate() is None
            decided = {place: ~event[2] for place, event in search.decisions.items()}
            assert search.domains == at_rest(problem.domains, search.nogoods, decided), seed


def test_a_search_gives_up_after_so_many_conflicts_and_goes_on_where_it_was() -> None:
    most = 0
    for seed in range(60):
        problem = crossed(seed)
        whole = started(problem)
        end = whole.run()
        conflicts = len(whole.antecedents) + whole.failed
        for limit in range(conflicts):
            search = started(problem)
            assert search.run(limit) is None, seed
            assert len(search.antecedents) == limit
            assert search.run() is end
            if end:
                assert search.values() == whole.values()
            else:
                assert not oracle.solutions(problem, search.core())
        assert started(problem).run(conflicts) is end
        most = max(most, conflicts)
    assert most > 2


def test_a_learned_nogood_is_kept_with_what_it_was_made_of() -> None:
    # Candidate 1 of the first leaves the second none: each half of it is excluded by one nogood.
    given = [((0, 0b10), (1, 0b01)), ((0, 0b10), (1, 0b10))]
    search = started(Problem([2, 2], given))
    assert search.run() is True
    assert search.values() == (0, 1)
    assert search.nogoods == [*given, ((0, 0b10),)]
    assert [used for used, _ in search.antecedents] == [[0, 1]]
    assert search.domains == [0b01, 0b10]
    assert search.core() == ()


def test_nogoods_of_one_term_act_before_any_choice() -> None:
    search = started(Problem([3, 2], [((0, 0b001),), ((0, 0b001),), ((0, 0b100),), ((1, 0),)]))
    assert search.domains == [0b010, 0b11]
    assert [
        (variable, bits, needs, reason) for _, variable, bits, needs, reason in search.trail
    ] == [
        (0, 0b001, 0, (0,)),
        (0, 0b100, 0, (2,)),
    ]
    failed = started(Problem([2, 2], [((0, 0b01),), ((0, 0b10),), ((1, 0b11),)]))
    assert (failed.failed, failed.run(), failed.core()) == (True, False, (0, 1))


def test_a_variable_is_settled_again_where_a_row_ranks_it_or_its_domain_grew() -> None:
    search = started(Problem([2, 2], []))
    assert search.run() is True
    assert search.run() is True
    assert [search.decisions[place][2] for place in (0, 1)] == [0b01, 0b01]
    search.take_back(1)
    assert search.domains == [0b10, 0b11]
    assert search.run() is True
    assert search.values() == (1, 1)


def test_an_empty_domain_is_a_failure_from_the_start() -> None:
    search = started(Problem([2, 2], [((0, 1),)], (), [3, 0]))
    assert (search.failed, search.run(), search.core()) == (True, False, ())


def test_a_removal_rests_on_all_that_made_its_reasons_true() -> None:
    problem = Problem([3, 3, 1, 1], [((0, 0b011), (1, 0b001)), ((0, 0b101), (1, 0b010))])
    search = started(problem)
    search.remove(0, 0b100, 0b0100, ())
    search.remove(0, 0b010, 0b1000, ())
    assert search.propagate() is None
    _, variable, removed, needs, reason = search.trail[-1]
    assert (variable, removed, needs, reason) == (1, 0b011, 0b1100, (0, 1))


# Whatever the third and fourth are, not with this candidate of the first; no single choice shows it.
AGAINST = [((0, 0b10), (2, one), (3, other)) for one in (1, 2) for other in (1, 2)]


def test_a_variable_is_ranked_anew_where_an_earlier_one_had_to_change() -> None:
    row = Support([(0, 0b01, 1), (1, 0b01, 1)], 1)
    search = started(Problem([2, 2, 2, 2], AGAINST, [row]), "rank")
    assert search.run() is True
    assert search.values() == (0, 0, 1, 1)


def test_a_conflict_knows_whether_anything_was_chosen() -> None:
    found = solve(Problem([2, 2, 2, 2], [*AGAINST, ((0, 0b01),)]))
    assert isinstance(found, Conflict)
    assert found.chosen
    assert sorted(found.core) == [0, 1, 2, 3, 4]
    at_once = solve(Problem([2], [((0, 0b01),), ((0, 0b10),)]))
    assert isinstance(at_once, Conflict)
    assert not at_once.chosen
