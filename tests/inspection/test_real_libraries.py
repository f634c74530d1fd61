"""The roots of `python -m tests.inspection.real_libraries`: the model takes the files that the loader takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compilation.real import program
from tests.inspection.real_libraries import ROOTS, Workshop, compared

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    program("g++")  # whose package brings gcc
    return Workshop(Path(tmp_path_factory.mktemp("libraries")))


@pytest.mark.parametrize("name", ROOTS)
def test_the_model_takes_what_the_loader_takes(workshop: Workshop, name: str) -> None:
    root = ROOTS[name]
    assert compared(workshop.make(root), root)[0] == "right"
