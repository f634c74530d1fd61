"""A new code is a class and a page: every form, and the command that explains codes, then have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judging import small
from tests.judging.stage_cases import index, made, of_plan
from toolmatrix import resources
from toolmatrix.codes import matrix, plans
from toolmatrix.errors import Position
from toolmatrix.finding import Finding
from toolmatrix.judging import lints
from toolmatrix.report import findings
from toolmatrix.report.rules import load_rules
from toolmatrix.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli

PAGE = """
TM399:
  name: planted
  severity: error
  since: 0.1.0
  what: A word was planted.
  why: To see whether a code takes two places.
  example: planted
  remedy: Take it out.
"""


class Planted(Finding):
    """A finding that no judge knows."""

    code = "TM399"
    text = "the word `{word}` is planted beside {others}"
    advice = "take `{word}` out"
    word: str
    others: tuple[str, ...]


PLANTED = Planted(severity="error", word="here", others=("a", "b"), where=Position("facts.yaml", 3))
SENTENCE = "the word `here` is planted beside `a` and `b`"


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A class and its page, and a judge that makes one."""
    with open(resources.rules_path(), encoding="utf-8") as file:
        pages = file.read()
    (tmp_path / "rules.yaml").write_text(pages + PAGE)
    monkeypatch.setattr("toolmatrix.report.rules.rules_path", lambda: str(tmp_path / "rules.yaml"))
    monkeypatch.setattr(lints, "unlisted", lambda _files: [PLANTED])


@pytest.mark.usefixtures("planted")
def test_a_planted_code_is_found_in_every_form(cli: Cli, here: Path) -> None:
    front = small.write(here)
    text = cli("check", "--matrix", front)
    assert text.code == 1
    assert text.out.startswith(
        f"error[TM399]: {SENTENCE}\n  --> facts.yaml:3\n  help: take `here` out\n"
    )
    (entry,) = (
        one
        for one in cli("check", "--matrix", front, "--json").json()["findings"]
        if one["code"] == "TM399"
    )
    assert (entry["text"], entry["help"]) == (SENTENCE, "take `here` out")
    run = cli("check", "--matrix", front, "--format", "sarif").json()["runs"][0]
    (result,) = (one for one in run["results"] if one["ruleId"] == "TM399")
    assert result["message"] == {"text": f"{SENTENCE}. take `here` out"}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["name"] == "Planted"
    github = cli("check", "--matrix", front, "--format", "github").out
    assert f"::error file=facts.yaml,line=3,title=TM399::{SENTENCE}\n" in github
    assert cli("rule", "tm399").out.startswith("TM399 planted (error, since 0.1.0)\n")


def test_a_planted_code_is_found_beside_plans() -> None:
    plan = Planted(severity="warning", word="x", others=("y",), plan=0, stage=2)
    found = [*of_plan(made("elf:80"), index()), plan]
    entry = findings.plan_document(index(), found)[-1]
    assert (entry["code"], entry["plan"], entry["stage"]) == ("TM399", 0, 2)
    assert entry["names"] == ["x", "y"]
    assert "warning[TM399]: the word `x` is planted beside `y`\n" in findings.plan_text(
        index(), found, Terminal()
    )


def codes_of(kind: type[Finding]) -> Iterator[type[Finding]]:
    """All classes of a kind that have a code."""
    for one in kind.__subclasses__():
        yield from [one] if one.code else []
        yield from codes_of(one)


def test_every_class_has_its_page_and_says_something() -> None:
    pages = load_rules()
    for module in (matrix, plans):
        found = [one for one in codes_of(Finding) if one.__module__ == module.__name__]
        assert len(found) > 10
        for one in found:
            assert one.code in pages
            assert one.__subclasses__() or one.text or "sentence" in vars(one), one
