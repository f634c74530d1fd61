"""What the files of a matrix say about themselves."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from toolmatrix.errors import Position
from toolmatrix.judging import lints

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.judging.conftest import Small
    from toolmatrix.finding import Finding

TODAY = date(2026, 1, 31)


def find(held: Small, code: str, stale: int | None = None) -> list[Finding]:
    """The findings with one code, each with its place."""
    found = lints.findings(held.matrix, held.index, TODAY, stale)
    files = [held.path, held.path.replace("front", "facts")]
    return [one for one in lints.located(found, held.matrix, files) if one.code == code]


def test_a_sound_matrix_has_disputes_alone(make: Callable[..., Small]) -> None:
    held = make()
    assert {one.code for one in lints.findings(held.matrix, held.index, TODAY, None)} == {"TM301"}


def test_two_sources_that_disagree_are_one_finding(make: Callable[..., Small]) -> None:
    (found,) = find(make(), "TM301")
    assert found.severity == "info"
    assert (found.component, found.releases) == ("app", ("2.0",))
    assert found.names == ("tool", "tested", "apps", "reported", "artifact")
    assert found.facts == ("tested/2.0#tool", "apps/2.0#tool")
    assert found.where is not None
    assert found.where.line > 0


def test_a_claim_that_is_set_aside_says_so(make: Callable[..., Small]) -> None:
    held = make(
        (
            "columns: {tool: {as: tested}}",
            "columns: {tool: {as: requires, context: {from: source}}}",
        ),
        (
            '- {app: "2.0", tool: "1.0"}',
            '- {app: "2.0", tool: "1.0", decides: false, note: a slip}',
        ),
    )
    assert [one.actual for one in find(held, "TM301")] == [lints.SET_ASIDE]


@pytest.mark.parametrize(
    ("old", "new", "owner", "name"),
    [
        ("policies: {wish: loud}", "policies: {wish: lout}", "target arm", "wish lout"),
        ("target: arm, machine", "target: ram, machine", "target arm", "target ram"),
        ("accelerators: [cuda]", "accelerators: [cuda, rocm]", "component app", "accelerator rocm"),
        ("widens: minor", "widens: {machine: riscv64}", "rule same-minor", "machine riscv64"),
    ],
)
def test_a_name_that_leads_nowhere_is_an_error(
    make: Callable[..., Small], old: str, new: str, owner: str, name: str
) -> None:
    held = make((old, new))
    (found,) = find(held, "TM305")
    assert (found.severity, found.names) == ("error", (owner, name))
    assert found.where is not None
    assert found.where.path.endswith("front.yaml")
    assert found.where.line > 0


def test_what_nobody_uses_is_found_where_it_stands(make: Callable[..., Small]) -> None:
    held = make(
        ("sources:\n", 'sources:\n  idle: {title: Idle, at: "x:y@1", read: 2026-01-01}\n'),
        ("    stands-for: [same-minor]\n", ""),
    )
    found = find(held, "TM304")
    assert [one.names for one in found] == [("source", "idle"), ("rule", "same-minor")]
    assert [one.where and (one.where.path[-10:], one.where.line) for one in found] == [
        ("facts.yaml", 3),
        ("front.yaml", 16),
    ]


def test_a_file_that_is_not_listed_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "curated"
    folder.mkdir()
    for name in ("listed.yaml", "forgotten.yaml", "notes.txt"):
        (folder / name).write_text("")
    files = [str(tmp_path / "matrix.yaml"), str(folder / "listed.yaml")]
    assert [one.names for one in lints.unlisted(files)] == [("file", "forgotten.yaml")]


def test_a_source_read_tomorrow_is_found(make: Callable[..., Small]) -> None:
    (found,) = find(make(("read: 2025-06-01", "read: 2026-02-01")), "TM307")
    assert (found.names, found.actual) == (("third",), "2026-02-01")
    assert find(make(("read: 2025-06-01", "read: 2026-01-31")), "TM307") == []


def test_age_is_asked_for(make: Callable[..., Small]) -> None:
    assert find(make(), "TM310") == []
    assert find(make(), "TM302") == []


@pytest.mark.parametrize(
    ("limit", "matrix", "sources"),
    [(10, 1, ["third", "vendor"]), (29, 0, ["third", "vendor"]), (30, 0, ["third"]), (300, 0, [])],
)
def test_what_was_read_too_long_ago_is_found(
    make: Callable[..., Small], limit: int, matrix: int, sources: list[str]
) -> None:
    held = make()
    assert len(find(held, "TM302", limit)) == matrix
    assert [one.names[0] for one in find(held, "TM310", limit)] == sources


def test_a_stale_source_names_its_facts(make: Callable[..., Small]) -> None:
    (found,) = find(make(), "TM310", 100)
    assert found.names == ("third", "244")
    assert found.facts == ("tested/2.0#tool",)


def test_a_place_in_the_built_in_matrix_is_short() -> None:
    from toolmatrix.resources import matrix_root

    long = Position(f"{matrix_root()}/matrix/curated/cuda.yaml", 3, 5)
    assert str(lints.shortened(long)) == "matrix/curated/cuda.yaml:3:5"
    assert str(lints.shortened(Position("ours.yaml", 1))) == "ours.yaml:1"
