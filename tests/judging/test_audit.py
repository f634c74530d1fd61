"""What an audit finds without asking anybody: floors, ages, and tables that disagree."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from tests.judging import small
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import load
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import Finding
from toolmatrix.judging import audit, sweep
from toolmatrix.judging.audit import FamilyCoverage, family_coverage, harvested_releases

if TYPE_CHECKING:
    from pathlib import Path

RULES = """\
schema: toolmatrix.audit/1
ages:
  - {kind: page, at: "^vendor:", days: 30}
  - {kind: thread, at: "^third:", days: 0}
glibc: ["2.17", "2.28", "2.35"]
floors: {default: 90, lib: 50}
"""


@pytest.fixture
def rules(tmp_path: Path) -> audit.AuditRules:
    path = tmp_path / "audit.yaml"
    path.write_text(RULES)
    return audit.rules(str(path))


def family(component: str, known: int, published: int | None) -> FamilyCoverage:
    return FamilyCoverage(
        component=component,
        title="",
        known=known,
        newest="1.0",
        published=published,
        newest_published="1.0",
        variants=0,
        targets={},
        facts={},
        answers={},
    )


def test_a_family_below_its_floor_is_told(rules: audit.AuditRules) -> None:
    held = [
        family("app", 89, 100),
        family("tool", 90, 100),
        family("lib", 50, 100),
        # Of what nobody counted nothing can be missing.
        family("wish", 1, None),
    ]
    assert list(audit.uncovered(held, rules)) == [
        Finding.of(
            "TM320",
            component="app",
            known=89,
            published=100,
            share=89,
            expected="at least 90 %",
            actual="89 %",
        )
    ]


@pytest.mark.parametrize(
    ("today", "found"), [(date(2026, 1, 31), []), (date(2026, 2, 1), [("vendor", "page", "31")])]
)
def test_a_reading_ages_by_the_kind_of_its_source(
    tmp_path: Path, rules: audit.AuditRules, today: date, found: list[tuple[str, str, str]]
) -> None:
    matrix = load.load([small.write(tmp_path)])
    aged = [one for one in audit.aged(matrix, rules, today) if one.code == "TM321"]
    assert [one.names for one in aged] == found
    assert all("apps/1.0#tool" in one.facts for one in aged)


@pytest.mark.parametrize(("folder", "curated"), [("harvested", ["tested"]), ("curated", [])])
def test_what_a_harvester_reads_otherwise_than_people_is_told(
    tmp_path: Path, folder: str, curated: list[str]
) -> None:
    front = tmp_path / small.write(tmp_path)
    (tmp_path / folder).mkdir()
    cut = small.FACTS.index("  - id: tested")
    stop = small.FACTS.index("statements:")
    head = 'schema: toolmatrix.facts/1\nsources:\n  second: {title: Second, at: "second:page@1", read: 2026-01-01}\n'
    moved = small.FACTS[cut:stop].replace("source: third", "source: second")
    (tmp_path / folder / "tested.yaml").write_text(head + "tables:\n" + moved)
    facts = tmp_path / "facts.yaml"
    facts.write_text(small.FACTS[:cut] + small.FACTS[stop:])
    front.write_text(
        front.read_text().replace("[facts.yaml]", f"[facts.yaml, {folder}/tested.yaml]")
    )
    matrix = load.load([str(front)])
    index = open_index((str(front),), {"XDG_CACHE_HOME": str(tmp_path)})
    found = [one for one in audit.harvest_disputes(matrix, index) if one.code == "TM327"]
    assert [one["harvested"] for one in found] == curated
    assert [(one["curated"], one["about"], one.releases) for one in found] == [
        ("apps", "tool", ("2.0",)) for _ in curated
    ]


def test_coverage_counts_answers_by_hand(tmp_path: Path) -> None:
    front = small.write(tmp_path)
    matrix = load.load([front])
    index = open_index((front,), {"XDG_CACHE_HOME": str(tmp_path)})
    outcomes = [
        sweep.judge_release(index, release, {})
        for release in sweep.releases(index)
        if release[0] in ("app", "lib")
    ]
    found = {
        one.component: one for one in family_coverage(matrix, index, outcomes, {"app": (3, "3.0")})
    }
    assert list(found) == ["app", "lib", "tool"]
    app = found["app"]
    assert (app.known, app.newest, app.published, app.newest_published) == (2, "2.0", 3, "3.0")
    assert app.share == 66
    # With CUDA and without, built and installed; on arm 2.0 alone is built.
    assert app.targets == {
        "x86": {"answered": 8, "refused": 0, "unknown": 0},
        "arm": {"answered": 2, "refused": 6, "unknown": 0},
    }
    assert found["tool"].targets == {}
    assert found["tool"].published is None


@pytest.mark.parametrize(("scheme", "published"), [("pep440", 9), ("series", 4)])
def test_what_has_a_release_for_each_series_is_counted_by_series(
    tmp_path: Path, scheme: str, published: int
) -> None:
    file = tmp_path / "published.yaml"
    file.write_text(
        "schema: toolmatrix.facts/1\n"
        f"components: {{it: {{title: It, scheme: {scheme}}}}}\n"
        "sources: {index: {title: the index, at: package it, read: 2026-01-02}}\n"
        "data:\n"
        "  - {id: published, about: releases, source: index, where: list, evidence: artifact,\n"
        "     columns: [component, package, releases, series, newest],\n"
        '     rows: [[it, it, "9", "4", "3.1"], [it, it-old, "7", "3", "2.9"]]}\n'
    )
    assert harvested_releases(load.load([small.write(tmp_path), str(file)])) == {
        "it": (published, "3.1")
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("default: 90, ", "", 6, "there is no default floor"),
        ('"^vendor:"', '"("', 3, "a pattern cannot be read"),
        ("days: 30", "days: soon", 3, "days must be a whole number"),
        ("glibc", "libc", 5, "the rules of the audit has an unknown key"),
    ],
)
def test_rules_that_cannot_be_used_are_refused_where_they_stand(
    tmp_path: Path, old: str, new: str, line: int, what: str
) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(RULES.replace(old, new))
    with pytest.raises(MatrixError) as refused:
        audit.rules(str(path))
    assert refused.value.what == what
    assert refused.value.where is not None
    assert refused.value.where.line == line


@pytest.mark.parametrize(
    ("glibc", "platform"),
    [
        ("2.39", "x86_64-manylinux_2_35"),
        ("2.31", "x86_64-manylinux_2_28"),
        ("2.5", "x86_64-manylinux_2_17"),
        ("", "x86_64-manylinux_2_35"),
    ],
)
def test_the_platform_is_the_newest_that_runs_there(
    rules: audit.AuditRules, glibc: str, platform: str
) -> None:
    assert rules.platform("x86_64", glibc) == platform


def test_the_rules_of_the_matrix_can_be_read() -> None:
    rules = audit.rules()
    assert all(0 < share <= 100 for share in rules.floors.values())
    assert rules.ages[-1].at.search("anything")
