"""HTTP to a registry and the hosts it redirects to, configured by the files of Docker, within one deadline.

These hold credentials, certificates, and registries that may be used without encryption:
https://docs.docker.com/reference/cli/docker/ (config.json), https://docs.docker.com/engine/security/certificates/
(certs.d), https://docs.docker.com/reference/cli/dockerd/#insecure-registries (daemon.json), and for helpers
https://github.com/docker/docker-credential-helpers.
"""

from __future__ import annotations

import base64
import glob
import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from urllib3 import exceptions
from urllib3.util import Timeout

from toolmatrix.errors import ConfigError, Position, RegistryFailed
from toolmatrix.http import (
    BROKEN,
    TIMEOUT,
    Answer,
    Client,
    Deadline,
    OutOfBounds,
    bare_host,
    causes,
    is_loopback,
    is_within,
    reason,
)
from toolmatrix.opener import open_file

ETC = "/etc/docker"
# Bytes to read of a file or of a helper's answer.
_LARGEST = 1 << 20
HELPER_PATIENCE = 20
"""Time limit of a helper in seconds."""
# The user's name that marks a secret as an identity token.
_NO_USER = "<token>"


class Credential(NamedTuple):
    """Credentials of a user at a registry: a name and password, or a token; its text reveals nothing."""

    user: str = ""
    password: str = ""
    identity: str = ""
    bearer: str = ""

    def __repr__(self) -> str:
        return "Credential(...)"

    @property
    def basic(self) -> str:
        """The value of an Authorization header, empty without a password."""
        pair = f"{self.user}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}" if self.password else ""


class DockerConfig:
    """The files of Docker's client and engine, read on demand."""

    def __init__(self, env: Mapping[str, str]) -> None:
        home = os.path.join(env.get("HOME", ""), ".docker")
        self.path = os.path.join(env.get("DOCKER_CONFIG") or home, "config.json")
        self.note = ""

    def credential(self, server: str) -> Credential:
        """The credential for a registry, empty if there is none; `note` then says what went wrong.

        Raises ConfigError for a file that is damaged.
        """
        config = _document(self.path)
        helpers = _table(config, "credHelpers")
        helper = helpers.get(server) or config.get("credsStore")
        if isinstance(helper, str) and helper:
            credential = self._ask_helper(helper, server)
            if credential is not None:
                return credential
        entries = {_host(key): value for key, value in _table(config, "auths").items()}
        entry = entries.get(_host(server))
        return _credential(entry, self.path) if isinstance(entry, dict) else Credential()

    def _ask_helper(self, helper: str, server: str) -> Credential | None:
        import subprocess

        if not re.fullmatch(r"[\w.-]+", helper):
            self.note = "the name of its credential helper is invalid"
            return None
        # A helper that fails is no error: it may belong to another machine, and most images need no credentials.
        try:
            ended = subprocess.run(  # noqa: S603 - the user's configuration names the program
                [f"docker-credential-{helper}", "get"],
                input=server.encode(),
                capture_output=True,
                timeout=HELPER_PATIENCE,
                check=False,
            )
            answer = json.loads(ended.stdout[:_LARGEST]) if ended.returncode == 0 else {}
        except (OSError, subprocess.TimeoutExpired, ValueError, RecursionError) as error:
            why = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "failed"
            self.note = f"docker-credential-{helper} {why}"
            return None
        fields = answer if isinstance(answer, dict) else {}
        user, secret = fields.get("Username"), fields.get("Secret")
        if not isinstance(user, str) or not isinstance(secret, str):
            return None
        return Credential(identity=secret) if user == _NO_USER else Credential(user, secret)

    def may_be_plain(self, host: str) -> bool:
        """Check whether a host may be used without encryption: this machine, and what the engine's file allows."""
        hosts = _document(os.path.join(ETC, "daemon.json")).get("insecure-registries")
        allowed = hosts if isinstance(hosts, list) else []
        name = bare_host(host)
        return is_loopback(host) or any(
            isinstance(entry, str) and (entry in (host, name) or is_within(name, entry))
            for entry in allowed
        )

    def trust(self, host: str) -> ssl.SSLContext:
        """The trust for a host: the system's (SSL_CERT_FILE and SSL_CERT_DIR replace it) and Docker's directory.

        Raises ConfigError for a certificate that cannot be read.
        """
        import ssl

        context = ssl.create_default_context()
        # The name of a host may have brackets, which are a pattern to glob.
        folder = glob.escape(os.path.join(ETC, "certs.d", host))
        for path in sorted(glob.glob(os.path.join(folder, "*.c*rt"))):
            _add(context, path)
        return context


