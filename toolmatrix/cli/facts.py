"""`toolmatrix facts`: what the matrix rests on, as a whole or one fact in full."""

from __future__ import annotations

from toolmatrix.api import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print facts; exit 1 only when `--stale` was asked and something is."""
    options, ids = context.options, context.arguments
    found = facts.found(
        context.index(), ids, options.source, options.stale, context.env, full=options.verbose > 0
    )
    if options.format != "json" and not (ids or options.source or options.stale is not None):
        context.say_after(
            "hint: `toolmatrix facts ID` shows one; an id is a row, `ROW#column`, a table or `cuda==VERSION`"
        )
    return context.give(found)
