"""Images out of the storage of their engine: the same as saved, or nothing where it is not as it was written."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.images import images
from tests.images.images import hard_link, link
from toolmatrix.images import local

LONG = "opt/" + "deep/" * 30 + "file"
FIRST: dict[str, bytes | tarfile.TarInfo] = {
    "etc": images.special(tarfile.DIRTYPE),
    "etc/a": b"1" * 1000,
    "etc/b": link("/etc/passwd"),
    "etc/c": hard_link("etc/a"),
    "empty": b"",
    LONG: b"3",
    "odd-\udcff": b"4",
}
SECOND: dict[str, bytes | tarfile.TarInfo] = {"etc/.wh.a": b"", "lib/d": b"5" * 3_000_000}


def stored(root: Path, made: images.Made, driver: str = "overlay2") -> dict[str, Any]:
    """Put an image into a storage as the engine of a driver does; returned is what it says of the image."""
    digits = sha256(made.config).hexdigest()
    diff_ids = [images.digest(layer) for layer in made.layers]
    description: dict[str, Any] = {"Id": digits, "RootFS": {"Layers": diff_ids}}
    places = []
    if driver == "overlay2":
        description["Id"] = f"sha256:{digits}"
        files = {f"image/overlay2/imagedb/content/sha256/{digits}": made.config}
    else:
        description["Digest"] = made.entry["digest"]
        coded = base64.b64encode(f"sha256:{digits}".encode()).decode()
        files = {
            f"overlay-images/{digits}/manifest": made.blobs[made.entry["digest"]],
            f"overlay-images/{digits}/={coded}": made.config,
        }
    chain = ""
    for number, layer in enumerate(made.layers):
        chain = images.digest(f"{chain} {diff_ids[number]}".encode()) if chain else diff_ids[number]
        held = f"image/overlay2/layerdb/{chain.replace(':', '/')}/tar-split.json.gz"
        lines = held if driver == "overlay2" else f"overlay-layers/cache{number}.tar-split.gz"
        place = f"{driver}/cache{number}/diff"
        files[lines] = gzip.compress(split(layer))
        files |= {f"{place}/{name}": data for name, data in contents(layer).items()}
        (root / place).mkdir(parents=True, exist_ok=True)
        places.append(str(root / place))
    images.put(root, files)
    *lower, upper = places
    data = {"UpperDir": upper} | ({"LowerDir": ":".join(reversed(lower))} if lower else {})
    return description | {"GraphDriver": {"Name": driver, "Data": data}}


def contents(layer: bytes) -> dict[str, bytes]:
    """The files of a layer."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        read = ((one.name, tar.extractfile(one)) for one in tar if one.isreg())
        return {name: file.read() for name, file in read if file is not None}


def split(layer: bytes) -> bytes:
    """The pieces of a layer between the contents of its files, and the names of these."""
    lines = []
    end = 0

    def piece(until: int) -> None:
        lines.append({"type": 2, "payload": base64.b64encode(layer[end:until]).decode()})

    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        for one in tar:
            if one.isreg():
                piece(one.offset_data)
                raw = one.name.encode("utf-8", "surrogateescape")
                name = {"name_raw": base64.b64encode(raw).decode()}
                try:
                    name = {"name": raw.decode()}
                except UnicodeDecodeError:
                    name["name"] = "?"
                lines.append({"type": 1, "size": one.size, **name, "payload": "crc"})
                end = one.offset_data + one.size
    piece(len(layer))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.mark.parametrize("driver", ["overlay2", "overlay"])
@pytest.mark.parametrize("layers", [[FIRST], [FIRST, SECOND], [SECOND, FIRST, {}]])
def test_an_image_is_what_the_engine_would_save(
    layers: list[dict[str, bytes | tarfile.TarInfo]], driver: str, tmp_path: Path
) -> None:
    made = images.image(*layers, Env=["A=b"])
    description = stored(tmp_path, made, driver)
    found = local.read_storage(description, "", images.reader("image.tar"))
    saved = images.from_archive(images.saved(made))
    assert found is not None
    assert found[0] == saved[0].replace(digest=description.get("Digest", ""))
    read = [
        {path: (one.content, one.mode, one.size, one.layer) for path, one in tree.files()}
        for _, tree in (found, saved)
    ]
    assert read[0] == read[1]


