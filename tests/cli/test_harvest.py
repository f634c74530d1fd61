"""`toolmatrix harvest`: files of facts written anew, and what is kept where something is wrong."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, Cli, Outcome
from tests.cli.test_documents import validated
from tests.harvest import shop
from tests.matrix import small_built_in
from toolmatrix import resources

FAMILIES = """\
schema: toolmatrix.families/1
packages: {tool: tool}
families:
  lib:
    kind: index
    about: A library.
    packages:
      lib: {title: Lib}
"""
SAID = {"requires-python": ">=3.8"}
NEW = shop.wheel("lib", "1.1", "py3-none-any", ["tool>=2.0"], said=SAID)
OLD = shop.wheel("lib", "1.0", "py3-none-any", ["tool<2.0", "numpy"], said=SAID)
# Digests are left out: how well a wheel is packed is a matter of the library that packs it.
WRITTEN = (
    (SMALL.parent / "harvested.yaml")
    .read_text()
    .replace("sha256 NEW", f"sha256 {NEW.sha256[:16]}")
    .replace("sha256 OLD", f"sha256 {OLD.sha256[:16]}")
)


@pytest.fixture(autouse=True)
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small matrix with a family, in the place of the built-in one."""
    return small_built_in(tmp_path / "root", monkeypatch, FAMILIES)


@pytest.fixture
def saved(here: Path) -> Path:
    """An index that was saved to the disk."""
    folder = here / "saved"
    stock(folder, [NEW, OLD])
    return folder


def stock(folder: Path, files: list[shop.File]) -> None:
    """Put the files of the package there."""
    place = folder / "lib"
    place.mkdir(parents=True, exist_ok=True)
    for one in files:
        (place / one.name).write_bytes(one.data)
    links = "".join(
        f'<a data-requires-python="&gt;=3.8" href="{one.name}#sha256={one.sha256}">{one.name}</a>'
        for one in files
    )
    (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


def harvest(cli: Cli, *words: str, **env: str) -> Outcome:
    """A harvest of the saved index on a day that stays."""
    return cli("harvest", *words, "--from", "saved", SOURCE_DATE_EPOCH="1767312000", **env)


def test_a_family_becomes_a_file_of_facts(cli: Cli, saved: Path, matrix: Path) -> None:
    assert saved.is_dir()
    outcome = harvest(cli, "lib")
    path = matrix / "matrix" / "harvested" / "lib.yaml"
    assert (outcome.code, path.read_text()) == (0, WRITTEN)
    told = outcome.out.splitlines()
    assert told[0] == f"{path}: 2 rows, 2 new"
    assert told[1].startswith("  + lib-releases/1.1  lib 1.1; requires-python >=3.8; tool >=2.0;")
    assert outcome.err.startswith("0 requests, 0.0 MB, ")


def test_the_file_is_a_matrix_that_answers(cli: Cli, saved: Path, here: Path) -> None:
    assert saved.is_dir()
    assert harvest(cli, "--output", "out").code == 0
    outcome = cli("resolve", "lib", "--matrix", str(here / "out" / "lib.yaml"))
    assert outcome.code == 0
    assert "requires tool >=2.0" in outcome.out


def test_a_second_time_nothing_changes(cli: Cli, saved: Path, here: Path) -> None:
    assert saved.is_dir()
    harvest(cli, "--output", "out")
    state = (here / "out" / "lib.yaml").stat()
    outcome = harvest(cli, "--output", "out")
    assert (outcome.code, outcome.out) == (
        0,
        "out/lib.yaml: 2 rows, as before\n",
    )
    assert (here / "out" / "lib.yaml").stat().st_mtime_ns == state.st_mtime_ns
    assert harvest(cli, "--output", "out", "--check").code == 0


def test_a_check_says_what_would_change_and_writes_nothing(
    cli: Cli, saved: Path, here: Path
) -> None:
    harvest(cli, "--output", "out")
    later = shop.wheel("lib", "1.1", "py3-none-any", ["tool>=1.0"], said=SAID)
    stock(saved, [later, OLD])
    outcome = harvest(cli, "--output", "out", "--check")
    assert outcome.code == 1
    assert "1 changed" in outcome.out
    assert "~ lib-releases/1.1  tool >=2.0 -> >=1.0;" in outcome.out
    assert (here / "out" / "lib.yaml").read_text() == WRITTEN


def test_rows_that_vanish_are_kept_until_that_is_accepted(
    cli: Cli, saved: Path, here: Path
) -> None:
    harvest(cli, "--output", "out")
    stock(saved, [NEW])
    outcome = harvest(cli, "--output", "out")
    assert outcome.code == 2
    assert outcome.err == (
        "error[TM308]: 1 row is no longer at its source\n"
        "  --> out/lib.yaml\n"
        "  expected: every row that was read before\n"
        "  found: nothing of lib-releases/1.0\n"
        "help: the file is unchanged; once you know why they disappeared, `--accept` writes it without them\n"
    )
    assert (here / "out" / "lib.yaml").read_text() == WRITTEN
    assert harvest(cli, "--output", "out", "--accept").code == 0
    assert "lib: '1.0'" not in (here / "out" / "lib.yaml").read_text()


def test_the_document_keeps_to_its_schema(cli: Cli, saved: Path) -> None:
    assert saved.is_dir()
    document = harvest(cli, "--output", "out", "--json").json()
    validated(document, "harvest")
    (file,) = document["files"]
    assert (file["family"], file["rows"], file["changed"]) == ("lib", 2, True)
    assert file["differences"][0]["state"] == "new"


def test_a_family_that_nobody_knows(cli: Cli) -> None:
    outcome = cli("harvest", "liv", "--output", "out")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        3,
        "error[TM110]: unknown family `liv`",
    )


