"""`toolmatrix why-not`: what forbids a request, hard apart from soft, and what would allow it."""

from __future__ import annotations

from toolmatrix.cli import ask
from toolmatrix.errors import CannotSay
from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve import untested
from toolmatrix.solve.resolve import Refusal, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Exit 1 with the reasons, 0 when facts support it, 4 when nothing forbids it and nothing supports it either."""
    from toolmatrix.cli import offer
    from toolmatrix.report import answer, cores, refusal

    index = context.index()
    found = resolve(index, ask.build(context, index))
    if isinstance(found, Refusal):
        soft = cores.soft_documents(found.assembly, untested.untested(found.assembly))
        ways, carried = offer.ways(context, index, found), offer.carried(context)
        if context.options.format == "json":
            context.write_json(refusal.document(index, found, ways, soft, carried=carried))
        else:
            screen, depth = context.terminal, context.options.depth
            context.write(
                refusal.text(index, found, ways, screen, soft, depth=depth, carried=carried)
            )
        return 1
    assembly = found.assembly
    soft = cores.soft_documents(assembly, untested.untested(assembly))
    wanted = set(found.request.wanted)
    free = any(
        choice.component in wanted and choice.evidence == UNKNOWN
        for held in found.targets.values()
        for choice in held
    )
    known = untested.spoken(assembly) and not (soft or free or found.unread)
    if context.options.format == "json":
        document = answer.document(index, found)
        context.write_json(document | {"untested": soft, "allowed": True if known else None})
    else:
        context.write(refusal.allowed_text(index, found, soft, context.terminal, known=known))
    return 0 if known else CannotSay.exit_code
