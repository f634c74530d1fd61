"""The index gives back what was compiled, and notices every damage."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.small import compiled, facts, statement, table, write
from toolmatrix.facts import store
from toolmatrix.facts.index import FORMAT, Index, IndexDamaged
from toolmatrix.facts.records import CitedClaim, ClaimRecord
from toolmatrix.facts.writer import write as index_bytes

if TYPE_CHECKING:
    from pathlib import Path

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
"""


def everything(index: Index) -> Any:
    """All that can be read from an index."""
    sections = [name for name in index.header["sections"] if name != "records"]
    read = {name: index.section(name) for name in sections}
    read |= {name: index.entries(name) for name in ("ids", "sources", "builds")}
    records = {name: index.record(number) for name, number in read["ids"].items()}
    cites = [
        index.cites(binding.cites)
        for name in index.header["components"]
        for binding in index.component(name).bindings
    ]
    return index.header, read, records, cites


def opened(data: bytes) -> Index:
    return Index("", data)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
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


def test_every_flipped_byte_is_noticed_or_harmless(tiny: bytes) -> None:
    wanted = everything(opened(tiny))
    harmless = 0
    for place in range(len(tiny)):
        damaged = bytearray(tiny)
        damaged[place] ^= 1 << place % 8
        try:
            assert everything(opened(bytes(damaged))) == wanted
            harmless += 1
        except IndexDamaged:
            continue
    assert harmless < 10


def test_every_truncation_is_noticed(tiny: bytes) -> None:
    for length in range(len(tiny)):
        with pytest.raises(IndexDamaged):
            everything(opened(tiny[:length]))


def test_bytes_behind_the_end_do_no_harm(tiny: bytes) -> None:
    assert everything(opened(tiny + b"more")) == everything(opened(tiny))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "toolmatrix-index/4",
        "toolmatrix-index/4 0 0 0",
        "toolmatrix-index/4 0 0 0 0",
        "toolmatrix-index/4 x 0 0",
        "toolmatrix-index/4 0 -1 0",
        "toolmatrix-index/4 0 1_0 0",
        "SQLite format 3",
    ],
)
def test_what_is_no_index_is_refused(line: str) -> None:
    with pytest.raises(IndexDamaged):
        opened(line.encode() + b"\n{}")


def test_an_index_of_another_format_is_refused(tiny: bytes) -> None:
    with pytest.raises(IndexDamaged):
        opened(tiny.replace(FORMAT.encode(), FORMAT.encode()[:-1] + b"x", 1))


@pytest.mark.parametrize("length", [10**10, 10**18, 10**30])
def test_a_hostile_length_takes_no_memory(tiny: bytes, length: int) -> None:
    tracemalloc.start()
    try:
        for line in (f"{FORMAT} 0 {length} 0\n", f"{FORMAT} 0 0 {length}\n"):
            with pytest.raises(IndexDamaged):
                opened(line.encode() + tiny)
        sections = b'{"sections":{"ids":[0,%d,0]}}' % length
        line = f"{FORMAT} {zlib.crc32(sections)} {len(sections)} 0\n"
        with pytest.raises(IndexDamaged):
            opened(line.encode() + sections).section("ids")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_ranges_of_a_mask() -> None:
    cite = CitedClaim([1, 3, 7, 7], 0, "ran", [])
    assert cite.touches(0b1000)
    assert cite.touches(0b10000000)
    assert not cite.touches(0b1110001)
    assert not CitedClaim([], 0, "ran", []).touches(0b1111)
