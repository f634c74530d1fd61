"""Families of packages: an index on loopback with wheels made here, and the facts that come of it."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.harvest import shop
from tests.harvest.shop import File
from tests.images.hostile import Reply, Server
from toolmatrix.errors import HarvestRefused, IndexFailed, MatrixError, NothingMatched
from toolmatrix.harvest import families, runs
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.transport import Session

pytestmark = pytest.mark.process

PYTHONS = ("2.7", "3.8", "3.9", "3.10", "3.11", "3.12")
X86 = "manylinux_2_17_x86_64"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that is the index of this machine's user."""
    with shop.as_index_of_user(monkeypatch) as found:
        yield found


def document(
    folder: Path,
    packages: str,
    context: HarvestContext | None = None,
    *,
    keys: str = "",
    **more: Any,
) -> dict[str, Any]:
    """The facts of one family with these packages, and these keys besides."""
    path = folder / "families.yaml"
    path.write_text(
        "schema: toolmatrix.families/1\n"
        "packages: {torch: torch, numpy: numpy}\n"
        f"families:\n  app:\n    kind: index\n    about: words\n    packages: {packages}\n"
        f"{keys}"
        "programs: {ninja: ninja}\n"
        "sonames: {'libc[.]': torch, libcudart: numpy}\n"
    )
    known = families.families(str(path))
    given: dict[str, Any] = {
        "session": Session(),
        "day": date(2026, 11, 23),
        **families.vocabulary(str(path)),
        "pythons": PYTHONS,
        **more,
    }
    return families.harvest(known["app"], context or HarvestContext(**given))


def rows(made: dict[str, Any], table: str = "app-releases") -> list[dict[str, Any]]:
    """The rows of a table."""
    found: list[dict[str, Any]] = next(one["rows"] for one in made["tables"] if one["id"] == table)
    return found


def wheels(version: str, *pythons: str, requires: Sequence[str] = ()) -> list[File]:
    """A wheel for each Python."""
    return [
        shop.wheel(
            "app", version, f"cp{one}-cp{one}-{X86}", requires, said={"requires-python": ">=3.8"}
        )
        for one in pythons
    ]


def test_a_release_is_its_dates_pythons_machines_and_requirements(
    server: Server, tmp_path: Path
) -> None:
    files = wheels("1.2", "38", "39", requires=["numpy>=1.17", "nobody"])
    shop.stock(server, "app", files)
    made = document(tmp_path, "{app: {title: App}}")
    low, high = files
    assert rows(made) == [
        {
            "app": "1.2",
            "date": "2024-05-06",
            "requires-python": ">=3.8",
            "python": "3.8-3.9",
            "glibc": ">=2.17",
            "wheel-machine": "x86_64",
            "numpy": ">=1.17",
            "where": f"{low.name}, sha256 {low.sha256[:16]}; {high.name}, sha256 {high.sha256[:16]}",
        }
    ]
    assert made["sources"] == {
        "pypi-app": {
            "title": "Python package index, app: file list and METADATA",
            "at": "package app, final releases 1.2 to 1.2",
            "read": "2026-11-23",
        }
    }


def test_between_two_ends_that_agree_nothing_is_read(server: Server, tmp_path: Path) -> None:
    files = wheels("1.0", "38", "39", "310", "311", requires=["numpy"])
    shop.stock(server, "app", files)
    document(tmp_path, "{app: {}}")
    touched = {one.path for one in server.asked if one.path.endswith(".whl")}
    assert touched == {f"/files/{files[0].name}", f"/files/{files[-1].name}"}


def test_where_the_ends_differ_every_wheel_is_read(server: Server, tmp_path: Path) -> None:
    files = [
        *wheels("1.0", "38", "39", requires=["numpy>=1.17"]),
        *wheels("1.0", "310", requires=["numpy>=1.21"]),
        *wheels("1.0", "311", requires=["numpy>=1.23"]),
    ]
    shop.stock(server, "app", files)
    (row,) = rows(document(tmp_path, "{app: {}}"))
    assert row["numpy"] == [
        {"is": ">=1.17", "when": {"python": "3.8-3.9"}},
        {"is": ">=1.21", "when": {"python": "3.10"}},
        {"is": ">=1.23", "when": {"python": "3.11"}},
    ]
    assert len(row["where"].split("; ")) == 4


