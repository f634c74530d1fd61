"""The schemas by which editors complete matrix files take what the loader takes, and refuse its shapes of mistakes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

from tests.amount import sampled
from tests.factbase import test_load
from tests.factbase.small import FRONT, NAMES
from tests.factbase.test_order import RICH
from tests.schemas import shipped
from toolmatrix import resources
from toolmatrix.factbase import load

ROOT = Path(resources.matrix_root())
# What harvesters read has a form of its own.
BUILT_IN = [
    path
    for path in map(Path, load.files(str(ROOT / "matrix.yaml")))
    if path.name != "families.yaml"
]

SHAPES = re.compile(
    r"unknown key|has no `|known word|must be|not a date|says nothing|cannot hold"
    r"|no name of a package|names no component|name that is taken"
)
COLUMNS = re.compile(r"a row of `t`|has no rank")
"""What depends on the columns of a table or the scheme of a component, or on two keys together, which a schema does not
know."""


class Editor(yaml.CSafeLoader):
    """Reads YAML as editors do (1.2): days stay text, and only true and false are flags."""


Editor.yaml_implicit_resolvers = {
    letter: [
        (tag, pattern)
        for tag, pattern in resolvers
        if not tag.endswith((":timestamp", ":bool")) or (tag.endswith(":bool") and letter in "tf")
    ]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def named(value: Any) -> Any:
    """Keys are text, as they are in JSON."""
    if isinstance(value, list):
        return [named(item) for item in value]
    if isinstance(value, dict):
        return {str(key): named(item) for key, item in value.items()}
    return value


@cache
def validator(name: str) -> Draft202012Validator:
    schema = shipped(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=FormatChecker())


def mistakes(text: str) -> list[str]:
    """What the schema of a file says against it."""
    document = named(yaml.load(text, Editor))  # noqa: S506 - a safe loader
    name = "facts" if "facts/" in str(document.get("schema")) else "matrix"
    return [
        f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)
    ]


@pytest.mark.parametrize("path", sampled(BUILT_IN, every=3), ids=lambda path: path.name)
def test_every_built_in_file_fits_its_schema(path: Path) -> None:
    assert mistakes(path.read_text()) == []


@pytest.mark.parametrize("text", [FRONT, NAMES, RICH], ids=["front", "names", "facts"])
def test_the_small_matrix_fits_its_schemas(text: str) -> None:
    assert mistakes(text) == []


def malformed() -> list[Any]:
    """The files that the loader refuses for their shape, with what it says."""

    def cases(test: Any) -> list[Any]:
        found: list[Any] = test.pytestmark[0].args[1]
        return found

    found = [
        (text.replace(old, new), message)
        for text, test in (
            (FRONT, test_load.test_front_pages_that_are_refused),
            (NAMES, test_load.test_names_that_are_refused),
        )
        for old, new, message in cases(test)
    ]
    found += cases(test_load.test_tables_that_are_refused)
    found += cases(test_load.test_statements_that_are_refused)
    return [
        pytest.param(text, id=message.partition(";")[0])
        for text, message in found
        if SHAPES.search(message) and not COLUMNS.search(message)
    ]


@pytest.mark.parametrize("text", malformed())
def test_what_the_loader_refuses_for_its_shape_the_schema_refuses_too(text: str) -> None:
    assert mistakes(text) != []
