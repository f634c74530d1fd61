"""Releases and selectors in words: ranges are merged before they are told."""

from __future__ import annotations

import pytest

from tests.cli.conftest import SMALL
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.report import claims


@pytest.fixture(scope="module")
def index() -> Index:
    """Of the small matrix: python 3.6 3.8 3.9 3.12, archs sm_70 sm_80 sm_86."""
    return open_index([str(SMALL / "matrix.yaml")], {})


@pytest.mark.parametrize(
    ("component", "selectors", "told"),
    [
        ("python", ["3.6-3.8"], "3.6-3.8"),
        ("python", ["3.6-3.8", "3.6-3.9"], "3.6-3.9"),
        ("python", ["3.6", "3.8"], "3.6-3.8"),
        ("python", ["3.6", "3.9 3.12"], "3.6, 3.9-3.12"),
        ("python", ["<3.9", ">=3.9"], "*"),
        ("python", [">=3.8", ">=3.9"], ">=3.8"),
        ("arch", ["sm_70", "sm_86"], "sm_70 sm_86"),
    ],
)
def test_several_selectors_are_told_as_one(
    index: Index, component: str, selectors: list[str], told: str
) -> None:
    assert claims.union(index, component, selectors) == told


def test_releases_are_told_as_ranges(index: Index) -> None:
    assert claims.ranged(index, "python", ["3.8", "3.6", "3.12"]) == "3.6-3.8, 3.12"
    assert claims.ranged(index, "python", ["3.6", "3.8", "3.9", "3.12"]) == ""
    assert claims.ranged(index, "python", []) == ""


def test_notes_are_numbered_in_order_of_appearance(index: Index) -> None:
    notes = claims.Notes(index)
    first, second = list(index.sources())[:2]
    assert [notes.mark([second]), notes.mark([first, second, first])] == ["[1]", "[1][2]"]
    assert [line.split()[0] for line in notes.lines()] == ["[1]", "[2]"]
