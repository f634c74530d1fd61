"""HTTP to a package index and its file servers: pages, ranges and downloads, limited in size and counted.

The settings that pip honours apply: logins of netrc, proxies, and certificates.
"""

from __future__ import annotations

import os
import os.path
import re
import shutil
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from netrc import NetrcParseError, netrc
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from urllib3.util import make_headers

from toolmatrix.errors import IndexFailed, Position
from toolmatrix.harvest import missing
from toolmatrix.http import BROKEN, Answer, Client, OutOfBounds, basic, reason, same_host
from toolmatrix.value import Value

LARGEST_WHOLE = 64 << 20
"""Bytes of a file that is read whole if its server does not support ranges."""
_STEP = 64 << 10
# The status of servers that do not support a range from the end.
_NO_SUFFIX = (400, 405, 416, 501)
# Variables and files with the certificates and logins of pip.
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_NETRC = ("~/.netrc", "~/_netrc")
_JSON, _HTML = "application/vnd.pypi.simple.v1+json", "text/html"
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class Reply(Value):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    url: str


class Session(Client):
    """Requests to an index and its files, from several threads; `file:` addresses are read from disk.

    `cache` is a directory for pieces of files by their sha256, which never change; "" for none. Methods that read or
    save raise IndexFailed if there is no answer, or not the requested one.
    """

    def __init__(self, cache: str = "") -> None:
        super().__init__(lambda _: self._make_context(), login=self._netrc_login, decode=True)
        self.bytes = 0
        self.fallback_proxy = getproxies().get("all", "")
        self._cache = cache
        self._certificates = next(filter(None, map(os.environ.get, _CERTIFICATES)), "")

    def trust(self, certificates: str, proxy: str) -> None:
        """Use a file of certificates and a proxy of pip's settings, unless the environment names others."""
        self._certificates = self._certificates or certificates
        self.fallback_proxy = self.fallback_proxy or proxy

    def _make_context(self) -> ssl.SSLContext:
        path = self._certificates
        if not path:
            try:
                import certifi
            except ImportError:
                raise missing("certifi") from None
            path = certifi.where()
        if os.path.isdir(path):
            return ssl.create_default_context(capath=path)
        if not os.path.exists(path):
            raise OSError(f"there are no certificates at {path}")
        return ssl.create_default_context(cafile=path)

    def _netrc_login(self, host: str) -> str:
        login = self._netrc and self._netrc.authenticators(host)
        return basic(f"{login[0] or login[1]}:{login[2]}") if login and any(login) else ""

    @cached_property
    def _netrc(self) -> netrc | None:
        named = os.environ.get("NETRC")
        paths = map(os.path.expanduser, _NETRC if named is None else (named,))
        # An unreadable file is not an error: most indexes need no login.
        with suppress(OSError, ValueError, NetrcParseError):
            return next((netrc(path) for path in paths if os.path.exists(path)), None)
        return None

    def whole(self, url: str, most: int, accept: str = "*/*") -> Reply | None:
        """The content of an address, of at most `most` bytes; None if it does not exist."""
        path = _path(url)
        if path:
            return _file(path, url, most)
        reply = self._reply(url, {"Accept": accept}, most)
        if reply.status in (404, 410):
            return None
        if reply.status != 200:
            raise _failed(url, "an answer", f"status {reply.status}")
        return reply

    def save(self, url: str, path: str, most: int) -> None:
        """Download at most `most` bytes from an address to a file; an interrupted download is resumed."""
        local = _path(url)
        if local:
            with _reading(url):
                shutil.copyfile(local, path)
            return
        have = os.path.getsize(path) if os.path.exists(path) else 0
        headers = {"Range": f"bytes={have}-"} if have else {}
        with _reading(url), closing(self._request(url, headers)) as answer:
            # The file is complete already.
            if have and answer.status == 416:
                return
            known = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            resumed = answer.status == 206 and known is not None and int(known[1]) == have
            if not resumed and answer.status != 200:
                raise _failed(url, "an answer", f"status {answer.status}")
            with open(path, "ab" if resumed else "wb") as file:
                before = file.tell()
                file.writelines(self._parts(answer, url, most - before))
                count = file.tell() - before
            length = answer.headers.get("Content-Length", "")
            if length.isdecimal() and int(length) != count:
                raise _failed(url, f"{length} bytes", str(count))

    def tail(self, url: str, count: int, digest: str = "") -> tuple[int, bytes]:
        """The last `count` bytes of a file, or all of it, and their offset."""
        cached = self.cached(digest, f"tail-{count}")
        if cached:
            return int.from_bytes(cached[:8], "big"), cached[8:]
        start, data = self._tail(url, count)
        self.keep(digest, f"tail-{count}", start.to_bytes(8, "big") + data)
        return start, data

    def range(self, url: str, first: int, stop: int, digest: str = "") -> bytes:
        """The bytes of a file from `first` up to but excluding `stop`."""
        name = f"{first}-{stop}"
        data = self.cached(digest, name)
        if not data:
            data = self._range(url, first, stop)
            self.keep(digest, name, data)
        return data

    def forget(self, digest: str) -> None:
        """Remove a file from the cache."""
        if self._cache and digest:
            shutil.rmtree(self._folder(digest), ignore_errors=True)

    def _tail(self, url: str, count: int) -> tuple[int, bytes]:
        path = _path(url)
        if path:
            with _reading(url):
                size = os.path.getsize(path)
            start = max(0, size - count)
            return start, self._range(url, start, size)
        # A range from the end, so that the size of the file needs no request of its own.
        reply = self._reply(url, {"Range": f"bytes=-{count}"}, count)
        if reply.status in _NO_SUFFIX:
            size = _span(self._reply(url, {"Range": "bytes=0-0"}, 1), url)[2]
            start = max(0, size - count)
            return start, self._range(url, start, size)
        # A server without support for ranges sends everything.
        if reply.status == 200:
            return 0, reply.data
        start, stop, size = _span(reply, url)
        if stop != size or len(reply.data) != stop - start:
            raise _failed(
                url, f"the last {count} bytes", f"{len(reply.data)} bytes up to {stop} of {size}"
            )
        return start, reply.data

    def _range(self, url: str, first: int, stop: int) -> bytes:
        path = _path(url)
        if path:
            with _reading(url), open(path, "rb") as file:
                file.seek(first)
                return file.read(stop - first)
        reply = self._reply(url, {"Range": f"bytes={first}-{stop - 1}"}, stop - first)
        start, end = (0, len(reply.data)) if reply.status == 200 else _span(reply, url)[:2]
        if start > first or end < stop or len(reply.data) != end - start:
            received = f"{len(reply.data)} bytes, declared as {start} to {end}"
            raise _failed(url, f"bytes {first} to {stop}", received)
        return reply.data[first - start : stop - start]

    def _reply(self, url: str, headers: Mapping[str, str], most: int) -> Reply:
        ranged = "Range" in headers
        # Ranges count bytes of the uncompressed file.
        packed = {} if ranged else make_headers(accept_encoding=True)
        with _reading(url), closing(self._request(url, {**headers, **packed})) as answer:
            # A server without support for ranges sends the whole file, which may exceed the length of the range.
            whole = ranged and answer.status == 200
            bound = max(most, LARGEST_WHOLE) if whole else most
            # The page of an error is not read.
            parts = () if answer.status >= 400 else self._parts(answer, url, bound)
            return Reply(
                status=answer.status, headers=answer.headers, data=b"".join(parts), url=answer.url
            )

    def _request(self, url: str, headers: Mapping[str, str]) -> Answer:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        plain = parts._replace(netloc=host, fragment="").geturl()
        answer = self.get(plain, headers, basic(unquote(user)) if ":" in user else "")
        # Relative links of a page keep its login.
        if same_host(answer.url, plain):
            answer.url = urlsplit(answer.url)._replace(netloc=parts.netloc).geturl()
        return answer

    def _parts(self, answer: Answer, url: str, most: int) -> Iterator[bytes]:
        length = answer.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) > most:
            raise _failed(url, f"at most {most} bytes", f"{length} bytes")
        count = 0
        while chunk := answer.read(_STEP):
            count += len(chunk)
            if count > most:
                raise _failed(url, f"at most {most} bytes", "more than that")
            yield chunk
        with self._lock:
            self.bytes += count

    def _folder(self, digest: str) -> str:
        return os.path.join(self._cache, digest[:2], digest)

    def cached(self, digest: str, name: str) -> bytes:
        """The cached piece with this name of a file with this sha256, b"" if there is none."""
        if self._cache and digest:
            with suppress(OSError), open(os.path.join(self._folder(digest), name), "rb") as file:
                return file.read()
        return b""

    def keep(self, digest: str, name: str, data: bytes) -> None:
        """Cache a piece of a file; errors of the disk are ignored."""
        if not self._cache or not digest:
            return
        path = os.path.join(self._folder(digest), name)
        # Threads and other runs may cache the same piece at once: each writes a file of its own and renames it, so that
        # readers never see half of one.
        temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                os.remove(temporary)


