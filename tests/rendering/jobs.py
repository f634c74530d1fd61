"""Jobs from the locks of tests/rendering/fixtures, which do not move with the matrix."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tests import matrix
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile import lock_file as locks
from toolmatrix.lockfile.model import Lock
from toolmatrix.recipes import read as recipes
from toolmatrix.recipes.model import Book, Recipe
from toolmatrix.rendering import dockerfile, make
from toolmatrix.rendering.model import Choices, Job

FIXTURES = Path(__file__).parent / "fixtures"
LOCKS = tuple(sorted(path.stem for path in FIXTURES.glob("*.lock")))


def index() -> Index:
    """The built-in matrix, compiled once."""
    return matrix.index()


@cache
def lock(name: str) -> Lock:
    """The lock of that name."""
    return locks.read(str(FIXTURES / f"{name}.lock"))


@cache
def book() -> Book:
    """The built-in provisions, read once."""
    return recipes.provisions(index())


@cache
def named(recipe: str) -> Recipe:
    """A built-in recipe, read once."""
    return recipes.recipe(recipe, index())


def job(
    held: Lock,
    *,
    recipe: str | Recipe = "toolchain",
    targets: tuple[str, ...] = (),
    **choices: Any,
) -> Job:
    """Everything of one run, by a version and a command that do not move."""
    made = named(recipe) if isinstance(recipe, str) else recipe
    modern = choices.get("dialect", "modern") == "modern"
    chosen = Choices(**({"syntax_line": dockerfile.SYNTAX if modern else ""} | choices))
    rules = make.Rules(made, book(), index(), chosen)
    return make.job(
        held,
        lock_file.digest(held),
        rules,
        targets=targets,
        version="0",
    )
