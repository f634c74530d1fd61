"""`--format svg`, `html` and `md` of each command that has them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_streams import LINES
from toolmatrix.command import COMMANDS
from toolmatrix.report.pictures import FORMS

# That of `stages` is a graph, which graphviz draws; its cost and its differences are drawn as all else.
DRAWN = [
    command.name
    for command in COMMANDS.values()
    if {*FORMS} <= {*command.formats} and command.name != "stages"
]


def title(svg: str) -> str | None:
    """The title of a picture."""
    return ET.fromstring(svg)[0].text  # noqa: S314 - our own


def test_what_answers_can_be_drawn() -> None:
    assert {"resolve", "why-not", "matrix", "diff", "validate", "inventory", "diagnose"} <= {*DRAWN}


# The others need more than a small matrix.
@pytest.mark.parametrize("name", sorted({*DRAWN} - {"audit", "diagnose", "doctor", "env"}))
@pytest.mark.parametrize("form", FORMS)
def test_a_command_is_drawn_below_its_words(small: Cli, here: Path, name: str, form: str) -> None:
    (here / "folder").mkdir()
    for lock, ask in (("one", "app==2.1.3"), ("other", "app<2")):
        small("lock", ask, "--lock", f"{lock}.lock")
    words = LINES[name]
    plain = small(*words)
    drawn = small(*words, "--format", form)
    assert drawn.code == plain.code
    if form == "svg":
        assert title(drawn.out) == " ".join(["toolmatrix", *words])
    if form == "svg" or name not in ("matrix", "validate", "check"):
        (said,) = re.findall(r"^\W*(\w+)", plain.out)
        assert said in drawn.out


@pytest.mark.parametrize("form", FORMS)
def test_a_cost_and_a_difference_of_plans_are_drawn(small: Cli, here: Path, form: str) -> None:
    (here / "a.log").write_text("#$ cicc -arch compute_52 a.cpp1.ii -o a.ptx\n")
    header = "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit"
    row = "a.cu , cicc , a.cpp1.ii , a.ptx , compute_52 , cicc, 12.5 , ms"
    (here / "times.csv").write_text(f"{header}\n{row}\n")
    cost = small("stages", "--from-log", "a.log", "--cost", "times.csv", "--format", form)
    assert (cost.code, cost.err) == (0, "")
    assert "critical path" in cost.out
    pair = small("stages", "diff", "a.log", "a.log", "--format", form)
    assert (pair.code, pair.err) == (0, "")
    for run in (cost, pair):
        if form == "svg":
            assert (title(run.out) or "").startswith("toolmatrix stages ")
        if form == "html":
            assert "Content-Security-Policy" in run.out


def test_form_and_place_of_a_result_are_not_in_its_title(small: Cli, here: Path) -> None:
    words = ["--color=never", "resolve", "app", "-o", "app.svg", "--target", "x86", "--format=svg"]
    assert small(*words, "-q").code == 0
    assert title((here / "app.svg").read_text()) == "toolmatrix resolve app --target x86"
