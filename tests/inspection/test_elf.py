"""ELF files made by real compilers: read as pyelftools reads them, large and damaged ones too."""

from __future__ import annotations

import io
import re
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.compilation.real import program
from tests.images import images
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import dynamic, elf
from toolmatrix.inspection.observe import Look, observe

if TYPE_CHECKING:
    from toolmatrix.inspection.elf import Elf

pytestmark = pytest.mark.process

VERSIONS = re.compile(rb"GLIBC_([\d.]+)\0")
SOURCE = "#include <stdio.h>\nchar c = 'a';\nint f(void) { return puts(&c); }\n"
LINK = ("-Wl,-soname,libf.so.2", "-Wl,-rpath,$ORIGIN/../lib:/opt/lib", "-Wl,--no-as-needed", "-lm")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with libraries of one source, built in several ways."""
    program("g++")  # whose package brings gcc
    folder = tmp_path_factory.mktemp("elf")
    (folder / "f.c").write_text(SOURCE)
    ways = {
        "plain": ("-O1",),
        "debug": ("-g", "-funsigned-char"),
        "recorded": ("-frecord-gcc-switches", "-fsigned-char", "-O2"),
        "zipped": ("-g", "-gz", "-fsigned-char"),
        "old": ("-Wl,--disable-new-dtags",),
    }
    for name, flags in ways.items():
        args = ["gcc", *flags, "-shared", "-fPIC", "f.c", "-o", name, *LINK]
        subprocess.run(args, cwd=folder, check=True)
    return folder


def read(data: bytes, told: re.Pattern[bytes] | None = None) -> Elf:
    """What is read of an ELF file."""
    return elf.read(data[:64], io.BytesIO(data[64:]), len(data), told)


def test_sections_that_overlap_are_looked_at_once() -> None:
    """A file of which each of 65,535 headers of sections, in one place, says that it holds device code."""
    header = struct.pack(
        "<4sBBB9xHHIIIIIHHHHHH", elf.MAGIC, 1, 1, 1, 3, 3, 1, 0, 0, 52, *[0] * 4, 0, 65535, 0
    )
    section = struct.pack("<IIIIII", 0, 1, 2, 0, 0, 1 << 20)
    data = header + section + bytes(1 << 20)
    assert sum(map(len, elf._data_of(io.BytesIO(data), len(data)))) == len(data)
    assert read(data).device == ()


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_file_is_read_in_its_place_as_when_it_passes(built: Path, data: st.DataObject) -> None:
    whole = bytearray(
        (built / data.draw(st.sampled_from(["debug", "recorded", "zipped"]))).read_bytes()
    )
    # What tells where the parts of a file are: its header, and the tables of its segments and sections.
    places = (*range(5, 1024), *range(len(whole) - 2048, len(whole)))
    for place, byte in data.draw(
        st.lists(st.tuples(st.sampled_from(places), st.integers(0, 255)), max_size=4)
    ):
        whole[place] = byte
    held = bytes(whole[: data.draw(st.one_of(st.just(len(whole)), st.integers(64, len(whole))))])
    path = built / "in-place"
    path.write_bytes(b"before" + held + b"behind")
    with path.open("rb") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(elf, "_AT_ONCE", 0)
        file.seek(len(b"before") + 64)
        assert elf.read(held[:64], file, len(held), VERSIONS) == read(held, VERSIONS)


def test_what_the_loader_reads(built: Path) -> None:
    found = read((built / "plain").read_bytes())
    held = found.dynamic
    assert (held.soname, held.needed) == ("libf.so.2", ("libm.so.6", "libc.so.6"))
    assert (held.runpath, held.rpath) == (("$ORIGIN/../lib", "/opt/lib"), ())
    assert (found.options, found.char, found.damaged, found.partial) == ((), "", "", False)
    old = read((built / "old").read_bytes()).dynamic
    assert (old.rpath, old.runpath) == (("$ORIGIN/../lib", "/opt/lib"), ())


def test_options_and_the_sign_of_char(built: Path) -> None:
    debug = read((built / "debug").read_bytes())
    assert debug.char == "unsigned"
    assert ("-funsigned-char", "DW_AT_producer") in debug.options
    assert read((built / "zipped").read_bytes()).char == "signed"
    recorded = read((built / "recorded").read_bytes())
    assert {("-fsigned-char", ".GCC.command.line"), ("-O2", ".GCC.command.line")} <= {
        *recorded.options
    }


def test_the_same_as_pyelftools_for_libraries_of_this_machine() -> None:
    folders = sorted(Path("/usr/lib").glob("*-linux-gnu*"))
    paths = [one for folder in folders for one in sorted(folder.glob("*.so*")) if one.is_file()]
    paths = [one for one in paths if one.stat().st_size < 4 << 20][:60]
    compared = 0
    for path in paths:
        data = path.read_bytes()
        if data.startswith(dynamic.MAGIC):
            compared += 1
            assert dynamic.read(io.BytesIO(data)) == by_pyelftools(data), path
    assert compared or not folders


def by_pyelftools(data: bytes) -> dynamic.Dynamic:
    """The same out of another reader."""
    file = ELFFile(io.BytesIO(data))
    told: dict[str, list[str]] = {"needed": [], "soname": [], "rpath": [], "runpath": []}
    for segment in file.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags():  # type: ignore[attr-defined]
            field = (
                tag.entry.d_tag.removeprefix("DT_").lower()
                if isinstance(tag.entry.d_tag, str)
                else ""
            )
            if field in told:
                told[field].append(getattr(tag, field))
    loaders = [
        segment.get_interp_name()  # type: ignore[attr-defined]
        for segment in file.iter_segments("PT_INTERP")
    ]
    gives: list[bytes] = []
    asks: list[tuple[str, str]] = []
    for section in file.iter_sections():
        if isinstance(section, GNUVerDefSection):
            gives += [next(some).name.encode() for _, some in section.iter_versions()]
        if isinstance(section, GNUVerNeedSection):
            for library, some in section.iter_versions():
                names = [one.name.encode() for one in some if not one.entry.vna_flags & 2]
                asks += [(str(library.name), "_".join(one)) for one in dynamic.newest(names)]
    folders = {
        key: tuple(part for one in told[key] for part in one.split(":") if part)
        for key in ("rpath", "runpath")
    }
    return dynamic.Dynamic(
        needed=tuple(told["needed"]),
        soname="".join(told["soname"][:1]),
        interpreter="".join(loaders),
        rpath=folders["rpath"],
        runpath=folders["runpath"],
        gives=dynamic.newest(gives),
        asks=tuple(asks),
    )


def test_a_large_file_is_read_by_its_head_its_dynamic_section_and_its_end(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (built / "plain").read_bytes()
    whole = read(data)
    monkeypatch.setattr(elf, "_WHOLE", 4096)
    monkeypatch.setattr(elf, "BLOCK", 4096)
    monkeypatch.setattr(elf, "_TAIL", 512)
    found = read(data)
    assert (found.dynamic, found.partial) == (whole.dynamic, True)


def test_a_library_of_an_image_is_found_by_its_program(built: Path) -> None:
    files = {
        "opt/bin/app": (built / "plain").read_bytes(),
        "opt/lib/libm.so.6": (built / "recorded").read_bytes(),
    }
    look = Look(Budget("image.tar"))
    inventory = observe(*images.from_archive(images.saved(images.image(files)), look=look))
    found = {one.name: one.found for one in inventory.sonames}
    assert found == {"libm.so.6": "opt/lib/libm.so.6", "libc.so.6": ""}
    assert "flag:-fsigned-char" in inventory.features


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    name=st.sampled_from(["plain", "debug", "recorded", "zipped"]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=12),
    head=st.lists(st.tuples(st.integers(4, 63), st.integers(0, 255)), max_size=3),
    end=st.floats(0, 1),
)
def test_damage_anywhere_is_told_and_raises_nothing(
    built: Path,
    name: str,
    changes: list[tuple[float, bytes]],
    head: list[tuple[int, int]],
    end: float,
) -> None:
    data = bytearray((built / name).read_bytes())
    for share, piece in changes:
        place = int(share * (len(data) - 9))
        data[place : place + len(piece)] = piece
    for place, value in head:
        data[place] = value
    read(bytes(data[: max(64, int(end * len(data)))]))
