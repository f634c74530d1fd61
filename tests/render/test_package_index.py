"""Downloads that are left to pip: a file of requirements in the place of an address."""

from __future__ import annotations

import pytest

from tests.render.jobs import job, lock
from toolmatrix.recipes.model import Download, Recipe, Step
from toolmatrix.render.dockerfile import DIALECTS
from toolmatrix.render.formats import apptainer, dockerfile

SUM = "0" * 64
PINNED = f"printf '%s\\n' 'pack==1.0 --hash=sha256:{SUM}' > /work/pack.txt"
LOOSE = "printf '%s\\n' pack==1.0 > /work/pack.txt"


def recipe(**known: str) -> Recipe:
    """A recipe that takes a package from the index, with the checksums given by release of gcc."""
    taken = Download(url="pypi:pack==1.0", to="/work/pack.txt", of="gcc", sha256=known)
    return Recipe(
        name="pack", about="a pack", steps=(Step(name="pack", stage="fetch", downloads=(taken,)),)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pip_is_told_the_release_and_its_checksum(dialect: str) -> None:
    made = job(lock("debian"), recipe=recipe(**{"12": SUM}), targets=("x86",), dialect=dialect)
    text = dockerfile.files(made)["x86.Dockerfile"]
    assert PINNED in text
    assert "pypi:" not in text
    assert "pypi:pack==1.0" not in made.images[0].unpinned


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_release_without_a_checksum_is_listed_as_unpinned(dialect: str) -> None:
    made = job(lock("debian"), recipe=recipe(), targets=("x86",), dialect=dialect)
    assert LOOSE in dockerfile.files(made)["x86.Dockerfile"]
    assert "pypi:pack==1.0" in made.images[0].unpinned


def test_apptainer_writes_the_same_file() -> None:
    made = job(lock("debian"), recipe=recipe(**{"12": SUM}), targets=("x86",))
    assert PINNED in apptainer.files(made)["x86.def"]
