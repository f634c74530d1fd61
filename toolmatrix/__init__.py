"""toolmatrix: which versions of a machine-learning tool chain go together, and why.

`toolmatrix.resolve("tensorflow==2.6.5", target="arm")` asks what the command asks; docs/python.md shows the rest.
"""

from __future__ import annotations

import sys

__version__ = "0.3.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from toolmatrix.api.checks import check as check
    from toolmatrix.api.components import components as components
    from toolmatrix.api.components import search as search
    from toolmatrix.api.components import show as show
    from toolmatrix.api.components import what as what
    from toolmatrix.api.diagnoses import diagnose as diagnose
    from toolmatrix.api.differences import diff as diff
    from toolmatrix.api.exports import export as export
    from toolmatrix.api.facts import facts as facts
    from toolmatrix.api.files import render as render
    from toolmatrix.api.locks import lock as lock
    from toolmatrix.api.manifests import judge as judge
    from toolmatrix.api.plans import plan as plan
    from toolmatrix.api.renders import check_render as check_render
    from toolmatrix.api.requests import explain as explain
    from toolmatrix.api.requests import matrix as matrix
    from toolmatrix.api.requests import open_matrix as open_matrix
    from toolmatrix.api.requests import resolve as resolve
    from toolmatrix.api.requests import why_not as why_not
    from toolmatrix.api.stages import stages as stages
    from toolmatrix.api.subjects import doctor as doctor
    from toolmatrix.api.subjects import inventory as inventory
    from toolmatrix.api.subjects import validate as validate
    from toolmatrix.api.upgrades import upgrade as upgrade
else:
    ModuleType = type(sys)

_FUNCTIONS = {
    "resolve": "toolmatrix.api.requests",
    "why_not": "toolmatrix.api.requests",
    "explain": "toolmatrix.api.requests",
    "matrix": "toolmatrix.api.requests",
    "open_matrix": "toolmatrix.api.requests",
    "components": "toolmatrix.api.components",
    "search": "toolmatrix.api.components",
    "show": "toolmatrix.api.components",
    "what": "toolmatrix.api.components",
    "plan": "toolmatrix.api.plans",
    "facts": "toolmatrix.api.facts",
    "export": "toolmatrix.api.exports",
    "check": "toolmatrix.api.checks",
    "check_render": "toolmatrix.api.renders",
    "lock": "toolmatrix.api.locks",
    "upgrade": "toolmatrix.api.upgrades",
    "diff": "toolmatrix.api.differences",
    "render": "toolmatrix.api.files",
    "stages": "toolmatrix.api.stages",
    "diagnose": "toolmatrix.api.diagnoses",
    "judge": "toolmatrix.api.manifests",
    "inventory": "toolmatrix.api.subjects",
    "validate": "toolmatrix.api.subjects",
    "doctor": "toolmatrix.api.subjects",
}
# Those that were asked for.
_checked: dict[str, Any] = {}
# `from toolmatrix import *`, help() and completion find the functions here before any of them is imported.
__all__ = [*_FUNCTIONS, "__version__"]  # noqa: PLE0604 - strings all the same


def __getattr__(name: str) -> Any:
    """A function of the API, imported when it is first asked for."""
    if name in _FUNCTIONS:
        if name not in _checked:
            from toolmatrix.api.arguments import checking_arguments

            _checked[name] = checking_arguments(
                getattr(__import__(_FUNCTIONS[name], fromlist=[name]), name)
            )
        return _checked[name]
    raise AttributeError(f"module 'toolmatrix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})


class _Room(ModuleType):
    """A package of this one that has the name of a function, and is called as it."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return __getattr__(self.__name__.rpartition(".")[2])(*given, **named)


class _Front(ModuleType):
    # Importing `toolmatrix.lock` puts that package in the place of the function `lock`: let it be both.
    def __setattr__(self, name: str, value: object) -> None:
        if name in _FUNCTIONS and type(value) is ModuleType:
            value.__class__ = _Room
        super().__setattr__(name, value)


# PEP 562 gives a module `__getattr__`, and no hook for what is set; its class may be replaced instead.
sys.modules[__name__].__class__ = _Front
