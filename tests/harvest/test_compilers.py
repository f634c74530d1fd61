"""Compilers of the machine, and programs that say they are compilers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harvest.tools import family, harvested, needed, program
from toolmatrix.errors import HarvestRefused, ToolMissing, UsageError
from toolmatrix.harvest import programs

pytestmark = pytest.mark.process

FAMILY = """\
kind: compilers
about: what the tests read
rolling: {debian: debian-sid}
asked: {mcpu: [generic+crc], march: [armv8-a+crc]}
"""
LINUX = Path("/usr/lib/os-release")


def rows(place: str) -> list[dict[str, Any]]:
    """The rows that the compilers of a place make."""
    if not LINUX.exists():
        pytest.skip("needs a distribution with /usr/lib/os-release")
    found: list[dict[str, Any]] = harvested(family(FAMILY), place)["tables"][0]["rows"]
    return found


@pytest.mark.large
def test_a_cross_compiler_says_what_it_takes_and_defines() -> None:
    (row,) = rows(needed("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"))
    assert (row["compiler"], row["machine"], row["char"]) == ("gcc", "aarch64", "unsigned")
    assert row["version"].split(".")[0] == row["series"]
    assert row["version"] in row["printed"]
    assert {"generic", "generic+crc", "cortex-a72", "neoverse-n1"} <= set(row["mcpu"].split())
    assert {"armv8-a", "armv8-a+crc", "armv8.2-a"} <= set(row["march"].split())


def test_a_native_compiler_has_no_cpus_of_others() -> None:
    (row,) = rows(needed("gcc", "gcc"))
    if row["machine"] != "x86_64":
        pytest.skip("this gcc makes code for another machine")
    assert (row["char"], row["crc32"]) == ("signed", False)
    assert "x86-64" in row["march"].split()
    assert "mcpu" not in row


@pytest.mark.large
def test_clang_speaks_for_both_machines() -> None:
    arm, intel = rows(needed("clang-15", "clang-15"))
    assert [(one["machine"], one["char"]) for one in (arm, intel)] == [
        ("aarch64", "unsigned"),
        ("x86_64", "signed"),
    ]
    assert "cortex-a72" in arm["mcpu"].split()
    assert "znver3" in intel["march"].split()


def pretended(path: Path, version: str, takes: str = "*") -> str:
    """A program that answers as GCC for ARM does, and takes the names that a pattern of the shell fits."""
    return program(
        path,
        f"""\
case "$*" in
--version) echo '{version}'; exit 0;;
-dumpmachine) echo aarch64-linux-gnu; exit 0;;
*=no-such-name*) echo "cc1: note: valid arguments are: one two native; did you mean one?"; exit 1;;
*=*) case "$1" in {takes}) exit 0;; esac; exit 1;;
esac
echo '#define __CHAR_UNSIGNED__ 1'
""",
    )


def test_a_name_that_is_listed_and_refused_is_left_out(tmp_path: Path) -> None:
    (row,) = rows(pretended(tmp_path / "gcc", "gcc (Own 1) 12.2.0", "-mcpu=one|-march=two"))
    assert (row["mcpu"], row["march"]) == ("one", "two")
    assert (row["series"], row["version"], row["printed"]) == ("12", "12.2.0", "gcc (Own 1) 12.2.0")


@pytest.mark.parametrize(
    ("version", "series"),
    [
        ("gcc (GCC) 4.9.3", "4.9"),
        ("gcc-5 (Ubuntu 5.5.0-12ubuntu1) 5.5.0 20171010", "5"),
        ("gcc-16 (Ubuntu 16-20260322-1ubuntu1) 16.0.1 20260322 (experimental) [trunk r16]", "16"),
    ],
)
def test_series_are_counted_as_the_matrix_does(version: str, series: str, tmp_path: Path) -> None:
    (row,) = rows(pretended(tmp_path / "gcc", version))
    assert (row["series"], row["printed"]) == (series, version)


@pytest.mark.parametrize(
    "text", ["printf '\\377\\376\\001garbage\\n'\n", "", "exit 1\n", "echo 12\n"]
)
def test_a_compiler_that_says_no_version_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(HarvestRefused) as error:
        rows(program(tmp_path / "gcc", text))
    assert error.value.what == "the compiler prints no version"


def test_a_compiler_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.5)
    with pytest.raises(ToolMissing) as error:
        rows(program(tmp_path / "gcc", "sleep 60\n"))
    assert error.value.what == "`gcc` did not finish"


def test_a_compiler_that_compiles_nothing_is_refused(tmp_path: Path) -> None:
    path = pretended(tmp_path / "gcc", "gcc (Own 1) 12.2.0")
    text = (
        Path(path).read_text().replace("echo '#define __CHAR_UNSIGNED__ 1'", "echo broken; exit 4")
    )
    with pytest.raises(HarvestRefused) as error:
        rows(program(tmp_path / "gcc", text))
    assert error.value.what == "the compiler cannot preprocess an empty file"
    assert error.value.found == "broken"


@pytest.mark.parametrize(
    ("release", "what"),
    [
        (None, "no compiler found"),
        ("ID=debian\nVERSION_ID=12\n", "no compiler found"),
        ("NAME=x\n", "no compiler found"),
        ("ID=arch\n", "the distribution has no name or no version"),
    ],
)
def test_a_directory_without_compilers_is_refused(
    release: str | None, what: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/lib").mkdir()
    (root / "usr/bin/gcc-ar-12").write_text("")
    if release is not None:
        (root / "usr/lib/os-release").write_text(release)
    with pytest.raises(HarvestRefused) as error:
        rows(str(root))
    assert error.value.what == what


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarvestRefused) as error:
        rows(str(tmp_path / "nowhere"))
    assert error.value.found == "No such file or directory"


def test_a_place_has_to_be_named() -> None:
    with pytest.raises(UsageError):
        rows("")
