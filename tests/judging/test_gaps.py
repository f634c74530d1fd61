"""What is missing: builds for a machine, toolkits of builds, cells of columns about what computes on an accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judging import small
from toolmatrix.judging import lints

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.judging.conftest import Small
    from toolmatrix.finding import Finding


def find(held: Small) -> list[Finding]:
    """Everything that is missing."""
    return list(lints.gaps(held.matrix, held.index))


def test_nothing_is_missing_where_each_row_says_the_same(make: Callable[..., Small]) -> None:
    assert find(make()) == []
    assert find(make(*small.BUILDS)) == []


def test_a_build_for_a_machine_that_wheels_are_offered_for(make: Callable[..., Small]) -> None:
    more = (
        '{app: "2.0", machine: x86_64, tool: ">=2"}',
        '{app: "2.0", machine: x86_64 aarch64, tool: ">=2"}',
    )
    (found,) = find(make(*small.BUILDS, more))
    assert (found.code, found.severity) == ("TM313", "warning")
    assert (found.component, found.releases) == ("app", ("2.0",))
    assert found.names == ("machine", "aarch64")
    assert found.facts == ("apps/2.0#machine",)


def test_files_tell_the_machine_where_nothing_limits_it(make: Callable[..., Small]) -> None:
    listed = (
        ("machine: {as: limits, context: {from: wheel}, says", "machine: {as: attribute, says"),
        ("tool: {as: requires, context: {from: source}}", """\
tool: {as: requires, context: {from: source}}
      tool-aarch64: {component: tool, as: requires, context: {from: wheel, machine: aarch64}}"""),
        ('machine: x86_64, tool: "<2"}', 'machine: x86_64, tool: "<2", tool-aarch64: "<2"}'),
    )  # fmt: skip
    (found,) = find(make(*small.BUILDS, *listed))
    assert (found.releases, found.names) == (("1.0",), ("machine", "aarch64"))
    assert found.facts == ("apps/1.0#tool-aarch64",)


def test_a_build_whose_toolkit_no_fact_names(make: Callable[..., Small]) -> None:
    dropped = ('kit: "2.0", part: "2.0", archs', 'part: "2.0", archs')
    found = [one for one in find(make(*small.BUILDS, dropped)) if one.severity == "warning"]
    assert [(one.component, one.releases, one.names) for one in found] == [
        ("app", ("2.0",), ("toolkit", "x86_64", "main", "cuda"))
    ]
    assert found[0].facts == ("app-variant==2.0+cu2@main/x86_64",)


def test_that_nobody_knows_a_toolkit_is_a_fact(make: Callable[..., Small]) -> None:
    unread = ('kit: "2.0", part: "2.0"', 'kit: {is: "*", evidence: unknown}, part: "2.0"')
    assert find(make(*small.BUILDS, unread)) == []


def test_a_column_with_cells_in_some_rows(make: Callable[..., Small]) -> None:
    dropped = ('kit: "2.0", part: "2.0", archs', 'kit: "2.0", archs')
    (found,) = find(make(*small.BUILDS, dropped))
    assert (found.code, found.severity) == ("TM313", "info")
    assert (found.component, found.releases) == ("app", ("2.0",))
    assert found.names == ("cell", "part", "builds", "cuda")
    assert found.facts[0].startswith("builds/2.0+cu2@main/x86_64#")


@pytest.mark.parametrize(("kind", "count"), [("tested", 1), ("requires", 1), ("carries", 0)])
def test_what_is_inside_has_no_gaps(make: Callable[..., Small], kind: str, count: int) -> None:
    held = make(
        *small.BUILDS,
        ("columns: {tool: {as: tested}}", f"columns: {{tool: {{as: tested}}, kit: {{as: {kind}}}}}"),
        ('- {app: "2.0", tool: "1.0"}', """\
- {app: "2.0", tool: "2.0"}
      - {app: "1.0", kit: "1.0"}"""),
    )  # fmt: skip
    found = find(held)
    assert [one.names for one in found] == [("cell", "kit", "tested", "")] * count
    assert [one.releases for one in found] == [("2.0",)] * count