def _add(context: ssl.SSLContext, path: str) -> None:
    try:
        # Docker distinguishes this client from an authority by `cert` and `crt`.
        if path.endswith(".cert"):
            # Without a password OpenSSL asks for one on the terminal, and waits.
            context.load_cert_chain(path, f"{path.removesuffix('.cert')}.key", password="")
        else:
            context.load_verify_locations(path)
    except OSError as error:
        raise _unusable(path, "a certificate, and its key beside it", error) from None


def _host(key: str) -> str:
    # A key of `auths` may be an address with a path, such as that of Docker Hub.
    return re.sub(r"^https?://", "", key).partition("/")[0]


def _credential(entry: Mapping[str, Any], path: str) -> Credential:
    fields = {key: value for key, value in entry.items() if isinstance(value, str)}
    user, password = fields.get("username", ""), fields.get("password", "")
    if "auth" in fields:
        try:
            user, _, password = (
                base64.b64decode(fields["auth"], validate=True).decode().partition(":")
            )
        except ValueError as error:
            raise _unusable(path, "`auth`: a name and a password in base 64", error) from None
    return Credential(
        # Docker strips padding zeros as well (decodeAuth of its configfile package).
        user,
        password.strip("\0"),
        fields.get("identitytoken", ""),
        fields.get("registrytoken", ""),
    )


def _document(path: str) -> dict[str, Any]:
    try:
        with open_file(path) as file:
            document = json.loads(file.read(_LARGEST))
    # The engine's files are often readable for root alone, and optional.
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(path, "JSON", error) from None
    if not isinstance(document, dict):
        raise _unusable(path, "a JSON object", TypeError())
    return document


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = document.get(key)
    return table if isinstance(table, dict) else {}


def _unusable(path: str, expected: str, error: Exception) -> ConfigError:
    # The content is not quoted, as it may be secret.
    problem = getattr(error, "strerror", None) or type(error).__name__
    return ConfigError(
        "a file of Docker's configuration cannot be used",
        where=Position(path),
        expected=expected,
        found=str(problem),
    )


PATIENCE: float = 300
"""Time limit of one image in seconds, plus the time granted for its bytes."""
# Help for errors; the first one among the causes counts.
_HELP: tuple[tuple[type[BaseException], str], ...] = (
    (
        ssl.SSLCertVerificationError,
        "put the certificate of its authority into /etc/docker/certs.d/HOST/ca.crt, or set SSL_CERT_FILE to it",
    ),
    (
        ssl.SSLError,
        "plain HTTP is only for this machine and the `insecure-registries` of /etc/docker/daemon.json",
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
        """The address of the registry, with HTTPS unless it may be used without and does not speak it.

        Docker's engine does the same. An untrusted certificate is still an error.
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
                if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error)):
                    raise
                return f"http://{self._host}"
        return url

    def post(self, url: str, fields: Mapping[str, str]) -> Answer:
        """The answer to a posted form."""
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
            helps = (help for kind, help in _HELP if any(isinstance(e, kind) for e in chain))
            expected = f"an answer from {urlsplit(url).netloc}"
            raise self.refusal(
                "the registry cannot be read", expected, reason(error), next(helps, "")
            ) from None

    def refusal(self, what: str, expected: str, found: str, help: str = "") -> RegistryFailed:
        """The error for a failure of the registry."""
        where = Position(self._subject)
        return RegistryFailed(what, where=where, expected=expected, found=found, help=help)
