"""`toolmatrix fetch`: what rendered files download, for builds without a network; or the driver of a toolkit."""

from __future__ import annotations

import os.path

from toolmatrix.api import driver_fetches, fetches
from toolmatrix.cli.context import Context
from toolmatrix.cli.progress import ProgressLine
from toolmatrix.command import command


@command(
    group="Lock and build",
    order=4,
    usage="[DIR | cuda==RELEASE]",
    completer="file",
    examples=("toolmatrix fetch out", "toolmatrix fetch cuda==13.0.1 --json"),
)
def run(context: Context) -> int:
    """Download what rendered files need, or the nvcc of a toolkit.

    Fill the folder and say what came, and what a build without a network still lacks.
    """
    word = context.arguments[0] if context.arguments else "."
    progress = ProgressLine(context, "fetching", "files")
    asked = (context.env, context.index(), progress.at)
    try:
        found = (
            driver_fetches.fetch(word, *asked)
            if "==" in word and not os.path.isdir(context.path(word))
            else fetches.fetch(context.path(word), *asked)
        )
    finally:
        progress.end()
    return context.give(found)
