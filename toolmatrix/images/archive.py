"""Archives of images: what `docker save` and `podman save` write, old or in the OCI shape, packed or not, or a pipe.

An archive is read from its start. Older ones name the order of their layers at the end: of a plain file the layers are
read when that is known, out of their places; of a pipe, which cannot be read twice, and of a packed file each is taken
to memory without its contents as it passes, and put in its place afterwards.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from toolmatrix.images import headers, streams
from toolmatrix.images import image as images
from toolmatrix.images.headers import Member
from toolmatrix.images.image import Descriptor, ImageMetadata, Listed, Manifest
from toolmatrix.images.layer import Layer, check_digest, damaged, inner_path
from toolmatrix.images.limits import LARGEST_DOCUMENT
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.streams import Forward, Hashed, Section
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable

    _Held = TypeVar("_Held")

_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
# Docker calls a layer ID/layer.tar, Podman DIGEST.tar; in the OCI shape its name says nothing.
_LAYER = re.compile(r"blobs/sha256/[0-9a-f]{64}|.*\.tar(\.gz|\.zst)?")
_DOCUMENT = (b"{", b"[")
_HELP = "`docker save NAME -o FILE` and `podman save` write one; a bare directory is `dir:ROOT`"


def read(stream: Readable, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of an archive; raises SubjectError for one that is incomplete or damaged."""
    budget = reader.budget
    whole = streams.section(stream)
    packed = streams.Counted(whole or stream)
    try:
        packed.peek()
    except (OSError, ValueError) as error:
        # A stdin that is closed holds nothing that could be damaged.
        found = getattr(error, "strerror", None) or str(error)
        raise budget.refusal("cannot read the image", "an archive of an image", found) from None
    try:
        unpacked = streams.Unpacked(packed, budget, archive=True)
        head = unpacked.peek()
        if not head.strip(b"\0"):
            raise budget.refusal(
                "this is no archive", "a tar archive of an image", "nothing", _HELP
            )
        if whole is not None and unpacked.is_plain:
            whole.place -= len(head)
            held = _Archive(reader, whole, streams.Forward(whole.part(whole.place, whole.left)))
        else:
            held = _Archive(reader, None, streams.Forward(unpacked))
        for member in headers.members(held.file):
            budget.enter(member.name)
            held.add(member)
    except streams.errors() as error:
        raise damaged(budget, error) from None
    return held.image(platform)


class _Archive:
    def __init__(self, reader: LayerReader, whole: Section | None, file: Forward) -> None:
        self.reader = reader
        self.budget = reader.budget
        # Where parts of the archive can be read by their places, layers are read when they are asked for.
        self.whole = whole
        self.start = whole.place if whole is not None else 0
        self.file = file
        self.documents: dict[str, bytes] = {}
        self.layers: dict[str, Layer] = {}
        self.places: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.links: dict[str, str] = {}

    def add(self, member: Member) -> None:
        path = inner_path(member.name, self.budget)
        # Docker before version 25 writes a layer that stands in several images once, and links to it from the others.
        if member.is_link:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.link))
            self.links[path] = target
        elif member.is_hard_link:
            self.links[path] = inner_path(member.link, self.budget)
        elif member.contents is not None:
            place = self.file.tell()
            self._add(path, Hashed(member.contents), member.size, place if member.plain else -1)

    def _add(self, path: str, blob: Hashed, size: int, place: int) -> None:
        head = blob.peek()
        # Blobs of the OCI shape are known by their first bytes alone. A name in a tar header may begin with a brace, so
        # the mark of tar, which lies behind it, decides.
        if head[:1] in _DOCUMENT and not headers.is_tar(head) and size <= LARGEST_DOCUMENT:
            if self.budget.can_hold(size):
                self.documents[path] = b"".join(iter(blob.read, b""))
                check_digest(_named(path) or blob.digest, blob.digest, self.budget)
        elif not _LAYER.fullmatch(path):
            return
        elif self.whole is not None and place >= 0:
            self.places[path] = self.start + place
        else:
            self.layers[path] = found = self.reader.passing(_named(path), blob)
            check_digest(_named(path) or found.digest, found.digest, self.budget)
        self.sizes[path] = size

    def image(self, platform: str) -> tuple[ImageMetadata, Tree]:
        # Docker writes both documents from version 25 on; the index alone tells digests and platforms.
        if "index.json" in self.documents:
            index = images.parse(self.documents["index.json"], self.budget)
            found = images.images_of_index(index, self._document, self.budget)
            platform = platform or images.default(found)
        else:
            found = self._saved()
        return images.put_together(found, self._document, self._layer, platform, self.budget)

    def _saved(self) -> list[Listed]:
        # Docker writes this list from 1.10 on.
        if "manifest.json" not in self.documents:
            raise self.budget.refusal(
                "this is no archive of an image", "index.json or manifest.json", "neither", _HELP
            )
        listed = images.parse(self.documents["manifest.json"], self.budget)
        found: list[Listed] = []
        for one in listed if isinstance(listed, list) else [listed]:
            config = one.get("Config") if isinstance(one, dict) else None
            layers = one.get("Layers") if isinstance(one, dict) else None
            names = [config, *layers] if isinstance(layers, list) else [None]
            if not all(isinstance(name, str) for name in names):
                raise self.budget.refusal(
                    "manifest.json is damaged", "`Config` and `Layers`", f"{one!r}"[:80]
                )
            first, *rest = (Descriptor(digest=str(name)) for name in names)
            made = Manifest(config=first, layers=tuple(rest))
            found.append(Listed(blob=Descriptor(digest=""), manifest=made))
        # One image that is listed twice, under another name each, is no choice between several.
        return list(dict.fromkeys(found))

    def _document(self, asked: Descriptor) -> Any:
        return images.parse(self._held(self.documents, asked), self.budget)

    def _layer(self, asked: Descriptor, diff_id: str) -> Layer:
        path = self._path(asked)
        if self.whole is None or path not in self.places:
            return self._held(self.layers, asked)
        size = self._size(path, asked)
        blob = partial(self.whole.part, self.places[path], size)
        digest = _named(path)
        found = self.reader.known(digest or diff_id, size, blob)
        if found is None:
            found = self.reader.read(Hashed(blob()))
        check_digest(digest or found.digest, found.digest, self.budget)
        return found

    def _path(self, asked: Descriptor) -> str:
        name = asked.digest
        path = f"blobs/{name.replace(':', '/', 1)}" if name.startswith("sha256:") else name
        # Docker links to a layer itself and never to another link.
        return self.links.get(path, path)

    def _size(self, path: str, asked: Descriptor) -> int:
        size = self.sizes.get(path, asked.size)
        if asked.size not in (-1, size):
            raise streams.other_size(asked.size, f"{size} bytes", self.budget)
        return size

    def _held(self, held: Mapping[str, _Held], asked: Descriptor) -> _Held:
        path = self._path(asked)
        self._size(path, asked)
        if path not in held:
            raise self.budget.refusal(
                "the archive is incomplete",
                f"`{asked.digest}`, which its index names",
                "not there",
                "save the image again",
            )
        return held[path]


def _named(path: str) -> str:
    """The digest that a path names a blob by, if it does."""
    found = _BLOB.fullmatch(path)
    return f"sha256:{found[1]}" if found else ""
