"""Images in a directory of the OCI image layout: index.json and blobs by digest."""

from __future__ import annotations

import os
from contextlib import closing

from toolmatrix.errors import Position, SubjectError
from toolmatrix.images import identities
from toolmatrix.images import image as images
from toolmatrix.images.image import Image
from toolmatrix.images.layer import read_layer
from toolmatrix.images.platforms import this_platform
from toolmatrix.images.streams import Hashed, Sized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import IO, Any

    from toolmatrix.images.image import Descriptor, Fetch, Listed, Manifest
    from toolmatrix.images.layer import Layer, Look
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Closable, Readable
    from toolmatrix.images.tree import Tree

    Open = Callable[[Descriptor], Closable]


def read(path: str, platform: str, look: Look, budget: Budget) -> tuple[Image, Tree]:
    """The image of a layout; raises SubjectError for one that is incomplete or damaged."""

    def blob(asked: Descriptor) -> IO[bytes]:
        name = os.path.join(path, "blobs", "sha256", images.digest_hex(asked.digest, budget))
        return opened(name, f"the blob {asked.digest}", budget)

    with closing(opened(os.path.join(path, "index.json"), "index.json", budget)) as stream:
        index = images.read_document(stream, budget)
    return by_digests(index, blob, platform, look, budget)


def identity(path: str) -> str:
    """What a layout holds at this moment."""
    blobs = os.path.join(path, "blobs", "sha256")
    return identities.of_blobs(os.path.join(path, "index.json"), blobs)


def by_digests(
    index: object, blob: Open, platform: str, look: Look, budget: Budget
) -> tuple[Image, Tree]:
    """An image whose blobs can be opened by digest, each once and in order; all are verified."""

    def fetch(asked: Descriptor) -> Any:
        with closing(blob(asked)) as stream:
            sized = Sized(stream, asked.size, budget)
            return images.read_document(sized, budget, digest=asked.digest)

    found = images.listed(index, fetch, budget)
    chosen, manifest = pick(found, fetch, platform or default(found), budget)
    image = Image(subject=budget.subject, digest=chosen.blob.digest, indexed=chosen.platform)
    layers = _layers(manifest.layers, blob, look, budget)
    return images.assemble(image, fetch(manifest.config), layers, budget)


def default(found: Sequence[Listed]) -> str:
    """The platform of this machine where an index lists several images, and no one asks for another platform."""
    return this_platform() if len(found) > 1 else ""


def pick(
    found: Sequence[Listed], fetch: Fetch, platform: str, budget: Budget
) -> tuple[Listed, Manifest]:
    """The image of a platform; one that the index gives none has that of its configuration."""
    named = [
        (
            one.platform
            or (images.platform_of(fetch(one.manifest.config)) if one.manifest else ""),
            one,
        )
        for one in found
    ]
    chosen = images.choose(named, platform, budget)
    manifest = chosen.manifest or images.manifest(fetch(chosen.blob), budget)
    if manifest is None:
        raise budget.refusal("there is no image in it", "a manifest of an image", "an artifact")
    return chosen, manifest


def _layers(blobs: Sequence[Descriptor], blob: Open, look: Look, budget: Budget) -> Iterator[Layer]:
    for asked in blobs:
        with closing(blob(asked)) as stream:
            yield verified(Sized(stream, asked.size, budget), asked.digest, look, budget)


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
