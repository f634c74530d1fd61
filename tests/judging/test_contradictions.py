"""Contradictions between facts: small matrices with one fault each, and where it is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judging import small
from toolmatrix.factbase import load
from toolmatrix.factbase.store import open_index
from toolmatrix.judging import audit, lints

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.judging.conftest import Small
    from toolmatrix.finding import Finding


TOOLKIT = (
    *small.BUILDS,
    ("  kit: {title", "  cuda: {title: CUDA, scheme: pep440, accelerators: [cuda]}\n  kit: {title"),
    ("  arch: {title", "  device: {title: device, scheme: names}\n  arch: {title"),
    (
        "  - {id: kits,",
        (
            "  - {id: cudas, component: cuda, source: vendor, evidence: artifact, where: list,\n"
            '     versions: {"11.2": {}, "12.6": {}}}\n'
            "  - {id: devices, component: device, source: vendor, evidence: artifact, where: list,\n"
            '     versions: {"8.0": {rank: 1}}}\n'
            "  - {id: kits,"
        ),
    ),
    ("versions: {a1: {rank: 1}}", "versions: {a1: {rank: 1}, a2: {rank: 2}}"),
    ("cuda: [cu1, cu2]", "cuda: [cu1, cu2, cu112, cu126]"),
)
"""Builds, a toolkit with releases that names of lines may mean, and a device."""

READ = "    key: app\n    defines: releases\n"


def builds(rows: str, table: str = "second", columns: str = "cuda: {as: requires}") -> str:
    """A table of what is inside builds, read by another than who listed them."""
    return (
        f"  - {{id: {table}, source: vendor, evidence: artifact, where: members, key: app-variant,\n"
        f"     columns: {{{columns}}},\n     rows: [{rows}]}}\n"
    )


def tables(text: str) -> tuple[str, str]:
    """The change that adds tables."""
    return "statements:\n", text + "statements:\n"


def where(text: str) -> tuple[str, str]:
    """The change that lets the row of app 2.0 cite files."""
    return 'tool: ">=2"}', f'tool: ">=2", where: "{text}"}}'


def statement(text: str) -> tuple[str, str]:
    """The change that adds a statement."""
    return "statements:\n", f"statements:\n  - {{{text}, source: vendor, where: text}}\n"


def found(folder: Path, *changes: tuple[str, str]) -> list[Finding]:
    """What contradicts what in the small matrix with changes."""
    front = small.write(folder, *changes)
    index = open_index((front,), {"XDG_CACHE_HOME": str(folder)})
    packages = {"tool": "tool", "tool-cu1": "tool", "app": "app"}
    return list(audit.contradictions(load.load([front]), index, packages))


def said(finding: Finding) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """Its code, component, releases and facts."""
    return finding.code, finding.component, finding.releases, finding.facts


ONE_BUILT = (
    ("{app: 1.0 2.0, line: cpu", "{app: '1.0', line: cpu"),
    (
        '      - {app: "2.0", line: cu2, channel: main, machine: x86_64, kit: "2.0", part: "2.0", archs: a1}\n',
        "",
    ),
)
"""The change that leaves app 2.0 without builds."""
ARCHIVE = "    columns:\n", "    columns:\n      archive: {as: attribute}\n"
UNLIMITED = 'machine: x86_64, tool: ">=2"', 'tool: ">=2"'
DARK = statement("id: dark, when: {app: '*'}, limits: {device: absent}, evidence: unknown")
CPU = "{id: s/1, app-variant: '1.0+cpu@*', "
CUDA = "{id: s/1, app-variant: '1.0+cu1@*', "


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(small.BUILDS, [], id="a matrix without a fault"),
        pytest.param(TOOLKIT, [], id="with a toolkit"),
        pytest.param(
            (*small.BUILDS, tables(builds(f"{CPU}archs: a1}}", columns="archs: {component: arch, as: limits}"))),
            [("TM331", "app", ("1.0",), ("s/1#archs",))],
            id="device code in a build for the CPU",
        ),
        pytest.param(
            (*small.BUILDS, tables(builds(f"{CPU}archs: unknown}}", columns="archs: {component: arch, as: limits}"))),
            [],
            id="nobody read what a build for the CPU holds",
        ),
        pytest.param(
            ((READ, READ + "    requirements-read: {others: [six, tool-cu1]}\n"),),
            [("TM332", "app", (), ())],
            id="a package that is a component by now",
        ),
        pytest.param(
            ((READ, READ + "    requirements-read: {others: [six, wish, app]}\n"),),
            [],
            id="packages that are no component, or the component itself",
        ),
        pytest.param(
            (*TOOLKIT, where("app-2.0.tar.gz, sha256 0"), *ONE_BUILT, UNLIMITED),
            [("TM333", "app", ("2.0",), ("app==2.0",)), ("TM333", "app", ("2.0",), ("app==2.0",))],
            id="a source archive alone",
        ),
        pytest.param(
            (*TOOLKIT, where('app-2.0.tar.gz, sha256 0", archive: "source'), *ONE_BUILT, UNLIMITED, ARCHIVE),
            [],
            id="a source archive that answers name",
        ),
        pytest.param(
            (*TOOLKIT, where("app-2.0-cp39-cp39-linux_x86_64.whl"), *ONE_BUILT),
            [],
            id="a wheel for the machine that its row is limited to",
        ),
        pytest.param(
            (*TOOLKIT, tables(builds(f"{CUDA}cuda: '12.6'}}") + "  - {id: makes, source: vendor, evidence: stated, "
             "where: help, key: cuda, columns: {arch: {as: limits}}, rows: [{cuda: '12.6', arch: a2}]}\n"),
             ("line: cu1,", "line: cu126,"), ("1.0+cu1@", "1.0+cu126@")),
            [("TM334", "app", ("1.0",), ("s/1#cuda",))],
            id="code that the toolkit does not make",
        ),
        pytest.param(
            (*TOOLKIT, ("line: cu1,", "line: cu126,"),
             tables(builds(CUDA.replace("cu1@", "cu126@") + "cuda: '12.6'}"))),
            [],
            id="the line is that of the toolkit inside",
        ),
        pytest.param(
            (*TOOLKIT, ("line: cu1,", "line: cu112,"),
             tables(builds(CUDA.replace("cu1@", "cu112@") + "cuda: '12.6'}"))),
            [("TM335", "app", ("1.0",), ("s/1#cuda",))],
            id="the line is of another toolkit than the one inside",
        ),
        pytest.param(
            (*TOOLKIT, tables(builds(f"{CPU}cuda: '12.6'}}"))),
            [("TM335", "app", ("1.0",), ("s/1#cuda",))],
            id="a toolkit in a build for the CPU",
        ),
        pytest.param(
            (*TOOLKIT, where("app-2.0-py3-none-any.whl"), DARK),
            [("TM336", "app", ("2.0",), ("dark#device",))],
            id="nobody read the code of a wheel that holds none",
        ),
        pytest.param(
            (*TOOLKIT, where("app-2.0-py3-none-any.whl"), DARK,
             statement("id: libs, when: {app: '2.0'}, limits: {cuda: '12.6'}, evidence: artifact")),
            [],
            id="a wheel for any machine that holds libraries for CUDA",
        ),
        pytest.param(
            (("where: list of releases\n", "where: file list and METADATA\n"),),
            [("TM337", "app", (), ("app==1.0",))],
            id="a list that was read before requirements were recorded",
        ),
        pytest.param(
            (("where: list of releases\n", "where: METADATA\n"),
             (READ, READ + "    requirements-read: {others: []}\n")),
            [],
            id="a list that was read whole",
        ),
    ],
)  # fmt: skip
def test_each_contradiction_is_reported_once(
    tmp_path: Path,
    changes: tuple[tuple[str, str], ...],
    expected: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]],
) -> None:
    assert [said(one) for one in found(tmp_path, *changes)] == expected


def test_one_build_under_two_lines_in_two_files_is_reported(tmp_path: Path) -> None:
    front = small.write(tmp_path, *small.BUILDS)
    (tmp_path / "more.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "tables:\n"
        "  - {id: more, source: vendor, evidence: artifact, where: list, defines: variants, key: app,\n"
        "     columns: {archs: {component: arch, as: limits}},\n"
        "     rows: [{app: '1.0', line: cu2, channel: main, machine: x86_64, archs: a1}]}\n"
    )
    path = tmp_path / "front.yaml"
    path.write_text(path.read_text().replace("[facts.yaml]", "[facts.yaml, more.yaml]"))
    index = open_index((front,), {"XDG_CACHE_HOME": str(tmp_path)})
    (one,) = audit.contradictions(load.load([front]), index, {})
    assert said(one)[:3] == ("TM335", "app", ("1.0",))


def test_a_name_is_reported_where_it_stands(tmp_path: Path) -> None:
    (one,) = found(tmp_path, (READ, READ + "    requirements-read: {others: [six, tool-cu1]}\n"))
    text = (tmp_path / "facts.yaml").read_text().splitlines()
    assert one.where is not None
    assert text[one.where.line - 1][one.where.column - 1 :].startswith("tool-cu1")


@pytest.mark.parametrize(
    ("line", "toolkit", "major"),
    [
        ("cu126", "cuda", "12"), ("cu92", "cuda", "9"), ("cu12torch2.6cxx11abiTRUE", "cuda", "12"),
        ("cuda102", "cuda", "10"), ("cu118-beside", "cuda", "11"), ("rocm6.3", "rocm", "6"),
        ("rocm60", "rocm", "6"), ("rocm-rel-6.3", "rocm", "6"), ("cuda", "cuda", ""), ("own", "cuda", ""),
        ("cpu", "cuda", "absent"), ("rocm6.3", "cuda", "absent"),
    ],
)  # fmt: skip
def test_a_line_names_the_major_release_of_its_toolkit(line: str, toolkit: str, major: str) -> None:
    assert audit._toolkit(line, toolkit) == major


# What is missing: builds for a machine, toolkits of builds, cells of columns about what computes on an accelerator.


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
