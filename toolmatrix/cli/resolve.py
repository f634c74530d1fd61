"""`toolmatrix resolve`: which versions go together."""

from __future__ import annotations

from toolmatrix.api import answers
from toolmatrix.cli import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.solve.resolve import Unsatisfiable


def run(context: Context) -> int:
    """Print the best answer and return 0, or why there is none with verified repairs and return 1.

    An answer that rests on what nobody knows is printed too, and is none: it returns 4.
    """
    index = context.index()
    found = answers.resolved(ask.surroundings(context, index), ask.build(context, index))
    code = context.give(found, depth=context.options.depth)
    if found.ok and context.options.format != "json":
        context.say_after(
            "hint: `toolmatrix lock` writes this down; `toolmatrix explain NAME` shows why"
        )
    return code


def refuse(context: Context, index: Index, refusal: Unsatisfiable) -> int:
    """Print a refusal with its repairs; the answer is no."""
    return context.give(
        answers.NoAnswer(ask.surroundings(context, index), refusal), depth=context.options.depth
    )
