"""Streams read as files: whole, whatever pieces they come in."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.images.streams import Counted, Forward, Hashed


class Pieces(io.BytesIO):
    """A stream that gives less than was asked for, as pipes and sockets do."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size) if size is not None and size >= 0 else 7)


@given(
    st.binary(max_size=200_000),
    st.lists(st.tuples(st.booleans(), st.integers(0, 90_000)), max_size=20),
)
def test_a_stream_is_read_and_passed_over_as_a_file_is(
    data: bytes, steps: list[tuple[bool, int]]
) -> None:
    file, stream = io.BytesIO(data), Forward(io.BytesIO(data))
    for passes, size in steps:
        if passes:
            file.seek(min(file.tell() + size, len(data)))
            stream.seek(stream.tell() + size)
        else:
            assert stream.read(size) == file.read(size)
        assert stream.tell() == file.tell()


@given(st.binary(max_size=300), st.integers(0, 300))
def test_what_comes_in_pieces_is_read_whole(data: bytes, size: int) -> None:
    stream = Forward(Pieces(data))
    assert stream.read(size) == data[:size]
    assert stream.read(len(data)) == data[size:]


def test_a_stream_does_not_go_back() -> None:
    stream = Forward(io.BytesIO(b"abc"))
    stream.read(2)
    with pytest.raises(OSError, match="back"):
        stream.seek(1)


def test_only_a_stream_that_is_hashed_has_a_digest() -> None:
    counted, hashed = Counted(io.BytesIO(b"abc")), Hashed(io.BytesIO(b"abc"))
    assert (counted.read(), counted.digest, counted.count) == (b"abc", "", 3)
    assert hashed.read() == b"abc"
    assert hashed.digest.startswith("sha256:ba7816bf")
