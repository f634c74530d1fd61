"""docs/recipes.md names every key, value and form that there is, and no value that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolmatrix import resources
from toolmatrix.recipes import fields, model
from toolmatrix.recipes.fields import FIXED, FORMS

PAGE = (Path(resources.matrix_root()) / "docs" / "recipes.md").read_text()
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))


@pytest.mark.parametrize("name", [*fields.SHAPES, "recipe", "book"])
def test_every_key_of_a_part_is_named(name: str) -> None:
    shape = {**fields.SHAPES, "recipe": fields.RECIPE, "book": fields.BOOK}[name]
    assert {*shape.fields, *shape.lists} <= NAMED


def test_every_value_and_form_is_named() -> None:
    table = PAGE.partition("## Values\n")[2].partition("\n## ")[0]
    rows = "".join(line for line in table.splitlines() if line.startswith("| `{"))
    assert set(re.findall(r"`\{([a-z_]+)\}`", rows)) == set(FIXED)
    assert set(re.findall(r"^\| `\.([a-z]+)` \|", table, re.MULTILINE)) == set(FORMS)
    assert set(model.STAGES) <= NAMED
