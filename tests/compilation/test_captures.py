"""Every capture keeps every law of stages that speaks of it; a law that it breaks is named."""

from __future__ import annotations

import pytest

from tests.amount import sampled
from tests.compilation import corpus
from tests.compilation.laws import (  # importing a module declares its laws
    LAWS,
    Laws,
    clang,
    nvcc,
    outputs,
    passed_on,
    used,
)

CASES = corpus.cases()
MODULES = (clang, nvcc, outputs, passed_on, used)


@pytest.mark.parametrize("case", sampled(CASES, every=6), ids=lambda case: case.name)
def test_a_capture_keeps_the_laws(case: corpus.Case) -> None:
    broken = LAWS.broken_by(case)
    assert not broken, "\n".join(broken)


def test_every_law_speaks_of_captures() -> None:
    assert LAWS.idle(CASES) == []
    assert {law.check.__module__ for law in LAWS} == {one.__name__ for one in MODULES}


def test_laws_that_break_are_named_and_the_others_judged() -> None:
    laws = Laws()

    @laws.of(lambda _case: True)
    def a_log_is_empty(case: corpus.Case) -> None:
        assert case.text == ""

    @laws.of(lambda case: case.tool == "nobody's")
    def what_is_not_there_breaks_nothing(case: corpus.Case) -> None:
        raise AssertionError(case.name)

    @laws.of(lambda _case: True)
    def a_log_has_a_number(case: corpus.Case) -> None:
        int(case.text)

    first, second = laws.broken_by(CASES[0])
    assert first.startswith(f"{CASES[0].name} breaks a_log_is_empty\n")
    assert "AssertionError: assert " in first
    assert second.startswith(f"{CASES[0].name} breaks a_log_has_a_number\n")
    assert "ValueError: invalid literal for int()" in second
    assert laws.idle(CASES) == ["what_is_not_there_breaks_nothing"]
