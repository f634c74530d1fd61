"""The search of hard problems: variables in any order, restarts, and refutation by counting.

It takes over an ordered search with all that it learned. What it finds is the same best solution,
settled one variable after the other: while a candidate is better than the one in the last solution
found, it is assumed, and either leads to another solution or is removed for good.
"""

from __future__ import annotations

from .counting import crowded
from .search import learn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .search import Clash, Search

PATIENCE = 128
"""Conflicts before the first restart; each next one waits half as long again."""

LITERALS = 400
"""Candidates that are counted at most."""


class Free:
    """An ordered search taken over: a decision is a level of its own, in order of time."""

    __slots__ = ("blame", "found", "levels", "search")

    def __init__(self, search: Search) -> None:
        self.search = search
        # In how many conflicts each variable was.
        self.blame = [0] * len(search.domains)
        for used, _ in search.antecedents:
            self._blame(used)
        # The last solution, and before there is one what the ordered search settled on.
        self.found = search.settled
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
        self.found = list(domains)
        for variable in range(len(domains)):
            best = self._best(variable)
            while best != self.found[variable]:
                if self._solve(variable, best):
                    self.found = list(domains)
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
            found = self._descend(variable, value, patience, suspected)
            if found is not None:
                return found
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
            known = self.found[open_] & domains[open_]
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
