"""The image of toolmatrix itself: what is committed is what it renders of its own recipe."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import yaml

from tests.cli.conftest import Cli
from tests.golden import VARIABLE
from toolmatrix import __version__

IMAGE = Path(__file__).parents[2] / "image"


def test_it_is_rendered_by_itself(real: Cli, here: Path) -> None:
    for name in ("toolmatrix.lock", "recipe.yaml"):
        shutil.copy(IMAGE / name, here)
    words = ("--lock", "toolmatrix.lock", "--output", ".", "--recipe", "recipe.yaml")
    made = real("render", *words, "--format", "dockerfile")
    assert made.code == 0, made.err
    names = {path.name for path in here.iterdir()}
    assert {"x86.Dockerfile", "arm.Dockerfile"} < names
    assert names == {path.name for path in IMAGE.iterdir()}
    if os.environ.get(VARIABLE):
        shutil.copytree(here, IMAGE, dirs_exist_ok=True)
    for name in sorted(names):
        assert (IMAGE / name).read_text() == (here / name).read_text(), name


def test_it_installs_this_release_with_what_it_answers_assistants_by() -> None:
    recipe = yaml.safe_load((IMAGE / "recipe.yaml").read_text())
    [line] = recipe["steps"][0]["run"]
    assert line.endswith(f'"toolmatrix[mcp]=={__version__}"')
