"""By which login, proxy and certificates an index is asked: as pip's users have set it up."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images import hostile, registries
from tests.images.hostile import Reply, Server
from toolmatrix.errors import IndexFailed
from toolmatrix.harvest.transport import Session

pytestmark = pytest.mark.process

LARGEST = 1 << 20
BODY = b"page"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@pytest.fixture(autouse=True)
def _nothing_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.upper, PROXIES), *BUNDLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with a page."""
    with hostile.running() as found:
        found.answers["/page"] = Reply(body=BODY)
        yield found


@pytest.fixture
def other() -> Iterator[Server]:
    """Another one, with a page as well."""
    with hostile.running() as found:
        found.answers["/page"] = Reply(body=BODY)
        yield found


def basic(user: str, password: str) -> str:
    """The header of a login."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def read(url: str, session: Session | None = None) -> bytes:
    """What is at an address."""
    found = (session or Session()).whole(url, LARGEST)
    assert found is not None
    return found.data


def refused(url: str, session: Session | None = None) -> IndexFailed:
    """The error for what is at an address, which names no secret."""
    with pytest.raises(IndexFailed, match="the package index cannot be read") as caught:
        read(url, session)
    assert "secret" not in repr(vars(caught.value))
    return caught.value


# Logins


def test_the_user_of_an_address_goes_to_its_host_alone(server: Server, other: Server) -> None:
    server.answers["/moved"] = Reply(302, {"Location": "/page"})
    server.answers["/gone"] = Reply(302, {"Location": f"{other.url}/back"})
    other.answers["/back"] = Reply(302, {"Location": f"{server.url}/page"})
    index = f"http://me:s%40cret@{server.host}"
    for path in ("/page#sha256=1", "/moved", "/gone"):
        assert read(f"{index}{path}") == BODY
    me = basic("me", "s@cret")
    assert [(one.path, one.headers["Authorization"]) for one in server.asked] == [
        *(("/page", me), ("/moved", me), ("/page", me)),
        *(("/gone", me), ("/page", None)),
    ]
    assert [(one.path, one.headers["Authorization"]) for one in other.asked] == [("/back", None)]


@pytest.mark.parametrize("path", ["/page", "/moved", "/here"])
def test_what_a_page_names_beside_itself_has_its_user(server: Server, path: str) -> None:
    server.answers["/moved"] = Reply(302, {"Location": "/page"})
    server.answers["/here"] = Reply(302, {"Location": f"{server.url}/page"})
    found = Session().whole(f"http://me:secret@{server.host}{path}", LARGEST)
    assert found is not None
    assert found.url == f"http://me:secret@{server.host}/page"


def test_a_login_of_netrc_goes_to_its_host_wherever_it_was_named(
    server: Server, other: Server, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine localhost login me password secret\n")
    elsewhere = other.url.replace("localhost", "127.0.0.1")
    server.answers["/gone"] = Reply(302, {"Location": f"{elsewhere}/back"})
    other.answers["/back"] = Reply(302, {"Location": f"{server.url}/page"})
    assert read(f"http://you:other@{server.host}/gone") == BODY
    assert server.sent("Authorization") == [basic("me", "secret")] * 2
    assert other.sent("Authorization") == []


@pytest.mark.parametrize("text", ["", "machine", "machine a.b login me password secret", "\xff"])
def test_without_a_login_none_is_sent(server: Server, tmp_path: Path, text: str) -> None:
    (tmp_path / "netrc").write_bytes(text.encode("latin1"))
    assert read(f"{server.url}/page") == BODY
    assert server.sent("Authorization") == []


# Where to, and by which way


@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "https://", "//[", "http://me:secret@localhost/x"]
)
def test_addresses_that_are_not_followed(server: Server, place: str) -> None:
    server.answers["/page"] = Reply(302, {"Location": place})
    assert refused(f"{server.url}/page").expected.startswith("`https://HOST/...`")


@pytest.mark.parametrize("place", ["//{}/page", "/page", "ftp://{}/page", "{}/page"])
def test_what_is_no_address_is_not_asked(server: Server, place: str) -> None:
    assert refused(place.format(server.host)).expected == "an answer"
    assert server.asked == []


@pytest.mark.parametrize("way", ["http_proxy", "HTTP_PROXY", "all_proxy", "pip"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_gets_its_own_login_alone(
    server: Server, way: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is one that nobody can look up, so only a proxy can answer."""
    server.answers["http://index.invalid/page"] = Reply(body=BODY)
    session, proxy = Session(), f"{scheme}me:s%40cret@{server.host}"
    if way != "pip":
        monkeypatch.setenv(way, proxy)
        session = Session()
    session.trust("", proxy if way == "pip" else "http://localhost:1")
    assert read("http://you:other@index.invalid/page#x", session) == BODY
    assert server.sent("Proxy-Authorization") == [basic("me", "s@cret")]
    assert server.sent("Authorization") == [basic("you", "other")]


@pytest.mark.parametrize(
    ("host", "but"),
    [
        *(("localhost:1", ""), ("127.0.0.1:1", ""), ("[::1]:1", "")),
        *(("a.invalid", "invalid"), ("a.invalid", "b.invalid, a.invalid"), ("a.invalid", "*")),
        *(("192.0.2.1:1", "192.0.2.0/24"), ("a.invalid:1", "a.invalid:1")),
    ],
)
def test_hosts_that_no_proxy_is_for(
    server: Server, host: str, but: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", but)
    assert Session()._proxy("http", host) == ""
    assert Session()._proxy("http", "192.0.3.1") == (server.url if but != "*" else "")


# Trust


def test_an_index_is_trusted_by_the_certificates_that_are_named(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    registries.need("openssl")
    certificate = registries.certified(tmp_path)
    with hostile.running(certificate) as secure:
        secure.answers["/page"] = Reply(body=BODY)
        url = f"{secure.url}/page"
        assert refused(url).found.startswith("its certificate is not trusted: self-signed")
        session = Session()
        session.trust(certificate[0], "")
        assert read(url, session) == BODY
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            with monkeypatch.context() as patch:
                patch.setenv(name, certificate[0])
                assert read(url) == BODY
                patch.setenv(name, str(tmp_path))
                session = Session()
                # The environment decides, here by a directory that holds none.
                session.trust(certificate[0], "")
                assert refused(url, session).found.startswith("its certificate is not trusted")
                patch.setenv(name, "/nowhere")
                assert refused(url).found == "there are no certificates at /nowhere"
        session = Session()
        session.trust(certificate[0], "")
        server.answers["/away"] = Reply(302, {"Location": url})
        assert read(f"{server.url}/away", session) == BODY
        # Encryption is not left, not even on the way.
        server.asked.clear()
        secure.answers["/page"] = Reply(302, {"Location": f"{server.url}/away"})
        assert refused(url, session).found == f"`{server.url}`"
        assert server.asked == []


# Bodies


def test_a_page_that_was_packed_is_unpacked_and_bounded(server: Server) -> None:
    packed = {"Content-Encoding": "gzip"}
    server.answers["/page"] = Reply(headers=packed, body=gzip.compress(BODY))
    assert read(f"{server.url}/page") == BODY
    assert "gzip" in server.sent("Accept-Encoding")[0]
    server.answers["/page"] = Reply(headers=packed, body=gzip.compress(bytes(LARGEST + 1)))
    assert refused(f"{server.url}/page").expected == f"at most {LARGEST} bytes"
