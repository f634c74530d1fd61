"""Images of Docker's engine out of its own storage, for who may read that: the same layers that it would save.

The engine unpacks layers into directories (driver overlay2). Places are those of its package `layer`
(https://github.com/moby/moby): image/overlay2/imagedb/content for configurations, image/overlay2/layerdb for layers by
their chain ids (OCI image-spec, config.md, "Layer ChainID").
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256

from toolmatrix.errors import SubjectError
from toolmatrix.images import unpacked
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.limits import LARGEST_DOCUMENT
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree
from toolmatrix.images.unpacked import UnpackedLayer


def read(
    root: str, name: str, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    """The image of an id in the storage below `root`; None where that does not hold it whole, or not for this user."""
    held = os.path.join(root, "image", "overlay2")
    algorithm, _, digits = name.partition(":")
    try:
        with open(os.path.join(held, "imagedb", "content", algorithm, digits), "rb") as file:
            data = file.read(LARGEST_DOCUMENT)
        if sha256(data).hexdigest() != digits:
            return None
        config = json.loads(data)
        chains = _chains(config["rootfs"]["diff_ids"])
        layers = [_layer(root, os.path.join(held, "layerdb", *one.split(":"))) for one in chains]
        return unpacked.read(config, "", layers, platform, reader)
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, SubjectError):
        # What the engine saves tells whether the image is at fault, and how.
        return None


def _layer(root: str, folder: str) -> UnpackedLayer:
    with open(os.path.join(folder, "cache-id"), encoding="ascii") as file:
        files = os.path.join(root, "overlay2", file.read(), "diff")
    return UnpackedLayer(os.path.join(folder, "tar-split.json.gz"), files)


def _chains(diff_ids: list[str]) -> Iterator[str]:
    chain = ""
    for one in diff_ids:
        chain = f"sha256:{sha256(f'{chain} {one}'.encode()).hexdigest()}" if chain else one
        yield chain
