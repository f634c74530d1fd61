"""The output formats by name: each is a module of this package with SUMMARY and `files(job)`.

A module is found by lying here; `render` writes all of them, or those that `--format` names. Where a format has a dash
in its name its module has an underscore.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from toolmatrix.rendering import common

if TYPE_CHECKING:
    from toolmatrix.rendering.model import Format, Job


def names() -> tuple[str, ...]:
    """The names of the formats, in alphabetical order: those of the modules."""
    return tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__)))


@lru_cache(maxsize=1)
def known() -> Mapping[str, Format]:
    """Every format by its name, in alphabetical order."""
    return {name: import_module(f"{__name__}.{name.replace('-', '_')}") for name in names()}


def files(job: Job, names: Iterable[str]) -> dict[str, str]:
    """The texts of some formats by path, each with the digest of itself."""
    return {
        path: common.signed(text)
        for name in names
        for path, text in known()[name].files(job).items()
    }
