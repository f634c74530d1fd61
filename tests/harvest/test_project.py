"""File lists of packages: what names of files and an index say of releases, machines and Pythons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harvest import shop
from toolmatrix.errors import HarvestRefused, IndexFailed, NothingMatched
from toolmatrix.harvest import project
from toolmatrix.harvest.project import PublishedRelease
from toolmatrix.harvest.transport import Session


def listed(folder: Path, *names: str) -> list[PublishedRelease]:
    """The releases that an index lists, which lies on the disk and has files of these names."""
    files = [shop.File(name, b"") for name in names]
    place = folder / "app" / "index.html"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(shop.html(files))
    return project.releases(Session(), [folder.as_uri()], "app")


def pythons(release: PublishedRelease, machine: str) -> list[str]:
    """The Python series that a release has a wheel for."""
    known = ("2.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
    return [
        python
        for python in known
        if any(one.allows(python) and one.best(machine, python) for one in release.wheels)
    ]


def test_final_releases_are_listed_newest_first(tmp_path: Path) -> None:
    found = listed(
        tmp_path,
        "app-1.9-py3-none-any.whl",
        "app-1.10.0.tar.gz",
        "app-1.11rc1-py3-none-any.whl",
        "app-1.12.dev0.tar.gz",
        "app-1.10.0+cu118-py3-none-any.whl",
        "app-1!1.0-py3-none-any.whl",
        "app-1.10.0.post1.tar.gz",
        "notes.txt",
    )
    assert [one.version for one in found] == ["1.10.0.post1", "1.10.0", "1.9"]
    assert [one.portable for one in found] == [True, True, True]
    assert [len(one.wheels) for one in found] == [0, 0, 1]


@pytest.mark.parametrize(
    ("tags", "x86", "arm"),
    [
        ("cp311-cp311-manylinux_2_17_x86_64", ["3.11"], []),
        (
            "cp38-abi3-manylinux2014_aarch64",
            [],
            ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"],
        ),
        ("cp27-cp27mu-manylinux1_x86_64", ["2.7"], []),
        ("cp310-none-manylinux2014_x86_64", ["3.10"], []),
        ("py310-none-manylinux2014_x86_64", ["3.10", "3.11", "3.12", "3.13", "3.14"], []),
        ("py2-none-any", ["2.7"], ["2.7"]),
        ("cp313-cp313t-manylinux2014_x86_64", [], []),
        ("cp312-cp312-musllinux_1_2_x86_64", [], []),
        ("cp312-cp312-win_amd64", [], []),
        ("pp310-pypy310_pp73-manylinux2014_x86_64", [], []),
    ],
)
def test_tags_say_which_machines_and_pythons_a_wheel_serves(
    tmp_path: Path, tags: str, x86: list[str], arm: list[str]
) -> None:
    (release,) = listed(tmp_path, f"app-1.0-{tags}.whl")
    assert pythons(release, "x86_64") == x86
    assert pythons(release, "aarch64") == arm


def test_of_several_platform_tags_the_lowest_floor_counts(tmp_path: Path) -> None:
    (release,) = listed(
        tmp_path, "app-1.0-cp39-cp39-manylinux_2_17_x86_64.manylinux2010_x86_64.whl"
    )
    best = release.wheels[0].best("x86_64", "3.9")
    assert best is not None
    assert best.glibc == (2, 12)


def test_an_index_without_the_package_and_one_without_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(NothingMatched, match="the package index has no `app`"):
        project.releases(Session(), [tmp_path.as_uri()], "app")
    with pytest.raises(HarvestRefused, match="lists no final release") as refused:
        listed(tmp_path, "app-1.0rc1.tar.gz")
    assert refused.value.found == "1 files"


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[]",
        b'{"files": 1}',
        b'{"meta": {"api-version": "9.0"}, "files": [], "name": "app"}',
        b"[" * 100_000,
    ],
)
def test_json_that_is_no_index_is_one_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "index.json").write_bytes(text)
    with pytest.raises(IndexFailed, match="sent an unexpected answer"):
        project.releases(Session(), [tmp_path.as_uri()], "app")


def test_html_that_is_not_text_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "index.html").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(IndexFailed, match="sent an unexpected answer"):
        project.releases(Session(), [tmp_path.as_uri()], "app")
