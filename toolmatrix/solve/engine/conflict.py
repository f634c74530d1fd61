"""The reasons why nothing fits: irreducible cores, kept short by searching from the requests outwards.

A core is a set of nogoods that exclude each other; it is irreducible if each of them is needed. Irreducible is not
short: on one problem such cores range from a few rows to hundreds, and the order of the search decides. So the search
for an explanation is a second one. It decides the variables of requests first and then their neighbours, first within a
small radius of nogoods that grows until they contradict each other, then on the whole problem from either end of the
candidate lists. Where no search is needed, ``Chains`` adds the cheapest chain of consequences. Each result is searched
again within itself while that shrinks it. While the shortest is long, its nogoods are set aside and the rest is tried.
The shortest cores are reduced by deletion and the best is kept: fewest nogoods, then the smallest tuple.

Many refusals need no search: applying nogoods one after another empties a domain. Which nogoods
take part then depends on the order only. Here the removal that rests on the fewest nogoods comes
first, as in a shortest-path search, so a chain of single rows is found before a detour through
fifty bands. Shared nogoods are counted once for each use, so the result is short, not shortest.
"""

from __future__ import annotations

from heapq import heappop, heappush

from . import Conflict, Problem, Ranking, solve
from .search import Clash, Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Core = tuple[int, ...]
    Step = tuple[int, int, int, int]
    """Cost, nogood, variable whose candidates it removes, its mask."""
    Removal = tuple[int, int, int]
    """Removed candidates, cost, nogood."""

REDUCED = 3
"""Different cores that are reduced before the best is chosen."""
ROUNDS = 3
"""Repetitions of a search for something shorter."""
SHORT = 10
"""A core up to this length is short enough."""
LONG = 200
"""Of cores longer than this only the shortest is reduced."""


def explain(problem: Problem, requests: Sequence[int] = ()) -> Core:
    """Return one short irreducible core. Raise ``ValueError`` if the problem has a solution."""
    core = _explain(problem, range(len(problem.nogoods)), requests)
    if core is None:
        raise ValueError("the problem has a solution, there is nothing to explain")
    return core


def excluding(problem: Problem, values: Mapping[int, int], requests: Sequence[int]) -> Core:
    """Return the nogoods by which no solution has these values; the values themselves are requests."""
    start = len(problem.nogoods)
    fixed = range(start, start + len(values))
    core = explain(problem.fixing(values, problem.nogoods), (*requests, *fixed))
    return tuple(index for index in core if index < start)


def excludes(problem: Problem, core: Core, values: Mapping[int, int]) -> bool:
    """Return whether the nogoods of a core alone exclude these values."""
    nogoods = [problem.nogoods[index] for index in core]
    return isinstance(solve(problem.fixing(values, nogoods)), Conflict)


def cores(problem: Problem, requests: Sequence[int] = (), limit: int = 3) -> list[Core]:
    """Return up to ``limit`` cores that have nothing but requests in common."""
    disjoint: list[Core] = []
    pool: Sequence[int] = range(len(problem.nogoods))
    while len(disjoint) < limit:
        core = _explain(problem, pool, requests)
        if core is None:
            break
        disjoint.append(core)
        spent = set(core).difference(requests)
        # Requests stay in the pool: those that contradict each other would be found again for ever.
        if not spent:
            break
        pool = [index for index in pool if index not in spent]
    return disjoint


def _explain(problem: Problem, pool: Sequence[int], requests: Sequence[int]) -> Core | None:
    """Return the best core within ``pool``, or ``None`` if that has a solution."""
    # What has no candidate at all takes no nogood to be impossible.
    if not all(problem.domains):
        return ()
    starts = [v for index in requests for v, _ in problem.nogoods[index]]
    tried = _candidates(problem, pool, starts)
    if not tried:
        return None
    # Reducing solves once for each nogood, which a core of thousands does not pay back.
    few = [core for core in tried[1:REDUCED] if len(core) <= LONG]
    reduced = [_reduce(problem, core, starts) for core in [tried[0], *few]]
    return min(reduced, key=lambda core: (len(core), core))


def _candidates(problem: Problem, pool: Sequence[int], starts: Sequence[int]) -> list[Core]:
    """Return different cores, shortest first; none if the pool has a solution.

    While the shortest is long, what it uses is set aside and the search repeated on the rest.
    """
    candidates: set[Core] = set()
    for _ in range(ROUNDS):
        more = _attempts(problem, pool, starts)
        candidates |= more
        shortest = min(more, key=len, default=())
        if not SHORT < len(shortest) <= LONG:
            break
        # Nogoods of one term are the requests, and stay: a core without any would blame the facts for what was asked.
        spent = {index for index in shortest if len(problem.nogoods[index]) > 1}
        pool = [index for index in pool if index not in spent]
    return sorted(candidates, key=lambda core: (len(core), core))


