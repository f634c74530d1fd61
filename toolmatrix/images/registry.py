"""Images in a registry and the documents attached to them, by the OCI distribution API; nothing is kept on disk.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md, whose pull is two kinds of request: a manifest by
tag or digest, and a blob by digest. Every digest and size is verified. Names are those of the grammar in
https://github.com/distribution/reference/blob/main/reference.go, but there is no default host. Authentication
is Basic, or by a bearer token from the service that the registry names, RFC 9110 section 11 and RFC 6750,
https://distribution.github.io/distribution/spec/auth/token/ and .../oauth/.

An attached document is an artifact whose subject is the manifest of the image:
https://github.com/opencontainers/image-spec/blob/v1.1.0/manifest.md (subject, artifactType, the empty descriptor) and
https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md (Listing Referrers, Referrers Tag Schema): for
a registry that does not list them, such as one before 1.1, clients keep a list under a tag.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import parse_http_list

from toolmatrix.errors import (
    AccessDenied,
    NothingMatched,
    Position,
    RegistryFailed,
    SubjectError,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)
from toolmatrix.http import Answer, same_host
from toolmatrix.images import image as images
from toolmatrix.images.image import Descriptor, ImageMetadata
from toolmatrix.images.layers import LayerReader, Tree, check_digest
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import BLOCK, Closable, Hashed, first
from toolmatrix.images.transport import Credential, DockerConfig, Transport
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

LARGEST_MANIFEST = 4 << 20
"""Bytes that registries have to accept by the distribution specification; most accept no more."""
_ACCEPT = ", ".join(images.DOCUMENTS)
# Letters of a registry's message that an error quotes.
_LONGEST_WORD = 200
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_MOST_TAGS, _PAGE = 100_000, 1_000
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_REFERENCE = re.compile(
    rf"(?P<host>(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?)"
    rf"/(?P<name>{_WORD}(?:/{_WORD})*)"
    rf"(?::(?P<tag>{_TAG.pattern}))?(?:@(?P<digest>sha256:[0-9a-f]{{64}}))?",
    re.ASCII,
)
# Tags of artifacts about an image, not of an image: the distribution specification, "Referrers Tag Schema"
# (`sha256-DIGEST`), and the suffixes of cosign for signatures, attestations and lists of parts
# (https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md, "Tag-based Discovery").
_ARTIFACT = re.compile(r"sha256-[0-9a-f]{64}(?:\.(?:sig|att|sbom))?")
# Letters of host and name together.
_LONGEST_REFERENCE = 255
# A token goes into a header as it is: a line break in it would begin another header.
_TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")
_CLIENT = "toolmatrix"


def read(address: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of an address in a registry; without a platform, of several the one for this machine.

    Layers that are known already are not fetched.

    Raises UsageError for an invalid address, SubjectError for a missing or damaged image, AccessDenied, and
    RegistryFailed.
    """
    with opened(address, reader.budget) as registry:
        index = registry.index()
        return images.by_digests(index, registry.blob, platform, reader, by_name=True)


def identity(address: str, budget: Budget) -> str:
    """The digest that a name has at this moment. Raises what `read` raises."""
    with opened(address, budget) as registry:
        return str(registry.index()["manifests"][0]["digest"])


def tagged_subjects(address: str, budget: Budget) -> list[str]:
    """Every tag of a repository as a subject, `//HOST/REPOSITORY[:PATTERN]` by a pattern of the shell.

    Tags of artifacts about images are left out, unless the pattern begins as they do.

    Raises UsageError for an invalid address, NothingMatched where no tag matches, and what `read` raises.
    """
    repository, colon, pattern = address.rpartition(":")
    if not colon or "/" in pattern:
        repository, pattern = address, "*"
    with opened(repository, budget) as registry:
        # Not every registry sorts them as specified.
        tags = sorted({*registry.tags()})
    if not pattern.startswith("sha256-"):
        tags = [tag for tag in tags if not _ARTIFACT.fullmatch(tag)]
    matches = [tag for tag in tags if fnmatchcase(tag, pattern)]
    if not matches:
        raise NothingMatched(
            "no tag of the repository matches",
            expected=f"tags like `{pattern}`",
            found=f"{len(tags)} tags in `{repository.removeprefix('//')}`",
        )
    return [f"registry:{repository}:{tag}" for tag in matches]


