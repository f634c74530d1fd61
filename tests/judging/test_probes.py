"""What the programs of an image are asked: the probes of the recipes, as far as they need no answer."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from toolmatrix.factbase.store import open_index
from toolmatrix.inspection import running
from toolmatrix.inspection.model import INTERPRETER, Inventory, Seen
from toolmatrix.judging import validation
from toolmatrix.recipes import fields, read

if TYPE_CHECKING:
    from pathlib import Path

    from toolmatrix.factbase.index import Index
    from toolmatrix.inspection.running import ProgramProbe


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def of(index: Index, name: str) -> list[ProgramProbe]:
    """The probes of one component or feature."""
    return [one for one in validation.probes_of(index) if one.name == name]


def test_probes_of_one_provision_go_together(index: Index) -> None:
    assert [(one.round, one.run) for one in of(index, "python")] == [
        (0, ("python", "--version")),
        (0, ("python3", "--version")),
    ]


def test_what_stands_in_comes_later_and_by_every_name(index: Index) -> None:
    found = of(index, "numpy")
    assert [one.round for one in found] == [0, 1, 2, 3]
    assert [one.run[0] for one in found] == ["python", "python3"] * 2
    assert {one.run[-1] for one in found} == {"numpy"}
    assert found[-1].answer("Name: numpy\nVersion: 1.19.5\n") == "1.19.5"


def test_every_probe_of_a_recipe_is_asked_that_needs_no_answer(index: Index) -> None:
    asked = {one.run for one in validation.probes_of(index)}
    for provision in read.provisions(index).provisions:
        for probe in provision.probes:
            named = {name for word in probe.run for name, _ in fields.names(word)}
            run = tuple(word.replace("{component}", provision.component) for word in probe.run)
            assert (run in asked) == (named <= {"component"} and not probe.wanted), run


def test_the_default_of_what_flags_set_either_way_is_asked(index: Index) -> None:
    found = of(index, "char")
    assert [one.run[0] for one in found] == ["cc", "gcc", "clang"]
    assert found[0].answer("#define __CHAR_UNSIGNED__ 1\n") == "unsigned"
    assert found[0].answer("#define __CHAR_BIT__ 8\n") == "signed"
    assert of(index, "crc32") == []


def test_only_wanted_components_are_asked_unseen(index: Index) -> None:
    found = validation.probes_of(index, {"numpy"})
    assert {one.name for one in found if one.wanted} == {"numpy"}


@pytest.mark.parametrize(
    ("after", "output", "told"),
    [
        ("", "bazel 3.7.2- (@non-git)\n", "3.7.2"),
        ("", "8.1.1.33-1+cuda11.2\n", "8.1.1.33"),
        ("", "Python 3.11.2\n", "3.11.2"),
        ("", "no number\n1.9.0+cu102\n", "1.9.0+cu102"),
        ("version ", "Debian clang version 14.0.6\nversion 9\n", "14.0.6"),
        ("release ", "Build of 2024\nCuda compilation tools, release 12.4, V12.4.131\n", "12.4"),
        ("version ", "12.4\n", ""),
        ("", "none\n", ""),
    ],
)
def test_the_version_is_what_the_check_of_an_image_takes(
    index: Index, after: str, output: str, told: str
) -> None:
    assert of(index, "python")[0].replace(after=after).answer(output) == told


@pytest.mark.parametrize(
    ("word", "asked"),
    [
        ("gcc==12.*", {"gcc"}),
        ("char==signed", {"char"}),
        ("flag==-fsigned-char", {"char"}),
        ("arch==arm64", set()),
    ],
)
def test_only_what_is_expected_is_asked(index: Index, word: str, asked: set[str]) -> None:
    held = {name: (Seen(version="1", seen_by="x", where="y"),) for name in ("gcc", "numpy", "cuda")}
    expected = validation.expectations_of([(word, None)])
    checks = validation.Validator(index=index, baseline=validation.Baseline(expected=expected))
    found = checks.asks(Inventory(subject="x", components=held))
    assert {one.name for one in found} == asked


def test_a_package_is_imported_by_the_python_that_the_image_starts(index: Index) -> None:
    packaged = Seen(version="1.26.4", seen_by="dist-info", where="a/METADATA", default=True)
    started = Seen(version="/opt/venv/bin/python -I", seen_by="python", where="/app")
    read = Inventory(
        subject="x",
        components=dict.fromkeys(("numpy", "six", "idna"), (packaged,)),
        features={INTERPRETER: (started,)},
    )
    expected = validation.expectations_of(
        [(word, None) for word in ("numpy>=1", "six>=1", "gcc>=9")]
    )
    checks = validation.Validator(index=index, baseline=validation.Baseline(expected=expected))
    found = checks.asks(read)
    assert [one.run[:3] for one in found if one.name in ("numpy", "six")] == [
        ("/opt/venv/bin/python", "-I", "-c")
    ] * 2
    assert {one.name for one in found} == {"numpy", "six", "gcc"}


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        (
            "some-thing",
            {
                "some_thing.py": "__version__ = '2'",
                "some_thing-1.0.dist-info/METADATA": "Version: 1.0",
            },
            "2",
        ),
        (
            "some-thing",
            {
                "some_thing/__init__.py": "__version__ = '2'",
                "some_thing-1.0.dist-info/METADATA": "Version: 1.0",
                "some_thing-1.0.dist-info/RECORD": "some_thing/__init__.py,,",
            },
            "1.0",
        ),
        (
            "other",
            {
                "thing.py": "x = 1",
                "other-3.dist-info/METADATA": "Name: other\nVersion: 3",
                "other-3.dist-info/top_level.txt": "_c\nthing\n",
            },
            "3",
        ),
        ("nothing", {}, ""),
    ],
)
def test_the_module_says_what_it_is(
    name: str, files: dict[str, str], said: str, tmp_path: Path
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    seen = Seen(version="1", seen_by="dist-info", where="")
    started = Seen(version=f"{sys.executable} -S", seen_by="python", where=str(tmp_path))
    read = Inventory(subject="x", components={name: (seen,)}, features={INTERPRETER: (started,)})
    (probe,) = running.import_probes(read, {name})
    ended = subprocess.run(probe.run, capture_output=True, text=True, check=False)
    assert (probe.answer(ended.stdout), bool(ended.returncode)) == (said, not said)
