"""`--format svg`, `html` and `md` of each command that has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.cli.test_streams import LINES
from toolmatrix.cli.commands import COMMANDS
from toolmatrix.report.pictures import FORMS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

# That of `stages` is a graph, which graphviz draws.
DRAWN = [name for name, command in COMMANDS.items() if {*FORMS} <= {*command.formats}]


def title(svg: str) -> str | None:
    """The title of a picture."""
    return ET.fromstring(svg)[0].text  # noqa: S314 - our own


def test_what_answers_can_be_drawn() -> None:
    assert {"resolve", "why-not", "matrix", "diff", "validate", "inventory", "diagnose"} <= {*DRAWN}


# The others need more than a small matrix.
@pytest.mark.parametrize("name", sorted({*DRAWN} - {"audit", "diagnose", "doctor"}))
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


def test_form_and_place_of_a_result_are_not_in_its_title(small: Cli, here: Path) -> None:
    words = ["--color=never", "resolve", "app", "-o", "app.svg", "--target", "x86", "--format=svg"]
    assert small(*words, "-q").code == 0
    assert title((here / "app.svg").read_text()) == "toolmatrix resolve app --target x86"
