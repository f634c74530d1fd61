"""Grids in words: text, CSV, Markdown, HTML and JSON from one layout; and the cells of a CI matrix."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence

from toolmatrix.documents import Annotated, Count, Evidence, MatrixHead, NonEmpty, TypedDict
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.report import answer, claims, cores, partners, pictures, terminal, variants
from toolmatrix.report.answer import RequestEntry
from toolmatrix.report.terminal import Terminal
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.pairs import Cells, Grid, GridCell
from toolmatrix.solve.request import Request
from toolmatrix.value import Value

GRID = "toolmatrix.grid/1"
RELEASES = "toolmatrix.releases/1"
CELLS = "toolmatrix.cells/1"


class ListedRelease(TypedDict):
    """A release, and the fact that dates it."""

    release: str
    date: str
    evidence: Evidence
    fact: str


class ReleasesDocument(TypedDict):
    """What `toolmatrix matrix --rows NAME --json` prints: the releases of one component."""

    schema: Annotated[str, RELEASES]
    matrix: MatrixHead
    component: str
    releases: list[ListedRelease]


class CellEntry(TypedDict):
    """Whether a row and a column are compatible."""

    value: Annotated[str, "yes", "no", "partial", "unknown"]
    evidence: Evidence
    facts: list[str]


class RowEntry(TypedDict):
    """A row of a grid, for one or more releases."""

    row: str
    releases: NonEmpty[str]
    cells: dict[str, CellEntry]


class GridDocument(TypedDict):
    """What `toolmatrix matrix --rows NAME --cols NAME --json` prints: a grid of two components."""

    schema: Annotated[str, GRID]
    matrix: MatrixHead
    request: RequestEntry
    rows: str
    columns: str
    grid: list[RowEntry]


class ExcludedCell(TypedDict):
    """A combination that does not work, and why."""

    cell: dict[str, str]
    reason: str
    facts: list[str]


class CellCounts(TypedDict):
    """How many combinations there are of each."""

    included: Count
    excluded: Count


class CellsDocument(TypedDict):
    """What `toolmatrix matrix --cells` prints: the combinations that work, for a CI matrix, and the others with the
    reason.
    """

    schema: Annotated[str, CELLS]
    matrix: MatrixHead
    request: RequestEntry
    varied: NonEmpty[str]
    include: list[dict[str, str]]
    excluded: list[ExcludedCell]
    summary: CellCounts


class Layout(Value):
    """A grid ready to print: labels of rows (with the releases of each), columns, and cells."""

    row_component: str
    column_component: str
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell, ...], ...]
    hidden: int


_Natural = list[tuple[int, int, str]]


def layout(
    assembly: Assembly, grid: Grid, rows: str, columns: str, *, everything: bool, brief: bool
) -> Layout:
    """Merge the releases of a minor series that say the same; `brief` leaves out columns in which nothing is `yes`."""
    every = list(range(len(grid.columns)))
    keep = every if everything else _informative(assembly, grid, columns, brief=brief)
    if assembly.header["components"][columns]["scheme"] == "names":
        keep.sort(key=lambda position: _natural(grid.columns[position]))
    groups: list[list[str]] = []
    cells: list[tuple[GridCell, ...]] = []
    last = None
    series = _lines(assembly, rows) if assembly.header["components"][rows]["variant_of"] else {}
    lines = zip(grid.rows, grid.cells, strict=True)
    # Builds of one line stand together, in the order of their releases.
    for release, line in sorted(lines, key=lambda row: series[row[0]]) if series else lines:
        picked = tuple(line[position] for position in keep)
        # Releases that say something else keep a row of their own, or the table would hide it.
        says = series[release][:2] if series else _minor(release), [cell.verdict for cell in picked]
        if says == last:
            groups[-1].append(release)
        else:
            groups.append([release])
            cells.append(picked)
        last = says
    # A row is called by its minor series when no other row shares it.
    minors = [_minor(group[0]) for group in groups]
    named = [
        minor if minors.count(minor) == 1 else " ".join(group)
        for minor, group in zip(minors, groups, strict=True)
    ]
    if series:
        named = [partners.ranges(assembly.index, rows, group) for group in groups]
    return Layout(
        row_component=rows,
        column_component=columns,
        rows=tuple((name, tuple(group)) for name, group in zip(named, groups, strict=True)),
        columns=tuple(grid.columns[position] for position in keep),
        cells=tuple(cells),
        hidden=len(grid.columns) - len(keep),
    )


def _informative(assembly: Assembly, grid: Grid, columns: str, *, brief: bool) -> list[int]:
    """The columns that facts cover, of those that their component wants to be shown."""
    selector = assembly.header["components"][columns].get("grid", "")
    named = assembly.mask(columns, selector) if selector else -1
    versions = assembly.component(columns).versions
    return [
        position
        for position, name in enumerate(grid.columns)
        # Bit 0 of a mask means absence, so the bit of a release is one further up.
        if named >> versions.index(name) + 1 & 1
        and grid.spoken[position]
        and not (brief and all(line[position].verdict == "no" for line in grid.cells))
    ]


def _lines(assembly: Assembly, builds: str) -> dict[str, tuple[_Natural, str, int]]:
    """The place of each build: by its line, its channel, and its release."""
    index = assembly.index
    positions = {}
    for name in assembly.component(builds).versions:
        build = variants.build(index, builds, name)
        release = index.scale(build.component).versions.index(build.release)
        positions[name] = _natural(build.line), build.channel, release
    return positions


def _minor(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _natural(name: str) -> _Natural:
    """`sm_90` before `sm_90a` before `sm_100`: numbers inside a name count as numbers."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(token), "") if token.isdigit() else (0, 0, token) for token in parts]


