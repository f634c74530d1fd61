"""`toolmatrix check`: whether the matrix itself is sound."""

from __future__ import annotations

from toolmatrix.api import checks
from toolmatrix.cli.progress import Progress, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Judge the matrix and print what was found; 1 when an error is among it, but 0 where a SARIF reader judges."""
    options = context.options
    index, progress = context.index(), Progress(context, "solving", "releases")
    found = checks.checked(
        index, context.matrices, options.only, options.stale, context.env, progress=progress.at
    )
    progress.end()
    if options.format == "github":
        summarize(context, found.written("markdown"))
    return context.give(found)
