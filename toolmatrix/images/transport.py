"""HTTP to a registry and to where it sends on: encrypted, with bounds on waiting, retries and redirects.

An address is followed where it is HTTPS, or plain HTTP to a host that may be asked so, and never from the first to the
second. A redirect to another host goes without credentials. Waiting is bounded between two pieces that arrive and for
all of an image together, counted when a piece has come: within the headers of one answer, which http.client bounds in
size, a registry that sends a byte every few seconds is not cut off.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import exceptions
from urllib3.util import Retry, Timeout, make_headers, parse_url

from toolmatrix.errors import Position, RegistryFailed
from toolmatrix.images.docker_config import DockerConfig, is_loopback

if TYPE_CHECKING:
    from typing_extensions import Self
    from urllib3 import BaseHTTPResponse


# Seconds until a connection is there, and between two pieces of an answer. urllib3's `total` would bound the sum of
# these and not the whole of an answer, which comes in as many pieces as the other side likes.
_TIMEOUT: dict[str, float] = {"connect": 10, "read": 30}
PATIENCE: float = 300
SLOWEST = 8 << 10
"""Seconds that one image may take, and bytes that buy another second.

A deadline alone would have to fit the largest image on the slowest honest line, and hold a stalling registry as long.
"""
RETRIES = 3
BACKOFF = 0.5
LONGEST_PAUSE: float = 60
"""Attempts after the first, seconds before the second of them, and seconds that a registry may ask to wait."""
MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# Statuses that may pass, RFC 6585 and RFC 9110.
_BUSY = (429, 500, 502, 503, 504)
BROKEN = (exceptions.HTTPError, HTTPException, OSError, ValueError)
"""The exceptions of urllib3 and of those below it."""


class PauseTooLong(exceptions.HTTPError):
    """A host that asks to come back after more than `LONGEST_PAUSE` seconds."""


class BoundedRetry(Retry):
    """Attempts as urllib3 counts and delays them, but bounded in what they read and wait for."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        *rest: Any,
        **more: Any,
    ) -> Self:
        made = super().increment(method, url, response, *rest, **more)
        # Or urllib3 reads the rest of the answer, of any size, to use its connection again.
        if response is not None:
            response.close()
        return made

    def parse_retry_after(self, retry_after: str) -> float:
        # urllib3 would shorten a pause that is too long, and ask too early.
        seconds = super().parse_retry_after(retry_after)
        if seconds > LONGEST_PAUSE:
            raise PauseTooLong(f"{seconds:.0f}")
        return seconds


def retries() -> BoundedRetry:
    """How often one question is asked, and how long apart."""
    # A broken answer may have cost the other side work, so it is asked for once more and not thrice.
    return BoundedRetry(
        total=RETRIES,
        read=1,
        other=1,
        status_forcelist=_BUSY,
        backoff_factor=BACKOFF,
        raise_on_status=False,
    )


