"""What a recipe asks of an answer: as nogoods the same as rendering finds, and told by its place where it refuses."""

from __future__ import annotations

import random

import pytest

from tests import matrix
from toolmatrix.api import requests
from toolmatrix.api.answers import NoAnswer
from toolmatrix.api.locks import Locked
from toolmatrix.commands.lock import lock
from toolmatrix.commands.render import render
from toolmatrix.errors import RecipeError
from toolmatrix.recipes import read as built_in
from toolmatrix.recipes.read import Picker
from toolmatrix.request import recipes
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.solve import demand
from toolmatrix.solve.assemble import Assembly

TRIES = 300
REQUESTS = {
    "toolchain": Fields(wanted=("cuda", "cudnn", "gcc", "python")),
    "pytorch": Fields(wanted=("torch",), target=("amd",)),
    "tensorflow": Fields(wanted=("tensorflow",), arch=("sm_80", "sm_90")),
    "jaxlib": Fields(wanted=("jaxlib",), target=("arm",), device=("H100",)),
    "hip": Fields(wanted=("rocm",), target=("amd",)),
}


def opened() -> requests.OpenMatrix:
    """The built-in matrix, compiled once."""
    return requests.OpenMatrix(index=matrix.index())


def holds(picker: Picker, conditions: tuple[tuple[str, str], ...]) -> bool:
    """True if rendering would find that conditions hold."""
    from toolmatrix.recipes.model import Part

    return picker.holds(Part(when=conditions))


@pytest.mark.parametrize("recipe", REQUESTS)
def test_nogoods_forbid_what_rendering_refuses_and_nothing_else(recipe: str) -> None:
    index = matrix.index()
    assembly = Assembly(index, read(index, REQUESTS[recipe].replace(recipe=recipe)))
    (target,) = assembly.request.targets
    schemes = {name: part["scheme"] for name, part in index.header["components"].items()}
    stated: dict[int, list[tuple[tuple[int, int], ...]]] = {}
    for statement in demand.statements(assembly):
        stated.setdefault(id(statement.origin), []).append(statement.terms)
    brought = {
        name
        for variant in index.header["components"]
        if index.header["components"][variant]["variant_of"] and assembly.pick(target, variant)
        for name in demand.inside(index, variant)
    }
    chance, found = random.Random(recipe), set()
    for _ in range(TRIES):
        # What the request leaves of each, and no more: the rest is no question.
        left = assembly.remaining[target]
        values = [
            chance.choice([at for at in range(part.count + 1) if left[part.component] >> at & 1])
            for part in assembly.variables
        ]
        answer: dict[str, tuple[str, ...]] = {}
        for variable, value in zip(assembly.variables, values, strict=True):
            # Archs and devices that are asked for are never absent.
            if variable.instance and not value:
                value = values[variable.number] = 1
            release = assembly.version(variable, value)
            if release:
                answer[variable.component] = (*answer.get(variable.component, ()), release)
        picker = Picker(answer, schemes, {})
        for part in assembly.request.stipulations:
            if part.subject in brought and part.or_in_build:
                continue
            broken = holds(picker, part.when) and not any(holds(picker, way) for way in part.one_of)
            forbidden = any(
                all(mask >> values[number] & 1 for number, mask in terms)
                for terms in stated.get(id(part), ())
            )
            assert forbidden == broken, (part.text, answer)
            found.add(broken)
    assert found == {True, False}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("cuda==12.4.1", "gcc", "python"), {"target": "x86"}),
        (("cuda==12.8",), {"distro": "ubuntu24.04"}),
        (("rocm==6.0.2", "python"), {"target": "amd"}),
        (("torch==2.9.1",), {"from_": "wheel"}),
    ],
)
def test_an_answer_is_one_that_an_image_can_be_made_of(
    wanted: tuple[str, ...], said: requests.RequestOptions
) -> None:
    found = lock(*wanted, **(said | {"recipe": "toolchain", "matrix": opened()}))
    assert isinstance(found, Locked)
    assert any(name.endswith(".Dockerfile") for name in render(found))
    assert "--recipe=toolchain" in found.lock.environments["default"].request


def test_a_refusal_names_the_rule_and_its_place() -> None:
    found = lock("cuda==12.4.1", distro="ubuntu26.04", recipe="toolchain", matrix=opened())
    assert isinstance(found, NoAnswer)
    lines = [line["text"] for core in found.to_json()["cores"] for line in core["lines"]]
    (told,) = (line for line in lines if "cuda can be installed only with" in line)
    place = next(
        part.at
        for part in built_in.provisions(matrix.index()).provisions
        if part.component == "cuda"
    )
    assert place is not None
    assert f"recipes/provisions.yaml:{place.line}" in told
    assert "--recipe toolchain" in str(found)


