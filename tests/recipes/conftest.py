"""The built-in matrix, and recipes from a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import matrix
from toolmatrix.factbase import yamlfile
from toolmatrix.factbase.index import Index
from toolmatrix.recipes import read
from toolmatrix.recipes.model import Recipe

Reading = Callable[[str], Recipe]

HEAD = """\
schema: toolmatrix.recipe/1
name: mine
about: a recipe of one's own
sources:
  here: {title: a page, at: somewhere, read: 2026-11-20}
"""


@pytest.fixture(scope="session")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


@pytest.fixture
def reading(index: Index) -> Reading:
    """`reading(text)`: the recipe that stands below the head of one."""

    def parsed(text: str) -> Recipe:
        root = yamlfile.parse((HEAD + text).encode(), "mine.yaml", read.RECIPE_FILE)
        return read.parse(root, index)

    return parsed
