"""The cheapest chain of consequences that leads from the requests to a contradiction.

Many refusals need no search: applying nogoods one after another empties a domain. Which nogoods
take part then depends on the order only. Here the removal that rests on the fewest nogoods comes
first, as in a shortest-path search, so a chain of single rows is found before a detour through
fifty bands. Shared nogoods are counted once for each use, so the result is short, not shortest.
"""

from __future__ import annotations

from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import Problem

    Step = tuple[int, int, int, int]
    """Cost, nogood, variable whose candidates it removes, its mask."""
    Removal = tuple[int, int, int]
    """Removed candidates, cost, nogood."""


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
        seen: set[tuple[int, int]] = set()
        terms = [(self.empty, 0)]
        while terms:
            variable, mask = terms.pop()
            for bits, _, index in self.removals[variable]:
                if bits & ~mask and (index, variable) not in seen:
                    seen.add((index, variable))
                    terms += [term for term in self.nogoods[index] if term[0] != variable]
        return tuple(sorted({index for index, _ in seen}))


def follow(problem: Problem, pool: Sequence[int]) -> tuple[int, ...] | None:
    """Return a core found without search, or ``None`` where that is not enough."""
    chains = Chains(problem, pool)
    return chains.core() if chains.run() else None