def test_metadata_beside_a_wheel_spares_the_wheel(server: Server, tmp_path: Path) -> None:
    (file,) = wheels("1.0", "38", requires=["numpy<2"])
    shop.stock(server, "app", [file])
    text = b"Metadata-Version: 2.1\nName: APP\nVersion: 1.0\nRequires-Dist: numpy<1.5\n"
    server.answers[f"/files/{file.name}.metadata"] = Reply(body=text)
    (row,) = rows(document(tmp_path, "{app: {}}"))
    assert row["numpy"] == "<1.5"
    assert f"/files/{file.name}" not in [one.path for one in server.asked]


def test_a_page_in_the_place_of_metadata_is_not_taken_for_it(
    server: Server, tmp_path: Path
) -> None:
    (file,) = wheels("1.0", "38", requires=["numpy<2"])
    shop.stock(server, "app", [file])
    server.answers[f"/files/{file.name}.metadata"] = Reply(body=b"<html>sign in</html>")
    (row,) = rows(document(tmp_path, "{app: {}}"))
    assert row["numpy"] == "<2"


def test_metadata_of_another_package_is_refused(server: Server, tmp_path: Path) -> None:
    (file,) = wheels("1.0", "38")
    shop.stock(server, "app", [file])
    text = b"Metadata-Version: 2.1\nName: other\nVersion: 1.0\n"
    server.answers[f"/files/{file.name}.metadata"] = Reply(body=text)
    with pytest.raises(HarvestRefused, match="METADATA belongs to another package") as refused:
        document(tmp_path, "{app: {}}")
    assert (refused.value.expected, refused.value.found) == ("the name app", "`other`")


def test_a_wheel_for_any_platform_leaves_python_and_glibc_unsaid(
    server: Server, tmp_path: Path
) -> None:
    anywhere = shop.wheel("app", "1.0", "py3-none-any", ["numpy"])
    shop.stock(server, "app", [*wheels("1.0", "38"), anywhere])
    (row,) = rows(document(tmp_path, "{app: {}}"))
    assert set(row) == {"app", "date", "numpy", "where"}


def test_floors_that_differ_by_python_are_told_by_python(server: Server, tmp_path: Path) -> None:
    files = [
        shop.wheel("app", "1.0", "cp38-cp38-manylinux1_x86_64"),
        shop.wheel("app", "1.0", "cp39-cp39-manylinux_2_28_x86_64"),
        shop.wheel("app", "1.0", "cp39-cp39-manylinux_2_34_aarch64"),
    ]
    shop.stock(server, "app", files)
    (row,) = rows(document(tmp_path, "{app: {requires: []}}"))
    assert row["glibc"] == [
        {"is": ">=2.5", "when": {"python": "3.8"}},
        {"is": ">=2.28", "when": {"python": "3.9"}},
    ]
    assert (row["python"], row["python-aarch64"], row["glibc-aarch64"]) == (
        "3.8-3.9",
        "3.9",
        ">=2.34",
    )


def test_a_withdrawn_release_and_an_older_one_than_wanted(server: Server, tmp_path: Path) -> None:
    gone = shop.wheel("app", "1.2", "py3-none-any", said={"yanked": "broken"})
    files = [shop.wheel("app", version, "py3-none-any") for version in ("0.9", "1.0")]
    shop.stock(server, "app", [gone, *files])
    made = rows(document(tmp_path, "{app: {since: '1.0', requires: []}}"))
    assert [(one["app"], one.get("yanked")) for one in made] == [("1.2", True), ("1.0", None)]


def test_a_source_says_what_it_requires_where_there_is_no_wheel(
    server: Server, tmp_path: Path
) -> None:
    info = "Metadata-Version: 2.1\nName: app\nRequires-Dist: torch\n"
    members = {"LICENSE": "words", "PKG-INFO": info}
    shop.stock(server, "app", [shop.archive("app", "1.0", members)])
    (row,) = rows(document(tmp_path, "{app: {}}"))
    assert (row["torch"], row["evidence"], row["archive"]) == ("*", "stated", "source")


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        ("Metadata-Version: 2.1\nRequires-Dist: torch\n", True),
        # Before PEP 643 it may be left to the build to say what is required.
        ("Metadata-Version: 2.1\n", False),
        ("Metadata-Version: 2.2\n", True),
        ("Metadata-Version: 2.2\nDynamic: Requires-Dist\n", False),
        ("Metadata-Version: 2.2\nDynamic: Requires-Dist\nRequires-Dist: torch\n", True),
    ],
)
def test_a_source_says_all_that_is_required_where_building_changes_nothing(
    server: Server, tmp_path: Path, lines: str, whole: bool
) -> None:
    shop.stock(server, "app", [shop.archive("app", "1.0", {"PKG-INFO": f"Name: app\n{lines}"})])
    made = document(tmp_path, "{app: {}}")
    unread = {} if whole else {"unread": "1.0"}
    assert made["tables"][0]["requirements-read"] == {"others": [], **unread}