@contextmanager
def opened(address: str, budget: Budget) -> Iterator[Registry]:
    """The registry that has the image of a name. Raises what `read` raises."""
    docker = DockerConfig(os.environ)
    reference = parse_reference(address)
    with closing(Transport(reference.host, docker, budget.subject)) as transport:
        yield Registry(reference, docker, transport, budget)


class Registry:
    """A client of a registry for one image."""

    def __init__(
        self, reference: Reference, docker: DockerConfig, transport: Transport, budget: Budget
    ) -> None:
        self._image = reference
        self._docker = docker
        self._http = transport
        self._budget = budget
        self._base = ""
        self._authorization = ""
        # Looked up on the first challenge: a helper program may prompt the user.
        self._credential: Credential | None = None
        self._fetched: dict[str, bytes] = {}

    def index(self) -> dict[str, Any]:
        """The image of the name, as the index of a layout would list it."""
        with closing(self._get(f"manifests/{self._image.version}", _ACCEPT)) as answer:
            media = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            # Captive portals answer any address with a page of their own.
            if "html" in media:
                raise self._http.refusal(
                    "the registry gives an unexpected answer", "a manifest", media
                )
            body = Hashed(answer)
            # The size of a manifest is unknown here, unlike that of a blob, which is in its descriptor.
            data = first(LARGEST_MANIFEST + 1, body)
        self._check_size(len(data))
        document = images.parse(data, self._budget)
        images.kind(document, self._budget)
        promised = answer.headers.get("Docker-Content-Digest", "")
        for expected in (self._image.digest, promised if promised.startswith("sha256:") else ""):
            if expected:
                check_digest(expected, body.digest, self._budget)
        declared = document.get("mediaType", media)
        if media in images.DOCUMENTS and declared != media:
            raise self._budget.refusal(
                "registry and manifest disagree on the media type", f"`{media}`", f"`{declared}`"
            )
        self._fetched[body.digest] = data
        return {"manifests": [{"mediaType": declared, "digest": body.digest, "size": len(data)}]}

    def tags(self) -> list[str]:
        """All tags of the repository (distribution specification, Listing Tags)."""
        collected: list[str] = []
        query = {"n": str(_PAGE)}
        while len(collected) < _MOST_TAGS:
            with closing(self._get(f"tags/list?{urlencode(query)}", "*/*")) as answer:
                data = first(LARGEST_MANIFEST + 1, answer)
            document = images.parse(data, self._budget)
            tags = document.get("tags") if isinstance(document, dict) else ""
            # A repository whose last tag was removed has none.
            page = [] if tags is None else tags
            if not isinstance(page, list) or not all(
                isinstance(tag, str) and _TAG.fullmatch(tag) for tag in page
            ):
                raise self._http.refusal(
                    "the registry gives an unexpected answer", "a list of tags", f"`{tags!r:.40}`"
                )
            collected += page
            # A link announces the next page, which begins behind the last tag of this one.
            if not page or 'rel="next"' not in answer.headers.get("Link", ""):
                return collected
            query["last"] = page[-1]
        raise self._budget.excess("the repository has too many tags", f"{_MOST_TAGS}")

    def blob(self, descriptor: Descriptor) -> Closable:
        """The blob that a descriptor names; raises SubjectError where the registry does not have it."""
        # It was fetched already, for the digest of the tag.
        if descriptor.digest in self._fetched:
            return io.BytesIO(self._fetched[descriptor.digest])
        if descriptor.media not in images.DOCUMENTS:
            return _Blob(partial(self._get, f"blobs/{descriptor.digest}", "*/*"))
        self._check_size(descriptor.size)
        return self._get(f"manifests/{descriptor.digest}", _ACCEPT)

    def _check_size(self, size: int) -> None:
        if size > LARGEST_MANIFEST:
            raise self._budget.excess("a manifest is too large", f"{LARGEST_MANIFEST >> 20} MiB")

    def document(self, path: str) -> Any:
        """A document of the repository, None where the registry does not have it."""
        with closing(
            self._answer(path, partial(self._http.get, headers={"Accept": _ACCEPT}))
        ) as answer:
            if answer.status in (404, 410):
                return None
            if answer.status != 200:
                raise self._refused(answer, path, 200)
            return images.parse(first(LARGEST_MANIFEST + 1, answer), self._budget)

    def put_blob(self, digest: str, data: bytes) -> None:
        """Put a blob where it is not there yet (distribution specification, pushing a blob in two requests)."""
        path = "blobs/uploads/"
        with closing(self._put("POST", path, b"", "", 202)) as answer:
            location = urljoin(answer.url, answer.headers.get("Location", ""))
        # Credentials and uploads must not go to another host.
        if not same_host(location, answer.url):
            raise self._http.refusal(
                "the registry redirects uploads to another host",
                self._image.host,
                urlsplit(location).netloc,
            )
        url = f"{location}{'&' if urlsplit(location).query else '?'}{urlencode({'digest': digest})}"
        headers = {"Content-Type": "application/octet-stream"}
        upload = partial(self._http.send, "PUT", headers=headers, body=data)
        self._done(url, path, upload, 201).close()

    def put_manifest(self, version: str, data: bytes, media: str) -> Mapping[str, str]:
        """Put a manifest under a digest or a tag, and return the headers of the answer."""
        with closing(self._put("PUT", f"manifests/{version}", data, media, 201)) as answer:
            return answer.headers

    def _put(self, method: str, path: str, data: bytes, media: str, wanted: int) -> Answer:
        headers = {"Content-Type": media} if media else {}
        return self._done(
            "", path, partial(self._http.send, method, headers=headers, body=data), wanted
        )

    def _get(self, path: str, accept: str, start: int = 0) -> Answer:
        headers = {"Accept": accept, **({"Range": f"bytes={start}-"} if start else {})}
        return self._done("", path, partial(self._http.get, headers=headers), 206 if start else 200)

    def _done(self, url: str, path: str, send: Callable[..., Answer], wanted: int) -> Answer:
        answer = self._answer(path, send, url)
        if answer.status != wanted:
            with closing(answer):
                raise self._refused(answer, path, wanted)
        return answer

    def _answer(self, path: str, send: Callable[..., Answer], url: str = "") -> Answer:
        self._base = self._base or self._http.base()
        url = url or f"{self._base}/v2/{self._image.name}/{path}"
        answer = send(url=url, authorization=self._authorization)
        # Storage behind a redirect does not get the credentials of the registry.
        if answer.status == 401 and same_host(answer.url, url):
            answer.close()
            self._authorization = self._authorized(answer)
            answer = send(url=url, authorization=self._authorization)
        return answer

    def _refused(self, answer: Answer, path: str, wanted: int) -> Exception:
        explanation = f"{answer.status} {self._explanation(answer)}".strip()
        if answer.status in (401, 403):
            return self._denied(f"other credentials: {explanation}")
        if answer.status in (404, 410):
            return self._budget.refusal(
                "the registry does not have this", f"`{self._image.name}`, {path}", explanation
            )
        return self._http.refusal("the registry fails", f"status {wanted}", explanation)

    def _explanation(self, answer: Answer) -> str:
        # Registries explain errors in the form of the distribution specification, or not at all.
        try:
            document = images.parse(answer.read(BLOCK), self._budget)
            error = document["errors"][0]
            return f"{error['code']}: {error.get('message', '')}"[:_LONGEST_WORD]
        except (SubjectError, RegistryFailed, LookupError, TypeError, AttributeError):
            return ""

    def _authorized(self, refused: Answer) -> str:
        schemes = challenges(refused.headers.getlist("WWW-Authenticate"))
        if self._credential is None:
            self._credential = self._docker.credential(self._image.server)
        credential = self._credential
        if "bearer" in schemes:
            token = credential.bearer or self._token(schemes["bearer"], credential, refused.url)
            return f"Bearer {token}"
        if "basic" in schemes and credential.basic:
            return credential.basic
        raise self._denied("credentials" if "basic" in schemes else f"{', '.join(schemes)!r}")

    def _denied(self, wanted: str) -> AccessDenied:
        known = self._credential is not None and any(self._credential)
        note = f"; {self._docker.note}" if self._docker.note else ""
        return AccessDenied(
            "the registry refuses access",
            where=Position(self._budget.subject),
            expected=f"{'other' if known else 'any'} credentials in {self._docker.path}",
            found=f"it wants {wanted}{note}",
            # Registries answer so for missing names too, to conceal which exist.
            help=f"`docker login {self._image.server}`, if the image exists",
        )

    def _token(self, challenge: Mapping[str, str], credential: Credential, by: str) -> str:
        realm = self._http.check_address(challenge.get("realm", ""), by=by)
        service = urlsplit(realm).netloc
        scope = challenge.get("scope") or f"repository:{self._image.name}:pull"
        fields = {"service": challenge.get("service", ""), "client_id": _CLIENT}
        # Identity tokens need the OAuth form, which older services do not know; all else goes by GET.
        if credential.identity:
            grant = {"grant_type": "refresh_token", "refresh_token": credential.identity}
            answer = self._http.post(realm, {**fields, **grant, "scope": scope})
        else:
            # Each scope is a parameter of its own; in a challenge blanks separate them.
            pairs = [*fields.items(), *(("scope", resource) for resource in scope.split())]
            separator = "&" if urlsplit(realm).query else "?"
            answer = self._http.get(f"{realm}{separator}{urlencode(pairs)}", {}, credential.basic)
        with closing(answer):
            if answer.status != 200:
                raise self._denied(f"a token, which {service} does not give: {answer.status}")
            document = images.read_document(answer, self._budget)
        body = document if isinstance(document, dict) else {}
        token = body.get("token") or body.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise self._denied(f"a token, and {service} answers without one")
        return token


