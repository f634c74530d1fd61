"""Files of facts that runs add to: what was run before, or on another machine, was run as well and stays."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from typing import Any

from toolmatrix.facts import pieces, yamlfile
from toolmatrix.facts.yamlfile import YamlNode

# The keys of a table, in the order in which they are written.
_TABLE = (
    *("id", "about", "source", "where", "evidence", "context", "key", "lists", "stands-for"),
    *("columns", "rows"),
)
_NEEDED = ("id", "source", "evidence", "key", "columns", "rows")


def tables(path: str) -> dict[str, dict[str, Any]]:
    """The tables of a file by id, {} where there is none. Raises MatrixError."""
    if not os.path.exists(path):
        return {}
    fields = yamlfile.read(path).only(
        "a file of what was run", ("schema", "sources", "tables"), ("schema",)
    )
    found = {}
    for node in pieces.items(fields, "tables"):
        # Whatever else is there was put by somebody, and would be lost or break what comes after.
        own = node.only("a table of what was run", _TABLE, _NEEDED)
        for row in own["rows"].sequence("rows"):
            row.only("a row of what was run", tuple(row.mapping("a row")), ("id", "day"))
        held = _plain(node)
        found[held["id"]] = held
    return found


def table(held: dict[str, dict[str, Any]], id: str, head: Mapping[str, Any]) -> dict[str, Any]:
    """The table of an id, a new one with this head where there is none."""
    return held.setdefault(id, {"id": id, **head, "rows": []})


def put(table: dict[str, Any], row: dict[str, Any]) -> None:
    """Put a row in, in the place of the one with its id."""
    table["rows"] = [one for one in table["rows"] if one["id"] != row["id"]] + [row]


def document(
    held: Mapping[str, Mapping[str, Any]],
    keys: Callable[[Mapping[str, Any], str], list[str]],
    title: str,
    at: str,
) -> dict[str, Any]:
    """The facts of tables whose sources are called KIND-COMPONENT, each read on the day of its newest row.

    `keys` has the order of a row, by its subject; `{}` in `at`, which says what was run, is the component.
    """
    days: dict[str, str] = {}
    for one in held.values():
        last = max(row["day"] for row in one["rows"])
        days[one["source"]] = max(last, days.get(one["source"], ""))
    sources = {
        name: {"title": title, "at": at.format(name.partition("-")[2]), "read": day}
        for name, day in days.items()
    }
    return {"sources": sources, "tables": [_ordered(one, keys) for one in held.values()]}


def _ordered(
    table: Mapping[str, Any], keys: Callable[[Mapping[str, Any], str], list[str]]
) -> dict[str, Any]:
    # Whatever was there before and what came now.
    columns = table["columns"]
    rows = sorted(table["rows"], key=lambda row: _numbers(row["id"]))
    told = {
        **table,
        "columns": {name: columns[name] for name in sorted(columns)},
        "rows": [{key: row[key] for key in keys(row, table["key"])} for row in rows],
    }
    return {key: told[key] for key in _TABLE if key in told}


def _numbers(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _plain(node: YamlNode) -> Any:
    if node.items is not None:
        return [_plain(one) for one in node.items]
    if node.fields is not None:
        return {name: _plain(one) for name, one in node.fields.items()}
    return True if node.text == "true" else node.text or ""
