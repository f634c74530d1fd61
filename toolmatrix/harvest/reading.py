"""The files that a family of source trees reads, and the methods that extract values from their text.

By a pattern, under a key, assigned, in a Dockerfile, in a table: matrix/families.yaml names the method and the cells
for its values. No method executes anything: Python is parsed, and only literals are read.
"""

from __future__ import annotations

import csv
import html.parser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import HarvestRefused
from toolmatrix.factbase import pieces, versions, yamlfile
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.harvest.families import plain_value
from toolmatrix.value import Value

Grid = list[dict[str, list[str]]]
"""The rows of a table: the texts under each label, several if a label occurs more than once."""


class Unread(Exception):
    """A value is not in the text as expected; the message is what was found instead."""


def key(text: str, path: str, words: YamlNode) -> list[str]:
    """The texts under the keys `words` in JSON, TOML or YAML, by the name of the file; several for a list."""
    value = _document(text, path)
    for name in words.several():
        if not isinstance(value, dict) or name.text not in value:
            raise Unread(f"no key `{name.text}`")
        value = value[name.text]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, (str, int, float)) for entry in values):
        raise Unread("neither text nor numbers under the key")
    return [str(entry) for entry in values]


def _document(text: str, path: str) -> Any:
    if path.endswith((".yaml", ".yml")):
        # As text: PyYAML would turn Python 3.10 into 3.1.
        return plain_value(yamlfile.parse(text.encode(), path, _YAML))
    if path.endswith((".toml", ".lock")):
        return toml.parse(text, path, HarvestRefused, path)
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unread("no JSON") from None


_YAML = yamlfile.NodeKind(
    noun="a file of a source tree", error=HarvestRefused, help="", missing="check the path"
)


