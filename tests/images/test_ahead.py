"""What a thread reads ahead or beside: the same bytes, and whatever went wrong with them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from toolmatrix.images.layers import Ahead, Beside, read_ahead
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Hashed, Section, Unpacked

DATA = b"0123456789abcdef" * (3 << 16)


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) * 11 + 1])
def test_what_is_read_ahead_is_what_is_there(size: int) -> None:
    data = bytes(size)
    stream = Ahead(io.BytesIO(data))
    assert b"".join(iter(lambda: stream.read(70_000), b"")) == data
    assert stream.read(1) == b""
    stream.close()


def test_reading_ahead_can_be_given_up_and_tells_what_went_wrong() -> None:
    given_up = Ahead(io.BytesIO(bytes(64 << 20)))
    assert len(given_up.read(1)) == 1
    given_up.close()

    class Broken:
        left = 3

        def read(self, size: int, /) -> bytes:
            self.left -= 1
            if not self.left:
                raise OSError("gone")
            return bytes(size)

    broken = Ahead(Broken())
    assert (len(broken.read(1 << 20)), len(broken.read(1 << 20))) == (1 << 20, 1 << 20)
    with pytest.raises(OSError, match="gone"):
        broken.read(1 << 20)
    broken.close()


@pytest.fixture
def layer(tmp_path: Path) -> Iterator[IO[bytes]]:
    """A file of some megabytes."""
    path = tmp_path / "layer"
    path.write_bytes(DATA)
    with path.open("rb") as file:
        yield file


def beside(layer: IO[bytes]) -> tuple[Beside, Unpacked]:
    """A file of which a thread reads all."""
    hashed = Unpacked(Hashed(Section(layer.fileno(), 0, len(DATA))), Budget("layer"))
    made = read_ahead(hashed)
    assert isinstance(made, Beside)
    return made, hashed


def test_what_is_passed_over_is_hashed(layer: IO[bytes]) -> None:
    stream, hashed = beside(layer)
    assert stream.read(4) == DATA[:4]
    stream.skip(len(DATA) - 8)
    assert (stream.read(9), stream.read(9)) == (DATA[-4:], b"")
    assert hashed.digest == f"sha256:{hashlib.sha256(DATA).hexdigest()}"
    stream.close()


def test_a_file_that_changes_while_it_is_read_is_an_error(layer: IO[bytes], tmp_path: Path) -> None:
    stream, _ = beside(layer)
    stream.read(4)
    with (tmp_path / "layer").open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    stream.skip(len(DATA))
    with pytest.raises(OSError, match="changed while"):
        stream.read(1)
    stream.close()


def test_what_the_thread_meets_is_told_at_the_end(layer: IO[bytes]) -> None:
    class Broken:
        def read(self, size: int, /) -> bytes:
            raise EOFError(f"gone, and not {size} bytes")

    stream = Beside(Section(layer.fileno(), 0, len(DATA)), Broken())
    assert stream.read(4) == DATA[:4]
    stream.skip(len(DATA))
    with pytest.raises(EOFError, match="gone"):
        stream.read(1)
    stream.close()
