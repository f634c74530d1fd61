"""Ways in which a value stands in a text: by a pattern, under a key, assigned, in a Dockerfile, in a table.

None of them executes anything: Python is parsed, and of what it assigns literals are taken.
"""

from __future__ import annotations

import csv
import html.parser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import HarvestRefused
from toolmatrix.facts import yamlfile
from toolmatrix.facts.yamlfile import YamlNode

Grid = list[dict[str, list[str]]]
"""The rows of a table: what stands under each label, several texts where cells go on in the rows below."""


class Unread(Exception):
    """A text in which a value does not stand as it should; says what was found instead."""


def key(text: str, path: str, words: YamlNode) -> list[str]:
    """The texts under the keys `words` in JSON, TOML or YAML, as the name of the file says; several in a list."""
    value = _document(text, path)
    for word in words.several():
        if not isinstance(value, dict) or word.text not in value:
            raise Unread(f"no key `{word.text}`")
        value = value[word.text]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, (str, int, float)) for one in values):
        raise Unread("something else than text or numbers under the key")
    return [str(one) for one in values]


def _document(text: str, path: str) -> Any:
    if path.endswith((".yaml", ".yml")):
        # As the texts that stand there: PyYAML's own values would make 3.1 of Python 3.10.
        return _plain(yamlfile.parse(text.encode(), path, _YAML))
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


def _plain(node: YamlNode) -> Any:
    if node.fields is not None:
        return {name: _plain(part) for name, part in node.fields.items()}
    return node.text if node.items is None else [_plain(part) for part in node.items]


def assignment(text: str, _path: str, name: YamlNode) -> list[str]:
    """The literal that a Python file assigns to a name, or the literals of a list of them."""
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unread("no Python") from None
    values = [
        one.value
        for one in ast.walk(tree)
        if isinstance(one, (ast.Assign, ast.AnnAssign))
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
        if isinstance(target, ast.Name) and target.id == name.text
    ]
    parts = [
        part
        for value in values
        for part in (value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value])
    ]
    if not values:
        raise Unread(f"nothing is assigned to `{name.text}`")
    return [
        str(part.value)
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, (str, int, float))
    ]


def dockerfile(text: str, _path: str, word: YamlNode) -> list[str]:
    """The images of the stages of a Dockerfile (`FROM`), or the values it gives a variable (`ENV NAME`, `ARG NAME`)."""
    instruction, _, name = word.string("an instruction").partition(" ")
    found = []
    for told, rest in _instructions(text):
        if told == instruction == "FROM":
            # `--platform=...` may stand before the image, and `AS name` behind it.
            found += [part for part in rest.split() if not part.startswith("--")][:1]
        elif told == instruction:
            pairs = re.findall(r"([\w.-]+)=(\"[^\"]*\"|'[^']*'|\S*)", rest)
            # The older form, `ENV NAME value`, has no `=`.
            if told == "ENV" and not pairs:
                pairs = [tuple(rest.split(None, 1))]
            found += [value.strip("\"'") for left, value in pairs if left == name]
    return found


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    # Comments go, also between the lines of one instruction.
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", lines).split("\n"):
        words = line.split(None, 1)
        if len(words) == 2:
            yield words[0].upper(), words[1]


def grid(text: str, path: str, *, columns: bool, after: str) -> Grid:
    """A table of CSV, Markdown or HTML, as rows by the labels of its columns.

    In Markdown it is the first table behind what `after` matches. `columns` says that each column is a record, whose
    labels stand in the first column; a row without one goes on with the row above it.
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
        _fill_down(rows)
        rows = [list(record) for record in zip(*_even(rows), strict=True)]
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


def _fill_down(rows: list[list[str]]) -> None:
    above = ""
    for row in rows:
        above = row[0] = row[0] or above


def _even(rows: list[list[str]]) -> list[list[str]]:
    widest = max(map(len, rows))
    return [row + [""] * (widest - len(row)) for row in rows]


def _labelled(labels: Iterable[str], row: Iterable[str]) -> dict[str, list[str]]:
    record: dict[str, list[str]] = {}
    # Where cells are missing at the end, the last labels have none.
    for label, cell in zip(labels, row):  # noqa: B905
        record.setdefault(label, []).append(cell)
    return record


def column(record: Mapping[str, list[str]], label: str) -> list[str]:
    """What a record of a table has under the label that a pattern fits; Unread where no label or several do."""
    fit = [name for name in record if re.fullmatch(label, name)]
    if len(fit) != 1:
        raise Unread(f"{len(fit)} columns that fit `{label}`, among " + ", ".join(record)[:200])
    return [cell for cell in record[fit[0]] if cell]


EXTRACTORS: Mapping[str, Callable[[str, str, YamlNode], list[str]]] = {
    "key": key,
    "assignment": assignment,
    "dockerfile": dockerfile,
}
