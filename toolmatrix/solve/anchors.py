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

    from toolmatrix.facts.records import Binding, RowGroup
    from toolmatrix.solve.assemble import Reachable

_CONTEXT = (*SEVERAL, "distro")
"""Where the result runs: nothing older is wanted for it, and facts refuse what does not run there."""
MOST = 8
"""So many anchors are told apart: with all of them a release ranks below what any row says of chosen components."""


class Anchor(NamedTuple):
    """What is named beside a wanted component, in the words of the request, and which releases are joined to it."""

    component: str
    text: str
    joined: int


class Anchors:
    """What a request names on a target that anchors what it wants there."""

    def __init__(self, reachable: Reachable, target: str) -> None:
        self.reachable = reachable
        self.target = target
        components = reachable.header["components"]
        # Who names a release, or a range without the newest.
        self.named = [
            ask
            for ask in reachable.asks(target)
            if not components[ask.component]["given"]
            and ask.component not in _CONTEXT
            and not reachable.asked[target, ask.component]
            >> reachable.by_name[target, ask.component][0].count
        ]
        self._rows: dict[str, list[RowGroup]] = {}
        for owner, name in reachable.by_name if self.named else ():
            for group in reachable.component(name).row_groups if owner == target else ():
                if group.evidence != UNKNOWN and _could_hold(reachable, target, group.conditions):
                    for part in group.components:
                        self._rows.setdefault(part, []).append(group)

    def of(self, wanted: str) -> list[Anchor]:
        """The anchors of a wanted component, in the order of the request."""
        left = self.reachable.asked.get((self.target, wanted), -1) & ~1
        # A release that is named exactly needs no anchor.
        if self.reachable.request.prefer == "newest" or not left & left - 1:
            return []
        found = {}
        for ask in self.named:
            joined = self._joined(wanted, ask.component) if ask.component != wanted else 0
            if joined:
                found[ask.component] = Anchor(ask.component, ask.text, joined)
        return list(found.values())

    def ranked(self, wanted: str) -> Iterator[tuple[int, int]]:
        """The releases of a wanted component that are joined to so many anchors at least, and how many these are."""
        least = [-1]
        for anchor in self.of(wanted)[:MOST]:
            least = [
                before | (least[place - 1] & anchor.joined if place else 0)
                for place, before in enumerate([*least, 0])
            ]
        for count, mask in enumerate(least):
            if count and mask:
                yield mask, count

    def _joined(self, wanted: str, other: str) -> int:
        reachable, target = self.reachable, self.target
        beside = reachable.asked[target, other]
        both = [group for group in self._rows.get(wanted, ()) if other in group.components]
        if not both:
            return _pinned(reachable, target, wanted, other)
        found = 0
        for group in both:
            places = group.components.index(wanted), group.components.index(other)
            for mask, held in zip(*map(group.columns.__getitem__, places), strict=True):
                if held & beside:
                    found |= mask
        for binding in _limiting(reachable, other, wanted, beside):
            found |= binding.allowed if _could_hold(reachable, target, binding.conditions) else 0
        found |= _built(reachable, target, wanted, other)
        admitted, unread = _admitting(reachable, target, wanted, other)
        return (found | admitted) & ~unread & ~1


def _pinned(reachable: Reachable, target: str, wanted: str, other: str) -> int:
    """What the release preferred of what is named requires under some condition; what always holds needs no anchor."""
    asked = reachable.asked[target, other]
    oldest = reachable.by_name[target, other][0].oldest
    preferred = asked & -asked if oldest else 1 << asked.bit_length() - 1
    found = -1
    for binding in _limiting(reachable, other, wanted, preferred):
        if binding.conditions and reachable.possible(target, binding.conditions):
            found &= binding.allowed
    return 0 if found == -1 else found


def _limiting(reachable: Reachable, subject: str, about: str, releases: int) -> Iterator[Binding]:
    """The known bindings of some releases that limit a component to some of its own."""
    whole = (2 << len(reachable.scale(about).versions)) - 2
    for binding in reachable.component(subject).about(about, releases):
        # What admits every release, or none but its absence, says nothing of the two.
        if binding.evidence != UNKNOWN and not binding.allowed & 1 and binding.allowed != whole:
            yield binding


def _could_hold(reachable: Reachable, target: str, conditions: Mapping[str, int]) -> bool:
    # What the wheels of a release ask for joins a build of it as well.
    beside = {name: mask for name, mask in conditions.items() if name != "from"}
    return reachable.possible(target, beside)


def _admitting(reachable: Reachable, target: str, subject: str, other: str) -> tuple[int, int]:
    """The releases of a subject whose facts admit what is named, and those of which nobody read whether they do."""
    beside, admitted, unread = reachable.asked[target, other], 0, 0
    for binding in reachable.component(subject).about(other, -1):
        if binding.kind != "needs" and _could_hold(reachable, target, binding.conditions):
            if binding.allowed & beside:
                admitted |= 0 if binding.evidence == UNKNOWN else binding.mask
            elif binding.evidence == UNKNOWN:
                unread |= binding.mask
    return admitted, unread


def _built(reachable: Reachable, target: str, wanted: str, other: str) -> int:
    """The releases of which some build is made for what is named."""
    found, name = 0, reachable.index.builds_of(wanted)
    if (target, name) in reachable.by_name:
        builds, _ = _admitting(reachable, target, name, other)
        for binding in reachable.component(name).about(wanted, builds):
            found |= binding.allowed
    return found
