"""Answers of every recipe can be rendered: each release for one target, the newest for all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests import matrix
from tests.cli.test_documents import validated
from toolmatrix.api import files, locks, renders
from toolmatrix.api.renders import REFUSED, RENDERED, RenderQuestion
from toolmatrix.errors import RecipeError
from toolmatrix.lock.model import DEFAULT
from toolmatrix.request import recipes
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

ARCHS = ("sm_80", "gfx90a")


def asked(question: RenderQuestion) -> dict[str, int]:
    """What comes of a question, by its word."""
    return dict(renders.outcome(matrix.index(), question).counts)


def refused(questions: list[RenderQuestion]) -> list[tuple[str, ...]]:
    """The questions that were answered and then refused, with the reason."""
    found = [renders.outcome(matrix.index(), question) for question in questions]
    return [(*one.question.words, *one.refused) for one in found if one.refused]


def in_turn(every: list[RenderQuestion]) -> list[RenderQuestion]:
    """Each release once (of wheels each second), by turns for its targets and archs; the newest for all of them."""
    releases: dict[tuple[str, ...], dict[str, list[RenderQuestion]]] = {}
    for one in every:
        of = releases.setdefault((one.recipe, one.component, one.from_), {})
        of.setdefault(one.release, []).append(one)
    found = []
    for (recipe, *_), of in releases.items():
        *older, newest = of.values()
        apart = 2 if recipe == "wheel" else 1
        found += [places[turn % len(places)] for turn, places in enumerate(older[::apart])]
        found += newest
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_answers_of_every_recipe_component_and_target_can_be_rendered(part: int) -> None:
    every = renders.questions(matrix.index(), ARCHS)
    asked = in_turn(every)
    kinds = [{one.replace(release="") for one in some} for some in (asked, every)]
    assert kinds[0] == kinds[1]
    assert refused(asked[part::4]) == []


def test_the_table_tells_an_answer_that_makes_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    question = RenderQuestion(
        recipe="toolchain", component="cuda", release="12.4.1", from_="source", target="x86"
    )
    assert asked(question) == {RENDERED: 2}
    # Without what a recipe asks the solver takes the newest distribution, into which nothing brings CUDA.
    monkeypatch.setattr(recipes, "stipulations", lambda *_: ())
    found = renders.outcome(matrix.index(), question)
    assert dict(found.counts) == {REFUSED: 2}
    assert "nothing says how cuda 12.4.1 gets into" in found.refused[0]
    report = renders.rendered(matrix.index(), (), [question], processes=1)
    assert report.exit_code == 1
    validated(report.to_json(), "renders")
    assert report.to_json()["summary"][REFUSED] == 2
    assert "toolmatrix render cuda==12.4.1" in report.text()
    assert report.text().endswith("no: of 2 renders 2 were answered and then refused\n")


def test_an_extra_may_have_a_name_of_several_words() -> None:
    # As `jax[cuda11_pip]` of 0.4.23, which an older driver asks for.
    request = read(
        matrix.index(),
        Fields(wanted=("jax==0.4.23+cuda11",), from_="wheel", target=("x86",), recipe="toolchain"),
    )
    found = locks.solved(matrix.index(), {DEFAULT: locks.LockRequest(request=request, words=())})
    options = files.RenderOptions(format="dockerfile")
    made = files.rendered(found, options, files.rules(matrix.index(), options))
    assert "jax[cuda11_pip]==0.4.23" in made["x86.Dockerfile"]


def test_archs_are_asked_for_where_the_target_has_them() -> None:
    found = renders.questions(matrix.index(), ARCHS, ["hip"])
    by_target = {(one.target, one.archs) for one in found}
    assert by_target == {
        ("x86", ()),
        ("x86", ("sm_80",)),
        ("arm", ()),
        ("amd", ()),
        ("amd", ("gfx90a",)),
    }
    assert {one.component for one in found} == {"rocm"}


def test_a_recipe_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RecipeError, match="there is no recipe `hop`"):
        renders.questions(matrix.index(), (), ["hop"])


def test_a_pair_that_nobody_tested_is_told(real: Cli) -> None:
    line = ("render", "tensorflow==2.15.1", "--recipe", "tensorflow", "--arch", "sm_80", "--stdout")
    assert "untested" not in real(*line).err
    # Debian has a toolkit of its own, older than the one that this release was tested with.
    assert "is untested with tensorflow 2.15.1" in real(*line, "--distro", "debian12").err


@pytest.mark.long
def test_the_command_counts_what_came_of_each_recipe(real: Cli) -> None:
    found = real("check", "--render", "--only", "numpy", "--json")
    document = json.loads(found.out)
    validated(document, "renders")
    assert found.code == 0
    (row,) = document["recipes"]
    assert (row["recipe"], row["component"], row["from"]) == ("numpy", "numpy", "source")
    assert row["counts"] == document["summary"]
    assert document["refused"] == []
    assert real("check", "--render", "--format", "sarif").code == 2