def _attempts(problem: Problem, pool: Sequence[int], starts: Sequence[int]) -> set[Core]:
    """Return the cores that different orders of search find."""
    vicinity = Vicinity(problem, pool, starts)
    first = vicinity.refute(pool, "index")
    if first is None:
        return set()
    # Neither the search nor the chain is shorter on all problems; both are cheap beside reducing.
    candidates = {first.core, follow(problem, pool)}
    if first.chosen and (second := vicinity.refute(pool, "reverse")) is not None:
        candidates.add(second.core)
    if starts:
        candidates.add(_nearest(vicinity, pool))
    return {_tighten(problem, core, starts) for core in candidates if core is not None}


def _nearest(vicinity: Vicinity, pool: Sequence[int]) -> Core | None:
    """Return a core of the smallest neighbourhood of the requests that has one."""
    rings: list[list[int]] = [[] for _ in range(len(vicinity.distances) + 1)]
    for index in pool:
        rings[vicinity.farthest(index)].append(index)
    inside: list[int] = []
    for ring in rings:
        if not ring:
            continue
        # Each ring is joined with those inside it, until the first conflict.
        inside += ring
        conflict = vicinity.refute(inside, "index")
        if conflict is not None:
            return conflict.core
    return None


def _tighten(problem: Problem, core: Core, starts: Sequence[int]) -> Core:
    """Search a core within itself, from either end, while that makes it smaller."""
    vicinity = Vicinity(problem, core, starts)
    misses = 0
    # Two misses in a row, one from each end: what neither order shrinks seldom shrinks at all.
    while misses < 2:
        order = ("index", "reverse")[misses]
        smaller = vicinity.refute(core, order)
        if smaller is not None and len(smaller.core) < len(core):
            core, misses = smaller.core, 0
            vicinity = Vicinity(problem, core, starts)
        else:
            misses += 1 if smaller is None or smaller.chosen else 2
    return core


def _reduce(problem: Problem, core: Core, starts: Sequence[int]) -> Core:
    """Drop every nogood that is not needed, the farthest first."""
    vicinity = Vicinity(problem, core, starts)
    # The last is tried first: what is far from the request makes the longest stories.
    left = sorted(core, key=lambda index: (vicinity.farthest(index), index))
    needed: list[int] = []
    while left:
        index = left.pop()
        smaller = vicinity.refute(sorted(needed + left), "index")
        if smaller is None:
            needed.append(index)
        else:
            # The conflict found without it may need even less, which saves trying those one by one.
            remaining = set(smaller.core)
            left = [other for other in left if other in remaining]
    return tuple(sorted(needed))


class Vicinity:
    """The nogoods of a pool with the variables numbered by their distance from ``starts``."""

    __slots__ = ("distances", "nogoods", "problem")

    def __init__(self, problem: Problem, pool: Sequence[int], starts: Iterable[int]) -> None:
        distances = spread(problem, pool, starts)
        order = list(distances)
        self.distances = list(distances.values())
        self.problem = problem.arranged(order)
        self.nogoods = problem.renumbered(order, pool)

    def farthest(self, index: int) -> int:
        """Return the distance of the farthest variable of a nogood."""
        # Variables are numbered by their distance, so that the last of them is the farthest.
        terms = self.nogoods[index]
        return self.distances[max(terms)[0]] if terms else 0

    def refute(self, pool: Sequence[int], order: str) -> Conflict | None:
        """Return a conflict in a part of the nogoods, deciding variables in order of distance."""
        nogoods = [self.nogoods[index] for index in pool]
        result = solve(self.problem.forbidding(nogoods), order=order)
        if isinstance(result, Conflict):
            return Conflict(tuple([pool[position] for position in result.core]), result.chosen)
        return None


def spread(problem: Problem, pool: Iterable[int], starts: Iterable[int]) -> dict[int, int]:
    """Return the distance of each variable in ``pool`` from ``starts``, in order of visit.

    Variables that share a nogood are neighbours. What cannot be reached comes last, nearest to
    the first variable of its own part.
    """
    neighbours: dict[int, set[int]] = {}
    for together in set(map(problem.scopes.__getitem__, pool)):
        for variable in together:
            neighbours.setdefault(variable, set()).update(together)
    distances: dict[int, int] = {}
    roots = [sorted(v for v in starts if v in neighbours)]
    roots += [[v] for v in sorted(neighbours)]
    for group in roots:
        waiting = [v for v in group if v not in distances]
        farthest = max(distances.values(), default=-1) + 1 if waiting else 0
        distances.update(dict.fromkeys(waiting, farthest))
        for variable in waiting:
            for other in sorted(neighbours[variable]):
                if other not in distances:
                    distances[other] = distances[variable] + 1
                    waiting.append(other)
    return distances


