"""`toolmatrix explain`: why this version: the facts that chose it, the chain to the request, and what was not taken."""

from __future__ import annotations

from toolmatrix.api import answers
from toolmatrix.cli import ask
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Explain one component of the answer to a request; exit 3 if the answer does not hold it."""
    index = context.index()
    subject, *words = context.arguments
    component, told = Names(index).subject(subject)
    wanted = (subject, *words) if told else ask.standing_request(context, words)
    request = ask.build(context, index, wanted)
    around, invert = ask.surroundings(context, index), context.options.invert
    return context.give(
        answers.explained(around, request, component, invert=invert), depth=context.options.depth
    )
