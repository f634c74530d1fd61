"""A few of the images of `python -m tests.judging.real_images`: what is read is what a program imports."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests import matrix
from tests.judging.real_images import Workshop, real_images
from tests.rendering.test_consumers import missing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long]

SAMPLE = (
    *("wrong: copy on PYTHONPATH", "wrong: user site of USER", "wrong: eggs first"),
    *("wrong: files for ARM", "wrong: entry point that activates", "right: venv"),
    *("right: record in the archive that starts, another interpreter has another", "right: pip"),
)
IMAGES = dict(real_images())


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    if os.getuid() != 0 or shutil.which("cc") is None:
        missing("needs root and a C compiler: apt-get install gcc")
    root: Path = tmp_path_factory.mktemp("images")
    return Workshop(root, matrix.index())


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_read_is_what_is_imported(workshop: Workshop, name: str) -> None:
    outcome = workshop.outcome(IMAGES[name])
    assert outcome.word == "right", str(outcome)
