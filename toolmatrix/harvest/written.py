"""Harvested facts as a file: its text, differences from the old file, and a check for lost rows."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.facts import pieces, yamlfile
from toolmatrix.facts.load import FACTS
from toolmatrix.facts.yamlfile import YamlNode
from toolmatrix.value import Value
from toolmatrix.wording import plural, some

_WIDEST = 1 << 30
"""Columns, more than any row has."""
_MOST_NAMED = 20
"""Rows to name in an error."""

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class FactDifference(Value):
    """A row of a fact file that was added, removed or changed, with the old and new text of its changed cells."""

    row: str
    cells: Mapping[str, tuple[str, str]] = {}
    gone: bool = False
    new: bool = False


def text(document: Mapping[str, Any], about: str, by: str = "toolmatrix harvest") -> str:
    """A fact file: sources and tables sorted by name, a line for each row; `by` is the command."""
    lines = [
        "# yaml-language-server: $schema=../../toolmatrix/schemas/facts.schema.json",
        *(f"# {line}" for line in about.splitlines()),
        f"# Written by `{by}`, and never by hand.",
        f"schema: {FACTS}",
    ]
    for key in ("components", "sources"):
        if document.get(key):
            lines.append(f"{key}:")
            lines += (f"  {name}: {_flow(entry)}" for name, entry in sorted(document[key].items()))
    for key in ("channels", "releases", "tables", "statements", "data"):
        if document.get(key):
            lines += ["", f"{key}:"]
            lines += _blocks(sorted(document[key], key=lambda entry: entry["id"]))
    return "\n".join(lines) + "\n"


def _blocks(items: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        dash = "  - "
        for key, value in item.items():
            if key == "rows":
                yield "    rows:"
                yield from (f"      - {_flow(row)}" for row in value)
            elif key == "columns" and isinstance(value, dict):
                yield "    columns:"
                yield from (f"      {name}: {_flow(column)}" for name, column in value.items())
            else:
                yield f"{dash}{key}: {_flow(value)}"
            dash = "    "


def _flow(value: Any) -> str:
    # A line of any length, so that diffs show rows.
    dumped: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        width=_WIDEST,
        allow_unicode=True,
    )
    # PyYAML without libyaml ends a document of one plain scalar with `...`.
    return dumped.removesuffix("\n").removesuffix("\n...")


def rows(node: YamlNode) -> dict[str, dict[str, str]]:
    """The cells of each row of a fact file as text, by the id of the row; in a data table by its first two cells."""
    by_id = {}
    for name, fields in _tables(node, "tables"):
        key = _plain(fields["key"]) if "key" in fields else ""
        for row in pieces.items(fields, "rows"):
            cells = {column: _plain(cell) for column, cell in (row.fields or {}).items()}
            by_id[cells.pop("id", f"{name}/{cells.get(key, '')}")] = cells
    for name, fields in _tables(node, "data"):
        columns = [_plain(column) for column in pieces.items(fields, "columns")]
        for row in pieces.items(fields, "rows"):
            values = [_plain(cell) for cell in row.items or []]
            # By index, every row after a new one would change.
            by_id[f"{name}/{' '.join(values[:2])}"] = dict(zip(columns, values, strict=False))
    return by_id


def _tables(node: YamlNode, kind: str) -> Iterator[tuple[str, Mapping[str, YamlNode]]]:
    for table in pieces.items(node.fields or {}, kind):
        fields = table.fields or {}
        yield (_plain(fields["id"]) if "id" in fields else ""), fields


def _plain(node: YamlNode) -> str:
    if node.text is not None:
        return node.text
    if node.items is not None:
        return "[" + ", ".join(map(_plain, node.items)) + "]"
    children = (f"{key}: {_plain(child)}" for key, child in (node.fields or {}).items())
    return "{" + ", ".join(children) + "}"


def differences(path: str, text: str) -> list[FactDifference]:
    """Rows in which a file differs from the text that would replace it; all are new if there is no file."""
    before = rows(yamlfile.read(path)) if os.path.exists(path) else {}
    after = rows(yamlfile.parse(text.encode(), path))
    changed = [name for name, cells in after.items() if before.get(name) != cells]
    # New rows first.
    changed.sort(key=before.__contains__)
    return [
        *(FactDifference(row=name, gone=True) for name in before if name not in after),
        *(
            FactDifference(
                row=name,
                cells=_changed(before.get(name, {}), after[name]),
                new=name not in before,
            )
            for name in changed
        ),
    ]


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        column: (before.get(column, ""), after.get(column, ""))
        for column in {**before, **after}
        if before.get(column) != after.get(column)
    }


def refuse_vanished(path: str, changes: Sequence[FactDifference]) -> None:
    """Refuse to lose rows: a source that shrank was probably read wrongly. Raises HarvestRefused."""
    gone = [change.row for change in changes if change.gone]
    if gone:
        raise HarvestRefused(
            f"{plural(len(gone), 'row')} "
            + ("is no longer at its" if len(gone) == 1 else "are no longer at their")
            + " source",
            where=Position(path),
            expected="every row that was read before",
            found="nothing of " + some(gone, _MOST_NAMED),
            help="the file is unchanged; once you know why they disappeared, `--accept` writes it without them",
        )
