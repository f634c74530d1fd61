"""Every JSON document has a schema of its name, keeps to it, and says what the text says."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli
from tests.schemas import shipped

SMALL = [
    ("resolution", "resolve app==2.1.3"),
    ("resolution", "resolve app --target x86,arm --align python --arch sm_86"),
    ("resolution", "resolve app --device 8.6 --with gcc==8 --prefer oldest"),
    ("resolution", "why-not gcc==9 --with app==2.1.3"),
    ("resolution", "why-not tool==1.0 --with app==2.0.0"),
    ("conflict", "resolve app==2.0.0 python==3.12"),
    ("conflict", "resolve app==2.1.3 --min-evidence ran"),
    ("conflict", "why-not cuda==11.0 --with app==2.1.3 --arch sm_86"),
    ("conflict", "explain cuda app==2.0.0 python==3.12"),
    ("explanation", "explain cuda app==2.1.3"),
    ("explanation", "explain python app==2.1.3 --target x86,arm"),
    ("explanation", "explain app app==2.1.3 --invert"),
    ("grid", "matrix --rows cuda --cols arch"),
    ("grid", "matrix --rows app --cols gcc --all"),
    ("releases", "matrix --rows app"),
    ("cells", "matrix --rows app --cols python,gcc --cells"),
    ("cells", "matrix --rows app --cols python --cells --target x86,arm"),
    ("components", "list"),
    ("search", "search app"),
    ("error", "resolve app==9"),
    ("error", "resolve app --target amr"),
    ("error", "explain cuda app --target arm"),
    ("error", "matrix"),
]
REAL = [
    ("resolution", "resolve tensorflow --target x86,arm,amd"),
    ("conflict", "resolve tensorflow==2.6.5 python==3.12"),
    ("explanation", "explain cuda tensorflow==2.6.5"),
    ("explanation", "explain python tensorflow==2.6.5 --target x86,arm,amd --invert"),
    ("grid", "matrix --rows cuda --cols arch --where 'cuda>=10.2,<=13'"),
    ("releases", "matrix --rows rocm"),
    ("cells", "matrix --rows tensorflow --cols python --cells --where 'tensorflow>=2.6,<2.7'"),
]


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The schema of a name, which is one itself."""
    schema = shipped(name)
    assert schema["title"] == f"toolmatrix.{name}/1"
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validated(document: Mapping[str, Any], name: str) -> None:
    """That a document keeps to the schema of its name, and to that of every document inside it."""
    assert document["schema"] == f"toolmatrix.{name}/1"
    validator(name).validate(document)
    for repair in document.get("repairs", ()):
        validated(repair["resolution"], "resolution")


@pytest.mark.parametrize(("name", "line"), SMALL)
def test_a_document_keeps_to_its_schema(small: Cli, name: str, line: str) -> None:
    outcome = small(*shlex.split(line), "--json")
    validated(outcome.json(), name)
    assert outcome.out == json.dumps(outcome.json(), sort_keys=True, indent=2) + "\n"
    assert small(*shlex.split(line), "--json") == outcome


@pytest.mark.parametrize(("name", "line"), REAL)
def test_a_document_about_the_built_in_matrix_does(real: Cli, name: str, line: str) -> None:
    validated(real(*shlex.split(line), "--json").json(), name)


def test_a_schema_refuses_what_is_not_its_document(small: Cli) -> None:
    """Every required key of every document is missed when it is gone."""
    for name, line in SMALL:
        document = small(*shlex.split(line), "--json").json()
        schema = shipped(name)
        assert "schema" in schema["required"]
        for key in schema["required"]:
            less = {one: value for one, value in document.items() if one != key}
            assert not jsonschema.Draft202012Validator(schema).is_valid(less), (name, key)


@pytest.mark.parametrize("line", [line for name, line in SMALL if name != "error"])
def test_the_exit_code_is_that_of_the_text(small: Cli, line: str) -> None:
    words = shlex.split(line)
    assert small(*words, "--json").code == small(*words).code


def test_every_fact_and_source_named_exists(real: Cli) -> None:
    """The ids in a refusal and an explanation can be looked up."""
    conflict = real("resolve", "tensorflow==2.6.5", "python==3.12", "--json").json()
    named = {fact for core in conflict["cores"] for line in core["lines"] for fact in line["facts"]}
    told = real("explain", "cuda", "tensorflow==2.6.5", "--json").json()["explained"]
    named |= {line["fact"] for entry in told for line in entry["because"]}
    assert len(named) > 3
    for fact in sorted(named):
        assert real("facts", fact, "--json").code == 0


def test_the_request_in_a_document_repeats_it(small: Cli) -> None:
    line = "resolve app --with gcc==8 --target x86,arm --align python --arch sm_80 --at 2021-12-31"
    asked = small(*shlex.split(line), "--json").json()["request"]
    assert asked == {
        "wanted": ["app"],
        "with": ["gcc==8"],
        "targets": ["x86", "arm"],
        "from": "source",
        "accelerator": {"x86": "cuda", "arm": "none"},
        "align": ["python"],
        "archs": ["sm_80"],
        "devices": [],
        "cpu": "",
        "distro": "",
        "prefer": "best-evidence",
        "min_evidence": "",
        "at": "2021-12-31",
    }