def document(index: Index, request: Request, layout: Layout) -> GridDocument:
    """The grid as JSON values, every cell with evidence and facts."""
    return {
        "schema": GRID,
        "matrix": answer.head(index),
        "request": answer.request_document(request),
        "rows": layout.row_component,
        "columns": layout.column_component,
        "grid": [
            {
                "row": label,
                "releases": list(releases),
                "cells": {
                    name: {
                        "value": cell.verdict,
                        "evidence": cell.evidence,
                        "facts": sorted(index.record(number).id for number in cell.records),
                    }
                    for name, cell in zip(layout.columns, line, strict=True)
                },
            }
            for (label, releases), line in zip(layout.rows, layout.cells, strict=True)
        ],
    }


def text(index: Index, layout: Layout, form: str, screen: Terminal, title: str = "") -> str:
    """The grid as text, csv, md or html; a page has the title."""
    plain = form == "text"
    corner = "" if plain else f"{layout.row_component} \\ {layout.column_component}"
    table = [[corner, *layout.columns]]
    for (label, _), line in zip(layout.rows, layout.cells, strict=True):
        of = claims.named_as(index, layout.row_component)
        name = f"{of} {label}" if plain else label
        table.append([name, *(cell.verdict for cell in line)])
    remarks, notes = _grounds(index, layout)
    if not plain:
        return _in_form(table, form, title, [*remarks, *notes.lines()])
    lines = _blocks(table, screen)
    return "\n".join([*lines, *remarks, *notes.lines(screen.width)]) + "\n"


def _grounds(index: Index, layout: Layout) -> tuple[list[str], claims.Notes]:
    """How well the cells are known, what is left out, and the sources."""
    cells = [cell for line in layout.cells for cell in line]
    counts = Counter(cell.evidence for cell in cells)
    notes = claims.Notes(index)
    notes.mark(index.record(number).source for cell in cells for number in cell.records)
    known = [f"{counts[word]} {word}" for word in words.WORDS if word in counts]
    lines = ["cells: " + ", ".join(known)]
    if layout.hidden:
        lines.append(f"{layout.hidden} columns without a `yes` are left out (--all)")
    return lines, notes


