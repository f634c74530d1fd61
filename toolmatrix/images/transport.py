"""HTTP to a registry and to where it sends on, as Docker's files say, and within one measure of patience."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

from urllib3 import exceptions
from urllib3.util import Timeout

from toolmatrix.errors import Position, RegistryFailed
from toolmatrix.http import BROKEN, TIMEOUT, Answer, Client, Deadline, OutOfBounds, causes, reason
from toolmatrix.images.docker_config import DockerConfig

PATIENCE: float = 300
"""Seconds that one image may take, apart from those that its bytes buy."""
# What helps against errors, the first that is among the causes deciding.
_HELP: tuple[tuple[type[BaseException], str], ...] = (
    (
        ssl.SSLCertVerificationError,
        "put the certificate of its authority into /etc/docker/certs.d/HOST/ca.crt, or name it by SSL_CERT_FILE",
    ),
    (
        ssl.SSLError,
        "plain HTTP is for this machine alone, and for `insecure-registries` of /etc/docker/daemon.json",
    ),
    (exceptions.IncompleteRead, "try again"),
)


class Transport(Client):
    """Requests to one registry, and to the hosts it names; every method raises RegistryFailed."""

    def __init__(self, host: str, docker: DockerConfig, subject: str) -> None:
        super().__init__(
            docker.trust,
            may_be_plain=docker.may_be_plain,
            deadline=Deadline(PATIENCE),
            failures=self._failures,
        )
        self._host = host
        self._subject = subject

    def base(self) -> str:
        """The address of the registry, with HTTPS unless it may be asked without and does not speak it.

        Docker's engine does the same. A certificate that is not trusted is an error all the same.
        """
        url = f"https://{self._host}"
        if not self._may_be_plain(self._host):
            return url
        with self.failures(url):
            try:
                self.manager(url).urlopen(
                    "HEAD", f"{url}/v2/", retries=False, timeout=Timeout(**TIMEOUT), redirect=False
                ).close()
            except BROKEN as error:
                if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes(error)):
                    raise
                return f"http://{self._host}"
        return url

    def post(self, url: str, fields: Mapping[str, str]) -> Answer:
        """The answer to a form."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send("POST", url, kind, body=urlencode(fields).encode())

    @contextmanager
    def _failures(self, url: str) -> Iterator[None]:
        try:
            yield
        except OutOfBounds as error:
            raise self.refusal(f"the registry {error.what}", error.expected, error.found) from None
        except BROKEN as error:
            chain = causes(error)
            helps = (help for kind, help in _HELP if any(isinstance(one, kind) for one in chain))
            asked = f"an answer of {urlsplit(url).netloc}"
            raise self.refusal(
                "the registry cannot be read", asked, reason(error), next(helps, "")
            ) from None

    def refusal(self, what: str, expected: str, found: str, help: str = "") -> RegistryFailed:
        """The error for what a registry does."""
        where = Position(self._subject)
        return RegistryFailed(what, where=where, expected=expected, found=found, help=help)
