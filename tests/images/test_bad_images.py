"""What is no sound image: each gives one error, in bounded time and memory, and writes nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images import images
from tests.images.images import hard_link, link
from toolmatrix.errors import SubjectError
from toolmatrix.images import limits, local
from toolmatrix.images.layers import read_layer
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Hashed

GOOD = images.saved(images.image({"a": b"1" * 5000, "b": b"2"}))
LAYER = images.tar({"a": b"1"})


class Pieces:
    """A stream out of a generator, which is never whole in memory."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces
        self.rest = b""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes."""
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return b""
            self.rest = piece
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


def refused(files: Any) -> SubjectError:
    """The refusal of an archive."""
    with pytest.raises(SubjectError) as caught:
        images.from_archive(files)
    return caught.value


def refused_layer(pieces: Iterator[bytes]) -> SubjectError:
    """The refusal of a layer that comes piece by piece."""
    with pytest.raises(SubjectError) as caught:
        read_layer(Hashed(Pieces(pieces)), Budget("layer"), lambda *_: None)
    return caught.value


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 4096, b"not an archive", b"x" * 4096, b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh9"],
)
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    assert refused(data).what in {
        "this is not an archive",
        "the archive is damaged",
        "a blob has an unsupported compression",
    }


@pytest.mark.parametrize(
    ("pack", "end"),
    [(bytes, 10240), (images.gzipped, 0), (lzma.compress, 64), (bz2.compress, 16)],
)
def test_a_truncated_archive_is_refused_wherever_it_ends(pack: Any, end: int) -> None:
    """But for its `end`, which nothing needs: padding, and what xz and bzip2 have behind the data."""
    whole = pack(images.tar(GOOD))
    needed = len(whole) - end
    for place in range(1, needed, max(1, needed // 60)):
        refused(whole[:place])


def test_an_archive_without_an_image_is_refused() -> None:
    assert refused({"a": b"1"}).expected == "index.json or manifest.json"


@pytest.mark.parametrize("missing", sorted(GOOD.keys() - {"repositories"}))
def test_a_part_that_is_missing_is_named(missing: str) -> None:
    said = refused({name: data for name, data in GOOD.items() if name != missing})
    assert missing in said.expected


def test_a_blob_that_the_index_names_and_nobody_holds_is_named(tmp_path: Path) -> None:
    made = images.image({"a": b"1"})
    for name in made.blobs:
        files = images.layout(made)
        del files[images.blob_path(name)]
        assert name in refused(files).expected
        folder = tmp_path / name[-8:]
        with pytest.raises(SubjectError) as caught:
            images.from_layout(images.put(folder, files))
        assert caught.value.expected == f"the blob {name}"


def test_content_of_another_digest_is_refused(tmp_path: Path) -> None:
    made = images.image({"a": b"size"})
    for place, (name, blob) in enumerate(made.blobs.items()):
        files = images.layout(made)
        files[images.blob_path(name)] = blob.replace(b"size", b"sise").replace(b"amd", b"adm")
        assert refused(files).what == "content does not match its digest"
        with pytest.raises(SubjectError, match="does not match its digest"):
            images.from_layout(images.put(tmp_path / str(place), files))


def test_content_of_another_size_is_refused(tmp_path: Path) -> None:
    made = images.image({"a": b"1"})
    for place, wrong in enumerate((-1, 1)):
        entry = made.entry | {"size": made.entry["size"] + wrong}
        files = images.layout(made._replace(entry=entry))
        with pytest.raises(SubjectError) as caught:
            images.from_layout(images.put(tmp_path / str(place), files))
        assert caught.value.what == "content does not have the size of its descriptor"
        said = refused(files)
        assert (said.what, said.expected, said.found) == (
            "content does not have the size of its descriptor",
            f"{entry['size']} bytes",
            f"{made.entry['size']} bytes",
        )


def test_layers_of_another_size_are_refused(tmp_path: Path) -> None:
    made = images.image({"a": b"1"})
    manifest = json.loads(made.blobs[made.entry["digest"]])
    manifest["layers"][0]["size"] += 512
    changed = images.as_json(manifest)
    entry = made.entry | images.described(changed, images.MANIFEST)
    blobs = made.blobs | {entry["digest"]: changed}
    files = images.layout(made._replace(entry=entry, blobs=blobs))
    with pytest.raises(SubjectError) as caught:
        images.from_layout(images.put(tmp_path, files))
    assert caught.value.what == "content does not have the size of its descriptor"
    assert refused(files).what == "content does not have the size of its descriptor"


def test_layers_that_the_configuration_does_not_know_are_refused() -> None:
    other = GOOD | {"0/layer.tar": images.tar({"c": b""})}
    assert refused(other).what == "content does not match its digest"


@pytest.mark.parametrize("name", ["../a", "a/../../b", ".."])
def test_names_that_leave_the_root_are_refused(name: str) -> None:
    assert refused(GOOD | {"0/layer.tar": images.tar({name: b""})}).what == (
        "a file name leaves the root"
    )
    assert refused(GOOD | {name: b""}).what == "a file name leaves the root"


def test_hard_links_that_leave_the_root_are_refused() -> None:
    bad = images.tar({"a": hard_link("../../etc/passwd")})
    assert refused(GOOD | {"0/layer.tar": bad}).what == "a file name leaves the root"


def test_files_below_links_in_circles_are_refused() -> None:
    made = images.image({"a": link("b"), "b": link("a"), "a/c": b""})
    assert refused(images.saved(made)).what == "a file lies below a circular link"


def test_a_layer_of_zeros_is_refused_early() -> None:
    said = refused_layer(b"\0" * (1 << 20) for _ in range(10 << 10))
    assert (said.what, said.found) == ("the archive is damaged", "zeros behind it")


def test_a_gzip_bomb_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SUSPICIOUS_SIZE", 8 << 20)
    info = tarfile.TarInfo("zeros")
    info.size = 64 << 20
    bomb = gzip.compress(info.tobuf() + b"\0" * info.size)
    assert refused_layer(iter([bomb])).what == "a layer unpacks to too many bytes"


def test_millions_of_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_ENTRIES", 5000)
    block = b"".join(tarfile.TarInfo(f"f{number}").tobuf() for number in range(100))
    assert refused_layer(block for _ in range(100_000)).what == "too many files"


def test_a_name_without_end_is_refused() -> None:
    assert refused_layer(iter([images.tar({"a/" * 300: b""})])).what == (
        "a file name is too long or too deep"
    )


def test_a_header_that_would_fill_the_memory_is_refused() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 8 << 30
    said = refused_layer(iter([info.tobuf(tarfile.GNU_FORMAT), b"\0" * 4096]))
    assert said.found == f"a header of {8 << 30} bytes"


@pytest.mark.parametrize(
    ("media", "found"),
    [("application/x-tar", "'application/x-tar'"), (f"{images.OCI}.layer.v1.tar+br", "tar+br'")],
)
def test_unknown_media_types_are_refused(media: str, found: str) -> None:
    said = refused(images.layout(images.image({"a": b""}, media=media)))
    assert said.what == "a media type is unknown"
    assert said.found.endswith(found)


@pytest.mark.parametrize(
    "index",
    [
        *(b"", b"[]", b"{}", b"1", b'{"manifests": 1}', b'{"manifests": [{"digest": "x"}]}'),
        *(b'{"manifests": [{"digest": "sha256:../../etc/passwd"}]}', b"[" * 100_000),
        b'{"mediaType": "text/html", "manifests": []}',
        b'{"manifests": []}',
        b'{"config": 1}',
        b'{"config": {"digest": "sha256:' + b"0" * 64 + b'"}, "layers": [3]}',
        b'{"config": {"digest": "sha256:' + b"0" * 64 + b'", "size": -1}, "layers": []}',
        b'{"config": {"digest": "sha256:' + b"0" * 64 + b'", "size": true}, "layers": []}',
        b'{"manifests": [], "config": {}}',
        b'{"schemaVersion": 1, "fsLayers": []}',
    ],
)
def test_an_index_that_is_none_is_refused(index: bytes, tmp_path: Path) -> None:
    refused({"index.json": index})
    with pytest.raises(SubjectError):
        images.from_layout(images.put(tmp_path, {"index.json": index}))


def test_an_index_in_circles_ends(tmp_path: Path) -> None:
    inner = {"manifests": [{"digest": "sha256:" + "0" * 64}]}
    with pytest.raises(SubjectError):
        images.from_layout(
            images.put(
                tmp_path, {"index.json": images.as_json(inner), "blobs/sha256/" + "0" * 64: b"{}"}
            )
        )


WHOLE = images.tar(images.layout(images.image({"a": b"1" * 700, "b": link("a")})))


@settings(max_examples=examples(300), deadline=None)
@given(
    place=st.integers(0, len(WHOLE) - 1), data=st.binary(min_size=1, max_size=40), cut=st.booleans()
)
def test_damage_anywhere_gives_an_image_or_one_error(place: int, data: bytes, cut: bool) -> None:
    damaged = WHOLE[:place] + data + (b"" if cut else WHOLE[place + len(data) :])
    with suppress(SubjectError):
        local.read_archive(io.BytesIO(damaged), "", images.reader("image.tar"))


@settings(max_examples=examples(200), deadline=None)
@given(place=st.integers(0, len(LAYER) - 1), data=st.binary(min_size=1, max_size=600))
def test_damage_of_a_layer_gives_a_layer_or_one_error(place: int, data: bytes) -> None:
    for pack in (bytes, images.gzipped):
        damaged = bytearray(pack(LAYER))
        damaged[place : place + len(data)] = data
        with suppress(SubjectError):
            read_layer(Hashed(io.BytesIO(bytes(damaged))), Budget("layer"), images.everything)
