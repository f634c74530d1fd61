"""The shipped schema says what the reader takes: it is made from the same tables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.golden import VARIABLE
from toolmatrix import resources
from toolmatrix.recipes import fields, model
from toolmatrix.recipes.fields import Shape

PATH = Path(resources.schema_path("recipe"))
TEXT = {"$ref": "#/$defs/text"}
COMMON = {
    "text": {"type": ["string", "number"], "minLength": 1},
    "texts": {"oneOf": [TEXT, {"type": "array", "items": TEXT}]},
    "values": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    "selectors": {"type": "object", "additionalProperties": TEXT},
    "when": {
        "oneOf": [
            {"$ref": "#/$defs/selectors"},
            {"type": "array", "items": {"$ref": "#/$defs/selectors"}},
        ]
    },
}


def rule(text: str) -> dict[str, Any]:
    """What a rule of `fields` admits."""
    if text == "?":
        return {"type": "boolean"}
    if text.startswith("["):
        return {"$ref": "#/$defs/texts"}
    if text.startswith("{"):
        return {"$ref": "#/$defs/values"}
    return {"enum": text.split("|")} if "|" in text else TEXT


def shape(one: Shape) -> dict[str, Any]:
    """What a part may hold."""
    properties = {name: rule(text) for name, text in one.fields.items()}
    properties |= {
        name: {"type": "array", "items": {"$ref": f"#/$defs/{inner}"}}
        for name, inner in one.lists.items()
    }
    required = list(one.required)
    if issubclass(one.kind, model.Part):
        properties["when"] = {"$ref": "#/$defs/when"}
        properties["source"] = TEXT
        required += ["source"] if one.kind.sourced else []
    return {
        "type": "object",
        "description": (one.kind.__doc__ or "").splitlines()[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def file(one: Shape, schema: str) -> dict[str, Any]:
    """A whole file."""
    made = shape(one)
    made["properties"] |= {"schema": {"const": schema}, "sources": {"$ref": "#/$defs/sources"}}
    made["required"].append("schema")
    return made


def schema() -> dict[str, Any]:
    """The schema of recipes and provisions."""
    day = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}
    source = {
        "type": "object",
        "properties": {"title": TEXT, "at": TEXT, "read": day},
        "required": ["title", "at", "read"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": model.RECIPE,
        "description": "A recipe, or the provisions; docs/recipes.md.",
        "oneOf": [file(fields.RECIPE, model.RECIPE), file(fields.BOOK, model.PROVISIONS)],
        "$defs": {
            **COMMON,
            **{name: shape(one) for name, one in fields.SHAPES.items()},
            "sources": {"type": "object", "additionalProperties": source},
        },
    }


def test_the_schema_says_what_the_reader_takes() -> None:
    made = json.dumps(schema(), indent=2) + "\n"
    if os.environ.get(VARIABLE):
        PATH.write_text(made)
    Draft202012Validator.check_schema(schema())
    assert PATH.read_text() == made


@pytest.mark.parametrize("path", sorted(Path(resources.recipes_root()).glob("*.yaml")), ids=str)
def test_every_built_in_file_fits_the_schema(path: Path) -> None:
    written = yaml.load(path.read_text(), Loader=yaml.BaseLoader)  # noqa: S506 - makes text alone
    flags = json.loads(json.dumps(written).replace('"true"', "true").replace('"false"', "false"))
    assert list(Draft202012Validator(schema()).iter_errors(flags)) == []
