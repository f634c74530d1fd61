"""Which candidate of a variable is best, given the values of the variables before it.

Tested rows rank values. Here they are indexed by the variable they may speak about, so
that a choice costs one pass over that variable's rows. See ``engine`` for the definition.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from . import Problem, Support

    Held = tuple[Support, int, int, int]
    """A support, the first variable it joins, the values of that which it holds, the place of this variable in it."""


class Ranking:
    """Picks the best candidate out of a mask."""

    __slots__ = ("followers", "oldest", "optional", "reverse", "rows", "supports")

    def __init__(
        self, problem: Problem, supports: Iterable[Support] = (), *, reverse: bool = False
    ) -> None:
        self.oldest = problem.oldest
        self.optional = problem.optional
        self.reverse = reverse
        self.followers = [0] * len(problem.sizes)
        self.rows: list[list[Held]] = []
        self.supports = supports

    def _file(self) -> None:
        """File the rows by variable, which a search that fails before its first choice does not need."""
        supports, self.supports = self.supports, ()
        self.rows = [[] for _ in self.followers] if supports else []
        for rows in supports:
            variables, gate = rows.variables, rows.gate
            later = 0
            for place in range(len(variables) - 1, 0, -1):
                variable = variables[place]
                self.rows[variable].append((rows, variables[0], gate, place))
                later |= 1 << variable
                self.followers[variables[place - 1]] |= later

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
        for held, first, gate, place in self.rows[variable]:
            for row in held.rows() if gate & domains[first] else ():
                terms = row.terms
                _, tested, weight = terms[place]
                if not tested & mask:
                    continue
                agrees = not row.faint and all(
                    terms[other][1] & domains[terms[other][0]] for other in range(1, place)
                )
                level = (int(agrees), min(weight, row.weight))
                if level > top:
                    best, top = tested & mask, level
                elif level == top and level != (0, 0):
                    best |= tested & mask
        return best
