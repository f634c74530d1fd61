"""The index gives back what was compiled, and notices every damage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import compiled, facts, statement, table, write
from toolmatrix.factbase import store
from toolmatrix.factbase.index import (
    HEADER,
    INDEPENDENTS_PACKED,
    Index,
    IndexDamaged,
    IndexFolder,
    in_memory,
)
from toolmatrix.factbase.records import CitedClaim, ClaimRecord
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.factbase.writer import since
from toolmatrix.factbase.writer import write as index_bytes
from toolmatrix.factbase.writer import write as write_index

TINY = """\
schema: toolmatrix.matrix/1
date: 2026-01-02
components: {a: {title: A, scheme: pep440}, b: {title: B, scheme: pep440}}
targets: {}
files: [names.yaml]
"""
TINY_FACTS = """\
schema: toolmatrix.facts/1
sources: {s: {title: S, at: t, read: 2026-01-01}}
releases:
  - {id: r, component: a, source: s, evidence: ran, where: w, versions: {"1": {}, "2": {}}}
  - {id: q, component: b, source: s, evidence: ran, where: w, versions: {"1": {}}}
statements:
  - {id: x, source: s, evidence: ran, where: w, when: {a: "1"}, requires: {b: "1"}}
data:
  - id: i
    source: s
    evidence: ran
    where: w
    lists: independent
    columns: [package, releases, requires-python, requires, published]
    rows: [[c, "1 2", "", "b 1: 2", 2]]
