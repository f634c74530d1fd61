"""Images out of archives and layouts: each form gives the same, whiteouts take away, links stay inside."""

from __future__ import annotations

import bz2
import json
import lzma
import subprocess
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard

from tests.compilation.real import program
from tests.images import images
from tests.images.images import hard_link, link
from toolmatrix.errors import SubjectError
from toolmatrix.images import local
from toolmatrix.images.image import ImageMetadata, side_by_side

Files = Mapping[str, bytes | tarfile.TarInfo]

FIRST: Files = {"etc/a": b"1", "usr/lib/b": b"2", "lib": link("usr/lib"), "opt/deep/c": b"3"}
SECOND: Files = {"etc/.wh.a": b"", "lib/d": b"4", "opt/deep/.wh..wh..opq": b"", "opt/deep/e": b"5"}
MERGED = {"usr/lib/b": b"2", "usr/lib/d": b"4", "opt/deep/e": b"5"}


def zstd(data: bytes) -> bytes:
    """Packed with zstd."""
    return zstandard.ZstdCompressor().compress(data)


def in_two(data: bytes) -> bytes:
    """Packed with xz in two streams with padding behind each, as `xz` itself may write it."""
    half = len(data) // 2
    return b"".join(lzma.compress(part) + bytes(8) for part in (data[:half], data[half:]))


@pytest.mark.parametrize(
    ("pack", "media"), [(None, ""), (images.gzipped, "+gzip"), (zstd, "+zstd")]
)
def test_every_form_gives_the_same_image(
    pack: Callable[[bytes], bytes] | None, media: str, tmp_path: Path
) -> None:
    made = images.image(
        FIRST, SECOND, pack=pack, media=f"{images.OCI}.layer.v1.tar{media}", User="me"
    )
    files = images.layout(made)
    forms = [
        images.from_layout(images.put(tmp_path, files)),
        images.from_archive(files),
        *(
            images.from_archive(pack(images.tar(files)))
            for pack in (images.gzipped, zstd, lzma.compress, bz2.compress, in_two)
        ),
        images.from_archive(images.saved(made)),
    ]
    for image, tree in forms:
        assert {path: entry.content for path, entry in tree.files()} == MERGED
        assert (image.platform, image.config["config"]) == ("linux/amd64", {"User": "me"})
        assert [step for _, step in image.history] == ["COPY 0", "COPY 1"]
    assert {image.digest for image, _ in forms} == {made.entry["digest"], ""}
    layer = forms[0][1].entry("lib/d")
    assert layer is not None
    assert layer.layer == forms[0][0].history[1][0]


def test_a_layer_that_older_archives_link_to_is_found() -> None:
    files = images.saved(images.image({"a": b"1"}))
    files["0/layer.tar"], files["x/layer.tar"] = link("../x/layer.tar"), files["0/layer.tar"]
    assert images.paths(images.from_archive(files)[1]) == ["a"]


def test_a_directory_is_read_in_place(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/a").write_bytes(b"1")
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_bytes(b"")
    _, tree = local.read_root(str(tmp_path), images.reader("root"))
    assert (images.paths(tree), tree.content("lib/a"), tree.entry("out")) == (
        ["usr/lib/a"],
        b"1",
        None,
    )


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match="cannot read the directory"):
        local.read_root(str(tmp_path / "none"), images.reader("root"))


# Platforms


def two(*extra: dict[str, object], more: Sequence[images.Made] = ()) -> dict[str, bytes]:
    """An index of two platforms."""
    made = [images.image({"a": name.encode()}, platform=name) for name in PLATFORMS]
    return images.layout(*made, *more, entries=extra)


PLATFORMS = ("linux/amd64", "linux/arm64")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_picks_from_an_index(platform: str) -> None:
    image, tree = images.from_archive(two(), platform)
    assert (image.indexed, image.platform, tree.text("a")) == (platform,) * 3


@pytest.mark.parametrize("platform", ["linux/arm64", "linux/arm64/v8"])
def test_a_nested_index_is_followed(platform: str, tmp_path: Path) -> None:
    files = two()
    index = files["index.json"]
    files[images.blob_path(images.digest(index))] = index
    outer = {"manifests": [images.described(index, images.INDEX)]}
    files["index.json"] = images.as_json(outer)
    image, _ = images.from_layout(images.put(tmp_path, files), platform)
    assert image.platform == "linux/arm64"


def test_an_index_may_name_images_that_did_not_come_along(tmp_path: Path) -> None:
    files = two()
    for entry in json.loads(files["index.json"])["manifests"]:
        if entry["platform"]["architecture"] == "arm64":
            del files[images.blob_path(entry["digest"])]
    image, _ = images.from_layout(images.put(tmp_path, files), "linux/amd64")
    assert image.platform == images.from_archive(files, "linux/amd64")[0].platform == "linux/amd64"


