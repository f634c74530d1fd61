"""Images out of the storage of Docker's engine: the same as saved, or nothing where it is not as it was written."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from tests.images import images
from tests.images.images import hard_link, link
from toolmatrix.images import storage

if TYPE_CHECKING:
    from pathlib import Path

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


def stored(root: Path, made: images.Made) -> str:
    """Put an image into a storage as the engine does; returned is its id."""
    digits = sha256(made.config).hexdigest()
    chain = ""
    files = {f"image/overlay2/imagedb/content/sha256/{digits}": made.config}
    for number, layer in enumerate(made.layers):
        diff_id = images.digest(layer)
        chain = images.digest(f"{chain} {diff_id}".encode()) if chain else diff_id
        held = f"image/overlay2/layerdb/{chain.replace(':', '/')}"
        files[f"{held}/cache-id"] = f"cache{number}".encode()
        files[f"{held}/tar-split.json.gz"] = gzip.compress(split(layer))
        files |= {
            f"overlay2/cache{number}/diff/{name}": data for name, data in contents(layer).items()
        }
    images.put(root, files)
    for number in range(len(made.layers)):
        (root / f"overlay2/cache{number}/diff").mkdir(parents=True, exist_ok=True)
    return f"sha256:{digits}"


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


@pytest.mark.parametrize("layers", [[FIRST], [FIRST, SECOND], [SECOND, FIRST, {}]])
def test_an_image_is_what_the_engine_would_save(
    layers: list[dict[str, bytes | tarfile.TarInfo]], tmp_path: Path
) -> None:
    made = images.image(*layers, Env=["A=b"])
    found = storage.read(str(tmp_path), stored(tmp_path, made), "", images.reader("image.tar"))
    saved = images.from_archive(images.saved(made))
    assert found is not None
    assert found[0] == saved[0]
    read = [
        {path: (one.held, one.mode, one.size, one.layer) for path, one in tree.files()}
        for _, tree in (found, saved)
    ]
    assert read[0] == read[1]


DAMAGE = {
    "another file": ("overlay2/cache0/diff/etc/a", b"2" * 1000),
    "a file too short": ("overlay2/cache0/diff/etc/a", b"1"),
    "another configuration": ("image/overlay2/imagedb/content/sha256/{id}", b"{}"),
    "no directory": ("image/overlay2/layerdb/{chain}/cache-id", b"none"),
    "no archive": ("image/overlay2/layerdb/{chain}/tar-split.json.gz", b"x"),
    "an empty list": ("image/overlay2/layerdb/{chain}/tar-split.json.gz", gzip.compress(b"")),
    "no JSON": ("image/overlay2/layerdb/{chain}/tar-split.json.gz", gzip.compress(b"{\n")),
    "no names": ("image/overlay2/layerdb/{chain}/tar-split.json.gz", gzip.compress(b"[]\n")),
    "packed badly": (
        "image/overlay2/layerdb/{chain}/tar-split.json.gz",
        gzip.compress(b"{}\n", mtime=0)[:10] + b"\xff" * 20,
    ),
    "lists without end": (
        "image/overlay2/layerdb/{chain}/tar-split.json.gz",
        gzip.compress(b"[" * 100_000),
    ),
    "a name that climbs": (
        "image/overlay2/layerdb/{chain}/tar-split.json.gz",
        gzip.compress(b'{"type": 1, "name": "../../../secret", "size": 3}\n'),
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_storage_that_is_not_as_it_was_written_is_left_to_the_engine(
    what: str, tmp_path: Path
) -> None:
    made = images.image(FIRST)
    name = stored(tmp_path, made)
    path, data = DAMAGE[what]
    chain = images.digest(made.layers[0]).replace(":", "/")
    place = tmp_path / path.format(id=name.partition(":")[2], chain=chain)
    assert place.exists()
    place.write_bytes(data)
    assert storage.read(str(tmp_path), name, "", images.reader("image.tar")) is None


def test_no_link_leads_out_of_a_layer(tmp_path: Path) -> None:
    made = images.image({"etc/a": b"1"})
    name = stored(tmp_path, made)
    # The same bytes elsewhere, so that nothing but the link is wrong.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"1")
    folder = tmp_path / "overlay2/cache0/diff/etc"
    (folder / "a").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert storage.read(str(tmp_path), name, "", images.reader("image.tar")) is None


def test_where_nothing_is_stored_nothing_is_found(tmp_path: Path) -> None:
    reader = images.reader("image.tar")
    assert storage.read(str(tmp_path), "sha256:" + "0" * 64, "", reader) is None
    assert reader.budget.entries == 0
