"""The last release that works, found in few runs."""

from __future__ import annotations

import pytest

from toolmatrix.harvest.environments import ImportOutcome
from toolmatrix.harvest.runs import UpperBound, search

MANY = [str(number) for number in range(100)]
RAN = ImportOutcome(state="ran")


class Tried:
    """Outcomes by release: from `first` on they raise, `lost` are not there, `ill` fail otherwise. It counts."""

    def __init__(
        self, first: int, lost: set[int] | None = None, ill: set[int] | None = None
    ) -> None:
        self.first, self.lost, self.ill = first, lost or set(), ill or set()
        self.asked: list[int] = []

    def __call__(self, version: str) -> ImportOutcome | None:
        self.asked.append(int(version))
        if self.asked[-1] in self.lost:
            return None
        if self.asked[-1] in self.ill:
            return ImportOutcome(state="failed", said="no disk")
        return ImportOutcome(state="raised", said=version) if self.asked[-1] >= self.first else RAN


@pytest.mark.parametrize("first", range(1, 100))
def test_every_bound_is_found(first: int) -> None:
    tried = Tried(first)
    assert search(MANY, tried) == UpperBound(
        newest="99",
        works=str(first - 1),
        fails=str(first),
        outcome=ImportOutcome(state="raised", said=str(first)),
    )
    assert len(tried.asked) <= 8
    assert len({*tried.asked}) == len(tried.asked)


def test_where_the_newest_works_nothing_else_is_run() -> None:
    tried = Tried(100)
    assert search(MANY, tried) == UpperBound(newest="99", works="99")
    assert tried.asked == [99]


def test_releases_that_cannot_be_had_are_passed_over() -> None:
    tried = Tried(50, lost={99, 98, 50, 49, 48, 25})
    found = search(MANY, tried)
    assert found
    assert (found.newest, found.works, found.fails) == ("97", "47", "51")
    assert search(MANY[:3], Tried(1, lost={1, 2})) is None
    assert search(MANY[:1], Tried(0)) is None


def test_what_is_not_the_packages_fault_ends_it() -> None:
    assert search(MANY, Tried(50, ill={49})) == UpperBound(
        newest="99", works="0", undecided="no disk", tried="49"
    )
    assert search(MANY, Tried(50, ill={99})) == UpperBound(
        newest="99", works="0", undecided="no disk", tried="99"
    )


def test_where_nothing_is_known_to_work_the_oldest_shows_it() -> None:
    tried = Tried(50, lost={0, 1, 2})
    found = search(MANY, tried, works=False)
    assert found
    assert (found.newest, found.works, found.fails) == ("99", "49", "50")
    assert tried.asked[:5] == [0, 1, 2, 3, 99]
    assert search(MANY, Tried(0), works=False) is None
    assert search(MANY, Tried(50, ill={0}), works=False) is None
    assert search(MANY[:2], Tried(9, lost={0, 1}), works=False) is None
