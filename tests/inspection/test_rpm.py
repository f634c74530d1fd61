"""Databases of rpm: as rpm and Berkeley DB's own tools write them, and damaged in every place.

The files in rpm/ hold the same packages. sqlite was written by Debian's rpm, berkeley by db5.3_load as in `databases`,
and ndb, of which one package was taken out again, by rpmpkg.c of rpm 4.18, which Debian leaves out.
"""

from __future__ import annotations

import gzip
import sqlite3
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.compilation.real import program
from tests.images import images
from tests.images.images import link
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import rpm
from toolmatrix.inspection.observe import Look, observe

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping

    from toolmatrix.inspection.model import Inventory

FILES = {
    name: gzip.decompress((Path(__file__).parent / "rpm" / f"{name}.gz").read_bytes())
    for name in ("sqlite", "ndb", "berkeley")
}
HELD = {("cuda-toolkit-12-1", "12.1.1-1"), ("python3", "1:3.9.18-3.el9"), ("glibc", "2.34-100.el9")}
SPEC = """
Name: {0}
Version: {1}
Release: {2}
{3}
Summary: A package of a test
License: none
BuildArch: noarch
%description
{4}
%files
"""
LONG = "y" * 9000
"""A text that takes a header of several pages."""


def seen(files: Mapping[str, bytes | tarfile.TarInfo]) -> Inventory:
    """The inventory of an image of these files."""
    glance = Look(Budget("image.tar"))
    made = images.saved(images.image(files))
    return observe(*images.from_archive(made, look=glance))


def reasons(inventory: Inventory) -> list[str]:
    """Why rpm's records were not read."""
    return [one.reason for one in inventory.skipped if one.what == "rpm"]


@pytest.mark.parametrize("name", FILES)
def test_packages_of_each_form(name: str) -> None:
    held = HELD - {("cuda-toolkit-12-1", "12.1.1-1")} if name == "ndb" else HELD
    assert rpm.read(FILES[name]) == rpm.Database(packages=rpm.read(FILES[name]).packages)
    assert set(rpm.read(FILES[name]).packages) == held


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("usr/lib/sysimage/rpm/rpmdb.sqlite", "sqlite"),
        ("var/lib/rpm/Packages.db", "ndb"),
        ("var/lib/rpm/Packages", "berkeley"),
    ],
)
def test_packages_of_an_image(path: str, name: str) -> None:
    inventory = seen({path: FILES[name], "var/lib/x": link("../../usr/lib/sysimage")})
    assert inventory.features["rpm:python3"][0].version == "1:3.9.18-3.el9"
    assert [(one.version, one.where) for one in inventory.components["glibc"]] == [("2.34", path)]
    assert reasons(inventory) == []


def test_the_directory_of_rpm_may_be_a_link() -> None:
    inventory = seen(
        {
            "usr/lib/sysimage/rpm/rpmdb.sqlite": FILES["sqlite"],
            "var/lib/rpm": link("../../usr/lib/sysimage/rpm"),
        }
    )
    assert len(inventory.features["rpm:glibc"]) == 1
    assert reasons(inventory) == []


def test_the_python_of_the_distribution_is_known_by_its_package() -> None:
    inventory = seen(
        {
            "usr/bin/python3": link("python3.9"),
            "usr/bin/python3.9": images.program(),
            "var/lib/rpm/rpmdb.sqlite": FILES["sqlite"],
        }
    )
    assert [(one.version, one.seen_by) for one in inventory.components["python"]] == [
        ("3.9.18", "rpm")
    ]


def test_a_journal_that_was_not_put_in_is_told() -> None:
    path = "var/lib/rpm/rpmdb.sqlite"
    assert reasons(seen({path: FILES["sqlite"], f"{path}-wal": b""})) == []
    (reason,) = reasons(seen({path: FILES["sqlite"], f"{path}-wal": b"x"}))
    assert "not in the database yet" in reason


