"""The solver engine: the best combination of candidates that no nogood forbids.

Problem
    Variable ``v`` takes one of ``sizes[v]`` candidates; a set of candidates is a bit mask. A
    nogood is a conjunction of terms ``(variable, mask)``, "the value lies in the mask", that must
    not all be true. What a user asks for is a nogood of one term: the mask of everything else.

Best
    Variables are decided in index order. A support row speaks for candidate ``x`` of variable ``c`` if its term on
    ``c`` holds ``x``, it has terms on variables before ``c``, and the first of them holds the value chosen there, and
    unless its owner is before ``c`` and absent (candidate 0): of what is not there nothing was tested. It does so at
    the level ``(agrees, weight)``: ``agrees`` is 1 if all its terms on earlier variables hold and it is not partial,
    ``weight`` the smaller of the row's and the term's (neither is negative). The rank of ``x`` is the highest level of
    a row that speaks for it, else ``(0, 0)``. Candidates are taken by rank, then by index: higher first, or lower first
    for the variables in ``Problem.oldest``; for those in ``Problem.optional`` candidate 0 comes before all others. The
    best solution takes, variable by variable, the first candidate that still extends to a solution. Later variables
    never influence a rank. ``order="index"`` ignores ranks; ``order="reverse"`` too, and takes the candidate that comes
    last by its index.

Search
    A domain is a mask that shrinks by *events*. Each removed candidate belongs to one event, and an event knows its
    reason (nogoods) and its *dependencies*: the set of decisions it rests on. Unit propagation removes a term's mask
    where every other term of a nogood is true. Binary nogoods lie in one list per variable and are applied one
    neighbour at a time; longer ones have two watched terms.

    The level of an event is its latest decision, by variable index and not by time. A conflict is resolved, latest
    event first, until one term of its level is left (first unique implication point), which gives a learned nogood: if
    ``A and v in m`` and ``B and v in r`` are forbidden, so is ``A and B and v in m|r``. Then *only* that level's
    decision and the events that depend on it are taken back; later decisions stay where they are, so a conflict costs
    what it touches and not everything decided since. A variable is decided again if its domain grew or a row that ranks
    it changed. Its candidates are those which earlier decisions leave; if a later decision stands in the way, the later
    one is taken back.

    That serves ordinary problems, which have fewer conflicts than variables. After more of them the same search goes on
    as a *free* one, which keeps what was learned. Decisions are then levels in order of time, on the variable with most
    conflicts for each candidate left; a conflict takes back its level and all later ones, and after a number of
    conflicts all decisions are taken back. The best solution is reached by questions: after any solution, and with the
    variables before ``c`` fixed at their best, is there one with a candidate that ranks above the one found for ``c``?
    At each restart *counting* looks for what learning cannot see in reasonable time: more choices than there are groups
    of literals which allow one choice each, as in nine pigeons for eight holes. Its finding is a nogood implied by
    those of the choices and groups, and a conflict like any other.

    The result is the best solution: whatever ranks better than a chosen candidate was removed by events that rest on
    earlier decisions alone, or on earlier variables fixed at their best. The search ends: once the variables before
    ``c`` are settled for good, what they exclude from ``c`` only grows, and each conflict of level ``c`` adds to it; a
    free search waits longer before each restart. The worst case is exponential, as for every complete solver.

Determinism
    A solution is defined by the problem alone, whatever the order of nogoods and rows. A conflict core is deterministic
    for the same input; it is neither irreducible nor short: see ``conflict``.
"""

from __future__ import annotations

from toolmatrix.value import NamedTuple

from .search import Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Nogood = tuple[tuple[int, int], ...]
    Filed = tuple["Support", int, int, int, int]
    """A support, the place of a variable in it, the first variable that it joins and the values for which it speaks.

    Last comes its owner, where that is before the variable.
    """

PATIENCE = 32
"""Conflicts, more than there are variables, before the search is set free."""


class Support:
    """A row of values that were tested together: a soft constraint, which ranks and never refuses.

    Its terms (variable, mask, weight) are kept in the order of their variables. One that is ``partial`` never agrees in
    full: it counts less than any row that does. ``owner`` is the variable whose row it is, if it is one's.
    """

    __slots__ = ("terms", "weight")
    partial = False
    owner = -1

    def __init__(self, terms: Sequence[tuple[int, int, int]], weight: int) -> None:
        self.terms = sorted(terms)
        self.weight = weight

    @property
    def variables(self) -> Sequence[int]:
        """The variables that it joins."""
        return [variable for variable, _, _ in self.terms]

    @property
    def anchor_mask(self) -> int:
        """The values of the first of them for which it may speak."""
        return self.terms[0][1]

    def rows(self, values: int) -> Sequence[Support]:  # noqa: ARG002 - groups need them
        """The rows it stands for; of a group those that may speak where the first variable has such a value."""
        return (self,)

    def level(self, variable: int, candidate: int, values: Sequence[int]) -> tuple[int, int] | None:
        """The level at which it speaks for a candidate, given the values before it; None if it does not."""
        first, anchor_mask, _ = self.terms[0]
        if first >= variable or not anchor_mask >> values[first] & 1:
            return None
        if 0 <= self.owner < variable and not values[self.owner]:
            return None
        agrees = int(not self.partial)
        for other, mask, weight in self.terms:
            if other >= variable:
                speaks = other == variable and mask >> candidate & 1
                return (agrees, min(weight, self.weight)) if speaks else None
            agrees &= mask >> values[other] & 1
        return None


