"""Instances for tests and benchmarks: release-date matrices, planted conflicts, hard puzzles.

Every function returns the same problem for the same arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, pairwise
from math import log
from random import Random
from time import process_time
from typing import NamedTuple

from toolmatrix.solve.engine import Problem, Support, solve

Nogood = tuple[tuple[int, int], ...]


class Owned(Support):
    """A support that belongs to one of the variables that it joins."""

    def __init__(self, terms: Sequence[tuple[int, int, int]], weight: int) -> None:
        super().__init__(terms, weight)
        self.owner = self.terms[len(terms) // 2][0]


@dataclass(frozen=True)
class Planted:
    """A problem with requests that contradict each other through a chain of nogoods."""

    problem: Problem
    requests: tuple[int, ...]
    chain: tuple[int, ...]


class Calendar(NamedTuple):
    """Release dates of each component's versions, and a solution to leave open."""

    dates: list[list[int]]
    planted: list[int]


def calendar(components: int, versions: int, rng: Random) -> Calendar:
    """Spread versions over ten years; plant what was current on a day of the middle years."""
    dates = [sorted(rng.sample(range(3650), versions)) for _ in range(components)]
    today = rng.randrange(1000, 2600)
    return Calendar(dates, [window(day, 0, today).bit_length() - 1 for day in dates])


def banded(
    components: int,
    versions: int,
    seed: int,
    *,
    links: int = 2,
    pins: int = 0,
    vouched: float = 0.0,
) -> Problem:
    """Return a satisfiable matrix like the real ones: versions fit a band of release dates.

    Each component needs ``links`` of the twelve before it (fewer at the start). For each link, a
    run of one to three versions released together admits the versions of the other released in a
    window before it, so there is about one binary nogood for each version. A planted solution,
    versions of about the same day, is never excluded. ``pins`` components are requested at their
    planted version, by nogoods of one term at the end of the list: the later in order they are,
    the more earlier choices they overturn. ``vouched`` is the share of nogoods whose newest pair
    is also vouched for by a support row. Sizes used in benchmarks: x1 is ``banded(28, 60, seed)``,
    x4 has 112 components, x16 448, x64 1,792.
    """
    rng = Random(f"banded {components} {versions} {seed}")
    times, planted = calendar(components, versions, rng)
    nogoods: list[Nogood] = []
    supports: list[Support] = []
    for component in range(1, components):
        near = range(max(0, component - 12), component)
        for other in sorted(rng.sample(near, min(links, len(near)))):
            lag, width = rng.choice((0, 90, 200)), rng.choice((120, 250, 500, 900))
            start = 0
            while start < versions:
                end = min(versions, start + rng.randint(1, 3))
                day = times[component][start]
                allowed = window(times[other], day - lag - width, day - lag)
                if start <= planted[component] < end:
                    allowed |= 1 << planted[other]
                run = (1 << end) - (1 << start)
                nogoods.append(((component, run), (other, ~allowed & ((1 << versions) - 1))))
                if rng.random() < vouched:
                    best = 1 << (allowed.bit_length() - 1)
                    weight = rng.randint(1, 3)
                    terms = ((component, run, weight), (other, best, rng.randint(1, 3)))
                    supports.append(Support(terms, weight))
                start = end
    full = (1 << versions) - 1
    pinned = sorted(rng.sample(range(components), pins))
    nogoods += [((component, full & ~(1 << planted[component])),) for component in pinned]
    return Problem([versions] * components, nogoods, supports)


def window(dates: list[int], first: int, last: int) -> int:
    """Return the versions released from ``first`` to ``last``, or else the nearest one."""
    inside = sum(1 << i for i, date in enumerate(dates) if first <= date <= last)
    return inside or 1 << min(range(len(dates)), key=lambda i: abs(dates[i] - last))


