"""The output formats by name: each is a module of this package with NAME, SUMMARY and `files(job)`.

A module is found by lying here; `render` writes all of them, or those that `--format` names.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.render.model import Format


@lru_cache(maxsize=1)
def known() -> Mapping[str, Format]:
    """Every format by its name, in alphabetical order."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    return {module.NAME: module for module in sorted(modules, key=lambda one: one.NAME)}
