"""Propagation, decisions, and learning from conflicts; ``engine`` specifies what they compute.

A conflict is resolved down to its first unique implication point, which is learned as a nogood.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import Ranking

    Terms = tuple[tuple[int, int], ...]
    Event = tuple[int, int, int, int, tuple[int, ...]]
    """Stamp, variable, removed candidates, dependencies, nogoods (none for a decision)."""
    Link = list[tuple[int, int, int]]
    """Complement of the mask here, mask there, nogood."""


class Search:
    """The state of one search; it can be resumed after more nogoods are added."""

    __slots__ = (
        *("antecedents", "binary", "chains", "clash", "decisions", "domains", "failed", "initial"),
        *("links", "long_terms", "nogoods", "queue", "ranking", "restored", "settled", "stamp"),
        *("to_decide", "trail", "watch_xor", "watched"),
    )

    def __init__(self, domains: Sequence[int], nogoods: Sequence[Terms], ranking: Ranking) -> None:
        count = len(domains)
        self.domains = list(domains)
        self.ranking = ranking
        self.nogoods: list[Terms] = list(nogoods)
        self.initial = len(self.nogoods)
        self.antecedents: list[tuple[list[int], list[tuple[int, int]]]] = []
        # More than half of nogoods have two terms: filed under both of their variables they need no watches that move.
        self.binary: list[dict[int, Link]] = [{} for _ in domains]
        self.links: list[dict[int, dict[int, tuple[int, Link]]]] = [{} for _ in domains]
        self.watched: list[dict[int, int]] = [{} for _ in domains]
        self.long_terms: dict[int, dict[int, int]] = {}
        # From either of the two variables that watch a nogood this gives the other, whichever of them is at hand.
        self.watch_xor: dict[int, int] = {}
        self.chains: list[list[Event]] = [[] for _ in domains]
        self.trail: list[Event] = []
        self.stamp = 0
        self.decisions: dict[int, Event] = {}
        self.settled = [0] * count
        # As bits: the next variable to decide is the lowest of them.
        self.to_decide = (1 << count) - 1
        # Keys alone, in the order of entry: what changed first wakes its nogoods first, and stands in the queue once.
        self.queue: dict[int, None] = dict.fromkeys(range(count))
        self.restored: dict[int, int] = {}
        self.clash: Clash | None = None
        self.failed = not all(self.domains)
        if not self.failed:
            self._index()

    def _index(self) -> None:
        """File each nogood: units act at once, pairs by variable, longer ones by two watches."""
        pairs, wide = self.binary, self.watched
        single: list[int] = []
        for index, terms in enumerate(self.nogoods):
            if len(terms) == 2:
                # Complements are kept, as a term is true where the domain has nothing in the complement of its mask.
                (first, mask), (second, other) = terms
                if second in pairs[first]:
                    pairs[first][second].append((~mask, other, index))
                    pairs[second][first].append((~other, mask, index))
                else:
                    pairs[first][second] = [(~mask, other, index)]
                    pairs[second][first] = [(~other, mask, index)]
            elif len(terms) > 2:
                (first, mask), (second, other) = terms[:2]
                self.long_terms[index] = dict(terms)
                self.watch_xor[index] = first ^ second
                wide[first][index], wide[second][index] = ~mask, ~other
            else:
                single.append(index)
        for index in single:
            if not self._apply_unit(index):
                return

    def _apply_unit(self, index: int) -> bool:
        """Apply a nogood of one term, or of none, for good."""
        for variable, mask in self.nogoods[index]:
            removed = self.domains[variable] & mask
            if removed != self.domains[variable]:
                if removed:
                    self.remove(variable, removed, 0, (index,))
                return True
        self.fail(Clash(dict(self.nogoods[index]), [index]))
        return False

    def watch(self, index: int, terms: dict[int, int], first: int, second: int) -> None:
        """Watch a nogood on two of its variables."""
        self.long_terms[index] = terms
        self.watch_xor[index] = first ^ second
        self.watched[first][index] = ~terms[first]
        self.watched[second][index] = ~terms[second]

    def add(self, terms: dict[int, int], first: int, second: int) -> int:
        """File one more nogood and return its index."""
        index = len(self.nogoods)
        self.nogoods.append(tuple(terms.items()))
        if len(terms) > 1:
            self.watch(index, terms, first, second)
        return index

    def linked(self, variable: int, bit: int) -> dict[int, tuple[int, Link]]:
        """Return, for each neighbour, the pairs whose term here holds the candidate ``bit``.

        With them comes the union of their masks there. For the lowest candidate left these are
        the pairs whose term here may be true. They are kept for the next visit with the same
        candidate: most visits then cost one look at each neighbour instead of one at each nogood.
        """
        known = self.links[variable].get(bit)
        if known is not None:
            return known
        links: dict[int, tuple[int, Link]] = {}
        for other, pairs in self.binary[variable].items():
            true = [pair for pair in pairs if not bit & pair[0]]
            if true:
                union = 0
                for pair in true:
                    union |= pair[1]
                links[other] = (union, true)
        self.links[variable][bit] = links
        return links

    # Events

    def remove(self, variable: int, bits: int, needs: int, reason: tuple[int, ...]) -> None:
        """Record that ``bits`` leave a domain; there must be others left."""
        self.stamp += 1
        event = (self.stamp, variable, bits, needs, reason)
        self.domains[variable] &= ~bits
        self.chains[variable].append(event)
        self.trail.append(event)
        self.queue[variable] = None

    def needs(self, variable: int, complement: int) -> int:
        """Return the decisions on which the absence of candidates in ``complement`` rests."""
        decisions = 0
        for event in self.chains[variable]:
            if event[2] & complement:
                decisions |= event[3]
        return decisions

    def take_back(self, variable: int) -> None:
        """Undo the decision on a variable and every event that depends on it."""
        from bisect import bisect_left

        # Events are tuples that begin with a stamp which only grows, so that the trail is sorted.
        start = bisect_left(self.trail, self.decisions.pop(variable))
        bit = 1 << variable
        tail = self.trail[start:]
        del self.trail[start:]
        for event in tail:
            if event[3] & bit:
                touched = event[1]
                self.domains[touched] |= event[2]
                self.chains[touched].remove(event)
                self.restored[touched] = self.restored.get(touched, 0) | event[2]
                self.to_decide |= 1 << touched
            else:
                self.trail.append(event)

    # Propagation

    def propagate(self) -> Clash | None:
        """Bring every nogood to rest; return the first that is violated."""
        while self.restored or self.queue:
            # What came back is first: a domain that is too wide would let candidates through that are excluded.
            if self.restored:
                variable, back = next(iter(self.restored.items()))
                clash = self._wake_grown(variable, back)
                if clash is None:
                    del self.restored[variable]
            else:
                variable = next(iter(self.queue))
                del self.queue[variable]
                clash = self._wake(variable)
                # Its other nogoods were not looked at, and still have to be when the clash is resolved.
                if clash is not None:
                    self.queue[variable] = None
            if clash is not None:
                return clash
        return None

    def _wake(self, variable: int) -> Clash | None:
        """Apply the nogoods whose term on ``variable`` may have become true."""
        domains = self.domains
        domain = domains[variable]
        for other, (union, pairs) in self.linked(variable, domain & -domain).items():
            if domains[other] & union:
                clash = self._apply(variable, other, pairs, domains[other])
                if clash is not None:
                    return clash
        watched, twins, long_terms = self.watched[variable], self.watch_xor, self.long_terms
        for index in [i for i, complement in watched.items() if not domain & complement]:
            other = twins[index] ^ variable
            if domains[other] & long_terms[index][other]:
                clash = self._visit(variable, other, index)
                if clash is not None:
                    return clash
        return None

    def _wake_grown(self, variable: int, back: int) -> Clash | None:
        """Apply again the nogoods that may remove candidates which came back."""
        domains = self.domains
        for other in self.binary[variable]:
            # What lost no candidate excludes nothing that came back: its removals rest on no decision.
            if not self.chains[other]:
                continue
            link = self.linked(other, domains[other] & -domains[other]).get(variable)
            if link is not None:
                union, pairs = link
                if union & back & domains[variable]:
                    clash = self._apply(other, variable, pairs, back & domains[variable])
                    if clash is not None:
                        return clash
        watched = self.watched[variable]
        for index in [i for i, complement in watched.items() if back & complement != back]:
            other = self.watch_xor[index] ^ variable
            if (
                not domains[other] & self.watched[other][index]
                and domains[variable] & ~watched[index]
            ):
                clash = self._visit(other, variable, index)
                if clash is not None:
                    return clash
        return None

    def _apply(self, source: int, target: int, pairs: Link, bits: int) -> Clash | None:
        """Remove from ``target``, out of ``bits``, what pairs with a true term exclude."""
        domain = self.domains[source]
        left = bits
        complements = 0
        reason: list[int] = []
        for complement, mask, index in pairs:
            if left & mask and not domain & complement:
                left &= ~mask
                complements |= complement
                reason.append(index)
                if not left:
                    break
        if not reason:
            return None
        removed = bits & ~left
        if removed == self.domains[target]:
            return self._wiped_out(source, target, reason)
        self.remove(target, removed, self.needs(source, complements), tuple(reason))
        return None

    def _wiped_out(self, source: int, target: int, reason: list[int]) -> Clash:
        """Join the pairs that leave ``target`` without a candidate."""
        terms = {source: -1, target: 0}
        for index in reason:
            pair = dict(self.nogoods[index])
            terms[source] &= pair[source]
            terms[target] |= pair[target]
        return Clash(terms, reason)

    def _visit(self, variable: int, other: int, index: int) -> Clash | None:
        """Move the watch off the true term on ``variable``; if there is nowhere to go, act.

        The other watched term, on ``other``, may be true.
        """
        domains = self.domains
        terms = self.long_terms[index]
        for v, mask in terms.items():
            if domains[v] & ~mask and v != other:
                del self.watched[variable][index]
                self.watched[v][index] = ~mask
                self.watch_xor[index] = other ^ v
                return None
        bits = domains[other] & terms[other]
        if bits == domains[other]:
            return Clash(dict(terms), [index])
        needs = 0
        for v, mask in terms.items():
            if v != other:
                needs |= self.needs(v, ~mask)
        self.remove(other, bits, needs, (index,))
        return None

    # Decisions

    def run(self, limit: int = -1) -> bool | None:
        """Search from here; return whether every variable has a value, ``None`` if not known.

        It gives up after ``limit`` conflicts.
        """
        while not self.failed:
            clash = self.propagate()
            if clash is not None:
                if not limit:
                    return None
                limit -= 1
                self.refute(clash)
            elif not self.to_decide:
                return True
            else:
                self._settle((self.to_decide & -self.to_decide).bit_length() - 1)
        return False

    def refute(self, clash: Clash) -> None:
        """Learn from a violated nogood and take back its latest decision."""
        learned = learn(self, clash)
        if learned is None:
            self.fail(clash)
        else:
            self.take_back(learned.level)
            self.accept(clash, learned)

    def fail(self, clash: Clash) -> None:
        """End the search with a clash that needs no decision."""
        self.clash = clash
        self.failed = True

    def accept(self, clash: Clash, learned: Learned) -> None:
        """File a learned nogood and remove what it excludes now."""
        variable = learned.variable
        index = self.add(learned.terms, variable, learned.second)
        self.antecedents.append((clash.used, clash.dropped))
        bits = self.domains[variable] & learned.terms[variable]
        self.remove(variable, bits, learned.needs, (index,))

    def _settle(self, variable: int) -> None:
        """Give the first open variable its best candidate; take back what hinders that."""
        allowed = self.domains[variable]
        late: list[int] = []
        for event in self.chains[variable]:
            level = event[3].bit_length() - 1
            if level >= variable:
                allowed |= event[2]
                late.append(level)
        best = self.ranking.prefer(variable, allowed, self.domains)
        # A later decision must not have a say in what is best here: it goes, and comes again after this one.
        if late and (late != [variable] or best != self.domains[variable]):
            for level in late:
                if level in self.decisions:
                    self.take_back(level)
            return
        if best != self.domains[variable]:
            self.remove(variable, allowed & ~best, 1 << variable, ())
            self.decisions[variable] = self.trail[-1]
        self.to_decide &= ~(1 << variable)
        # Only what a row joins with this value is ranked anew.
        if self.settled[variable] != best:
            self.settled[variable] = best
            self.to_decide |= self.ranking.followers[variable]

    # Results

    def values(self) -> tuple[int, ...]:
        """Return the candidate index of each variable of a finished search."""
        return tuple(domain.bit_length() - 1 for domain in self.domains)

    def core(self) -> tuple[int, ...]:
        """Return the nogoods from which the failure follows."""
        return trace(self, self.clash) if self.clash is not None else ()


class Clash:
    """A nogood all of whose terms are true, and where it comes from.

    ``used`` are the nogoods resolved into it, ``dropped`` the terms left out because they are
    true without any decision.
    """

    __slots__ = ("dropped", "terms", "used")

    def __init__(self, terms: dict[int, int], used: list[int]) -> None:
        self.terms = terms
        self.used = used
        self.dropped: list[tuple[int, int]] = []


class Learned:
    """A nogood that excludes ``terms[variable]`` once ``level`` is taken back."""

    __slots__ = ("level", "needs", "second", "terms", "variable")

    def __init__(self, terms: dict[int, int], variable: int, level: int) -> None:
        self.terms = terms
        self.variable = variable
        self.level = level
        self.needs = 0
        self.second = -1


def learn(search: Search, clash: Clash) -> Learned | None:
    """Resolve a clash down to one term of its level; ``None`` if it needs no decision."""
    terms = clash.terms
    while True:
        level, pending = _latest(search, terms)
        if not level:
            return None
        while len(pending) > 1:
            # By stamp, latest first: resolving in any other order could bring back a term that is gone.
            event = max(pending.values())
            del pending[event[1]]
            for variable in resolve(search, clash, event):
                latest = _last_event(search, variable, terms, level)
                if latest is not None:
                    pending[variable] = latest
                else:
                    pending.pop(variable, None)
        if pending:
            return _assertion(search, clash, next(iter(pending)), level - 1)


def _latest(search: Search, terms: dict[int, int]) -> tuple[int, dict[int, Event]]:
    """Return the highest level among true terms, and for its terms their last event there."""
    level = 0
    pending: dict[int, Event] = {}
    for variable, mask in terms.items():
        for event in search.chains[variable]:
            if event[2] & ~mask:
                height = event[3].bit_length()
                if height > level:
                    level = height
                    pending = {}
                if height == level:
                    pending[variable] = event
    return level, pending


def _last_event(search: Search, variable: int, terms: dict[int, int], level: int) -> Event | None:
    """Return the last event of a level on which the truth of a term rests."""
    complement = ~terms.get(variable, -1)
    for event in reversed(search.chains[variable]):
        if event[2] & complement and event[3].bit_length() == level:
            return event
    return None


def resolve(search: Search, clash: Clash, event: Event) -> set[int]:
    """Replace what an event removed by its reasons; return the variables whose terms changed."""
    _, target, removed, _, reasons = event
    terms = clash.terms
    changed = {target}
    # What the term holds already is no part of what has to be resolved.
    for index, mask in covering(search, target, removed & ~terms[target], reasons):
        clash.used.append(index)
        terms[target] |= mask
        for variable, other in search.nogoods[index]:
            if variable != target:
                terms[variable] = terms.get(variable, -1) & other
                changed.add(variable)
    return changed


def covering(
    search: Search, target: int, bits: int, reasons: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Return the reasons, with their masks on ``target``, that are enough to remove ``bits``."""
    chosen: list[tuple[int, int]] = []
    for index in reasons:
        for variable, mask in search.nogoods[index]:
            if variable == target and bits & mask:
                chosen.append((index, mask))
                bits &= ~mask
        if not bits:
            break
    return chosen


