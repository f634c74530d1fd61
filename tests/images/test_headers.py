"""Entries of tar archives: whatever is in one, they are those that tarfile alone reads."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images import images
from toolmatrix.images import streams
from toolmatrix.images.streams import Forward

TYPES = (
    *(tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.CONTTYPE),
)
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
NAMES = st.one_of(
    st.text("ab/._ é\udcff", min_size=1, max_size=8),
    st.integers(90, 300).map(lambda size: "a/" * (size // 2) + "b"),
)

Told = list[tuple[str, bytes, int, str, bytes]]


@st.composite
def members(draw: st.DrawFn) -> tuple[tarfile.TarInfo, bytes]:
    """An entry, and what is in it."""
    made = tarfile.TarInfo(draw(NAMES))
    made.type = draw(st.sampled_from(TYPES))
    made.mode = draw(st.sampled_from((0o644, 0o4755, 0)))
    made.mtime = draw(st.sampled_from((0, 1.5, 1 << 34, -1)))
    made.uid = draw(st.sampled_from((0, 1 << 21, 1 << 30)))
    if made.type in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        made.linkname = draw(NAMES)
    data = draw(st.binary(max_size=1500)) if made.isreg() else b""
    made.size = len(data)
    return made, data


def archive(several: Sequence[tuple[tarfile.TarInfo, bytes]], form: int, everybody: bool) -> bytes:
    """An archive in one of the formats, with a header for all of its entries or without."""
    stream = io.BytesIO()
    common = {"comment": "é"} if everybody else {}
    with tarfile.open(
        fileobj=stream,
        mode="w",
        format=form,
        errors="surrogateescape",
        pax_headers=common,
    ) as tar:
        for member, data in several:
            with suppress(ValueError):  # what this format cannot say
                tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def told(data: bytes) -> Told | str:
    """The entries as they are read here."""
    try:
        return [
            (one.name, one.type, one.mode, one.link, contents(one))
            for one in streams.members(Forward(io.BytesIO(data)))
        ]
    except (tarfile.TarError, OSError, ValueError):
        return "damaged"


def contents(member: streams.Member) -> bytes:
    """All that is in an entry."""
    stream = member.contents
    return b"" if stream is None else images.everything("", 0, stream)


def expected(data: bytes) -> Told | str:
    """The same by tarfile."""
    found: Told = []
    try:
        with tarfile.open(
            fileobj=io.BytesIO(data), mode="r:", encoding="utf-8", errors="surrogateescape"
        ) as tar:
            while (one := tar.next()) is not None:
                file = tar.extractfile(one) if one.isreg() else None
                held = file.read() if file is not None else b""
                if len(held) != one.size and one.isreg():
                    return "damaged"
                kind = tarfile.REGTYPE if one.isreg() else one.type
                found.append((one.name, kind, one.mode, one.linkname, held))
    except (tarfile.TarError, OSError, ValueError):
        return "damaged"
    return found


def alike(found: Told | str) -> Told | str:
    """Without what nothing here asks for: the link of what is none, and how files are marked."""
    if isinstance(found, str):
        return found
    links = (tarfile.SYMTYPE, tarfile.LNKTYPE)
    return [
        (
            name,
            tarfile.REGTYPE if kind in tarfile.REGULAR_TYPES else kind,
            mode,
            link if kind in links else "",
            held,
        )
        for name, kind, mode, link, held in found
    ]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(members(), max_size=5), st.sampled_from(FORMATS), st.booleans())
def test_entries_are_those_of_tarfile(
    several: list[tuple[tarfile.TarInfo, bytes]], form: int, everybody: bool
) -> None:
    data = archive(several, form, everybody)
    assert alike(told(data)) == alike(expected(data))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(members(), min_size=1, max_size=3),
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 511), st.integers(0, 255)), max_size=2),
    st.integers(0, 4000),
)
def test_a_damaged_archive_is_what_it_is_to_tarfile(
    several: list[tuple[tarfile.TarInfo, bytes]],
    form: int,
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    data = bytearray(archive(several, form, everybody=False))
    for place, value in changes:
        data[place] = value
    whole = bytes(data[: len(data) - cut])
    assert alike(told(whole)) == alike(expected(whole))


def test_a_sparse_file_is_as_large_as_it_says() -> None:
    stream = io.BytesIO()
    made = tarfile.TarInfo("sparse")
    made.size = 3
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        made.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.name": "real",
            "GNU.sparse.map": "1000,3",
            "GNU.sparse.size": "2000",
        }
        tar.addfile(made, io.BytesIO(b"abc"))
        tar.addfile(tarfile.TarInfo("after"))
    found = told(stream.getvalue())
    assert [(one[0], one[4]) for one in found if isinstance(one, tuple)] == [
        ("real", bytes(1000) + b"abc" + bytes(997)),
        ("after", b""),
    ]
