"""Rows that can never speak under a request are left out of its problem, and nothing else."""

from __future__ import annotations

import pytest

from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.request.read import RequestContext
from toolmatrix.solve import preferences
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Solution, solve
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.resolve import attach_evidence


@pytest.fixture
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def assembly(index: Index, words: str, *, whole: bool = True) -> Assembly:
    return Assembly(index, RequestContext(index=index).read(words.split()), whole=whole)


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
        *preferences.preferred_releases(assembled),
        *preferences.builds(assembled),
        *rows,
        *preferences.of_its_time(assembled, {}),
        *preferences.unneeded(assembled),
    ]
    problem.supports = supports
    other = solve(problem)
    assert isinstance(found, Solution)
    assert isinstance(other, Solution)
    assert found.values == other.values


def test_what_the_context_rules_out_cannot_speak(index: Index) -> None:
    words = "tensorflow==2.6.5 --accelerator none"
    left = assembly(index, words).narrowed("x86")
    assert left["cuda"] == left["rocm"] == 1
    assert {"cuda", "rocm"} <= assembly(index, words, whole=False).excluded["x86"]


def chosen(index: Index, words: str, *, whole: bool) -> dict[str, dict[str, str]] | None:
    """The releases of an answer, None where there is none."""
    assembled = assembly(index, words, whole=whole)
    found = solve(assembled.problem())
    if not isinstance(found, Solution):
        return None
    judged = attach_evidence(assembled, found.values)
    return {target: judged.chosen(target) for target in judged.targets}


ASKED = (
    "tensorflow==2.6.5",
    "tensorflow==2.6.5 --accelerator none",
    "tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python",
    "torch==2.4.1 --from wheel --accelerator none",
    "tensorflow rocm==5.2.3",
    "rocm==5.2.3 --accelerator cuda",
    "onnxruntime-gpu cuda==12.1 cudnn==8.9",
    "mlc-llm --target amd",
)


@pytest.mark.parametrize("words", ASKED)
def test_what_the_context_rules_out_has_no_part_in_an_answer(index: Index, words: str) -> None:
    assert chosen(index, words, whole=False) == chosen(index, words, whole=True)


@pytest.mark.long
def test_what_the_context_rules_out_has_no_part_in_any_answer(index: Index) -> None:
    differ = []
    for name, head in index.header["components"].items():
        apart = head["given"] or head["hidden"] or head["flag"] or head["variant_of"]
        if not apart and name not in SEVERAL:
            for accelerator in ("none", "cuda", "rocm"):
                words = f"{name} --accelerator {accelerator} --target "
                words += "amd" if accelerator == "rocm" else "x86"
                if chosen(index, words, whole=False) != chosen(index, words, whole=True):
                    differ.append(words)
    assert differ == []
