"""What a registry says is attached to an image, whatever it says: the document, nothing, or one clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.images import hostile, images
from tests.images.hostile import Reply, Server
from toolmatrix.errors import RegistryFailed, SubjectError
from toolmatrix.images import registry as registries
from toolmatrix.images.limits import Budget

pytestmark = pytest.mark.process

IMAGE = images.image({"a": b""})
MEDIA = "application/vnd.example.v1+json"
DOCUMENT = {"any": "thing"}


def described(media: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media, "digest": images.digest(data), "size": len(data)}


LAYER = json.dumps(DOCUMENT).encode()
MANIFEST = json.dumps({"layers": [described(MEDIA, LAYER)]}).encode()
ENTRY = described(registries.MANIFEST, MANIFEST) | {
    "artifactType": MEDIA,
    "annotations": {"of": "me", "more": ""},
}
GONE, UNKNOWN = ("sha256:" + digit * 64 for digit in "01")
ODD: tuple[object, ...] = (GONE, "sha256:../x", 1, [])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that holds an image and a document."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with hostile.running() as found:
        found.serve("app", IMAGE)
        found.manifest("app", MANIFEST, registries.MANIFEST, ENTRY["digest"])
        found.answers[f"/v2/app/blobs/{images.digest(LAYER)}"] = Reply(body=LAYER)
        yield found


def found(server: Server, listed: object) -> list[object]:
    """What is attached, where the registry lists this."""
    body = listed if isinstance(listed, bytes) else json.dumps(listed).encode()
    kind = {"Content-Type": registries.INDEX}
    server.answers[f"/v2/app/referrers/{IMAGE.entry['digest']}"] = Reply(headers=kind, body=body)
    subject = f"//{server.host}/app:1"
    with registries.opened_referrers(subject, MEDIA, Budget(subject)) as there:
        return list(there.documents({"of": "me"}))


def test_the_document_with_the_annotations_is_found_among_others(server: Server) -> None:
    others = [
        ENTRY | {"artifactType": "other"},
        ENTRY | {"annotations": None},
        ENTRY | {"annotations": {"of": "you"}},
    ]
    assert found(server, {"manifests": [*others, ENTRY]}) == [DOCUMENT]
    assert found(server, {"manifests": others}) == []


@pytest.mark.parametrize(
    "listed",
    [
        *({}, [], 1, "", None, {"manifests": None}, {"manifests": 5}, {"manifests": {"a": 1}}),
        {"manifests": [1, None, {}]},
        {"manifests": [ENTRY | {"annotations": "of me"}]},
    ],
)
def test_a_list_of_nothing_is_nothing(server: Server, listed: object) -> None:
    assert found(server, listed) == []


@pytest.mark.parametrize(
    "listed",
    [
        b"{",
        b"\xff",
        {"manifests": [{"artifactType": MEDIA, "annotations": {"of": "me"}}]},
        {"manifests": [ENTRY | {"size": "many"}]},
        {"manifests": [ENTRY | {"size": float("inf")}]},
        *({"manifests": [ENTRY | {"digest": one}]} for one in ODD),
        {"manifests": [ENTRY | {"mediaType": None}]},
    ],
)
def test_a_damaged_one_is_not_there(server: Server, listed: object) -> None:
    assert found(server, listed) == []


@pytest.mark.parametrize("manifest", [b"[]", b"{}", b'{"layers": []}', b'{"layers": [{}, {}]}'])
def test_one_with_a_damaged_manifest_is_not_there(server: Server, manifest: bytes) -> None:
    entry = ENTRY | described(registries.MANIFEST, manifest)
    server.manifest("app", manifest, registries.MANIFEST, entry["digest"])
    # Another one with these annotations may be whole.
    assert found(server, {"manifests": [entry, ENTRY | {"digest": GONE}, ENTRY]}) == [DOCUMENT]


@pytest.mark.parametrize("path", [f"manifests/{ENTRY['digest']}", f"blobs/{images.digest(LAYER)}"])
@pytest.mark.parametrize(
    "reply", [Reply(404), Reply(403), Reply(body=b""), Reply(body=b"{}"), Reply(body=b"\xff")]
)
def test_what_is_listed_and_gone_or_damaged_is_not_there(
    server: Server, path: str, reply: Reply
) -> None:
    server.answers[f"/v2/app/{path}"] = reply
    assert found(server, {"manifests": [ENTRY]}) == []


@pytest.mark.parametrize("status", [401, 403, 405])
def test_a_list_that_the_registry_does_not_give_is_nothing(server: Server, status: int) -> None:
    server.answers[f"/v2/app/referrers/{IMAGE.entry['digest']}"] = Reply(status)
    subject = f"//{server.host}/app:1"
    with registries.opened_referrers(subject, MEDIA, Budget(subject)) as there:
        assert list(there.documents({})) == []


def test_no_more_than_a_few_with_the_same_annotations_are_read(server: Server) -> None:
    assert found(server, {"manifests": [ENTRY | {"digest": GONE}] * 1000}) == []
    assert len([one for one in server.asked if one.path.endswith(GONE)]) == 8


class Before11:
    """A registry from before 1.1, which has manifests and refuses a list of those that it does not have."""

    def __init__(self, listed: object, refusal: Exception) -> None:
        self.listed = listed
        self.refusal = refusal
        self.has = {ENTRY["digest"]}

    def index(self) -> dict[str, Any]:
        """The image."""
        return {"manifests": [IMAGE.entry]}

    def document(self, path: str) -> Any:
        """The list, or a manifest."""
        name = path.rpartition("/")[2]
        if name.startswith("sha256-"):
            return {"manifests": self.listed}
        if name == UNKNOWN:
            raise RegistryFailed("the registry fails")
        return {} if name in self.has else None

    def put_blob(self, digest: str, data: bytes) -> None:
        """Take anything."""

    def put_manifest(self, version: str, data: bytes, _media: str) -> dict[str, str]:
        """Take a manifest, and a list of those that are there."""
        if version.startswith("sha256-"):
            entries = json.loads(data)["manifests"]
            if not {one["digest"] for one in entries} <= self.has:
                raise self.refusal
            self.listed = entries
        self.has.add(version)
        return {}


REFUSALS = [RegistryFailed("400"), SubjectError("404")]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_is_gone_is_taken_out_of_a_list_that_is_refused(refusal: Exception) -> None:
    gone = ENTRY | {"digest": GONE}
    registry = Before11([gone, ENTRY], refusal)
    there = registries.Referrers(registry, MEDIA, Budget(""))  # type: ignore[arg-type]
    there.put(DOCUMENT, {"of": "me"})
    assert isinstance(registry.listed, list)
    assert [one["digest"] in (GONE, ENTRY["digest"]) for one in registry.listed] == [True, False]
    assert registry.listed[0] == ENTRY


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("digest", [UNKNOWN, "odd"])
def test_what_may_be_there_stays_in_the_list(refusal: Exception, digest: str) -> None:
    registry = Before11([ENTRY | {"digest": digest}], refusal)
    there = registries.Referrers(registry, MEDIA, Budget(""))  # type: ignore[arg-type]
    with pytest.raises(type(refusal)):
        there.put(DOCUMENT, {"of": "me"})
    assert registry.listed == [ENTRY | {"digest": digest}]
