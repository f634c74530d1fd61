"""HTTP to a registry and to where it sends on: encrypted, with bounds on waiting, retries and redirects.

An address is followed where it is HTTPS, or plain HTTP to a host that may be asked so, and never from the first to the
second. A redirect to another host goes without credentials.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from http.client import HTTPException
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import connection, connectionpool, exceptions
from urllib3.util import Retry, Timeout, make_headers, parse_url

from toolmatrix.errors import Position, RegistryFailed
from toolmatrix.images.docker_config import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from urllib3 import BaseHTTPResponse

    from toolmatrix.images.docker_config import DockerConfig

CONNECT: float = 10
SILENCE: float = 30
HEADERS: float = 60
"""Seconds until a connection is there, between two pieces of an answer, and until status and headers are whole."""
PATIENCE: float = 300
SLOWEST = 8 << 10
"""Seconds that are waited in all for one image, and bytes that buy another second."""
RETRIES = 3
BACKOFF = 0.5
LONGEST_PAUSE: float = 60
"""Attempts after the first, seconds before the second of them, and seconds that a registry may ask to wait."""
MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
# Statuses that may pass, RFC 6585 and RFC 9110.
_BUSY = (429, 500, 502, 503, 504)
# What urllib3 and those below it raise.
_BROKEN = (exceptions.HTTPError, HTTPException, OSError, ValueError)


class Answer:
    """What a host answered: status, headers, and a body that is read piece by piece."""

    def __init__(self, response: BaseHTTPResponse, url: str, line: Transport) -> None:
        self.status = response.status
        self.headers = response.headers
        self.url = url
        self._response = response
        self._line = line

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises RegistryFailed where the line breaks or is too slow."""
        with self._line.waiting(self.url):
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
        self._waited = 0.0

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
            timeout = Timeout(connect=CONNECT, read=SILENCE)
            pool.urlopen("HEAD", "/v2/", retries=False, timeout=timeout, redirect=False).close()
        except _BROKEN as error:
            if any(isinstance(one, ssl.SSLCertVerificationError) for one in _chain(error)):
                raise self._failure(url, error) from None
            return f"http://{self._host}"
        return url

    def get(self, url: str, headers: Mapping[str, str], authorization: str = "") -> Answer:
        """The answer of an address after its redirects, on which credentials stay with the host they are for.

        Raises RegistryFailed where there is none, or a redirect leads where it may not.
        """
        for _ in range(MOST_REDIRECTS + 1):
            own = {"Authorization": authorization} if authorization else {}
            answer = self._send("GET", url, {**headers, **own})
            if answer.status not in _REDIRECTS:
                return answer
            answer.close()
            here, url = url, self._target(url, answer.headers.get("Location", ""))
            if not same_host(here, url):
                authorization = ""
        raise self.refusal(
            "the registry redirects in circles", f"at most {MOST_REDIRECTS} redirects", "more"
        )

    def post(self, url: str, fields: Mapping[str, str]) -> Answer:
        """The answer to a form, which is not sent on to where the answer may redirect."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", url, kind, urlencode(fields))

    def named(self, url: str, by: str) -> str:
        """An address that the answer of another names; raises RegistryFailed for one that is not followed."""
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
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
    def waiting(self, url: str) -> Iterator[None]:
        """Count the time that passes; raises RegistryFailed where it fails, or where too much had passed before."""
        if self._waited > PATIENCE + self.count / SLOWEST:
            raise self.refusal(
                "the registry is too slow",
                f"at least {SLOWEST >> 10} KiB a second after {PATIENCE:.0f} seconds",
                f"{self.count} bytes in {self._waited:.0f} seconds of waiting",
            )
        start = time.monotonic()
        try:
            yield
        except _BROKEN as error:
            raise self._failure(url, error) from None
        finally:
            self._waited += time.monotonic() - start

    def refusal(self, what: str, expected: str, found: str, help: str = "") -> RegistryFailed:
        """The error for what a registry does."""
        where = Position(self._subject)
        return RegistryFailed(what, where=where, expected=expected, found=found, help=help)

    def _target(self, url: str, location: str) -> str:
        try:
            target = urljoin(url, location)
        except ValueError:
            target = ""
        return self.named(target, by=url)

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: str | None = None
    ) -> Answer:
        """One answer. What may pass is asked again, later; the body of such an answer is not read."""
        busy = Retry(total=RETRIES, status_forcelist=_BUSY, backoff_factor=BACKOFF)
        broken = Retry(
            connect=RETRIES,
            read=1,
            status=0,
            other=1,
            redirect=False,
            backoff_factor=BACKOFF,
            respect_retry_after_header=False,
        )
        while True:
            with self.waiting(url):
                response = self._manager(url).urlopen(
                    method,
                    url,
                    headers={"User-Agent": "toolmatrix", **headers},
                    body=body,
                    redirect=False,
                    retries=broken,
                    timeout=Timeout(connect=CONNECT, read=SILENCE),
                    preload_content=False,
                    decode_content=False,
                )
            asked = "Retry-After" in response.headers
            if not (busy.total and busy.is_retry(method, response.status, asked)):
                return Answer(response, url, self)
            response.close()
            with self.waiting(url):
                self._pause(busy.get_retry_after(response) or 0)
                busy = busy.increment(method, url, response=response)
                busy.sleep(response)

    def _pause(self, seconds: float) -> None:
        if seconds > LONGEST_PAUSE:
            raise self.refusal(
                "the registry is busy",
                f"to be answered within {LONGEST_PAUSE:.0f} seconds",
                f"it asks to come back in {seconds:.0f}",
            )

    def _manager(self, url: str) -> urllib3.PoolManager:
        """The connections to the host of an address, through the proxy that the environment names for it."""
        parts = urlsplit(url)
        key = f"{parts.scheme}://{parts.netloc}"
        if key not in self._managers:
            proxy = getproxies().get(parts.scheme, "")
            context = self._docker.trust(parts.netloc) if parts.scheme == "https" else None
            if not proxy or is_loopback(parts.netloc) or proxy_bypass(parts.netloc):
                made = urllib3.PoolManager(ssl_context=context)
            else:
                user = parse_url(proxy).auth
                own = make_headers(proxy_basic_auth=user) if user else None
                made = urllib3.ProxyManager(proxy, ssl_context=context, proxy_headers=own)
            made.pool_classes_by_scheme = {"http": _Plain, "https": _Secure}
            self._managers[key] = made
        return self._managers[key]

    def _failure(self, url: str, error: BaseException) -> RegistryFailed:
        """The error for a line that broke: the deepest reason of its kind, as the outer ones quote addresses."""
        chain = [*_chain(error)][::-1]
        found, (_, said, help) = next(
            (one, row) for row in _REASONS for one in chain if isinstance(one, row[0])
        )
        text = said.format(getattr(found, "verify_message", "") or _text(found))
        asked = f"an answer of {urlsplit(url).netloc}"
        return self.refusal("the registry cannot be read", asked, text, help)


def same_host(one: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common: the reach of credentials."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


# What broke a line, the first that holds, how it is told, and a way out.
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
    (ConnectionRefusedError, "{}", ""),
    (exceptions.ConnectTimeoutError, "it takes no connection", ""),
    ((exceptions.TimeoutError, TimeoutError), "it stopped answering", ""),
    (exceptions.IncompleteRead, "it ended early", "try again"),
    (OSError, "{}", ""),
    (BaseException, "{}", ""),
)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what it was made of, as urllib3 wraps them."""
    seen: list[BaseException] = []
    todo = [error]
    while todo and len(seen) < 32:
        one = todo.pop(0)
        if one not in seen:
            seen.append(one)
            inner = (getattr(one, "reason", None), *one.args, one.__cause__, one.__context__)
            todo += [each for each in inner if isinstance(each, BaseException)]
            yield one


def _text(error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(said)[:200]


class _InTime(connection.HTTPConnection):
    """A connection that is cut where status and headers take too long as a whole; a socket bounds each piece alone."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        """The answer; raises TimeoutError."""
        late: list[bool] = []
        timer = threading.Timer(HEADERS, _cut, (self.sock, late))
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()
        finally:
            timer.cancel()
            if late:
                raise TimeoutError


class _InTimeSecure(_InTime, connection.HTTPSConnection):
    """The same with TLS."""


class _Plain(connectionpool.HTTPConnectionPool):
    ConnectionCls = _InTime


class _Secure(connectionpool.HTTPSConnectionPool):
    ConnectionCls = _InTimeSecure


def _cut(sock: socket.socket, late: list[bool]) -> None:
    late.append(True)
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
