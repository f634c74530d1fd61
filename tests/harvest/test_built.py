"""Builds as facts: what stays beside what comes, and that the page tells what the file has."""

from __future__ import annotations

import re
from pathlib import Path

from tests.engine.commands import ROOT
from toolmatrix.harvest import runs
from toolmatrix.harvest.runs import ImageBuild

FACTS = ROOT / "matrix" / "harvested" / "builds.yaml"
PAGE = ROOT / "docs" / "dockerfiles.md"
BUILD = ImageBuild(
    component="app",
    release="1.0",
    where={"machine": "x86_64", "accelerator": "none", "distro": "debian12"},
    beside={"lib": "2.0", "gcc": "12"},
    recipe="toolchain",
    base="debian:12",
    engine="docker 1 on amd64",
    lock="0123456789ab",
    day="2026-01-02",
    seconds=61.4,
    check="3 checked, 0 failed",
    size=1_234_567_890,
)


def rows(path: Path, *builds: ImageBuild) -> list[tuple[str, str, str]]:
    """The ids of the rows of the one table, with what they say came of it, after more builds were written."""
    document = runs.builds_document(str(path), builds)
    path.write_text(runs.text(document, runs.ABOUT_BUILDS, "toolmatrix build --write"))
    (table,) = document["tables"]
    return [(row["id"], row.get("check", row.get("missing")), row["day"]) for row in table["rows"]]


def test_the_newest_build_of_one_way_stays_beside_those_of_other_ways(tmp_path: Path) -> None:
    path = tmp_path / "builds.yaml"
    later = BUILD.replace(day="2026-02-03", check="4 checked, 0 failed")
    arm = BUILD.replace(where={**BUILD.where, "machine": "aarch64"})
    assert rows(path, BUILD, arm) == [
        ("app-builds/1.0/aarch64/none/debian12", "3 checked, 0 failed", "2026-01-02"),
        ("app-builds/1.0/x86_64/none/debian12", "3 checked, 0 failed", "2026-01-02"),
    ]
    assert rows(path, later)[1][1:] == ("4 checked, 0 failed", "2026-02-03")
    assert "read: '2026-02-03'" in path.read_text()


def test_a_missing_address_takes_no_build_away_and_a_build_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "builds.yaml"
    missing = BUILD.replace(check="", missing="https://vendor.example/a", size=0)
    assert rows(path, missing)[0][1] == "https://vendor.example/a"
    assert rows(path, BUILD)[0][1] == "3 checked, 0 failed"
    assert rows(path, missing)[0][1] == "3 checked, 0 failed"


def test_a_table_of_an_earlier_release_lists_builds_from_now_on(tmp_path: Path) -> None:
    path = tmp_path / "builds.yaml"
    rows(path, BUILD)
    path.write_text(path.read_text().replace("    lists: builds\n", ""))
    assert "lists" not in runs.read_tables(str(path))["app-builds"]
    rows(path, BUILD)
    assert runs.read_tables(str(path))["app-builds"]["lists"] == "builds"


def test_a_row_says_what_it_was_built_of(tmp_path: Path) -> None:
    path = tmp_path / "builds.yaml"
    rows(path, BUILD)
    (row,) = runs.read_tables(str(path))["app-builds"]["rows"]
    told = (row["app"], row["beside"], row["seconds"], row["size"])
    assert told == ("===1.0", "gcc 12; lib 2.0", "61", "1235 MB")


def test_the_page_tells_every_build_of_the_file() -> None:
    text = PAGE.read_text()
    for table in runs.read_tables(str(FACTS)).values():
        assert table["lists"] == "builds"
        for row in table["rows"]:
            way = f" from {row['from']}" if "from" in row else ""
            name = f"{table['key']} {row[table['key']].lstrip('=')}{way}"
            size = row.get("size", "not built").removesuffix(" packed")
            columns = rf"{row['machine']} \| {size} \| {row.get('seconds', '')}"
            assert re.search(rf"^\| {re.escape(name)}(,[^|]*)? \| {columns}", text, re.MULTILINE), (
                name
            )
            assert row.get("check", row.get("missing")) in text
