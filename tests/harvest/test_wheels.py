"""What is inside the wheels of a package as facts: one wheel for each release and machine, each row with its file."""

from __future__ import annotations

import copy
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tests.harvest.test_contents import fatbin
from toolmatrix.errors import HarvestRefused
from toolmatrix.factbase.versions import Scale, sort
from toolmatrix.harvest import families, project
from toolmatrix.harvest.families import HarvestContext, Indexes
from toolmatrix.harvest.project import Metadata, PublishedRelease, Serves, Wheel
from toolmatrix.harvest.transport import Session

FAMILY: dict[str, Any] = {
    "kind": "wheels",
    "about": "Ext: what its wheels hold",
    "package": "ext",
    "component": "ext",
    "of": "builds",
    "columns": {
        "cuda": {"as": "requires", "beside": True},
        "archs": {"component": "arch", "as": "limits"},
        "rocm": {"as": "limits"},
    },
    "inside": [
        {"cell": "cuda", "member": "ext/version.py", "assigned": "cuda"},
        {"cell": "archs", "member": "ext/version.py", "assigned": "archs"},
    ],
}


def wheel(folder: Path, version: str, python: int, text: str, machine: str = "x86_64") -> Wheel:
    """A wheel in a file that says something in its version.py."""
    name = f"ext-{version}-cp3{python}-cp3{python}-manylinux_2_28_{machine}.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("ext/version.py", text)
    serves = Serves(machine=machine, major=3, minor=python, later=False, glibc=(2, 28))
    return Wheel(
        name=name,
        url=(folder / name).as_uri(),
        sha256=hashlib.sha256((folder / name).read_bytes()).hexdigest(),
        requires_python="",
        serves=(serves,),
        package="ext",
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PublishedRelease]:
    """An index with two releases, the newer for two machines; what it lists may be changed."""
    both = "cuda = '12'\narchs = ['sm_80', 'sm_90']"
    new = [
        wheel(tmp_path, "2.0", 11, "cuda = '11'"),
        wheel(tmp_path, "2.0", 12, both),
        wheel(tmp_path, "2.0", 12, "cuda = None", "aarch64"),
    ]
    held = [("2.0", new), ("1.0", [wheel(tmp_path, "1.0", 11, "cuda = '11'")])]
    listed = [
        PublishedRelease(version=version, date="", yanked=False, requires_python="", wheels=tuple(wheels))
        for version, wheels in held
    ]  # fmt: skip
    monkeypatch.setattr(project, "releases", lambda *_: listed)
    monkeypatch.setattr(families, "indexes", lambda _env: Indexes(urls=("file:///nowhere",)))
    return listed


def harvested(folder: Path, **more: Any) -> dict[str, Any]:
    file = folder / "families.yaml"
    told = {"schema": families.SCHEMA, "families": {"ext-contents": {**FAMILY, **more}}}
    file.write_text(yaml.safe_dump(told))
    context = HarvestContext(session=Session(), day=date(2026, 11, 23))
    return families.harvest(families.families(str(file))["ext-contents"], context)


def rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["tables"][0]["rows"]
    return found


def test_a_row_is_about_a_build_and_names_the_file_it_was_read_from(
    tmp_path: Path, index: list[PublishedRelease]
) -> None:
    newest = index[0].wheels[1]
    document = harvested(tmp_path)
    assert rows(document) == [
        {
            "id": "ext-contents/2.0-x86_64",
            "ext-variant": "2.0+*@default/x86_64",
            "cuda": "12",
            "archs": "sm_80 sm_90",
            "where": f"{newest.name}, sha256 {newest.sha256[:16]}: ext/version.py",
        },
        {
            "id": "ext-contents/1.0-x86_64",
            "ext-variant": "1.0+*@default/x86_64",
            "cuda": "11",
            "where": rows(document)[1]["where"],
        },
    ]
    assert document["tables"][0]["key"] == "ext-variant"
    assert set(document["tables"][0]["columns"]) == {"cuda", "archs"}
    assert document["sources"]["pypi-ext-contents"]["at"].startswith(
        "package ext, final releases 1.0 to 2.0"
    )


@pytest.mark.usefixtures("index")
def test_a_package_without_builds_has_rows_about_its_releases(tmp_path: Path) -> None:
    columns = {**FAMILY["columns"], "machine": {"as": "when"}}
    document = harvested(tmp_path, of="releases", columns=columns)
    assert [(row["ext"], row["machine"], row["cuda"]) for row in rows(document)] == [
        ("2.0", "x86_64", "12"),
        ("1.0", "x86_64", "11"),
    ]


@pytest.mark.usefixtures("index")
def test_releases_are_bounded_by_the_family(tmp_path: Path) -> None:
    assert [row["id"] for row in rows(harvested(tmp_path, since="1.5"))] == [
        "ext-contents/2.0-x86_64"
    ]
    assert [row["id"] for row in rows(harvested(tmp_path, before="2.0"))] == [
        "ext-contents/1.0-x86_64"
    ]


