"""Documents that are attached to an image in its registry: artifacts whose subject is the manifest of the image.

https://github.com/opencontainers/image-spec/blob/v1.1.0/manifest.md (subject, artifactType, the empty descriptor) and
https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md (Listing Referrers, Referrers Tag Schema): what
a registry does not list by itself, such as one before 1.1, lies under a tag that clients keep.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from toolmatrix.errors import RegistryFailed, SubjectError, ToolMissing
from toolmatrix.images import image as images
from toolmatrix.images import registry as registries
from toolmatrix.images.image import Descriptor
from toolmatrix.images.limits import Budget
from toolmatrix.images.registry import Registry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
UNREADABLE = (SubjectError, ToolMissing)
"""What a registry that does not have, or does not give or take, a document ends with."""
# Documents with the same annotations that are read until one is whole.
_MOST_READ = 8
# What comes of reading a document of another shape.
_ODD = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
_EMPTY, _NOTHING = "application/vnd.oci.empty.v1+json", b"{}"


class Referrers:
    """The documents of one media type that are attached to an image."""

    def __init__(self, registry: Registry, media: str, budget: Budget) -> None:
        self._registry = registry
        self._media = media
        self._budget = budget
        (self._subject,) = registry.index()["manifests"]

    @property
    def digest(self) -> str:
        """The digest of the manifest or index that the name stood for."""
        return str(self._subject["digest"])

    def documents(self, notes: Mapping[str, str]) -> Iterator[Any]:
        """The documents with these annotations; what is damaged, or listed and gone, counts as not there."""
        try:
            listed = self._listed()
        except UNREADABLE:
            return
        mine = (
            one
            for one in listed
            if one.get("artifactType") == self._media
            and isinstance(own := one.get("annotations"), dict)
            and notes.items() <= own.items()
        )
        for entry in islice(mine, _MOST_READ):
            try:
                (layer,) = self._read(entry)["layers"]
                document = self._read(layer)
            except (*UNREADABLE, *_ODD):
                continue
            yield document

    def put(self, document: Any, notes: Mapping[str, str]) -> None:
        """Attach a document with annotations. Raises what `UNREADABLE` names, AccessDenied where it is not allowed."""
        data = _bytes(document)
        config, layer = _descriptor(_EMPTY, _NOTHING), _descriptor(self._media, data)
        # A registry refuses a manifest that names what it does not have.
        for part, blob in ((config, _NOTHING), (layer, data)):
            self._registry.put_blob(part["digest"], blob)
        manifest = _bytes(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": self._media,
                "config": config,
                "layers": [layer],
                "subject": {name: self._subject[name] for name in ("mediaType", "digest", "size")},
                "annotations": dict(notes),
            }
        )
        entry = _descriptor(MANIFEST, manifest)
        headers = self._registry.put_manifest(entry["digest"], manifest, MANIFEST)
        # So a registry tells that it lists referrers itself.
        if not headers.get("OCI-Subject"):
            entry |= {"artifactType": self._media, "annotations": dict(notes)}
            entries = [one for one in self._tagged() if one.get("digest") != entry["digest"]]
            try:
                self._put_tagged([*entries, entry])
            except (SubjectError, RegistryFailed):
                # A registry may refuse a list for what it names and has no more.
                there = [one for one in entries if not self._is_gone(one)]
                if there == entries:
                    raise
                self._put_tagged([*there, entry])

    def _put_tagged(self, entries: list[dict[str, Any]]) -> None:
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        self._registry.put_manifest(self._tag, _bytes(index), INDEX)

    def _is_gone(self, entry: Mapping[str, Any]) -> bool:
        digest = entry.get("digest")
        try:
            images.digest_hex(digest, self._budget)
            return self._registry.document(f"manifests/{digest}") is None
        except UNREADABLE:
            # Nobody knows, and others may find it.
            return False

    def _listed(self) -> list[dict[str, Any]]:
        asked = urlencode({"artifactType": self._media})
        found = self._registry.document(f"referrers/{self.digest}?{asked}")
        return self._tagged() if found is None else self._entries(found)

    def _tagged(self) -> list[dict[str, Any]]:
        return self._entries(self._registry.document(f"manifests/{self._tag}"))

    @property
    def _tag(self) -> str:
        return self.digest.replace(":", "-")

    def _entries(self, index: Any) -> list[dict[str, Any]]:
        found = index.get("manifests") if isinstance(index, dict) else None
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _read(self, entry: Mapping[str, Any]) -> Any:
        images.digest_hex(entry["digest"], self._budget)
        asked = Descriptor(
            media=entry["mediaType"], digest=entry["digest"], size=int(entry["size"])
        )
        with closing(self._registry.blob(asked)) as stream:
            return images.read_document(stream, self._budget, digest=asked.digest)


@contextmanager
def opened(place: str, media: str, budget: Budget) -> Iterator[Referrers]:
    """What is attached to the image `//HOST/NAME:TAG`. Raises what reading the image raises."""
    with registries.opened(place, budget) as registry:
        yield Referrers(registry, media, budget)


def _bytes(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _descriptor(media: str, data: bytes) -> dict[str, Any]:
    digest = f"sha256:{sha256(data).hexdigest()}"
    return {"mediaType": media, "digest": digest, "size": len(data)}
