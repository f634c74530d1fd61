"""What a registry says is attached to an image, whatever it says: the document, nothing, or one clear error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.images import hostile, images
from tests.images.hostile import Reply, Server
from toolmatrix.errors import SubjectError
from toolmatrix.images import referrers
from toolmatrix.images.limits import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process

IMAGE = images.image({"a": b""})
MEDIA = "application/vnd.example.v1+json"
DOCUMENT = {"any": "thing"}


def described(media: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media, "digest": images.digest(data), "size": len(data)}


LAYER = json.dumps(DOCUMENT).encode()
MANIFEST = json.dumps({"layers": [described(MEDIA, LAYER)]}).encode()
ENTRY = described(referrers.MANIFEST, MANIFEST) | {
    "artifactType": MEDIA,
    "annotations": {"of": "me", "more": ""},
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that holds an image and a document."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with hostile.running() as found:
        found.serve("app", IMAGE)
        found.manifest("app", MANIFEST, referrers.MANIFEST, ENTRY["digest"])
        found.answers[f"/v2/app/blobs/{images.digest(LAYER)}"] = Reply(body=LAYER)
        yield found


def found(server: Server, listed: object) -> object:
    """What is attached, where the registry lists this."""
    body = listed if isinstance(listed, bytes) else json.dumps(listed).encode()
    kind = {"Content-Type": referrers.INDEX}
    server.answers[f"/v2/app/referrers/{IMAGE.entry['digest']}"] = Reply(headers=kind, body=body)
    subject = f"//{server.host}/app:1"
    with referrers.opened(subject, MEDIA, Budget(subject)) as there:
        return there.found({"of": "me"})


def test_the_document_with_the_annotations_is_found_among_others(server: Server) -> None:
    others = [
        ENTRY | {"artifactType": "other"},
        ENTRY | {"annotations": None},
        ENTRY | {"annotations": {"of": "you"}},
    ]
    assert found(server, {"manifests": [*others, ENTRY]}) == DOCUMENT
    assert found(server, {"manifests": others}) is None


@pytest.mark.parametrize(
    "listed",
    [
        *({}, [], 1, "", None, {"manifests": None}),
        {"manifests": [1, None, {}]},
        {"manifests": [ENTRY | {"annotations": "of me"}]},
    ],
)
def test_a_list_of_nothing_is_nothing(server: Server, listed: object) -> None:
    assert found(server, listed) is None


@pytest.mark.parametrize(
    "listed",
    [
        b"{",
        b"\xff",
        {"manifests": [{"artifactType": MEDIA, "annotations": {"of": "me"}}]},
        {"manifests": [ENTRY | {"size": "many"}]},
        {"manifests": [ENTRY | {"digest": "sha256:" + "0" * 64}]},
        {"manifests": [ENTRY | {"mediaType": None}]},
    ],
)
def test_a_damaged_one_is_one_error(server: Server, listed: object) -> None:
    with pytest.raises(SubjectError):
        found(server, listed)


@pytest.mark.parametrize("manifest", [b"[]", b"{}", b'{"layers": []}', b'{"layers": [{}, {}]}'])
def test_a_damaged_manifest_is_one_error(server: Server, manifest: bytes) -> None:
    entry = ENTRY | described(referrers.MANIFEST, manifest)
    server.manifest("app", manifest, referrers.MANIFEST, entry["digest"])
    with pytest.raises(SubjectError):
        found(server, {"manifests": [entry]})
