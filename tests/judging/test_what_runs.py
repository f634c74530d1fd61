"""What a program of an image gets decides, not what its records say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.amount import within
from tests.images import images as made
from tests.images.images import link
from tests.inspection.test_observe import TestLook
from tests.judging.what_runs import OTHER, RIGHT, SITE, WRONG, Image, numpy, python, without
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN, WARN, Verdict
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


def judged(index: Index, image: Image, *words: str) -> list[Verdict]:
    """The verdicts with some words, by default those that decide."""
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
    return [verdict for verdict in found if verdict.word in (words or (PASS, FAIL, UNKNOWN))]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "copy on PYTHONPATH",
            (
                "python3 -> /usr/local -> PYTHONPATH=/vendor -> /vendor/numpy 1.26.4;"
                f" the record in /{SITE} says 2.1.3"
            ),
        ),
        (
            "newer files than the record",
            f"python3 -> /usr/local -> /{SITE}/numpy 2.2.0; its record says 2.1.3",
        ),
        ("pip --target off the path", "python3 -> /usr/local does not import from /opt/target"),
        (
            "files for Python 3.12",
            f"python3 -> /usr/local -> /{SITE}/numpy: it is made for cpython 3.12",
        ),
        (
            "user site of root",
            (
                "python3 -> /usr/local -> user site -> /root/.local/lib/python3.11/site-packages/numpy"
                f" 1.26.4; the record in /{SITE} says 2.1.3"
            ),
        ),
    ],
)
def test_a_finding_names_the_chain(index: Index, name: str, reason: str) -> None:
    assert [verdict.reason for verdict in judged(index, WRONG[name])][:1] == [reason]


def test_another_name_of_python_that_imports_another_version_is_a_warning(index: Index) -> None:
    files = {
        **GOOD.files,
        **without(python("opt/conda"), "bin/python3"),
        "opt/conda/bin/python": link("python3.11"),
        **numpy(OTHER, "opt/conda/lib/python3.11/site-packages"),
    }
    config = {"Env": ["PATH=/opt/conda/bin:/usr/local/bin:/bin"]}
    verdicts = judged(index, GOOD.replace(files=files, config=config), WARN)
    assert [(verdict.code, verdict.name, verdict.found) for verdict in verdicts] == [
        ("TM423", "numpy", "python -> /opt/conda -> 1.26.4")
    ]


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
    assert within(time.process_time() - start, 2)


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
