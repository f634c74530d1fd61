"""`render --online`: an image with a package that the matrix lacks, harvested from an index on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import matrix
from tests.cli.conftest import Cli
from tests.harvest import shop
from tests.images import hostile
from tests.images.hostile import Server
from toolmatrix.harvest import families
from toolmatrix.harvest.families import Indexes

pytestmark = pytest.mark.process

SAID = {"requires-python": ">=3.8"}
WHEEL = shop.wheel("lib", "1.1", "py3-none-any", ["numpy>=1.20"], said=SAID)
LINE = ("render", "lib", "--distro", "debian12", "--output", "out")
DAY = {"SOURCE_DATE_EPOCH": "1767312000"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that is the index of this machine's user."""
    with hostile.running() as found:
        where = Indexes(urls=(f"{found.url}/simple/",))
        monkeypatch.setattr(families, "indexes", lambda _env: where)
        shop.stock(found, "lib", [WHEEL])
        yield found


@pytest.mark.long
def test_an_image_installs_what_was_harvested_for_it(
    cli: Cli, here: Path, tmp_path: Path, server: Server
) -> None:
    # A cache of its own, but for the built-in matrix.
    index = Path(matrix.index().path)
    shutil.copytree(index, tmp_path / "cache" / "toolmatrix" / index.name)
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **DAY}
    made = cli(*LINE, "--online", **env)
    assert made.code == 0, made.err
    (facts,) = (here / "out").glob("lib-*.yaml")
    assert f"wrote out/{facts.name}: the harvested facts, for `--matrix`\n" in made.out
    text = (here / "out" / "x86.Dockerfile").read_text()
    assert "lib==1.1" in text
    assert "importlib.metadata" in (here / "out" / "x86.check.sh").read_text()
    # What was rendered is rendered again: by its facts without the index, and online by those of today.
    server.asked.clear()
    again = cli("render", "--check", "--output", "out", "--matrix", str(facts), **env)
    assert (again.code, server.asked) == (0, [])
    assert cli("render", "--check", "--output", "out", "--online", **env).code == 0
    assert server.asked
    # Without the facts the lock is one of another matrix, which does not say how the package is installed.
    refused = cli("render", "--check", "--output", "out", **env)
    assert refused.code == 1
    assert "there is no known way to install lib 1.1 in debian12" in refused.err


def test_without_the_option_the_package_is_unknown(cli: Cli, server: Server) -> None:
    assert cli(*LINE).code == 3
    assert server.asked == []
