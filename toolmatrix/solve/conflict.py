"""Why nothing fits: irreducible cores, kept short by searching from the requests outwards.

A core is a set of nogoods that exclude each other; it is irreducible if each of them is needed.
Irreducible is not short: on one problem such cores range from a few rows to hundreds, and the
order of the search decides. So the search for an explanation is a second one. It decides the
variables of requests first and then their neighbours, first within a small radius of nogoods that
grows until they contradict each other, then on the whole problem from either end of the candidate
lists. Where no search is needed, ``chains`` adds the cheapest chain of consequences. Each result
is searched again within itself while that shrinks it. While the shortest is long, its nogoods are
set aside and the rest is tried. The shortest cores are reduced by deletion and the best is kept:
fewest nogoods, then the smallest tuple.
"""

from __future__ import annotations

from .chains import follow
from .engine import Conflict, Problem, solve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Core = tuple[int, ...]

REDUCED = 3
"""How many different cores are reduced before the best is chosen."""
ROUNDS = 3
"""How often a search for something shorter is repeated."""
SHORT = 10
"""A core up to this length is short enough."""
LONG = 200
"""Of cores longer than this only the shortest is reduced."""


def explain(problem: Problem, soft: Sequence[int] = (), requests: Sequence[int] = ()) -> Core:
    """Return one short irreducible core; nogoods in ``soft`` only if the rest can be satisfied.

    Raise ``ValueError`` if the problem has a solution.
    """
    core = _explain(problem, range(len(problem.nogoods)), frozenset(soft), requests)
    if core is None:
        raise ValueError("the problem has a solution, there is nothing to explain")
    return core


def cores(problem: Problem, requests: Sequence[int] = (), limit: int = 3) -> list[Core]:
    """Return up to ``limit`` cores that have nothing but requests in common."""
    found: list[Core] = []
    pool: Sequence[int] = range(len(problem.nogoods))
    while len(found) < limit:
        core = _explain(problem, pool, frozenset(), requests)
        if core is None:
            break
        found.append(core)
        spent = set(core).difference(requests)
        if not spent:
            break
        pool = [index for index in pool if index not in spent]
    return found


def _explain(
    problem: Problem, pool: Sequence[int], soft: frozenset[int], requests: Sequence[int]
) -> Core | None:
    """Return the best core within ``pool``, or ``None`` if that has a solution."""
    if not all(problem.domains):
        return ()
    if soft:
        hard = [index for index in pool if index not in soft]
        core = _explain(problem, hard, frozenset(), requests)
        if core is not None:
            return core
    starts = [v for index in requests for v, _ in problem.nogoods[index]]
    tried = _candidates(problem, pool, starts)
    if not tried:
        return None
    few = [core for core in tried[1:REDUCED] if len(core) <= LONG]
    reduced = [_reduce(problem, core, soft, starts) for core in [tried[0], *few]]
    return min(reduced, key=lambda core: (len(soft.intersection(core)), len(core), core))


def _candidates(problem: Problem, pool: Sequence[int], starts: Sequence[int]) -> list[Core]:
    """Return different cores, shortest first; none if the pool has a solution.

    While the shortest is long, what it uses is set aside and the search repeated on the rest.
    """
    found: set[Core] = set()
    for _ in range(ROUNDS):
        more = _attempts(problem, pool, starts)
        found |= more
        shortest = min(more, key=len, default=())
        if not SHORT < len(shortest) <= LONG:
            break
        spent = {index for index in shortest if len(problem.nogoods[index]) > 1}
        pool = [index for index in pool if index not in spent]
    return sorted(found, key=lambda core: (len(core), core))


def _attempts(problem: Problem, pool: Sequence[int], starts: Sequence[int]) -> set[Core]:
    """Return the cores that different orders of search find."""
    distances = spread(problem, pool, starts)
    first = refute(problem, pool, distances, "newest")
    if first is None:
        return set()
    found = {_tighten(problem, first, starts)}
    other = refute(problem, pool, distances, "oldest")
    near = _nearest(problem, pool, distances) if starts else None
    for core in (other, near, follow(problem, pool)):
        if core is not None:
            found.add(_tighten(problem, core, starts))
    return found


def _nearest(problem: Problem, pool: Sequence[int], distances: dict[int, int]) -> Core | None:
    """Return a core of the smallest neighbourhood of the requests that has one."""
    rings: list[list[int]] = [[] for _ in range(len(distances) + 1)]
    for index in pool:
        rings[max((distances[v] for v, _ in problem.nogoods[index]), default=0)].append(index)
    inside: list[int] = []
    for ring in rings:
        if not ring:
            continue
        inside += ring
        core = refute(problem, inside, distances, "newest")
        if core is not None:
            return core
    return None


def _tighten(problem: Problem, core: Core, starts: Iterable[int]) -> Core:
    """Search a core within itself, from either end, while that makes it smaller."""
    starts = set(starts)
    misses = 0
    while misses < 2:
        order = ("newest", "oldest")[misses]
        smaller = refute(problem, core, spread(problem, core, starts), order)
        if smaller is not None and len(smaller) < len(core):
            core, misses = smaller, 0
        else:
            misses += 1
    return core


def _reduce(problem: Problem, core: Core, soft: frozenset[int], starts: Iterable[int]) -> Core:
    """Drop every nogood that is not needed: soft ones first, then the farthest."""
    distances = spread(problem, core, starts)

    def last(index: int) -> tuple[bool, int, int]:
        far = max((distances[v] for v, _ in problem.nogoods[index]), default=0)
        return (index in soft, far, index)

    left = sorted(core, key=last)
    needed: list[int] = []
    while left:
        index = left.pop()
        smaller = refute(problem, sorted(needed + left), distances, "newest")
        if smaller is None:
            needed.append(index)
        else:
            kept = set(smaller)
            left = [other for other in left if other in kept]
    return tuple(sorted(needed))


def spread(problem: Problem, pool: Iterable[int], starts: Iterable[int]) -> dict[int, int]:
    """Return the distance of each variable in ``pool`` from ``starts``, in order of visit.

    Variables that share a nogood are neighbours. What cannot be reached comes last, nearest to
    the first variable of its own part.
    """
    neighbours: dict[int, dict[int, None]] = {}
    for index in pool:
        terms = problem.nogoods[index]
        for variable, _ in terms:
            known = neighbours.setdefault(variable, {})
            for other, _ in terms:
                known[other] = None
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


def refute(
    problem: Problem, pool: Sequence[int], distances: dict[int, int], order: str
) -> Core | None:
    """Return a core of the nogoods in ``pool``, deciding variables in order of distance."""
    places: dict[int, int] = {}
    used = {v for index in pool for v, _ in problem.nogoods[index]}
    for variable in distances:
        if variable in used:
            places[variable] = len(places)
    nogoods = [
        tuple([(places[variable], mask) for variable, mask in problem.nogoods[index]])
        for index in pool
    ]
    sizes = [problem.sizes[variable] for variable in places]
    domains = [problem.domains[variable] for variable in places]
    result = solve(Problem(sizes, nogoods, (), domains), order=order)
    if isinstance(result, Conflict):
        return tuple(pool[place] for place in result.core)
    return None