def _blocks(table: Sequence[Sequence[str]], screen: Terminal) -> list[str]:
    """The lines of a table, on a narrow terminal block below block of its columns, each with the names of the rows."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    blocks: list[list[int]] = []
    room = -1
    for column, width in enumerate(widths[1:], 1):
        if not blocks or (screen.wraps and room < width + 2):
            blocks.append([])
            room = screen.width - widths[0]
        blocks[-1].append(column)
        room -= width + 2
    lines = []
    for block in blocks:
        if len(blocks) > 1:
            heading = f"columns {block[0]} to {block[-1]} of {len(table[0]) - 1}"
            lines.append(screen.style(heading, "bold"))
        for row in table:
            words_of = (_cell(row[column], widths[column], screen) for column in (0, *block))
            lines.append("  ".join(words_of).rstrip())
        lines += [""] if len(blocks) > 1 else []
    return lines


def _cell(text: str, width: int, screen: Terminal) -> str:
    padded = text.ljust(width)
    return screen.style(padded, text) if text in ("yes", "no", "unknown") else padded


def _csv(table: Sequence[Sequence[str]]) -> str:
    # By itself the module ends lines as RFC 4180 does, with a carriage return that a pipe would keep.
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(table)
    return stream.getvalue()


def markdown(table: Sequence[Sequence[str]]) -> str:
    """A table whose first row is its head, as Markdown."""
    # A table of GitHub ends a cell at any pipe, within code as well.
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in table]
    lines = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _in_form(table: Sequence[Sequence[str]], form: str, title: str, remarks: Sequence[str]) -> str:
    """A table as csv, md or html, the last two with the notes below it."""
    if form == "csv":
        return _csv(table)
    if form == "md":
        return markdown(table) + "".join(f"\n{line}\n" for line in remarks)
    below = "".join(f"<p>{pictures.html_text(line)}</p>\n" for line in remarks)
    return pictures.html_page(title, pictures.html_grid(table[0][0] or title, table) + below)


def releases(index: Index, component: str, assembly: Assembly) -> ReleasesDocument:
    """The releases of one component that the request admits as JSON values, newest last."""
    facts = assembly.component(component)
    admitted = assembly.requested.get((assembly.request.targets[0], component), -1)
    rows = zip(facts.versions, facts.dates, facts.releases, strict=True)
    entries: list[ListedRelease] = [
        {"release": name, "date": date, "evidence": record.evidence, "fact": record.id}
        for bit, (name, date, number) in enumerate(rows, 1)
        if admitted >> bit & 1
        for record in [index.release(number)]
    ]
    matrix = answer.head(index)
    return {"schema": RELEASES, "matrix": matrix, "component": component, "releases": entries}


def releases_text(document: ReleasesDocument, form: str, title: str = "") -> str:
    """The releases of one component as text, csv, md or html."""
    table = [
        ["release", "date", "evidence", "fact"],
        *(
            [release["release"], release["date"], release["evidence"], release["fact"]]
            for release in document["releases"]
        ),
    ]
    if form in ("csv", "md", "html"):
        return _in_form(table, form, title, ())
    return "".join(line + "\n" for line in terminal.columns(table))


def cells_document(
    index: Index, request: Request, varied: Sequence[str], cells: Sequence[Cells]
) -> CellsDocument:
    """The cells of a CI matrix: `include` is what a workflow reads, `excluded` what it leaves out and why."""
    include: list[dict[str, str]] = []
    excluded: list[ExcludedCell] = []
    for target_cells in cells:
        include += [
            dict(zip(varied, names, strict=True)) | {"target": target_cells.target}
            for names in target_cells.consistent
        ]
        for names, core in target_cells.excluded:
            entry = cores.core_document(index, core)
            excluded.append(
                {
                    "cell": dict(zip(varied, names, strict=True)) | {"target": target_cells.target},
                    # Without a fact it is lines of the request that contradict each other.
                    "reason": "; ".join(line["text"] for line in entry["lines"] if line["facts"])
                    or "the request",
                    "facts": sorted({fact for line in entry["lines"] for fact in line["facts"]}),
                }
            )
    return {
        "schema": CELLS,
        "matrix": answer.head(index),
        "request": answer.request_document(request),
        "varied": list(varied),
        "include": include,
        "excluded": excluded,
        "summary": {"included": len(include), "excluded": len(excluded)},
    }
