"""The search of hard problems: variables in any order, restarts, and refutation by counting.

It takes over an ordered search with all that it learned. What it finds is the same best solution,
settled one variable after the other: while a candidate is better than the one in the last solution
found, it is assumed, and either leads to another solution or is removed for good.

Learning needs exponentially many conflicts to see that nine pigeons do not fit in eight holes. Here a literal is one
candidate of one variable. A *choice* is a set of literals of which one must be true: what is left of a domain, or what
a nogood of several terms demands. A *group* is a set of literals of which no two from different choices can be true
together, by nogoods that have two open terms left. Choices whose literals lie within fewer groups contradict each
other: that is Hall's theorem, and a maximum matching finds them. Groups are cliques, found greedily, so what is found
is right and not everything is found.
"""

from __future__ import annotations

from itertools import combinations

from .search import Clash, learn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .search import Search

    Terms = tuple[tuple[int, int], ...]
    Choice = tuple[int, int, Terms]
    """Literals as bits; the nogood that demands one of them, or -1 for a domain; its terms."""

PATIENCE = 128
"""Conflicts before the first restart; each next one waits half as long again."""

LITERALS = 400
"""Candidates that are counted at most."""


class Free:
    """An ordered search taken over: a decision is a level of its own, in order of time."""

    __slots__ = ("blame", "levels", "search", "solution")

    def __init__(self, search: Search) -> None:
        self.search = search
        # In how many conflicts each variable was.
        self.blame = [0] * len(search.domains)
        for used, _ in search.antecedents:
            self._blame(used)
        # The last solution, and before there is one what the ordered search settled on.
        self.solution = search.settled
        # The length of the trail before each decision.
        self.levels: list[int] = []
        self._cut(0, 0)
        search.restored.clear()
        search.queue = dict.fromkeys(range(len(search.domains)))

    def run(self) -> bool:
        """Return whether there is a solution; the best one is then what the domains hold."""
        search = self.search
        domains = search.domains
        if not self._solve(0, -1):
            return False
        self.solution = list(domains)
        for variable in range(len(domains)):
            best = self._best(variable)
            while best != self.solution[variable]:
                if self._solve(variable, best):
                    self.solution = list(domains)
                best = self._best(variable)
            if domains[variable] != best:
                search.remove(variable, domains[variable] & ~best, 0, ())
        search.propagate()
        return True

    def _best(self, variable: int) -> int:
        """Return the best candidate that is left when nothing but earlier variables is settled."""
        search = self.search
        self._restart()
        search.propagate()
        return search.ranking.prefer(variable, search.domains[variable], search.domains)

    def _solve(self, variable: int, value: int) -> bool:
        """Return whether there is a solution with ``variable`` in ``value``; if so, stay there."""
        # A question about a single value is often easy, so each begins with little patience.
        patience = PATIENCE
        suspected = value < 0
        while True:
            self._restart()
            solvable = self._descend(variable, value, patience, suspected)
            if solvable is not None:
                return solvable
            patience += patience // 2
            suspected = True

    def _descend(self, variable: int, value: int, patience: int, suspected: bool) -> bool | None:
        """Decide until there is an answer, or none after ``patience`` conflicts."""
        search = self.search
        domains = search.domains
        counted = -1 if suspected else 1
        while patience:
            clash = search.propagate()
            if clash is None and not self.levels and domains[variable] & ~value:
                if not domains[variable] & value:
                    return False
                self._decide(variable, value)
                continue
            if clash is None and counted < len(self.levels) <= 1:
                counted = len(self.levels)
                clash = crowded(search, self._suspects())
            if clash is not None:
                patience -= 1
                self._refute(clash)
                if search.failed:
                    return False
                continue
            open_ = self._open()
            if open_ < 0:
                return True
            # The last solution is near the next one: most of it stays true when one value changes.
            known = self.solution[open_] & domains[open_]
            self._decide(open_, known or search.ranking.first(open_, domains[open_]))
        return None

    def _open(self) -> int:
        """Return the variable with most blame for each candidate left; -1 if none has a choice."""
        best, most = -1, 0.0
        for variable, domain in enumerate(self.search.domains):
            if domain & (domain - 1):
                # Few candidates and many conflicts: where a wrong choice shows soonest (dom/wdeg).
                score = (self.blame[variable] + 1) / domain.bit_count()
                if score > most:
                    best, most = variable, score
        return best

    def _suspects(self) -> list[int]:
        """Return the variables with most blame, as far as their candidates can be counted."""
        domains = self.search.domains
        suspects: list[int] = []
        room = LITERALS
        # Counting is quadratic in candidates, and pigeons sit where the conflicts are.
        for variable in sorted(range(len(domains)), key=lambda v: -self.blame[v]):
            width = domains[variable].bit_length()
            if width <= room:
                room -= width
                suspects.append(variable)
        return suspects

    def _decide(self, variable: int, value: int) -> None:
        """Take one candidate; everything that follows depends on this level."""
        search = self.search
        needs = 1 << len(self.levels)
        self.levels.append(len(search.trail))
        search.remove(variable, search.domains[variable] & ~value, needs, ())

    def _refute(self, clash: Clash) -> None:
        """Learn from a violated nogood and take back its level and all later ones."""
        learned = learn(self.search, clash)
        if learned is None:
            self.search.fail(clash)
            return
        self._blame(clash.used)
        self._cut(learned.level, self.levels[learned.level])
        self.search.accept(clash, learned)

    def _blame(self, used: Sequence[int]) -> None:
        nogoods = self.search.nogoods
        for variable in {variable for index in used for variable, _ in nogoods[index]}:
            self.blame[variable] += 1

    def _restart(self) -> None:
        if self.levels:
            self._cut(0, self.levels[0])

    def _cut(self, level: int, start: int) -> None:
        """Take back what depends on ``level`` or a later one; all of it came after ``start``.

        Before the decision everything was at rest, so only what stays has to be applied again.
        """
        search = self.search
        tail = search.trail[start:]
        del search.trail[start:]
        del self.levels[level:]
        search.queue.clear()
        for event in tail:
            variable = event[1]
            if event[3] >> level:
                search.domains[variable] |= event[2]
                search.chains[variable].remove(event)
            else:
                search.trail.append(event)
                search.queue[variable] = None


