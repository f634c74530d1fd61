"""Images of Docker's engine out of its own storage, for who may read that: the same layers that it would save.

The engine unpacks layers into directories (driver overlay2) and keeps of each archive what they do not tell, in lines
of JSON as of https://github.com/vbatts/tar-split: pieces as they are, and names of files that stand between them. Put
together they are the bytes of the layer, which its diff id proves. Places are those of the engine's package `layer`
(https://github.com/moby/moby): image/overlay2/imagedb/content for configurations, image/overlay2/layerdb for layers by
their chain ids (OCI image-spec, config.md, "Layer ChainID").
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from contextlib import closing
from hashlib import sha256

from toolmatrix.errors import SubjectError
from toolmatrix.images import image as images
from toolmatrix.images.image import Descriptor, Listed, Manifest
from toolmatrix.images.limits import LARGEST_DOCUMENT, Budget
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.streams import BLOCK, Hashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layer import Layer
    from toolmatrix.images.tree import Tree

_FILE, _PIECE = 1, 2
"""Types of lines: a name, and bytes as they are."""
# Bytes of one line; the longest piece is what stands behind the last file.
_LONGEST = 64 << 20


def read(
    root: str, name: str, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    """The image of an id in the storage below `root`; None where that does not hold it whole, or not for this user."""
    held = os.path.join(root, "image", "overlay2")
    # What is counted here counts for nothing where it comes to nothing.
    reader = LayerReader(reader.look, Budget(reader.budget.subject), reader.store)
    algorithm, _, digits = name.partition(":")
    try:
        with open(os.path.join(held, "imagedb", "content", algorithm, digits), "rb") as file:
            data = file.read(LARGEST_DOCUMENT)
        if sha256(data).hexdigest() != digits:
            return None
        config = json.loads(data)
        chains = _chains(config["rootfs"]["diff_ids"])
        layers = tuple(Descriptor(digest=one) for one in chains)

        def layer(asked: Descriptor, diff_id: str) -> Layer:
            found = reader.known(diff_id)
            if found is not None:
                return found
            folder = os.path.join(held, "layerdb", *asked.digest.split(":"))
            with open(os.path.join(folder, "cache-id"), encoding="ascii") as file:
                files = os.path.join(root, "overlay2", file.read(), "diff")
            with closing(_pieces(os.path.join(folder, "tar-split.json.gz"), files)) as pieces:
                return reader.read(Hashed(_Joined(pieces)))

        # As `docker save` lists it.
        made = Manifest(config=Descriptor(digest=name), layers=layers)
        found = [Listed(blob=Descriptor(digest=""), manifest=made)]
        return images.put_together(found, lambda _: config, layer, platform, reader.budget)
    except (OSError, EOFError, LookupError, TypeError, ValueError, SubjectError):
        # What the engine saves tells whether the image is at fault, and how.
        return None


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
    with open(place, "rb", buffering=0) as file:
        while size > 0:
            data = file.read(min(size, BLOCK))
            if not data:
                raise EOFError(name)
            size -= len(data)
            yield data


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
