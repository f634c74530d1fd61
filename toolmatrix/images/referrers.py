"""Documents that are attached to an image in its registry: artifacts whose subject is the manifest of the image.

https://github.com/opencontainers/image-spec/blob/v1.1.0/manifest.md (subject, artifactType, the empty descriptor) and
https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md (Listing Referrers, Referrers Tag Schema): what
a registry does not list by itself, such as one before 1.1, lies under a tag that clients keep.
"""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from hashlib import sha256
from urllib.parse import urlencode

from toolmatrix.images import image as images
from toolmatrix.images import registry as registries
from toolmatrix.images.image import Descriptor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from toolmatrix.images.limits import Budget
    from toolmatrix.images.registry import Registry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
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

    def found(self, notes: Mapping[str, str]) -> Any:
        """The document with these annotations, None where there is none. Raises SubjectError for a damaged one."""
        for entry in self._listed():
            own = entry.get("annotations")
            mine = isinstance(own, dict) and notes.items() <= own.items()
            if mine and entry.get("artifactType") == self._media:
                try:
                    (layer,) = self._read(entry)["layers"]
                    return self._read(layer)
                except (LookupError, TypeError, ValueError, AttributeError):
                    raise self._budget.refusal(
                        "what is attached to the image is damaged", f"one `{self._media}`", ""
                    ) from None
        return None

    def put(self, document: Any, notes: Mapping[str, str]) -> None:
        """Attach a document with annotations. Raises AccessDenied where that is not allowed."""
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
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*entries, entry]}
            self._registry.put_manifest(self._tag, _bytes(index), INDEX)

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
        found = index.get("manifests") if isinstance(index, dict) else []
        return [one for one in found or [] if isinstance(one, dict)]

    def _read(self, entry: Mapping[str, Any]) -> Any:
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
