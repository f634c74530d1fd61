"""`toolmatrix explain`: why this version: the facts that chose it, the chain to the request, and what was not taken."""

from __future__ import annotations

from toolmatrix.cli import ask
from toolmatrix.cli.resolve import refuse
from toolmatrix.errors import NothingMatched
from toolmatrix.solve.resolve import Refusal, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.solve.resolve import Resolution


def run(context: Context) -> int:
    """Explain one component of the answer to a request; exit 3 if the answer does not hold it."""
    from toolmatrix.report import explanation

    index = context.index()
    name = ask.Names(index).component(context.arguments[0].lower())
    request = ask.build(context, index, ask.standing_request(context, context.arguments[1:]))
    found = resolve(index, request)
    if isinstance(found, Refusal):
        return refuse(context, index, found)
    choices = [
        choice for held in found.targets.values() for choice in held if choice.component == name
    ]
    if not choices:
        raise NothingMatched(
            f"the answer holds no {name}",
            expected="one of " + ", ".join(_components(found)),
            found=f"`{name}`",
            help="`toolmatrix resolve` shows the whole answer",
        )
    if context.options.format == "json":
        context.write_json(
            explanation.document(index, found, choices, invert=context.options.invert)
        )
    else:
        invert, depth = context.options.invert, context.options.depth
        screen = context.terminal
        context.write(explanation.text(index, found, choices, screen, invert=invert, depth=depth))
    return 0


def _components(found: Resolution) -> list[str]:
    return list(
        dict.fromkeys(choice.component for held in found.targets.values() for choice in held)
    )
