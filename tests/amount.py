"""How much is tried: everything in long runs and where CI is set, less of it for somebody who waits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from _pytest.mark.structures import ParameterSet

T = TypeVar("T")
_EVERYTHING = bool(os.environ.get("CI"))
_FEWEST = 15


def examples(count: int) -> int:
    """So many generated examples, or a quarter of them."""
    return count if _EVERYTHING else max(min(count, _FEWEST), count // 4)


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Cases for one test: all of them, or one in so many."""
    return cases if _EVERYTHING else cases[::every]


def sampled(cases: Iterable[object], every: int) -> list[ParameterSet]:
    """Cases for `parametrize`: one in so many is always tried, the others in long runs."""
    return [
        pytest.param(
            *(case if type(case) is tuple else (case,)),
            marks=[pytest.mark.long] if place % every else [],
        )
        for place, case in enumerate(cases)
    ]
