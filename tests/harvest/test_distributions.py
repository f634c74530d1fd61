"""Package lists as apt and archives have them; the paragraphs are Debian's."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import shutil
from pathlib import Path

import lz4.frame
import pytest

from tests.harvest.tools import family, harvested
from toolmatrix.errors import HarvestRefused, UsageError
from toolmatrix.harvest import distributions

HERE = Path(__file__).parent.parent / "fixtures" / "harvest" / "lists"
MAIN = Path("dists/bookworm/main/binary-amd64/Packages")
FAMILY = """\
kind: distributions
about: what the tests read
releases: releases.yaml
rolling: {sid: debian-sid}
series: {gcc: "g++-{}", clang: "clang-{}", python: "python{}"}
versions: {default_gcc_package: g++, cmake_package: cmake, docker_package: docker.io, ninja_package: ninja-build}
"""
RELEASES = """\
schema: toolmatrix.facts/1
releases:
  - {id: distros, component: distro, versions: {debian12: {codename: bookworm}, rockylinux9: {}}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the lists, in an archive's directories."""
    shutil.copytree(HERE, tmp_path / "archive")
    (tmp_path / "releases.yaml").write_text(RELEASES)
    return tmp_path / "archive"


def read(place: Path) -> dict[str, object]:
    """The one row that the lists of a place make."""
    one = family(FAMILY, str(place.parent / "families.yaml"))
    (row,) = harvested(one, str(place))["tables"][0]["rows"]
    assert isinstance(row, dict)
    return row


def test_a_distribution_is_a_row(place: Path) -> None:
    row = read(place)
    lists = row.pop("lists")
    assert row == {
        "id": "distro-offers/debian12",
        "distro": "debian12",
        "machine": "x86_64",
        "codename": "bookworm",
        "gcc": "11 12",
        "clang": "14 16",
        "python": "3.11",
        "glibc": "2.36",
        "gcc_points": ["11.3.0", "12.2.0"],
        "gcc_packages": ["11.3.0-12", "12.2.0-14+deb12u1"],
        "default_gcc_package": "4:12.2.0-3",
        "cmake_package": "3.25.1-1",
        "docker_package": "20.10.24+dfsg1-1+deb12u1+b6",
        "source": "packages-debian12",
        "where": "the packages of these names, the newest of release, updates and security",
    }
    digest = hashlib.sha256((HERE / MAIN).read_bytes()).hexdigest()
    assert isinstance(lists, list)
    assert lists[1] == f"dists/bookworm/main/binary-amd64/Packages {digest}"


@pytest.mark.parametrize(
    ("end", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress), (".lz4", lz4.frame.compress)]
)
def test_lists_are_the_same_packed_and_as_apt_names_them(
    end: str, pack: object, place: Path, tmp_path: Path
) -> None:
    assert callable(pack)
    flat = tmp_path / "lists"
    flat.mkdir()
    for path in place.rglob("Packages"):
        name = "mirror.example_debian_" + "_".join(path.relative_to(place).parts)
        (flat / f"{name}{end}").write_bytes(pack(path.read_bytes()))
    assert read(flat) == read(place)


def test_the_newest_of_release_and_updates_is_taken(place: Path) -> None:
    text = (place / MAIN).read_text()
    (paragraph,) = [one for one in text.split("\n\n") if one.startswith("Package: cmake\n")]
    updates = place / "dists/bookworm-updates/main/binary-amd64/Packages"
    for version, taken in (("3.25.1-1+deb12u1", "3.25.1-1+deb12u1"), ("3.9.0-1", "3.25.1-1")):
        updates.write_text(re.sub("(?m)^Version: .*", f"Version: {version}", paragraph) + "\n")
        assert read(place)["cmake_package"] == taken


def test_a_machine_is_a_row_of_its_own(place: Path) -> None:
    other = place / "dists/bookworm/main/binary-arm64/Packages"
    other.parent.mkdir()
    shutil.copy(place / MAIN, other)
    one = family(FAMILY, str(place.parent / "families.yaml"))
    rows = harvested(one, str(place))["tables"][0]["rows"]
    assert [(row["id"], row["machine"]) for row in rows] == [
        ("distro-offers/debian12/aarch64", "aarch64"),
        ("distro-offers/debian12", "x86_64"),
    ]


def refused(place: Path) -> HarvestRefused:
    with pytest.raises(HarvestRefused) as error:
        read(place)
    return error.value


def test_a_list_is_held_against_the_checksums_of_its_archive(place: Path) -> None:
    digest = hashlib.sha256((place / MAIN).read_bytes()).hexdigest()
    release = place / "dists/bookworm/InRelease"
    release.write_text(f"SHA256:\n {digest} 20692 main/binary-amd64/Packages\n")
    read(place)
    release.write_text(f"SHA256:\n {digest[::-1]} 20692 main/binary-amd64/Packages\n")
    error = refused(place)
    assert error.what == "the package list is damaged"
    assert error.found == f"sha256 {digest}, but InRelease lists {digest[::-1]}"
    assert str(error.where) == str(place / MAIN)


@pytest.mark.parametrize("kept", range(200, 20000, 1999))
def test_a_list_that_was_cut_off_is_refused(kept: int, place: Path) -> None:
    data = (place / MAIN).read_bytes()
    (place / MAIN).write_bytes(data[:kept])
    assert refused(place).what == "the package list is damaged"


@pytest.mark.parametrize(
    ("end", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress), (".lz4", lz4.frame.compress)]
)
def test_a_packed_list_that_was_cut_off_is_refused(end: str, pack: object, place: Path) -> None:
    assert callable(pack)
    data = pack((place / MAIN).read_bytes())
    (place / MAIN).unlink()
    (place / f"{MAIN}{end}").write_bytes(data[:-900])
    assert refused(place).what == "the package list is damaged"


@pytest.mark.parametrize(
    "text", ["<html>not found</html>\n", "Package g++\n\nVersion: 1\n", "\0\1"]
)
def test_what_is_no_list_is_refused(text: str, place: Path) -> None:
    (place / MAIN).write_text(text)
    assert refused(place).what == "the package list is damaged"


def test_a_list_that_is_too_large_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "_LARGEST", 10_000)
    assert refused(place).found == "more than 10000 bytes"


def test_lists_of_other_distributions_are_none(place: Path) -> None:
    (place / "dists/bookworm").rename(place / "dists/unheard")
    (place / "dists/bookworm-updates").rename(place / "dists/bookworm-backports")
    assert refused(place).what == "no package list found"


def test_a_place_has_to_be_named() -> None:
    with pytest.raises(UsageError) as error:
        harvested(family(FAMILY), "")
    assert error.value.expected == ("`--from DIR` with Packages files, such as /var/lib/apt/lists")