LISTED = """numpy>=1.17
torch>=1
[:python_version < "3.6"]
scipy
[all]
jax
[all:platform_system == "Linux"]
h5py; python_version > "3"
"""
# What lies in the folders of a source archive, and what it requires; None where nothing says it.
OLD_SOURCES: dict[str, tuple[dict[str, str], dict[str, str] | None]] = {
    "a list": (
        {"app.egg-info/requires.txt": LISTED, "app.egg-info/SOURCES.txt": ""},
        {"numpy": ">=1.17", "torch": ">=1"},
    ),
    "a list below src": (
        {"src/app.egg-info/requires.txt": "numpy", "src/app.egg-info/SOURCES.txt": ""},
        {"numpy": "*"},
    ),
    "no requirements": ({"app.egg-info/SOURCES.txt": ""}, {}),
    "the list of a fixture": (
        {"tests/other.egg-info/requires.txt": "numpy", "tests/other.egg-info/SOURCES.txt": ""},
        None,
    ),
    "no folder of setuptools": ({"setup.py": ""}, None),
}


@pytest.mark.parametrize("name", OLD_SOURCES)
def test_an_old_source_has_a_list_beside_it(server: Server, tmp_path: Path, name: str) -> None:
    members, requires = OLD_SOURCES[name]
    info = {"PKG-INFO": "Metadata-Version: 2.1\nName: app\n"}
    shop.stock(server, "app", [shop.archive("app", "1.0", info | members)])
    (made,) = document(tmp_path, "{app: {}}")["tables"]
    (row,) = made["rows"]
    assert {key: row[key] for key in ("numpy", "scipy", "torch", "jax", "h5py") if key in row} == (
        requires or {}
    )
    assert ("unread" in made["requirements-read"]) == (requires is None)


def test_what_is_required_beside_components_is_named_and_what_cannot_be_read_is_unread(
    server: Server, tmp_path: Path
) -> None:
    requires = ["numpy", "Typing_Extensions>=4", 'tomli; python_version < "3.9"', "app[fast]"]
    requires += ['rich; extra == "shell"', 'uvicorn; extra == "fast"']
    files = [
        shop.wheel("app", version, f"cp38-abi3-{X86}", lines)
        for version, lines in (("2.0", requires), ("1.0", ["six >= one"]), ("1.0.1", ["torch"]))
    ]
    shop.stock(server, "app", [*files, shop.wheel("app", "0.1", "cp38-cp38-win32")])
    (made,) = document(tmp_path, "{app: {}}")["tables"]
    assert made["requirements-read"] == {
        "others": ["tomli", "typing-extensions", "uvicorn"],
        "unread": "===1.0 0.1",
    }
    # A requirement that has no column of its own is none that is known.
    (made,) = document(tmp_path, "{app: {requires: [torch], extras: [shell]}}")["tables"]
    assert made["requirements-read"]["others"] == [
        *("numpy", "rich", "tomli", "typing-extensions", "uvicorn"),
    ]
    (made,) = document(tmp_path, "{app: {requires: []}}")["tables"]
    assert "requirements-read" not in made


def test_a_marker_may_compare_text_by_three_signs(server: Server, tmp_path: Path) -> None:
    requires = [
        'torch; implementation_name === "pypy"',
        'numpy; implementation_name === "cpython"',
    ]
    shop.stock(server, "app", wheels("1.0", "38", requires=requires))
    (made,) = document(tmp_path, "{app: {}}")["tables"]
    assert "torch" not in made["rows"][0]
    assert made["rows"][0]["numpy"] == "*"


def test_a_program_is_limited_and_not_required(server: Server, tmp_path: Path) -> None:
    shop.stock(server, "app", wheels("1.0", "38", requires=["ninja>=1.11", "numpy"]))
    (made,) = document(tmp_path, "{app: {}}")["tables"]
    assert made["rows"][0]["ninja"] == ">=1.11"
    assert made["columns"]["ninja"]["as"] == "limits"
    assert made["columns"]["numpy"]["as"] == "requires"


