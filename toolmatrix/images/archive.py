"""Archives of images: what `docker save` and `podman save` write, old or in the OCI shape, packed or not, or a pipe.

An archive is read once from its start, since a pipe cannot be read twice and older archives name the order of their
layers at the end. Each layer is taken to memory without its contents and put in its place when the order is known.
"""

from __future__ import annotations

import posixpath
import re

from toolmatrix.images import image as images
from toolmatrix.images import streams
from toolmatrix.images.image import Descriptor, Listed, Manifest
from toolmatrix.images.layer import contents, damaged, inner_path, is_tar, members, read_layer
from toolmatrix.images.limits import LARGEST_DOCUMENT
from toolmatrix.images.streams import Hashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from tarfile import TarFile, TarInfo
    from typing import Any, TypeVar

    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layer import Layer, Look
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Readable
    from toolmatrix.images.tree import Tree

    _Held = TypeVar("_Held")

_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
# Docker calls a layer ID/layer.tar, Podman DIGEST.tar; in the OCI shape its name says nothing.
_LAYER = re.compile(r"blobs/sha256/[0-9a-f]{64}|.*\.tar(\.gz|\.zst)?")
_DOCUMENT = (b"{", b"[")
_HELP = "`docker save NAME -o FILE` and `podman save` write one; a bare directory is `dir:ROOT`"


def read(stream: Readable, platform: str, look: Look, budget: Budget) -> tuple[ImageMetadata, Tree]:
    """The image of an archive; raises SubjectError for one that is incomplete or damaged."""
    held = _Archive(look, budget)
    packed = streams.Counted(stream)
    try:
        packed.peek()
    except (OSError, ValueError) as error:
        # A stdin that is closed holds nothing that could be damaged.
        found = getattr(error, "strerror", None) or str(error)
        raise budget.refusal("cannot read the image", "an archive of an image", found) from None
    try:
        unpacked = streams.Unpacked(packed, budget, archive=True)
        if not unpacked.peek().strip(b"\0"):
            raise budget.refusal(
                "this is no archive", "a tar archive of an image", "nothing", _HELP
            )
        for tar, member in members(streams.Forward(unpacked)):
            budget.enter(member.name)
            held.add(tar, member)
    except streams.errors() as error:
        raise damaged(budget, error) from None
    return held.image(platform)


class _Archive:
    def __init__(self, look: Look, budget: Budget) -> None:
        self.look = look
        self.budget = budget
        self.documents: dict[str, bytes] = {}
        self.layers: dict[str, Layer] = {}
        self.sizes: dict[str, int] = {}
        self.links: dict[str, str] = {}

    def add(self, tar: TarFile, member: TarInfo) -> None:
        path = inner_path(member.name, self.budget)
        # Docker before version 25 writes a layer that stands in several images once, and links to it from the others.
        if member.issym():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
            self.links[path] = target
        elif member.islnk():
            self.links[path] = inner_path(member.linkname, self.budget)
        elif member.isreg():
            self._add(path, Hashed(contents(tar, member)), member.size)

    def _add(self, path: str, blob: Hashed, size: int) -> None:
        digest = _BLOB.fullmatch(path)
        head = blob.peek()
        # Blobs of the OCI shape are known by their first bytes alone. A name in a tar header may begin with a brace, so
        # the mark of tar, which lies behind it, decides.
        if head[:1] in _DOCUMENT and not is_tar(head) and size <= LARGEST_DOCUMENT:
            if self.budget.can_hold(size):
                self.documents[path] = b"".join(iter(blob.read, b""))
        elif _LAYER.fullmatch(path):
            self.layers[path] = read_layer(blob, self.budget, self.look)
        else:
            return
        self.sizes[path] = size
        if digest:
            images.check_digest(f"sha256:{digest[1]}", blob.digest, self.budget)

    def image(self, platform: str) -> tuple[ImageMetadata, Tree]:
        # Docker writes both documents from version 25 on; the index alone tells digests and platforms.
        if "index.json" in self.documents:
            index = images.parse(self.documents["index.json"], self.budget)
            found = images.listed(index, self._document, self.budget)
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

    def _layer(self, asked: Descriptor) -> Layer:
        return self._held(self.layers, asked)

    def _held(self, held: Mapping[str, _Held], asked: Descriptor) -> _Held:
        name = asked.digest
        path = f"blobs/{name.replace(':', '/', 1)}" if name.startswith("sha256:") else name
        # Docker links to a layer itself and never to another link.
        path = self.links.get(path, path)
        size = self.sizes.get(path, asked.size)
        if asked.size not in (-1, size):
            raise streams.other_size(asked.size, f"{size} bytes", self.budget)
        if path not in held:
            raise self.budget.refusal(
                "the archive is incomplete",
                f"`{name}`, which its index names",
                "not there",
                "save the image again",
            )
        return held[path]
