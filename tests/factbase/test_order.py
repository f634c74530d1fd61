"""Equal facts make an equal digest and equal index bytes, in whatever order they stand."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import matrix
from tests.amount import examples
from tests.factbase.small import FRONT, NAMES, dump, facts, statement, table, write
from toolmatrix import resources
from toolmatrix.factbase import compile as compiling
from toolmatrix.factbase import writer
from toolmatrix.factbase.load import load

ORDERED = ("components", "targets")
"""Mappings whose order says something: what the solver prefers, and which target is the default."""

UNORDERED = ("files", "releases", "tables", "statements", "rows")

RICH = facts(
    sources={"mine": {"title": "Mine", "at": "here", "read": "2026-01-01"}},
    releases=[
        {
            "id": "apps-again",
            "component": "app",
            "source": "mine",
            "evidence": "artifact",
            "where": "list",
            "versions": {"2.6.1": {"date": "2021-09-01", "b": "2", "a": "1"}, "2.8.0": {"yanked": "true"}},
        }
    ],
    tables=[
        table(
            columns={
                "gcc": {"as": "tested"},
                "cuda": [{"as": "tested"}, {"as": "requires", "context": {"machine": "x86_64"}}],
                "python": {"as": "requires"},
                "sha": {"as": "attribute"},
            },
            rows=[
                {"app": "2.6.0", "gcc": "7.3.1", "cuda": "11.2", "python": "3.6-3.9", "sha": "x"},
                {"app": "2.7.0", "gcc": "8", "cuda": "11.2", "python": ">=3.7", "note": "n"},
                {"app": "2.6.1", "python": "3.6", "decides": "false", "note": "misread"},
                {"app": "2.6.1", "id": "b", "python": "3.7", "decides": "false", "note": "misread"},
                {"app": "2.6.5", "gcc": {"is": "8", "evidence": "ran"}, "python": ["3.9"]},
            ],
            context={"machine": "x86_64", "accelerator": "cuda"},
            **{"stands-for": ["same-minor", "x86-for-arm"], "requirements-read": {"others": ["six", "attrs"]}},
        ),
        table(
            id="u",
            defines="releases",
            columns={"date": {"as": "attribute"}, "python": {"as": "requires"}},
            rows=[{"app": "2.6.0", "date": "2021-08-11", "python": "3.7"}, {"app": "2.9.0", "python": "3.9"}],
        ),
    ],
    statements=[
        statement(when={"app": "*", "machine": "x86_64", "accelerator": "cuda"}, needs=["gcc", ["cuda", "python"]]),
        statement(id="r", requires={"gcc": ">=8", "python": "*"}, limits={"cuda": "11.2 12.0"}),
    ],
    data=[{"id": "d", "source": "vendor", "evidence": "ran", "where": "w",
           "columns": ["a", "b"], "rows": [["1", "2"], ["3", "4"]]}],
)  # fmt: skip


def shuffled(value: Any, rng: random.Random, name: str = "") -> Any:
    """The same facts in another order."""
    if isinstance(value, list):
        items = [shuffled(item, rng, "row" if name == "rows" else "") for item in value]
        if name in UNORDERED and not any(isinstance(item, list) for item in items):
            rng.shuffle(items)
        return items
    if not isinstance(value, dict):
        return value
    names = list(value)
    if name not in ORDERED:
        rng.shuffle(names)
    if name == "when":
        subject = next(iter(value))
        names.sort(key=lambda key: key != subject)
    return {key: shuffled(value[key], rng, key) for key in names}


def as_written(text: str) -> Any:
    """A YAML document whose scalars stay text; the base loader makes nothing else."""
    return yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506


def made(path: str) -> tuple[str, dict[str, bytes]]:
    """The digest and the index of a matrix."""
    compiled = compiling.compile_matrix(load([path]))
    return compiled.digest, writer.write(compiled, {})


def rewritten(documents: dict[str, Any], folder: Path, seed: random.Random) -> str:
    """The path of a matrix with its parts shuffled; JSON is YAML."""
    for name, document in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(shuffled(document, seed)))
    return str(folder / "matrix.yaml")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, bytes]]:
    return made(write(tmp_path_factory.mktemp("small"), RICH))


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_a_small_matrix_in_any_order(small: tuple[str, dict[str, bytes]], seed: int) -> None:
    texts = {"matrix.yaml": FRONT, "names.yaml": NAMES, "facts.yaml": RICH}
    documents = {name: as_written(text) for name, text in texts.items()}
    with tempfile.TemporaryDirectory() as folder:
        assert made(rewritten(documents, Path(folder), random.Random(seed))) == small


@pytest.mark.slow
@pytest.mark.long
def test_the_built_in_matrix_in_another_order(tmp_path: Path) -> None:
    root = Path(resources.matrix_root())
    documents = {"matrix.yaml": as_written((root / "matrix.yaml").read_text())}
    front = documents["matrix.yaml"]
    for name in (*front["files"], front["families"]):
        documents[name] = as_written((root / name).read_text())
    wanted = matrix.index()
    digest, files = made(rewritten(documents, tmp_path, random.Random(1)))
    assert digest == wanted.header["digest"]
    assert files == wanted.files()


def test_facts_on_top_that_say_nothing_new_change_nothing(tmp_path: Path) -> None:
    front = write(tmp_path, RICH)
    wanted = made(front)
    compiled = compiling.compile_matrix(load([front, str(tmp_path / "facts.yaml"), front]))
    assert (compiled.digest, writer.write(compiled, {})) == wanted
    again = compiling.compile_matrix(load([front, str(tmp_path / "facts.yaml")]))
    assert (again.digest, writer.write(again, {})) == wanted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.6-3.9", "3.6-3.7"),
        ("evidence: ran", "evidence: stated"),
        ("note: n", "note: m"),
        ("2021-09-01", "2021-09-02"),
        ("sha: x", "sha: y"),
        ("title: Mine", "title: Yours"),
    ],
)
def test_any_change_of_what_is_said_changes_the_digest(
    tmp_path: Path, small: tuple[str, dict[str, bytes]], old: str, new: str
) -> None:
    assert old in RICH
    assert made(write(tmp_path, RICH.replace(old, new)))[0] != small[0]


def test_the_order_of_components_and_targets_says_something(
    tmp_path: Path, small: tuple[str, dict[str, bytes]]
) -> None:
    for section in ORDERED:
        document = as_written(FRONT)
        document["targets"]["arm"] = {"context": {"machine": "aarch64"}, "accelerator": "none"}
        one = made(write(tmp_path, RICH, front=dump(document)))[0]
        document[section] = dict(reversed(document[section].items()))
        assert made(write(tmp_path, RICH, front=dump(document)))[0] != one
        assert one != small[0]
