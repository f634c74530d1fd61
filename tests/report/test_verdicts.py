"""Verdicts in every form: real parsers read them, and nothing that strangers wrote reaches a reader raw."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.schemas import shipped
from toolmatrix.finding import Judged, Verdict
from toolmatrix.report import verdicts
from toolmatrix.report.annotations import sarif
from toolmatrix.report.rules import load_rules
from toolmatrix.report.terminal import Terminal

HOSTILE = '\x1b[31m<script>alert("x")</script>\r\n::error::x\u202e]]>&|`'

PASSED = Verdict(
    word="pass",
    kind="component",
    name="python",
    wanted="3.9",
    found="3.9.18",
    where="/usr/bin/python3",
)
FAILED = Verdict(
    word="FAIL",
    kind="component",
    name="numpy",
    wanted="1.19.5",
    found="1.24.4",
    seen_by="dist-info",
    where="/usr/lib/numpy",
    layer="sha256:99",
    made_by="RUN pip install pandas",
    code="TM401",
    help="1.24.4 came in with `RUN pip install pandas`",
    evidence="artifact",
    facts=("tensorflow-wheels/2.6.5#numpy",),
    others=(("1.19.5", "/opt/venv"),),
)
SKIPPED = Verdict(
    word="skip", kind="component", name="driver", code="TM490", reason="it belongs to the machine"
)
UNKNOWN = Verdict(
    word="unknown",
    kind="component",
    name="cuda",
    wanted="11.2.2",
    found="11.2",
    code="TM480",
    reason="11.2 may be 11.2.1",
)
WARNED = Verdict(word="warn", kind="machine", name="memory", code="TM506", found="1 GiB")
ALL = (PASSED, FAILED, SKIPPED, UNKNOWN, WARNED)


def judged(*held: Verdict, subject: str = "archive:tf.tar") -> Judged:
    return Judged(
        subject=subject,
        platform="linux/amd64",
        digest="sha256:" + "3f" * 32,
        lock="toolmatrix.lock",
        lock_digest="sha256:" + "5" * 64,
        target="x86",
        verdicts=held,
    )


def test_text_says_what_was_found_and_what_to_do() -> None:
    assert verdicts.text(judged(PASSED, FAILED, SKIPPED), Terminal()) == (
        "archive:tf.tar  linux/amd64  sha256:3f3f3f3f3f3f\n"
        "pass  python  3.9.18  wanted 3.9     /usr/bin/python3\n"
        "FAIL  numpy   1.24.4  wanted 1.19.5  /usr/lib/numpy             TM401\n"
        "      also    1.19.5                 /opt/venv\n"
        "skip  driver                         it belongs to the machine  TM490\n"
        "2 checked, 1 failed, 1 skipped\n"
        "\n"
        "help: numpy: 1.24.4 came in with `RUN pip install pandas`\n"
        "      (tensorflow-wheels/2.6.5#numpy)\n"
    )


@pytest.mark.parametrize(
    ("held", "outcome"),
    [
        ((PASSED,), "yes"),
        ((PASSED, SKIPPED), "yes"),
        ((PASSED, WARNED), "yes"),
        ((SKIPPED,), "unknown"),
        ((), "unknown"),
        ((PASSED, UNKNOWN), "unknown"),
        (ALL, "no"),
    ],
)
def test_the_outcome_tells_wrong_from_cannot_say(held: tuple[Verdict, ...], outcome: str) -> None:
    assert judged(*held).outcome == outcome


def test_the_document_keeps_to_its_schema() -> None:
    schema = shipped("verdicts")
    document = judged(*ALL).to_json()
    jsonschema.validate(document, schema)
    assert document["summary"] == {
        "pass": 1,
        "warn": 1,
        "fail": 1,
        "skip": 1,
        "unknown": 1,
        "checked": 4,
    }
    wrong = document["verdicts"][1]
    assert (wrong["expected"], wrong["actual"]) == ("1.19.5", "1.24.4")
    assert wrong["where"]["instruction"] == "RUN pip install pandas"


@pytest.mark.parametrize("key", ["subject", "outcome", "summary", "verdicts", "lock"])
def test_the_schema_misses_what_is_gone(key: str) -> None:
    schema = shipped("verdicts")
    document = {**judged(*ALL).to_json()}
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def xml_of(text: str) -> ET.Element:
    return ET.fromstring(text.encode())  # noqa: S314 - what was made just before


def test_junit_is_read_by_a_parser() -> None:
    root = xml_of(verdicts.junit([judged(*ALL), judged(PASSED)]))
    first, second = root.findall("testsuite")
    assert (
        first.get("tests"),
        first.get("failures"),
        first.get("errors"),
        first.get("skipped"),
    ) == ("5", "1", "1", "1")
    assert len(first.findall("testcase/failure")) == len(first.findall("testcase/error")) == 1
    assert len(first.findall("testcase/skipped")) == 1
    failure = first.find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "TM401"
    assert "numpy is 1.24.4 at /usr/lib/numpy, wanted 1.19.5" in str(failure.get("message"))
    assert [len(case) for case in second.findall("testcase")] == [0]


def test_sarif_has_the_shape_that_readers_need() -> None:
    document = sarif(verdicts.annotated([judged(*ALL)]))
    (run,) = document["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert ids == sorted({"TM401", "TM480", "TM490", "TM506"})
    assert [result["level"] for result in run["results"]] == ["error", "note", "warning", "warning"]
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "toolmatrix.lock"
        assert place["physicalLocation"]["region"]["startLine"] == 1
    logical = run["results"][0]["locations"][0]["logicalLocations"]
    assert logical == [{"fullyQualifiedName": "archive:tf.tar!/usr/lib/numpy"}]


def test_github_is_told_of_what_is_wrong() -> None:
    lines = verdicts.github([judged(*ALL)]).splitlines()
    assert lines[0] == (
        "::error file=toolmatrix.lock,line=1,title=TM401::archive:tf.tar: "
        "numpy is 1.24.4 at /usr/lib/numpy, wanted 1.19.5"
    )
    assert [line.partition(" ")[0] for line in lines[:-1]] == ["::error", "::warning", "::warning"]
    assert lines[-1] == "1 subject, 1 failed"
    assert "| FAIL | TM401 | archive:tf.tar: numpy is 1.24.4" in verdicts.markdown([judged(*ALL)])


class Page(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.joined = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.joined = tag == "wbr"
        self.tags += [] if self.joined else [tag]
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        # Where a line may be broken the text goes on.
        before = self.texts.pop() if self.joined and self.texts else ""
        self.texts.append(before + data)
        self.joined = False


def page_of(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


def test_the_page_holds_every_check_and_loads_nothing() -> None:
    page = page_of(verdicts.html([judged(PASSED), judged(*ALL, subject="bad")]))
    assert page.tags.count("tr") == 2 + len(ALL) + 1
    assert page.texts.index("bad") < page.texts.index("archive:tf.tar")
    assert {name for name, _ in page.attributes}.isdisjoint({"src", "onclick"})
    # A code leads to what it means, on the same page.
    links = {value for name, value in page.attributes if name == "href"}
    assert links == {f"#{one.code}" for one in ALL if one.code}
    assert {(link or "")[1:] for link in links} == {
        value for name, value in page.attributes if name == "id"
    }
    assert "script" not in page.tags


def hostile(text: str) -> Judged:
    bad = {
        name: text for name in Verdict._fields if name not in ("word", "code", "others", "facts")
    }
    one = Verdict(word="FAIL", code="TM401", others=((text, text),), facts=(text,), **bad)
    return Judged(
        **{name: text for name in Judged._fields if name != "verdicts"},
        verdicts=(
            one,
            one.replace(word="skip"),
            one.replace(word="unknown"),
            one.replace(word="warn"),
        ),
    )


FORMS: dict[str, Any] = {
    "text": lambda one: verdicts.text(one, Terminal(width=10**6)),
    "github": lambda one: verdicts.github([one]),
    "markdown": lambda one: verdicts.markdown([one]),
    "junit": lambda one: verdicts.junit([one]),
    "html": lambda one: verdicts.html([one]),
    "sarif": lambda one: json.dumps(sarif(verdicts.annotated([one]))),
    "json": lambda one: json.dumps(one.to_json()),
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_strangers_wrote_is_obeyed(form: str) -> None:
    clean, dirty = FORMS[form](hostile("plain")), FORMS[form](hostile(HOSTILE))
    assert "\x1b" not in dirty
    assert "\u202e" not in dirty
    assert dirty.count("\n") == clean.count("\n")
    if form in ("html", "junit", "markdown"):
        assert "<script" not in dirty
    if form == "html":
        assert page_of(dirty).tags == page_of(clean).tags


@settings(max_examples=examples(50), deadline=None)
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_any_text_makes_well_formed_output(text: str) -> None:
    one = hostile(text)
    xml_of(verdicts.junit([one]))
    assert page_of(verdicts.html([one])).tags.count("tr") == 5
    for form in FORMS.values():
        form(one).encode()


def test_every_code_of_a_verdict_has_a_page() -> None:
    sources = Path(verdicts.__file__).parent.parent.joinpath("judging").glob("*.py")
    found = {code for path in sources for code in re.findall(r'"(TM[45]\d\d)"', path.read_text())}
    assert {"TM401", "TM409", "TM490"} <= found <= set(load_rules())
