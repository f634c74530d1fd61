"""A new code is a page: every form, and the command that explains codes, then have it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.judging import small
from tests.judging.stage_cases import index, made, of_plan
from toolmatrix import resources
from toolmatrix.errors import Position
from toolmatrix.finding import Finding, code_pages
from toolmatrix.judging import lints
from toolmatrix.report import findings
from toolmatrix.report.terminal import Terminal

PACKAGE = Path(resources.rules_path()).parent
PAGE = """
TM399:
  name: planted
  severity: error
  since: 0.1.0
  text: the word `{word}` is planted beside {others}
  help: take `{word}` out
  what: A word was planted.
  why: To see whether a code takes one place.
  example: planted
  remedy: Take it out.
"""
SENTENCE = "the word `here` is planted beside `a` and `b`"


def planted(severity: str, **fields: Any) -> Finding:
    """A finding that no judge knows."""
    return Finding.of("TM399", severity=severity, **fields)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The page of a new code, and a judge that finds it."""
    with open(resources.rules_path(), encoding="utf-8") as file:
        pages = file.read()
    (tmp_path / "rules.yaml").write_text(pages + PAGE)
    monkeypatch.setattr("toolmatrix.finding.rules_path", lambda: str(tmp_path / "rules.yaml"))
    code_pages.cache_clear()
    place = Position("facts.yaml", 3)
    found = planted("error", word="here", others=("a", "b"), where=place)
    monkeypatch.setattr(lints, "unlisted", lambda _files: [found])
    yield
    code_pages.cache_clear()


@pytest.mark.usefixtures("page")
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


@pytest.mark.usefixtures("page")
def test_a_planted_code_is_found_beside_plans() -> None:
    plan = planted("warning", word="x", others=("y",), plan=0, stage=2)
    found = [*of_plan(made("elf:80"), index()), plan]
    entry = findings.plan_document(index(), found)[-1]
    assert (entry["code"], entry["plan"], entry["stage"]) == ("TM399", 0, 2)
    assert entry["names"] == ["x", "y"]
    assert "warning[TM399]: the word `x` is planted beside `y`\n" in findings.plan_text(
        index(), found, Terminal()
    )


def calls() -> Iterator[tuple[str, set[str]]]:
    """The codes of findings that the package makes, each with the names that a call gives its templates; calls with
    `phrases` from elsewhere are left out.
    """
    for path in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("Finding.of"):
                continue
            names = {one.arg for one in call.keywords if one.arg}
            phrases = [one.value for one in call.keywords if one.arg == "phrases"]
            written = [one for one in phrases if isinstance(one, ast.Dict)]
            if isinstance(call.args[0], ast.Constant) and written == phrases:
                keys = {ast.literal_eval(key) for one in written for key in one.keys if key}
                yield str(call.args[0].value), names | keys


def templates(code: str) -> list[str]:
    """Every sentence and help of a code."""
    page = code_pages()[code]
    parts = [page.get("text", ""), page.get("help", "")]
    return [text for part in parts for text in ([part] if isinstance(part, str) else part.values())]


def test_every_place_of_a_sentence_has_a_value() -> None:
    given: dict[str, set[str]] = {}
    for code, names in calls():
        given[code] = given.get(code, set()) | names
    assert len(given) > 30
    shared = {*dir(Finding), *Finding._fields, "named", "some", "in_ways", "chosen"}
    for code, names in given.items():
        assert templates(code), code
        places = {name for text in templates(code) for _, name, _, _ in Formatter().parse(text)}
        assert places - {None} <= names | shared, code
