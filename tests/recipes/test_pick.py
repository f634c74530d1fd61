"""What holds for an answer, and its texts with values put in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolmatrix import resources
from toolmatrix.errors import Position, RecipeError
from toolmatrix.recipes import fields, model
from toolmatrix.recipes.fields import FIXED, FORMS, fill, unknown
from toolmatrix.recipes.model import BuildStep, Download, Probe, Provision
from toolmatrix.recipes.read import Picker

SCHEMES = {"gcc": "series", "numpy": "pep440", "distro": "names", "arch": "names"}
ANSWER = {"gcc": ("7",), "numpy": ("1.19.5",), "arch": ("sm_80", "sm_86")}
PICKER = Picker(ANSWER, SCHEMES, {"gcc": "7", "numpy": "1.19.5"})


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ((), True),
        ((("gcc", "7"),), True),
        ((("gcc", ">=8"),), False),
        ((("gcc", "*"), ("numpy", "~=1.19.2")), True),
        ((("gcc", "*"), ("numpy", ">=1.20")), False),
        ((("arch", "sm_86"),), True),
        ((("arch", "sm_9*"),), False),
        ((("distro", "*"),), False),
        ((("distro", "absent"),), True),
        ((("gcc", "absent"),), False),
    ],
)
def test_conditions_are_those_of_the_facts(when: tuple[tuple[str, str], ...], holds: bool) -> None:
    assert PICKER.holds(BuildStep(name="one", stage="build", when=when)) is holds


def test_the_first_that_holds_is_taken() -> None:
    parts = [
        Provision(component="gcc", packages=("new",), when=(("gcc", ">=8"),)),
        Provision(component="gcc", packages=("gcc-{gcc}",)),
        Provision(component="gcc", packages=("late",)),
    ]
    found = PICKER.first(parts)
    assert found is not None
    assert found.packages == ("gcc-7",)
    assert PICKER.first(parts[:1]) is None


def test_values_are_put_in_everywhere_and_inner_parts_are_picked() -> None:
    part = Provision(
        component="numpy",
        pip=("{component}=={version}",),
        links={"/a-{gcc}": "/b-{numpy.minor.dashed}"},
        downloads=(Download(url="https://a.b/{numpy}", to="/x"),),
        probes=(
            Probe(run=("old",), when=(("gcc", "<7"),)),
            Probe(run=("show", "{component}")),
        ),
    )
    filled = PICKER.fill(part, component="numpy", version="1.19.5")
    assert filled.pip == ("numpy==1.19.5",)
    assert filled.links == {"/a-7": "/b-1-19"}
    assert filled.downloads[0].url == "https://a.b/1.19.5"
    assert [probe.run for probe in filled.probes] == [("show", "numpy")]


def test_a_value_that_the_answer_lacks_is_told_with_its_place() -> None:
    step = BuildStep(
        name="one", stage="build", run=("echo {cuda}",), at=Position("mine.yaml", 3, 5)
    )
    with pytest.raises(RecipeError, match="the answer has no cuda") as caught:
        PICKER.fill(step)
    assert str(caught.value.where) == "mine.yaml:3:5"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{a}", "1.2.0"),
        ("{a.major} {a.minor} {a.patch}", "1 1.2 1.2.0"),
        ("{a.short}", "1.2"),
        ("{a.dashed} {a.minor.joined}", "1-2-0 12"),
        ("${a} {A} { a } {a,b}", "${a} {A} { a } {a,b}"),
    ],
)
def test_forms_of_a_version(text: str, written: str) -> None:
    assert fill(text, {"a": "1.2.0"}) == written


def test_what_nobody_knows_is_named() -> None:
    assert unknown("{gcc} {target} {gcc.minor}", {"gcc": ()}) == ""
    assert unknown("{gcc} {gc}", {"gcc": ()}) == "gc"
    assert unknown("{gcc.last}", {"gcc": ()}) == "gcc.last"


# docs/recipes.md names every key, value and form that there is, and no value that there is not.


PAGE = (Path(resources.matrix_root()) / "docs" / "recipes.md").read_text()
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))


@pytest.mark.parametrize("name", [*fields.SHAPES, "recipe", "book"])
def test_every_key_of_a_part_is_named(name: str) -> None:
    shape = {**fields.SHAPES, "recipe": fields.RECIPE, "book": fields.BOOK}[name]
    assert {*shape.fields, *shape.lists} <= NAMED


def test_every_value_and_form_is_named() -> None:
    table = PAGE.partition("## Values\n")[2].partition("\n## ")[0]
    rows = "".join(line for line in table.splitlines() if line.startswith("| `{"))
    assert set(re.findall(r"`\{([a-z_]+)\}`", rows)) == set(FIXED)
    assert set(re.findall(r"^\| `\.([a-z]+)` \|", table, re.MULTILINE)) == set(FORMS)
    assert set(model.STAGES) <= NAMED


# Lines of shell that stay one command wherever they are put.


@pytest.mark.parametrize(
    "line",
    [
        "make -j2",
        "echo 'a # b' \"c # d\"",
        "x=${name#prefix}",
        "if [ -f a ]; then rm a; fi",
        'CC="{cflags}" make',
        r"printf '%s\n' \"",
        "curl -fsSL https://example.org/a#b -o a",
    ],
)
def test_a_command_is_taken(line: str) -> None:
    assert fields.shell_fault(line) == ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "it is empty or has leading or trailing blanks"),
        (" make", "it is empty or has leading or trailing blanks"),
        ("a\nUSER root", "it contains a control character or a line break"),
        ("a\rb", "it contains a control character or a line break"),
        ("a\u2028b", "it contains a control character or a line break"),
        ("EOF", "`EOF` would end the script"),
        ("make \\", "it ends with `\\`, so that a shell continues on the next line"),
        ("make &&", "it ends with `&`, so that a shell continues on the next line"),
        ("make;", "it ends with `;`, so that a shell continues on the next line"),
        ("make |", "it ends with `|`, so that a shell continues on the next line"),
        ("make # all", "it contains a comment"),
        ("# make", "it contains a comment"),
        ("cat <<EOF", "it contains a heredoc"),
        ("echo 'a", "the quote ' is not closed"),
        ("echo \"a'b", 'the quote " is not closed'),
        ("echo {cflags}", "`{cflags}` is a list and must be quoted"),
    ],
)
def test_what_reaches_beyond_its_end_is_refused(line: str, why: str) -> None:
    assert fields.shell_fault(line) == why
