"""Remedies of failures as they were reported: the cure that helps is offered, and none that a version makes wrong."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.logs import captured as logs
from toolmatrix.api.requests import OpenMatrix, request_context
from toolmatrix.commands.diagnose import diagnose_log
from toolmatrix.judging.diagnose import diagnose
from toolmatrix.logs import log, signatures
from toolmatrix.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.request.read import RequestContext

BOOK = signatures.load()
ISSUES = [
    row
    for name in ("first", "apart", "second", "third", "fourth", "fifth", "sixth")
    for row in logs.issues(name)
]
REMEDIES: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "remedies.yaml").read_text(), yaml.CSafeLoader
)


@pytest.fixture(scope="session")
def place(cache: str) -> RequestContext:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        return request_context(None)


def found(place: RequestContext, lines: list[str]) -> tuple[list[Mapping[str, Any]], str]:
    """The findings of a log, and what is offered as one line of words."""
    report = diagnose_log(seen(lines), "", 0, OpenMatrix(index=place.index))
    words = " ".join(report.text(Terminal(width=10_000)).split())
    return report.to_json()["findings"], words


def seen(lines: list[str]) -> log.ObservedLog:
    return log.observe(io.BytesIO("\n".join([*lines, ""]).encode()), BOOK, "x.log")


@pytest.mark.parametrize("row", ISSUES, ids=lambda row: row["issue"])
def test_a_reported_line_names_its_components_or_nothing(
    place: RequestContext, row: Mapping[str, Any]
) -> None:
    causes = diagnose(place.index, BOOK, seen(logs.lines_of(row)), {}, lambda _: None).causes
    if not row["between"]:
        assert [cause.signature for cause in causes] == []
    named = {side.component for cause in causes for side in cause.between}
    assert {*row["between"]} <= named


@pytest.mark.long
@pytest.mark.parametrize(
    "row", [row for row in ISSUES if row["between"]], ids=lambda row: row["issue"]
)
def test_a_reported_line_is_told_with_the_cure_that_helps(
    place: RequestContext, row: Mapping[str, Any]
) -> None:
    _, words = found(place, logs.lines_of(row))
    assert re.search(row["says"], words), words
    assert not (row.get("never") and re.search(row["never"], words)), words


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, row in REMEDIES.items() if "lines" in row])
def test_the_cure_that_a_version_makes_wrong_is_not_offered(
    place: RequestContext, name: str
) -> None:
    row = REMEDIES[name]
    causes, words = found(place, row["lines"])
    assert [cause["signature"] for cause in causes] == [name]
    assert re.search(row["says"], words), words
    assert not (row.get("never") and re.search(row["never"], words)), words


def test_every_signature_says_which_cure_is_wrong_or_why_none_is() -> None:
    assert {*REMEDIES} == {one.name for one in BOOK.signatures}
    assert all(row["naive"] for row in REMEDIES.values())
    assert sum("lines" in row for row in REMEDIES.values()) > 60
