"""Rows that can never speak under a request are left out of its problem, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolmatrix.facts.store import open_index
from toolmatrix.request.read import Surroundings
from toolmatrix.solve import preferences
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Solution, solve

if TYPE_CHECKING:
    from toolmatrix.facts.index import Index


@pytest.fixture
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def assembly(index: Index, words: str) -> Assembly:
    return Assembly(index, Surroundings(index=index).read(words.split()))


@pytest.mark.parametrize(
    "words",
    [
        "tensorflow==2.6.5",
        "tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python",
        "tensorflow>=2.4,<2.9 cuda --arch sm_80",
        "tensorflow==2.15.0 --from wheel --accelerator none",
        "cudnn cuda==11.2.2 --prefer oldest",
    ],
)
def test_every_row_gives_the_same_answer(index: Index, words: str) -> None:
    assembled = assembly(index, words)
    problem = assembled.problem()
    rows = assembled.every_row()
    assert len(assembled.tested_rows) < len(rows)
    found = solve(problem)
    supports = [
        *preferences.kept(assembled),
        *preferences.builds(assembled),
        *rows,
        *preferences.of_its_time(assembled),
    ]
    problem.supports = supports
    other = solve(problem)
    assert isinstance(found, Solution)
    assert isinstance(other, Solution)
    assert found.values == other.values


def test_what_the_context_rules_out_cannot_speak(index: Index) -> None:
    left = assembly(index, "tensorflow==2.6.5 --accelerator none").narrowed("x86")
    assert left["cuda"] == left["rocm"] == 1
