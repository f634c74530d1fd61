"""Refutation by counting: more choices than there are groups which allow one each.

Learning needs exponentially many conflicts to see that nine pigeons do not fit in eight holes.
Here a literal is one candidate of one variable. A *choice* is a set of literals of which one must
be true: what is left of a domain, or what a nogood of several terms demands. A *group* is a set of
literals of which no two from different choices can be true together, by nogoods that have two
open terms left. Choices whose literals lie within fewer groups contradict each other: that is
Hall's theorem, and a maximum matching finds them. Groups are cliques, found greedily, so what is
found is right and not everything is found.
"""

from __future__ import annotations

from itertools import combinations

from .search import Clash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .search import Search

    Terms = tuple[tuple[int, int], ...]
    Choice = tuple[int, int, Terms]
    """Literals as bits; the nogood that demands one of them, or -1 for a domain; its terms."""


def crowded(search: Search, variables: Iterable[int]) -> Clash | None:
    """Return a clash of choices among ``variables`` that share too few groups, if one is found."""
    count = Count(search, variables)
    choices = count.distinct()
    groups = count.partition(choices)
    over = unmatched([literals for literals, _, _ in choices], groups)
    if over is None:
        return None
    return count.clash([choices[place] for place in over[0]], [groups[place] for place in over[1]])


