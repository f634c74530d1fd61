"""What is named beside a wanted component anchors it: a release that a source joins with that comes before a newer one.

A component that the request names with a release, or with a range without its newest, is an anchor. A release of a
wanted component is joined to it where a row names both, or where a fact about both admits them. Where no row names such
a pair, what the anchor requires under a condition joins: other facts refuse what does not fit. What is joined to more
anchors comes first, and age decides among equals.
"""

from __future__ import annotations

from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.facts.records import Binding
    from toolmatrix.solve.assemble import Reached
    from toolmatrix.solve.request import Ask

_CONTEXT = (*SEVERAL, "distro")
"""Where the result runs: nothing older is wanted for it, and facts refuse what does not run there."""
MOST = 8
"""So many anchors are told apart: with all of them a release ranks below what any row says of chosen components."""


class Anchor(NamedTuple):
    """What is named beside a wanted component, in the words of the request, and which releases are joined to it."""

    component: str
    text: str
    joined: int


def anchors(reached: Reached, target: str, wanted: str) -> list[Anchor]:
    """The anchors of a wanted component on a target, in the order of the request."""
    left = reached.asked.get((target, wanted), -1) & ~1
    # A release that is named exactly needs no anchor.
    if reached.request.prefer == "newest" or not left & left - 1:
        return []
    found = {}
    for ask in _anchoring(reached, target):
        joined = _joined(reached, target, wanted, ask.component) if ask.component != wanted else 0
        if joined:
            found[ask.component] = Anchor(ask.component, ask.text, joined)
    return list(found.values())


def _anchoring(reached: Reached, target: str) -> list[Ask]:
    """What the request names on a target with a release, or with a range without the newest."""
    # Each of what is wanted asks.
    if target not in reached.anchoring:
        components = reached.header["components"]
        reached.anchoring[target] = [
            ask
            for ask in reached.asks(target)
            if not components[ask.component]["given"]
            and ask.component not in _CONTEXT
            and not reached.asked[target, ask.component]
            >> reached.by_name[target, ask.component][0].count
        ]
    return reached.anchoring[target]


def ranked(reached: Reached, target: str, wanted: str) -> Iterator[tuple[int, int]]:
    """The releases of a wanted component that are joined to so many anchors at least, and how many these are."""
    least = [-1]
    for anchor in anchors(reached, target, wanted)[:MOST]:
        least = [
            before | (least[place - 1] & anchor.joined if place else 0)
            for place, before in enumerate([*least, 0])
        ]
    for count, mask in enumerate(least):
        if count and mask:
            yield mask, count


def _joined(reached: Reached, target: str, wanted: str, other: str) -> int:
    beside = reached.asked[target, other]
    found, spoken = 0, False
    for owner, name in reached.by_name:
        for group in reached.component(name).row_groups if owner == target else ():
            names = group.components
            if wanted not in names or other not in names or group.evidence == UNKNOWN:
                continue
            if not _could_hold(reached, target, group.conditions):
                continue
            spoken = True
            columns = group.columns[names.index(wanted)], group.columns[names.index(other)]
            for mask, held in zip(*columns, strict=True):
                if held & beside:
                    found |= mask
    if not spoken:
        return _pinned(reached, target, wanted, other)
    for binding in _limiting(reached, other, wanted, beside):
        found |= binding.allowed if _could_hold(reached, target, binding.conditions) else 0
    found |= _built(reached, target, wanted, other)
    admitted, unread = _admitting(reached, target, wanted, other)
    return (found | admitted) & ~unread & ~1


def _pinned(reached: Reached, target: str, wanted: str, other: str) -> int:
    """What the newest of what is named requires under some condition, as a mask; what always holds needs no anchor."""
    newest = 1 << reached.asked[target, other].bit_length() - 1
    found = -1
    for binding in _limiting(reached, other, wanted, newest):
        if binding.conditions and reached.possible(target, binding.conditions):
            found &= binding.allowed
    return 0 if found == -1 else found


def _limiting(reached: Reached, subject: str, about: str, releases: int) -> Iterator[Binding]:
    """The known bindings of some releases that limit a component to some of its own."""
    whole = (2 << len(reached.scale(about).versions)) - 2
    for binding in reached.component(subject).about(about, releases):
        # What admits every release, or none but its absence, says nothing of the two.
        if binding.evidence != UNKNOWN and not binding.allowed & 1 and binding.allowed != whole:
            yield binding


def _could_hold(reached: Reached, target: str, conditions: Mapping[str, int]) -> bool:
    # What the wheels of a release ask for joins a build of it as well.
    beside = {name: mask for name, mask in conditions.items() if name != "from"}
    return reached.possible(target, beside)


def _admitting(reached: Reached, target: str, subject: str, other: str) -> tuple[int, int]:
    """The releases of a subject whose facts admit what is named, and those of which nobody read whether they do."""
    beside, admitted, unread = reached.asked[target, other], 0, 0
    for binding in reached.component(subject).about(other, -1):
        if binding.kind != "needs" and _could_hold(reached, target, binding.conditions):
            if binding.allowed & beside:
                admitted |= 0 if binding.evidence == UNKNOWN else binding.mask
            elif binding.evidence == UNKNOWN:
                unread |= binding.mask
    return admitted, unread


def _built(reached: Reached, target: str, wanted: str, other: str) -> int:
    """The releases of which some build is made for what is named."""
    found = 0
    for owner, name in reached.by_name:
        if owner == target and reached.header["components"][name]["variant_of"] == wanted:
            builds, _ = _admitting(reached, target, name, other)
            for binding in reached.component(name).about(wanted, builds):
                found |= binding.allowed
    return found
