"""Wheels by the names that a release page gives them: what a name tells, wherever it stands, and what is refused."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolmatrix.errors import HarvestRefused, MatrixError, UsageError
from toolmatrix.factbase.load import load
from toolmatrix.harvest import families, runs
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.transport import Session

PAGE = "https://github.com/maker/ext/releases/download"
FAMILY: dict[str, Any] = {
    "kind": "listing",
    "about": "Ext: its wheels",
    "component": "ext",
    "listings": [
        {"source": "list", "repository": "keeper/ext-whl", "path": "assets*", "title": "its files"}
    ],
    "channel": {"id": "ext-page", "title": "its release pages"},
    "file": "ext-{release}+{line}-{python}-{abitag}-linux_{machine}.whl",
    "address": PAGE + "/{tag}/{file}",
    "line": r"cu(?P<cuda>1[0-3])\d*torch(?P<torch>[12]\.\d+)cxx11abi(?P<abi>TRUE|FALSE)",
    "skip": [r"torch2[4-9]\.\d\d"],
    "columns": {"torch": {"as": "requires"}, "archs": {"component": "arch", "as": "limits"}},
    "cells": {"torch": "{torch}", "cuda": "{cuda}", "cxx11-abi": "{abi}"},
}


def wheel(
    release: str = "2.7.4.post1", line: str = "cu12torch2.6cxx11abiFALSE", tag: int = 311
) -> str:
    return f"ext-{release}+{line}-cp{tag}-cp{tag}-linux_x86_64.whl"


def harvested(folder: Path, *, place: str = "", **more: Any) -> dict[str, Any]:
    """What a family of this shape gives, read from a place."""
    file = folder / "families.yaml"
    file.write_text(
        yaml.safe_dump({"schema": families.SCHEMA, "families": {"ext-wheels": {**FAMILY, **more}}})
    )
    context = HarvestContext(session=Session(), day=date(2026, 11, 23), place=place)
    return families.harvest(families.families(str(file))["ext-wheels"], context)


def rows(folder: Path, text: str, **more: Any) -> list[dict[str, Any]]:
    listing = folder / "assets"
    listing.write_text(text)
    found: list[dict[str, Any]] = harvested(folder, place=str(listing), **more)["tables"][0]["rows"]
    return found


@pytest.mark.parametrize(
    "text",
    [
        f"{wheel()}\n{wheel(tag=312)}\n",
        f'<a href="/maker/ext/releases/download/v2.7.4.post1/{wheel()}">{wheel()}</a><a>{wheel(tag=312)}</a>',
        (
            f'[{{"name":"{wheel()}","url":"{PAGE}/v2.7.4.post1/{wheel().replace("+", "%2B")}"}},'
            f'{{"name":"{wheel(tag=312)}"}}]'
        ),
        f"v2.7.4.post1,{wheel()},cu12\nv2.7.4.post1,{wheel(tag=312)},{PAGE}/v2.7.4.post1/{wheel(tag=312)}",
    ],
    ids=["names", "page", "release API", "table"],
)
def test_a_name_tells_the_same_wherever_it_stands(tmp_path: Path, text: str) -> None:
    assert rows(tmp_path, text) == [
        {
            "id": "ext-wheels/2.7.4.post1+cu12torch2.6cxx11abiFALSE@ext-page/x86_64",
            "ext": "2.7.4.post1",
            "line": "cu12torch2.6cxx11abiFALSE",
            "channel": "ext-page",
            "machine": "x86_64",
            "torch": "2.6",
            "cuda": "12",
            "cxx11-abi": "false",
            "python": "3.11-3.12",
            "source": "list",
            "archs": "unknown",
        }
    ]


def test_what_a_family_says_of_builds_stands_before_what_names_tell(tmp_path: Path) -> None:
    known = [
        {"releases": ">=2.8", "lines": "cu12*", "archs": "sm_80 sm_120"},
        {"releases": "*", "archs": "sm_80", "torch": {"is": "2.6", "evidence": "derived"}},
    ]
    text = "\n".join([wheel(), wheel("2.8.3"), wheel("2.8.3", "cu11torch2.6cxx11abiTRUE")])
    found = rows(tmp_path, text, known=known)
    assert [(row["ext"], row["line"][:4], row["archs"]) for row in found] == [
        ("2.8.3", "cu11", "sm_80"),
        ("2.8.3", "cu12", "sm_80 sm_120"),
        ("2.7.4.post1", "cu12", "sm_80"),
    ]
    assert found[0]["torch"] == {"is": "2.6", "evidence": "derived"}


def test_releases_whose_builds_are_alike_share_a_row(tmp_path: Path) -> None:
    found = rows(tmp_path, "\n".join([wheel("2.10.0"), wheel("2.9.0"), wheel("2.8.3", tag=39)]))
    assert [(row["ext"], row["python"]) for row in found] == [
        ("2.9.0 2.10.0", "3.11"),
        ("2.8.3", "3.9"),
    ]


def test_lines_stand_in_the_order_of_toolkit_and_torch(tmp_path: Path) -> None:
    lines = ["cu12torch2.10cxx11abiTRUE", "cu118torch2.9cxx11abiTRUE", "cu12torch2.9cxx11abiTRUE"]
    listing = tmp_path / "assets"
    listing.write_text("\n".join(wheel(line=line) for line in lines))
    channel = harvested(tmp_path, place=str(listing))["channels"][0]
    assert channel["lines"] == {"cuda": [lines[1], lines[2], lines[0]]}
    assert channel["kind"] == "releases"


def test_a_page_whose_tag_is_not_the_release_gets_an_address_of_its_own(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, f"{PAGE}/v2.7.4.post3/{wheel()}")
    assert row["install"] == (
        f"ext@{PAGE}/v2.7.4.post3/ext-{{release}}+{{line}}-{{python}}-{{abitag}}-linux_{{machine}}.whl"
    )


def test_python_3_7_has_the_letter_that_its_abi_tag_had(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, wheel(tag=37).replace("cp37-cp37", "cp37-cp37m"))
    assert row["python"] == "3.7"


def test_builds_that_belong_to_no_release_are_left_out_by_name(tmp_path: Path) -> None:
    text = "\n".join([wheel(), wheel(line="cu13torch25.08cxx11abiTRUE")])
    assert len(rows(tmp_path, text)) == 1


@pytest.mark.parametrize(
    ("text", "what", "found"),
    [
        (f"{wheel()} ext-2.9-cp311.whl", "1 unexpected wheel file name for ext", "ext-2.9-cp311.whl"),
        ("<html>moved</html>", "no wheel of ext is listed", "none"),
        (f"https://elsewhere.example/{wheel()}", "a wheel of ext has an unexpected address", f"https://elsewhere.example/{wheel()}"),
    ],
)  # fmt: skip
def test_a_page_that_changed_is_refused(tmp_path: Path, text: str, what: str, found: str) -> None:
    with pytest.raises(HarvestRefused, match=what) as caught:
        rows(tmp_path, text)
    assert caught.value.found == found
    assert caught.value.expected


def test_without_a_place_it_says_what_it_wants(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="read from a stored listing") as caught:
        harvested(tmp_path)
    assert "--from" in caught.value.expected


def test_a_place_without_the_listing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(HarvestRefused, match="the listing of `ext-wheels` is missing") as caught:
        harvested(tmp_path, place=str(tmp_path / "empty"))
    assert caught.value.expected == "assets* of keeper/ext-whl"


def test_a_pattern_that_is_none_is_a_mistake_of_the_family(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="a pattern cannot be read"):
        harvested(tmp_path, place=str(tmp_path), line="cu(")


@pytest.mark.process
def test_a_clone_is_read_at_its_commit(tmp_path: Path) -> None:
    clone = tmp_path / "clones" / "ext-whl"
    clone.mkdir(parents=True)
    (clone / "assets.csv").write_text(wheel())

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        done = subprocess.run(
            ["git", "-C", str(clone), *who, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "list")
    # What is not committed has no source.
    (clone / "assets.csv").write_text(wheel("9.9.9"))
    document = harvested(tmp_path, place=str(tmp_path / "clones"))
    commit = git("rev-parse", "HEAD")
    assert document["sources"]["list"]["at"] == f"keeper/ext-whl:assets*@{commit[:12]}"
    assert [row["ext"] for row in document["tables"][0]["rows"]] == ["2.7.4.post1"]


def test_what_is_written_can_be_loaded(tmp_path: Path) -> None:
    listing = tmp_path / "assets"
    listing.write_text(wheel())
    columns = {"python": {"as": "attribute"}, "torch": {"as": "attribute"}, "cuda": {"as": "attribute"},
               "cxx11-abi": {"as": "attribute"}, "archs": {"component": "arch", "as": "limits"}}  # fmt: skip
    document = harvested(tmp_path, place=str(listing), columns=columns)
    document["components"] = {
        name: {"title": name, "scheme": scheme, "variants": name == "ext"}
        for name, scheme in (("ext", "pep440"), ("arch", "names"), ("machine", "names"), ("accelerator", "names"))
    }  # fmt: skip
    document["releases"] = [
        {"id": "ext-releases", "component": "ext", "source": "list", "evidence": "stated", "where": "list",
         "versions": {"2.7.4.post1": {}}}
    ]  # fmt: skip
    file = tmp_path / "ext-wheels.yaml"
    file.write_text(runs.text(document, "Ext: its wheels"))
    found = load([str(file)]).releases[
        "ext-variant", "2.7.4.post1+cu12torch2.6cxx11abiFALSE@ext-page/x86_64"
    ]
    assert found.attributes["install"] == (
        f"ext@{PAGE}/v2.7.4.post1/ext-2.7.4.post1+cu12torch2.6cxx11abiFALSE-{{python}}-{{abitag}}-linux_x86_64.whl"
    )


INDEX = {
    "file": "ext-{release}+{line}-{python}-{abitag}-{platform}.whl",
    "install": "ext=={release}",
    "channel": {"id": "maker"},
    "line": "(?:cpu|cu[0-9]+|rocm[0-9.]+)",
    "cells": {},
    "skip": ["-(win|macosx)_", "cp3[0-9]+t-"],
}


def indexed(folder: Path, text: str) -> dict[str, Any]:
    """What a saved page of a vendor's index gives."""
    listing = folder / "assets"
    listing.write_text(text)
    file = folder / "families.yaml"
    told = {name: value for name, value in FAMILY.items() if name != "address"} | INDEX
    file.write_text(yaml.safe_dump({"schema": families.SCHEMA, "families": {"ext-index": told}}))
    context = HarvestContext(session=Session(), day=date(2026, 11, 23), place=str(listing))
    return families.harvest(families.families(str(file))["ext-index"], context)


