"""`toolmatrix facts`: numbers, one fact in full, what a source says, what is old, and names nobody knows."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tests.cli.conftest import Cli
from tests.judging import small
from tests.schemas import shipped

EPOCH = "1769817600"  # 2026-01-31
GPU_ROW = "tensorflow-tested-linux-gpu/2.6.0"


@pytest.fixture
def front(here: Path) -> str:
    return small.write(here)


def test_the_summary_counts_by_evidence_component_and_source(cli: Cli, front: str) -> None:
    run = cli("facts", "--matrix", front)
    assert run.code == 0
    assert run.out == (
        "matrix of 2026-01-02: 23 facts and 0 rows of further data\n"
        "\n"
        "facts by evidence\n"
        "  12  artifact\n"
        "  10  stated\n"
        "   1  reported\n"
        "\n"
        "facts by component\n"
        "  2  target\n"
        "  2  machine\n"
        "  2  accelerator\n"
        "  2  from\n"
        "  7  app\n"
        "  2  lib\n"
        "  4  tool\n"
        "  2  wish\n"
        "\n"
        "facts by source\n"
        "   1  read 2025-06-01  third\n"
        "  22  read 2026-01-01  vendor\n"
    )
    assert run.err.startswith("hint: ")


def test_the_count_is_the_one_of_the_version(cli: Cli, cache: str) -> None:
    document = cli("facts", "--json", XDG_CACHE_HOME=cache).json()
    from toolmatrix.factbase.store import open_index

    count = open_index([], {"XDG_CACHE_HOME": cache}).header["facts"]
    assert document["summary"]["count"] == count
    assert sum(document["summary"]["evidence"].values()) == count + document["summary"]["data"]


def test_a_row_is_shown_in_full(cli: Cli, cache: str) -> None:
    run = cli("facts", GPU_ROW, XDG_CACHE_HOME=cache)
    assert run.code == 0
    lines = run.out.splitlines()
    assert lines[0] == f"{GPU_ROW}  tested"
    assert (
        "row       tensorflow 2.6.0; cuda 11.2; cudnn 8.1; gcc 7.3.1; bazel 3.7.2; python" in lines
    )
    assert 'where     section "Tested build configurations", Linux, GPU' in lines
    assert "read      2026-11-20" in lines
    assert any(line.startswith("by rule   same-minor: ") for line in lines)
    assert any(line.startswith("disputed  #python: tensorflow-wheels/2.6.") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_a_claim_is_shown_with_what_it_overrules(cli: Cli, cache: str) -> None:
    run = cli("facts", "tensorflow-wheels/2.6.5#python", "--json", XDG_CACHE_HOME=cache)
    document = run.json()
    jsonschema.validate(document, shipped("fact"))
    (fact,) = document["facts"]
    (claim,) = fact["claims"]
    assert claim["strength"] == "hard"
    assert claim["is"] == "3.7-3.9"
    rivals = {rival["fact"] for rival in claim["disputes"]}
    assert f"{GPU_ROW}#python" in rivals
    assert len(rivals) == len(claim["disputes"])


def test_a_release_is_shown_with_its_day(cli: Cli, front: str) -> None:
    run = cli("facts", "lib==1.0", "--matrix", front)
    assert run.out == (
        "lib==1.0  artifact\n"
        "says      lib 1.0 was released on 2025-01-01\n"
        "where     list\n"
        "source    vendor: Vendor\n"
        "at        vendor:page@1\n"
        "read      2026-01-01\n"
    )


def test_a_statement_a_table_and_a_component_are_ids_too(cli: Cli, front: str) -> None:
    statement = cli("facts", "lib-is-a-wheel", "--matrix", front)
    assert "says      every lib allows only from wheel (hard)\n" in statement.out
    table = cli("facts", "apps", "--matrix", front)
    assert table.out.splitlines()[2:5] == [
        "app  machine  tool",
        "1.0  x86_64   <2",
        "2.0  x86_64   >=2",
    ]
    component = cli("facts", "tool", "--matrix", front)
    assert component.out == (
        "tool  Tool, 3 releases, 1.0 to 3.0\n"
        "\n"
        "facts  evidence  table or statement  source\n"
        "2      artifact  apps                vendor\n"
        "1      stated    old-tool-needs-x86  vendor\n"
        "1      reported  tested              third\n"
    )


def test_a_source_tells_what_it_says(cli: Cli, front: str) -> None:
    run = cli("facts", "--source", "third", "--matrix", front)
    assert run.code == 0
    assert run.out == (
        "third: Third\n"
        "third:page@1, read 2025-06-01\n"
        "\n"
        "tested/2.0#tool  reported\n"
        "  app 2.0 was tested with tool 1.0\n"
    )
    both = cli("facts", "tool", "--source", "third", "--matrix", front)
    assert both.out.splitlines()[3:] == ["1      reported  tested              third"]
    assert cli("facts", "apps", "--source", "third", "--matrix", front).code == 3


@pytest.mark.parametrize(
    ("days", "code", "last"),
    [
        ("100", 1, "1 fact of 1 source read more than 100 days ago"),
        ("300", 0, "no fact was read more than 300 days ago"),
    ],
)
def test_old_facts_exit_with_1(cli: Cli, front: str, days: str, code: int, last: str) -> None:
    run = cli("facts", "--stale", days, "--matrix", front, SOURCE_DATE_EPOCH=EPOCH)
    assert run.code == code
    assert run.out.splitlines()[-1] == last
    listed = cli("facts", "--stale", days, "--json", "--matrix", front, SOURCE_DATE_EPOCH=EPOCH)
    jsonschema.validate(listed.json(), shipped("facts-list"))
    assert listed.code == code
    assert [fact["id"] for fact in listed.json()["facts"]] == ["tested/2.0#tool"] * code


def test_old_facts_are_named_when_asked(cli: Cli, front: str) -> None:
    run = cli("facts", "--stale", "100", "-v", "--matrix", front, SOURCE_DATE_EPOCH=EPOCH)
    assert run.out.startswith(
        "third: 1 fact, read 2025-06-01, 244 days ago  TM310\n  tested/2.0#tool\n"
    )
    assert cli("facts", "--stale", "100", "--exit-zero", "--matrix", front).code == 0


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tensorflow-tested-linux-gpu/2.6.9", "`tensorflow-tested-linux-gpu/2.6.0`"),
        (f"{GPU_ROW}#pyton", f"`{GPU_ROW}#python`"),
        ("tensorflow==2.6.55", "`tensorflow==2.6.5`"),
        ("tensorflow-tested-linux-gqu", "`tensorflow-tested-linux-gpu`"),
        ("tensorfow", "`tensorflow`"),
    ],
)
def test_a_name_nobody_knows_gets_the_nearest(cli: Cli, cache: str, name: str, near: str) -> None:
    run = cli("facts", name, XDG_CACHE_HOME=cache)
    assert run.code == 3
    assert run.err.startswith(f"error[TM110]: no fact has the id `{name}`\n")
    assert near in run.err


def test_a_source_nobody_knows_gets_the_nearest(cli: Cli, front: str) -> None:
    run = cli("facts", "--source", "vendr", "--matrix", front)
    assert run.code == 3
    assert "perhaps `vendor`" in run.err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ((), "facts-list"),
        (("--source", "tensorflow-docs-source"), "facts-list"),
        pytest.param(("--stale", "0"), "facts-list", marks=pytest.mark.long),
        ((GPU_ROW, "tensorflow==2.6.5", "tensorflow-source-needs"), "fact"),
        (("tensorflow-tested-linux-cpu",), "fact"),
        (("gcc",), "fact"),
    ],
)
def test_json_keeps_the_contract(cli: Cli, cache: str, words: tuple[str, ...], name: str) -> None:
    run = cli("facts", *words, "--json", XDG_CACHE_HOME=cache, SOURCE_DATE_EPOCH="1900000000")
    document = run.json()
    jsonschema.validate(document, shipped(name))
    assert document["schema"] == f"toolmatrix.{name}/1"