"""


def everything(index: Index) -> Any:
    """All that can be read from an index."""
    records = {id: index.record(number) for id, number in index.ids.items()}
    components = {name: index.component(name) for name in index.header["components"]}
    cites = [
        index.cites(binding.cites) for facts in components.values() for binding in facts.bindings
    ]
    tables = [
        index.sources(),
        index.products(),
        index.images(),
        index.reports(),
        index.packages(),
        index.terms(),
        {name: index.channel(name) for name in index.channels()},
        {name: index.independent_row(name) for name in index.independents()},
    ]
    told = {name: (index.support(name), index.breaks(name)) for name in components}
    builds = {id: index.builds(*id.split("==")) for id in records if id.count("==") == 1}
    assert {id: index.number(id) for id in records} == index.ids
    return index.header, index.files(), records, components, cites, tables, told, builds


def opened(files: Mapping[str, bytes]) -> Index:
    return Index("", in_memory(files))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return store.build([write(tmp_path_factory.mktemp("tiny"), front=TINY, names=TINY_FACTS)])


def test_what_was_compiled_is_read_back(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires"}, "python": {"as": "tested"}, "sha": {"as": "attribute"}}
    row = {"app": "2.6.0", "gcc": "7.3.1", "python": "3.9", "sha": "x", "note": "n"}
    result = compiled(
        tmp_path,
        facts(
            tables=[table(columns=columns, rows=[row], where="page 1")],
            statements=[statement(requires={"cuda": "11.2"}, limits={"python": ">=3.7"})],
        ),
    )
    index = opened(index_bytes(result, {"matrix.yaml": (7, 0)}))
    assert index.header["digest"] == result.digest
    assert index.header["date"] == "2026-01-02"
    assert [*index.header["files"]["matrix.yaml"]] == [7, 0]
    assert index.header["facts"] == len(result.matrix.claims) + len(result.matrix.releases)
    assert list(index.header["components"]) == list(result.matrix.components)
    app = index.component("app")
    assert app.versions == ["2.6.0", "2.6.1", "2.6.5", "2.7.0"]
    assert app.dates == ["2021-08-11", "", "", ""]
    gcc = next(binding for binding in app.bindings if binding.component == "gcc")
    assert gcc[:-1] == ("requires", 2, {}, "gcc", 2, [], "derived")
    (cite,) = index.cites(gcc.cites)
    assert cite == CitedClaim([1, 1], cite.record, "derived", ["same-series"])
    assert index.claim(cite.record) == ClaimRecord(
        id="t/2.6.0#gcc",
        row="t/2.6.0",
        kind="requires",
        subject="app",
        releases="2.6.0",
        conditions=[],
        component="gcc",
        selector="7.3.1",
        alternatives=[],
        evidence="tested",
        source="vendor",
        where="page 1",
        says="",
        note="n",
        rule="",
        beside=False,
        exact=False,
    )
    ids = index.ids
    assert dict(index.row(ids["t/2.6.0"]).cells) == {
        "app": "2.6.0",
        "gcc": "7.3.1",
        "python": "3.9",
        "sha": "x",
    }
    assert index.release(ids["app==2.6.0"]).date == "2021-08-11"
    assert index.source("vendor").at == "vendor:page@1"


@pytest.mark.parametrize(
    ("read", "complete"),
    [
        (None, []),
        ({"others": []}, ["2.6.0", "2.6.5", "2.7.0"]),
        ({"others": ["six"], "unread": "<2.7"}, ["2.7.0"]),
        ({"others": ["six"], "unread": "*"}, []),
    ],
)
def test_releases_in_rows_of_a_table_that_was_read_whole_are_complete(
    tmp_path: Path, read: Any, complete: list[str]
) -> None:
    rows = [{"app": "2.6.0 2.6.5"}, {"app": "2.7.0", "gcc": "8"}]
    more = {} if read is None else {"requirements-read": read}
    made = table(columns={"gcc": {"as": "requires"}}, rows=rows, **more)
    index = opened(index_bytes(compiled(tmp_path, facts(tables=[made])), {}))
    assert index.scale("app").named(index.component("app").complete) == complete
    assert index.component("gcc").complete == 0


def test_every_truncation_is_noticed(tiny: dict[str, bytes]) -> None:
    for name, data in tiny.items():
        for length in range(len(data)):
            with pytest.raises(IndexDamaged, match="damaged or from another version"):
                everything(opened({**tiny, name: data[:length]}))


@pytest.mark.parametrize("text", [b"{", b"[" * 100_000, b"{}{}", b"\xff"])
def test_a_file_that_is_no_json_is_damage(tiny: dict[str, bytes], text: bytes) -> None:
    # Of the images that were built only the lines of a release are read, and of independent packages those of one.
    for name in tiny.keys() - {"builds.jsonl", INDEPENDENTS_PACKED}:
        sizes = {**json.loads(tiny[HEADER])["sizes"], name: len(text)}
        header = json.dumps(json.loads(tiny[HEADER]) | {"sizes": sizes}).encode()
        damaged = {**tiny, HEADER: header, name: text}
        with pytest.raises(IndexDamaged):
            everything(opened(damaged))
        with pytest.raises(IndexDamaged):
            opened(damaged).check()


def test_a_file_that_is_missing_is_damage(tiny: dict[str, bytes]) -> None:
    for name in tiny:
        files = {**tiny}
        del files[name]
        with pytest.raises(IndexDamaged, match="damaged or from another version"):
            everything(opened(files))


@pytest.mark.parametrize("name", ["toolmatrix-index/9", "toolmatrix-index", "", None, 10])
def test_an_index_of_another_format_is_refused(tiny: dict[str, bytes], name: object) -> None:
    header = json.loads(tiny[HEADER]) | {"format": name}
    with pytest.raises(IndexDamaged):
        opened({**tiny, HEADER: json.dumps(header).encode()})


def test_ranges_of_a_mask() -> None:
    cite = CitedClaim([1, 3, 7, 7], 0, "ran", [])
    assert cite.touches(0b1000)
    assert cite.touches(0b10000000)
    assert not cite.touches(0b1110001)
    assert not CitedClaim([], 0, "ran", []).touches(0b1111)


# Parts of the index that are read by themselves: records and sources by their names, ranges.


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


def test_claims_and_releases_do_not_repeat_what_their_row_says(tmp_path: Path) -> None:
    where = "page seven"
    row = {"app": "9.1", "gcc": "8", "python": "3.9", "where": where}
    columns = {"gcc": {"as": "requires"}, "python": {"as": "tested"}}
    listed = table(columns=columns, rows=[row], defines="releases")
    index = opened(index_bytes(compiled(tmp_path, facts(tables=[listed])), {}))
    found = [record for record in index.records("app") if record.where == where]
    assert [record.id for record in found] == ["t/9.1", "t/9.1", "t/9.1#gcc", "t/9.1#python"]
    assert [index.find(name) for name in ("app==9.1", "t/9.1#gcc", "t/9.1#python")] == found[1:]
    assert index._records_of("app").count(where.encode()) == 1


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
    assert since(scale.versions, days) == (["2020-01-01", "2020-06-01"], [0b000110, 0b110110])
    assert since((), ["2020-01-01"]) == ([], [])


def test_releases_are_read_at_once_or_when_they_are_compared() -> None:
    with pytest.raises(SelectorError):
        Scale("pep440", ["no version"])
    scale = Scale("pep440", ["no version"], known=True)
    assert scale.select("*") == 2
    with pytest.raises(SelectorError):
        scale.select(">=1")