def test_attestations_are_no_images() -> None:
    statement = images.image({"b": b""}, platform="unknown/unknown")
    notes = {"vnd.docker.reference.type": "attestation-manifest"}
    files = images.layout(
        images.image({"a": b""}), statement, entries=[statement.entry | {"annotations": notes}]
    )
    assert images.from_archive(files)[0].platform == "linux/amd64"


@pytest.mark.parametrize(
    ("platform", "what", "found"),
    [
        (
            "linux/s390x",
            "it contains several images",
            "2: linux/amd64, linux/arm64, linux/s390x",
        ),
        (
            "linux/riscv64",
            "there is no image for this platform",
            "linux/amd64, linux/arm64, linux/s390x",
        ),
    ],
)
def test_a_platform_that_does_not_decide_is_told(platform: str, what: str, found: str) -> None:
    others = [images.image({name: b""}, platform="linux/s390x") for name in "bc"]
    with pytest.raises(SubjectError) as caught:
        images.from_archive(two(more=others), platform)
    assert (caught.value.what, caught.value.found) == (what, found)


# Merging


def test_whiteouts_take_away_links_and_leave_what_they_lead_to() -> None:
    tree = images.tree_of(
        {"usr/a": b"1", "alias": link("usr"), "gone/x": b"2"}, {".wh.alias": b"", ".wh.gone": b""}
    )
    assert (images.paths(tree), tree.entry("alias", follow=False)) == (["usr/a"], None)


def test_whiteouts_reach_the_layers_below_and_not_their_own() -> None:
    tree = images.tree_of({"d/a": b"1"}, {"d/b": b"2", "d/.wh..wh..opq": b"", ".wh.d": b""})
    assert images.paths(tree) == ["d/b"]


def test_what_another_kind_replaces_is_gone() -> None:
    tree = images.tree_of({"a/b": b"1", "c": b"2"}, {"a": b"3", "c/d": b"4"})
    assert images.paths(tree) == ["a", "c/d"]


def test_what_follows_a_link_that_replaces_a_directory_lies_where_it_leads() -> None:
    tree = images.tree_of({"c/x": b"0"}, {"a/b/x": b"1", "a": link("c"), "a/b/y": b"2"})
    assert images.paths(tree) == ["c/b/y", "c/x"]


def test_hard_links_are_the_file_they_name() -> None:
    tree = images.tree_of({"a": b"1"}, {"b": hard_link("a"), "c": hard_link("none")})
    assert (tree.content("b"), images.paths(tree)) == (b"1", ["a", "b"])


def test_links_stay_inside_the_root_as_the_kernel_holds_them() -> None:
    tree = images.tree_of(
        {"etc/a": b"1", "up": link("../../etc/a"), "abs": link("/etc"), "self": link("self")}
    )
    assert (tree.content("up"), tree.real("abs/a"), tree.entry("self")) == (b"1", "etc/a", None)
    assert (tree.real("self"), tree.real("up")) == (None, "etc/a")


def test_devices_are_ignored() -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    tree = images.tree_of(
        {f"dev/{number}": images.special(kind) for number, kind in enumerate(kinds)}
    )
    assert images.paths(tree) == []


def test_names_from_the_root_are_names_below_it() -> None:
    assert images.paths(images.tree_of({"/a": b"", "./b": b""})) == ["a", "b"]


def test_patterns_go_through_linked_directories() -> None:
    tree = images.tree_of({"usr/lib/x1": b"", "usr/lib/x2": b"", "lib": link("usr/lib")})
    assert tree.glob("lib/x*") == ["lib/x1", "lib/x2"]
    assert tree.glob("*/x1") == ["lib/x1"]


def test_the_configuration_is_kept_as_it_is() -> None:
    made = images.image({}, Env=["A=1"])
    image, _ = images.from_archive(images.saved(made))
    assert image.config == json.loads(made.config)


@pytest.mark.parametrize(("machine", "place"), [("x86_64", 0), ("aarch64", 1)])
def test_without_a_platform_it_is_that_of_this_machine(
    machine: str, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine=machine))
    both = [images.image(FIRST, platform=f"linux/{name}") for name in ("amd64", "arm64")]
    files = images.layout(*both)
    wanted = both[place].entry["digest"]
    assert images.from_layout(images.put(tmp_path, files))[0].digest == wanted
    assert images.from_archive(files)[0].digest == wanted


