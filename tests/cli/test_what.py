"""`toolmatrix what`: which releases of other components go with one, and of which nobody speaks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest

import toolmatrix
from tests.amount import sampled
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from toolmatrix.api.requests import read_request
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.pairs import grid

LINES = [
    "what cuda==11.0.3",
    "what app --from source",
    "what gcc==8 --target arm",
    "what arch==sm_80",
    "what tool==1.0",
]


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("toolkit", "what cuda==11.0.3", 0),
        ("tested", "what app==2.0.0 --from source", 0),
        ("all", "what gcc==9 --all", 0),
        ("silent", "what tool==2.0", 4),
        ("nowhere", "what cuda==11.0.3 --accelerator none", 3),
        ("given", "what accelerator==cuda --accelerator cuda", 2),
    ],
)
def test_golden(small: Cli, name: str, line: str, code: int) -> None:
    assert check(small, name, line).code == code


def test_colour_and_talk_are_all_that_is_left_out(small: Cli) -> None:
    check_without(small, "what cuda==11.0.3")


@pytest.mark.parametrize("line", LINES)
def test_the_document_keeps_to_its_schema(small: Cli, line: str) -> None:
    validated(small(*shlex.split(line), "--json").json(), "partners")


def said(held: Mapping[str, Any], component: str) -> dict[str, list[str]]:
    """What a document says of the releases of a component, by the word for it."""
    part = next(part for part in held["partners"] if part["component"] == component)
    found: dict[str, list[str]] = {"unknown": part["unknown"]}
    for one in part["said"]:
        found.setdefault(one["says"], []).extend(one["releases"])
    return found


@pytest.mark.long
def test_each_release_is_told_once() -> None:
    held = toolmatrix.what("cuda==12.4").to_json()
    validated(held, "partners")
    index = toolmatrix.open_matrix().index
    for part in held["partners"]:
        told = [*chain.from_iterable(one["releases"] for one in part["said"]), *part["unknown"]]
        assert len(told) == len(set(told)), part["component"]
        assert set(told) <= set(index.component(part["component"]).versions)


def test_every_word_has_a_fact_that_can_be_looked_up() -> None:
    held = toolmatrix.what("cuda==12.4").to_json()
    for part in held["partners"]:
        for one in part["said"]:
            assert one["facts"], part["component"]
            toolmatrix.facts(one["facts"][0], one["facts"][-1])


def test_cuda_12_4_goes_with_what_is_known_of_it() -> None:
    held = toolmatrix.what("cuda==12.4").to_json()
    gcc = said(held, "gcc")
    assert gcc["allowed"] == ["6", "7", "8", "9", "10", "11", "12", "13"]
    assert {"14", "15"} <= set(gcc["refused"])
    assert said(held, "torch")["tested"] == ["2.5.0", "2.5.1", "2.6.0", "2.4.0", "2.4.1"]
    # What nobody tested and no fact refuses is neither.
    assert "2.15.0" in said(held, "torch")["unknown"]
    builds = said(held, "torch-variant")
    assert {name.partition("@")[0].partition("+")[2] for name in builds["allowed"]} == {"cu124"}
    assert "tensorflow" in held["unjoined"]


def test_what_is_not_known_to_be_read_is_unknown() -> None:
    """Lists of packages that nobody read refuse nothing, here as in a grid."""
    held = toolmatrix.what("distro==centos7").to_json()
    assert all(part["component"] != "clang" or not part["said"] for part in held["partners"])


def test_a_component_that_cannot_be_there_is_no_partner() -> None:
    held = toolmatrix.what("gcc==13", target="amd").to_json()
    # CUDA is absent where ROCm computes, whatever GCC it would take.
    assert "cuda" not in {part["component"] for part in held["partners"]}
    assert "cuda" in {
        part["component"] for part in toolmatrix.what("gcc==13").to_json()["partners"]
    }


def test_a_build_is_asked_about_as_itself() -> None:
    held = toolmatrix.what("torch==2.6.0+cu124").to_json()
    assert held["component"] == "torch-variant"
    assert said(held, "cuda")["allowed"] == ["12.4.1"]
    assert "torch" not in {part["component"] for part in held["partners"]}


def test_a_condition_counts_where_what_is_held_decides_it() -> None:
    """TensorFlow 2.16 wants numpy from 1.26 on with Python 3.12: without a Python it is not refused."""
    free = said(toolmatrix.what("tensorflow==2.16.1").to_json(), "numpy")
    held = said(toolmatrix.what("tensorflow==2.16.1", with_="python==3.12").to_json(), "numpy")
    assert "1.24.0" not in free.get("refused", [])
    assert "1.24.0" in held["refused"]
    assert "1.26.4" in held["allowed"]


WORDS = {"tested": "yes", "allowed": "yes", "refused": "no"}


@pytest.mark.parametrize("way", ["source", "wheel"])
@pytest.mark.parametrize(
    "release", sampled(["cuda==12.4.1", "gcc==9", "python==3.9", "torch==2.6.0"], every=2)
)
def test_it_says_what_a_grid_says(release: str, way: str) -> None:
    """A release goes with another, or not, exactly where the grid of the two has `yes` or `no`."""
    index = toolmatrix.open_matrix().index
    options: Any = {"from_": way, "target": "x86", "accelerator": "cuda"}
    name = release.partition("=")[0]
    built = {head["variant_of"] for head in index.header["components"].values()}
    for part in toolmatrix.what(release, **options).to_json()["partners"]:
        other = part["component"]
        # Of which release a build is, is a question of the grid alone.
        if part["builds_of"] == name:
            continue
        _, request = read_request((release, other), options, varied=(name, other))
        found = grid(Assembly(index, request), "x86", name, other)
        row = dict(zip(found.columns, found.cells[0], strict=True))
        # The builds of a release may say to the grid what no fact says of the release itself.
        if way == "source" or not {name, other} & built:
            for partner in part["unknown"]:
                assert row[partner].verdict == "unknown", (other, partner)
        for one in part["said"]:
            for partner in one["releases"]:
                assert row[partner].verdict == WORDS[one["says"]], (other, partner)
