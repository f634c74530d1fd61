"""Names of images in registries, by the grammar of https://github.com/distribution/reference/blob/main/reference.go.

A name stands for the host it begins with; there is no default host.
"""

from __future__ import annotations

import re

from toolmatrix.errors import UsageError
from toolmatrix.resources import registries_path
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<host>(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?)"
    rf"/(?P<name>{_WORD}(?:/{_WORD})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
# Letters of host and name together.
_LONGEST = 255


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


def parse(place: str) -> Reference:
    """What stands behind `registry:`; raises UsageError for what names no host or no image."""
    text = place.removeprefix("//")
    found = _REFERENCE.fullmatch(text)
    parts = found.groupdict("") if found else {}
    host, name = parts.get("host", ""), parts.get("name", "")
    if len(f"{host}/{name}") > _LONGEST or not _is_host(host):
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
    """Whether the first word of a name is a host: only then is it none of the repository's."""
    return any(sign in word for sign in ".:") or word == "localhost"


def _has_user(text: str) -> bool:
    return "@" in text.partition("/")[0]


def _registries() -> list[dict[str, Any]]:
    """What is known of registries that have several names."""
    import yaml

    with open(registries_path(), encoding="utf-8") as file:
        return yaml.safe_load(file)  # type: ignore[no-any-return]
