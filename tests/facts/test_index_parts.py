"""Parts of the index that are read by themselves: entries of long tables, records, ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.facts.small import compiled, facts, statement, write
from toolmatrix.facts import store
from toolmatrix.facts.index import Index, IndexDamaged
from toolmatrix.facts.records import CitedClaim
from toolmatrix.facts.versions import Scale, SelectorError
from toolmatrix.facts.writer import _since
from toolmatrix.facts.writer import write as index_bytes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    told = facts(statements=[statement(requires={"gcc": "8"}, limits={"python": ">=3.7"})])
    return index_bytes(compiled(tmp_path, told), {})


def opened(data: bytes) -> Index:
    return Index("", data)


@pytest.mark.parametrize("section", ["ids", "sources"])
def test_an_entry_is_that_of_the_table(data: bytes, section: str) -> None:
    whole = opened(data).entries(section)
    assert list(whole) == sorted(whole)
    index = opened(data)
    assert {name: index.entry(section, name) for name in whole} == whole
    for name in (*whole, "", "no such", "~"):
        assert (name in whole) == found(index, section, name)
        assert not found(index, section, name[:-1])
    assert section not in index._tables


def found(index: Index, section: str, name: str) -> bool:
    try:
        index.entry(section, name)
    except KeyError:
        return False
    return True


def test_a_damaged_record_is_read_from_a_new_index(tmp_path: Path) -> None:
    path = write(tmp_path, facts(statements=[statement(requires={"gcc": "8"})]))
    whole = store.build([path])
    index = opened(whole)
    number = index.ids["s#gcc"]
    wanted = index.record(number)
    start, length, _ = index.header["sections"]["records"]
    for place in range(index._parts.body + start, index._parts.body + start + length):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        mended = Index("", bytes(damaged), lambda _index: whole)
        assert mended.record(number) == wanted


@pytest.mark.parametrize("number", [-1, 10**9])
def test_a_record_that_is_not_there(data: bytes, number: int) -> None:
    with pytest.raises(IndexDamaged):
        opened(data).record(number)


@pytest.mark.parametrize("ranges", [[], [0, 0], [1, 3], [1, 3, 5, 5, 7, 9]])
def test_a_place_lies_in_ranges(ranges: list[int]) -> None:
    cite = CitedClaim(ranges, 0, "ran", [])
    for place in range(12):
        assert cite.covers(place) == cite.touches(1 << place)


def test_days_on_which_series_began() -> None:
    scale = Scale("pep440", ["1.0", "1.0.1", "1.1", "1.2", "2.0"])
    days = ["2020-01-01", "2021-01-01", "", "2020-06-01", "2020-06-01"]
    assert _since(scale, days) == (["2020-01-01", "2020-06-01"], [0b000110, 0b110110])
    assert _since(Scale("names", ["a"]), ["2020-01-01"]) == ([], [])


def test_releases_are_read_at_once_or_when_they_are_compared() -> None:
    with pytest.raises(SelectorError):
        Scale("pep440", ["no version"])
    scale = Scale("pep440", ["no version"], known=True)
    assert scale.select("*") == 2
    with pytest.raises(SelectorError):
        scale.select(">=1")
