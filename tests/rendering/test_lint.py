"""hadolint has nothing to say about any Dockerfile; what it is told to overlook stands in the files with a reason."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.amount import sampled
from toolmatrix.cli.main import main
from toolmatrix.recipes import read as recipes
from toolmatrix.rendering.dockerfile import DIALECTS

pytestmark = [pytest.mark.process, pytest.mark.slow]

HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent))

ALL = "x86,arm,amd"
CASES = [
    ("extension", "torch-scatter causal-conv1d --accelerator cuda --arch sm_80", "x86,arm"),
    ("gcc", "gcc", ALL),
    ("hip", "rocm==6.3.3 --distro ubuntu22.04", "amd"),
    ("jaxlib", "jaxlib", ALL),
    ("lightgbm", "lightgbm", "x86,arm"),
    ("lightgbm", "lightgbm --accelerator cuda --arch sm_80", "x86"),
    ("numpy", "numpy", ALL),
    ("onnxruntime", "onnxruntime", ALL),
    ("pytorch", "torch --arch sm_90,gfx90a", ALL),
    ("tensorflow", "tensorflow", ALL),
    ("tensorflow", "tensorflow==2.6.5", ALL),
    ("toolchain", "gcc python", ALL),
    ("toolchain", "gcc python --with rocm==5.2.3 --distro debian12", ALL),
    ("toolchain", "gcc --distro rockylinux9", "x86,arm"),
    ("toolchain", "cuda==12.4.1 gcc python --distro ubuntu22.04", "x86"),
    ("tvm", "apache-tvm", ALL),
    ("wheel", "tensorflow==2.13.0 --from wheel", "x86"),
    ("wheel", "torch --from wheel", ALL),
]
"""What each recipe is rendered for: each package manager, bases with a toolkit and without."""


def test_every_recipe_is_looked_at() -> None:
    assert {recipe for recipe, _, _ in CASES} == set(recipes.names())


@pytest.mark.parametrize(
    "dialect", [DIALECTS[0], *(pytest.param(one, marks=pytest.mark.long) for one in DIALECTS[1:])]
)
@pytest.mark.parametrize(("recipe", "request_", "targets"), sampled(CASES, every=4))
def test_hadolint_is_silent(
    recipe: str, request_: str, targets: str, dialect: str, tmp_path: Path, cache: str
) -> None:
    words = [f"--target={targets}", f"--recipe={recipe}", f"--dialect={dialect}"]
    line = ["render", f"--output={tmp_path}", *request_.split(), *words]
    err = io.StringIO()
    code = main(line, {"XDG_CACHE_HOME": cache}, io.StringIO(), io.StringIO(), err)
    assert code == 0, err.getvalue()
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
    words = [HADOLINT, "--no-fail", f"--config={empty}", *map(str, files)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
