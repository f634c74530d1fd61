"""What holds for an answer, and its texts with values put in."""

from __future__ import annotations

import pytest

from toolmatrix.errors import Position, RecipeError
from toolmatrix.recipes.fields import fill, unknown
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
