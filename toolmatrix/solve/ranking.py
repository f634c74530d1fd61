"""Which candidate of a variable is best, given the values of the variables before it.

Rows vouch for values together. Here they are indexed by the variable they may speak about, so
that a choice costs one pass over that variable's rows. See ``engine`` for the definition.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .engine import Support

    Row = tuple[Sequence[tuple[int, int, int]], int, int, bool]
    """The terms of a support, the place of this variable among them, the weight of the support, whether it is faint."""


class Ranking:
    """Picks the best candidate out of a mask."""

    __slots__ = ("ascending", "followers", "rows")

    def __init__(self, count: int, supports: Sequence[Support], ascending: int) -> None:
        self.ascending = ascending
        self.rows: list[list[Row]] = [[] for _ in range(count)] if supports else []
        self.followers = [0] * count
        for support in supports:
            terms = support.terms
            later = 0
            for place in range(len(terms) - 1, 0, -1):
                variable = terms[place][0]
                self.rows[variable].append((terms, place, support.weight, support.faint))
                later |= 1 << variable
                self.followers[terms[place - 1][0]] |= later

    def prefer(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the bit of the best candidate in ``mask``; earlier domains are single bits."""
        if self.rows and mask & (mask - 1):
            mask = self._vouched(variable, mask, domains)
        return self.first(variable, mask)

    def first(self, variable: int, mask: int) -> int:
        """Return the bit of the candidate in ``mask`` that comes first by its index."""
        if self.ascending >> variable & 1:
            return mask & -mask
        return 1 << (mask.bit_length() - 1)

    def _vouched(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the candidates of highest rank: all of ``mask`` where no row speaks."""
        best, top = mask, (0, 0)
        for terms, place, least, faint in self.rows[variable]:
            first, gate, _ = terms[0]
            _, vouched, weight = terms[place]
            if not (gate & domains[first] and vouched & mask):
                continue
            agrees = not faint and all(
                terms[other][1] & domains[terms[other][0]] for other in range(1, place)
            )
            level = (int(agrees), min(weight, least))
            if level > top:
                best, top = vouched & mask, level
            elif level == top and level != (0, 0):
                best |= vouched & mask
        return best
