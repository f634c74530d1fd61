"""Images of a real containerd, in place: the same as their archives, and one clear error for what is not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images import images, stores
from tests.images.stores import Store
from tests.inspection import test_layers
from toolmatrix.errors import SubjectError, ToolMissing
from toolmatrix.images import engines
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import subjects

pytestmark = [pytest.mark.process, pytest.mark.slow]

NAME = "registry.example.com/team/app:1.0"
FILES = {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "usr/bin/a": b"#!/bin/sh\n"}
MADE = images.image(
    FILES,
    {"usr/bin/b": b"b" * 5_000_000},
    Env=["A=b"],
    User="me",
    pack=images.gzipped,
    media=f"{images.OCI}.layer.v1.tar+gzip",
)
# Of another platform, and of another program in the same place.
ARM = images.image({"etc/a": b"1"}, platform="linux/arm64")
OTHER = images.image({"etc/a": b"2"})


@pytest.fixture(scope="module")
def store(_large: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A containerd with an image of one platform, an index of two, and one in another namespace alone."""
    with stores.containerd(tmp_path_factory.mktemp("containerd")) as found:
        imported(found, "default", NAME, MADE)
        imported(found, "k8s.io", NAME, MADE)
        imported(found, "k8s.io", "registry.example.com/team/other:1.0", OTHER)
        index = images.index(MADE, ARM)
        blobs = {name: blob for one in (MADE, ARM) for name, blob in one.blobs.items()}
        both = images.Made(
            {**blobs, images.digest(index): index}, images.described(index, images.INDEX), b"", ()
        )
        imported(found, "default", "registry.example.com/team/both:1.0", both)
        yield found


def imported(store: Store, space: str, name: str, made: images.Made) -> None:
    """Give containerd an image under a name."""
    entry = made.entry | {"annotations": {"io.containerd.image.name": name}}
    archive = images.tar(images.layout(made._replace(entry=entry)))
    words = ("--namespace", space, "images", "import", "--no-unpack", "--all-platforms", "-")
    store.done(*words, given=archive)


@pytest.fixture
def reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store, which this process reaches as well."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CONTAINERD_NAMESPACE", raising=False)
    return store


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the image, in an index that tells no platform, as containerd's names do not."""
    bare = {key: value for key, value in MADE.entry.items() if key != "platform"}
    path = tmp_path_factory.mktemp("archive") / "image.tar"
    path.write_bytes(images.tar(images.layout(MADE._replace(entry=bare))))
    return path


@pytest.mark.parametrize(
    "name", [NAME, f"//{NAME}", "team/app:1.0", "app:1.0", MADE.entry["digest"]]
)
def test_an_image_is_what_its_archive_is(reached: Store, archive: Path, name: str) -> None:
    assert reached
    read = subjects.observe(f"archive:{archive}")
    found = subjects.observe(f"containerd:{name}", "linux/amd64")
    assert found.components["distro"][0].version == "debian12"
    assert found.replace(subject="") == read.replace(subject="")
    assert subjects.identity(f"containerd:{name}") == found.digest


def test_an_index_is_what_its_archive_is(reached: Store, tmp_path: Path) -> None:
    assert reached
    archive = tmp_path / "image.tar"
    archive.write_bytes(images.tar(images.layout(MADE, ARM)))
    for platform in ("linux/amd64", "linux/arm64"):
        found = subjects.observe("containerd:both:1.0", platform)
        read = subjects.observe(f"archive:{archive}", platform)
        assert found.platform == platform
        assert found.replace(subject="") == read.replace(subject="")
    with pytest.raises(SubjectError, match="no image for this platform"):
        subjects.observe("containerd:both:1.0", "linux/riscv64")


