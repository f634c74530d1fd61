"""`toolmatrix why-not`: what forbids a request, hard apart from soft, and what would allow it."""

from __future__ import annotations

from toolmatrix.api import answers
from toolmatrix.cli import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Exit 1 with the reasons, 0 when facts support it, 4 when nothing forbids it and nothing supports it either."""
    index = context.index()
    found = answers.allowed(ask.surroundings(context, index), ask.build(context, index))
    return context.give(found, depth=context.options.depth)
