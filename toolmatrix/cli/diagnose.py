"""`toolmatrix diagnose`: known failures in the log of a build or a run, the facts behind them, and the way out."""

from __future__ import annotations

import os.path

from toolmatrix.api import diagnoses
from toolmatrix.cli import ask
from toolmatrix.stages.saved import called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print what is known of the failures in a log; 1 when there is one, but 0 where a SARIF reader judges."""
    options = context.options
    is_said = context.origins["lock"].kind != "default"
    index = context.index()
    found = diagnoses.diagnosed(
        index,
        context.path(context.arguments[0]),
        context.stdin,
        called(context.arguments[0]),
        options.lock if is_said or os.path.isfile(options.lock) else "",
        diagnoses.MOST if options.limit is None else options.limit,
        lambda: ask.surroundings(context, index),
    )
    return context.give(found)
