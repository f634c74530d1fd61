"""Independent judges: brute force over every assignment, and SAT solvers.

Nothing here is shared with the engine but the classes that state a problem. The ranking follows
the specification word by word and slowly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from pysat.solvers import Cadical153

from toolmatrix.solve.engine import Problem

Values = tuple[int, ...]


def violated(problem: Problem, values: Sequence[int], index: int) -> bool:
    """Return whether every term of a nogood is true."""
    return all(mask >> values[variable] & 1 for variable, mask in problem.nogoods[index])


def solutions(problem: Problem, indices: Iterable[int] | None = None) -> list[Values]:
    """Return every assignment that violates none of the nogoods (of all, or of ``indices``)."""
    chosen = list(range(len(problem.nogoods)) if indices is None else indices)
    candidates = [
        [i for i in range(size) if problem.domains[v] >> i & 1]
        for v, size in enumerate(problem.sizes)
    ]
    return [
        values
        for values in product(*candidates)
        if not any(violated(problem, values, index) for index in chosen)
    ]


def rank(problem: Problem, values: Sequence[int], variable: int, candidate: int) -> tuple[int, int]:
    """Return the rank of a candidate, given the values of the variables before it."""
    best = (0, 0)
    for row in problem.supports:
        own = [(mask, weight) for v, mask, weight in row.terms if v == variable]
        before = sorted((v, mask) for v, mask, _ in row.terms if v < variable)
        if not own or not before or not own[0][0] >> candidate & 1:
            continue
        if 0 <= row.owner < variable and values[row.owner] == 0:
            continue
        holds = [bool(mask >> values[v] & 1) for v, mask in before]
        if holds[0]:
            best = max(best, (int(all(holds)), min(row.weight, own[0][1])))
    return best


def preference(problem: Problem, values: Sequence[int], variable: int, order: str) -> list[int]:
    """Return the candidates of a variable, best first."""
    by_index = list(range(problem.sizes[variable]))
    if not problem.oldest >> variable & 1:
        by_index.reverse()
    if problem.optional >> variable & 1:
        by_index.insert(0, by_index.pop(by_index.index(0)))
    if order == "rank":
        return sorted(
            by_index, key=lambda candidate: rank(problem, values, variable, candidate), reverse=True
        )
    return by_index if order == "index" else by_index[::-1]


def best(problem: Problem, found: list[Values], order: str = "rank") -> Values | None:
    """Return the best of all solutions, choosing variable by variable."""
    if not found:
        return None
    for variable in range(len(problem.sizes)):
        prefix = found[0][:variable]
        for candidate in preference(problem, prefix, variable, order):
            rest = [values for values in found if values[variable] == candidate]
            if rest:
                found = rest
                break
    return found[0]


def settled(problem: Problem, soft: Sequence[int], first: Sequence[int]) -> Values | None:
    """Return the best solution some of whose nogoods give way, by the words of the specification."""
    firm = [number for number in range(len(problem.nogoods)) if number not in soft]
    start = best(problem, solutions(problem, firm))
    if start is None:
        return None
    found = [
        values
        for values in solutions(problem, firm)
        if all(values[variable] == start[variable] for variable in first)
    ]
    for number in soft:
        keeping = [values for values in found if not violated(problem, values, number)]
        found = keeping or found
    return best(problem, found)


class Sat:
    """CaDiCaL on the direct encoding, one selector for each nogood."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.solver: Any = Cadical153()
        self.names: list[list[int]] = []
        count = 0
        for size in problem.sizes:
            self.names.append(list(range(count + 1, count + size + 1)))
            count += size
        self.selectors = list(range(count + 1, count + len(problem.nogoods) + 1))
        self._encode()

    def _encode(self) -> None:
        last = self.selectors[-1] if self.selectors else sum(map(len, self.names))
        for variable, names in enumerate(self.names):
            self.solver.add_clause(names)
            # A ladder: that any of the names so far holds, so that clauses grow with the names alone.
            for place, name in enumerate(names):
                if not self.problem.domains[variable] >> place & 1:
                    self.solver.add_clause([-name])
                last += 1
                self.solver.add_clause([-name, last])
                if place:
                    self.solver.append_formula([[1 - last, last], [-name, 1 - last]])
        for selector, terms in zip(self.selectors, self.problem.nogoods, strict=True):
            clause = [-selector]
            for variable, mask in terms:
                clause += [n for i, n in enumerate(self.names[variable]) if not mask >> i & 1]
            self.solver.add_clause(clause)

    def satisfiable(
        self, indices: Iterable[int] | None = None, chosen: Sequence[tuple[int, int]] = ()
    ) -> bool:
        """Return whether the nogoods have a solution with the ``chosen`` (variable, value)."""
        selected = (
            self.selectors if indices is None else [self.selectors[index] for index in indices]
        )
        fixed = [self.names[variable][value] for variable, value in chosen]
        return bool(self.solver.solve(assumptions=[*selected, *fixed]))

    def best(self, order: str = "rank") -> Values | None:
        """Return the best solution: for each variable the first candidate that extends."""
        if not self.satisfiable():
            return None
        values: list[int] = []
        for variable in range(len(self.problem.sizes)):
            for candidate in preference(self.problem, values, variable, order):
                fixed = [*enumerate(values), (variable, candidate)]
                if self.satisfiable(chosen=fixed):
                    values.append(candidate)
                    break
        return tuple(values)

    def close(self) -> None:
        """Free the solver."""
        self.solver.delete()


def irreducible(sat: Sat, core: Sequence[int]) -> bool:
    """Return whether a core is unsatisfiable alone, and no longer so without any one of it."""
    if sat.satisfiable(core):
        return False
    return all(sat.satisfiable([i for i in core if i != gone]) for gone in core)
