"""Every combination of chosen variables that extends to a solution.

One search answers all: the chosen variables are decided first, each answer becomes a nogood, and
what was learned from earlier answers stays. Support rows play no part; combinations come in the
order of their candidates' indices, preferred ones first, the first chosen variable counting most.
"""

from __future__ import annotations

from . import Ranking
from .search import Clash, Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from . import Problem


def combinations(
    problem: Problem, variables: Sequence[int], limit: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Yield each combination of candidate indices of ``variables`` that some solution has."""
    search, places = _chosen_first(problem, variables)
    count = 0
    while (limit is None or count < limit) and search.run():
        values = search.values()
        yield tuple(values[places[variable]] for variable in variables)
        count += 1
        # A variable may be chosen twice, and stands once among those that are decided first.
        _exclude(search, {v: 1 << values[v] for v in range(len(set(variables)))})


def _chosen_first(problem: Problem, variables: Sequence[int]) -> tuple[Search, list[int]]:
    # Variables are decided in index order: those that were chosen get the first numbers.
    count = len(problem.sizes)
    order = list(dict.fromkeys([*variables, *range(count)]))
    places = [0] * count
    for place, variable in enumerate(order):
        places[variable] = place
    nogoods = [
        tuple([(places[variable], mask) for variable, mask in terms]) for terms in problem.nogoods
    ]
    arranged = problem.arranged(order)
    return Search(arranged.domains, nogoods, Ranking(arranged)), places


def _exclude(search: Search, terms: dict[int, int]) -> None:
    # All terms of an answer just given are true, so that it is a clash. The latest two are watched: these are the first
    # to be open when decisions are taken back.
    latest = sorted(terms, key=lambda variable: -search.needs(variable, ~terms[variable]))
    index = search.add(terms, latest[0], latest[min(1, len(latest) - 1)]) if latest else -1
    search.antecedents.append(([], []))
    search.refute(Clash(dict(terms), [index] if latest else []))
