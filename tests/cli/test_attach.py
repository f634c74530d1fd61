"""Verdicts that stay beside an image in a real registry, and are taken from there as long as they are about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.amount import sampled
from tests.cli.conftest import Cli
from tests.images import hostile, images, registries
from tests.images.hostile import Reply
from tests.images.registries import Registry
from tests.images.test_registry import docker, log_in
from toolmatrix.images import registry as image_registry
from toolmatrix.images.limits import Budget

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
    _large: None, request: pytest.FixtureRequest, tmp_path: Path, docker: Path
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


def deleted(folder: Path, digest: str) -> None:
    """Remove a manifest, as a registry does that is asked to."""
    for one in folder.rglob(f"_manifests/revisions/sha256/{digest}"):
        shutil.rmtree(one)


def emptied(folder: Path, digest: str) -> None:
    """Empty a blob."""
    blob(folder, digest).write_bytes(b"")


def damaged(folder: Path, digest: str) -> None:
    """Change a blob."""
    blob(folder, digest).write_bytes(b'{"of": "others"}')


def removed(folder: Path, digest: str) -> None:
    """Remove a blob."""
    shutil.rmtree(blob(folder, digest).parent)


def blob(folder: Path, digest: str) -> Path:
    """The file of a blob."""
    return folder / "storage/docker/registry/v2/blobs/sha256" / digest[:2] / digest / "data"


@pytest.mark.parametrize("registry", [()], indirect=True)
@pytest.mark.parametrize(
    ("what", "of"),
    [(deleted, "manifest"), *((one, "layer") for one in (emptied, damaged, removed))],
)
def test_attached_verdicts_that_are_gone_or_damaged_are_not_there(
    cli: Cli, registry: tuple[Registry, Path], what: Callable[[Path, str], None], of: str
) -> None:
    found, folder = registry
    one = f"registry://{found.host}/team/app:1"
    first = cli(*WORDS, one)
    (tag,) = folder.rglob("_manifests/tags/sha256-*/current/link")
    (entry,) = json.loads(blob(folder, tag.read_text()[7:]).read_bytes())["manifests"]
    manifest = entry["digest"][7:]
    (layer,) = json.loads(blob(folder, manifest).read_bytes())["layers"]
    kept = blob(folder, layer["digest"][7:]).read_bytes()
    what(folder, manifest if of == "manifest" else layer["digest"][7:])
    assert cli(*WORDS, one) == first
    if what in (deleted, removed):
        assert blob(folder, layer["digest"][7:]).read_bytes() == kept
        assert [*folder.rglob(f"_manifests/revisions/sha256/{manifest}/link")]


@pytest.mark.parametrize("registry", [()], indirect=True)
def test_others_that_are_gone_keep_no_verdict_from_being_attached(
    cli: Cli, registry: tuple[Registry, Path]
) -> None:
    found, folder = registry
    one = f"registry://{found.host}/team/app:1"
    cli(*WORDS, one)
    (link,) = folder.rglob("_manifests/tags/sha256-*/current/link")
    (entry,) = json.loads(blob(folder, link.read_text()[7:]).read_bytes())["manifests"]
    deleted(folder, entry["digest"][7:])
    other = cli(*WORDS, one, "--strict")
    assert (other.code, other.err) == (0, "")
    (listed,) = json.loads(blob(folder, link.read_text()[7:]).read_bytes())["manifests"]
    assert listed["digest"] != entry["digest"]


@pytest.mark.parametrize("registry", [()], indirect=True)
@pytest.mark.parametrize("attached", [1, {}, [], {"schema": "other/1"}, {"verdicts": []}])
def test_what_is_no_document_of_ours_is_not_there(
    cli: Cli, registry: tuple[Registry, Path], attached: object
) -> None:
    found, folder = registry
    one = f"registry://{found.host}/team/app:1"
    first = cli(*WORDS, one)
    (link,) = folder.rglob("_manifests/tags/sha256-*/current/link")
    (entry,) = json.loads(blob(folder, link.read_text()[7:]).read_bytes())["manifests"]
    deleted(folder, entry["digest"][7:])
    if attached == {"verdicts": []}:
        attached = first.json() | {"schema": "toolmatrix.verdicts/9", "verdicts": []}
    place = one.removeprefix("registry:")
    with image_registry.opened_referrers(place, entry["artifactType"], Budget(one)) as there:
        there.put(attached, entry["annotations"])
        assert list(there.documents(entry["annotations"])) == [attached]
    assert cli(*WORDS, one) == first
    with image_registry.opened_referrers(place, entry["artifactType"], Budget(one)) as there:
        assert list(there.documents(entry["annotations"])) == [attached, first.json()]


REFUSALS = {
    401: "the registry refuses access, found ",
    403: "the registry refuses access, found it wants other credentials: 403",
    404: "the registry does not have this, found 404",
    405: "the registry fails, found 405",
}


@pytest.mark.parametrize(("status", "reason"), sampled(REFUSALS.items(), every=2))
def test_a_registry_that_takes_no_verdicts_costs_none(
    cli: Cli, tmp_path: Path, status: int, reason: str
) -> None:
    with hostile.running() as server:
        for name, made in (("app", ONE), ("other", OTHER)):
            server.serve(name, made)
            server.answers[f"/v2/{name}/blobs/uploads/"] = Reply(status)
        one, other = (f"registry://{server.host}/{name}:1" for name in ("app", "other"))
        alone = cli(*WORDS, one, DOCKER_CONFIG=str(tmp_path))
        both = cli(*WORDS, one, other, DOCKER_CONFIG=str(tmp_path))
        quiet = cli(*WORDS, "--quiet", one, DOCKER_CONFIG=str(tmp_path))
    assert (alone.code, alone.json()["outcome"]) == (0, "yes")
    assert alone.err.startswith(
        f"note: the verdicts of {one} are not stored in the registry: {reason}"
    )
    assert alone.err.count("\n") == 1
    assert [one["outcome"] for one in both.json()["subjects"]] == ["yes", "no"]
    assert both.code == 1
    assert both.err.startswith(f"note: the verdicts of {one} and of 1 other are not stored")
    assert both.err.count("\n") == 1
    assert (quiet.code, quiet.err) == (0, "")


def test_only_images_in_registries_have_a_place_for_them(cli: Cli) -> None:
    refused = cli(*WORDS, "registry://localhost:1/a:1", "archive:image.tar")
    assert refused.code == 2
    assert refused.json()["error"]["found"] == "`archive:image.tar`"
