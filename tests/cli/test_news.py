"""`toolmatrix news`: what changed between two matrices, since a day, and for a lock."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check
from tests.factbase.small import facts, write
from toolmatrix.api import news
from toolmatrix.factbase.index import Index

# A matrix of before: without a release, with another bound, another arch and another place of a fact.
BEFORE = {
    "      - {app: 2.1.3, date: 2021-08-01, python: 3.8 3.9, machine: x86_64}\n": "",
    "{cuda: 11.2.0, arch: sm_70 sm_80 sm_86, gcc: <=9": "{cuda: 11.2.0, arch: sm_70 sm_80, gcc: <=8",
    "where: file list": "where: another list",
    "2.0.0, date: 2020-09-01, python: 3.6 3.8,": "2.0.0, date: 2020-09-01, python: 3.6,",
}


@pytest.fixture
def earlier(here: Path) -> Path:
    """The small matrix as it was."""
    shutil.copytree(SMALL, here / "old")
    facts = here / "old" / "facts.yaml"
    text = facts.read_text()
    for now, was in BEFORE.items():
        assert now in text
        text = text.replace(now, was)
    facts.write_text(text)
    return facts


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("since", "news --since 2026-01-01"),
        ("since-named", "news cuda --since 2025-12-31"),
        ("since-tomorrow", "news --since 2027-01-01"),
        ("earlier", "news --earlier old/matrix.yaml"),
        ("earlier-named", "news app --earlier old/matrix.yaml"),
        ("no-earlier", "news"),
        ("no-digest", "news --since 0123abc"),
    ],
)
@pytest.mark.usefixtures("earlier")
def test_golden(small: Cli, name: str, line: str) -> None:
    check(small, name, line)


@pytest.mark.usefixtures("earlier")
def test_the_document_keeps_to_its_schema(small: Cli) -> None:
    for words in (("--since", "2026-01-01"), ("--earlier", "old/matrix.yaml")):
        document = small("news", *words, "--json").json()
        validated(document, "news")
        assert document["basis"] == ("readings" if words[0] == "--since" else "matrices")


def test_what_a_release_needs_is_read_once(
    small: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[tuple[str, str]] = Counter()
    needs = news._needs

    def counted(index: Index, name: str, version: str) -> dict[str, None]:
        asked[name, version] += 1
        return needs(index, name, version)

    monkeypatch.setattr(news, "_needs", counted)
    # Nearly all is new.
    write(here, facts())
    assert small("news", "--earlier", "matrix.yaml").code == 0
    # Itself, and beside the release that follows.
    assert max(asked.values()) <= 2


@pytest.mark.usefixtures("earlier")
def test_a_lock_is_answered_by_both(small: Cli) -> None:
    words = ("app==2.1.*", "--from", "wheel", "--accelerator", "none", "--target", "x86")
    assert small("lock", *words).code == 0
    found = small("news", "--earlier", "old/matrix.yaml", "--lock", "toolmatrix.lock", "--json")
    document = found.json()
    validated(document, "news")
    lock = document["lock"]
    assert lock["answered"]
    assert {"target": "x86", "component": "app", "old": "2.1.0", "new": "2.1.3"} in lock["moved"]
    assert [fact["id"] for fact in lock["facts"]] == ["app-wheels/2.1.3#python"]
    # Without an earlier matrix it is compared with the lock, which is up to date.
    since = small("news", "--since", "2026-01-01", "--lock", "toolmatrix.lock")
    assert "its requests have the same answer" in since.out
    assert Path("toolmatrix.lock").exists()