def test_what_nothing_brings_is_told() -> None:
    found = lock("vllm", from_="wheel", recipe="toolchain", matrix=opened())
    assert isinstance(found, NoAnswer)
    assert "there is no way to install vllm in an image" in " ".join(str(found).split())


def test_a_recipe_says_why_it_refuses() -> None:
    found = lock("torch", target="amd", recipe="pytorch", matrix=opened())
    assert isinstance(found, NoAnswer)
    told = " ".join(str(found).split())
    assert "such as `--arch gfx90a` (recipes/pytorch.yaml:" in told


def test_a_request_without_a_recipe_has_no_stipulations() -> None:
    request = read(matrix.index(), Fields(wanted=("gcc",)))
    assert (request.recipe, request.stipulations) == ("", ())
    assert not any(ask.option == "recipe" for ask in request.asks)


def test_needs_are_asked_for_once() -> None:
    index = matrix.index()
    request = read(index, Fields(wanted=("gcc==12",), recipe="toolchain"))
    needed = [ask.component for ask in request.asks if ask.option == "recipe"]
    assert needed == ["base-image", "distro"]
    made = recipes.recipe("tensorflow", index)
    assert recipes.needs(made, (), index)[:3] == ("base-image", "distro", "tensorflow")
    assert recipes.needs(recipes.recipe("toolchain", index), ("wrapt",), index)[2:] == ("python",)


def test_braces_in_a_condition_are_part_of_a_sentence() -> None:
    own = built_in.recipe("wheel", matrix.index())
    python = next(part for part in own.provisions if part.component == "python")
    braced = python.replace(when=(("distro", "debian12 {x}"),))
    texts = [
        rule.text
        for rule in recipes.stipulations(own.replace(provisions=(braced,)), matrix.index())
        if rule.text.startswith("python can be installed only with distro debian12 {x}")
    ]
    assert len(texts) == 1


def test_a_recipe_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(RecipeError, match="unknown recipe `tensorfow`"):
        read(matrix.index(), Fields(wanted=("gcc",), recipe="tensorfow"))


@pytest.mark.parametrize(
    ("release", "distro", "suite"),
    [
        ("4.3.0", "ubuntu20.04", "ubuntu"),
        ("6.0.2", "ubuntu20.04", "ubuntu"),
        ("6.0.2", "ubuntu22.04", "jammy"),
        ("6.0.2", "ubuntu24.04", ""),
        ("5.0.0", "ubuntu22.04", ""),
        ("4.0.0", "ubuntu20.04", ""),
        ("7.2.3", "ubuntu24.04", "noble"),
        ("7.2.3", "ubuntu20.04", ""),
    ],
)
def test_rocm_comes_from_suites_that_its_repository_has(
    release: str, distro: str, suite: str
) -> None:
    found = lock(
        f"rocm=={release}", target="amd", distro=distro, recipe="toolchain", matrix=opened()
    )
    assert isinstance(found, Locked) == bool(suite)
    if isinstance(found, Locked):
        made = render(found, format="dockerfile")["amd.Dockerfile"]
        short = release.removesuffix(".0")
        assert f"https://repo.radeon.com/rocm/apt/{short} {suite} main" in made


def test_tensorflow_for_cuda_12_is_built_for_archs_that_are_named() -> None:
    found = lock("tensorflow==2.15.1", target="x86", recipe="tensorflow", matrix=opened())
    assert isinstance(found, NoAnswer)
    assert "name archs, such as `--arch sm_80`" in " ".join(str(found).split())
    for arch, device in (("sm_80", ""), ("", "A100")):
        named = lock(
            "tensorflow==2.15.1",
            target="x86",
            arch=arch,
            device=device,
            recipe="tensorflow",
            matrix=opened(),
        )
        assert isinstance(named, Locked)
        made = render(named, recipe="tensorflow", format="dockerfile")["x86.Dockerfile"]
        assert "TF_CUDA_COMPUTE_CAPABILITIES=8.0" in made
    older = lock("tensorflow==2.14.1", target="x86", recipe="tensorflow", matrix=opened())
    assert isinstance(older, Locked)


def test_onnxruntime_brings_the_eigen_whose_archive_changed() -> None:
    for release, brings in (("1.16.3", False), ("1.18.1", True), ("1.21.0", False)):
        found = lock(f"onnxruntime=={release}", target="x86", recipe="onnxruntime", matrix=opened())
        assert isinstance(found, Locked)
        made = render(found, recipe="onnxruntime", format="dockerfile")["x86.Dockerfile"]
        assert ("FETCHCONTENT_SOURCE_DIR_EIGEN=/work/eigen" in made) == brings
