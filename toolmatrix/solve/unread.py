"""Which of the unread statements that an answer rests on decide whether it is a yes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Incompatibility
    from toolmatrix.solve.resolve import Resolution


def deciding(found: Resolution) -> tuple[Incompatibility, ...]:
    """The unread statements about something that the request names, or about its devices: with any it is no yes.

    What is unread between two parts that the solver chose itself is a mark of the answer, and no reason to doubt it.
    """
    request, components = found.request, found.index.header["components"]
    named = {
        ask.component
        for ask in request.asks
        if not ask.implied and not components[ask.component]["given"]
    }
    if request.devices or request.archs:
        named |= {"device", "arch"}
    return tuple(ground for ground in found.unread if not named.isdisjoint(_about(found, ground)))


def _about(found: Resolution, ground: Incompatibility) -> set[str]:
    components = found.index.header["components"]
    parts = {ground.subject, ground.component, *ground.alternatives}
    # A build is of a component, which is what somebody names.
    return parts | {components[name]["variant_of"] for name in parts if name}
