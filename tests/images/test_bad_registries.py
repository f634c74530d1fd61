"""Registries that stall, lie, send on or ask for what is not theirs: each ends in one error, and no secret leaves."""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images import hostile, images, registries
from tests.images.hostile import Asked, Reply, Server
from toolmatrix import http
from toolmatrix.errors import (
    AccessDenied,
    RegistryFailed,
    SubjectError,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)
from toolmatrix.images import transport
from toolmatrix.inspection import subjects

pytestmark = [pytest.mark.process]

MADE = images.image({"etc/os-release": b"ID=debian\nVERSION_ID=12\n"}, {"a": b"1" * 9000})
MANIFEST = MADE.blobs[MADE.entry["digest"]]
LAYER = images.digest(MADE.layers[1])
BASIC = registries.basic("me", "secret")
PATH = "/v2/app/manifests/1"


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker's files for a test: none yet; and no pause between attempts."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(transport, "ETC", str(tmp_path / "etc"))
    monkeypatch.setattr(http, "BACKOFF", 0.01)
    return tmp_path


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that holds an image until a test spoils it."""
    with hostile.running() as found:
        found.serve("app", MADE)
        yield found


def account(docker: Path, server: Server, **entry: str) -> None:
    """An entry of Docker's configuration for a server, by default an account."""
    held = entry or {"auth": base64.b64encode(b"me:secret").decode()}
    (docker / "config.json").write_text(json.dumps({"auths": {server.host: held}}))


def read(server: Server) -> str:
    """The distribution of the server's image."""
    found = subjects.observe(f"registry://{server.host}/app:1")
    return found.components["distro"][0].version


def refused(server: Server, kind: type[ToolmatrixError] = RegistryFailed) -> ToolmatrixError:
    """The error for what the server answers, which names no secret."""
    with pytest.raises(kind) as caught:
        read(server)
    assert "secret" not in repr(vars(caught.value))
    assert str(caught.value.where) == f"registry://{server.host}/app:1"
    return caught.value


def test_an_honest_server_is_read_without_credentials(server: Server, docker: Path) -> None:
    account(docker, server)
    assert read(server) == "debian12"
    assert server.sent("Authorization") == []


# Names


@pytest.mark.parametrize(
    "place",
    [
        *("ubuntu", "library/ubuntu:22.04", "registry.example", "registry.example/", "a.b/C", "//"),
        *("a.b/c:", "a.b/c@sha256:1", "a.b/c:1:2", "a.b:port/c", "a..b/c", "a.b/c/../d", "a.b//c"),
        *("-a.b/c", "a.b/c?x=1", "a.b/c#x", "a.b/c\n", "a.b/" + "c" * 300, "file:///etc/passwd"),
        *("a.b/c__.d", "a.b/.c", "a.b/c@md5:1", "http://a.b/c", "me:secret@a.b/c"),
    ],
)
def test_what_names_no_image_is_refused(place: str) -> None:
    with pytest.raises(UsageError) as caught:
        subjects.observe(f"registry:{place}")
    assert "secret" not in repr(vars(caught.value))


