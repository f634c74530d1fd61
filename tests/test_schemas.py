"""The shipped schemas of documents are what the modules that make these declare; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests import schemas
from tests.golden import VARIABLE
from tests.schemas import Schema
from toolmatrix.resources import schema_path

DECLARED = list(schemas.documents())


@pytest.mark.parametrize("schema", DECLARED, ids=lambda schema: schema.short)
def test_a_schema_is_what_the_source_declares(schema: Schema) -> None:
    path = Path(schema_path(schema.short))
    made = json.dumps(schema.to_json(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get(VARIABLE):
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made
    Draft202012Validator.check_schema(schema.to_json())


def test_each_document_is_declared_once() -> None:
    names = [schema.short for schema in DECLARED]
    assert len(names) == len(set(names))
