"""The compact table of packages of Python alone: which releases are in it, and what their METADATA says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.harvest import shop
from tests.images.hostile import Server
from toolmatrix.errors import HarvestRefused
from toolmatrix.harvest import families
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.transport import Session

pytestmark = pytest.mark.process

ANY, X86 = "py3-none-any", "cp38-cp38-manylinux_2_17_x86_64"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with shop.as_index_of_user(monkeypatch) as found:
        yield found


def table(folder: Path) -> dict[str, Any]:
    """The data table of a family with the package app."""
    path = folder / "families.yaml"
    path.write_text(
        "schema: toolmatrix.families/1\npackages: {torch: torch}\n"
        "families: {alone: {kind: independent, about: words, newest: 3, packages: [app]}}\n"
    )
    context = HarvestContext(
        session=Session(), day=date(2026, 1, 2), pythons=("3.8", "3.9", "3.10"), packages={}
    )
    (made,) = families.harvest(families.families(str(path))["alone"], context)["data"]
    return dict(made)


def said(day: str) -> dict[str, str]:
    return {"upload-time": f"{day}T00:00:00Z", "requires-python": ">=3.8"}


def test_a_row_has_the_newest_releases_and_all_that_they_require(
    server: Server, tmp_path: Path
) -> None:
    old, new = ["six", 'net<2; extra == "x"'], ['tomli>=1; python_version < "3.10"', "six>=1.5"]
    files = [
        shop.wheel("app", "0.9", ANY, said=said("2019-01-01")),
        shop.wheel("app", "1.0", ANY, old, said=said("2020-01-01")),
        # Compiled once, and so unknown.
        shop.wheel("app", "1.1", X86, said=said("2020-01-05")),
        shop.wheel("app", "1.2", ANY, old, said=said("2020-01-11")),
        shop.wheel("app", "2.0", ANY, new, said=said("2020-02-01")),
    ]
    shop.stock(server, "app", files)
    made = table(tmp_path)
    assert made["lists"] == "independent"
    assert made["rows"] == [
        [
            "app",
            "1.0@2020-01-01 1.2+10 2.0+21",
            ">=3.8: ..",
            "six *: ..1.2; six >=1.5: 2.0..; tomli >=1 if python=3.8-3.9: 2.0..",
            "5",
        ]
    ]


def test_a_package_whose_newest_release_is_compiled_is_refused(
    server: Server, tmp_path: Path
) -> None:
    files = [shop.wheel("app", "1.0", ANY), shop.wheel("app", "2.0", X86)]
    shop.stock(server, "app", files)
    with pytest.raises(HarvestRefused, match="not of Python alone"):
        table(tmp_path)
