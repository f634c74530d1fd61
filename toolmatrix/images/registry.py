"""Images in a registry, read through the OCI distribution API as they come; nothing is kept on disk.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md, whose pull is two kinds of request: a manifest by
tag or digest, and a blob by digest. Every digest and size is verified. Names are those of the grammar in
https://github.com/distribution/reference/blob/main/reference.go, but there is no default host.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import closing, contextmanager
from functools import partial

from toolmatrix.errors import RegistryFailed, SubjectError, ToolmatrixError, UsageError
from toolmatrix.images import image as images
from toolmatrix.images.docker_config import DockerConfig
from toolmatrix.images.registry_auth import Access
from toolmatrix.images.streams import BLOCK, Hashed
from toolmatrix.images.transport import Transport, same_host
from toolmatrix.resources import registries_path
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from toolmatrix.images.image import Descriptor, ImageMetadata
    from toolmatrix.images.layer import Look
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Closable
    from toolmatrix.images.transport import Answer
    from toolmatrix.images.tree import Tree

LARGEST_MANIFEST = 4 << 20
"""Bytes; what the distribution specification asks registries to take at least, and they to at most."""
_ACCEPT = ", ".join(images.DOCUMENTS)
# Letters of a registry's own words that an error quotes.
_LONGEST_WORD = 200
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<host>(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?)"
    rf"/(?P<name>{_WORD}(?:/{_WORD})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
# Letters of host and name together.
_LONGEST_REFERENCE = 255


def read(place: str, platform: str, look: Look, budget: Budget) -> tuple[ImageMetadata, Tree]:
    """The image that a registry names; of several that of this machine where no platform is asked for.

    Raises UsageError for what is no name, SubjectError for an image that is not there or damaged, AccessDenied, and
    RegistryFailed.
    """
    with _opened(place, budget) as registry:
        return images.by_digests(registry.index(), registry.blob, platform, look, budget)


def identity(place: str, budget: Budget) -> str:
    """The digest of what a name stands for at this moment. Raises what `read` raises."""
    with _opened(place, budget) as registry:
        return str(registry.index()["manifests"][0]["digest"])


@contextmanager
def _opened(place: str, budget: Budget) -> Iterator[_Registry]:
    docker = DockerConfig(os.environ)
    asked = parse_reference(place)
    with closing(Transport(asked.host, docker, budget.subject)) as line:
        yield _Registry(asked, line, Access(asked, docker, line, budget), budget)


class _Registry:
    """One repository of a registry."""

    def __init__(self, asked: Reference, line: Transport, access: Access, budget: Budget) -> None:
        self._asked = asked
        self._line = line
        self._access = access
        self._budget = budget
        self._base = ""
        self._authorization = ""
        self._held: dict[str, bytes] = {}

    def index(self) -> dict[str, Any]:
        """The image that the name stands for, as the index of a layout would list it."""
        with closing(self._get(f"manifests/{self._asked.version}", _ACCEPT)) as answer:
            media = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            data, digest = self._whole(answer, media)
        document = images.parse(data, self._budget)
        images.kind(document, self._budget)
        promised = answer.headers.get("Docker-Content-Digest", "")
        for expected in (self._asked.digest, promised if promised.startswith("sha256:") else ""):
            if expected:
                images.check_digest(expected, digest, self._budget)
        own = document.get("mediaType", media)
        if media in images.DOCUMENTS and own != media:
            raise self._budget.refusal(
                "the registry and the manifest tell two media types", f"`{media}`", f"`{own}`"
            )
        self._held[digest] = data
        return {"manifests": [{"mediaType": own, "digest": digest, "size": len(data)}]}

    def blob(self, asked: Descriptor) -> Closable:
        """The blob that a descriptor names; raises SubjectError where the registry does not have it."""
        # It was fetched already, to learn the digest that the tag stands for.
        if asked.digest in self._held:
            return io.BytesIO(self._held[asked.digest])
        if asked.media not in images.DOCUMENTS:
            return _Blob(partial(self._get, f"blobs/{asked.digest}", "*/*"))
        if asked.size > LARGEST_MANIFEST:
            raise self._too_large()
        return self._get(f"manifests/{asked.digest}", _ACCEPT)

    def _whole(self, answer: Answer, media: str) -> tuple[bytes, str]:
        """A manifest and its digest."""
        if "html" in media:
            raise self._line.refusal(
                "the registry answers with something else", "a manifest", media
            )
        body = Hashed(answer)
        data = bytearray()
        while piece := body.read(BLOCK):
            # A manifest has no size that anybody promised, unlike a blob, whose descriptor tells it.
            data += piece
            if len(data) > LARGEST_MANIFEST:
                raise self._too_large()
        return bytes(data), body.digest

    def _too_large(self) -> SubjectError:
        return self._budget.refusal(
            "a manifest is too large", f"at most {LARGEST_MANIFEST >> 20} MiB", "more than that"
        )

    def _get(self, path: str, accept: str, start: int = 0) -> Answer:
        """The answer of the registry from a byte on, with authorization where it asks for it."""
        self._base = self._base or self._line.base()
        url = f"{self._base}/v2/{self._asked.name}/{path}"
        headers = {"Accept": accept, **({"Range": f"bytes={start}-"} if start else {})}
        wanted = 206 if start else 200
        answer = self._line.get(url, headers, self._authorization)
        # Storage behind a redirect that asks for credentials does not get those of the registry.
        if answer.status == 401 and same_host(answer.url, url):
            answer.close()
            self._authorization = self._access.authorization(answer)
            answer = self._line.get(url, headers, self._authorization)
        if answer.status != wanted:
            with closing(answer):
                raise self._refused(answer, path, wanted)
        return answer

    def _refused(self, answer: Answer, path: str, wanted: int) -> Exception:
        """The error for a status, with what the registry says itself."""
        words = f"{answer.status} {self._words(answer)}".strip()
        if answer.status in (401, 403):
            return self._access.denied(f"other credentials: {words}")
        if answer.status in (404, 410):
            return self._budget.refusal(
                "the registry does not have it", f"`{self._asked.name}`, {path}", words
            )
        return self._line.refusal("the registry fails", f"an answer with status {wanted}", words)

    def _words(self, answer: Answer) -> str:
        """Code and message of an error as the distribution specification has them, or nothing."""
        try:
            document = images.parse(answer.read(BLOCK), self._budget)
            first = document["errors"][0]
            return f"{first['code']}: {first.get('message', '')}"[:_LONGEST_WORD]
        except (SubjectError, RegistryFailed, LookupError, TypeError, AttributeError):
            return ""


class _Blob:
    """A blob that goes on where its connection broke, as long as each one brings it further."""

    def __init__(self, ask: Callable[[int], Answer]) -> None:
        self._ask = ask
        self._answer = ask(0)
        self._count = 0
        self._broken_at = 0

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end."""
        try:
            data = self._answer.read(size)
        except RegistryFailed as broken:
            self._go_on(broken)
            return self.read(size)
        self._count += len(data)
        return data

    def _go_on(self, broken: RegistryFailed) -> None:
        self.close()
        if self._count == self._broken_at:
            raise broken
        self._broken_at = self._count
        try:
            self._answer = self._ask(self._count)
        except ToolmatrixError:
            raise broken from None

    def close(self) -> None:
        """Give the connection up."""
        self._answer.close()