def test_a_saved_index_that_is_not_there(cli: Cli, here: Path) -> None:
    outcome = cli("harvest", "--from", "nowhere", "--output", "out")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        3,
        "error[TM110]: the package index has no `lib`",
    )
    assert not (here / "out" / "lib.yaml").exists()


def test_an_installed_package_is_not_written_to(
    cli: Cli, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert saved.is_dir()
    monkeypatch.setattr(resources, "builtin_index", lambda: "index")
    outcome = harvest(cli, "lib")
    assert outcome.code == 2
    assert "the matrix of an installed package is read-only" in outcome.err


def test_two_at_once_are_one_too_many(cli: Cli, saved: Path, here: Path) -> None:
    assert saved.is_dir()
    (here / "out").mkdir()
    with open(here / "out" / ".lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = harvest(cli, "--output", "out")
    assert outcome.code == 2
    assert "another harvest is writing there" in outcome.err
    assert harvest(cli, "--output", "out").code == 0


def test_a_check_leaves_no_trace(cli: Cli, saved: Path, here: Path) -> None:
    assert saved.is_dir()
    assert harvest(cli, "--output", "out", "--check").code == 1
    assert not (here / "out").exists()


def test_a_full_disk_keeps_the_file(
    cli: Cli, saved: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvest(cli, "--output", "out")
    stock(saved, [shop.wheel("lib", "1.2", "py3-none-any"), NEW, OLD])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        outcome = harvest(cli, "--output", "out")
    assert outcome.code == 2
    assert "No space left on device" in outcome.err
    assert (here / "out" / "lib.yaml").read_text() == WRITTEN
    assert sorted(os.listdir(here / "out")) == [".lock", "lib.yaml"]


def test_a_wheel_that_is_damaged_keeps_the_file(cli: Cli, saved: Path, here: Path) -> None:
    harvest(cli, "--output", "out")
    (saved / "lib" / NEW.name).write_bytes(NEW.data[:100])
    shutil.rmtree(here / "cache", ignore_errors=True)
    outcome = harvest(cli, "--output", "out", XDG_CACHE_HOME=str(here / "cache"))
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        "error[TM308]: the wheel is damaged",
    )
    assert (here / "out" / "lib.yaml").read_text() == WRITTEN


CUT = WRITTEN[: WRITTEN.index("rows:")] + "rows: ["


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize("damage", [CUT, "rows: [{lib: ", "\0\1\2", "[]", None])
def test_a_damaged_file_is_no_obstacle_to_its_own_renewal(
    cli: Cli, matrix: Path, damage: str | None
) -> None:
    """The matrix has no answer while it is damaged, and is whole after the harvest."""
    file = matrix / "matrix" / "harvested" / "lib.yaml"
    file.parent.mkdir()
    front = matrix / "matrix.yaml"
    front.write_text(front.read_text().replace("files: [", "files: [matrix/harvested/lib.yaml, "))
    if damage is not None:
        file.write_text(damage)
    assert cli("resolve", "tool").code == 2
    outcome = harvest(cli, "lib")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: harvested without what cannot be read: ")
    assert "lib.yaml" in outcome.err.partition("\n")[0]
    assert file.read_text() == WRITTEN
    assert cli("resolve", "lib").code == 0
    assert "warning" not in harvest(cli, "lib").err


@pytest.mark.usefixtures("saved")
def test_files_that_name_what_a_damaged_one_had_are_left_out_with_it(
    cli: Cli, matrix: Path
) -> None:
    """Releases of the family that another file speaks of are unknown while its own file is cut."""
    file = matrix / "matrix" / "harvested" / "lib.yaml"
    file.parent.mkdir()
    file.write_text("schema: toolmatrix.facts/1\ntables: [")
    (matrix / "more.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "statements:\n"
        '  - {id: more, when: {lib: "1.1"}, limits: {tool: ">=2"}, evidence: stated,\n'
        "     source: pypi-lib, where: here}\n"
    )
    front = matrix / "matrix.yaml"
    front.write_text(
        front.read_text().replace("files: [", "files: [matrix/harvested/lib.yaml, more.yaml, ")
    )
    outcome = harvest(cli, "lib")
    assert (outcome.code, file.read_text()) == (0, WRITTEN)
    assert [line.split(": ")[0] for line in outcome.err.splitlines()[:2]] == ["warning"] * 2
    assert "more.yaml" in outcome.err.splitlines()[1]
    assert cli("resolve", "lib").code == 0


@pytest.mark.usefixtures("saved")
def test_a_matrix_without_what_a_harvest_needs_is_refused(cli: Cli, matrix: Path) -> None:
    front = matrix / "matrix.yaml"
    front.write_text("schema: toolmatrix.matrix/1\n")
    outcome = harvest(cli, "lib")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error[TM903]: ")