# What is not a manifest


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (Reply(headers={"Content-Type": "text/html"}), "the registry gives an unexpected answer"),
        (Reply(body=b"<html>"), "a document of the image is damaged"),
        (Reply(body=b""), "a document of the image is damaged"),
        (Reply(body=b"[" * 100_000), "a document of the image is damaged"),
        (Reply(body=b"{}"), "a media type is unknown"),
        (Reply(body=b"[]"), "a document is not a manifest"),
        (Reply(body=b'{"mediaType": 1}'), "a media type is unknown"),
        (Reply(body=b" " * (4 << 20) + MANIFEST), "a manifest is too large"),
        (Reply(body=itertools.repeat(b" " * 65536)), "a manifest is too large"),
        (Reply(headers={"Content-Length": "99999"}, body=MANIFEST), "the registry cannot be read"),
        (
            Reply(headers={"Docker-Content-Digest": "sha256:" + "0" * 64}, body=MANIFEST),
            "content does not match its digest",
        ),
        (
            Reply(headers={"Content-Type": images.INDEX}, body=MANIFEST),
            "registry and manifest disagree on the media type",
        ),
        (
            Reply(
                headers={
                    "Content-Type": "application/vnd.docker.distribution.manifest.v1+prettyjws"
                },
                body=b'{"schemaVersion": 1, "fsLayers": [], "signatures": []}',
            ),
            "the manifest is of Docker's schema 1, which has no configuration",
        ),
        (Reply(418), "the registry fails"),
        (Reply(204), "the registry fails"),
        (Reply(206, body=MANIFEST), "the registry fails"),
        (Reply(404, body=b"\x1b[31m"), "the registry does not have this"),
        (Reply(403, body=b'{"errors": [{"code": "DENIED"}]}'), "the registry refuses access"),
        (Reply(raw=[b"220 ftp\r\n"]), "the registry cannot be read"),
        (Reply(raw=[b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200]), "the registry cannot be read"),
        (Reply(raw=[b"HTTP/1.1 200 " + b"O" * 99999]), "the registry cannot be read"),
        (
            Reply(raw=[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"]),
            "the registry cannot be read",
        ),
    ],
)
def test_an_answer_that_is_no_manifest_is_refused(server: Server, reply: Reply, what: str) -> None:
    server.answers[PATH] = reply
    assert refused(server, ToolmatrixError).what == what


def test_a_manifest_of_another_digest_is_refused(server: Server) -> None:
    name = "sha256:" + "1" * 64
    server.manifest("app", MANIFEST, images.MANIFEST, name)
    with pytest.raises(SubjectError, match="does not match its digest"):
        subjects.observe(f"registry://{server.host}/app@{name}")


def test_an_index_names_what_is_not_there(server: Server) -> None:
    other = images.image({"b": b""}, platform="linux/arm64")
    server.manifest("app", images.index(MADE, other), images.INDEX, "1")
    subject = f"registry://{server.host}/app:1"
    assert subjects.observe(subject, "linux/amd64").digest == MADE.entry["digest"]
    with pytest.raises(SubjectError) as caught:
        subjects.observe(subject, "linux/arm64")
    assert caught.value.what == "the registry does not have this"
    assert other.entry["digest"] in caught.value.expected


def test_an_index_in_circles_ends(server: Server) -> None:
    """A circle cannot be made of digests, so one that is none stands in: what comes is not what was asked for."""
    inner = {"mediaType": images.INDEX, "digest": "sha256:" + "2" * 64, "size": 0}
    data = images.as_json({"mediaType": images.INDEX, "manifests": [inner]})
    data = images.as_json({**json.loads(data), "manifests": [inner | {"size": len(data)}]})
    server.manifest("app", data, images.INDEX, "1", str(inner["digest"]))
    assert refused(server, SubjectError).what.startswith("content does not have the size")


def test_an_index_that_names_too_many_is_refused(server: Server) -> None:
    """Nothing of it is asked for."""
    listed = [MADE.entry | {"digest": f"sha256:{number:064x}"} for number in range(2000)]
    data = images.as_json({"mediaType": images.INDEX, "manifests": listed})
    server.manifest("app", data, images.INDEX, "1")
    assert refused(server, SubjectError).what == "the index is too long"
    assert len([one for one in server.asked if one.method == "GET"]) == 1


# What is not the blob


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            MADE.layers[1].replace(b"1" * 9, b"2" * 9),
            "content does not match its digest",
        ),
        (MADE.layers[1] + b"\0", "content does not have the size of its descriptor"),
        (MADE.layers[1][:5000], "content does not have the size of its descriptor"),
        (MADE.layers[1][:-512], "content does not have the size of its descriptor"),
        (
            itertools.chain([MADE.layers[1]], itertools.repeat(b"\0" * 4096)),
            "content does not have the size of its descriptor",
        ),
    ],
)
def test_a_blob_that_is_another_is_refused(server: Server, body: Any, what: str) -> None:
    server.answers[f"/v2/app/blobs/{LAYER}"] = Reply(body=body)
    assert refused(server, SubjectError).what == what


def broken(whole: bytes, start: int, count: int) -> Reply:
    """A blob from a byte on, of which so many bytes come."""
    status = b"206 Partial Content" if start else b"200 OK"
    head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(whole) - start)
    return Reply(raw=[head, whole[start : start + count]])


