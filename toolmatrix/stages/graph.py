"""The graph of stages: who reads what who wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmatrix.stages.model import Stage

    Edges = Iterable[tuple[int, int]]


def edges(stages: Sequence[Stage]) -> tuple[tuple[int, int], ...]:
    """Pairs of stage ids: the second reads a file that the first, earlier, wrote; all who wrote it count."""
    writers: dict[str, list[int]] = {}
    found: list[tuple[int, int]] = []
    for stage in stages:
        before = {writer for path in stage.inputs for writer in writers.get(path, ())}
        found += [(writer, stage.id) for writer in sorted(before)]
        for path in stage.outputs:
            writers.setdefault(path, []).append(stage.id)
    return tuple(found)


def neighbours(pairs: Edges) -> Mapping[int, Sequence[int]]:
    """For each id the ids that pairs lead to from it, in order; none for an id that no pair leads from."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for one, other in pairs:
        found[one].append(other)
    return found


def waits(pairs: Edges) -> Mapping[int, Sequence[int]]:
    """For each id the ids that it waits for."""
    return neighbours((after, before) for before, after in pairs)


def reach(start: Iterable[int], pairs: Edges) -> frozenset[int]:
    """Everything reached from some ids along pairs, these included."""
    onward = neighbours(pairs)
    found: set[int] = set()
    waiting = list(start)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += onward[one]
    return frozenset(found)


def critical_path(
    waits: Mapping[int, Sequence[int]], cost: Mapping[int, float] | None = None
) -> tuple[int, ...]:
    """Ids of the dearest chain; of equals the one whose stages come first.

    `waits` has for each id those that it waits for, in an order in which they can run.
    """
    total: dict[int, float] = {}
    chosen: dict[int, int | None] = {}
    for stage, before in waits.items():
        # Lower ids first: which of two equal chains is shown must not depend on the order of the edges.
        best = max(before, key=lambda one: (total[one], -one), default=None)
        own: float = 1 if cost is None else cost.get(stage, 0.0)
        total[stage] = own + (0.0 if best is None else total[best])
        chosen[stage] = best
    path: list[int] = []
    last = max(total, key=lambda stage: (total[stage], -stage), default=None)
    while last is not None:
        path.append(last)
        last = chosen[last]
    return tuple(reversed(path))
