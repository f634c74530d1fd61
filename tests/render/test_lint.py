"""hadolint has nothing to say about any Dockerfile; what it is told to overlook stands in the files with a reason."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolmatrix.recipes import read as recipes
from toolmatrix.render.dockerfile import DIALECTS

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).parent.parent.parent
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent))

ALL = "x86,arm,amd"
CASES = [
    ("gcc", "gcc", ALL),
    ("hip", "rocm==6.3.3 --distro ubuntu22.04", "amd"),
    ("jaxlib", "jaxlib", ALL),
    ("numpy", "numpy", ALL),
    ("onnxruntime", "onnxruntime", ALL),
    ("pytorch", "torch --arch sm_90,gfx90a", ALL),
    ("tensorflow", "tensorflow", ALL),
    ("tensorflow", "tensorflow==2.6.5", ALL),
    ("toolchain", "gcc python", ALL),
    ("toolchain", "gcc python rocm==5.2.3 --distro debian12", ALL),
    ("toolchain", "gcc --distro rockylinux9", "x86,arm"),
    ("toolchain", "cuda==12.4.1 gcc python --distro ubuntu22.04", "x86"),
    ("tvm", "apache-tvm", ALL),
]
"""What each recipe is rendered for: each package manager, bases with a toolkit and without."""


def test_every_recipe_is_looked_at() -> None:
    assert {recipe for recipe, _, _ in CASES} == set(recipes.names())


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("recipe", "request_", "targets"), CASES)
def test_hadolint_is_silent(
    recipe: str, request_: str, targets: str, dialect: str, tmp_path: Path
) -> None:
    words = [f"--target={targets}", f"--recipe={recipe}", f"--dialect={dialect}"]
    render = [sys.executable, "-m", "toolmatrix", "render", f"--output={tmp_path}"]
    _run([*render, *request_.split(), *words])
    files = sorted(tmp_path.glob("*.Dockerfile"))
    assert {file.stem for file in files} == set(targets.split(","))
    assert _lint(*files) == ""


def test_hadolint_would_speak(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text("FROM debian:12\nRUN cd /tmp && make\n")
    assert "DL3003" in _lint(file)


def _lint(*files: Path) -> str:
    """What hadolint says, by its own settings and not by those of the user."""
    assert HADOLINT, "install the extra `test` of this package"
    empty = files[0].parent / "hadolint.yaml"
    empty.write_text("{}\n")
    return _run([HADOLINT, "--no-fail", f"--config={empty}", *map(str, files)])


def _run(words: list[str]) -> str:
    ended = subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
