"""Images of podman: out of its storage the same as it saves them, and one clear error where that fails."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images import images, nobody, stores
from tests.images.stores import Store
from tests.images.test_storage import FIRST, SECOND, stored
from tests.inspection import test_layers
from toolmatrix.errors import SubjectError, ToolMissing
from toolmatrix.images import engines, local
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LayerReader, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import subjects

pytestmark = pytest.mark.process

NAME = "localhost/team/app:1.0"
NOT_SAVED = ("toolmatrix.images.engines._read_saved", None)
NOT_IN_PLACE = ("toolmatrix.images.local.read_storage", lambda *_: None)
"""Arguments of `setattr`."""


def install_podman(folder: Path, named: dict[str, images.Made], save: str = "exit 1") -> list[str]:
    """A program in front of PATH that says of these images what podman does; returned are their ids."""
    entries = []
    for number, (name, made) in enumerate(named.items()):
        description = stored(folder / str(number), made, "overlay")
        (folder / description["Id"]).write_text(json.dumps([description]))
        # As it writes one that has no name.
        keys = {key: description[key] for key in ("Id", "Digest")}
        entries.append({**keys, "Names": [name] if name else None, "RepoDigests": None})
    (folder / "images.json").write_text(json.dumps(entries))
    script = (
        f"case $2 in --all) cat {folder}/images.json;; inspect) cat {folder}/$3;; *) {save};; esac"
    )
    stores.program(folder / "bin", "podman", script)
    return [str(one["Id"]) for one in entries]


@pytest.fixture
def before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the program stands in front of PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("before")
class TestNames:
    """What podman lists, and how it is asked for."""

    def read(self, name: str) -> tuple[ImageMetadata, Tree]:
        reader = images.reader("image.tar")
        return engines.read(engines.find("podman", name, Budget("x")), "", reader)

    def test_an_image_is_what_its_archive_is(self, tmp_path: Path) -> None:
        made = images.image(FIRST, SECOND, Env=["A=b"])
        (id,) = install_podman(tmp_path, {NAME: made})
        saved = images.from_archive(images.saved(made))
        for name in (NAME, "team/app:1.0", "app:1.0", id, id[:12], f"sha256:{id}"):
            found = self.read(name)
            assert found[0] == saved[0].replace(digest=made.entry["digest"])
            assert images.paths(found[1]) == images.paths(saved[1])

    def test_a_name_of_several_images_is_refused(self, tmp_path: Path) -> None:
        made = [images.image({"etc/a": data}) for data in (b"1", b"2", b"3")]
        names = ("h.io/0/app:1", "h.io/1/app:1", "")
        ids = install_podman(tmp_path, dict(zip(names, made, strict=True)))
        for number, one in enumerate(made[:2]):
            assert self.read(f"{number}/app:1")[0].digest == one.entry["digest"]
            assert subjects.identity(f"podman:{ids[number]}") == subjects.identity(
                f"podman:{number}/app:1"
            )
        assert self.read(ids[2])[0].digest == made[2].entry["digest"]
        with pytest.raises(SubjectError) as caught:
            self.read("app:1")
        assert caught.value.expected == "`podman:h.io/0/app:1` or `podman:h.io/1/app:1`"
        with pytest.raises(SubjectError, match="no such image"):
            self.read("sha256:")
        with pytest.raises(SubjectError) as caught:
            self.read("h.io/0/ap:1")
        assert caught.value.expected.split(" or ")[0] == "`podman:h.io/0/app:1`"

    def test_what_is_damaged_where_it_lies_is_saved(self, tmp_path: Path) -> None:
        made = images.image(FIRST)
        (tmp_path / "saved.tar").write_bytes(images.tar(images.saved(made)))
        install_podman(tmp_path, {NAME: made}, save=f"cat {tmp_path}/saved.tar")
        (tmp_path / "0/overlay/cache0/diff/etc/a").write_bytes(b"2" * 1000)
        reader, alone = images.reader("image.tar"), images.reader("image.tar")
        saved = engines.read(engines.find("podman", NAME, Budget("x")), "", reader)
        with (tmp_path / "saved.tar").open("rb") as stream:
            assert saved[0] == local.read_archive(stream, "", alone)[0]
        # What came to nothing counts for nothing.
        for used in ("entries", "in_memory"):
            assert getattr(reader.budget, used) == getattr(alone.budget, used)

    def test_what_fails_in_both_ways_is_one_error(self, tmp_path: Path) -> None:
        install_podman(tmp_path, {NAME: images.image(FIRST)}, save="echo not today >&2; exit 125")
        (tmp_path / "0/overlay/cache0/diff/etc/a").unlink()
        with pytest.raises(ToolMissing) as caught:
            self.read(NAME)
        assert (caught.value.what, caught.value.found) == ("podman fails", "not today")


@pytest.fixture(scope="module", params=["overlay", pytest.param("vfs", marks=pytest.mark.long)])
def store(
    _large: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """A storage of podman with an image that it loaded and one that it built on top."""
    folder = tmp_path_factory.mktemp("podman")
    made = images.image(
        {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "odd-\udcff": b"1"},
        {"usr/bin/b": b"b" * 5_000_000, "etc/.wh.a": b""},
        Env=["A=b"],
        User="me",
    )
    with stores.podman(folder, request.param) as found:
        found.done("load", given=images.tar(images.saved(made, NAME)))
        (folder / "Dockerfile").write_text(f"FROM {NAME}\nCOPY Dockerfile /opt/a\nENV C=d\n")
        found.done("build", "--isolation", "chroot", "--tag", "built", str(folder))
        yield found


@pytest.fixture
def reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The storage, which this process reaches as well."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


@pytest.mark.slow
class TestReal:
    """What podman itself writes and saves."""

    @pytest.mark.parametrize("name", ["built", "team/app:1.0"])
    @pytest.mark.parametrize("in_place", [True, False])
    def test_an_image_is_what_podman_saves(
        self,
        reached: Store,
        name: str,
        in_place: bool,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        path = tmp_path / "image.tar"
        reached.done("save", "--quiet", "--output", str(path), name)
        # Of the driver vfs podman does not tell where the layers are.
        in_place = in_place and "overlay" in reached.done(
            "info", "--format={{.Store.GraphDriverName}}"
        )
        monkeypatch.setattr(*(NOT_SAVED if in_place else NOT_IN_PLACE))
        found = subjects.observe(f"podman:{name}", "linux/amd64")
        read = subjects.observe(f"archive:{path}")
        assert found.components["distro"][0].version == "debian12"
        assert found.digest.startswith("sha256:") == in_place
        assert found.replace(subject="", digest="") == read.replace(subject="")

    @pytest.mark.parametrize("in_place", [True, False])
    def test_an_image_that_is_known_is_not_read_again(
        self, reached: Store, in_place: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reached
        if not in_place:
            monkeypatch.setattr(*NOT_IN_PLACE)
        store = test_layers.stored(test_layers.Held())
        first = subjects.observe("podman:built", store=store)
        monkeypatch.setattr(LayerReader, "read", None)
        if not in_place:
            monkeypatch.setattr(*NOT_SAVED)
        assert subjects.observe("podman:built", store=store) == first

    def test_what_podman_cannot_do_is_told_in_its_words(
        self, reached: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reached
        monkeypatch.setattr(*NOT_IN_PLACE)
        gone = engines.find("podman", "built", Budget("x"))._replace(id="0" * 64, identity="")
        with pytest.raises(ToolMissing) as caught:
            engines.read(gone, "", images.reader("x"))
        assert caught.value.what == "podman fails"
        assert "image not known" in caught.value.found

    def test_reading_that_breaks_off_ends_podman(
        self, reached: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reached
        monkeypatch.setattr(*NOT_IN_PLACE)

        def look(*_: object) -> None:
            raise AssertionError("enough")

        with pytest.raises(AssertionError, match="enough"):
            engines.read(engines.find("podman", "built", Budget("x")), "", images.reader("x", look))

    def test_an_image_of_another_platform_is_not_taken(self, reached: Store) -> None:
        assert reached
        with pytest.raises(SubjectError, match="no image for this platform"):
            subjects.observe("podman:built", "linux/arm64")

    def test_a_user_without_rights_is_told(self, reached: Store) -> None:
        assert reached
        assert nobody.told(lambda: subjects.observe("podman:built")).startswith("podman fails: ")