class Answer:
    """The answer of a host: status, headers, and a body that is read piece by piece."""

    def __init__(self, response: BaseHTTPResponse, url: str, line: Transport) -> None:
        self.status = response.status
        self.headers = response.headers
        self.url = url
        self._response = response
        self._line = line

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises RegistryFailed where the line breaks or is too slow."""
        with self._line.in_time(self.url):
            data = self._response.read1(size)
            self._line.count += len(data)
        return data

    def close(self) -> None:
        """Give the connection up, with what is left unread on it."""
        self._response.close()


class Transport:
    """Requests to one registry, and to the hosts it names, within one measure of patience."""

    def __init__(self, host: str, docker: DockerConfig, subject: str) -> None:
        self.count = 0
        self._host = host
        self._docker = docker
        self._subject = subject
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._start = time.monotonic()

    def close(self) -> None:
        """Give up all connections."""
        for manager in self._managers.values():
            for key in manager.pools.keys():  # noqa: SIM118 - it refuses to be iterated
                manager.pools[key].close()

    def base(self) -> str:
        """The address of the registry, with HTTPS unless it may be asked without and does not speak it.

        Docker's engine does the same. A certificate that is not trusted is an error all the same.
        """
        url = f"https://{self._host}"
        if not self._docker.may_be_plain(self._host):
            return url
        try:
            pool = self._manager(url).connection_from_url(url)
            timeout = Timeout(**_TIMEOUT)
            pool.urlopen("HEAD", "/v2/", retries=False, timeout=timeout, redirect=False).close()
        except BROKEN as error:
            if any(isinstance(one, ssl.SSLCertVerificationError) for one in causes(error)):
                raise self._failure(url, error) from None
            return f"http://{self._host}"
        return url

    def get(self, url: str, headers: Mapping[str, str], authorization: str = "") -> Answer:
        """The answer of an address after its redirects, on which credentials stay with the host they are for.

        Redirects are not left to urllib3: each is checked before it is followed, and each host has its own trust.
        Raises RegistryFailed where there is none, or a redirect leads where it may not.
        """
        for _ in range(MOST_REDIRECTS + 1):
            own = {"Authorization": authorization} if authorization else {}
            answer = self._send("GET", url, {**headers, **own})
            if answer.status not in _REDIRECTS:
                return answer
            answer.close()
            here, location = url, answer.headers.get("Location", "")
            # What cannot be joined is no address by itself either.
            with contextlib.suppress(ValueError):
                location = urljoin(here, location)
            url = self.named(location, by=here)
            # Once left out they stay out, or the other host could send them back to where it likes.
            if not same_host(here, url):
                authorization = ""
        raise self.refusal(
            "the registry redirects in circles", f"at most {MOST_REDIRECTS} redirects", "more"
        )

    def post(self, url: str, fields: Mapping[str, str]) -> Answer:
        """The answer to a form, which is not sent on to where the answer may redirect."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", url, kind, urlencode(fields).encode())

    def put(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, authorization: str
    ) -> Answer:
        """The answer to what is put to an address, which is not sent on to where the answer may redirect."""
        own = {"Authorization": authorization} if authorization else {}
        return self._send(method, url, {**headers, **own}, body)

    def named(self, url: str, by: str) -> str:
        """An address that the answer of another names; raises RegistryFailed for one that is not followed."""
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        # Credentials in an address would reach logs, and a host that is written behind them reads like another one.
        user, _, host = parts.netloc.rpartition("@")
        plain = self._docker.may_be_plain(host) and urlsplit(by).scheme == "http"
        if user or not host or parts.scheme not in ("https", *(("http",) if plain else ())):
            raise self.refusal(
                "the registry sends on to an address that is not followed",
                "`https://HOST/...`; `http://` only from and to a host that may be asked so",
                f"`{parts.scheme}://{host}`" if parts.scheme else "no address",
            )
        return url

    @contextlib.contextmanager
    def in_time(self, url: str) -> Iterator[None]:
        """Turn what breaks meanwhile into RegistryFailed; raise it where all before took too long."""
        passed = time.monotonic() - self._start
        if passed > PATIENCE + self.count / SLOWEST:
            raise self.refusal(
                "the registry is too slow",
                f"at least {SLOWEST >> 10} KiB a second after {PATIENCE:.0f} seconds",
                f"{self.count} bytes in {passed:.0f} seconds",
            )
        try:
            yield
        except PauseTooLong as error:
            raise self.refusal(
                "the registry is busy",
                f"to be answered within {LONGEST_PAUSE:.0f} seconds",
                f"it asks to come back in {error}",
            ) from None
        except BROKEN as error:
            raise self._failure(url, error) from None

    def refusal(self, what: str, expected: str, found: str, help: str = "") -> RegistryFailed:
        """The error for what a registry does."""
        where = Position(self._subject)
        return RegistryFailed(what, where=where, expected=expected, found=found, help=help)

    # What may pass is asked again, later; the body of such an answer is not read.
    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        with self.in_time(url):
            response = self._manager(url).urlopen(
                method,
                url,
                headers={"User-Agent": "toolmatrix", **headers},
                body=body,
                redirect=False,
                retries=retries(),
                timeout=Timeout(**_TIMEOUT),
                preload_content=False,
                decode_content=False,
            )
        # The attempts may have taken longer together than each of them may.
        try:
            with self.in_time(url):
                return Answer(response, url, self)
        except RegistryFailed:
            response.close()
            raise

    def _manager(self, url: str) -> urllib3.PoolManager:
        parts = urlsplit(url)
        key = f"{parts.scheme}://{parts.netloc}"
        if key not in self._managers:
            proxy = getproxies().get(parts.scheme, "")
            context = self._docker.trust(parts.netloc) if parts.scheme == "https" else None
            if not proxy or is_loopback(parts.netloc) or proxy_bypass(parts.netloc):
                self._managers[key] = urllib3.PoolManager(ssl_context=context)
            else:
                user = parse_url(proxy).auth
                own = make_headers(proxy_basic_auth=user) if user else None
                made = urllib3.ProxyManager(proxy, ssl_context=context, proxy_headers=own)
                self._managers[key] = made
        return self._managers[key]

    def _failure(self, url: str, error: BaseException) -> RegistryFailed:
        text, help = reason(error)
        asked = f"an answer of {urlsplit(url).netloc}"
        return self.refusal("the registry cannot be read", asked, text, help)


def same_host(one: str, other: str) -> bool:
    """Check whether two addresses have scheme, host and port in common: the reach of credentials."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


# Kinds of errors, the first that is among the causes deciding, the message, and a way out.
_REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, str], ...] = (
    (
        ssl.SSLCertVerificationError,
        "its certificate is not trusted: {}",
        "put the certificate of its authority into /etc/docker/certs.d/HOST/ca.crt, or name it by SSL_CERT_FILE",
    ),
    (
        ssl.SSLError,
        "TLS fails: {}",
        "plain HTTP is for this machine alone, and for `insecure-registries` of /etc/docker/daemon.json",
    ),
    (exceptions.NameResolutionError, "its name is not known", ""),
    # Before the timeouts, of which urllib3 makes every connection that fails one.
    (ConnectionRefusedError, "{}", ""),
    (exceptions.ConnectTimeoutError, "it takes no connection", ""),
    ((exceptions.TimeoutError, TimeoutError), "it stopped answering", ""),
    (exceptions.IncompleteRead, "it ended early", "try again"),
    (OSError, "{}", ""),
    (BaseException, "{}", ""),
)


def reason(error: BaseException) -> tuple[str, str]:
    """What one of the errors `BROKEN` says, without addresses, and a way out, "" for none."""
    # The deepest reason of its kind, as the outer ones quote addresses, which may hold what lets in.
    chain = causes(error)[::-1]
    found, (_, message, help) = next(
        (one, row) for row in _REASONS for one in chain if isinstance(one, row[0])
    )
    words = getattr(found, "verify_message", "") or getattr(found, "strerror", "") or str(found)
    return message.format(str(words or type(found).__name__)[:200]), help


def causes(error: BaseException) -> list[BaseException]:
    """An error and what it was made of, the innermost last; urllib3 keeps that as `reason` or as an argument."""
    found: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in found:
        found.append(inner)
        behind = inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)
        several = (getattr(inner, "reason", None), *inner.args, behind)
        inner = next((one for one in several if isinstance(one, BaseException)), None)
    return found