def test_a_blob_goes_on_where_it_broke(server: Server) -> None:
    def answer(asked: Asked) -> Reply:
        start = int((asked.headers["Range"] or "bytes=0-")[6:-1])
        return broken(MADE.layers[1], start, 5000)

    server.answers[f"/v2/app/blobs/{LAYER}"] = answer
    assert read(server) == "debian12"
    assert server.sent("Range") == [f"bytes={start}-" for start in (5000, 10000, 15000, 20000)]


def test_a_blob_that_comes_no_further_is_left(server: Server) -> None:
    def answer(asked: Asked) -> Reply:
        start = 5000 if asked.headers["Range"] else 0
        return broken(MADE.layers[1], start, 0 if start else 5000)

    server.answers[f"/v2/app/blobs/{LAYER}"] = answer
    assert refused(server).found == "it ended early"
    assert server.sent("Range") == ["bytes=5000-"]


def test_a_blob_that_begins_again_is_left(server: Server) -> None:
    server.answers[f"/v2/app/blobs/{LAYER}"] = broken(MADE.layers[1], 0, 5000)
    assert refused(server).found == "it ended early"


# Waiting


def stalled(server: Server, *pieces: bytes) -> Iterator[bytes]:
    """Some bytes, and then nothing until the test is over."""
    yield from pieces
    server.stop.wait(30)


def dripped(server: Server, *pieces: bytes) -> Iterator[bytes]:
    """Some bytes, and then one at a time."""
    yield from pieces
    while not server.stop.wait(0.05):
        yield b"a"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n"


