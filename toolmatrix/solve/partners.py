"""What goes with some releases of a component: one pass over the claims about the two, without solving for the rest.

Of every other component each release is tested with them, allowed or refused by a hard fact, or nobody speaks of it. A
fact counts where its conditions hold whatever else is chosen; what was asked under several requests (such as from
source, and as a wheel) goes where it goes under one of them, and is refused where all that could have it refuse it.
"""

from __future__ import annotations

from copy import copy

from toolmatrix.facts import evidence as words
from toolmatrix.solve.assemble import Reachable
from toolmatrix.solve.grid import joins
from toolmatrix.solve.parts import only_excludes
from toolmatrix.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import Binding, ComponentFacts, RowGroup
    from toolmatrix.solve.request import Request

TESTED, ALLOWED, REFUSED = "tested", "allowed", "refused"
SAYS = (TESTED, ALLOWED, REFUSED)
"""What facts say of a release beside others, the best first."""
_UNREAD = "unread"
"""What a fact says that records that nobody looked: with it nobody can say, whatever others allow."""


class PairFact(NamedTuple):
    """A fact about a pair: what it says of the releases in `mask` of the partner, for the subjects in `of`.

    `touching` are the releases of the fact's own subject that it says it of, by which its claims are cited.
    """

    says: str
    mask: int
    of: int
    evidence: str
    cites: int
    touching: int


class Partner(Value):
    """Another component: its releases by what is said of them, as masks without a release in two of them.

    `usable` are those that can be there at all, `facts` all that was said.
    """

    component: str
    usable: int
    tested: int = 0
    allowed: int = 0
    refused: int = 0
    facts: tuple[PairFact, ...] = ()

    @property
    def unknown(self) -> int:
        """The releases of which nobody speaks."""
        return self.usable & ~(self.tested | self.allowed | self.refused)

    def by_evidence(self, says: str) -> Iterator[tuple[str, int, list[PairFact]]]:
        """The releases of which one thing is said by the best evidence that says it, and the facts that do."""
        left = getattr(self, says)
        for word in words.WORDS:
            # A release belongs to the first word that has it: worse evidence for the same adds nothing.
            found = [said for said in self.facts if said.says == says and said.evidence == word]
            mask = 0
            for said in found:
                mask |= said.mask & left
            if mask:
                yield word, mask, [said for said in found if said.mask & mask]
                left &= ~mask


class Partners(Value):
    """What goes with the releases in `mask` of a component, and what these need at any version.

    `requests` are those that can have one of these releases; of several components in `needs` together one is enough.
    """

    component: str
    mask: int
    requests: tuple[Request, ...]
    partners: tuple[Partner, ...]
    needs: tuple[tuple[str, ...], ...]


def partners_of(index: Index, component: str, requests: Sequence[Request]) -> Partners:
    """What goes with the releases of a component that some requests for it leave."""
    ways = [RequestFacts(index, request, component) for request in requests]
    # A way in which the releases asked about cannot be there says nothing of what goes with them.
    ways = [way for way in ways if way.mask]
    mask = 0
    for way in ways:
        mask |= way.mask
    heads = index.header["components"]
    # What is given says where a result runs: it is a condition of the question, and no answer to it.
    names = [name for name, head in heads.items() if name != component and not head["given"]]
    found = [_merged(name, [way.partner(name) for way in ways]) for name in names]
    needs = {tuple(names): None for way in ways for names in way.needs()}
    return Partners(
        component=component,
        mask=mask,
        requests=tuple(way.request for way in ways),
        partners=tuple(found),
        needs=tuple(needs),
    )


def _merged(name: str, found: Sequence[Partner]) -> Partner:
    usable = tested = allowed = 0
    # Refused is what every way refuses: it begins with everything, and each way takes away from it.
    refused = -1
    for part in found:
        usable |= part.usable
        tested |= part.tested
        allowed |= part.allowed
        # What cannot be there at all is refused by no fact about the pair.
        refused &= part.refused | ~part.usable
    allowed &= ~tested
    return Partner(
        component=name,
        usable=usable,
        tested=tested,
        allowed=allowed,
        refused=refused & usable & ~(tested | allowed),
        facts=tuple(dict.fromkeys(said for part in found for said in part.facts)),
    )