def crowded(search: Search, variables: Iterable[int]) -> Clash | None:
    """Return a clash of choices among ``variables`` that share too few groups, if one is found."""
    count = Count(search, variables)
    choices = count.distinct()
    groups = count.partition(choices)
    over = unmatched([literals for literals, _, _ in choices], groups)
    if over is None:
        return None
    return count.clash([choices[i] for i in over[0]], [groups[i] for i in over[1]])


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
            self.literals += [(variable, 1 << position) for position in range(width)]
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
        excluded = 0
        if bit & domains[variable]:
            for other, (union, _) in self.search.linked(variable, bit).items():
                if other in offsets:
                    excluded |= (union & domains[other]) << offsets[other]
        return excluded

    def _read(self, index: int, terms: dict[int, int]) -> None:
        """File a longer nogood by its open terms: two exclude each other, more demand a literal."""
        domains, offsets = self.search.domains, self.offsets
        open_terms: list[tuple[int, int]] = []
        for variable, mask in terms.items():
            if domains[variable] & ~mask:
                # From an open term on a variable that is not counted, or a false term, nothing follows here.
                if variable not in offsets or not domains[variable] & mask:
                    return
                open_terms.append((variable, domains[variable] & mask))
        if len(open_terms) == 2:
            for (first, mask), (second, other) in (open_terms, open_terms[::-1]):
                self.pairs.setdefault((first, second), []).append((mask, other, index))
                for position in ones(mask):
                    self.excluded[offsets[first] + position] |= other << offsets[second]
        elif len(open_terms) > 2 and index < self.search.initial:
            self.demands.append(index)

    def distinct(self) -> list[Choice]:
        """Return choices that share no literal, all of whose literals exclude others."""
        domains, offsets = self.search.domains, self.offsets
        useful = sum(1 << literal for literal, others in enumerate(self.excluded) if others)
        demands: list[tuple[int, Terms]] = [(-1, ((variable, 0),)) for variable in offsets]
        demands += [(index, self.search.nogoods[index]) for index in self.demands]
        covered = 0
        choices: list[Choice] = []
        for index, terms in demands:
            open_terms = [(v, domains[v] & ~mask) for v, mask in terms if domains[v] & ~mask]
            literals = sum(bits << offsets[v] for v, bits in open_terms)
            if not literals & (covered | ~useful):
                covered |= literals
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
            for first, second in combinations(members, 2):
                # Literals of one choice need not exclude each other: one of them is to be true.
                if owners[first] == owners[second]:
                    continue
                (here, bit), (there, other) = self.literals[first], self.literals[second]
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
    near = [[position for position, group in enumerate(groups) if group & bits] for bits in choices]
    holder: dict[int, int] = {}
    assigned: dict[int, int] = {}
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
            assigned[choice], free = free, assigned.get(choice, -1)
    return None


def ones(bits: int) -> Iterator[int]:
    """Return the places of the bits that are set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