def test_what_comes_by_request_is_limited_and_declared_with_its_code(
    server: Server, tmp_path: Path
) -> None:
    module = "app/core.cpython-38-x86_64-linux-gnu.so"
    # A module of this Python, which needs the C library, with the text that import_array() leaves.
    library = min(Path(sysconfig.get_config_var("DESTSHARED")).glob("*.so"))
    data = library.read_bytes() + b"\0numpy.core.multiarray failed to import\0"
    members = {module: data, "app/notes.txt": b"libtorch.so"}
    tags = f"cp38-cp38-{X86}"
    shop.stock(server, "app", [shop.wheel("app", "1.0", tags, ["lib>=2", "numpy"], members)])
    shop.stock(server, "lib", [shop.wheel("lib", "2.0", "py3-none-any")])
    shop.stock(server, "old", [shop.archive("old", "1", {"PKG-INFO": "", "old.py": ""})])
    shop.stock(server, "ext", [shop.archive("ext", "1", {"PKG-INFO": "", "src/ext.cpp": ""})])
    made = document(
        tmp_path, "{app: {title: App}, lib: {}, old: {}, ext: {}}", keys="    by-request: true\n"
    )
    (app, *_) = made["tables"]
    assert app["columns"]["lib"]["as"] == "limits"
    assert app["columns"]["numpy"]["as"] == "requires"
    assert made["components"]["app"] == {"title": "App", "scheme": "pep440"}
    (code,) = made["data"]
    assert (code["lists"], code["source"]) == ("code", "app-code")
    by_name = {row[0]: row[1:] for row in code["rows"]}
    kind, against, file = by_name["app"]
    assert (kind, against) == ("opened", ["torch", "numpy", "python"])
    assert file.endswith(f": {module}; NumPy C API; DT_NEEDED libc.so.6; no device code")
    assert by_name["lib"][:2] == ["pure", []]
    assert by_name["old"][:2] == ["pure", []]
    # What a source archive compiles is written by hand.
    assert "ext" not in by_name


def test_what_differs_by_build_is_named_and_not_read(server: Server, tmp_path: Path) -> None:
    shop.stock(server, "app", wheels("1.0", "38", requires=["part==2", "numpy"]))
    parts = "  parts: {kind: index, about: words, by-build: true, packages: {part: {}}}\n"
    (made,) = document(tmp_path, "{app: {}}", keys=parts)["tables"]
    assert "part" not in made["rows"][0]
    assert made["requirements-read"] == {"others": ["part"]}


def test_packages_of_one_component_are_its_builds(server: Server, tmp_path: Path) -> None:
    shop.stock(server, "app-cu12", [shop.wheel("app-cu12", "1.0", f"cp38-abi3-{X86}", ["numpy"])])
    shop.stock(server, "app-cu11", [shop.wheel("app-cu11", "1.0", f"cp38-abi3-{X86}", ["numpy<2"])])
    made = document(
        tmp_path,
        "{app-cu12: {component: app, line: cu12, cuda: '12'},"
        " app-cu11: {component: app, line: cu11, cuda: '11', beside: true}}",
    )
    assert [one["id"] for one in made["tables"]] == [
        "app-releases",
        "app-cu12-variants",
        "app-cu11-variants",
    ]
    assert [one["app"] for one in rows(made)] == ["1.0"]
    (new,), (old,) = rows(made, "app-cu12-variants"), rows(made, "app-cu11-variants")
    assert (new["line"], new["numpy"], new["archs"], new["cuda-named"], new["python"]) == (
        *("cu12", "*", "unknown", "12", ">=3.8"),
    )
    assert (old["numpy"], old["cuda-beside"]) == ("<2", "11")
    assert made["statements"][0]["evidence"] == "unknown"


def test_a_build_for_the_cpu_holds_no_code_for_devices(server: Server, tmp_path: Path) -> None:
    shop.stock(server, "app", [shop.wheel("app", "1.0", f"cp38-abi3-{X86}", ["numpy"])])
    (build,) = rows(document(tmp_path, "{app: {line: cpu}}"), "app-variants")
    assert "archs" not in build


