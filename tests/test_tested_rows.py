"""Every row of TensorFlow's tested tables comes back when its release is asked for, or says what disputes it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolmatrix.cli.main import main
from toolmatrix.factbase import yamlfile
from toolmatrix.resources import matrix_root

TABLES = {"tensorflow-tested-linux-cpu": "none", "tensorflow-tested-linux-gpu": "cuda"}
COMPILERS = ("gcc", "clang")
EXACT = ("bazel", "cuda", "cudnn")


def rows() -> dict[str, Mapping[str, str]]:
    """The rows as the file has them, by id; read without any of the code that answers."""
    file = yamlfile.read(str(Path(matrix_root()) / "matrix" / "curated" / "tensorflow.yaml"))
    found: dict[str, Mapping[str, str]] = {}
    for table in (file.fields or {})["tables"].items or []:
        name = (table.fields or {})["id"].text or ""
        for row in (table.fields or {})["rows"].items or [] if name in TABLES else ():
            cells = {column: cell.text or "" for column, cell in (row.fields or {}).items()}
            found[cells.get("id", f"{name}/{cells['tensorflow']}")] = cells
    return found


ROWS = rows()


def resolve(cache: str, version: str, accelerator: str) -> dict[str, Any]:
    """The components that `resolve` gives on x86 from source."""
    words = ["resolve", f"tensorflow=={version}", "--target", "x86", "--from", "source"]
    out, err = io.StringIO(), io.StringIO()
    words += ["--accelerator", accelerator, "--json"]
    assert main(words, {"XDG_CACHE_HOME": cache}, io.StringIO(), out, err) == 0, (
        out.getvalue() + err.getvalue()
    )
    components: dict[str, Any] = json.loads(out.getvalue())["targets"]["x86"]["components"]
    return components


def begins(version: str, printed: str) -> bool:
    """Whether a version is what a cell prints, or a finer release of it."""
    return version == printed or version.startswith(printed + ".")


def same_series(version: str, printed: str) -> bool:
    """Whether a compiler series is the one of the point release that a cell prints."""
    return begins(printed, version)


def test_both_tables_are_there_from_1_0_on() -> None:
    for table in TABLES:
        releases = [row["tensorflow"] for name, row in ROWS.items() if name.startswith(table + "/")]
        assert len(releases) >= 26
        assert releases[-1] == "1.0.0"


@pytest.mark.parametrize("name", ROWS)
def test_a_tested_row_comes_back(cache: str, name: str) -> None:
    row = ROWS[name]
    components = resolve(cache, row["tensorflow"], TABLES[name.partition("/")[0]])
    wrong = {}
    for column in (*EXACT, *COMPILERS):
        if column not in row:
            continue
        held = components.get(column, {"version": "absent", "disputed": []})
        fits = same_series if column in COMPILERS else begins
        if not fits(held["version"], row[column]) and not held["disputed"]:
            wrong[column] = (row[column], held["version"], held.get("why"))
    assert wrong == {}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_cited_for_what_it_decided(cache: str, name: str) -> None:
    row = ROWS[name]
    components = resolve(cache, row["tensorflow"], TABLES[name.partition("/")[0]])
    for column in EXACT:
        held = components.get(column)
        # What the tree of the release names says the same, and decides.
        if not held or held["disputed"] or held["evidence"] == "artifact":
            continue
        if column in row and begins(held["version"], row[column]):
            assert any(fact.startswith(f"{name}#{column}") for fact in held["facts"]), column