LINES = {
    "no archive": b"x",
    "broken off": gzip.compress(b"1" * 9000)[:20],
    "an empty list": gzip.compress(b""),
    "no JSON": gzip.compress(b"{\n"),
    "no names": gzip.compress(b"[]\n"),
    "packed badly": gzip.compress(b"{}\n", mtime=0)[:10] + b"\xff" * 20,
    "lists without end": gzip.compress(b"[" * 100_000),
    "a name that climbs": gzip.compress(b'{"type": 1, "name": "../../../secret", "size": 3}\n'),
}
OTHERS = {
    "another file": ("*/cache0/diff/etc/a", b"2" * 1000),
    "a file too short": ("*/cache0/diff/etc/a", b"1"),
    "another configuration": ("image/overlay2/imagedb/content/sha256/*", b"{}"),
    "another configuration of podman": ("overlay-images/*/=*", b"{}"),
    "another manifest": ("overlay-images/*/manifest", b"{}"),
}
DAMAGE = OTHERS | {what: ("**/*split*.gz", data) for what, data in LINES.items()}


@pytest.mark.parametrize("driver", ["overlay2", "overlay"])
@pytest.mark.parametrize("what", DAMAGE)
def test_a_storage_that_is_not_as_it_was_written_is_left_to_the_engine(
    what: str, driver: str, tmp_path: Path
) -> None:
    description = stored(tmp_path, images.image(FIRST), driver)
    path, data = DAMAGE[what]
    places = list(tmp_path.glob(path))
    assert len(places) == (path.startswith("*") or (driver == "overlay2") == ("overlay2" in path))
    for place in places:
        place.write_bytes(data)
    found = local.read_storage(description, "", images.reader("image.tar"))
    assert (found is None) == bool(places)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Id", "sha256:\0"),
        ("Id", 1),
        ("RootFS", {"Layers": []}),
        ("GraphDriver", None),
        ("GraphDriver", {"Name": "vfs", "Data": None}),
        ("GraphDriver", {"Name": "overlay2", "Data": None}),
        ("GraphDriver", {"Name": "overlay2", "Data": {"UpperDir": "/nowhere/a/b/c/diff"}}),
        ("GraphDriver", {"Name": "overlay2", "Data": {"LowerDir": 1, "UpperDir": 2}}),
    ],
)
def test_what_an_engine_says_otherwise_is_left_to_it(
    key: str, value: object, tmp_path: Path
) -> None:
    description = stored(tmp_path, images.image(FIRST)) | {key: value}
    assert local.read_storage(description, "", images.reader("image.tar")) is None


def test_layers_of_several_storages_are_read_where_they_are(tmp_path: Path) -> None:
    first, second = images.image(FIRST), images.image(FIRST, SECOND)
    stored(tmp_path / "additional", first, "overlay")
    description = stored(tmp_path / "own", second, "overlay")
    lower = tmp_path / "additional" / "overlay" / "cache0" / "diff"
    description["GraphDriver"]["Data"]["LowerDir"] = str(lower)
    (tmp_path / "own" / "overlay-layers" / "cache0.tar-split.gz").unlink()
    found = local.read_storage(description, "", images.reader("image.tar"))
    assert found is not None
    assert images.paths(found[1]) == images.paths(images.from_archive(images.saved(second))[1])


@pytest.mark.parametrize("driver", ["overlay2", "overlay"])
def test_no_link_leads_out_of_a_layer(driver: str, tmp_path: Path) -> None:
    description = stored(tmp_path, images.image({"etc/a": b"1"}), driver)
    # The same bytes elsewhere, so that nothing but the link is wrong.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"1")
    folder = tmp_path / driver / "cache0" / "diff" / "etc"
    (folder / "a").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert local.read_storage(description, "", images.reader("image.tar")) is None
