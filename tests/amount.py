"""How much is tried: more in long runs and where CI is set, less of it for somebody who waits.

Sweeps over all there is try a part, drawn by place; the workflow `ci` tries all of it once a week.

And how much processor time a bounded reader may take, on a slow machine as on a fast one: so many seconds of a fast
one, or at most five times as much for an input four times as large.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import pytest

from toolmatrix.errors import ToolmatrixError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from _pytest.mark.structures import ParameterSet

T = TypeVar("T")
_EVERYTHING = bool(os.environ.get("CI"))
WHOLE = bool(os.environ.get("TESTS_OF_TOOLMATRIX_WHOLE"))
"""Whether sweeps try all there is."""
_FEWEST = 15
TIMES = 4
"""How many times as large the larger input of a comparison is."""
_MOST = 5
# Seconds that are too few to compare; a quarter of a megabyte in a quadratic parser takes many.
_NOISE = 0.2
_TURNS, _FAST = 1_000_000, 0.03
"""Turns of a loop, and the seconds that a fast core takes for them."""


def within(seconds: float, bound: float) -> bool:
    """Whether that is less processor time than a bound for a fast core, by how slow this one is now."""
    return seconds < bound or seconds < bound * max(1, _spent() / _FAST)


def _spent() -> float:
    began, total = time.process_time(), 0
    for turn in range(_TURNS):
        total += turn & 7
    return time.process_time() - began


def growth(work: Callable[[T], object], small: T, large: T) -> tuple[float, float, bool]:
    """Seconds for an input and for one TIMES as large, refused or not, and whether that is linear."""
    # What is not linear takes three times the bound; more than once, as another process may take the caches.
    for _ in range(4):
        first, then = _seconds(work, small), _seconds(work, large)
        if then <= _MOST * max(first, _NOISE / _MOST):
            return first, then, True
    return first, then, False


def _seconds(work: Callable[[T], object], given: T) -> float:
    began = time.process_time()
    with suppress(ToolmatrixError):
        work(given)
    return time.process_time() - began


def examples(count: int) -> int:
    """So many generated examples, or a quarter of them."""
    return count if _EVERYTHING else max(min(count, _FEWEST), count // 4)


def some(cases: Sequence[T], every: int) -> Sequence[T]:
    """Cases for one test: all of them, or one in so many."""
    return cases if _EVERYTHING else cases[::every]


def part(cases: Sequence[T], every: int) -> Sequence[T]:
    """Cases of a sweep: one in so many, or all of them."""
    return cases if WHOLE else cases[::every]


def sampled(cases: Iterable[object], every: int) -> list[ParameterSet]:
    """Cases for `parametrize`: one in so many is always tried, the others in long runs."""
    return [
        pytest.param(
            *(case if type(case) is tuple else (case,)),
            marks=[pytest.mark.long] if place % every else [],
        )
        for place, case in enumerate(cases)
    ]
