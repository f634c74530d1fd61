"""Images of podman: out of its storage the same as it saves them, and one clear error where that is damaged."""

from __future__ import annotations

import base64
import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.images import images, nobody, stores
from tests.images.test_storage import FIRST, SECOND, contents, split
from tests.inventory import test_layers
from toolmatrix.errors import ConfigError, SubjectError, ToolMissing
from toolmatrix.images import podman
from toolmatrix.images.reader import LayerReader
from toolmatrix.inventory import subjects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.images.stores import Store

real = [pytest.mark.process, pytest.mark.slow]

NAME = "localhost/team/app:1.0"
MADE = images.image({"etc/a": b"1" * 700, "etc/os-release": b"ID=debian\n"})
"""A small image of one layer."""
FILES = {"overlay": "overlay/{}/diff", "vfs": "vfs/dir/{}"}


@pytest.fixture(autouse=True)
def _nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What this machine has of podman's configuration is none of the tests'."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "STORAGE_DRIVER", "CONTAINERS_STORAGE_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(podman, "_SYSTEM", (str(tmp_path / "storage.conf"),))


def stored(root: Path, made: images.Made, driver: str = "overlay", name: str = NAME) -> str:
    """Put an image into a storage as podman does; returned is its id."""
    manifest = made.blobs[made.entry["digest"]]
    config = images.digest(made.config)
    id = config.partition(":")[2]
    coded = "=" + base64.b64encode(config.encode()).decode()
    files = {
        f"{driver}-images/{id}/manifest": manifest,
        f"{driver}-images/{id}/{coded}": made.config,
    }
    layers: list[dict[str, Any]] = []
    for number, layer in enumerate(made.layers):
        entry = {"id": f"{id[:8]}{number}"} | ({"parent": layers[-1]["id"]} if layers else {})
        layers.append(entry)
        files[f"{driver}-layers/{entry['id']}.tar-split.gz"] = gzip.compress(split(layer))
        place = FILES[driver].format(entry["id"])
        (root / place).mkdir(parents=True)
        files |= {f"{place}/{name}": data for name, data in contents(layer).items()}
    image = {
        "id": id,
        "digest": made.entry["digest"],
        "names": [name],
        "layer": layers[-1]["id"],
        "big-data-digests": {"manifest": made.entry["digest"]},
    }
    for what, entries in (("images", [image]), ("layers", layers)):
        path = root / f"{driver}-{what}" / f"{what}.json"
        held = json.loads(path.read_bytes()) if path.exists() else []
        files[f"{driver}-{what}/{what}.json"] = images.as_json(held + entries)
    images.put(root, files)
    return id


def kept(root: Path) -> list[Path]:
    """What such a storage has of one image of one layer, beside the files of this and the configuration."""
    found = ("images.json", "layers.json", "manifest", "*.tar-split.gz")
    return [path for name in found for path in root.rglob(name)]