class RequestFacts:
    """One request, under which facts about the releases in `mask` of a component are looked at."""

    def __init__(self, index: Index, request: Request, component: str) -> None:
        reachable = Reachable(index, request)
        self.index = index
        self.request = request
        self.component = component
        self.heads = index.header["components"]
        self.left = reachable.remaining[request.targets[0]]
        self.asked = reachable.asked.get((request.targets[0], component), -1)
        self.floor = words.rank(request.min_evidence or words.UNKNOWN)
        given = [name for name, head in self.heads.items() if head["given"]]
        # Some of what is given goes with nothing else that is, such as an accelerator with a target.
        possible = all(self.usable(name) & self.left[name] for name in given)
        self.mask = self.usable(component) & self.asked if possible else 0

    def certain(self, conditions: Mapping[str, int]) -> bool:
        """True if conditions hold whatever else is chosen; what is not reached is absent."""
        return all(not self.left.get(name, 1) & ~mask for name, mask in conditions.items())

    def usable(self, component: str) -> int:
        """The releases that are out, not withdrawn, and possible where the result runs."""
        part, at = self.index.component(component), self.request.at
        # Bit 0 of a mask stands for a component that is absent, and no release.
        mask = ((2 << len(part.versions)) - 2) & ~part.yanked
        for place, date in enumerate(part.dates) if at else ():
            # An empty date comes before every day: a release without one counts as out.
            if date > at:
                mask &= ~(2 << place)
        given = {name for name, head in self.heads.items() if head["given"]}
        for binding in self.hard(part):
            if binding.component in given and not binding.allowed & self.left[binding.component]:
                mask &= ~binding.mask
        for name in given:
            for binding in self.hard(self.index.component(name)):
                # It binds where it speaks of all that the request leaves of its subject.
                if binding.component == component and not self.left[name] & ~1 & ~binding.mask:
                    mask &= binding.allowed
        return mask

    def hard(self, part: ComponentFacts) -> Iterator[Binding]:
        """The hard facts of a component that name releases of others."""
        for binding in part.bindings:
            known = words.rank(binding.evidence) >= self.floor
            if binding.kind != "needs" and known and self.certain(binding.conditions):
                yield binding

    def needs(self) -> Iterator[Sequence[str]]:
        """The components that the subject needs at any version, alternatives together."""
        for binding in self.index.component(self.component).bindings:
            wanted = binding.kind == "needs" and binding.mask & self.mask
            if wanted and self.certain(binding.conditions):
                yield binding.alternatives

    def at(self, mask: int) -> RequestFacts:
        """The same for some releases of the component."""
        found = copy(self)
        found.mask = self.mask & mask
        return found

    def partner(self, name: str) -> Partner:
        """What is said of the releases of another component."""
        usable = self.usable(name)
        found = [*self._own(name), *self._others(name), *self._rows(name)]
        tested = allowed = 0
        refused = usable
        left = self.mask
        while left:
            # Each release of the subject by itself: what one of them refuses another may allow.
            bit = left & -left
            left ^= bit
            masks = dict.fromkeys((*SAYS, _UNREAD), 0)
            for said in found:
                if said.of & bit:
                    masks[said.says] |= said.mask
            # Whatever else speaks for a pair, a fact that refuses it, or a list that nobody read, leaves no yes.
            free = ~masks[REFUSED] & ~masks[_UNREAD]
            tested |= masks[TESTED] & free
            allowed |= masks[ALLOWED] & free
            refused &= masks[REFUSED]
        return Partner(
            component=name,
            usable=usable,
            tested=tested & usable,
            allowed=allowed & usable & ~tested,
            refused=refused & ~(tested | allowed),
            facts=tuple(found),
        )

    def _own(self, name: str) -> Iterator[PairFact]:
        """What hard facts about the subject say of a partner."""
        everything = (2 << len(self.index.component(name).versions)) - 2
        for binding in self.hard(self.index.component(self.component)):
            of, inside = binding.mask & self.mask, binding.allowed & everything
            # That a toolkit has to be there, whichever, is no yes for each of its releases.
            if binding.component == name and of and joins(self.index, binding):
                for says, mask in _sides(binding, inside, everything):
                    if says != ALLOWED or not only_excludes(self.index, name, binding.cites):
                        yield PairFact(says, mask, of, binding.evidence, binding.cites, of)

    def _others(self, name: str) -> Iterator[PairFact]:
        """What hard facts about a partner say of the subject."""
        everything = (2 << len(self.index.component(self.component).versions)) - 2
        for binding in self.hard(self.index.component(name)):
            mask, inside = binding.mask, binding.allowed & everything
            if binding.component == self.component and joins(self.index, binding):
                for says, of in _sides(binding, inside, everything):
                    if of & self.mask:
                        yield PairFact(says, mask, of, binding.evidence, binding.cites, mask)

    def _rows(self, name: str) -> Iterator[PairFact]:
        """What tested rows of one of the two say of the other."""
        for subject, other in ((self.component, name), (name, self.component)):
            for group in self.index.component(subject).row_groups:
                # That an image holds two things is no statement that they were tested together.
                if other in group.components[1:] and not group.carried:
                    yield from self._tested(group, group.components.index(other, 1), subject)

    def _tested(self, group: RowGroup, place: int, subject: str) -> Iterator[PairFact]:
        known = words.weaker(group.evidence, group.evidences[place])
        # Rank 0 is what no fact says: a row of which nobody knows anything vouches for nothing.
        if words.rank(known) < max(self.floor, 1) or not self.certain(group.conditions):
            return
        for own, beside, cites in zip(
            group.subjects, group.columns[place], group.cites, strict=True
        ):
            of, mask = (own, beside) if subject == self.component else (beside, own)
            if of & self.mask:
                # A row may vouch for the absence of a component, which is no release that goes with anything.
                yield PairFact(TESTED, mask & ~1, of, known, cites, own)


def _sides(binding: Binding, inside: int, everything: int) -> tuple[tuple[str, int], ...]:
    """What a fact says of the releases it admits, and of all others."""
    outside = everything & ~inside
    if binding.evidence == words.UNKNOWN:
        # What a list that nobody read leaves out it does not refuse, and what it admits it does not promise.
        return ((_UNREAD, outside),)
    return (ALLOWED, inside), (REFUSED, outside)
