"""Parts of the index that are read by themselves: records and sources by their names, ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factbase.small import compiled, facts, statement
from toolmatrix.factbase import store
from toolmatrix.factbase.index import Index, IndexDamaged, IndexFolder, in_memory
from toolmatrix.factbase.records import CitedClaim
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.factbase.writer import _since
from toolmatrix.factbase.writer import write as write_index

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    told = facts(statements=[statement(requires={"gcc": "8"}, limits={"python": ">=3.7"})])
    return write_index(compiled(tmp_path, told), {})


def test_a_record_and_a_source_are_found_by_their_names(files: dict[str, bytes]) -> None:
    whole = Index("", in_memory(files))
    assert list(whole.ids) == sorted(whole.ids)
    for id, number in whole.ids.items():
        assert Index("", in_memory(files)).number(id) == number
    for name, source in whole.sources().items():
        assert Index("", in_memory(files)).source(name) == source
    index = Index("", in_memory(files))
    for id in ("", "no such", "~", "app==", "app==9", "no/such", *(id[:-1] for id in whole.ids)):
        assert (index.find(id) is not None) == (id in whole.ids)
    with pytest.raises(IndexDamaged):
        index.source("no such")


@pytest.mark.parametrize("number", [-1, 10**9, 1 << 90])
def test_a_record_that_is_not_there(files: dict[str, bytes], number: int) -> None:
    with pytest.raises((IndexDamaged, KeyError)):
        Index("", in_memory(files)).record(number)


def test_a_record_may_be_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    told = facts(statements=[statement(requires={"gcc": "8"}, note="n" * 100_000)])
    folder = tmp_path / "index"
    store.write_folder(str(folder), write_index(compiled(tmp_path, told), {}))
    index = Index(str(folder), IndexFolder(str(folder)))
    assert index.claim(index.number("s#gcc")).note == "n" * 100_000


def test_an_open_folder_stays_the_same_when_another_takes_its_name(tmp_path: Path) -> None:
    texts = [facts(statements=[statement(requires={"gcc": release})]) for release in ("8", "9")]
    old, new = (write_index(compiled(tmp_path, text), {}) for text in texts)
    folder = tmp_path / "index"
    store.write_folder(str(folder), old)
    index = Index(str(folder), IndexFolder(str(folder)))
    folder.rename(tmp_path / "before")
    store.write_folder(str(folder), new)
    assert index.claim(index.number("s#gcc")).selector == "8"


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
