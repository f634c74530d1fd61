"""What a program of an image gets decides, not what its records say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.images import images as made
from tests.images.images import link
from tests.inspection.test_observe import TestLook
from tests.judging.what_runs import RIGHT, SITE, WRONG, Image
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN, Verdict
from toolmatrix.images.layers import DIRECTORY
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.observe import observe
from toolmatrix.judging import images
from toolmatrix.judging.expectations import Expectation, parse_expectation

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index

GOOD = RIGHT["pip"]


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def judged(index: Index, image: Image) -> list[Verdict]:
    """The verdicts that pass or fail."""
    config = {"Cmd": ["sh"], **image.config}
    archive = made.saved(made.image(image.files, **config))
    metadata, tree = made.from_archive(archive, look=TestLook(Budget("image.tar")))
    for path, (mode, owner) in image.modes.items():
        entry = tree.entry(path)
        assert entry is not None
        assert entry.kind == DIRECTORY
        entry.mode, entry.owner = mode, (owner, owner)
    expected = [*map(parse_expectation, image.expected), Expectation(kind="soname", name="*")]
    found = images.judge(observe(metadata, tree), expected, index)
    return [verdict for verdict in found if verdict.word in (PASS, FAIL, UNKNOWN)]


HOSTILE: dict[str, Image] = {
    "doubling": GOOD.replace(
        config={"Cmd": ["sh", "-c", ";".join(["export A=$A$A$A", *["A=$A$A; export A=$A$A"] * 90])]}
    ),
    "long line": GOOD.replace(config={"Cmd": ["sh", "-c", "'" * 200_000]}),
    "settings of other kinds": GOOD.replace(
        config={"Cmd": "sh", "Entrypoint": [1, None], "User": 7, "WorkingDir": 5, "Env": [3]}
    ),
    "deep code": GOOD.replace(
        files={**GOOD.files, f"{SITE}/x.pth": b"import a; a" + b".a" * 20_000 + b"(1)\n"}
    ),
    "deep mapping": GOOD.replace(
        files={
            **GOOD.files,
            f"{SITE}/x.pth": b"import __editable___a_finder; __editable___a_finder.install()\n",
            f"{SITE}/__editable___a_finder.py": b"MAPPING = {[]: " + b"(" * 5000 + b"}\n",
        }
    ),
    "long version": GOOD.replace(
        files={**GOOD.files, f"{SITE}/numpy/version.py": b'version = "' + b"1" * 60_000 + b'"\n'}
    ),
    "paths": GOOD.replace(
        config={"Env": ["PATH=/usr/local/bin", "PYTHONPATH=" + ":/a/b" * 50_000]}
    ),
    "a path file of itself": GOOD.replace(
        files={**GOOD.files, f"{SITE}/x.pth": b".\n../site-packages\n" * 3000}
    ),
    "links in circles": GOOD.replace(
        files={**GOOD.files, f"{SITE}/x.pth": link("x.pth"), "srv": link("srv")},
        config={"Env": ["PATH=/srv:/usr/local/bin", "PYTHONPATH=/srv"], "WorkingDir": "/srv"},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_images_are_judged_in_no_time(index: Index, name: str) -> None:
    start = time.process_time()
    assert judged(index, HOSTILE[name])
    assert time.process_time() - start < 2


@pytest.mark.parametrize("name", WRONG)
def test_what_a_program_does_not_get_never_passes(index: Index, name: str) -> None:
    image = WRONG[name]
    verdicts = judged(index, image)
    assert tuple(verdict.code for verdict in verdicts if verdict.word == FAIL) == image.codes
    unknown = [verdict for verdict in verdicts if verdict.word == UNKNOWN]
    assert bool(unknown) == image.unknown
    assert all(verdict.reason for verdict in unknown)


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_program_gets_passes(index: Index, name: str) -> None:
    verdicts = judged(index, RIGHT[name])
    wrong = [
        (verdict.code, verdict.name, verdict.reason) for verdict in verdicts if verdict.word != PASS
    ]
    assert wrong == []
    assert verdicts
