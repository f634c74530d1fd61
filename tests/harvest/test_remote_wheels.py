"""Wheels at a server that gives ranges, does not, or lies about them."""

from __future__ import annotations

import random
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.harvest import shop
from tests.images import hostile
from tests.images.hostile import Reply
from toolmatrix import http
from toolmatrix.errors import HarvestRefused, IndexFailed, ToolmatrixError
from toolmatrix.harvest import wheel
from toolmatrix.harvest.transport import Session
from toolmatrix.harvest.wheel import RemoteWheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.harvest.shop import File, Give
    from tests.images.hostile import Asked, Server

pytestmark = pytest.mark.process

# What does not deflate, so that places in the file are places in the member.
NOISE = random.Random(13).randbytes(3 << 20)
MEMBERS = {"app/lib.so": NOISE, "app/version.py": b"cuda = '12.4'\n", "app/zeros": bytes(9 << 20)}
WHEEL = shop.wheel("app", "1.0", "cp311-cp311-manylinux_2_17_x86_64", members=MEMBERS)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BACKOFF", 0)
    monkeypatch.setattr(http, "LONGEST_PAUSE", 1)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that has nothing yet."""
    with hostile.running() as found:
        yield found


def remote(
    server: Server,
    give: Give = shop.honest,
    file: File = WHEEL,
    cache: str = "",
    session: Session | None = None,
) -> RemoteWheel:
    """A wheel that lies at a server."""
    shop.stock(server, "app", [file], give)
    return RemoteWheel(session or Session(cache), f"{server.url}/files/{file.name}", file.sha256)


def test_a_member_is_read_without_the_rest(server: Server) -> None:
    session = Session("")
    found = remote(server, session=session)
    assert found.names() == [*MEMBERS, "app-1.0.dist-info/METADATA"]
    assert found.size("app/zeros") == 9 << 20
    assert found.read("app/version.py", 100) == MEMBERS["app/version.py"]
    assert b"Name: app" in found.read("app-1.0.dist-info/METADATA", 1 << 10)
    # The end of the file holds all three.
    assert len(server.asked) == 1
    assert session.bytes == wheel.TAIL


def test_a_stream_that_stops_early_costs_little(server: Server) -> None:
    session = Session("")
    found = remote(server, session=session)
    stream = found.stream("app/lib.so")
    assert next(stream) == NOISE[: 64 << 10]
    stream.close()  # type: ignore[attr-defined]
    assert session.bytes <= wheel.TAIL + wheel.FIRST_PIECE
    assert b"".join(found.stream("app/lib.so")) == NOISE
    assert b"".join(found.stream("app/lib.so")) == NOISE


def test_nothing_is_asked_before_it_is_needed(server: Server) -> None:
    remote(server)
    assert server.asked == []


def test_a_member_beyond_the_limit_is_refused_before_it_is_read(server: Server) -> None:
    found = remote(server)
    with pytest.raises(HarvestRefused, match="`app/zeros` is too large") as refused:
        found.read("app/zeros", 1 << 20)
    assert (refused.value.expected, refused.value.found) == (
        "at most 1048576 bytes",
        "9437184 bytes",
    )
    with pytest.raises(KeyError):
        found.size("app/none")


def test_what_was_read_is_not_asked_again(server: Server, tmp_path: Path) -> None:
    cache = str(tmp_path)
    assert remote(server, cache=cache).read("app/lib.so", 4 << 20) == NOISE
    asked = len(server.asked)
    assert remote(server, cache=cache).read("app/lib.so", 4 << 20) == NOISE
    assert len(server.asked) == asked


def test_a_damaged_piece_in_the_cache_is_let_go(server: Server, tmp_path: Path) -> None:
    cache = str(tmp_path)
    remote(server, cache=cache).read("app/lib.so", 4 << 20)
    for path in tmp_path.rglob("*-*"):
        if not path.name.startswith("tail"):
            path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(HarvestRefused, match="the wheel is damaged"):
        remote(server, cache=cache).read("app/lib.so", 4 << 20)
    assert remote(server, cache=cache).read("app/lib.so", 4 << 20) == NOISE


def everything(_: Asked, data: bytes) -> Reply:
    """A server that does not know ranges."""
    return Reply(body=data)


def no_suffix(asked: Asked, data: bytes) -> Reply:
    """A server that does not count from the end."""
    return Reply(416) if "=-" in asked.headers.get("Range", "") else shop.honest(asked, data)


@pytest.mark.parametrize("give", [everything, no_suffix])
def test_servers_that_know_less_are_read_all_the_same(server: Server, give: Give) -> None:
    found = remote(server, give)
    assert found.read("app/version.py", 100) == MEMBERS["app/version.py"]
    assert found.read("app/lib.so", 4 << 20) == NOISE


def test_a_redirect_is_followed(server: Server) -> None:
    found = remote(server)
    place = server.answers[f"/files/{WHEEL.name}"]
    server.answers["/elsewhere"] = place
    server.answers[f"/files/{WHEEL.name}"] = Reply(302, {"Location": "/elsewhere"})
    assert found.read("app/version.py", 100) == MEMBERS["app/version.py"]


def lying(change: Callable[[Reply, bytes], Reply]) -> Give:
    """A server that answers ranges, but not as it says."""

    def give(asked: Asked, data: bytes) -> Reply:
        reply = shop.honest(asked, data)
        assert isinstance(reply.body, bytes)
        return change(reply, reply.body)

    return give


def elsewhere(reply: Reply, body: bytes) -> Reply:
    """The same bytes, said to be from another place."""
    return reply._replace(headers={"Content-Range": f"bytes 7-{6 + len(body)}/99"})


LIES = {
    "too little of it": lying(lambda reply, body: reply._replace(body=body[: len(body) // 2])),
    "another place": lying(elsewhere),
    "no place": lying(lambda reply, _: reply._replace(headers={})),
    "a place that is none": lying(
        lambda reply, _: reply._replace(headers={"Content-Range": "bytes */*"})
    ),
    "too much": lying(lambda reply, body: reply._replace(body=body * 3)),
    "a page": lambda _asked, _data: Reply(404, body=b"<html>"),
    "a failure": lambda _asked, _data: Reply(500),
    "busy for an hour": lambda _asked, _data: Reply(429, {"Retry-After": "3600"}),
    "circles": lambda asked, _data: Reply(302, {"Location": asked.path}),
    "an end": lambda _asked, data: Reply(
        206,
        {
            "Content-Range": f"bytes {len(data) - wheel.TAIL}-{len(data) - 1}/{len(data)}",
            "Content-Length": str(wheel.TAIL),
        },
        [b"half"],
    ),
}


@pytest.mark.parametrize("give", LIES.values(), ids=LIES)
def test_a_server_that_lies_is_one_error(server: Server, give: Give) -> None:
    found = remote(server, give)
    with pytest.raises(IndexFailed, match="the package index cannot be read") as failed:
        found.names()
    assert failed.value.where is not None
    assert failed.value.where.path == WHEEL.name
    assert failed.value.expected
    assert failed.value.found


def test_an_answer_that_drips_is_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE", 0.2)
    monkeypatch.setattr(http, "SLOWEST", 1 << 20)

    def drip(_asked: Asked, data: bytes) -> Reply:
        span = f"bytes {len(data) - wheel.TAIL}-{len(data) - 1}/{len(data)}"

        def pieces() -> Iterator[bytes]:
            for place in range(1000):
                if server.stop.wait(0.05):
                    return
                yield bytes([place & 255])

        return Reply(206, {"Content-Range": span}, pieces())

    with pytest.raises(IndexFailed, match="cannot be read") as failed:
        remote(server, drip).names()
    assert "KiB a second" in failed.value.expected


def test_a_server_that_says_nothing_is_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(http.TIMEOUT, "read", 0.2)

    def silent(_asked: Asked, _data: bytes) -> Reply:
        server.stop.wait(5)
        return Reply(500)

    with pytest.raises(IndexFailed) as failed:
        remote(server, silent).names()
    assert failed.value.found == "it stopped answering"


def test_a_host_that_is_not_there_is_one_error() -> None:
    with hostile.running() as gone:
        url = gone.url
    with pytest.raises(IndexFailed) as failed:
        RemoteWheel(Session(), f"{url}/app-1.0-py3-none-any.whl").names()
    assert failed.value.found == "Connection refused"


def ends(data: bytes) -> int:
    """Where the record about the directory stands."""
    return data.rindex(b"PK\x05\x06")


def spoiled(place: int, form: str, value: int) -> File:
    """The wheel with another number in that record."""
    data = bytearray(WHEEL.data)
    struct.pack_into(form, data, ends(WHEEL.data) + place, value)
    return shop.File(WHEEL.name, bytes(data))


def entries(change: Callable[[bytearray, int], None]) -> File:
    """The wheel with another first entry of its directory."""
    data = bytearray(WHEEL.data)
    change(data, data.index(b"PK\x01\x02"))
    return shop.File(WHEEL.name, bytes(data))


DAMAGED = {
    "a directory that is larger than the file": spoiled(12, "<L", 0x7FFFFFFF),
    "a directory behind the end": spoiled(16, "<L", 0x7FFFFFFF),
    "no directory": shop.File(WHEEL.name, WHEEL.data[:-100]),
    "no archive": shop.File(WHEEL.name, bytes(1 << 20)),
    "nothing": shop.File(WHEEL.name, b"x"),
    "a member elsewhere": entries(lambda data, at: struct.pack_into("<L", data, at + 42, 12345)),
    "a member behind the end": entries(
        lambda data, at: struct.pack_into("<L", data, at + 42, 0x7FFFFFF0)
    ),
    "an encrypted member": entries(lambda data, at: struct.pack_into("<H", data, at + 8, 1)),
    "a way of packing that nobody knows": entries(
        lambda data, at: struct.pack_into("<H", data, at + 10, 77)
    ),
    "another checksum": entries(lambda data, at: struct.pack_into("<L", data, at + 16, 1)),
}


@pytest.mark.parametrize("file", DAMAGED.values(), ids=DAMAGED)
def test_a_wheel_whose_directory_lies_is_one_error(server: Server, file: File) -> None:
    with pytest.raises(ToolmatrixError) as refused:
        remote(server, file=file).read("app/lib.so", 4 << 20)
    assert isinstance(refused.value, (HarvestRefused, IndexFailed))
    assert refused.value.where is not None


def test_a_bomb_costs_no_more_than_what_is_read(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(64 << 20))
    found = remote(server, file=shop.File(WHEEL.name, path.read_bytes()))
    piece = next(iter(found.stream("zeros")))
    assert 0 < len(piece) <= 64 << 10