@pytest.mark.usefixtures("index")
def test_what_was_read_in_part_is_written_as_that(tmp_path: Path) -> None:
    name = next(tmp_path.glob("ext-1.0*"))
    with zipfile.ZipFile(name, "a") as archive:
        archive.writestr("ext/_C.so", fatbin((2, 80)) + bytes(2 << 20) + fatbin((2, 90)))
    inside = [{"cell": "archs", "member": "ext/_C.so", "archs": "device", "mebibytes": 1}]
    (row,) = rows(harvested(tmp_path, inside=inside))
    assert row["archs"] == {"is": "sm_80", "at-least": True}


def test_a_wheel_that_is_no_archive_is_one_error(
    tmp_path: Path, index: list[PublishedRelease]
) -> None:
    (tmp_path / index[1].wheels[0].name).write_bytes(b"<html>not found</html>" * 10)
    with pytest.raises(HarvestRefused, match="the wheel is damaged") as caught:
        harvested(tmp_path)
    assert str(caught.value.where) == index[1].wheels[0].name


def test_a_family_that_is_compared_alone_is_read_when_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "families.yaml"
    told = {"apart": {**FAMILY, "by-name": True}, "usual": copy.deepcopy(FAMILY)}
    file.write_text(yaml.safe_dump({"schema": families.SCHEMA, "families": told}))
    known = families.families(str(file))
    assert [one.name for one in families.select_families(known, ())] == ["usual"]
    assert [one.name for one in families.select_families(known, ["apart"])] == ["apart"]


# Requirements of METADATA as selectors, held against packaging's own reading of them.


WHEEL = Wheel(
    name="app-1.0-py3-none-any.whl", package="app", url="", sha256="", requires_python="", serves=()
)


def required(
    *lines: str, machine: str = "x86_64", python: str = "3.11", extras: Sequence[str] = ()
) -> dict[str, str]:
    """What lines of Requires-Dist require, each of the component that it names."""
    named = [(line.split()[0].split("[")[0].strip("<>=!~"), line) for line in lines]
    told = Metadata(
        wheel=WHEEL,
        requires=tuple((name if name != "app" else "", line) for name, line in named),
    )
    return project.required(told, machine, python, extras)


@pytest.mark.parametrize(
    ("line", "selector"),
    [
        ("numpy", "*"),
        ("numpy <2,>=1.21", ">=1.21,<2"),
        ("numpy (>=1.7)", ">=1.7"),
        ("numpy ==1.2", "==1.2.0"),
        ("numpy ==1.*", "==1.*"),
        ("numpy !=1.2,~=1.1", "~=1.1,!=1.2.0"),
        ("numpy ==2.1.0+cu121", "==2.1.0"),
        ("numpy >=1.0,>=2.0,>1.5", ">=2.0,>1.5"),
    ],
)
def test_a_requirement_is_a_selector_with_lower_bounds_first(line: str, selector: str) -> None:
    assert required(line) == {"numpy": selector}


def test_lines_about_one_package_hold_together() -> None:
    lines = ('numpy >=1.21 ; python_version >= "3.9"', 'numpy >=1.26 ; python_version >= "3.12"')
    assert required(*lines, python="3.8") == {}
    assert required(*lines, python="3.10") == {"numpy": ">=1.21"}
    assert required(*lines, python="3.12") == {"numpy": ">=1.26"}


def test_markers_are_those_of_linux_and_the_machine() -> None:
    assert required('numpy ; sys_platform == "win32"') == {}
    arm = 'numpy >=2 ; platform_machine == "aarch64"'
    assert required(arm) == {}
    assert required(arm, machine="aarch64") == {"numpy": ">=2"}


def test_extras_are_left_out_but_for_those_named() -> None:
    lines = ('numpy >=2 ; extra == "all"', 'scipy ; extra == "more"', 'app[more] ; extra == "all"')
    assert required(*lines) == {}
    assert required(*lines, extras=["more"]) == {"scipy": "*"}
    assert required(*lines, extras=["all"]) == {"numpy": ">=2", "scipy": "*"}


RELEASES = ["1.0.0", "1.2.0", "1.2.1", "1.3.0", "1.10.0", "2.0.0", "2.0.1", "2.4.0"]
SCALE = Scale("pep440", sort("pep440", dict.fromkeys(RELEASES, 0)))
CLAUSES = st.builds(
    "{}{}".format,
    st.sampled_from([">=", ">", "<=", "<", "==", "!="]),
    st.sampled_from(["1", "1.2", "1.2.0", "1.3", "2", "2.0", "2.0.1", "2.4"]),
)


@given(st.lists(CLAUSES, min_size=1, max_size=4))
def test_a_selector_admits_what_the_requirement_does(clauses: list[str]) -> None:
    written = ",".join(clauses)
    selector = required(f"numpy {written}")["numpy"]
    admitted = SCALE.named(SCALE.mask(SCALE.parse(selector)))
    wanted = SpecifierSet(written)
    assert admitted == [release for release in RELEASES if release in wanted]
