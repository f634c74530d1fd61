"""`toolmatrix resolve`: which versions go together."""

from __future__ import annotations

from toolmatrix.cli import ask
from toolmatrix.errors import CannotSay
from toolmatrix.solve.resolve import Refusal, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index


def run(context: Context) -> int:
    """Print the best answer and return 0, or why there is none with verified repairs and return 1.

    An answer that rests on what nobody knows is printed too, and is none: it returns 4.
    """
    index = context.index()
    found = resolve(index, ask.build(context, index))
    if isinstance(found, Refusal):
        return refuse(context, index, found)
    if context.options.format == "json":
        from toolmatrix.report import answer

        context.write_json(answer.document(index, found))
    else:
        from toolmatrix.report import tree

        context.write(tree.text(index, found, context.terminal, depth=context.options.depth))
        if not found.unread:
            context.say_after(
                "hint: `toolmatrix lock` writes this down; `toolmatrix explain NAME` shows why"
            )
    return CannotSay.exit_code if found.unread else 0


def refuse(context: Context, index: Index, refusal: Refusal) -> int:
    """Print a refusal with its repairs; the answer is no."""
    from toolmatrix.cli import offer
    from toolmatrix.report import refusal as report

    ways, carried = offer.ways(context, index, refusal), offer.carried(context)
    if context.options.format == "json":
        context.write_json(report.document(index, refusal, ways, carried=carried))
    else:
        depth = context.options.depth
        context.write(
            report.text(index, refusal, ways, context.terminal, depth=depth, carried=carried)
        )
    return 1