def configured(tmp_path: Path, **options: object) -> str:
    """Write the system's configuration; returned is its path."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in options.items() if key != "more"]
    more = f"[storage.options]\nadditionalimagestores = {json.dumps(options.get('more', []))}"
    path = tmp_path / "storage.conf"
    path.write_text("\n".join(["[storage]", *lines, more, ""]))
    return str(path)


@pytest.mark.parametrize("driver", ["overlay", "vfs"])
def test_an_image_is_what_its_archive_is(driver: str, tmp_path: Path) -> None:
    made = images.image(FIRST, SECOND, Env=["A=b"])
    id = stored(tmp_path / "graph", made, driver)
    configured(tmp_path, graphroot=str(tmp_path / "graph"), driver=driver)
    saved = images.from_archive(images.saved(made))
    for name in (NAME, "team/app:1.0", "app:1.0", id, id[:12], f"sha256:{id}"):
        found = podman.read(name, "", images.reader("image.tar"))
        assert found[0] == saved[0].replace(digest=made.entry["digest"])
        read = [
            {path: (one.held, one.mode, one.size, one.layer) for path, one in tree.files()}
            for _, tree in (found, saved)
        ]
        assert read[0] == read[1]


def test_images_of_several_places_are_found(tmp_path: Path) -> None:
    made = [images.image({"etc/a": data}) for data in (b"1", b"2")]
    ids = [
        stored(tmp_path / str(number), one, name=f"h.io/{number}/app:1")
        for number, one in enumerate(made)
    ]
    configured(
        tmp_path, graphroot=str(tmp_path / "0"), more=[str(tmp_path / "1")], driver="overlay2"
    )
    for number, one in enumerate(made):
        found, _ = podman.read(f"{number}/app:1", "", images.reader("x"))
        assert found.digest == one.entry["digest"]
        assert subjects.identity(f"podman:{ids[number]}") == subjects.identity(
            f"podman:{number}/app:1"
        )
    with pytest.raises(SubjectError) as caught:
        podman.read("app:1", "", images.reader("x"))
    assert caught.value.expected == "`podman:h.io/0/app:1` or `podman:h.io/1/app:1`"
    (tmp_path / "1" / "overlay-images" / "images.json").unlink()
    with pytest.raises(SubjectError, match="there is no such image"):
        podman.read("sha256:", "", images.reader("x"))
    with pytest.raises(SubjectError) as caught:
        podman.read("h.io/0/ap:1", "", images.reader("x"))
    assert caught.value.expected.split(" or ")[0] == "`podman:h.io/0/app:1`"


DAMAGE: dict[str, tuple[str, bytes]] = {
    "another file": ("overlay/{layer}/diff/etc/a", b"2" * 1000),
    "a file too short": ("overlay/{layer}/diff/etc/a", b"1"),
    "another manifest": ("overlay-images/{id}/manifest", b"{}"),
    "no lines": ("overlay-layers/{layer}.tar-split.gz", b"x"),
    "broken lines": ("overlay-layers/{layer}.tar-split.gz", gzip.compress(b"1" * 9000)[:20]),
    "no names": ("overlay-layers/{layer}.tar-split.gz", gzip.compress(b"[]\n")),
    "deep lines": ("overlay-layers/{layer}.tar-split.gz", gzip.compress(b"[" * 100_000)),
    "no layers": ("overlay-layers/layers.json", b"[]"),
    "layers of another kind": ("overlay-layers/layers.json", b"[{}, 1]"),
    "a layer above itself": (
        "overlay-layers/layers.json",
        b'[{"id":"{layer}","parent":"{layer}"}]',
    ),
    "images of another kind": ("overlay-images/images.json", b'[{"id": "1", "names": 2}]'),
    "an id of zeros": (
        "overlay-images/images.json",
        b'[{"id": "\\u0000", "names": ["localhost/team/app:1.0"], "digest": ""}]',
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_without_podman_is_one_error(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = stored(tmp_path / "graph", images.image(FIRST))
    configured(tmp_path, graphroot=str(tmp_path / "graph"))
    names = {"id": id, "layer": f"{id[:8]}0"}
    path, data = DAMAGE[what]
    place = tmp_path / "graph" / path.format(**names)
    assert place.exists()
    place.write_bytes(data.replace(b"{layer}", names["layer"].encode()))
    monkeypatch.setenv("PATH", "/nowhere")
    reader = images.reader("podman:app")
    with pytest.raises(SubjectError) as caught:
        podman.read(NAME, "", reader)
    assert caught.value.what
    assert reader.budget.entries == 0


@pytest.mark.parametrize("text", ["[storage", "\xff"])
def test_a_damaged_configuration_is_told_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "storage.conf").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        podman.storage()
    assert caught.value.where is not None
    assert caught.value.where.path == str(tmp_path / "storage.conf")


@pytest.mark.parametrize(
    ("user", "own", "system", "roots"),
    [
        (0, None, {}, ["/var/lib/containers/storage"]),
        (0, None, {"graphroot": "/a"}, ["/a"]),
        (0, {"graphroot": "/b", "imagestore": "/c"}, {"graphroot": "/a"}, ["/c", "/b"]),
        (7, None, {"graphroot": "/a"}, ["{home}/.local/share/containers/storage"]),
        (7, None, {"rootless_storage_path": "/r/$UID${HOME}"}, ["/r/7{home}"]),
        (7, {"graphroot": "$HOME/b"}, {"graphroot": "/a"}, ["{home}/b"]),
    ],
)
def test_a_storage_is_where_podman_has_it(
    user: int,
    own: dict[str, str] | None,
    system: dict[str, str],
    roots: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    configured(tmp_path, **system)
    if own is not None:
        (tmp_path / "own").mkdir()
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", configured(tmp_path / "own", **own))
    assert list(podman.storage().roots) == [one.format(home=tmp_path) for one in roots]


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


class TestReal:
    """What podman itself writes and saves."""

    pytestmark = real

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
        if in_place:
            monkeypatch.setenv("PATH", "/nowhere")
        else:
            # As with a driver that is not known.
            monkeypatch.setattr(podman, "_FILES", {})
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
            monkeypatch.setattr(podman, "_FILES", {})
        store = test_layers.stored(test_layers.Held())
        first = subjects.observe("podman:built", store=store)
        monkeypatch.setattr(LayerReader, "read", None)
        monkeypatch.setenv("PATH", "/nowhere")
        assert subjects.observe("podman:built", store=store) == first

    @pytest.mark.large
    def test_what_podman_cannot_save_is_told_in_its_words(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        with stores.podman(tmp_path, "vfs") as empty:
            monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
            assert empty.done("images", "--quiet") == ""
            with pytest.raises(ToolMissing) as caught:
                subjects.observe("podman:nothing")
            assert caught.value.what == "podman cannot save the image"
            assert "nothing: image not known" in caught.value.found
            monkeypatch.setenv("PATH", "/nowhere")
            with pytest.raises(ToolMissing) as caught:
                subjects.observe("podman:nothing")
            assert caught.value.what == "the program `podman` cannot be run"

    def test_reading_that_breaks_off_ends_podman(
        self, reached: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reached
        monkeypatch.setattr(podman, "_FILES", {})

        def look(*_: object) -> None:
            raise AssertionError("enough")

        with pytest.raises(AssertionError, match="enough"):
            podman.read("built", "", images.reader("x", look))

    def test_an_image_of_another_platform_is_not_taken(self, reached: Store) -> None:
        assert reached
        with pytest.raises(SubjectError, match="no image for this platform"):
            subjects.observe("podman:built", "linux/arm64")

    def test_a_user_without_rights_is_told(
        self, reached: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert reached
        folder = Path(reached.environment["CONTAINERS_STORAGE_CONF"]).parent
        for one in (folder, *folder.parents[:2]):
            one.chmod(0o755)
        monkeypatch.setenv("PATH", "/nowhere")
        said = nobody.told(lambda: podman.read("built", "", images.reader("podman:built")))
        assert said.startswith("the program `podman` cannot be run: ")