def test_several_images_that_docker_saved_have_no_platform_to_choose_by() -> None:
    files: dict[str, Any] = {}
    manifests = []
    for name in ("amd64", "arm64"):
        held = images.saved(images.image({name: b"1"}, platform=f"linux/{name}"))
        files |= {f"{name}/{path}": data for path, data in held.items()}
        layers = [f"{name}/0/layer.tar"]
        manifests.append({"Config": f"{name}/c.json", "RepoTags": [name], "Layers": layers})
    files["manifest.json"] = images.as_json(manifests)
    with pytest.raises(SubjectError, match="it contains several images"):
        images.from_archive(files)


def of_skopeo(folder: Path, platform: str = "") -> tuple[ImageMetadata, dict[str, object]]:
    """The image of a directory of skopeo, and its files."""
    assert local.directory_identity(str(folder))
    image, tree = local.read_directory(str(folder), platform, images.reader("dir"))
    return image, {path: entry.content for path, entry in tree.files()}


@pytest.mark.parametrize(
    ("pack", "media"), [(None, ""), (images.gzipped, "+gzip"), (zstd, "+zstd")]
)
def test_what_skopeo_copied_is_an_image_and_no_root(
    pack: Callable[[bytes], bytes] | None, media: str, tmp_path: Path
) -> None:
    made = images.image(
        FIRST, SECOND, pack=pack, media=f"{images.OCI}.layer.v1.tar{media}", User="me"
    )
    image, files = of_skopeo(images.put(tmp_path, images.copied(made)))
    assert files == MERGED
    assert (image.platform, image.digest) == ("linux/amd64", made.entry["digest"])


def test_what_skopeo_copied_for_several_platforms_is_chosen_from(tmp_path: Path) -> None:
    both = [images.image({name: b"1"}, platform=f"linux/{name}") for name in ("amd64", "arm64")]
    files = {path: data for made in both for path, data in images.copied(made).items()}
    for made in both:
        digest = made.entry["digest"]
        files[f"{digest.partition(':')[2]}.manifest.json"] = made.blobs[digest]
    files["manifest.json"] = images.index(*both)
    folder = images.put(tmp_path, files)
    for name, made in zip(("amd64", "arm64"), both, strict=True):
        image, found = of_skopeo(folder, f"linux/{name}")
        assert (image.digest, list(found)) == (made.entry["digest"], [name])


def test_what_skopeo_copied_is_verified(tmp_path: Path) -> None:
    made = images.image(FIRST)
    files = images.copied(made)
    for number, (name, data) in enumerate(files.items()):
        if name in ("version", "manifest.json"):
            continue
        for wrong in (data[:-1] + b"x", data + b"x"):
            folder = images.put(tmp_path / f"{number}{len(wrong)}", files | {name: wrong})
            with pytest.raises(SubjectError):
                of_skopeo(folder)
    with pytest.raises(SubjectError) as caught:
        of_skopeo(
            images.put(tmp_path / "2", {**files, "version": b"Directory Transport Version: 2"})
        )
    assert caught.value.what == "the directory has an unknown version"
    assert (caught.value.expected, caught.value.found) == (
        "`Directory Transport Version: 1.1`",
        "`2`",
    )


@pytest.mark.large
@pytest.mark.process
@pytest.mark.parametrize("form", [["--format=oci"], ["--format=v2s2"], ["--dest-compress"]])
def test_what_the_real_skopeo_copies_is_the_same_image(form: list[str], tmp_path: Path) -> None:
    skopeo = program("skopeo")
    files = images.saved(images.image(FIRST, SECOND, User="me"))
    (tmp_path / "image.tar").write_bytes(images.tar(files))
    words = ("copy", *form, f"docker-archive:{tmp_path}/image.tar", f"dir:{tmp_path}/dir")
    subprocess.run([skopeo, "--insecure-policy", *words], check=True, capture_output=True)
    image, found = of_skopeo(tmp_path / "dir")
    assert found == MERGED
    assert (image.platform, image.config["config"]["User"]) == ("linux/amd64", "me")


def test_layers_are_read_side_by_side_in_their_order() -> None:
    together = threading.Barrier(3, timeout=10)

    def call(name: int, other: str) -> Any:
        if name < 3:
            together.wait()  # which one alone would not pass
        return f"{name}{other}"

    assert list(side_by_side(call, range(5), "abcde")) == ["0a", "1b", "2c", "3d", "4e"]


def test_no_layer_is_begun_after_one_that_failed() -> None:
    begun = []

    def call(name: int) -> Any:
        begun.append(name)
        if name == 1:
            raise SubjectError("damaged")
        return name

    with pytest.raises(SubjectError, match="damaged"):
        list(side_by_side(call, range(90)))
    assert len(begun) <= 5
