"""What a plan costs: by arch, along its critical path, and on other numbers of cores."""

from __future__ import annotations

import heapq
import json

from toolmatrix.errors import Position, UsageError
from toolmatrix.stages import timing
from toolmatrix.stages.execute import urgency
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.stages.execute import Run
    from toolmatrix.stages.replay import Replay, Step

CORES = (1, 2, 4, 8, 16)
"""Numbers of cores that a schedule is computed for."""


class Schedule(Value):
    """A computed run on so many cores: seconds from start to end, and bytes that all running steps need at most."""

    cores: int
    seconds: float
    memory: int

    def to_json(self) -> dict[str, Any]:
        """The schedule as JSON holds it."""
        return {field: getattr(self, field) for field in self._fields}


class ArchCost(Value):
    """What the stages of some archs cost that are made from one another, such as a cubin and the PTX it comes from."""

    archs: tuple[str, ...]
    stages: tuple[int, ...]
    seconds: float
    share: float

    def to_json(self) -> dict[str, Any]:
        """The cost as JSON holds it."""
        return {**{field: getattr(self, field) for field in self._fields}} | {
            "archs": list(self.archs),
            "stages": list(self.stages),
        }


class Cost(Value):
    """What a plan costs in `seconds` per stage id, and what follows from it.

    `basis` says where the seconds come from: `cpu` of a run, or `wall` of nvcc's -time. `total` is their sum,
    `critical` the ids of the chain that takes longest.
    """

    basis: str
    seconds: Mapping[int, float]
    peaks: Mapping[int, int]
    total: float
    critical: tuple[int, ...]
    archs: tuple[ArchCost, ...]
    schedules: tuple[Schedule, ...]

    def to_json(self) -> dict[str, Any]:
        """The cost as JSON holds it."""
        return {
            "basis": self.basis,
            "seconds": {str(stage): value for stage, value in self.seconds.items()},
            "total": self.total,
            "critical_path": list(self.critical),
            "critical_seconds": sum(self.seconds.get(stage, 0.0) for stage in self.critical),
            "archs": [arch.to_json() for arch in self.archs],
            "schedules": [one.to_json() for one in self.schedules],
        }


def from_run(replay: Replay, run: Run) -> Cost:
    """The cost by the CPU seconds of a run: unlike those of the clock they hold when other work shares the cores."""
    return cost(
        replay.steps,
        {timing.stage: timing.cpu for timing in run.timings},
        {timing.stage: timing.peak for timing in run.timings},
        basis="cpu",
    )


def from_file(steps: Sequence[Step], text: str, name: str) -> tuple[Cost, tuple[timing.Phase, ...]]:
    """The cost by a saved table of nvcc's -time or the saved JSON of a run, and the phases that no step stands for.

    `name` is the file as errors call it. Raises UsageError where it is neither.
    """
    if text.lstrip().startswith("{"):
        timings = [one for one in _timings(text, name) if one["stage"] in {s.id for s in steps}]
        seconds = {one["stage"]: float(one["cpu"]) for one in timings}
        peaks = {one["stage"]: int(one["peak"]) for one in timings}
        return cost(steps, seconds, peaks, basis="cpu"), ()
    matched, unknown = timing.match(timing.read(text.splitlines(), name), steps)
    return cost(steps, matched), unknown


def _timings(text: str, name: str) -> list[dict[str, Any]]:
    try:
        found = _first_timings(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    if not found or not all(map(_is_timing, found)):
        raise UsageError(
            "this is no run of stages",
            where=Position(name),
            expected="the document that --run --json prints, or the table of `nvcc -time FILE`",
        )
    return found


def _first_timings(value: Any) -> list[Any] | None:
    """The first list called `timings` in a document, wherever it is."""
    if isinstance(value, dict) and isinstance(value.get("timings"), list):
        return list(value["timings"])
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_first_timings, inner)), None)


def _is_timing(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(field), (int, float)) for field in ("stage", "cpu", "peak")
    )


def cost(
    steps: Sequence[Step],
    seconds: Mapping[int, float],
    peaks: Mapping[int, int] | None = None,
    *,
    basis: str = "wall",
    cores: Iterable[int] = CORES,
) -> Cost:
    """The cost of steps by seconds, and bytes of peak memory, per id; what is not given counts nothing."""
    total = sum(seconds.get(step.id, 0.0) for step in steps)
    return Cost(
        basis=basis,
        seconds=dict(seconds),
        peaks=dict(peaks or {}),
        total=total,
        critical=critical_path(steps, seconds),
        archs=arch_costs(steps, seconds),
        schedules=tuple(schedule(steps, seconds, count, peaks) for count in cores),
    )


def critical_path(steps: Sequence[Step], seconds: Mapping[int, float]) -> tuple[int, ...]:
    """Ids of the chain of steps that takes longest, each waiting for the one before; of equals the first."""
    left = urgency(steps, seconds)
    path: list[int] = []
    onward = [step.id for step in steps]
    while onward:
        path.append(max(onward, key=lambda one: (left[one], -one)))
        onward = [step.id for step in steps if path[-1] in step.after]
    return tuple(path)


def schedule(
    steps: Sequence[Step],
    seconds: Mapping[int, float],
    cores: int,
    peaks: Mapping[int, int] | None = None,
) -> Schedule:
    """The run on `cores` cores where of all steps that are ready the one with the longest way to the end goes first.

    That rule (list scheduling; Graham, Bounds on Multiprocessing Timing Anomalies, 1969) never takes more than twice
    the shortest possible time.
    """
    left = urgency(steps, seconds)
    waits = {step.id: len(step.after) for step in steps}
    followers: dict[int, list[int]] = {step.id: [] for step in steps}
    for step in steps:
        for before in step.after:
            followers[before].append(step.id)
    ready = [(-left[one], one) for one, count in waits.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now, memory, most = 0.0, 0, 0
    while ready or running:
        while ready and len(running) < cores:
            _, one = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds.get(one, 0.0), one))
            memory += (peaks or {}).get(one, 0)
            most = max(most, memory)
        now, ended = heapq.heappop(running)
        memory -= (peaks or {}).get(ended, 0)
        for one in followers[ended]:
            waits[one] -= 1
            if not waits[one]:
                heapq.heappush(ready, (-left[one], one))
    return Schedule(cores=cores, seconds=now, memory=most)


def arch_costs(steps: Sequence[Step], seconds: Mapping[int, float]) -> tuple[ArchCost, ...]:
    """The cost of each family of archs, dearest first: those of which one stage reads what another wrote."""
    total = sum(seconds.get(step.id, 0.0) for step in steps)
    by_id = {step.id: step for step in steps}
    family = {step.arch: step.arch for step in steps if step.arch}

    def head(arch: str) -> str:
        while family[arch] != arch:
            arch = family[arch]
        return arch

    for step in steps:
        for before in (by_id[one] for one in step.after):
            # Two stages of one kind share a file, such as the id of the module, and no code.
            if step.arch and before.arch and step.kind != before.kind:
                family[head(step.arch)] = head(before.arch)
    costs = []
    for first in dict.fromkeys(head(arch) for arch in family):
        own = [step for step in steps if step.arch and head(step.arch) == first]
        spent = sum(seconds.get(step.id, 0.0) for step in own)
        costs.append(
            ArchCost(
                archs=tuple(sorted({step.arch for step in own if step.arch})),
                stages=tuple(step.id for step in own),
                seconds=spent,
                share=spent / total if total else 0.0,
            )
        )
    return tuple(sorted(costs, key=lambda one: (-one.seconds, one.archs)))