def test_what_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (reason,) = reasons(seen({"var/lib/rpm/Packages": b"x" * 99}))
    assert reason.startswith("/var/lib/rpm/Packages: the database is damaged")
    assert rpm.read(b"\0" * 13 + b"\6\x15\x61\0\0\x87\0\0\0\0!").damaged
    (reason,) = reasons(seen({"var/lib/rpm/Basenames": b"x"}))
    assert reason == "/var/lib/rpm has no known database"
    monkeypatch.setattr(rpm, "LARGEST", 4096)
    (reason,) = reasons(seen({"var/lib/rpm/Packages": FILES["berkeley"]}))
    assert "too large" in reason


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIEW Packages AS WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t) SELECT x AS blob FROM t",
        "CREATE TABLE Packages (x, blob AS (zeroblob(500000000)));INSERT INTO Packages VALUES (1)",
        "CREATE TABLE Other (blob)",
    ],
)
def test_nothing_of_a_database_runs(script: str, tmp_path: Path) -> None:
    made = sqlite3.connect(tmp_path / "db")
    made.executescript(script)
    made.close()
    found = rpm.read((tmp_path / "db").read_bytes())
    assert found.packages == ()
    assert found.damaged


def test_chains_of_pages_that_meet_are_refused() -> None:
    data = bytearray(FILES["berkeley"])
    pages = [place for place in range(0, len(data), 4096) if data[place + 25] == 7]
    struct.pack_into("<I", data, pages[-1] + 16, pages[0] // 4096)
    assert "does not continue the chain" in rpm.read(bytes(data)).damaged


@settings(max_examples=examples(300), deadline=None)
@given(
    name=st.sampled_from(sorted(FILES)),
    changes=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=8),
    end=st.floats(0, 1),
)
def test_damage_anywhere_raises_nothing(
    name: str, changes: list[tuple[float, bytes]], end: float
) -> None:
    data = bytearray(FILES[name])
    for share, piece in changes:
        place = int(share * (len(data) - 9))
        data[place : place + len(piece)] = piece
    rpm.read(bytes(data[: int(end * len(data))] if end < 0.5 else data))


# Real tools


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Directories with the same packages: rpm's database, and Berkeley DB's in both orders and small pages."""
    for name in ("rpmbuild", "db5.3_load"):
        program(name)
    folder = tmp_path_factory.mktemp("rpm")
    packages = (
        ("cuda-toolkit-12-1", "12.1.1", "1", "", "x"),
        ("python3", "3.9.18", "3.el9", "Epoch: 1", LONG),
        ("glibc", "2.34", "100.el9", "", "x"),
    )
    for package in packages:
        (folder / "a.spec").write_text(SPEC.format(*package))
        args = ["rpmbuild", "-bb", "--define", f"_topdir {folder}", "a.spec"]
        subprocess.run(args, cwd=folder, check=True, capture_output=True)
    made = {name: folder / name for name in ("sqlite", "4096", "512", "big")}
    for path in made.values():
        path.mkdir()
    files = sorted(folder.glob("RPMS/*/*.rpm"))
    args = ["rpm", "--dbpath", str(made["sqlite"]), "-i", "--justdb", "--nodeps", *map(str, files)]
    subprocess.run(args, check=True, capture_output=True)
    held = sqlite3.connect(made["sqlite"] / "rpmdb.sqlite")
    headers = held.execute("SELECT hnum, blob FROM Packages").fetchall()
    held.close()
    pairs = [(struct.pack("<I", number).hex(), blob.hex()) for number, blob in headers]
    text = "".join(f" {key}\n {value}\n" for key, value in [("00000000", "03000000"), *pairs])
    for name, size, order in (("4096", 4096, 1234), ("512", 512, 1234), ("big", 4096, 4321)):
        head = f"VERSION=3\nformat=bytevalue\ntype=hash\ndb_pagesize={size}\nHEADER=END\n"
        args = ["db5.3_load", "-c", f"db_lorder={order}", str(made[name] / "Packages")]
        subprocess.run(args, input=f"{head}{text}DATA=END\n", text=True, check=True)
    return made


@pytest.mark.process
@pytest.mark.parametrize("name", ["sqlite", "4096", "512", "big"])
def test_databases_of_real_tools(databases: dict[str, Path], name: str) -> None:
    path = next(databases[name].glob("rpmdb.sqlite"), databases[name] / "Packages")
    found = rpm.read(path.read_bytes())
    assert (set(found.packages), found.damaged) == (HELD, "")


@pytest.mark.process
@pytest.mark.parametrize("name", ["sqlite", "4096"])
def test_rpm_itself_reads_the_same(databases: dict[str, Path], name: str) -> None:
    backend = "sqlite" if name == "sqlite" else "bdb_ro"
    form = r"%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n"
    args = ["rpm", "--define", f"_db_backend {backend}", "--dbpath", str(databases[name]), "-qa"]
    said = subprocess.run([*args, "--qf", form], check=True, capture_output=True, text=True).stdout
    assert {tuple(line.split()) for line in said.splitlines()} == HELD
