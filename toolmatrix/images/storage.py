"""Images out of the storage of their engine, for who may read that: the same layers that it would save.

Docker (driver overlay2) and podman (driver overlay) unpack layers into directories, which they name when they describe
an image. Places beside those are of Docker's package `layer` (https://github.com/moby/moby): image/overlay2/layerdb has
layers by their chain ids (OCI image-spec, config.md, "Layer ChainID"); and of https://github.com/containers/storage,
`images.go` and `layers.go`.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolmatrix.errors import SubjectError
from toolmatrix.images import unpacked
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.limits import LARGEST_DOCUMENT
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree
from toolmatrix.images.unpacked import UnpackedLayer

if TYPE_CHECKING:
    # A configuration, the digest of its manifest if that is known, and the paths of lines.
    _Stored = tuple[Any, str, list[str]]


def read(
    description: Mapping[str, Any], platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    """An image as its engine describes it; None where the storage does not hold it whole, or not for this user."""
    try:
        driver, places = description["GraphDriver"]["Name"], description["GraphDriver"]["Data"]
        lower = places.get("LowerDir")
        files = [*reversed(lower.split(":") if lower else ()), places["UpperDir"]]
        config, digest, lines = _DRIVERS[driver](description, files)
        layers = [UnpackedLayer(*one) for one in zip(lines, files, strict=True)]
        return unpacked.read(config, digest, layers, platform, reader)
    except (
        *(OSError, EOFError, LookupError, TypeError, ValueError, AttributeError, RecursionError),
        SubjectError,
    ):
        # What the engine saves tells whether the image is at fault, and how.
        return None


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
