"""An image built from a rendered Dockerfile passes, and so it does where naive checks raise an alarm.

Each of its mutations fails, and is named alone.

Both from the engine and from what it saves. It takes minutes and needs what tests/rendering/test_builds.py needs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.engine import docker, mutations
from tests.engine.commands import tried
from tests.engine.mutations import EXPECTED, MUTATIONS, RIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engine.docker import Engine

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

# What the engine saves costs it ten seconds of processor time each, and holds the layers that lie in its storage: that
# is read of links that lead out of the root, and of an image that is one layer.
ALSO_READ = {"link", "no shell"}
_JUDGED = "--lock toolmatrix.lock --json"
WAYS = {
    "engine": f"toolmatrix validate docker:{{}} {_JUDGED}",
    "archive": f"docker save {{}} | toolmatrix validate archive:- {_JUDGED}",
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


def told(engine: Engine, folder: Path, line: str, *expected: str) -> list[str]:
    """Verdict, code and name of each check that does not pass."""
    ended = tried(engine, folder, line + "".join(f" --expect '{one}'" for one in expected))
    assert ended.returncode in (0, 1, 4), ended.stderr
    found = json.loads(ended.stdout)["verdicts"]
    odd = [one for one in found if one["verdict"] not in ("pass", "skip")]
    worst = {"FAIL": 1, "unknown": 4}
    codes = [worst[one["verdict"]] for one in odd if one["verdict"] in worst]
    assert ended.returncode == min(codes, default=0)
    # A library that is named is also one of all that files need.
    return sorted({f"{one['verdict']} {one['code']} {one['name']}" for one in odd})


@pytest.mark.parametrize("way", WAYS)
def test_the_image_passes(engine: Engine, folder: Path, way: str) -> None:
    assert told(engine, folder, WAYS[way].format(mutations.GOOD)) == []


@pytest.mark.parametrize("name", [*MUTATIONS, *RIGHT])
def test_what_is_wrong_is_named_and_nothing_else(engine: Engine, folder: Path, name: str) -> None:
    image = mutations.mutate(engine, folder, name)
    mutation = {**MUTATIONS, **RIGHT}[name]
    wanted = {WAYS["engine"].format(image): mutation.told}
    if mutation.edit:
        wanted[f"toolmatrix validate archive:{name}.tar {_JUDGED}"] = mutation.told
    # Both ways read the same layers: that is tried where reading alone tells less, and of some others.
    elif mutation.read or name in ALSO_READ:
        wanted[WAYS["archive"].format(image)] = mutation.read or mutation.told
    assert {line: told(engine, folder, line, *EXPECTED) for line in wanted} == {
        line: sorted(several) for line, several in wanted.items()
    }


def test_another_lock_is_named_before_what_follows_from_it(engine: Engine, folder: Path) -> None:
    line = f"toolmatrix validate docker:{mutations.GOOD} --lock other.lock --json"
    ended = tried(engine, folder, line)
    found = json.loads(ended.stdout)["verdicts"]
    wrong = [one["name"] for one in found if one["verdict"] == "FAIL"]
    assert (ended.returncode, wrong) == (1, ["io.github.toolmatrix.lock.digest"])
