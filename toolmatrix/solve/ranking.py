"""Which candidate of a variable is best, given the values of the variables before it.

Rows vouch for values together. Here they are indexed by the variable they may speak about, so
that a choice costs one pass over that variable's rows. See ``engine`` for the definition.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .engine import Support

    Row = tuple[int, int, tuple[tuple[int, int], ...], int, int]
    """First earlier variable, its mask, the other earlier terms, mask and weight of this one."""


class Ranking:
    """Picks the best candidate out of a mask."""

    __slots__ = ("ascending", "followers", "rows")

    def __init__(self, count: int, supports: Sequence[Support], ascending: int) -> None:
        self.ascending = ascending
        self.rows: list[list[Row]] = [[] for _ in range(count)] if supports else []
        self.followers = [0] * count
        for support in supports:
            self._add(support)

    def _add(self, support: Support) -> None:
        terms = sorted(support.terms)
        pairs = [(variable, mask) for variable, mask, _ in terms]
        for place in range(1, len(terms)):
            variable, mask, weight = terms[place]
            first, gate = pairs[0]
            rest = tuple(pairs[1:place])
            self.rows[variable].append((first, gate, rest, mask, min(weight, support.weight)))
            for earlier, _ in pairs[:place]:
                self.followers[earlier] |= 1 << variable

    def prefer(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the bit of the best candidate in ``mask``; earlier domains are single bits."""
        if self.rows and mask & (mask - 1):
            mask = self._vouched(variable, mask, domains)
        if self.ascending >> variable & 1:
            return mask & -mask
        return 1 << (mask.bit_length() - 1)

    def _vouched(self, variable: int, mask: int, domains: Sequence[int]) -> int:
        """Return the candidates of highest rank: all of ``mask`` where no row speaks."""
        best, top = mask, (0, 0)
        for first, gate, rest, vouched, weight in self.rows[variable]:
            if not (gate & domains[first] and vouched & mask):
                continue
            level = (int(all(m & domains[v] for v, m in rest)), weight)
            if level > top:
                best, top = vouched & mask, level
            elif level == top and level != (0, 0):
                best |= vouched & mask
        return best
