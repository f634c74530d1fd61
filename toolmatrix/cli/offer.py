"""Ways out of a refusal as commands: each is read and solved again as if pasted, and dropped if that fails."""

from __future__ import annotations

import shlex

from toolmatrix.cli import ask
from toolmatrix.cli.parser import parse
from toolmatrix.cli.prepare import make_context
from toolmatrix.errors import ToolmatrixError
from toolmatrix.report import refusal as report
from toolmatrix.solve.repair import repairs
from toolmatrix.solve.resolve import possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Refusal, Resolution


def carried(context: Context) -> list[str]:
    """The options that a command needs besides the request."""
    words = [word for path in context.options.matrix for word in ("--matrix", path)]
    return [*words, *(("--keep", context.options.keep) if context.options.keep else ())]


def ways(context: Context, index: Index, refusal: Refusal) -> list[Repair]:
    """The repairs of a refusal whose commands resolve, with what these answer."""
    found = []
    for repair in repairs(index, refusal):
        for request in (repair.request, _aloud(repair.request)):
            resolution = _pasted(context, index, request)
            if resolution is not None:
                found.append(repair.replace(request=request, resolution=resolution))
                break
    return found


def _aloud(request: Request) -> Request:
    """The request with its accelerator named: a changed request may have another default."""
    asks = tuple(
        part.replace(implied=False) if part.option == "accelerator" else part
        for part in request.asks
    )
    return request.replace(asks=asks)


def _pasted(context: Context, index: Index, request: Request) -> Resolution | None:
    """What the command of a request answers."""
    return answered(
        context, index, shlex.split(report.command(index, request, carried(context)))[1:]
    )


def answered(context: Context, index: Index, words: Sequence[str]) -> Resolution | None:
    """What a command line answers when it is pasted where this one ran, None where it gives no answer."""
    try:
        parsed = parse(words)
        streams = context.stdin, context.stdout, context.stderr
        fresh = make_context(parsed, parsed.command or context.command, context.env, *streams)
        return possible(index, ask.build(fresh, index))
    except ToolmatrixError:
        return None