class Count:
    """The literals of some variables at one moment of a search, and which exclude each other."""

    __slots__ = ("demands", "excluded", "literals", "offsets", "pairs", "search")

    def __init__(self, search: Search, variables: Iterable[int]) -> None:
        self.search = search
        # The first literal of each variable, and of each literal its variable and its candidate as a bit.
        self.offsets: dict[int, int] = {}
        self.literals: list[tuple[int, int]] = []
        for variable in variables:
            self.offsets[variable] = len(self.literals)
            width = search.domains[variable].bit_length()
            self.literals += [(variable, 1 << place) for place in range(width)]
        # For each literal those it excludes.
        self.excluded = [self._linked(variable, bit) for variable, bit in self.literals]
        # For two variables their masks that exclude each other by a longer nogood, and which.
        self.pairs: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        # Nogoods that have more than two open terms.
        self.demands: list[int] = []
        for index, terms in search.long_terms.items():
            self._read(index, terms)

    def _linked(self, variable: int, bit: int) -> int:
        """Return the literals which a candidate excludes by pairs."""
        domains, offsets = self.search.domains, self.offsets
        found = 0
        if bit & domains[variable]:
            for other, (union, _) in self.search.linked(variable, bit).items():
                if other in offsets:
                    found |= (union & domains[other]) << offsets[other]
        return found

    def _read(self, index: int, terms: dict[int, int]) -> None:
        """File a longer nogood by its open terms: two exclude each other, more demand a literal."""
        domains, offsets = self.search.domains, self.offsets
        held: list[tuple[int, int]] = []
        for variable, mask in terms.items():
            if domains[variable] & ~mask:
                # From an open term on a variable that is not counted, or a false term, nothing follows here.
                if variable not in offsets or not domains[variable] & mask:
                    return
                held.append((variable, domains[variable] & mask))
        if len(held) == 2:
            for (one, mask), (two, other) in (held, held[::-1]):
                self.pairs.setdefault((one, two), []).append((mask, other, index))
                for place in ones(mask):
                    self.excluded[offsets[one] + place] |= other << offsets[two]
        elif len(held) > 2 and index < self.search.given:
            self.demands.append(index)

    def distinct(self) -> list[Choice]:
        """Return choices that share no literal, all of whose literals exclude others."""
        domains, offsets = self.search.domains, self.offsets
        useful = sum(1 << literal for literal, others in enumerate(self.excluded) if others)
        demands: list[tuple[int, Terms]] = [(-1, ((variable, 0),)) for variable in offsets]
        demands += [(index, self.search.nogoods[index]) for index in self.demands]
        taken = 0
        choices: list[Choice] = []
        for index, terms in demands:
            held = [(v, domains[v] & ~mask) for v, mask in terms if domains[v] & ~mask]
            literals = sum(bits << offsets[v] for v, bits in held)
            if not literals & (taken | ~useful):
                taken |= literals
                choices.append((literals, index, terms))
        return choices

    def partition(self, choices: list[Choice]) -> list[int]:
        """Return groups that share no literal and hold all literals of the choices."""
        owners = {literal: bits for bits, _, _ in choices for literal in ones(bits)}
        left = sum(bits for bits, _, _ in choices)
        groups: list[int] = []
        while left:
            literal = (left & -left).bit_length() - 1
            group, near = 0, left
            while near:
                group |= 1 << literal
                near &= self.excluded[literal] & ~owners[literal]
                # Greedy: the largest clique is as hard to find as a solution.
                literal = max(
                    ones(near), key=lambda x: (self.excluded[x] & near).bit_count(), default=0
                )
            for literal in ones(left & ~group):
                if not group & ~self.excluded[literal] & ~owners[literal]:
                    group |= 1 << literal
            left &= ~group
            groups.append(group)
        return groups

    def clash(self, choices: list[Choice], groups: list[int]) -> Clash:
        """Join the demands of the choices with the nogoods of the groups."""
        terms: dict[int, int] = {}
        owners: dict[int, int] = {}
        used: dict[int, None] = {}
        for literals, index, demand in choices:
            owners.update(dict.fromkeys(ones(literals), literals))
            if index >= 0:
                used[index] = None
            for variable, mask in demand:
                own = self._of(variable, literals)
                terms[variable] = terms.get(variable, -1) & (mask | own)
        for group in groups:
            members = [literal for literal in ones(group) if literal in owners]
            for one, two in combinations(members, 2):
                # Literals of one choice need not exclude each other: one of them is to be true.
                if owners[one] == owners[two]:
                    continue
                (here, bit), (there, other) = self.literals[one], self.literals[two]
                index = self._between(here, bit, there, other)
                used[index] = None
                for variable, mask in self.search.nogoods[index]:
                    if variable not in (here, there):
                        terms[variable] = terms.get(variable, -1) & mask
        return Clash(terms, list(used))

    def _of(self, variable: int, literals: int) -> int:
        """Return the candidates of a variable among literals."""
        if variable not in self.offsets:
            return 0
        width = self.search.domains[variable].bit_length()
        return literals >> self.offsets[variable] & ((1 << width) - 1)

    def _between(self, here: int, bit: int, there: int, other: int) -> int:
        """Return a nogood by which two literals exclude each other."""
        for _, mask, index in self.search.linked(here, bit).get(there, (0, []))[1]:
            if mask & other:
                return index
        rows = self.pairs[here, there]
        return next(index for mask, far, index in rows if mask & bit and far & other)


def unmatched(choices: list[int], groups: list[int]) -> tuple[list[int], list[int]] | None:
    """Return choices, by place, and fewer groups that hold all their literals, if there are such.

    Choices are matched with groups one by one, each along an augmenting path. Where there is none,
    what was reached is the answer.
    """
    near = [[place for place, group in enumerate(groups) if group & bits] for bits in choices]
    holder: dict[int, int] = {}
    held: dict[int, int] = {}
    for start in range(len(choices)):
        reachable = [start]
        origin: dict[int, int] = {}
        free = -1
        for choice in reachable:
            for group in near[choice]:
                if group not in origin:
                    origin[group] = choice
                    if group in holder:
                        reachable.append(holder[group])
                    else:
                        free = group
        if free < 0:
            return reachable, list(origin)
        # Along the path each choice takes the group that the next one had.
        while free >= 0:
            choice = origin[free]
            holder[free] = choice
            held[choice], free = free, held.get(choice, -1)
    return None


def ones(bits: int) -> Iterator[int]:
    """Return the places of the bits that are set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
