"""Authorization that a registry asks for before it answers: Basic, or a bearer token from the service that it names.

https://distribution.github.io/distribution/spec/auth/token/ and .../oauth/, RFC 9110 section 11 and RFC 6750.
"""

from __future__ import annotations

import re
from contextlib import closing
from urllib.parse import urlencode, urlsplit
from urllib.request import parse_http_list

from toolmatrix.errors import AccessDenied, Position
from toolmatrix.images import image as images

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolmatrix.images.docker_config import Credential, DockerConfig
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.registry import Reference
    from toolmatrix.images.transport import Answer, Transport

    Challenges = Mapping[str, Mapping[str, str]]

# A token goes into a header as it is, where a line break in it would begin another header.
_TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")
_CLIENT = "toolmatrix"


class Access:
    """Answers to a registry that asks who is there; credentials are looked up when it first asks."""

    def __init__(
        self, reference: Reference, docker: DockerConfig, line: Transport, budget: Budget
    ) -> None:
        self._reference = reference
        self._docker = docker
        self._line = line
        self._budget = budget
        self._credential: Credential | None = None

    def authorization(self, refused: Answer) -> str:
        """The Authorization header for what a 401 asks; raises AccessDenied where that cannot be had."""
        asked = challenges(refused.headers.getlist("WWW-Authenticate"))
        credential = self._known()
        if "bearer" in asked:
            token = credential.bearer or self._token(asked["bearer"], credential, refused.url)
            return f"Bearer {token}"
        if "basic" in asked and credential.basic:
            return credential.basic
        raise self.denied("credentials" if "basic" in asked else f"{', '.join(asked)!r}")

    def denied(self, wanted: str) -> AccessDenied:
        """The error for a registry that does not let us in."""
        known = self._credential is not None and any(self._credential)
        note = f"; {self._docker.note}" if self._docker.note else ""
        return AccessDenied(
            "the registry refuses access",
            where=Position(self._budget.subject),
            expected=f"{'other' if known else 'any'} credentials in {self._docker.path}",
            found=f"it wants {wanted}{note}",
            help=f"`docker login {self._reference.server}`, if the image exists",
        )

    def _known(self) -> Credential:
        if self._credential is None:
            self._credential = self._docker.credential(self._reference.server)
        return self._credential

    def _token(self, asked: Mapping[str, str], credential: Credential, by: str) -> str:
        """The token of the service that the registry names."""
        realm = self._line.named(asked.get("realm", ""), by=by)
        scope = asked.get("scope") or f"repository:{self._reference.name}:pull"
        fields = {"service": asked.get("service", ""), "client_id": _CLIENT}
        # Identity tokens are exchanged by the OAuth form alone, which older services do not know; all else goes by GET.
        if credential.identity:
            own = {"grant_type": "refresh_token", "refresh_token": credential.identity}
            answer = self._line.post(realm, {**fields, **own, "scope": scope})
        else:
            # Each scope is a parameter of its own; in a challenge blanks part them.
            pairs = [*fields.items(), *(("scope", one) for one in scope.split())]
            joint = "&" if urlsplit(realm).query else "?"
            answer = self._line.get(f"{realm}{joint}{urlencode(pairs)}", {}, credential.basic)
        with closing(answer):
            if answer.status != 200:
                raise self.denied(f"a token, which {_host(realm)} does not give: {answer.status}")
            document = images.read_document(answer, self._budget)
        held = document if isinstance(document, dict) else {}
        token = held.get("token") or held.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise self.denied(f"a token, and {_host(realm)} answers without one")
        return token


def challenges(values: Iterable[str]) -> Challenges:
    """Schemes that WWW-Authenticate asks for, in small letters with their parameters."""
    found: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    for part in parse_http_list(", ".join(values)):
        scheme, _, rest = part.strip().partition(" ")
        if "=" not in scheme and scheme:
            own = found.setdefault(scheme.lower(), {})
            part = rest
        key, equals, value = part.strip().partition("=")
        if equals:
            own[key.strip().lower()] = re.sub(r'^"|"$', "", value.strip()).replace("\\", "")
    return found


def _host(url: str) -> str:
    return urlsplit(url).netloc
