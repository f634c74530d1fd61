"""HTTP to any host, registries and package indexes alike: bounded in waiting, attempts and redirects.

An address is followed where it is HTTPS, or plain HTTP to a host that may be asked so, and never from the first to the
second. A redirect to another host goes without credentials. Waiting is bounded between two pieces that arrive and for
all of them together, counted when a piece has come: within the headers of one answer, which http.client bounds in size,
a host that sends a byte every few seconds is not cut off.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import exceptions
from urllib3.util import Retry, Timeout, make_headers, parse_url

if TYPE_CHECKING:
    from typing_extensions import Self
    from urllib3 import BaseHTTPResponse

# urllib3's `total` would bound the sum of these and not the whole of an answer, which comes in as many pieces as the
# other side likes.
TIMEOUT: dict[str, float] = {"connect": 10, "read": 30}
"""Seconds until a connection is there, and between two pieces of an answer."""
PATIENCE: float = 60
SLOWEST = 8 << 10
"""Seconds that one answer may take, and bytes that buy another second.

A deadline alone would have to fit the largest file on the slowest honest line, and hold a stalling host as long.
"""
RETRIES = 3
BACKOFF = 0.5
LONGEST_PAUSE: float = 60
"""Attempts after the first, seconds before the second of them, and seconds that a host may ask to wait."""
MOST_REDIRECTS = 5
# Connections to one host that are kept open for the next question.
_CONNECTIONS = 8
_REDIRECTS = (301, 302, 303, 307, 308)
# Statuses that may pass, RFC 6585 and RFC 9110.
_BUSY = (429, 500, 502, 503, 504)
# RFC 6890.
_LOOPBACK = ("127.0.0.0/8", "::1/128")
BROKEN = (exceptions.HTTPError, HTTPException, OSError, ValueError)
"""The exceptions of urllib3 and of those below it."""


class OutOfBounds(exceptions.HTTPError):
    """What a host does beyond a bound, in words that follow its name, with what was expected and found."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(f"it {what}: {found}")
        self.what = what
        self.expected = expected
        self.found = found


class Deadline:
    """The time by which answers have to be there, which every byte of them puts off."""

    def __init__(self, seconds: float) -> None:
        self.count = 0
        self._seconds = seconds
        self._start = time.monotonic()

    def check(self) -> None:
        """Raise OutOfBounds once it has passed."""
        passed = time.monotonic() - self._start
        if passed > self._seconds + self.count / SLOWEST:
            raise OutOfBounds(
                "is too slow",
                f"at least {SLOWEST >> 10} KiB a second after {self._seconds:.0f} seconds",
                f"{self.count} bytes in {passed:.0f} seconds",
            )


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
        retry = super().increment(method, url, response, *rest, **more)
        # Or urllib3 reads the rest of the answer, of any size, to use its connection again.
        if response is not None:
            response.close()
        return retry

    def parse_retry_after(self, retry_after: str) -> float:
        # urllib3 would shorten a pause that is too long, and ask too early.
        seconds = super().parse_retry_after(retry_after)
        if seconds > LONGEST_PAUSE:
            raise OutOfBounds(
                "is busy",
                f"to be answered within {LONGEST_PAUSE:.0f} seconds",
                f"it asks for a retry in {seconds:.0f}",
            )
        return seconds