def _assertion(search: Search, clash: Clash, variable: int, level: int) -> Learned:
    """Leave out the terms that are true for good, and choose the second watch."""
    learned = Learned({variable: clash.terms[variable]}, variable, level)
    highest = -1
    for other, mask in clash.terms.items():
        if other == variable:
            continue
        needs = search.needs(other, ~mask)
        if needs:
            learned.terms[other] = mask
            learned.needs |= needs
            if needs.bit_length() > highest:
                highest, learned.second = needs.bit_length(), other
        else:
            clash.dropped.append((other, mask))
    return learned


def trace(search: Search, clash: Clash) -> tuple[int, ...]:
    """Return the given nogoods from which a clash without decisions follows."""
    visited: set[int] = set()
    marked: set[tuple[int, int]] = set()
    indices = list(clash.used)
    terms = [*clash.terms.items(), *clash.dropped]
    while indices or terms:
        if terms:
            indices += _causes(search, *terms.pop(), marked, terms)
            continue
        index = indices.pop()
        if index not in visited:
            visited.add(index)
            # A learned nogood stands for those that it was resolved from, and for the terms left out of it.
            if index >= search.initial:
                used, dropped = search.antecedents[index - search.initial]
                indices += used
                terms += dropped
    return tuple(sorted(index for index in visited if index < search.initial))


def _causes(
    search: Search,
    variable: int,
    mask: int,
    marked: set[tuple[int, int]],
    terms: list[tuple[int, int]],
) -> list[int]:
    """Return the nogoods that made a term true for good; put their own terms on the list."""
    indices: list[int] = []
    for event in search.chains[variable]:
        # What rests on a decision is not true for good.
        if event[3] or not event[2] & ~mask:
            continue
        for index, _ in covering(search, variable, event[2] & ~mask, event[4]):
            if (index, variable) not in marked:
                marked.add((index, variable))
                indices.append(index)
                terms += [term for term in search.nogoods[index] if term[0] != variable]
    return indices
