"""What a recipe may say, and the error for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.conftest import Reading
from toolmatrix.errors import RecipeError
from toolmatrix.factbase.index import Index
from toolmatrix.recipes import read

GOOD = """\
builds: numpy
needs: [base-image, python]
steps:
  - name: wheel
    stage: build
    when: {python: ">=3.8"}
    env: {NPY_NUM_BUILD_JOBS: "2"}
    run: ['python -m pip wheel --no-binary :all: "numpy=={numpy}"']
    downloads:
      - {of: numpy, url: "https://example.org/numpy-{numpy}.tar.gz", to: /src, unpack: true, sha256: {1.19.5: %s}}
    source: here
provisions:
  - component: [keras, gast]
    when:
      - {distro: debian12}
      - {distro: ubuntu*}
    pip: ["{component}=={version}"]
    source: here
""" % ("0" * 64)


def test_a_recipe_is_read(reading: Reading) -> None:
    made = reading(GOOD)
    assert (made.name, made.builds, made.needs) == ("mine", ("numpy",), ("base-image", "python"))
    step = made.steps[0]
    assert step.when == (("python", ">=3.8"),)
    assert step.downloads[0].sha256 == {"1.19.5": "0" * 64}
    assert step.downloads[0].unpack
    assert str(step.at) == "mine.yaml:9:5"


def test_a_provision_of_several_components_stands_for_each_of_them(reading: Reading) -> None:
    made = reading(GOOD).provisions
    assert [(part.component, part.when) for part in made] == [
        ("keras", (("distro", "debian12"),)),
        ("keras", (("distro", "ubuntu*"),)),
        ("gast", (("distro", "debian12"),)),
        ("gast", (("distro", "ubuntu*"),)),
    ]


def step(text: str) -> str:
    """A step with one more line."""
    return f"steps:\n  - name: one\n    stage: build\n    source: here\n    {text}\n"


def provision(text: str) -> str:
    """A provision of GCC with one more line."""
    return f"provisions:\n  - component: gcc\n    source: here\n    {text}\n"


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("colour: red\n", "the recipe has an unknown key", "mine.yaml:6:1"),
        ("probes:\n  - run: [true]\n", "the recipe has probes but builds nothing", "mine.yaml:1:1"),
        (step("colour: red"), "a step has an unknown key", "mine.yaml:10:5"),
        ("steps:\n  - {name: one, stage: build}\n", "a step has no `source`", "mine.yaml:7:5"),
        (
            "steps:\n  - {name: one, source: here}\n",
            "a step has no `stage`",
            "mine.yaml:7:5",
        ),
        (
            "steps:\n  - {name: one, stage: later, source: here}\n",
            "stage is not a known word",
            "mine.yaml:7:24",
        ),
        (
            "steps:\n  - {name: one, stage: build, source: there}\n",
            "no such source",
            "mine.yaml:7:39",
        ),
        (
            step("when: {gcc: '>=99'}"),
            "no release of gcc meets this condition",
            "mine.yaml:10:17",
        ),
        (step("when: {gcc: '>='}"), "a selector cannot be read", "mine.yaml:10:17"),
        (step("when: {gccc: '9'}"), "unknown component", "mine.yaml:10:12"),
        (step("run: ['echo {pyton}']"), "unknown value `{pyton}`", "mine.yaml:10:11"),
        (
            step("run: ['echo {python.first}']"),
            "unknown value `{python.first}`",
            "mine.yaml:10:11",
        ),
        (step("run: ['echo \"a']"), "run cannot be used", "mine.yaml:10:11"),
        (step('run: ["one\\ntwo"]'), "run cannot be used", "mine.yaml:10:11"),
        (step("run: ['echo {cflags}']"), "run cannot be used", "mine.yaml:10:11"),
        (step("env: {'A B': c}"), "env cannot be used", "mine.yaml:10:11"),
        (step('env: {A: "b\\nUSER root"}'), "env cannot be used", "mine.yaml:10:14"),
        (step("workdir: here"), "workdir cannot be used", "mine.yaml:10:14"),
        (provision("packages: ['gcc; rm']"), "packages cannot be used", "mine.yaml:9:16"),
        (provision("pip: ['-r /etc/passwd']"), "pip cannot be used", "mine.yaml:9:11"),
        (provision("links: {usr/bin/cc: /usr/bin/gcc}"), "links cannot be used", "mine.yaml:9:13"),
        (
            provision("downloads: [{url: 'file:///etc/passwd', to: /x}]"),
            "url cannot be used",
            "mine.yaml:9:23",
        ),
        (
            provision("downloads: [{url: 'https://a.b/c d', to: /x}]"),
            "url cannot be used",
            "mine.yaml:9:23",
        ),
        ("name: other\n", "a key is used twice", "mine.yaml:6:1"),
        ("builds: &a numpy\n", "anchors and tags are not allowed", "mine.yaml:6:9"),
    ],
)
def test_what_a_recipe_may_not_say(reading: Reading, text: str, what: str, where: str) -> None:
    with pytest.raises(RecipeError) as caught:
        reading(text)
    assert (caught.value.what, str(caught.value.where)) == (what, where)
    assert caught.value.help


def test_another_schema_is_refused(index: Index, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("schema: toolmatrix.facts/1\nname: mine\nabout: none\n")
    with pytest.raises(RecipeError, match="schema is not a known word"):
        read.recipe(str(file), index)


def test_an_unknown_name_tells_the_known_ones(index: Index) -> None:
    with pytest.raises(RecipeError, match="unknown recipe `toolchian`") as caught:
        read.recipe("toolchian", index)
    assert "toolchain" in caught.value.expected


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("torch", "pytorch"),
        ("libtorch", "pytorch"),
        ("PyTorch", "pytorch"),
        ("tf", "tensorflow"),
        ("apache-tvm", "tvm"),
        ("apache_tvm", "tvm"),
        ("ort", "onnxruntime"),
        ("g++", "gcc"),
    ],
)
def test_a_recipe_goes_by_the_names_of_what_it_builds(index: Index, name: str, recipe: str) -> None:
    assert read.recipe(name, index).name == recipe


def test_a_missing_file_is_told(index: Index, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="the recipe cannot be read"):
        read.recipe(str(tmp_path / "none.yaml"), index)


def test_every_built_in_recipe_is_read(index: Index) -> None:
    made = [read.recipe(name, index) for name in read.names()]
    assert "toolchain" in [one.name for one in made]
    assert read.names() == tuple(one.name for one in made)


def test_every_built_in_provision_has_a_source(index: Index) -> None:
    book = read.provisions(index)
    assert {part.source for part in book.provisions} <= set(book.sources)
    assert all(part.source for part in book.provisions)
