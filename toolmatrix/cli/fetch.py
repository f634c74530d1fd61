"""`toolmatrix fetch`: downloads and Python packages of rendered files, for builds without a network."""

from __future__ import annotations

from toolmatrix.api import fetches
from toolmatrix.cli.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Fill the folder and say what came, and what a build without a network still lacks."""
    folder = context.path(context.arguments[0]) if context.arguments else "."
    progress = Progress(context, "fetching", "files")
    try:
        found = fetches.fetch(folder, context.env, context.index(), progress.at)
    finally:
        progress.end()
    return context.give(found)