@pytest.mark.parametrize("pieces", [(b"",), (b"HTTP/1.1 200 OK\r\nConte",), (HEAD,), (HEAD, b"{")])
@pytest.mark.parametrize("path", [PATH, f"/v2/app/blobs/{LAYER}"])
def test_a_registry_that_stalls_is_left(
    server: Server, path: str, pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(http.TIMEOUT, "read", 0.5)
    server.answers[path] = lambda _: Reply(raw=stalled(server, *pieces))
    assert refused(server).found == "it stopped answering"


@pytest.mark.parametrize("path", [PATH, f"/v2/app/blobs/{LAYER}"])
def test_a_body_that_drips_is_left(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PATIENCE", 0.5)
    server.answers[path] = lambda _: Reply(raw=dripped(server, HEAD))
    assert refused(server).what == "the registry is too slow"


def test_a_registry_that_is_not_there_is_told(docker: Path) -> None:
    with hostile.running() as gone:
        pass
    assert refused(gone).found == "Connection refused"
    assert docker.is_dir()


def test_a_registry_that_is_busy_is_asked_again(server: Server) -> None:
    good = Reply(body=MANIFEST)
    answers = iter([Reply(503), Reply(429, {"Retry-After": "0"}), good])
    server.answers[PATH] = lambda _: next(answers)
    assert read(server) == "debian12"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_registry_that_stays_busy_is_left(server: Server, status: int) -> None:
    body = itertools.chain([b'{"errors": [{"code": "TOO"}]}'], itertools.repeat(b" " * 4096))
    server.answers[PATH] = lambda _: Reply(status, body=body)
    assert refused(server).found == f"{status}"
    assert len([one for one in server.asked if one.path == PATH]) == 1 + http.RETRIES


def test_a_registry_that_asks_for_an_hour_is_left_at_once(server: Server) -> None:
    server.answers[PATH] = Reply(429, {"Retry-After": "3600"})
    assert refused(server).found == "it asks for a retry in 3600"
    assert len([one for one in server.asked if one.path == PATH]) == 1


@pytest.mark.parametrize("after", ["soon", "-1", "9" * 5000, "Sun, 99 Foo 2020"])
def test_a_time_that_is_none_is_an_error_or_a_retry(server: Server, after: str) -> None:
    server.answers[PATH] = Reply(429, {"Retry-After": after})
    refused(server)


# Redirects


def moved(place: str, status: int = 307) -> Reply:
    """A redirect."""
    return Reply(status, {"Location": place})


def test_a_blob_on_another_host_gets_no_credentials(server: Server, docker: Path) -> None:
    account(docker, server)
    asks_basic(server)
    with hostile.running() as storage:
        storage.answers["/store"] = Reply(body=MADE.layers[1])
        server.answers[f"/v2/app/blobs/{LAYER}"] = moved(f"{storage.url}/store?signature=1")
        assert read(server) == "debian12"
        assert [one.path for one in storage.asked if one.method == "GET"] == ["/store?signature=1"]
        assert (storage.sent("Authorization"), server.sent("Authorization")[0]) == ([], BASIC)


def test_credentials_do_not_come_back_after_another_host(server: Server, docker: Path) -> None:
    account(docker, server)
    asks_basic(server)
    with hostile.running() as other:
        other.answers["/back"] = moved(f"{server.url}/here")
        server.answers["/here"] = Reply(body=MADE.layers[1])
        server.answers[f"/v2/app/blobs/{LAYER}"] = moved(f"{other.url}/back", 302)
        assert read(server) == "debian12"
    assert [one.headers["Authorization"] for one in server.asked if one.path == "/here"] == [None]


def test_a_host_that_a_redirect_leads_to_gets_no_credentials_for_asking(
    server: Server, docker: Path
) -> None:
    account(docker, server)
    with hostile.running() as thief:
        challenge = f'Bearer realm="{thief.url}/token", Basic realm="x"'
        thief.answers["/store"] = Reply(401, {"WWW-Authenticate": challenge})
        server.answers[f"/v2/app/blobs/{LAYER}"] = moved(f"{thief.url}/store")
        assert refused(server, AccessDenied).what == "the registry refuses access"
        assert thief.sent("Authorization") == []
        assert {one.path for one in thief.asked if one.method == "GET"} == {"/store"}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw=[b"220 ftp\r\n"]),
        Reply(raw=[b""]),
        Reply(503),
        Reply(403, body=b"?"),
        Reply(raw=[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"]),
    ],
)
def test_what_an_address_carries_is_not_told(server: Server, reply: Reply) -> None:
    """Storage is reached by addresses that let in whoever has them."""
    with hostile.running() as storage:
        storage.answers["/store"] = reply
        server.answers[f"/v2/app/blobs/{LAYER}"] = moved(f"{storage.url}/store?key=secret")
        refused(server, ToolMissing)


def test_a_proxy_of_the_environment_is_used(
    server: Server, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is one that nobody can look up, so only a proxy can answer."""
    (docker / "etc").mkdir()
    told = {"insecure-registries": ["registry.invalid"]}
    (docker / "etc" / "daemon.json").write_text(json.dumps(told))
    monkeypatch.setenv("http_proxy", f"http://me:secret@{server.host}")
    for path, answer in list(server.answers.items()):
        server.answers[f"http://registry.invalid{path}"] = answer
    found = subjects.observe("registry://registry.invalid/app:1")
    assert found.digest == MADE.entry["digest"]
    assert {*server.sent("Proxy-Authorization")} == {BASIC}
    assert server.sent("Authorization") == []


def asks_basic(server: Server) -> None:
    """Let the manifest ask for an account."""
    good = server.answers[PATH]
    challenge = Reply(401, {"WWW-Authenticate": 'Basic realm="x"'})

    def answer(asked: Asked) -> Any:
        return good if asked.headers["Authorization"] == BASIC else challenge

    server.answers[PATH] = answer


@pytest.mark.parametrize(
    "place",
    [
        *("file:///etc/passwd", "ftp://localhost/x", "http://192.0.2.1/x", "http://example.com/x"),
        *("", "http://", "//[", "http://[::1", "data:,x", "http://me:secret@localhost/x"),
        *("https://", "\x00", "http://localhost@192.0.2.1/x"),
    ],
)
@pytest.mark.parametrize("path", [PATH, f"/v2/app/blobs/{LAYER}"])
def test_addresses_that_are_not_followed(server: Server, path: str, place: str) -> None:
    """An empty place is the address itself, which goes in circles."""
    server.answers[path] = moved(place)
    assert refused(server).what in (
        "the registry redirects to an address that is not allowed",
        "the registry redirects in circles",
    )


def test_redirects_in_circles_end(server: Server) -> None:
    server.answers[PATH] = moved(PATH)
    assert refused(server).what == "the registry redirects in circles"
    asked = [one for one in server.asked if one.path == PATH]
    assert len(asked) == 1 + http.MOST_REDIRECTS


def test_encryption_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registries.need("openssl")
    certificate = registries.certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    with ExitStack() as stack:
        secure = stack.enter_context(hostile.running(certificate))
        plain = stack.enter_context(hostile.running())
        secure.serve("app", MADE)
        assert read(secure) == "debian12"
        for place, path in ((f"{plain.url}/x", PATH), (f"{plain.url}/x", f"/v2/app/blobs/{LAYER}")):
            secure.answers[path] = moved(place)
            assert refused(secure).found == f"`http://{plain.host}`"
        assert plain.asked == []


# Tokens


def asks_token(server: Server, realm: str, extra: str = "") -> None:
    """Let everything of the registry ask for the token `t`."""
    challenge = Reply(
        401,
        {"WWW-Authenticate": f'Bearer realm="{realm}",service="s",scope="a:b:pull,push"{extra}'},
    )
    for path, good in list(server.answers.items()):
        if path.startswith("/v2/"):

            def answer(asked: Asked, good: Any = good) -> Any:
                return good if asked.headers["Authorization"] == "Bearer t" else challenge

            server.answers[path] = answer


@pytest.mark.parametrize("key", ["token", "access_token"])
def test_a_token_is_fetched_without_an_account(server: Server, key: str) -> None:
    server.answers["/token"] = Reply(body=json.dumps({key: "t"}).encode())
    asks_token(server, f"{server.url}/token")
    assert read(server) == "debian12"
    asked = [one for one in server.asked if one.path.startswith("/token")]
    assert [one.path for one in asked] == [
        "/token?service=s&client_id=toolmatrix&scope=a%3Ab%3Apull%2Cpush"
    ]


def test_a_token_service_gets_the_account_and_the_storage_nothing(
    server: Server, docker: Path
) -> None:
    account(docker, server)
    with hostile.running() as service:
        service.answers["/token"] = Reply(body=b'{"token": "t"}')
        asks_token(server, f"{service.url}/token?x=1")
        assert read(server) == "debian12"
        assert service.sent("Authorization") == [BASIC]
        assert service.asked[0].path.startswith("/token?x=1&service=s")
        assert {*server.sent("Authorization")} == {"Bearer t"}


def test_an_identity_token_is_exchanged(server: Server, docker: Path) -> None:
    account(docker, server, auth=base64.b64encode(b"me:").decode(), identitytoken="secret")
    server.answers["/token"] = Reply(body=b'{"access_token": "t"}')
    asks_token(server, f"{server.url}/token")
    assert read(server) == "debian12"
    asked = [one for one in server.asked if one.path == "/token"]
    form = "grant_type=refresh_token&refresh_token=secret"
    assert [(one.method, one.body) for one in asked] == [
        (
            "POST",
            f"service=s&client_id=toolmatrix&{form}&scope=a%3Ab%3Apull%2Cpush".encode(),
        )
    ]


def test_a_token_of_the_configuration_is_used(server: Server, docker: Path) -> None:
    account(docker, server, registrytoken="t")
    asks_token(server, "http://192.0.2.1/")
    assert read(server) == "debian12"


def test_a_token_that_ran_out_is_fetched_anew(server: Server) -> None:
    tokens = itertools.count()
    server.answers["/token"] = lambda _: Reply(body=b'{"token": "t%d"}' % next(tokens))
    challenge = Reply(401, {"WWW-Authenticate": f'Bearer realm="{server.url}/token"'})
    for path, wanted in ((PATH, "t0"), (f"/v2/app/blobs/{LAYER}", "t1")):
        good = server.answers[path]

        def answer(asked: Asked, good: Any = good, wanted: str = wanted) -> Any:
            return good if asked.headers["Authorization"] == f"Bearer {wanted}" else challenge

        server.answers[path] = answer
    assert read(server) == "debian12"
    asked = [one.path for one in server.asked if one.path.startswith("/token")]
    assert asked[0].endswith("scope=repository%3Aapp%3Apull")


@pytest.mark.parametrize(
    "realm", ["http://192.0.2.1/token", "file:///etc/passwd", "", "token", "http://[", "https://"]
)
def test_a_realm_that_is_not_followed_gets_nothing(
    server: Server, docker: Path, realm: str
) -> None:
    account(docker, server)
    asks_token(server, realm)
    assert refused(server).what == "the registry redirects to an address that is not allowed"
    assert server.sent("Authorization") == []


@pytest.mark.parametrize("identity", [False, True])
def test_a_token_service_that_sends_on_passes_no_account_on(
    server: Server, docker: Path, identity: bool
) -> None:
    account(docker, server, **({"identitytoken": "secret"} if identity else {}))
    with hostile.running() as other:
        other.answers["/token"] = Reply(body=b'{"token": "t"}')
        server.answers["/token"] = moved(f"{other.url}/token")
        asks_token(server, f"{server.url}/token")
        if identity:
            refused(server, AccessDenied)
            assert other.asked == []
        else:
            assert read(server) == "debian12"
        assert other.sent("Authorization") == []


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(401), Reply(403), Reply(500), Reply(404)),
        *(Reply(body=one) for one in (b"{}", b"[]", b'{"token": 1}', b'{"token": ""}')),
        Reply(body=b'{"token": "a\\r\\nX-Evil: 1"}'),
    ],
)
def test_a_service_without_a_token_ends_it(server: Server, docker: Path, reply: Reply) -> None:
    account(docker, server)
    server.answers["/token"] = reply
    asks_token(server, f"{server.url}/token")
    assert refused(server, AccessDenied).what == "the registry refuses access"


@pytest.mark.parametrize(
    "reply", [Reply(body=b"<html>"), Reply(body=itertools.repeat(b" " * 65536))]
)
def test_a_service_that_answers_garbage_ends_it(server: Server, reply: Reply) -> None:
    server.answers["/token"] = reply
    asks_token(server, f"{server.url}/token")
    refused(server, SubjectError)


@pytest.mark.parametrize(
    "challenge",
    [
        *('Basic realm="x"', 'Bearer realm="{}/token"', "Negotiate", "", "Bearer", "\xff", "=,=,"),
        *('Bearer realm="', "Basic, Bearer", 'Digest realm="x"', "a=b", "," * 5000),
    ],
)
def test_a_registry_that_always_asks_is_left(server: Server, docker: Path, challenge: str) -> None:
    account(docker, server)
    server.answers["/token"] = Reply(body=b'{"token": "t"}')
    header = {"WWW-Authenticate": challenge.format(server.url)} if challenge else {}
    server.answers[PATH] = Reply(401, header)
    refused(server, ToolMissing)
    assert len([one for one in server.asked if one.path == PATH]) <= 2


def test_basic_beside_other_schemes_is_found(server: Server, docker: Path) -> None:
    account(docker, server)
    asks_basic(server)
    good = server.answers[PATH]

    def answer(asked: Asked) -> Any:
        reply = good(asked)  # type: ignore[operator]
        many = {"WWW-Authenticate": 'Negotiate, Basic realm="a, b", Digest qop="auth"'}
        return reply._replace(headers=many) if reply.status == 401 else reply

    server.answers[PATH] = answer
    assert read(server) == "debian12"


HONEST = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
    images.MANIFEST.encode(),
    len(MANIFEST),
    MANIFEST,
)


def test_damage_anywhere_gives_an_image_or_one_error(server: Server) -> None:
    @settings(max_examples=examples(80), deadline=None)
    @given(
        place=st.integers(0, len(HONEST) - 1),
        data=st.binary(min_size=1, max_size=20),
        cut=st.booleans(),
    )
    def damage(place: int, data: bytes, cut: bool) -> None:
        raw = HONEST[:place] + data + (b"" if cut else HONEST[place + len(data) :])
        server.answers[PATH] = Reply(raw=[raw])
        with suppress(SubjectError, ToolMissing):
            read(server)

    damage()


def test_waiting_counts_as_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is in time, and all together are not."""
    monkeypatch.setattr(transport, "PATIENCE", 0.5)

    def late(_: Asked) -> Reply:
        time.sleep(0.2)
        return Reply(503)

    server.answers[PATH] = late
    assert refused(server).what == "the registry is too slow"