@pytest.mark.parametrize(
    ("said", "context", "statements"),
    [
        ("", None, []),
        ("from-source: read", {"from": "wheel"}, []),
        ("from-source: unread", {"from": "wheel"}, ["app-from-source"]),
        ("line: cpu", None, ["app-from-source"]),
        ("line: cpu, from-source: read", {"from": "wheel"}, []),
    ],
)
def test_what_files_say_of_a_package_that_is_built_as_well_holds_of_wheels(
    server: Server,
    tmp_path: Path,
    said: str,
    context: dict[str, str] | None,
    statements: list[str],
) -> None:
    shop.stock(server, "app", wheels("1.0", "38", "39"))
    made = document(tmp_path, f"{{app: {{{said}}}}}")
    assert made["tables"][0].get("context") == context
    assert [one["id"] for one in made["statements"]] == statements
    (row,) = rows(made)
    built = "from-source" in said and "line" not in said
    assert row.get("machine") == ("x86_64" if built else None)


def test_the_line_of_a_build_is_that_of_the_torch_it_pins(server: Server, tmp_path: Path) -> None:
    files = [
        shop.wheel("app", "1.1", f"cp38-abi3-{X86}", ["torch==2.4"]),
        shop.wheel("app", "1.0", f"cp38-abi3-{X86}", ["torch>=2.4"]),
    ]
    shop.stock(server, "app", files)
    lines = {"torch": {("2.4.0", "x86_64"): ("cu121", "cuda")}}
    made = document(tmp_path, "{app: {line: torch}}", lines=lines)
    (build,) = rows(made, "app-variants")
    assert (build["app"], build["line"], build["archs"]) == ("1.1", "cu121", "unknown")
    table = made["tables"][1]
    assert (table["matches"], table["evidence"]) == (["torch"], "derived")
    assert [one["torch"] for one in rows(made)] == ["==2.4.0", ">=2.4"]


def test_a_harvest_that_was_cut_short_goes_on(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    files = [one for version in ("1.0", "1.1", "1.2") for one in wheels(version, "38")]
    shop.stock(server, "app", files)
    broken = server.answers.pop(f"/files/{files[1].name}")
    with pytest.raises(IndexFailed):
        document(tmp_path, "{app: {}}", session=Session(str(cache)))
    server.asked.clear()
    server.answers[f"/files/{files[1].name}"] = broken
    assert len(rows(document(tmp_path, "{app: {}}", session=Session(str(cache))))) == 3
    server.asked.clear()
    again = document(tmp_path, "{app: {}}", session=Session(str(cache)))
    assert [one.path for one in server.asked] == ["/simple/app/"]
    assert runs.text(again, "x") == runs.text(document(tmp_path, "{app: {}}"), "x")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>sign in</html>", headers={"Content-Type": shop.JSON}),
        Reply(503),
        Reply(403),
        Reply(302, {"Location": "/simple/app/"}),
        Reply(body=b"x", headers={"Content-Length": str(1 << 40)}),
        Reply(body=b"half", headers={"Content-Length": "99"}),
        Reply(raw=[b"\x00\x01\x02"]),
    ],
    ids=["garbage", "busy", "forbidden", "circles", "huge", "truncated", "noise"],
)
def test_an_index_that_does_not_answer_as_one_is_one_error(
    server: Server, tmp_path: Path, reply: Reply
) -> None:
    server.answers["/simple/app/"] = reply
    with pytest.raises(IndexFailed) as failed:
        document(tmp_path, "{app: {}}")
    assert failed.value.where is not None
    assert failed.value.where.path == "app"


def test_a_package_that_is_not_there_is_named(server: Server, tmp_path: Path) -> None:
    assert server.answers == {}
    with pytest.raises(NothingMatched, match="the package index has no `app`"):
        document(tmp_path, "{app: {}}")


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        ("{app: {colour: red}}", "unknown key"),
        ("{app: {device-code: read}}", "device-code is not a known word"),
        ("[app]", "packages must be a mapping"),
        ("{app: {requires: numpy}}", "a list of names must be a list"),
    ],
)
def test_a_family_that_is_not_one_is_an_error_at_its_place(
    server: Server, tmp_path: Path, packages: str, message: str
) -> None:
    assert server.asked == []
    with pytest.raises(MatrixError, match=message) as refused:
        document(tmp_path, packages)
    assert refused.value.where is not None
    assert refused.value.where.line == 7
