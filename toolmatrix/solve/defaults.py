"""The default accelerator as part of the search: where none gives no answer, one that the target can have may."""

from __future__ import annotations

from itertools import product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Ask, Request

_NONE = "none"


def requests(index: Index, request: Request) -> Iterator[Request]:
    """The request, then the same with accelerators on targets for which nobody named one, the fewest first.

    An accelerator is never left out by itself: who gets no answer with it has to ask for none.
    """
    yield request
    ways = [(ask, *_others(index, ask)) for ask in request.asks]
    changed = sorted(
        list(product(*ways))[1:] if any(len(way) > 1 for way in ways) else [],
        key=lambda asks: sum(one != other for one, other in zip(asks, request.asks, strict=True)),
    )
    for asks in changed:
        found = request.replace(asks=(*asks, *_had(index, request, asks)))
        moved = {ask.target for one, ask in zip(request.asks, asks, strict=True) if one is not ask}
        # A codegen arch or device may be meant for a target that computes on nothing else but by default.
        there = tuple(place for place in request.apart if place[0] not in moved)
        if there != request.apart:
            yield found.replace(apart=there)
        yield found


def _had(index: Index, request: Request, asks: Sequence[Ask]) -> Iterator[Ask]:
    """What the user has with the accelerators that targets have now, which was meant for others before."""
    for one, ask in zip(request.asks, asks, strict=True):
        for had in asks if one is not ask else ():
            computes = index.header["components"][had.component]["accelerators"]
            meant = had.option == "with" and had.target and ask.selector in computes
            here = had.replace(target=ask.target)
            if meant and here not in asks:
                yield here


def _others(index: Index, ask: Ask) -> Iterator[Ask]:
    if ask.component != "accelerator" or not ask.implied or ask.selector != _NONE:
        return
    # What the target cannot have would only be refused once more.
    names = index.scale("accelerator")
    able = -1
    for binding in index.component("target").about(
        "accelerator", index.scale("target").bit(ask.target)
    ):
        able &= binding.allowed
    for name in names.versions:
        if name != _NONE and able & names.bit(name):
            yield ask.replace(selector=name, text=f"--accelerator {name}")
