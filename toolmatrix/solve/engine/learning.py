"""Learning from conflicts: the first unique implication point, and the nogoods behind it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .search import Event, Search


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
    seen: set[int] = set()
    marked: set[tuple[int, int]] = set()
    indices = list(clash.used)
    terms = [*clash.terms.items(), *clash.dropped]
    while indices or terms:
        if terms:
            indices += _behind(search, *terms.pop(), marked, terms)
            continue
        index = indices.pop()
        if index not in seen:
            seen.add(index)
            # A learned nogood stands for those that it was resolved from, and for the terms left out of it.
            if index >= search.given:
                used, dropped = search.antecedents[index - search.given]
                indices += used
                terms += dropped
    return tuple(sorted(index for index in seen if index < search.given))


def _behind(
    search: Search,
    variable: int,
    mask: int,
    marked: set[tuple[int, int]],
    terms: list[tuple[int, int]],
) -> list[int]:
    """Return the nogoods that made a term true for good; put their own terms on the list."""
    found: list[int] = []
    for event in search.chains[variable]:
        # What rests on a decision is not true for good.
        if event[3] or not event[2] & ~mask:
            continue
        for index, _ in covering(search, variable, event[2] & ~mask, event[4]):
            if (index, variable) not in marked:
                marked.add((index, variable))
                found.append(index)
                terms += [term for term in search.nogoods[index] if term[0] != variable]
    return found
