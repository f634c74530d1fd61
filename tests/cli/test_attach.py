"""Verdicts that stay beside an image in a real registry, and are taken from there as long as they are about it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.images import images, registries
from tests.images.test_registry import docker, log_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.images.registries import Registry

pytestmark = pytest.mark.process

__all__ = ("docker",)

ACCOUNT = ("me", "pass:word")
WORDS = ("validate", "--json", "--attach", "--no-store", "--expect", "distro==debian12")
ONE, OTHER = (
    images.image({"etc/os-release": f"ID=debian\nVERSION_ID={version}\n".encode()})
    for version in ("12", "13")
)


@pytest.fixture(params=[(), ACCOUNT], ids=["open", "account"])
def registry(
    request: pytest.FixtureRequest, tmp_path: Path, docker: Path
) -> Iterator[tuple[Registry, Path]]:
    """A registry and the folder that it keeps everything in, with one image under two names."""
    registries.need()
    folder = tmp_path / "registry"
    folder.mkdir()
    with registries.running(folder, account=request.param) as found:
        if request.param:
            log_in(docker, found.host, *request.param)
        for tag in ("1", "2"):
            found.push(f"team/app:{tag}", ONE)
        yield found, folder


def test_verdicts_are_kept_and_taken(cli: Cli, registry: tuple[Registry, Path]) -> None:
    found, folder = registry
    one, two = (f"registry://{found.host}/team/app:{tag}" for tag in "12")
    first = cli(*WORDS, one)
    assert (first.code, first.json()["outcome"]) == (0, "yes"), first.err
    # By another name of the same image as well, of which nothing can be read any more.
    (layer,) = json.loads(ONE.blobs[ONE.entry["digest"]])["layers"]
    digest = layer["digest"].partition(":")[2]
    blobs = folder / "storage/docker/registry/v2/blobs/sha256"
    shutil.rmtree(blobs / digest[:2] / digest)
    again = cli(*WORDS, two)
    assert (again.code, again.out) == (0, first.out.replace(one, two))
    # What else is asked is another run, which would have to read.
    assert cli(*WORDS, two, "--strict").code != 0
    # A name that stands for another image has the verdicts of that.
    found.push("team/app:1", OTHER)
    assert cli(*WORDS, one).json()["outcome"] == "no"
    assert cli(*WORDS, one).json()["outcome"] == "no"
    tags = [*folder.rglob("_manifests/tags/*")]
    assert len([tag for tag in tags if tag.name.startswith("sha256-")]) == 2


def test_only_images_in_registries_have_a_place_for_them(cli: Cli) -> None:
    refused = cli(*WORDS, "registry://localhost:1/a:1", "archive:image.tar")
    assert refused.code == 2
    assert refused.json()["error"]["found"] == "`archive:image.tar`"
