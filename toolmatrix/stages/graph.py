"""The graph of stages: who reads what who wrote."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


def predecessors(count: int, pairs: Edges) -> list[list[int]]:
    """For each stage id the ids it waits for, in order."""
    found: list[list[int]] = [[] for _ in range(count)]
    for before, after in pairs:
        found[after].append(before)
    return found


def critical_path(
    count: int, pairs: Edges, cost: Mapping[int, float] | None = None
) -> tuple[int, ...]:
    """Ids of the dearest chain; of equals the one whose stages come first. Edges go from lower to higher ids."""
    waits = predecessors(count, pairs)
    total: list[float] = []
    chosen: list[int | None] = []
    for stage in range(count):
        best = max(waits[stage], key=lambda before: (total[before], -before), default=None)
        chosen.append(best)
        own: float = 1 if cost is None else cost.get(stage, 0.0)
        total.append(own + (0.0 if best is None else total[best]))
    path: list[int] = []
    last = max(range(count), key=lambda stage: (total[stage], -stage), default=None)
    while last is not None:
        path.append(last)
        last = chosen[last]
    return tuple(reversed(path))