def assignment(text: str, _path: str, name: YamlNode) -> list[str]:
    """The literal that a Python file assigns to a name, or the literals of a list of them."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unread("no Python") from None
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id == name.text
    ]
    literals = [
        literal
        for value in values
        for literal in (value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value])
    ]
    if not values:
        raise Unread(f"nothing is assigned to `{name.text}`")
    return [
        str(literal.value)
        for literal in literals
        if isinstance(literal, ast.Constant) and isinstance(literal.value, (str, int, float))
    ]


def dockerfile(text: str, _path: str, node: YamlNode) -> list[str]:
    """The images of the stages of a Dockerfile (`FROM`), or the values of a variable (`ENV NAME`, `ARG NAME`)."""
    instruction, _, name = node.string("an instruction").partition(" ")
    values = []
    for keyword, rest in _instructions(text):
        if keyword == instruction == "FROM":
            # `--platform=...` may precede the image, and `AS name` may follow it.
            values += [argument for argument in rest.split() if not argument.startswith("--")][:1]
        elif keyword == instruction:
            pairs = re.findall(r"([\w.-]+)=(\"[^\"]*\"|'[^']*'|\S*)", rest)
            # The older form, `ENV NAME value`, has no `=`.
            if keyword == "ENV" and not pairs:
                pairs = [tuple(rest.split(None, 1))]
            values += [value.strip("\"'") for left, value in pairs if left == name]
    return values


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    # Remove comments, also between the lines of one instruction.
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", lines).split("\n"):
        words = line.split(None, 1)
        if len(words) == 2:
            yield words[0].upper(), words[1]


def grid(text: str, path: str, *, columns: bool, after: str) -> Grid:
    """A table of CSV, Markdown or HTML, as rows by the labels of its columns.

    In Markdown it is the first table after the match of `after`. With `columns`, each column is a record, and the first
    column has the labels; a row without a label continues the row above it.
    """
    if after:
        start = re.search(after, text, re.MULTILINE)
        if not start:
            raise Unread(f"nothing that matches `{after}`")
        text = text[start.end() :]
    rows = _csv(text) if path.endswith(".csv") else _markup(text)
    if len(rows) < 2:
        raise Unread("no table")
    if columns:
        above = ""
        for row in rows:
            above = row[0] = row[0] or above
        rows = [list(record) for record in zip_longest(*rows, fillvalue="")]
    return [_labelled(rows[0], row) for row in rows[1:]]


def _csv(text: str) -> list[list[str]]:
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    except csv.Error as error:
        raise Unread(str(error)) from None


def _markup(text: str) -> list[list[str]]:
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith(("|", "<table"))), None)
    if start is None:
        return []
    if lines[start].startswith("<table"):
        reader = _HtmlTable()
        reader.feed("\n".join(lines[start:]))
        return [[" ".join(cell.split()) for cell in row] for row in reader.rows]
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            rows.append(cells)
    return rows


class _HtmlTable(html.parser.HTMLParser):
    # The cells of the first table of a text.
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.ended = False

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the name is that of html.parser
        if tag == "tr" and not self.ended:
            self.rows.append([])
        elif tag in ("td", "th") and self.rows and not self.ended:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.ended = self.ended or tag == "table"

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and not self.ended:
            self.rows[-1][-1] += data


def _labelled(labels: Iterable[str], row: Iterable[str]) -> dict[str, list[str]]:
    record: dict[str, list[str]] = {}
    # A row may lack cells at the end.
    for label, cell in zip(labels, row):  # noqa: B905
        record.setdefault(label, []).append(cell)
    return record


def column(record: Mapping[str, list[str]], label: str) -> list[str]:
    """The cells of a record under the label that a pattern matches; Unread if not exactly one label matches."""
    fit = [name for name in record if re.fullmatch(label, name)]
    if len(fit) != 1:
        raise Unread(f"{len(fit)} columns that fit `{label}`, among " + ", ".join(record)[:200])
    return [cell for cell in record[fit[0]] if cell]


EXTRACTORS: Mapping[str, Callable[[str, str, YamlNode], list[str]]] = {
    "key": key,
    "assignment": assignment,
    "dockerfile": dockerfile,
}


_READ = ("path", "paths", "where", "releases", "grid", "cells")
_OTHER_METHODS = ("match", "column", "date")
_METHODS = (*EXTRACTORS, *_OTHER_METHODS)
_CELL = (*_METHODS, "is", "words", "several", "nothing", "releases")
_VALUE = "value"
# `{major+1}`: an upper bound below the next major release.
_NAMED = re.compile(r"\{(\w+)(\+1)?\}")
# Characters of a text in an error.
_EXCERPT = 80
_NOTHING: Mapping[str, str] = {}


class CellReading(Value):
    """How to read the value of one column, and the releases that have to have it.

    `method` is a key of `EXTRACTORS`, `column` of a table, `date` of the tag, or `match` alone for the whole text.
    """

    method: str
    node: YamlNode
    match: re.Pattern[str] | None
    template: str
    # The names of values in the matrix; other values are refused.
    words: Mapping[str, str]
    # "" for one value, or how several are written: `blanks` as in a selector, or `list`.
    several: str
    nothing: tuple[str, ...]
    releases: str

    @property
    def expected(self) -> str:
        """A description of the expected text, for errors."""
        return self.match.pattern if self.match else f"{self.method} {pieces.printed(self.node)}"

    def values(self, texts: Sequence[str], extra_groups: Mapping[str, str] = _NOTHING) -> list[str]:
        """The distinct values in these texts; its template may also use `extra_groups`.

        Raises Unread if there is none, or if there are several and one was expected.
        """
        # `N/A` is an explicit nothing, unlike a missing value.
        stated = [text for text in texts if text not in self.nothing]
        if texts and not stated:
            return []
        values = dict.fromkeys(
            self._value({**extra_groups, **groups})
            for text in stated
            for groups in self._matches(text)
        )
        if not values:
            raise Unread(repr("; ".join(stated)[:_EXCERPT]) if stated else "nothing")
        if len(values) > 1 and not self.several:
            raise Unread(f"{len(values)} values: {', '.join(values)[:_EXCERPT]}")
        return list(values)

    def _matches(self, text: str) -> Iterator[Mapping[str, str]]:
        if self.match is None:
            yield {_VALUE: text.strip()}
            return
        for match in self.match.finditer(text):
            yield {_VALUE: match[0], **match.groupdict(default="")}

    def _value(self, groups: Mapping[str, str]) -> str:
        value = _NAMED.sub(
            lambda name: str(int(groups[name[1]]) + 1) if name[2] else groups[name[1]],
            self.template,
        )
        if self.words and value not in self.words:
            raise Unread(f"`{value[:_EXCERPT]}`, not one of {', '.join(self.words)}")
        return self.words.get(value, value)


class GridReading(Value):
    """A table of releases in a file: whether columns are records, a pattern before it, and the reading of a release."""

    columns: bool
    after: str
    release: CellReading


class PathsReading(Value):
    """Files of one release each: a pattern of their paths, and the reading of their release."""

    match: re.Pattern[str]
    release: CellReading


class FileReading(Value):
    """One file to read, or many, with the releases that have it and the cells that it fills.

    Without a path, the tag is read.
    """

    path: str
    paths: PathsReading | None
    where: str
    releases: str
    grid: GridReading | None
    # The values of several readings of a cell are concatenated.
    cells: Mapping[str, Sequence[CellReading | str]]


def file(node: YamlNode) -> FileReading:
    """One item under `read:`. Raises MatrixError."""
    fields = node.only("an item of `read`", _READ, ("cells",))
    paths = _paths(fields["paths"]) if "paths" in fields else None
    extra_groups = tuple(paths.match.groupindex) if paths else ()
    return FileReading(
        path=_path(fields["path"]) if "path" in fields else "",
        paths=paths,
        where=pieces.text(fields, "where"),
        releases=_selector(fields),
        grid=_grid(fields["grid"]) if "grid" in fields else None,
        cells={
            name: [cell.text or _cell(cell, extra_groups) for cell in entry.several()]
            for name, entry in fields["cells"].mapping("cells").items()
        },
    )


def pattern(node: YamlNode) -> re.Pattern[str]:
    """A regular expression in multiline mode. Raises MatrixError."""
    try:
        return re.compile(node.string("a pattern"), re.MULTILINE)
    except re.error as error:
        node.fail("a pattern cannot be read", expected="a regular expression", found=str(error))


def among(version: str, selector: str) -> bool:
    """Whether a selector admits a version. Raises SelectorError for an invalid version."""
    # The lowest bit is `absent`.
    return versions.Scale("pep440", [version]).select(selector) > 1


def _path(node: YamlNode) -> str:
    path = node.string("a path")
    if path.startswith("/") or {"..", "."} & set(path.split("/")) or not path.isprintable():
        node.fail("a path leads out of the tree", expected="a path inside the tree")
    return path


def _grid(node: YamlNode) -> GridReading:
    fields = node.only("a grid", ("records", "after", "release"), ("records", "release"))
    return GridReading(
        columns=fields["records"].choice("records", ("rows", "columns")) == "columns",
        after=pattern(fields["after"]).pattern if "after" in fields else "",
        release=_cell(fields["release"]),
    )


def _paths(node: YamlNode) -> PathsReading:
    fields = node.only("paths", ("match", "release"), ("match", "release"))
    match = pattern(fields["match"])
    return PathsReading(match=match, release=_cell(fields["release"], tuple(match.groupindex)))


def _cell(node: YamlNode, extra_groups: tuple[str, ...] = ()) -> CellReading:
    fields = node.only("a cell", _CELL)
    named = [method for method in _METHODS if method in fields]
    # A pattern may be combined with another method, to match in its values.
    chosen = [method for method in named if method != "match"] or named
    if len(chosen) != 1:
        node.fail(
            "a cell needs exactly one way to read it", expected=f"one of {', '.join(_METHODS)}"
        )
    match = pattern(fields["match"]) if "match" in fields else None
    template = pieces.text(fields, "is", f"{{{_VALUE}}}")
    known = {_VALUE, *extra_groups, *(match.groupindex if match else ())}
    for name, _ in _NAMED.findall(template):
        if name not in known:
            fields["is"].fail(f"`match` has no group `{name}`", expected=", ".join(sorted(known)))
    return CellReading(
        method=chosen[0],
        node=fields[chosen[0]],
        match=match,
        template=template,
        words={
            name: node.string("a word") for name, node in pieces.entries(fields, "words").items()
        },
        several=pieces.choice(fields, "several", ("blanks", "list")),
        nothing=tuple(node.string("a text") for node in pieces.several(fields, "nothing")),
        releases=_selector(fields),
    )


def _selector(fields: Mapping[str, YamlNode]) -> str:
    written = pieces.text(fields, "releases", "*")
    try:
        versions.parse(written)
    except versions.SelectorError as error:
        fields["releases"].fail("a selector cannot be read", expected="`>=1.2`", found=str(error))
    return written
