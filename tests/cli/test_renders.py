"""Answers of every recipe can be rendered: each release for one target, the newest for all.

And laws of what is requested: it is in the image, or refused, and a yes for several targets is a yes for each.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests import matrix
from tests.cli.test_documents import validated
from toolmatrix.api import files, locks
from toolmatrix.api.checks import Workers
from toolmatrix.api.explorer import Explorer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.commands import _renders as renders
from toolmatrix.commands._renders import REFUSED, RENDERED, RenderQuestion
from toolmatrix.errors import RecipeError, ToolmatrixError
from toolmatrix.lockfile.model import DEFAULT
from toolmatrix.request import recipes
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import possible

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from toolmatrix.solve.resolve import Resolution

ARCHS = ("sm_80", "gfx90a")


TARGETS = ("x86", "arm", "amd")
WAYS = ((), ("--from=source",), ("--from=wheel",))


def requestable() -> list[str]:
    """The components that a request may want of an image."""
    heads = matrix.index().header["components"]
    return [name for name in heads if recipes.requested([name], matrix.index())]


def checked(made: dict[str, str], target: str, component: str) -> bool:
    """Whether the check that ends the build of an image asks for a component there; read from its text alone."""
    text = made[f"{target}.check.sh"]
    if component == "base-image":
        return "\nFROM " in made[f"{target}.Dockerfile"]
    if component == "driver":
        return "driver.floor=" in made[f"{target}.Dockerfile"]
    # What is published for one toolkit has its name behind that of the component.
    used = rf"packages (?:none|cuda|rocm) .*? {component}(?:-[\w-]+)? (?:''|\d)"
    return bool(re.search(rf"^ *(?:compare {component} |{used})", text, re.MULTILINE | re.DOTALL))


def silent(components: list[str]) -> list[tuple[str, ...]]:
    """The requests that are neither refused nor answered by files that bring what was requested."""
    explorer, found = Explorer(OpenMatrix(index=matrix.index())), []
    for component in components:
        for target in TARGETS:
            for way in WAYS:
                words = (component, f"--target={target}", *way)
                try:
                    made = explorer.files(words)
                except ToolmatrixError as error:
                    refused = error.exit_code in (1, 3, 4)
                else:
                    refused = False
                    kept = not made["excluded"] and checked(made["files"], target, component)
                if not (refused or kept):
                    found.append(words)
    return found


def test_an_image_holds_what_was_requested_or_is_refused() -> None:
    assert silent(["vllm", "tensorflow", "jax", "triton", *requestable()[5::20]]) == []


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_image_holds_what_was_requested_or_is_refused(part: int) -> None:
    assert silent(requestable()[part::4]) == []


def test_a_yes_for_several_targets_is_one_for_each() -> None:
    index = matrix.index()

    def answer(component: str, *targets: str) -> Resolution | None:
        return possible(index, read(index, Fields(wanted=(component,), target=targets)))

    for component in ["cudnn==9.25.0.15", *requestable()[::3]]:
        alone = [answer(component, target) for target in TARGETS]
        together = answer(component, *TARGETS)
        assert bool(together) is all(alone), component
        name = component.partition("=")[0]
        if together is not None:
            assert all(name in together.chosen(target) for target in TARGETS), component


def asked(question: RenderQuestion) -> dict[str, int]:
    """What comes of a question, by its word."""
    return dict(renders.outcome(matrix.index(), question).counts)


def refused(questions: list[RenderQuestion]) -> list[tuple[str, ...]]:
    """The questions that were answered and then refused, with the reason."""
    found = [renders.outcome(matrix.index(), question) for question in questions]
    return [(*one.question.words, *one.refused) for one in found if one.refused]


def in_turn(every: list[RenderQuestion]) -> list[RenderQuestion]:
    """Each twelfth release (of wheels each 24th), by turns for its targets and archs; the newest for all of them."""
    releases: dict[tuple[str, ...], dict[str, list[RenderQuestion]]] = {}
    for one in every:
        of = releases.setdefault((one.recipe, one.component, one.from_), {})
        of.setdefault(one.release, []).append(one)
    found = []
    for (recipe, *_), of in releases.items():
        *older, newest = of.values()
        apart = 24 if recipe == "wheel" else 12
        found += [places[turn % len(places)] for turn, places in enumerate(older[::apart])]
        found += newest
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_answers_of_every_recipe_component_and_target_can_be_rendered(part: int) -> None:
    every = renders.questions(matrix.index(), ARCHS)
    asked = in_turn(every)
    kinds = [{one.replace(release="") for one in some} for some in (asked, every)]
    assert kinds[0] == kinds[1]
    assert refused(asked[part::2]) == []


def test_the_table_tells_an_answer_that_makes_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    question = RenderQuestion(
        recipe="toolchain", component="cuda", release="12.4.1", from_="source", target="x86"
    )
    assert asked(question) == {RENDERED: 2}
    # Without what a recipe asks the solver takes the newest distribution, into which nothing brings CUDA.
    monkeypatch.setattr(recipes, "stipulations", lambda *_: ())
    found = renders.outcome(matrix.index(), question)
    assert dict(found.counts) == {REFUSED: 2}
    assert "there is no known way to install cuda 12.4.1 in" in found.refused[0]
    alone = partial(Workers, paths=(), processes=1, executor="")
    report = renders.table(matrix.index(), [question], alone)
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
    found = locks.solve(matrix.index(), {DEFAULT: locks.LockRequest(request=request, words=())})
    options = files.RenderOptions(format="dockerfile")
    made = files.render_lock(found, options, files.rules(matrix.index(), options))
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
    with pytest.raises(RecipeError, match="unknown recipe `hop`"):
        renders.questions(matrix.index(), (), ["hop"])


def test_a_pair_that_nobody_tested_is_told(real: Cli) -> None:
    line = ("render", "tensorflow==2.15.1", "--recipe", "tensorflow", "--arch", "sm_80", "--stdout")
    assert "cannot say" not in real(*line).err
    # Debian has a toolkit of its own, older than the one that this release was tested with.
    assert "none joins tensorflow 2.15.1 and cuda" in real(*line, "--distro", "debian12").err


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