def combinations(
    problem: Problem, variables: Sequence[int], limit: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield each combination of candidate indices of ``variables`` that some solution has."""
    search, positions = _chosen_first(problem, variables)
    count = 0
    while (limit is None or count < limit) and search.run():
        values = search.values()
        yield tuple(values[positions[variable]] for variable in variables)
        count += 1
        # A variable may be chosen twice, and stands once among those that are decided first.
        _exclude(search, {v: 1 << values[v] for v in range(len(set(variables)))})


def _chosen_first(problem: Problem, variables: Sequence[int]) -> tuple[Search, list[int]]:
    # Variables are decided in index order: those that were chosen get the first numbers.
    count = len(problem.sizes)
    order = list(dict.fromkeys([*variables, *range(count)]))
    positions = [0] * count
    for position, variable in enumerate(order):
        positions[variable] = position
    nogoods = [tuple([(positions[v], mask) for v, mask in terms]) for terms in problem.nogoods]
    arranged = problem.arranged(order)
    return Search(arranged.domains, nogoods, Ranking(arranged)), positions


def _exclude(search: Search, terms: dict[int, int]) -> None:
    # All terms of an answer just given are true, so that it is a clash. The latest two are watched: these are the first
    # to be open when decisions are taken back.
    latest = sorted(terms, key=lambda variable: -search.needs(variable, ~terms[variable]))
    index = search.add(terms, latest[0], latest[min(1, len(latest) - 1)]) if latest else -1
    search.antecedents.append(([], []))
    search.refute(Clash(dict(terms), [index] if latest else []))


class Chains:
    """Removals in order of cost, until a domain is empty or nothing follows any more."""

    __slots__ = ("domains", "empty", "nogoods", "removals", "steps", "users")

    def __init__(self, problem: Problem, pool: Sequence[int]) -> None:
        self.nogoods = problem.nogoods
        self.domains = list(problem.domains)
        self.removals: list[list[Removal]] = [[] for _ in self.domains]
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.domains]
        self.steps: list[Step] = []
        self.empty = -1
        domains, users = self.domains, self.users
        for index in pool:
            still_open = 0
            for variable, mask in problem.nogoods[index]:
                rest = ~mask
                users[variable].append((index, rest))
                if domains[variable] & rest:
                    still_open += 1
            # With one term still open it removes that term's mask; with none it refuses at once.
            if still_open < 2:
                self._consider(index)

    def _consider(self, index: int) -> None:
        """Line up what a nogood removes if at most one of its terms is not yet true."""
        terms = self.nogoods[index]
        if not terms:
            return
        still_open, domains = None, self.domains
        for term in terms:
            variable, mask = term
            if domains[variable] & ~mask:
                if still_open is not None:
                    return
                still_open = term
        target, mask = still_open or terms[0]
        if domains[target] & mask:
            cost = 1
            for variable, other in terms:
                if variable != target:
                    cost += sum(
                        price for bits, price, _ in self.removals[variable] if bits & ~other
                    )
            # Of equal costs the first nogood comes first, so that the core is the same on every run.
            heappush(self.steps, (cost, index, target, mask))

    def run(self) -> bool:
        """Apply the cheapest step again and again; return whether a domain became empty."""
        while self.steps and self.empty < 0:
            cost, index, target, mask = heappop(self.steps)
            bits = self.domains[target] & mask
            # A cheaper step may have removed them since this one was lined up.
            if not bits:
                continue
            before = self.domains[target]
            self.domains[target] = left = before & ~bits
            self.removals[target].append((bits, cost, index))
            if not left:
                self.empty = target
                return True
            users = self.users[target]
            for user in [user for user, rest in users if before & rest and not left & rest]:
                self._consider(user)
        return False

    def core(self) -> tuple[int, ...]:
        """Return the nogoods behind the empty domain."""
        used: set[tuple[int, int]] = set()
        terms = [(self.empty, 0)]
        while terms:
            variable, mask = terms.pop()
            for bits, _, index in self.removals[variable]:
                if bits & ~mask and (index, variable) not in used:
                    used.add((index, variable))
                    terms += [term for term in self.nogoods[index] if term[0] != variable]
        return tuple(sorted({index for index, _ in used}))


def follow(problem: Problem, pool: Sequence[int]) -> tuple[int, ...] | None:
    """Return a core found without search, or ``None`` where that is not enough."""
    chains = Chains(problem, pool)
    return chains.core() if chains.run() else None