class SupportGroup(Support):
    """Rows that join the same variables, made for those values of the first that are chosen; it has no terms itself."""

    __slots__ = ("_anchor_mask", "_rows", "_variables")

    def __init__(self, variables: Sequence[int], anchor_mask: int, weight: int) -> None:
        self.weight = weight
        self._anchor_mask = anchor_mask
        self._variables = variables
        self._rows: dict[int, Sequence[Support]] = {}

    @property
    def variables(self) -> Sequence[int]:
        return self._variables

    @property
    def anchor_mask(self) -> int:
        return self._anchor_mask

    def rows(self, values: int) -> Sequence[Support]:
        if values not in self._rows:
            self._rows[values] = self.make(values)
        return self._rows[values]

    def make(self, values: int) -> Sequence[Support]:
        """The rows of some values, for the first time."""
        raise NotImplementedError


class Problem:
    """Variables with their candidates, what is forbidden, and what ranks.

    ``oldest`` is the set, as bits, of variables whose lower candidates are preferred; ``optional``
    that of variables whose candidate 0 is their absence, and preferred to all others.
    """

    __slots__ = (
        *("_renumbered", "_scopes", "domains", "nogoods", "oldest", "optional", "sizes"),
        "supports",
    )

    def __init__(
        self,
        sizes: Sequence[int],
        nogoods: Sequence[Nogood],
        supports: Iterable[Support] = (),
        domains: Sequence[int] | None = None,
        oldest: int = 0,
        optional: int = 0,
    ) -> None:
        self.sizes = sizes
        self.nogoods = nogoods
        self.supports = supports
        self.domains = [(1 << size) - 1 for size in sizes] if domains is None else domains
        self.oldest = oldest
        self.optional = optional
        self._scopes: list[tuple[int, ...]] | None = None
        self._renumbered: dict[tuple[int, ...], dict[int, Nogood]] = {}

    @property
    def scopes(self) -> Sequence[tuple[int, ...]]:
        """The variables of each nogood."""
        if self._scopes is None:
            self._scopes = [tuple([variable for variable, _ in terms]) for terms in self.nogoods]
        return self._scopes

    def renumbered(self, order: Sequence[int], pool: Iterable[int]) -> dict[int, Nogood]:
        """Some nogoods, with the variables numbered in an order; each is made once for each order."""
        numbered = self._renumbered.setdefault(tuple(order), {})
        positions = {variable: position for position, variable in enumerate(order)}
        for index in pool:
            if index not in numbered:
                terms = self.nogoods[index]
                numbered[index] = tuple([(positions[variable], mask) for variable, mask in terms])
        return {index: numbered[index] for index in pool}

    def forbidding(self, nogoods: Sequence[Nogood]) -> Problem:
        """The same variables with other nogoods, and nothing that ranks."""
        return Problem(self.sizes, nogoods, (), self.domains, self.oldest, self.optional)

    def fixing(self, values: Mapping[int, int], nogoods: Sequence[Nogood]) -> Problem:
        """`forbidding`, with some variables at a candidate: each a nogood of one term, after the others."""
        fixed = [
            ((variable, (1 << self.sizes[variable]) - 1 & ~(1 << value)),)
            for variable, value in values.items()
        ]
        return self.forbidding([*nogoods, *fixed])

    def arranged(self, variables: Sequence[int]) -> Problem:
        """These variables alone and in this order, with nothing forbidden and nothing that ranks."""

        def moved(bits: int) -> int:
            return sum(1 << position for position, v in enumerate(variables) if bits >> v & 1)

        return Problem(
            [self.sizes[variable] for variable in variables],
            (),
            domains=[self.domains[variable] for variable in variables],
            oldest=moved(self.oldest),
            optional=moved(self.optional),
        )


