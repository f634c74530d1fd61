"""A replay's results beside the driver's own."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compilation.plans import plan, stage
from tests.compilation.test_driver import fake
from toolmatrix.compilation.drivers.dry_run import dry_run
from toolmatrix.compilation.replay import replay
from toolmatrix.compilation.verify import compare, verify
from toolmatrix.errors import ToolMissing, UsageError

ONE = plan(stage(0, ["k.cu"], ["w/a"]), stage(1, ["w/a"], ["k.o"]))


def elf(**sections: bytes) -> bytes:
    """A 64-bit little-endian ELF file with some sections, their names at the end."""
    header = 64
    names = b"\0" + b"".join(b"." + name.encode() + b"\0" for name in sections) + b".shstrtab\0"
    contents = [*sections.values(), names]
    table = header + sum(map(len, contents))
    rows = [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    at, name_at = header, 1
    for name, content in zip([*sections, "shstrtab"], contents, strict=True):
        rows.append(struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, at, len(content), 0, 0, 1, 0))
        at, name_at = at + len(content), name_at + len(name) + 2
    start = b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + struct.pack("<Q", table)
    tail = struct.pack("<HHH", 64, len(rows), len(rows) - 1)
    return start.ljust(58, b"\0") + tail + b"".join(contents) + b"".join(rows)


def test_equal_contents_are_identical() -> None:
    assert compare("k.o", b"same", b"same").identical


def test_the_section_with_the_first_difference_is_named_with_its_text() -> None:
    ours = elf(text=b"code", strtab=b"\0tmpxft_1_k.cudafe1.cpp\0", data=b"1")
    theirs = elf(text=b"code", strtab=b"\0tmpxft_2_k.cudafe1.cpp\0", data=b"2")
    found = compare("k.o", ours, theirs)
    assert not found.identical
    assert found.sections == (".strtab", ".data")
    assert found.offset == 64 + 4 + 1 + len("tmpxft_")
    assert (found.ours, found.theirs) == ("tmpxft_1_k.cudafe1.cpp", "tmpxft_2_k.cudafe1.cpp")
    assert found.why == "it contains names of temp files"


def test_sizes_are_told_where_they_differ() -> None:
    found = compare("k.o", b"\0\1", b"\0\1\2")
    assert (found.sections, found.offset, found.why) == ((), 2, "2 bytes against 3")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_contents_can_be_compared(ours: bytes, theirs: bytes) -> None:
    for prefix in (b"", b"\x7fELF\x02\x01", elf(text=b"x")):
        found = compare("k.o", prefix + ours, prefix + theirs)
        assert found.identical == (ours == theirs)
        if not found.identical:
            start = found.offset
            assert (prefix + ours)[:start] == (prefix + theirs)[:start]
            assert (prefix + ours)[start : start + 1] != (prefix + theirs)[start : start + 1]


@given(st.data())
def test_a_damaged_elf_file_is_no_obstacle(data: st.DataObject) -> None:
    whole = bytearray(elf(text=b"code", data=b"1"))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=8)):
        whole[at] = data.draw(st.integers(0, 255))
    compare("k.o", bytes(whole), elf(text=b"code", data=b"2"))


@pytest.mark.process
@pytest.mark.parametrize(("made", "identical"), [("same", True), ("other", False)])
def test_the_driver_builds_where_the_replay_did(tmp_path: Path, made: str, identical: bool) -> None:
    program = fake(tmp_path / "bin", "nvcc", f"printf {made} > k.o")
    dry = dry_run(["k.cu"], driver=str(program), work="w", cwd=tmp_path)
    (tmp_path / "k.o").write_text("same")
    (tmp_path / "w").mkdir()
    for name in ("a", "kept"):
        (tmp_path / "w" / name).touch()
    (verdict,) = verify(dry, replay(ONE, work="w"), cwd=tmp_path)
    assert verdict.path == "k.o"
    assert verdict.identical == identical
    assert (tmp_path / "k.o").read_text() == made
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["kept"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "steady"),
    [
        ("printf other > k.o", True),
        ("echo run >> runs; cat runs > k.o", False),
        ("test ! -e w/temp || exit 9; touch w/temp; printf other > k.o", True),
    ],
)
def test_a_driver_is_asked_twice_before_the_replay_is_blamed(
    tmp_path: Path, script: str, steady: bool
) -> None:
    program = fake(tmp_path / "bin", "nvcc", script)
    dry = dry_run(["k.cu"], driver=str(program), work="w", cwd=tmp_path)
    (tmp_path / "runs").unlink(missing_ok=True)
    (tmp_path / "k.o").write_text("ours")
    (tmp_path / "w").mkdir(exist_ok=True)
    (tmp_path / "w" / "temp").touch()
    two = plan(stage(0, ["k.cu"], ["w/temp"]), stage(1, ["w/temp"], ["k.o"]))
    (verdict,) = verify(dry, replay(two, work="w"), cwd=tmp_path)
    assert (verdict.identical, verdict.steady) == (False, steady)
    assert verdict.ours == "ours"


CLANG = """\
made='of its words'
for word; do case $word in -cuid=*) made=$word ;; esac; done
printf '%s' "$made" > k.o"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("ours", "identical", "given", "steady"),
    [("-cuid=1f", True, "-cuid=1f", None), ("neither", False, "", True)],
)
def test_clang_is_given_the_id_that_its_dry_run_had(
    tmp_path: Path, ours: str, identical: bool, given: str, steady: bool | None
) -> None:
    """`-###` is part of what clang makes the id of, so the replay's is never that of the driver's own run."""
    program = fake(tmp_path / "bin", "clang", CLANG)
    dry = dry_run(["k.hip"], driver=str(program), work="w", cwd=tmp_path)
    (tmp_path / "k.o").write_text(ours)
    made = plan(stage(0, ["k.hip"], ["k.o"]), tool="clang")
    made = made.replace(stages=(made.stages[0].replace(argv=("clang", "-cc1", "-cuid=1f")),))
    (verdict,) = verify(dry, replay(made, work="w"), cwd=tmp_path)
    assert (verdict.identical, verdict.given, verdict.steady) == (identical, given, steady)
    assert (tmp_path / "k.o").read_text() == "of its words"


@pytest.mark.process
def test_a_driver_that_fails_leaves_what_the_replay_made(tmp_path: Path) -> None:
    program = fake(tmp_path / "bin", "nvcc", "exit 1")
    dry = dry_run(["k.cu"], driver=str(program), work="w", cwd=tmp_path)
    (tmp_path / "k.o").write_text("ours")
    with pytest.raises(ToolMissing, match="`nvcc` failed with exit code 1"):
        verify(dry, replay(ONE, work="w"), cwd=tmp_path)
    assert (tmp_path / "k.o").read_text() == "ours"


@pytest.mark.process
def test_a_part_cannot_be_verified(tmp_path: Path) -> None:
    dry = dry_run(["k.cu"], driver=str(fake(tmp_path / "bin", "nvcc")), cwd=tmp_path)
    with pytest.raises(UsageError, match="a part of a plan cannot be verified"):
        verify(dry, replay(ONE, work="w", until="1"), cwd=tmp_path)
