"""The shipped schema of locks says what the reader takes: it is made from the same tables."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from tests.golden import VARIABLE
from toolmatrix import resources
from toolmatrix.factbase.evidence import WORDS
from toolmatrix.lockfile import lock_file, model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from toolmatrix.lockfile.lock_file import Fields
    from toolmatrix.lockfile.model import Lock

PATH = Path(resources.schema_path("lock"))
KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "true": {"const": True},
    "word": {"enum": list(WORDS)},
}
ABOUT = {
    "": "What stands in a lock, as any TOML reader sees it; the seal is a comment. `request` are words that ask for"
    " it again; a component has a `version`, or a `floor` where any newer will do; `kept` ones were taken from an"
    " earlier lock. `render` is how its directory was rendered.",
    "render": "Options of `toolmatrix render` by which the directory of the lock was rendered; they are no part of the"
    " lock's digest.",
    "inside": "The component whose build brings it.",
    "variants": "The builds that are installed, by component, with what installs each: requirements, then arguments"
    " of pip.",
}


def table(fields: Fields, name: str = "") -> dict[str, Any]:
    """What a table may hold."""
    made: dict[str, Any] = {"type": "object"}
    if name in ABOUT:
        made["description"] = ABOUT[name]
    inner = {field.removesuffix("?"): of(kind, field) for field, kind in sorted(fields.items())}
    made["additionalProperties"] = inner.pop("*", False)
    if inner:
        made["properties"] = inner
    if {"version", "floor"} <= inner.keys():
        made["oneOf"] = [{"required": ["version"]}, {"required": ["floor"]}]
    if required := sorted(field for field in fields if field[-1] not in "?*"):
        made["required"] = required
    return made


def of(kind: str | Fields, field: str) -> dict[str, Any]:
    """What the value of a key may be."""
    name = field.removesuffix("?")
    if not isinstance(kind, str):
        return table(kind, name)
    if name == "schema":
        return {"const": model.SCHEMA}
    made: dict[str, Any] = {"$ref": f"#/$defs/{kind}"}
    return {**made, "description": ABOUT[name]} if name in ABOUT else made


def schema() -> dict[str, Any]:
    """The schema of locks."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": model.SCHEMA,
        **table(lock_file.FIELDS),
        "$defs": KINDS,
    }


def test_the_schema_says_what_the_reader_takes(small: Lock) -> None:
    made = json.dumps(schema(), indent=2) + "\n"
    if os.environ.get(VARIABLE):
        PATH.write_text(made)
    Draft202012Validator.check_schema(schema())
    assert PATH.read_text() == made
    assert (
        list(Draft202012Validator(schema()).iter_errors(tomllib.loads(lock_file.text(small)))) == []
    )
