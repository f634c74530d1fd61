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
    names, (subject, *words) = ask.Names(index), context.arguments
    name, told = _subject(names, subject)
    wanted = (subject, *words) if told else ask.standing_request(context, words)
    request = ask.build(context, index, wanted)
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


def _subject(names: ask.Names, text: str) -> tuple[str, bool]:
    """The component that is to be explained, and whether a release or a build of it is said, which is asked for too."""
    name, selector = names.split(text)
    if "[" in name or (selector and selector != "*"):
        return names.asks(text)[0].component, True
    return names.component(name), False


def _components(found: Resolution) -> list[str]:
    return list(
        dict.fromkeys(choice.component for held in found.targets.values() for choice in held)
    )
