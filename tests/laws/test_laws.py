"""The laws hold for a sample of requests; `python -m tests.laws` tries any number."""

from __future__ import annotations

import pytest

from tests import matrix
from tests.laws import shrink
from tests.laws.ask import Asker
from tests.laws.laws import LAWS, broken
from tests.laws.requests import Draw

SEED = 7
CHECKED = ("facts-hold", "second-engine")


@pytest.fixture(scope="module")
def asker() -> Asker:
    """The built-in matrix."""
    return Asker(matrix.index())


@pytest.mark.slow
@pytest.mark.parametrize("law", CHECKED)
@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_no_request_breaks(asker: Asker, law: str, count: int) -> None:
    draw = Draw(asker.index, SEED)
    for number in range(count):
        one = next(broken(asker, draw.request(number), (law,)), None)
        assert one is None, shrink.smallest(asker, one)


def test_every_law_is_tried() -> None:
    assert set(CHECKED) <= set(LAWS)
