"""The default accelerator as part of the search: where none gives no answer, one that the target can have may."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Ask, Request

_NONE = "none"


def requests(index: Index, request: Request) -> Iterator[Request]:
    """The request, then the same with accelerators on targets for which nobody named one, the fewest first.

    An accelerator is never left out by itself: who gets no answer with it has to ask for none.
    """
    yield request
    ways = [(ask, *_others(index, ask)) for ask in request.asks]
    # Most requests have one way, and what combines several takes longer to import than these to read.
    if all(len(way) == 1 for way in ways):
        return
    from itertools import product

    changed = sorted(
        list(product(*ways))[1:],
        key=lambda asks: sum(one != other for one, other in zip(asks, request.asks, strict=True)),
    )
    for asks in changed:
        moved = {
            ask.target: ask.selector
            for one, ask in zip(request.asks, asks, strict=True)
            if one is not ask
        }
        found = request.replace(asks=(*asks, *_having(index, asks, moved)))
        # By default such a target computed on nothing, and a codegen arch or device was meant for others.
        there = tuple(place for place in request.apart if place[0] not in moved)
        if there != request.apart:
            yield found.replace(apart=there)
        yield found


def _having(index: Index, asks: Sequence[Ask], accelerators: Mapping[str, str]) -> Iterator[Ask]:
    """What the user has on other targets alone that computes on the new accelerators, by target, of these."""
    for ask in asks:
        computes = index.header["components"][ask.component]["accelerators"]
        for target, accelerator in accelerators.items() if ask.option == "with" else ():
            here = ask.replace(target=target)
            if ask.target and accelerator in computes and here not in asks:
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
