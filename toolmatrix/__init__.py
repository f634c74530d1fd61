"""toolmatrix: which versions of a machine-learning tool chain go together, and why.

`toolmatrix.resolve("tensorflow==2.6.5", target="arm")` asks what the command asks; docs/python.md shows the rest.
"""

from __future__ import annotations

__version__ = "0.3.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.api.requests import open_matrix as open_matrix
    from toolmatrix.commands.add import add as add
    from toolmatrix.commands.build import build as build
    from toolmatrix.commands.check import check as check
    from toolmatrix.commands.check import check_render as check_render
    from toolmatrix.commands.diagnose import diagnose as diagnose
    from toolmatrix.commands.diff import diff as diff
    from toolmatrix.commands.doctor import doctor as doctor
    from toolmatrix.commands.env import env as env
    from toolmatrix.commands.explain import explain as explain
    from toolmatrix.commands.export import export as export
    from toolmatrix.commands.facts import facts as facts
    from toolmatrix.commands.inventory import inventory as inventory
    from toolmatrix.commands.judge import judge as judge
    from toolmatrix.commands.list import components as components
    from toolmatrix.commands.lock import lock as lock
    from toolmatrix.commands.matrix import matrix as matrix
    from toolmatrix.commands.merge import merge as merge
    from toolmatrix.commands.news import news as news
    from toolmatrix.commands.plan import plan as plan
    from toolmatrix.commands.render import render as render
    from toolmatrix.commands.resolve import resolve as resolve
    from toolmatrix.commands.search import search as search
    from toolmatrix.commands.show import show as show
    from toolmatrix.commands.stages import stages as stages
    from toolmatrix.commands.update import update as update
    from toolmatrix.commands.upgrade import upgrade as upgrade
    from toolmatrix.commands.validate import validate as validate
    from toolmatrix.commands.what import what as what
    from toolmatrix.commands.why_not import why_not as why_not

_FUNCTIONS = {
    name: f"toolmatrix.commands.{name}"
    for name in (
        *("resolve", "env", "why_not", "explain", "matrix", "search", "show", "what", "plan"),
        *("facts", "export", "check", "lock", "upgrade", "diff", "render", "stages", "diagnose"),
        *("judge", "inventory", "validate", "merge", "add", "update", "news", "build", "doctor"),
    )
} | {
    "open_matrix": "toolmatrix.api.requests",
    "components": "toolmatrix.commands.list",
    "check_render": "toolmatrix.commands.check",
}
# Functions that were already imported.
_imported: dict[str, Any] = {}
# `from toolmatrix import *`, help() and completion find the functions here before any of them is imported.
__all__ = [*_FUNCTIONS, "__version__"]  # noqa: PLE0604 - strings all the same


def __getattr__(name: str) -> Any:
    """A function of the API, imported on first use."""
    if name in _FUNCTIONS:
        if name not in _imported:
            from toolmatrix.api.arguments import checking_arguments

            exported = getattr(__import__(_FUNCTIONS[name], fromlist=[name]), name)
            # A command wraps its function.
            _imported[name] = checking_arguments(getattr(exported, "function", exported))
        return _imported[name]
    raise AttributeError(f"module 'toolmatrix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})
