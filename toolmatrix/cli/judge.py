"""`toolmatrix judge`: files of a project beside the facts."""

from __future__ import annotations

from toolmatrix.cli.context import Context
from toolmatrix.cli.progress import Progress, summarize


def run(context: Context) -> int:
    """Print what facts say of each file; 1 where one refuses something, 4 where none speaks."""
    from toolmatrix.api import manifests

    paths = [context.path(path) for path in context.arguments]
    index, progress = context.index(), Progress(context, "judging", "files")
    found = manifests.judged(index, paths, seen=progress.at)
    progress.end()
    if context.options.format == "github":
        summarize(context, found.written("md", context.title))
    return context.give(found)
