"""Versions that libraries of CUDA have of themselves: parts of real ones, one that is installed, and damage."""

from __future__ import annotations

import importlib.metadata
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.engine import docker
from tests.images.images import link, program
from tests.inspection.libraries import CAPTURED, captured, library
from tests.inspection.test_observe import seen, told
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN
from toolmatrix.inspection import elf
from toolmatrix.inspection.elf import Elf
from toolmatrix.judging import images
from toolmatrix.judging.expectations import parse_expectation

if TYPE_CHECKING:
    import tarfile

    Files = dict[str, bytes | tarfile.TarInfo]


def read(data: bytes) -> Elf:
    return elf.read(data[:64], io.BytesIO(data[64:]), len(data), None)


@pytest.mark.parametrize("one", CAPTURED, ids=lambda one: one["wheel"])
def test_a_library_tells_the_version_of_its_wheel(one: dict[str, Any]) -> None:
    found = read(library(**one))
    assert (found.damaged, found.dynamic.soname) == ("", one["soname"])
    assert found.version == tuple(one["tells"])
    wheel = one["wheel"].partition("==")[2]
    assert wheel.startswith(f"{one['tells'][1]}.") or one["tells"][1] in wheel


def test_the_runtime_that_is_installed_tells_its_version() -> None:
    """The extra `nvcc` brings a real cudart."""
    try:
        wheel = importlib.metadata.distribution("nvidia-cuda-runtime")
    except importlib.metadata.PackageNotFoundError:
        docker.unable("a real cudart is read: `pip install nvidia-cuda-runtime`")
    (path,) = [one for one in wheel.files or () if one.match("libcudart.so.*")]
    series = ".".join(wheel.version.split(".")[:2])
    assert read(path.locate().read_bytes()).version == ("cuda", series)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changed",
    [
        {"soname": "libother.so.12"},
        {"symbol": "cudaDriverGetVersion"},
        {"machine": "arm64"},
        {"parts": {0x63580: "c3"}},
        {"parts": {0x63580: "4885ff740bc7070b2f000031c0c3"}},
    ],
)
def test_what_is_not_as_it_should_be_tells_nothing(changed: dict[str, Any]) -> None:
    one = captured("12.4.127 (x86_64)")
    assert read(library(**one)).version == ("cuda", "12.4")
    found = read(library(**one | changed))
    assert (found.version, found.damaged) == (None, "")


def test_two_functions_that_store_different_numbers_tell_nothing() -> None:
    one = captured("12.4.127 (x86_64)")
    start, inner = one["parts"]
    code = bytes.fromhex(one["parts"][start].replace(" ", ""))
    other = inner + 0x40
    call = b"\xe8" + (other - (start + len(code) + 5)).to_bytes(4, "little", signed=True)
    stored = one["parts"][inner].replace("082f", "122f")
    parts = {start: (code + call).hex(), inner: one["parts"][inner], other: stored}
    assert read(library(**one | {"parts": parts})).version is None


@settings(max_examples=examples(200), deadline=None)
@given(
    one=st.sampled_from(CAPTURED),
    place=st.floats(0, 1, exclude_max=True),
    data=st.binary(min_size=1, max_size=16),
    cut=st.booleans(),
)
def test_damage_is_no_other_version(
    one: dict[str, Any], place: float, data: bytes, cut: bool
) -> None:
    """Whatever is overwritten or cut off: a version or none, and never an exception."""
    whole = library(**one)
    at = int(place * len(whole))
    damaged = whole[:at] if cut else whole[:at] + data + whole[at + len(data) :]
    found = (
        read(damaged) if damaged.startswith(b"\x7fELF") and len(damaged) >= 64 else Elf(machine="")
    )
    assert found.version is None or found.version[0] == one["tells"][0]


# In images

RUNTIME = library(**captured("11.8.89 (x86_64)"))
UNREAD = library("libcudart.so.11.0")
USER = (
    b"\x7fELF of a test "
    + json.dumps(
        {"machine": "amd64", "needed": ["libcudart.so.11.0"], "runpath": ["/opt/private"]}
    ).encode()
)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"usr/lib/libcudart.so.11.0": RUNTIME}, [("11.8", "library")]),
        ({"opt/hidden/runtime.bin": RUNTIME}, [("11.8", "library")]),
        (
            {
                "opt/app": USER,
                "opt/private/libcudart.so.11.0": link("rt.so"),
                "opt/private/rt.so": RUNTIME,
            },
            [("11.8", "library")],
        ),
        (
            {
                "opt/app": USER,
                "opt/private/libcudart.so.11.0": link("/opt/rt.so"),
                "opt/rt.so": library(""),
            },
            [("11", "soname")],
        ),
        ({"usr/lib/libcudart.so.11.0": UNREAD}, [("11", "soname")]),
        ({"usr/lib/libcudart.so.11.8.89": UNREAD}, [("11.8", "soname")]),
        (
            {
                "usr/lib/libcudart.so.11.0": RUNTIME,
                "bin/a": program("arm64"),
                "bin/b": program("arm64"),
            },
            [],
        ),
    ],
)
def test_a_runtime_is_seen_however_it_is_reached(
    files: Files, found: list[tuple[str, str]]
) -> None:
    assert [(one[0], one[1]) for one in told(seen(files), "cuda")] == found


@pytest.mark.parametrize(
    ("data", "expected", "word"),
    [
        (RUNTIME, "cuda==11.0.*", FAIL),
        (RUNTIME, "cuda==11.8.*", PASS),
        (RUNTIME, "cuda<11.8.1", PASS),
        (UNREAD, "cuda==11.0.*", UNKNOWN),
        (UNREAD, "cuda==11.8.*", UNKNOWN),
        (UNREAD, "cuda==11.*", PASS),
        (UNREAD, "cuda==12.*", FAIL),
    ],
)
def test_a_soname_is_a_major_and_the_library_tells_the_rest(
    cache: str, data: bytes, expected: str, word: str
) -> None:
    inventory = seen({"usr/lib/libcudart.so.11.0": data})
    index = open_index((), {"XDG_CACHE_HOME": cache})
    (found,) = images.judge(inventory, [parse_expectation(expected)], index)
    assert found.word == word
