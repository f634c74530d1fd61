"""An image built from a rendered Dockerfile passes; each of its mutations fails, and is named alone.

Both from the engine and from what it saves. It takes minutes and needs what tests/render/test_builds.py needs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import docker, mutations
from tests.engine.commands import tried
from tests.engine.mutations import MUTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engine.docker import Engine

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

WAYS = {
    "engine": "toolmatrix validate docker:{} --lock toolmatrix.lock --json",
    "archive": "docker save {} | toolmatrix validate archive:- --lock toolmatrix.lock --json",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker.needed("docker", "dockerd", "mmdebstrap") as found:
        yield found


@pytest.fixture(scope="module")
def folder(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the image was built, with its lock."""
    made = tmp_path_factory.mktemp("mutations")
    try:
        mutations.build(engine, made)
        yield made
    finally:
        mutations.remove(engine)


def failures(engine: Engine, folder: Path, image: str, way: str) -> tuple[int, list[Any]]:
    """The exit code, and code and name of each check that does not pass."""
    ended = tried(engine, folder, WAYS[way].format(image))
    assert ended.returncode in (0, 1), ended.stderr
    found = json.loads(ended.stdout)["verdicts"]
    odd = [one for one in found if one["verdict"] not in ("pass", "skip")]
    return ended.returncode, [(one["code"], one["name"]) for one in odd]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("image", [mutations.GOOD, f"{mutations.NAME}:besides"])
def test_the_image_passes_and_so_it_does_with_others_beside(
    engine: Engine, folder: Path, image: str, way: str
) -> None:
    assert failures(engine, folder, image, way) == (0, [])


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_named_and_nothing_else(engine: Engine, folder: Path, name: str) -> None:
    image = mutations.mutate(engine, folder, name)
    wanted = [(MUTATIONS[name].code, one) for one in MUTATIONS[name].names]
    assert {way: failures(engine, folder, image, way) for way in WAYS} == dict.fromkeys(
        WAYS, (1, wanted)
    )


def test_another_lock_is_named_before_what_follows_from_it(engine: Engine, folder: Path) -> None:
    line = f"toolmatrix validate docker:{mutations.GOOD} --lock other.lock --json"
    ended = tried(engine, folder, line)
    found = json.loads(ended.stdout)["verdicts"]
    wrong = [one["name"] for one in found if one["verdict"] == "FAIL"]
    assert (ended.returncode, wrong) == (1, ["io.github.toolmatrix.lock.digest"])
