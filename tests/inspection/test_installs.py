"""A few of the installs of `python -m tests.inspection.installs`: the model says what the interpreter says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import matrix
from tests.inspection.installs import World, installs

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long]

SAMPLE = (
    *("pip --target: ", "pip --user beside a venv: ", "uv, symlinks: ", "zipapp: ", "sourceless: "),
    *("uv -e, setuptools, flat", "uv -e, hatchling, src", "pip -e, hatchling exact", "uv sync"),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(Path(tmp_path_factory.mktemp("world")), matrix.index())
    made.prepare()
    return made


@pytest.mark.parametrize("name", SAMPLE)
def test_the_model_says_what_the_interpreter_says(world: World, name: str) -> None:
    install = next(install for install in installs() if install.name.startswith(name))
    outcome = world.outcome(install)
    assert (outcome.word, outcome.differs) == ("right", ()), str(outcome)