def scattered(
    seed: int, variables: int, candidates: int, nogoods: int, supports: int = 0, arity: int = 4
) -> Problem:
    """Return a random problem without structure, with random domains, supports, ``oldest`` and ``optional``."""
    rng = Random(f"scattered {seed} {variables} {candidates} {nogoods}")
    sizes = [rng.randint(2, candidates) for _ in range(variables)]

    def places() -> list[int]:
        return rng.sample(range(variables), rng.randint(1, min(arity, variables)))

    def mask(variable: int) -> int:
        return rng.randrange(1, 1 << sizes[variable])

    rows = [tuple((v, mask(v)) for v in places()) for _ in range(nogoods)]
    vouched = [
        kind(tuple((v, mask(v), rng.randint(0, 3)) for v in places()), rng.randint(0, 3))
        for kind, _ in zip(cycle((Support, Owned)), range(supports))
    ]
    domains = [mask(v) if rng.random() < 0.1 else (1 << size) - 1 for v, size in enumerate(sizes)]
    oldest, optional = rng.randrange(1 << variables), rng.randrange(1 << variables)
    return Problem(sizes, rows, vouched, domains, oldest, optional)


def pinched(components: int, versions: int, length: int, seed: int) -> Planted:
    """Return a large matrix in which two requests contradict each other by a chain.

    The chain is ``length`` nogoods from component to component: whoever takes a new version of
    one must take a new version of the next. The requests want a new version of the first and an
    old one of the last. Without either request the matrix has a solution.
    """
    rng = Random(f"pinched {components} {versions} {length} {seed}")
    base = banded(components, versions, seed, links=1)
    path = rng.sample(range(components), length + 1)
    half = versions // 2
    new = ((1 << versions) - 1) ^ ((1 << half) - 1)
    old = (1 << half) - 1
    nogoods = list(base.nogoods)
    rng.shuffle(nogoods)
    chain: list[int] = []
    for one, two in pairwise(path):
        chain.append(len(nogoods))
        nogoods.append(((one, new), (two, old)))
    requests = (len(nogoods), len(nogoods) + 1)
    nogoods += [((path[0], old),), ((path[-1], new),)]
    return Planted(Problem(base.sizes, nogoods), requests, tuple(chain))


def backjump(depth: int) -> Problem:
    """Return a first choice that only fails after ``depth`` unrelated ones."""
    sizes = [4] + [5] * depth + [2, 2, 2]
    nogoods: list[Nogood] = [((i, 1 << 4), (i + 1, 1 << 4)) for i in range(1, depth)]
    last = range(depth + 1, depth + 4)
    for one, two in combinations(last, 2):
        nogoods += [((0, 0b1110), (one, 1 << hole), (two, 1 << hole)) for hole in (0, 1)]
    return Problem(sizes, nogoods)


def pigeons(holes: int) -> Problem:
    """Return one pigeon more than there are holes."""
    nogoods = [
        ((one, 1 << hole), (two, 1 << hole))
        for one, two in combinations(range(holes + 1), 2)
        for hole in range(holes)
    ]
    return Problem([holes] * (holes + 1), nogoods)


def diamonds(layers: int) -> Problem:
    """Return stacked diamonds, top, left and right, whose two sides disagree at the bottom."""
    nogoods: list[Nogood] = []
    for layer in range(layers):
        top, left, right, bottom = range(3 * layer, 3 * layer + 4)
        sides = ((top, left), (top, right), (left, bottom), (right, bottom))
        for value in range(4):
            near = 1 << value | 1 << value // 2
            nogoods += [((upper, 1 << value), (lower, ~near & 15)) for upper, lower in sides]
    end = 3 * layers
    nogoods.append(((end - 2, 15), (end, 0b0011)))
    nogoods.append(((end - 1, 15), (end, 0b1100)))
    return Problem([4] * (3 * layers + 1), nogoods)


def scrambled(variables: int, seed: int, *, planted: bool = True) -> Problem:
    """Return a random binary problem at the threshold of Model RB, with or without a solution."""
    rng = Random(f"scrambled {variables} {seed}")
    size = round(variables**0.8)
    constraints = round(0.8 / log(4 / 3) * variables * log(variables))
    answer = [rng.randrange(size) for _ in range(variables)]
    nogoods: list[Nogood] = []
    for _ in range(constraints):
        one, two = sorted(rng.sample(range(variables), 2))
        pairs = [(a, b) for a in range(size) for b in range(size)]
        if planted:
            pairs.remove((answer[one], answer[two]))
        for a, b in rng.sample(pairs, round(size * size / 4)):
            nogoods.append(((one, 1 << a), (two, 1 << b)))
    return Problem([size] * variables, nogoods)


