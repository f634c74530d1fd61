"""Layers that were unpacked into directories: put together again to the bytes that they came as, for who may read them.

What the files do not tell stands beside them in lines of JSON as of https://github.com/vbatts/tar-split: pieces as they
are, and names of files that stand between them. Put together they are the layer, which its diff id proves.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmatrix.images import image as images
from toolmatrix.images.image import Descriptor, ImageMetadata, Listed, Manifest
from toolmatrix.images.layer import Layer
from toolmatrix.images.limits import Budget
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.streams import BLOCK, Hashed, errors
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    from toolmatrix.images.image import Document

_FILE, _PIECE = 1, 2
"""Types of lines: a name, and bytes as they are."""
# Bytes of one line; the longest piece is what stands behind the last file.
_LONGEST = 64 << 20


class UnpackedLayer(NamedTuple):
    """A layer that was unpacked: the path of its lines, and the directory of its files."""

    lines: str
    files: str


def read(
    config: Document,
    digest: str,
    layers: Sequence[UnpackedLayer],
    platform: str,
    reader: LayerReader,
) -> tuple[ImageMetadata, Tree]:
    """The image of a configuration and of layers from the bottom up, with the digest of its manifest if that is known.

    Raises SubjectError for what is damaged or not for this user to read.
    """
    reader = reader.trying()
    files = {one.lines: one.files for one in layers}

    def layer(asked: Descriptor, diff_id: str) -> Layer:
        found = reader.known(diff_id)
        if found is not None:
            return found
        pieces = _pieces(asked.digest, files[asked.digest])
        with closing(_refused(pieces, reader.budget)) as sound:
            return reader.read(Hashed(_Joined(sound)))

    # As `docker save` lists it, with paths for digests.
    made = Manifest(
        config=Descriptor(digest=digest),
        layers=tuple(Descriptor(digest=one.lines) for one in layers),
    )
    found = [Listed(blob=Descriptor(digest=digest), manifest=made)]
    return images.put_together(found, lambda _: config, layer, platform, reader.budget)


def _refused(pieces: Iterator[bytes], budget: Budget) -> Generator[bytes, None, None]:
    damage: tuple[type[Exception], ...] = (*errors(), TypeError, RecursionError)
    try:
        yield from pieces
    except damage as error:
        raise budget.refusal(
            "a layer cannot be read where it was unpacked",
            "its files as they were, and readable",
            str(error) or type(error).__name__,
            "run as a user who may read them, or load the image again",
        ) from None


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