class Reference(Value):
    """An image in a registry: the host of the API, what Docker's configuration calls it, and the image's name there."""

    host: str
    server: str
    name: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """The digest, or else the tag: what the manifest is asked for by."""
        return self.digest or self.tag


def parse_reference(place: str) -> Reference:
    """The reference behind `registry:`; raises UsageError for one that names no host or no image."""
    text = place.removeprefix("//")
    found = _REFERENCE.fullmatch(text)
    parts = found.groupdict("") if found else {}
    host, name = parts.get("host", ""), parts.get("name", "")
    if len(f"{host}/{name}") > _LONGEST_REFERENCE or not _is_host(host):
        raise UsageError(
            "this is no image of a registry",
            expected="`registry://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST]`, a host with a dot or a port, "
            "or `localhost`, and a name in small letters",
            found="a user's name or password" if _has_user(text) else f"`{text}`",
            help="credentials come from Docker's configuration: `docker login HOST`"
            if _has_user(text)
            else "",
        )
    other: dict[str, Any] = next((one for one in _registries() if host in one["images"]), {})
    if other and "/" not in name:
        name = f"{other['official']}/{name}"
    return Reference(
        host=other.get("api", host),
        server=other.get("credentials", host),
        name=name,
        tag=parts["tag"] or ("" if parts["digest"] else "latest"),
        digest=parts["digest"],
    )


def _is_host(word: str) -> bool:
    """Check whether the first word of a name is a host: only then is it none of the repository's."""
    return any(sign in word for sign in ".:") or word == "localhost"


def _has_user(text: str) -> bool:
    return "@" in text.partition("/")[0]


def _registries() -> list[dict[str, Any]]:
    """The registries that have several names."""
    import yaml

    with open(registries_path(), encoding="utf-8") as file:
        return yaml.safe_load(file)  # type: ignore[no-any-return]
