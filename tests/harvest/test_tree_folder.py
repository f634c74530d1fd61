"""One release that was unpacked is read as a repository is, with the digest of each file as its source."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.harvest.gitrepo import FAMILY, context, family, harvested, refusal
from tests.harvest.test_tree import GRID, PAGE
from toolmatrix.api.harvests import Effort, HarvestedFile, compare_with_file
from toolmatrix.commands.harvest import Harvested
from toolmatrix.errors import HarvestRefused
from toolmatrix.harvest import families, runs, source_tree

UNPACKED = FAMILY + "version: {path: version.py, cells: {release: {assignment: _version}}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked release."""
    place = tmp_path / "project-1.9.0"
    place.mkdir()
    for name, text in {
        "setup.py": "",
        "version.py": "_version = '1.9.0'\n",
        ".bazelversion": "3.7.2\n",
    }.items():
        (place / name).write_text(text)
    return place


def test_the_tree_tells_its_release(folder: Path) -> None:
    found = harvested(folder, UNPACKED)
    assert found["tables"][0]["rows"] == [
        {
            "project": "1.9.0",
            "bazel": "3.7.2",
            "source": "project-source/1.9.0/.bazelversion",
            "where": ".bazelversion",
        }
    ]
    digest = hashlib.sha256(b"3.7.2\n").hexdigest()
    source = found["sources"]["project-source/1.9.0/.bazelversion"]
    assert source["at"] == f"owner/project:.bazelversion, release 1.9.0 unpacked, sha256 {digest}"


def test_a_tree_that_does_not_tell_its_release_is_refused(folder: Path) -> None:
    assert refusal(folder) == (
        f"the release of this tree is unknown; at {folder}; expected a clone with its tags"
    )
    (folder / "version.py").write_text("_version = f'{1}.9.0'\n")
    assert refusal(folder, UNPACKED) == (
        f"a value is no longer where it was; at {folder}/version.py; "
        "expected release: assignment _version; found nothing"
    )


def test_another_project_and_half_a_copy_are_refused(folder: Path) -> None:
    (folder / ".bazelversion").unlink()
    assert refusal(folder, UNPACKED) == (
        f"a file is not in the tree; at {folder}/.bazelversion; expected .bazelversion; "
        "found no such file or directory"
    )
    (folder / "setup.py").unlink()
    assert refusal(folder, UNPACKED) == (
        f"this is not a tree of owner/project; at {folder}; expected setup.py; found no setup.py"
    )


def test_links_that_leave_the_tree_pipes_and_huge_files_are_not_read(folder: Path) -> None:
    path = folder / ".bazelversion"
    path.unlink()
    (folder.parent / "secret").write_text("6.6.6\n")
    path.symlink_to("../secret")
    assert refusal(folder, UNPACKED).endswith("found a link that leaves the tree")
    path.unlink()
    path.symlink_to(".bazelversion")
    assert "found " in refusal(folder, UNPACKED)
    path.unlink()
    os.mkfifo(path)
    assert refusal(folder, UNPACKED).endswith("found no regular file")
    path.unlink()
    path.mkdir()
    assert refusal(folder, UNPACKED).endswith("found a directory")
    path.rmdir()
    path.write_bytes(b"1" * (source_tree.FILE_LIMIT + 1))
    assert refusal(folder, UNPACKED).endswith("found more than 4 MiB")
    path.unlink()
    (folder / "version").write_text("7.0.0\n")
    path.symlink_to("version")
    assert harvested(folder, UNPACKED)["tables"][0]["rows"][0]["bazel"] == "7.0.0"


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("archived", "at"),
    [
        (f"node: {COMMIT}\nnode-date: 2021-05-14\n", f"@{COMMIT}"),
        (f"ref-names: HEAD\r\nnode: {COMMIT}\r\n", f"@{COMMIT}"),
        # What git did not fill in, and what is no commit.
        ("node: $Format:%H$\n", ", release 1.9.0 unpacked, sha256 "),
        ("node: main\n", ", release 1.9.0 unpacked, sha256 "),
    ],
)
def test_what_git_archive_writes_tells_the_commit(folder: Path, archived: str, at: str) -> None:
    (folder / ".git_archival.txt").write_text(archived, newline="")
    source = harvested(folder, UNPACKED)["sources"]["project-source/1.9.0/.bazelversion"]
    assert source["at"].startswith(f"owner/project:.bazelversion{at}")


def test_a_page_of_all_releases_needs_no_release(folder: Path) -> None:
    (folder / "page.md").write_text(PAGE)
    (name, source), *more = harvested(folder, GRID.replace("page.md]", "setup.py]"))[
        "sources"
    ].items()
    assert (name, more) == ("project-source/HEAD/page.md", [])
    digest = hashlib.sha256(PAGE.encode()).hexdigest()
    assert source == {
        "title": "Project, page.md",
        "at": f"owner/project:page.md, unpacked, sha256 {digest}",
        "read": "2026-11-23",
    }


NONE = Effort(requests=0, bytes=0, seconds=0)


def beside(unpacked: Path, folder: Path) -> HarvestedFile:
    """What is read of a tree, compared with the file of it in this folder."""
    one = family(UNPACKED)
    text = runs.text(families.harvest(one, context(unpacked)), one.about)
    return compare_with_file(one.name, f"{folder}/{one.name}.yaml", text)


def test_one_release_does_not_take_the_place_of_all(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "project-source.yaml"
    first = beside(folder, tmp_path)
    text = first.text.replace("1.9.0", "1.8.0")
    there.write_text(text)
    with pytest.raises(HarvestRefused, match="1 row is no longer at its source"):
        Harvested([beside(folder, tmp_path)], NONE).write()
    assert there.read_text() == text


def test_a_table_that_says_nothing_of_the_release_is_left_out(folder: Path) -> None:
    late = UNPACKED.replace("      cells:", "      releases: '>=2'\n      cells:")
    assert harvested(folder, late) == {"tables": [], "sources": {}}
    item = "    read: {cells: {date: {date: tag}}}\n"
    dated = UNPACKED[: UNPACKED.index("    read:")] + item + UNPACKED[UNPACKED.index("version:") :]
    assert harvested(folder, dated) == {"tables": [], "sources": {}}
