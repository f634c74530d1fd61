"""Explanations of contradictions planted in large matrices stay near the planted size."""

from __future__ import annotations

import pytest

from toolmatrix.solve.engine import Problem
from toolmatrix.solve.engine.conflict import cores, explain

from . import oracle
from .generate import pinched
from .judge import solved


@pytest.mark.parametrize("length", range(3, 20))
@pytest.mark.parametrize("seed", [1, 2])
def test_a_chain_between_two_requests_is_found(length: int, seed: int) -> None:
    planted = pinched(112, 20, length, seed)
    core = explain(planted.problem, planted.requests)
    sat = oracle.Sat(planted.problem)
    assert oracle.irreducible(sat, core)
    assert len(core) <= 2 * (len(planted.chain) + len(planted.requests))
    sat.close()


@pytest.mark.parametrize("length", [3, 11, 19])
def test_the_matrix_is_satisfiable_without_the_chain(length: int) -> None:
    planted = pinched(112, 20, length, 1)
    kept = [
        terms
        for index, terms in enumerate(planted.problem.nogoods)
        if index not in planted.requests
    ]
    assert solved(Problem(planted.problem.sizes, kept)) is not None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_independent_contradictions_are_all_found(seed: int) -> None:
    one, two = pinched(40, 12, 4, seed), pinched(40, 12, 6, seed + 10)
    offset, rows = len(one.problem.sizes), len(one.problem.nogoods)
    moved = [tuple((v + offset, mask) for v, mask in terms) for terms in two.problem.nogoods]
    both = Problem([*one.problem.sizes, *two.problem.sizes], [*one.problem.nogoods, *moved])
    asked = [*one.requests, *(rows + index for index in two.requests)]
    found = cores(both, asked)
    assert len(found) >= 2
    sides = {index < rows for core in found for index in core}
    assert sides == {True, False}
    sat = oracle.Sat(both)
    assert all(oracle.irreducible(sat, core) for core in found)
    sat.close()
    assert cores(both, asked, limit=1) == found[:1]
