"""`toolmatrix inventory`: what a subject holds, and how each value was seen."""

from __future__ import annotations

from toolmatrix.api import subjects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print the inventory of a subject; raises SubjectError where it cannot be read."""
    options = context.options
    found = subjects.observed(
        context.arguments[0],
        options.platform,
        options.directory,
        getattr(context.stdin, "buffer", None),
        None if options.no_run else context.index,
    )
    return context.give(found, everything=options.all)