class Ranking:
    """Picks the best candidate of a variable out of a mask, given the values of the variables before it.

    Rows are filed by the variable they may speak about, so that a choice costs one pass over that variable's rows.
    """

    __slots__ = ("followers", "oldest", "optional", "reverse", "rows", "supports")

    def __init__(
        self, problem: Problem, supports: Iterable[Support] = (), *, reverse: bool = False
    ) -> None:
        self.oldest = problem.oldest
        self.optional = problem.optional
        self.reverse = reverse
        self.followers = [0] * len(problem.sizes)
        self.rows: list[list[Filed]] = []
        self.supports = supports

    def _file(self) -> None:
        # Not before the first choice: a search that fails without one needs no rows.
        supports, self.supports = self.supports, ()
        self.rows = [[] for _ in self.followers] if supports else []
        joined: Sequence[int] = ()
        for support in supports:
            variables, owner, anchor_mask = support.variables, support.owner, support.anchor_mask
            for position in range(1, len(variables)):
                variable = variables[position]
                before = owner if owner < variable else -1
                self.rows[variable].append((support, position, variables[0], anchor_mask, before))
            # Many rows join the same variables: followers are those that come behind one.
            if variables is not joined:
                joined, later = variables, 0
                for position in range(len(variables) - 1, 0, -1):
                    later |= 1 << variables[position]
                    self.followers[variables[position - 1]] |= later

    def prefer(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the bit of the best candidate in ``mask``; earlier domains are single bits."""
        if self.supports:
            self._file()
        if self.rows and mask & (mask - 1):
            mask = self._tested(variable, mask, domains)
        return self.first(variable, mask)

    def first(self, variable: int, mask: int) -> int:
        """Return the bit of the candidate in ``mask`` that comes first by its index."""
        absent = mask & self.optional >> variable & 1
        if absent and not self.reverse:
            return 1
        present = mask & ~absent or mask
        if self.oldest >> variable & 1 != self.reverse:
            return present & -present
        return 1 << (present.bit_length() - 1)

    def _tested(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the candidates of highest rank: all of ``mask`` where no row speaks."""
        best, top = mask, (0, 0)
        for support, position, first, anchor_mask, owner in self.rows[variable]:
            values = domains[first]
            if not anchor_mask & values or (owner >= 0 and domains[owner] == 1):
                continue
            for row in support.rows(values):
                terms = row.terms
                _, tested, weight = terms[position]
                if not tested & mask:
                    continue
                agrees = not row.partial and all(
                    terms[other][1] & domains[terms[other][0]] for other in range(1, position)
                )
                level = (int(agrees), min(weight, row.weight))
                if level > top:
                    best, top = tested & mask, level
                # At the lowest level a row ranks no higher than none.
                elif level == top and level != (0, 0):
                    best |= tested & mask
        return best


class Solution(NamedTuple):
    """The best solution: one candidate index for each variable."""

    values: tuple[int, ...]


class Conflict(NamedTuple):
    """There is no solution: these nogoods, by index, already exclude each other.

    Where none was ``chosen`` from, consequences alone led there, in whatever order candidates would have been taken.
    """

    core: tuple[int, ...]
    chosen: bool


def ranking(problem: Problem, order: str) -> Ranking:
    """Return how candidates are ordered under ``order``."""
    if order == "rank":
        return Ranking(problem, problem.supports)
    if order in ("index", "reverse"):
        return Ranking(problem, reverse=order == "reverse")
    raise ValueError(f"unknown order: {order!r}")


def searched(problem: Problem, order: str = "rank") -> Search:
    """Return a finished search: it has failed, or holds the best solution."""
    search = Search(problem.domains, problem.nogoods, ranking(problem, order))
    if search.run(PATIENCE + len(problem.sizes)) is None:
        # Few problems are as hard as that, and no other pays for the import.
        from .free import Free

        Free(search).run()
    return search


def solve(problem: Problem, *, order: str = "rank") -> Solution | Conflict:
    """Return the best solution, or nogoods that exclude every solution."""
    search = searched(problem, order)
    if search.failed:
        return Conflict(search.core(), chosen=any(search.settled))
    return Solution(search.values())


def settle(
    problem: Problem, soft: Sequence[int], first: Iterable[int], start: Solution
) -> Solution:
    """The best solution of a problem some of whose nogoods, the ``soft`` ones, may be broken.

    The variables in ``first`` take the values of ``start``, the best solution without the soft nogoods. Then these are
    taken in the order given: each binds if it can be kept together with all others and with the soft ones kept before.
    """
    # What the best of all solutions keeps anyway changes nothing.
    if not any(_broken(problem, index, start) for index in soft):
        return start
    domains = list(problem.domains)
    for variable in first:
        domains[variable] = 1 << start.values[variable]
    given_up: set[int] = set()
    end = len(soft)
    while True:
        # Soft nogoods behind `end` wait until it is known whether the one at `end` has to be given up.
        out = given_up.union(soft[end:])
        indices = [index for index in range(len(problem.nogoods)) if index not in out]
        nogoods = [problem.nogoods[index] for index in indices]
        outcome = solve(
            Problem(
                problem.sizes, nogoods, problem.supports, domains, problem.oldest, problem.optional
            )
        )
        if isinstance(outcome, Conflict):
            clash = {indices[position] for position in outcome.core}
            end = max(position for position, index in enumerate(soft) if index in clash)
        elif end == len(soft):
            return outcome
        else:
            # All before it can be kept, and with it no more: it is the one that gives way.
            given_up.add(soft[end])
            end = len(soft)


def _broken(problem: Problem, index: int, solution: Solution) -> bool:
    return all(mask >> solution.values[variable] & 1 for variable, mask in problem.nogoods[index])