def _span(reply: Reply, url: str) -> tuple[int, int, int]:
    """The first byte and the end of a range, and the size of the file."""
    content_range = reply.headers.get("Content-Range", "")
    known = _RANGE.fullmatch(content_range)
    if reply.status != 206 or not known:
        received = (
            f"Content-Range `{content_range[:80]}`"
            if reply.status == 206
            else f"status {reply.status}"
        )
        raise _failed(url, "a part of the file", received)
    return int(known[1]), int(known[2]) + 1, int(known[3])


def _path(url: str) -> str:
    """The path of a `file:` address, "" for others."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else ""


def _file(path: str, url: str, most: int) -> Reply | None:
    # A directory answers with its index file, like a server.
    for inside, kind in (("", ""), ("index.json", _JSON), ("index.html", _HTML)):
        named = os.path.join(path, inside) if inside else path
        if os.path.isfile(named):
            with _reading(url), open(named, "rb") as file:
                data = file.read(most + 1)
            if len(data) > most:
                raise _failed(url, f"at most {most} bytes", "more than that")
            return Reply(status=200, headers={"Content-Type": kind}, data=data, url=url)
    return None


@contextmanager
def _reading(url: str) -> Iterator[None]:
    try:
        yield
    except OutOfBounds as error:
        raise _failed(url, error.expected, error.found) from None
    except BROKEN as error:
        raise _failed(url, "an answer", reason(error)) from None


def _failed(url: str, expected: str, found: str) -> IndexFailed:
    # Only the name of the file, as an address may contain a password.
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return IndexFailed(
        "the package index cannot be read",
        where=Position(unquote(name)),
        expected=expected,
        found=found,
    )
