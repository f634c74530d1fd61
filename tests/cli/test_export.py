"""`toolmatrix export`: facts for other tools, to stdout or a file, whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from toolmatrix.commands.export import Extract


def test_it_writes_json_where_nothing_else_is_asked_for(small: Cli) -> None:
    run = small("export", "gcc")
    assert (run.code, run.err) == (0, "")
    assert run.json()["names"] == ["gcc"]
    assert small("export", "gcc", "--json") == run
    assert small("export", "gcc", "--format", "json") == run


def test_every_line_inside_is_a_record(small: Cli) -> None:
    """So that texts can be compared and kept in version control, a fact a line."""
    text = small("export").out
    document = json.loads(text)
    lines = text.splitlines()
    assert text.endswith("}\n")
    for one in document["claims"]:
        told = json.dumps(one, sort_keys=True)
        assert told in lines or f"{told}," in lines
    assert [*document] == sorted(document)


def test_a_table_is_csv(small: Cli) -> None:
    run = small("export", "--format", "csv", "gcc")
    table = [*csv.DictReader(io.StringIO(run.out))]
    row = next(row for row in table if row["id"] == "cuda-archs/11.2.0#gcc")
    assert row.pop("matrix").startswith("sha256:")
    assert {name: value for name, value in row.items() if value} == {
        "id": "cuda-archs/11.2.0#gcc",
        "kind": "limits",
        "strength": "hard",
        "evidence": "artifact",
        "subject": "cuda",
        "subject_is": "11.2.0",
        "subject_releases": "11.2.0",
        "component": "gcc",
        "is": "<=9",
        "releases": "7 8 9",
        "says": "cuda 11.2.0: takes GCC <=9 as host compiler",
        "decides": "yes",
        "rules": "same-minor",
        "table": "cuda-archs",
        "where": "nvcc --list-gpu-arch",
        "source": "vendor",
        "title": "CUDA release notes",
        "at": "vendor:notes@1",
        "read": "2025-12-31",
    }


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_file_is_what_would_be_printed(small: Cli, here: Path, form: str) -> None:
    printed = small("export", "--format", form)
    run = small("export", "--format", form, "--output", "facts.out")
    assert (run.code, run.out, run.err) == (0, "", "")
    assert (here / "facts.out").read_text() == printed.out
    assert [path.name for path in here.iterdir()] == ["facts.out"]


def test_it_is_the_same_on_every_run(real: Cli) -> None:
    one, other = (hashlib.sha256(real("export", "bazel").out.encode()) for _ in range(2))
    assert one.digest() == other.digest()


def test_a_name_may_be_any_that_the_component_has(real: Cli) -> None:
    document = real("export", "pytorch", "onnxruntime-gpu", "pytorch").json()
    assert document["names"] == ["onnxruntime", "torch"]


def test_a_name_that_nobody_knows_is_refused(small: Cli, here: Path) -> None:
    run = small("export", "pythn", "--output", "facts.json")
    assert run.code == 3
    assert run.out == ""
    assert run.err == (
        "error[TM110]: unknown component `pythn`\n"
        "  expected: perhaps `python`\n"
        "  found: `pythn`\n"
        "help: `toolmatrix list` shows the components; `--matrix FILE` adds some of your own\n"
    )
    assert [*here.iterdir()] == []


def test_a_form_that_it_does_not_have_is_refused(small: Cli) -> None:
    run = small("export", "--format", "text")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "error[TM901]: `export` has no format `text`\n  expected: one of json, csv\n"
    )


def test_a_format_of_the_settings_is_meant_for_others(small: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text('format = "text"\n')
    assert small("export", "gcc").json()["names"] == ["gcc"]


def test_what_fails_on_the_way_leaves_the_old_file(
    small: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(extract: Extract) -> Iterator[str]:
        del extract
        yield "{"
        raise OSError(28, "No space left on device")

    (here / "facts.json").write_text("old\n")
    monkeypatch.setattr(Extract, "json", cut)
    run = small("export", "--output", "facts.json")
    assert run.code == 2
    assert (here / "facts.json").read_text() == "old\n"
    assert [path.name for path in here.iterdir()] == ["facts.json"]


def test_a_matrix_of_ones_own_is_exported_with_the_built_in_one(small: Cli, here: Path) -> None:
    (here / "ours.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "sources:\n"
        "  us: {title: Our own builds, at: our wiki, read: 2026-01-01}\n"
        "statements:\n"
        "  - id: ours\n"
        "    when: {app: 2.0.0}\n"
        "    limits: {gcc: 8}\n"
        "    evidence: tested\n"
        "    source: us\n"
        "    where: page 1\n"
    )
    document = small("export", "gcc", "--matrix", "ours.yaml").json()
    claim = next(one for one in document["claims"] if one["source"] == "us")
    assert claim["says"] == {"component": "gcc", "is": "8", "releases": ["8"]}
    assert document["sources"]["us"]["title"] == "Our own builds"
    assert document["matrix"]["digest"] != small("export").json()["matrix"]["digest"]
