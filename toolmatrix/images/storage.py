"""Images out of the storage of their engine, for who may read that: the same layers that it would save.

Docker (driver overlay2) and podman (driver overlay) unpack layers into directories, which they name when they describe
an image. Places beside those are of Docker's package `layer` (https://github.com/moby/moby): image/overlay2/layerdb has
layers by their chain ids (OCI image-spec, config.md, "Layer ChainID"); and of https://github.com/containers/storage,
`images.go` and `layers.go`.

The bytes around the files are beside them, in lines of JSON as of https://github.com/vbatts/tar-split: pieces as they
are, and names of files that stand between them. Put together they are the layer, which its diff id proves.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolmatrix.errors import SubjectError
from toolmatrix.images import image as images
from toolmatrix.images.image import Descriptor, ImageMetadata, Listed, Manifest
from toolmatrix.images.layer import Layer
from toolmatrix.images.limits import LARGEST_DOCUMENT
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.streams import BLOCK, Hashed, errors
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    # A configuration, the digest of its manifest if that is known, and the paths of lines.
    _Stored = tuple[Any, str, list[str]]

_FILE, _PIECE = 1, 2
"""Types of lines: a name, and bytes as they are."""
# Bytes of one line; the longest piece is the bytes behind the last file.
_LONGEST = 64 << 20


def read(
    description: Mapping[str, Any], platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    """An image as its engine describes it; None where the storage does not hold it whole, or not for this user."""
    try:
        driver, places = description["GraphDriver"]["Name"], description["GraphDriver"]["Data"]
        lower = places.get("LowerDir")
        files = [*reversed(lower.split(":") if lower else ()), places["UpperDir"]]
        config, digest, lines = _DRIVERS[driver](description, files)
        folders = dict(zip(lines, files, strict=True))
        # As `docker save` lists it, with paths for digests.
        layers = tuple(Descriptor(digest=one) for one in lines)
        made = Manifest(config=Descriptor(digest=digest), layers=layers)

        def layer(asked: Descriptor, diff_id: str) -> Layer:
            known = reader.known(diff_id)
            if known is not None:
                return known
            with closing(_pieces(asked.digest, folders[asked.digest])) as pieces:
                return reader.read(Hashed(_Joined(pieces)))

        listed = [Listed(blob=Descriptor(digest=digest), manifest=made)]
        return images.put_together(listed, lambda _: config, layer, platform, reader.budget)
    except _damage():
        # What the engine saves tells whether the image is at fault, and how.
        return None


def _damage() -> tuple[type[Exception], ...]:
    return (*errors(), TypeError, AttributeError, RecursionError, SubjectError)


# Of both drivers the files of a layer lie at DRIVER/NAME/diff below the root of the storage.
def _docker(description: Mapping[str, Any], files: list[str]) -> _Stored:
    root = os.path.join(_above(files[-1], 3), "image", "overlay2")
    config = os.path.join(root, "imagedb", "content", *description["Id"].split(":"))
    lines = [
        os.path.join(root, "layerdb", *chain.split(":"), "tar-split.json.gz")
        for chain in _chains(description["RootFS"]["Layers"])
    ]
    return _document(config, description["Id"]), "", lines


def _podman(description: Mapping[str, Any], files: list[str]) -> _Stored:
    root = os.path.join(_above(files[-1], 3), "overlay-images", description["Id"])
    digest = description["Digest"]
    config = _document(os.path.join(root, "manifest"), digest)["config"]["digest"]
    # Files that are not of letters, digits and dots alone are called by this.
    coded = "=" + base64.b64encode(config.encode()).decode()
    # A layer of an additional store has its lines there as well.
    folders = [_above(one, 1) for one in files]
    lines = [
        os.path.join(_above(one, 2), "overlay-layers", f"{os.path.basename(one)}.tar-split.gz")
        for one in folders
    ]
    return _document(os.path.join(root, coded), config), digest, lines


_DRIVERS = {"overlay2": _docker, "overlay": _podman}


def _above(path: str, count: int) -> str:
    for _ in range(count):
        path = os.path.dirname(path)
    return path


def _document(path: str, digest: str) -> Any:
    with open(path, "rb") as file:
        data = file.read(LARGEST_DOCUMENT)
    if f"sha256:{sha256(data).hexdigest()}" != digest:
        raise ValueError(digest)
    return json.loads(data)


def _chains(diff_ids: list[str]) -> Iterator[str]:
    chain = ""
    for one in diff_ids:
        chain = f"sha256:{sha256(f'{chain} {one}'.encode()).hexdigest()}" if chain else one
        yield chain


def _pieces(path: str, folder: str) -> Generator[bytes, None, None]:
    with gzip.open(path) as file:
        while line := file.readline(_LONGEST):
            entry = json.loads(line)
            if entry["type"] == _PIECE:
                yield base64.b64decode(entry["payload"])
            elif entry["type"] == _FILE and entry.get("size"):
                yield from _contents(folder, _name(entry), entry["size"])


def _name(entry: dict[str, Any]) -> str:
    # Names that are no UTF-8 stand there as bytes.
    raw = entry.get("name_raw")
    return os.fsdecode(base64.b64decode(raw)) if raw else str(entry["name"])


def _contents(folder: str, name: str, size: int) -> Iterator[bytes]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(name)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for number, part in enumerate(parts, 1):
        above = place
        try:
            # No link is followed: one of the image would lead out of its directory.
            kind = os.O_DIRECTORY if number < len(parts) else os.O_NONBLOCK
            place = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=above)
        finally:
            os.close(above)
    try:
        while size > 0:
            data = os.read(place, min(size, BLOCK))
            if not data:
                raise EOFError(name)
            size -= len(data)
            yield data
    finally:
        os.close(place)


class _Joined:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""
        several = [self._rest]
        count = len(self._rest)
        while count < size and (piece := next(self._pieces, b"")):
            several.append(piece)
            count += len(piece)
        data = b"".join(several)
        self._rest = data[size:]
        return data[:size]