def triples(variables: int, seed: int, size: int = 3) -> Problem:
    """Return random nogoods of three values each, about as many as leave a solution or none."""
    rng = Random(f"triples {variables} {seed} {size}")
    count = round(0.85 * variables * log(size) / -log(1 - size**-3))
    nogoods: list[Nogood] = [
        tuple((v, 1 << rng.randrange(size)) for v in rng.sample(range(variables), 3))
        for _ in range(count)
    ]
    return Problem([size] * variables, nogoods)


def seats(holes: int) -> Problem:
    """Return pigeons, one more than holes, as one variable for each pigeon in each hole."""
    pigeons = range(holes + 1)
    nogoods: list[Nogood] = [
        tuple((pigeon * holes + hole, 0b01) for hole in range(holes)) for pigeon in pigeons
    ]
    for one, two in combinations(pigeons, 2):
        nogoods += [((one * holes + h, 0b10), (two * holes + h, 0b10)) for h in range(holes)]
    return Problem([2] * (holes * (holes + 1)), nogoods)


def guarded(holes: int, depth: int) -> Problem:
    """Return pigeons that share holes only if the first choice is the worst, ``depth`` away."""
    sizes = [4] + [5] * depth + [holes] * (holes + 1)
    nogoods: list[Nogood] = [
        ((0, 0b1110), (one, 1 << hole), (two, 1 << hole))
        for one, two in combinations(range(depth + 1, depth + holes + 2), 2)
        for hole in range(holes)
    ]
    return Problem(sizes, nogoods)


def parity(variables: int, seed: int) -> Problem:
    """Return as many random sums of three bits as there are bits."""
    rng = Random(f"parity {variables} {seed}")
    nogoods: list[Nogood] = []
    for _ in range(variables):
        chosen, odd = rng.sample(range(variables), 3), rng.randrange(2)
        wrong = [bits for bits in range(8) if bits.bit_count() % 2 != odd]
        nogoods += [
            tuple((v, 1 << (bits >> i & 1)) for i, v in enumerate(chosen)) for bits in wrong
        ]
    return Problem([2] * variables, nogoods)


def colours(regions: int, count: int, borders: int, seed: int) -> Problem:
    """Return a random map to be coloured."""
    rng = Random(f"colours {regions} {count} {borders} {seed}")
    edges = sorted(rng.sample(list(combinations(range(regions), 2)), borders))
    nogoods = [((one, 1 << c), (two, 1 << c)) for one, two in edges for c in range(count)]
    return Problem([count] * regions, nogoods)


def queens(size: int) -> Problem:
    """Return queens on a board, one in each column."""
    nogoods = [
        ((one, 1 << a), (two, 1 << b))
        for one, two in combinations(range(size), 2)
        for a in range(size)
        for b in range(size)
        if a == b or abs(a - b) == two - one
    ]
    return Problem([size] * size, nogoods)


def puzzles() -> dict[str, Problem]:
    """Return the adversarial instances by name, for tests and benchmarks."""
    found = {f"backjump-{depth}": backjump(depth) for depth in (40, 100, 200)}
    found.update((f"diamonds-{layers}", diamonds(layers)) for layers in (7, 40, 100))
    found.update((f"pigeons-{holes}", pigeons(holes)) for holes in (6, 7, 8, 9, 10))
    found.update((f"seats-{holes}", seats(holes)) for holes in (6, 7, 8))
    found.update((f"guarded-{holes}-100", guarded(holes, 100)) for holes in (5, 7, 9))
    found.update((f"scrambled-20-{seed}", scrambled(20, seed)) for seed in (1, 2, 3, 4))
    found.update((f"unplanted-16-{s}", scrambled(16, s, planted=False)) for s in (1, 2, 3))
    found.update((f"unplanted-20-{s}", scrambled(20, s, planted=False)) for s in (1, 2))
    for variables in (15, 20, 25, 30):
        found.update((f"triples-{variables}-{seed}", triples(variables, seed)) for seed in range(3))
    found.update((f"parity-{n}-{seed}", parity(n, seed)) for n in (20, 30) for seed in (1, 2))
    found.update((f"colours-30-{seed}", colours(30, 4, 126, seed)) for seed in (1, 2, 3))
    found.update((f"queens-{size}", queens(size)) for size in (8, 14))
    return found


def cpu_seconds(problem: Problem) -> float:
    """Return the CPU time of one solve, for benchmarks."""
    start = process_time()
    solve(problem)
    return process_time() - start