def test_a_layer_that_is_known_is_not_read_again(
    reached: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reached
    store = test_layers.stored(test_layers.Held())
    first = subjects.observe(f"containerd:{NAME}", store=store)
    monkeypatch.setattr(LayerReader, "read", None)
    assert subjects.observe(f"containerd:{NAME}", store=store) == first


def test_a_name_is_one_of_a_namespace_or_of_any(
    reached: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert subjects.identity("containerd:other:1.0") == OTHER.entry["digest"]
    monkeypatch.setenv("CONTAINERD_NAMESPACE", "default")
    with pytest.raises(SubjectError) as caught:
        subjects.observe("containerd:team/other:1.0")
    assert caught.value.what == "no such image"
    monkeypatch.delenv("CONTAINERD_NAMESPACE")
    imported(reached, "third", NAME, OTHER)
    try:
        with pytest.raises(SubjectError) as caught:
            subjects.observe(f"containerd:{NAME}")
        assert caught.value.what == "the name matches several images"
        assert f"`containerd:{NAME}` with CONTAINERD_NAMESPACE=third" in caught.value.expected
        monkeypatch.setenv("CONTAINERD_NAMESPACE", "third")
        assert subjects.identity(f"containerd:{NAME}") == OTHER.entry["digest"]
    finally:
        reached.done("--namespace", "third", "images", "rm", "--sync", NAME)


def test_a_name_of_nothing_is_told_with_its_neighbours(reached: Store) -> None:
    assert reached
    with pytest.raises(SubjectError) as caught:
        subjects.observe("containerd:registry.example.com/team/ap:1.0")
    assert caught.value.expected.split(" or ")[0] == f"`containerd:{NAME}`"
    with pytest.raises(SubjectError, match="cannot read the image"):
        subjects.observe("containerd:sha256:" + "0" * 64)


def test_what_containerd_discarded_is_told_with_what_brings_it_back(reached: Store) -> None:
    made = images.image({"etc/a": b"3"})
    imported(reached, "gone", "gone:1.0", made)
    layer = images.digest(made.layers[0])
    reached.done("--namespace", "gone", "content", "rm", layer)
    # Removing an image waits for the collector of garbage.
    imported(reached, "gone", "old:1.0", OTHER)
    reached.done("--namespace", "gone", "images", "rm", "--sync", "old:1.0")
    with pytest.raises(SubjectError) as caught:
        subjects.observe("containerd:gone:1.0")
    assert caught.value.expected == f"the blob {layer}"
    assert "ctr content fetch" in caught.value.help


@pytest.mark.parametrize("gone", ["socket", "program"])
def test_a_containerd_that_does_not_answer_is_told(
    reached: Store, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reached
    if gone == "socket":
        monkeypatch.setenv("CONTAINERD_ADDRESS", "/nowhere/socket")
    else:
        monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing) as caught:
        subjects.observe(f"containerd:{NAME}")
    what = {"socket": "containerd does not answer", "program": "the program `ctr` cannot be run"}
    assert caught.value.what == what[gone]
    assert caught.value.found.endswith("No such file or directory")


@pytest.mark.parametrize("there", [True, False])
def test_an_engine_with_containerd_is_read_there_or_asked_to_save(
    reached: Store, archive: Path, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an engine answers that keeps its images with containerd, API 1.48 and later.

    None of those is in the Debian that tests run on; docs.docker.com/reference/api/engine, ImageInspect and SystemInfo.
    """
    address = reached.environment["CONTAINERD_ADDRESS"] if there else "/nowhere/socket"
    image = {"Id": MADE.entry["digest"], "Descriptor": MADE.entry}
    (tmp_path / "image.json").write_text(json.dumps([image]))
    answers = (
        f"image) cat {tmp_path}/image.json;; info) echo {address};;"
        f" save) echo > {tmp_path}/asked; cat {archive};;"
    )
    stores.program(tmp_path, "docker", f"case $1 in {answers} esac")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = engines.read(
        engines.find("docker", "app", Budget("docker:app")), "", images.reader("docker:app")
    )
    assert (tmp_path / "asked").exists() == (not there)
    read = images.from_archive(archive.read_bytes())
    assert found[0].replace(subject="", indexed="") == read[0].replace(subject="", indexed="")
    assert images.paths(found[1]) == images.paths(read[1])