def test_a_saved_page_of_an_index_tells_lines_machines_and_pythons(tmp_path: Path) -> None:
    names = [
        "ext-2.6.0%2Bcu126-cp311-cp311-manylinux_2_28_x86_64.whl",
        "ext-2.6.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl",
        "ext-2.6.0%2Bcu126-cp312-cp312-linux_aarch64.whl",
        "ext-2.6.0%2Bcu126-cp313-cp313t-linux_aarch64.whl",
        "ext-2.6.0%2Brocm6.2.4-cp312-cp312-manylinux1_x86_64.manylinux_2_17_x86_64.whl",
        "ext-2.6.0%2Bcu126-cp312-cp312-win_amd64.whl",
    ]
    page = "".join(f'<a href="/whl/{name}#sha256=00">{name}</a><br>' for name in names)
    document = indexed(tmp_path, page)
    table = document["tables"][0]
    assert [(row["line"], row["machine"], row["python"]) for row in table["rows"]] == [
        ("cu126", "aarch64", "3.12"),
        ("cu126", "x86_64", "3.11-3.12"),
        ("rocm6.2.4", "x86_64", "3.12"),
    ]
    assert table["install"] == "ext=={release}"
    # The channel is declared where its other builds are.
    assert document["channels"] == []


def test_a_build_is_installed_in_one_way(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="the family does not say how to install a build"):
        harvested(tmp_path, place=str(tmp_path), install="ext=={release}")
