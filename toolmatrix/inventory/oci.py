"""Images in a directory of the OCI image layout: index.json and blobs by digest."""

from __future__ import annotations

import os
from contextlib import closing

from toolmatrix.errors import Position, SubjectError
from toolmatrix.inventory import image as images
from toolmatrix.inventory.image import Image
from toolmatrix.inventory.layer import read_layer
from toolmatrix.inventory.streams import Hashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO, Any

    from toolmatrix.inventory.image import Fetch, Manifest
    from toolmatrix.inventory.layer import Layer, Look
    from toolmatrix.inventory.limits import Budget
    from toolmatrix.inventory.streams import Readable
    from toolmatrix.inventory.tree import Tree

    Open = Callable[[str], "IO[bytes]"]


def read(path: str, platform: str, look: Look, budget: Budget) -> tuple[Image, Tree]:
    """The image of a layout; raises SubjectError for one that is incomplete or damaged."""

    def blob(digest: str) -> IO[bytes]:
        name = os.path.join(path, "blobs", "sha256", images.digest_hex(digest, budget))
        return opened(name, f"the blob {digest}", budget)

    with closing(opened(os.path.join(path, "index.json"), "index.json", budget)) as stream:
        index = images.read_document(stream, budget)
    return by_digests(index, blob, platform, look, budget)


def by_digests(
    index: object, blob: Open, platform: str, look: Look, budget: Budget
) -> tuple[Image, Tree]:
    """An image whose blobs can be opened by digest, each once and in order; all are verified."""

    def fetch(digest: str) -> Any:
        with closing(blob(digest)) as stream:
            return images.read_document(stream, budget, digest=digest)

    chosen = pick(images.manifests(index, fetch, budget), fetch, platform, budget)
    image = Image(subject=budget.subject, digest=chosen.digest, indexed=chosen.platform)
    layers = _layers(chosen.layers, blob, look, budget)
    return images.assemble(image, fetch(chosen.config), layers, budget)


def pick(found: Sequence[Manifest], fetch: Fetch, platform: str, budget: Budget) -> Manifest:
    """The manifest of a platform; one that the index gives none has that of its configuration."""
    named = [
        (one.platform or images.platform_of(fetch(one.config)), one)
        for one in {one.digest or one.config: one for one in found}.values()
    ]
    return images.choose(named, platform, budget)


def _layers(digests: Sequence[str], blob: Open, look: Look, budget: Budget) -> Iterator[Layer]:
    for digest in digests:
        with closing(blob(digest)) as stream:
            yield verified(stream, digest, look, budget)


def verified(stream: Readable, digest: str, look: Look, budget: Budget) -> Layer:
    """A layer whose blob has this digest; raises SubjectError."""
    packed = Hashed(stream)
    layer = read_layer(packed, budget, look)
    images.check_digest(digest, layer.digest, budget)
    return layer


def opened(path: str, what: str, budget: Budget) -> IO[bytes]:
    """A file to read; raises SubjectError where it is missing or none."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise SubjectError(
            "cannot read the image",
            where=Position(budget.subject),
            expected=what,
            found=error.strerror or str(error),
        ) from None
