"""Two matrices compared fact by fact: what came, went, says something else, or was only read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.factbase.small import facts, table, write
from tests.schemas import shipped
from toolmatrix.api.news import changes, open_earlier
from toolmatrix.api.requests import open_matrix
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import store

GCC = {"gcc": {"as": "tested"}, "cuda": {"as": "tested"}}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def matrix(folder: Path, *rows: dict[str, Any]) -> str:
    folder.mkdir()
    return write(folder, facts(tables=[table(columns=GCC, rows=list(rows))]))


def test_facts_that_came_went_and_say_something_else_are_told(tmp_path: Path) -> None:
    before = open_earlier(
        matrix(
            tmp_path / "before",
            {"app": "2.6.0", "gcc": "7", "cuda": "11.1"},
            {"app": "2.6.1", "gcc": "7"},
            {"app": "2.6.5", "gcc": "8", "where": "line 1"},
        )
    )
    after = open_matrix(
        matrix(
            tmp_path / "after",
            {"app": "2.6.0", "gcc": "8"},
            {"app": "2.6.1", "gcc": "7", "evidence": "stated"},
            {"app": "2.6.5", "gcc": "8", "where": "line 2"},
            {"app": "2.7.0", "gcc": "9"},
        )
    )
    document = changes(before, after)
    jsonschema.validate(document, shipped("matrix-changes"))
    (part,) = document["components"]
    told = [(one["how"], one["id"], one["was"] and one["was"]["text"]) for one in part["listed"]]
    assert told == [
        ("changed", "t/2.6.0#gcc", "app 2.6.0 was tested with gcc 7"),
        ("changed", "t/2.6.1#gcc", "app 2.6.1 was tested with gcc 7"),
        ("removed", "t/2.6.0#cuda", None),
        ("added", "t/2.7.0#gcc", None),
    ]
    assert [one["evidence"] for one in part["listed"]] == ["tested", "stated", "tested", "tested"]
    assert (part["component"], part["facts"]) == ("app", 4)
    assert (part["changed"], part["removed"], part["added"]) == (2, 1, 1)
    # The third row stands elsewhere and says the same.
    assert document["reread"] == 1
    assert document["before"]["facts"] == document["after"]["facts"]
    assert changes(after, after)["components"] == []


def test_an_earlier_matrix_is_a_folder_an_archive_or_a_front_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = matrix(tmp_path / "one", {"app": "2.6.0", "gcc": "7"})
    archive, folder = tmp_path / "matrix.zip", tmp_path / "index"
    archive.write_bytes(open_matrix(path).to_bytes())
    store.write_folder(str(folder), open_matrix(path).index.files())
    assert {open_earlier(one).digest for one in (path, archive, folder)} == {
        open_matrix(path).digest
    }
    archive.write_bytes(open_matrix(path).to_bytes()[:300])
    monkeypatch.setattr("toolmatrix.factbase.index.FORMAT", "toolmatrix-index/0")
    for damaged in (archive, folder):
        with pytest.raises(MatrixError, match="damaged or from another version"):
            open_earlier(damaged)
    with pytest.raises(MatrixError):
        open_earlier(tmp_path / "nothing.yaml")
