"""docs/recipes.md names every key, value and form that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolmatrix import resources
from toolmatrix.recipes import fields, model
from toolmatrix.recipes.variables import FIXED, FORMS, put

PAGE = (Path(resources.matrix_root()) / "docs" / "recipes.md").read_text()


@pytest.mark.parametrize("name", [*fields.SHAPES, "recipe", "book"])
def test_every_key_of_a_part_is_described(name: str) -> None:
    shape = {**fields.SHAPES, "recipe": fields.RECIPE, "book": fields.BOOK}[name]
    keys = {*shape.fields, *shape.lists}
    assert {key for key in keys if not re.search(rf"`{key}`|^{key}:", PAGE, re.MULTILINE)} == set()


def test_every_name_and_form_is_in_a_table() -> None:
    found = re.findall(r"^\| `([a-z_]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    rows = dict(reversed(found))
    assert {name: rows.get(name) for name in FIXED} == dict(FIXED)
    written = {form: put(f"{{a.{form}}}", {"a": "11.2.0"}) for form in FORMS}
    assert {form: rows.get(form, "").partition(",")[0] for form in FORMS} == written
    assert set(model.STAGES) <= set(re.findall(r"`(\w+)`", PAGE))