def challenges(values: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """The schemes of WWW-Authenticate in lower case, with their parameters."""
    schemes: dict[str, dict[str, str]] = {}
    parameters: dict[str, str] = {}
    # Commas separate schemes, and the parameters of one as well.
    for element in parse_http_list(", ".join(values)):
        scheme, _, rest = element.strip().partition(" ")
        if "=" not in scheme and scheme:
            parameters = schemes.setdefault(scheme.lower(), {})
            element = rest
        key, equals, value = element.strip().partition("=")
        if equals:
            parameters[key.strip().lower()] = re.sub(r'^"|"$', "", value.strip()).replace("\\", "")
    return schemes


# A blob that resumes where its connection broke, as long as each connection makes progress.
class _Blob:
    def __init__(self, ask: Callable[[int], Answer]) -> None:
        self._ask = ask
        self._answer = ask(0)
        self._count = 0
        self._broken_at = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = self._answer.read(size)
        except RegistryFailed as broken:
            self.close()
            if self._count == self._broken_at:
                raise
            self._broken_at = self._count
            try:
                self._answer = self._ask(self._count)
            except ToolmatrixError:
                raise broken from None
            return self.read(size)
        self._count += len(data)
        return data

    def close(self) -> None:
        self._answer.close()


class Reference(Value):
    """An image in a registry: the host of the API, its name in Docker's configuration, and the image's name there."""

    host: str
    server: str
    name: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """The digest, else the tag, by which to request the manifest."""
        return self.digest or self.tag


def is_host(component: str) -> bool:
    """Check whether the first component of an image name is a host.

    Only these signs distinguish it from the first component of a repository (distribution/reference, normalize.go).
    """
    return component == "localhost" or any(sign in component for sign in ".:")


def parse_reference(address: str) -> Reference:
    """The reference behind `registry:`; raises UsageError for one that names no host or no image."""
    text = address.removeprefix("//")
    match = _REFERENCE.fullmatch(text)
    parts = match.groupdict("") if match else {}
    host, name = parts.get("host", ""), parts.get("name", "")
    if len(f"{host}/{name}") > _LONGEST_REFERENCE or not is_host(host):
        has_user = "@" in text.partition("/")[0]
        login = "credentials come from Docker's configuration: `docker login HOST`"
        raise UsageError(
            "this is not an image of a registry",
            expected="`registry://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST]`, a host with a dot or a port, "
            "or `localhost`, and a name in small letters",
            # The text before the sign may be a password.
            found="a user's name or password" if has_user else f"`{text}`",
            help=login if has_user else "",
        )
    registries: list[dict[str, Any]] = load_yaml(of_package("images", "registries.yaml"))
    settings = next((registry for registry in registries if host in registry["images"]), {})
    if settings and "/" not in name:
        name = f"{settings['official']}/{name}"
    return Reference(
        host=settings.get("api", host),
        server=settings.get("credentials", host),
        name=name,
        tag=parts["tag"] or ("" if parts["digest"] else "latest"),
        digest=parts["digest"],
    )


MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
UNREADABLE = (SubjectError, ToolMissing)
"""The errors of a registry that lacks, or does not give or accept, a document."""
# Documents with the same annotations to read until one is intact.
_MOST_READ = 8
# The errors of reading a document of another shape.
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
        """The digest of the manifest or index of the name."""
        return str(self._subject["digest"])

    def documents(self, notes: Mapping[str, str]) -> Iterator[Any]:
        """The documents with these annotations; damaged ones and listed ones that are gone are left out."""
        try:
            entries = self._list_entries()
        except UNREADABLE:
            return
        mine = (
            entry
            for entry in entries
            if entry.get("artifactType") == self._media
            and isinstance(annotations := entry.get("annotations"), dict)
            and notes.items() <= annotations.items()
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
        # A registry refuses a manifest with missing blobs.
        for descriptor, blob in ((config, _NOTHING), (layer, data)):
            self._registry.put_blob(descriptor["digest"], blob)
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
        # With this header a registry says that it lists referrers itself.
        if not headers.get("OCI-Subject"):
            entry |= {"artifactType": self._media, "annotations": dict(notes)}
            entries = [other for other in self._tagged() if other.get("digest") != entry["digest"]]
            try:
                self._put_tagged([*entries, entry])
            except (SubjectError, RegistryFailed):
                # A registry may refuse a list with deleted entries.
                remaining = [other for other in entries if not self._is_gone(other)]
                if remaining == entries:
                    raise
                self._put_tagged([*remaining, entry])

    def _put_tagged(self, entries: list[dict[str, Any]]) -> None:
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        self._registry.put_manifest(self._tag, _bytes(index), INDEX)

    def _is_gone(self, entry: Mapping[str, Any]) -> bool:
        digest = entry.get("digest")
        try:
            images.digest_hex(digest, self._budget)
            return self._registry.document(f"manifests/{digest}") is None
        except UNREADABLE:
            # It is not known, and others may find it.
            return False

    def _list_entries(self) -> list[dict[str, Any]]:
        query = urlencode({"artifactType": self._media})
        index = self._registry.document(f"referrers/{self.digest}?{query}")
        return self._tagged() if index is None else self._entries(index)

    def _tagged(self) -> list[dict[str, Any]]:
        return self._entries(self._registry.document(f"manifests/{self._tag}"))

    @property
    def _tag(self) -> str:
        return self.digest.replace(":", "-")

    def _entries(self, index: Any) -> list[dict[str, Any]]:
        return images.objects(index.get("manifests") if isinstance(index, dict) else None)

    def _read(self, entry: Mapping[str, Any]) -> Any:
        images.digest_hex(entry["digest"], self._budget)
        descriptor = Descriptor(
            media=entry["mediaType"], digest=entry["digest"], size=int(entry["size"])
        )
        with closing(self._registry.blob(descriptor)) as stream:
            return images.read_document(stream, self._budget, digest=descriptor.digest)


@contextmanager
def opened_referrers(address: str, media: str, budget: Budget) -> Iterator[Referrers]:
    """The documents attached to the image `//HOST/NAME:TAG`. Raises what reading the image raises."""
    with opened(address, budget) as registry:
        yield Referrers(registry, media, budget)


def _bytes(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _descriptor(media: str, data: bytes) -> dict[str, Any]:
    digest = f"sha256:{sha256(data).hexdigest()}"
    return {"mediaType": media, "digest": digest, "size": len(data)}