class Answer:
    """The answer of a host: status, headers, and a body that is read piece by piece."""

    def __init__(
        self, response: BaseHTTPResponse, url: str, client: Client, deadline: Deadline
    ) -> None:
        self.status = response.status
        self.headers = response.headers
        self.url = url
        self._response = response
        self._client = client
        self._deadline = deadline

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises what the client raises."""
        with self._client.failures(self.url):
            self._deadline.check()
            data = self._response.read1(size)
            self._deadline.count += len(data)
        return data

    def close(self) -> None:
        """Give the connection up, with what is left unread on it."""
        self._response.close()


class Client:
    """Requests to hosts, from several threads, by the trust for each host.

    `may_be_plain` says which hosts may be asked without encryption, `login` what a host is asked with wherever it was
    named. With `decode` what was packed on the way is unpacked; a `deadline` is that of all answers together. Every
    method raises OutOfBounds or one of `BROKEN`, or what `failures` makes of them for an address.
    """

    def __init__(
        self,
        ssl_context: Callable[[str], ssl.SSLContext],
        *,
        may_be_plain: Callable[[str], bool] = lambda _: True,
        login: Callable[[str], str] = lambda _: "",
        decode: bool = False,
        deadline: Deadline | None = None,
        failures: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self.requests = 0
        # Taken where the environment names none for an address.
        self.fallback_proxy = ""
        self.failures = failures
        self._ssl_context = ssl_context
        self._may_be_plain = may_be_plain
        self._login = login
        self._decode = decode
        self._deadline = deadline
        self._lock = threading.Lock()
        self._managers: dict[tuple[str, str], urllib3.PoolManager] = {}

    def close(self) -> None:
        """Give up all connections."""
        for manager in self._managers.values():
            manager.clear()

    def get(self, url: str, headers: Mapping[str, str], authorization: str = "") -> Answer:
        """The answer of an address after its redirects, on which credentials stay with the host they are for.

        Redirects are not left to urllib3: each is checked before it is followed, and each host has its own trust.
        """
        deadline = self._deadline or Deadline(PATIENCE)
        for _ in range(MOST_REDIRECTS + 1):
            own = self._login(urlsplit(url).hostname or "") or authorization
            answer = self.send("GET", url, headers, own, deadline=deadline)
            if answer.status not in _REDIRECTS:
                return answer
            answer.close()
            here, location = url, answer.headers.get("Location", "")
            # What cannot be joined is no address by itself either.
            with suppress(ValueError):
                location = urljoin(here, location)
            url = urldefrag(self.check_address(location, by=here)).url
            # Once left out they stay out, or the other host could send them back to where it likes.
            if not same_host(here, url):
                authorization = ""
        with self.failures(url):
            raise OutOfBounds("redirects in circles", f"at most {MOST_REDIRECTS} redirects", "more")

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        authorization: str = "",
        body: bytes | None = None,
        deadline: Deadline | None = None,
    ) -> Answer:
        """The answer of an address itself, which is not sent on to where it may redirect."""
        deadline = deadline or self._deadline or Deadline(PATIENCE)
        own = {"Authorization": authorization} if authorization else {}
        with self.failures(url):
            deadline.check()
            # What may pass is asked again, later; the body of such an answer is not read.
            response = self.manager(url).urlopen(
                method,
                url,
                headers={"User-Agent": "toolmatrix", **headers, **own},
                body=body,
                redirect=False,
                # A broken answer may have cost the other side work, so it is asked for once more and not thrice.
                retries=BoundedRetry(
                    total=RETRIES,
                    read=1,
                    other=1,
                    status_forcelist=_BUSY,
                    backoff_factor=BACKOFF,
                    raise_on_status=False,
                ),
                timeout=Timeout(**TIMEOUT),
                preload_content=False,
                decode_content=self._decode,
            )
            # The attempts may have taken longer together than each of them may.
            try:
                deadline.check()
            except OutOfBounds:
                response.close()
                raise
        with self._lock:
            self.requests += 1
        return Answer(response, url, self, deadline)

    def check_address(self, url: str, by: str) -> str:
        """An address that the answer of another names, if it is one that is followed."""
        try:
            address = urlsplit(url)
        except ValueError:
            address = urlsplit("")
        # Credentials in an address would reach logs, and a host that is written behind them reads like another one.
        user, _, host = address.netloc.rpartition("@")
        plain = urlsplit(by).scheme == "http" and self._may_be_plain(host)
        if user or not host or address.scheme not in ("https", *(("http",) if plain else ())):
            with self.failures(by):
                raise OutOfBounds(
                    "redirects to an address that is not allowed",
                    "`https://HOST/...`; `http://` only between hosts that allow it",
                    f"`{address.scheme}://{host}`" if address.scheme else "no address",
                )
        return url

    def manager(self, url: str) -> urllib3.PoolManager:
        """What keeps the connections to the host of an address."""
        address = urlsplit(url)
        if address.scheme not in ("http", "https"):
            # urllib3 would ask a host without a scheme by plain HTTP.
            raise ValueError("its address is neither `http://HOST` nor `https://HOST`")
        with self._lock:
            if address[:2] not in self._managers:
                self._managers[address[:2]] = self._make_manager(address.scheme, address.netloc)
            return self._managers[address[:2]]

    def _make_manager(self, scheme: str, host: str) -> urllib3.PoolManager:
        proxy = self._proxy(scheme, host)
        context = self._ssl_context(host) if scheme == "https" else None
        if not proxy:
            return urllib3.PoolManager(maxsize=_CONNECTIONS, ssl_context=context)
        there = parse_url(proxy if "://" in proxy else f"http://{proxy}")
        own = make_headers(proxy_basic_auth=unquote(there.auth)) if there.auth else None
        secure = self._ssl_context(there.netloc or "") if there.scheme == "https" else None
        return urllib3.ProxyManager(
            there.url,
            maxsize=_CONNECTIONS,
            ssl_context=context,
            proxy_headers=own,
            proxy_ssl_context=secure,
        )

    def _proxy(self, scheme: str, host: str) -> str:
        known = getproxies()
        name = bare_host(host)
        direct = (is_within(name, domain.strip()) for domain in known.get("no", "").split(","))
        if is_loopback(host) or proxy_bypass(host) or any(direct):
            return ""
        return known.get(scheme) or self.fallback_proxy


def basic(pair: str) -> str:
    """The `Authorization` header for a `name:password`."""
    return make_headers(basic_auth=pair)["authorization"]


def same_host(first: str, second: str) -> bool:
    """Check whether two addresses have scheme, host and port in common: the reach of credentials."""
    return urlsplit(first)[:2] == urlsplit(second)[:2]


def is_loopback(host: str) -> bool:
    """Check whether a host is this machine by its name or address; names are not looked up."""
    name = bare_host(host)
    return name == "localhost" or any(is_within(name, network) for network in _LOOPBACK)


def bare_host(host: str) -> str:
    """The name or address of a host without its port."""
    match = re.fullmatch(r"\[(.*)\](?::\d*)?|([^:]*)(?::\d*)?", host)
    return (match[1] or match[2] or "").lower() if match else host


def is_within(name: str, network: str) -> bool:
    """Check whether a name is an address of a network."""
    try:
        return ipaddress.ip_address(name) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


# Kinds of errors, the first that is among the causes deciding, and the message.
_REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted: {}"),
    (ssl.SSLError, "TLS fails: {}"),
    (exceptions.NameResolutionError, "its host name is unknown"),
    # Before the timeouts, of which urllib3 makes every connection that fails one.
    (ConnectionRefusedError, "{}"),
    (exceptions.ConnectTimeoutError, "it accepts no connection"),
    ((exceptions.TimeoutError, TimeoutError), "it stopped answering"),
    (exceptions.IncompleteRead, "it ended early"),
    (OSError, "{}"),
    (BaseException, "{}"),
)


def reason(error: BaseException) -> str:
    """What one of the errors `BROKEN` says, without addresses."""
    # The deepest reason of its kind, as the outer ones quote addresses, which may contain credentials.
    chain = causes(error)[::-1]
    origin, message = next(
        (cause, message) for kind, message in _REASONS for cause in chain if isinstance(cause, kind)
    )
    words = getattr(origin, "verify_message", "") or getattr(origin, "strerror", "") or str(origin)
    return message.format(str(words or type(origin).__name__)[:200])


def causes(error: BaseException) -> list[BaseException]:
    """An error and what it was made of, the innermost last; urllib3 keeps that as `reason` or as an argument."""
    chain: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in chain:
        chain.append(inner)
        behind = inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)
        several = (getattr(inner, "reason", None), *inner.args, behind)
        inner = next((cause for cause in several if isinstance(cause, BaseException)), None)
    return chain
