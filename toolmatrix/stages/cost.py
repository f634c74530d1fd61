"""Cost of a plan: by arch, along its critical path, and on other numbers of cores."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.documents import Amount, Annotated, Any, Count, Ordinal, TypedDict
from toolmatrix.stages import model
from toolmatrix.value import Document, Value

if TYPE_CHECKING:
    from toolmatrix.stages.execute import Run
    from toolmatrix.stages.replay import Replay, ReplayStep

# Numbers of cores that a schedule is computed for.
CORES = (1, 2, 4, 8, 16)


class Schedule(Document):
    """A computed run on so many cores: seconds from start to end, and bytes that all running steps need at most."""

    cores: Ordinal
    seconds: Amount
    memory: Count


class ArchCost(Document):
    """Cost of the stages of archs that are made from one another, such as a cubin and the PTX it comes from."""

    archs: tuple[str, ...]
    stages: tuple[Count, ...]
    seconds: Amount
    share: Amount


class CostEntry(TypedDict):
    """The cost of a plan."""

    basis: Annotated[str, "cpu", "wall"]
    seconds: dict[str, Amount]
    total: Amount
    critical_path: list[Count]
    critical_seconds: Amount
    archs: list[Annotated[dict[str, Any], ArchCost]]
    schedules: list[Annotated[dict[str, Any], Schedule]]


class Cost(Value):
    """Cost of a plan in `seconds` per stage id, and what follows from it.

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

    def to_json(self) -> CostEntry:
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
    """The cost by the CPU seconds of a run."""
    # Unlike seconds of the clock they hold when other work shares the cores.
    return cost(
        replay.steps,
        {timing.stage: timing.cpu for timing in run.timings},
        {timing.stage: timing.peak for timing in run.timings},
        basis="cpu",
    )


def cost(
    steps: Sequence[ReplayStep],
    seconds: Mapping[int, float],
    peaks: Mapping[int, int] = {},
    *,
    basis: str = "wall",
    cores: Iterable[int] = CORES,
) -> Cost:
    """The cost of steps by seconds, and bytes of peak memory, per id; what is not given counts nothing."""
    total = sum(seconds.get(step.id, 0.0) for step in steps)
    return Cost(
        basis=basis,
        seconds=dict(seconds),
        peaks=dict(peaks),
        total=total,
        critical=model.critical_path({step.id: step.after for step in steps}, seconds),
        archs=arch_costs(steps, seconds),
        schedules=tuple(schedule(steps, seconds, count, peaks) for count in cores),
    )


def urgency(
    steps: Sequence[ReplayStep], seconds: Mapping[int, float] | None = None
) -> dict[int, float]:
    """For each step the seconds from its start to the end of all that waits for it; each counts one if not known."""
    left: dict[int, float] = {}
    followers = _followers(steps)
    for step in reversed(steps):
        own = 1 if seconds is None else seconds.get(step.id, 0.0)
        left[step.id] = own + max((left[one] for one in followers[step.id]), default=0.0)
    return left


def _followers(steps: Sequence[ReplayStep]) -> Mapping[int, Sequence[int]]:
    return model.neighbours((before, step.id) for step in steps for before in step.after)


def schedule(
    steps: Sequence[ReplayStep],
    seconds: Mapping[int, float],
    cores: int,
    peaks: Mapping[int, int] = {},
) -> Schedule:
    """The run on `cores` cores where of all steps that are ready the one with the longest way to the end goes first."""
    # The shortest run is hard to find. This rule (list scheduling; Graham, Bounds on Multiprocessing Timing Anomalies,
    # 1969) never takes more than twice its time.
    left = urgency(steps, seconds)
    waits = {step.id: len(step.after) for step in steps}
    followers = _followers(steps)
    ready = [(-left[one], one) for one, count in waits.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now, memory, most = 0.0, 0, 0
    while ready or running:
        while ready and len(running) < cores:
            _, one = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds.get(one, 0.0), one))
            memory += peaks.get(one, 0)
            most = max(most, memory)
        now, ended = heapq.heappop(running)
        memory -= peaks.get(ended, 0)
        for one in followers[ended]:
            waits[one] -= 1
            if not waits[one]:
                heapq.heappush(ready, (-left[one], one))
    return Schedule(cores=cores, seconds=now, memory=most)


def _families(steps: Sequence[ReplayStep]) -> set[tuple[str, ...]]:
    by_id = {step.id: step for step in steps}
    families = {step.arch: {step.arch} for step in steps if step.arch}
    for step in steps:
        for before in (by_id[one] for one in step.after):
            # Two stages of one kind share a file, such as the id of the module, and no code.
            if step.arch and before.arch and step.kind != before.kind:
                joined = families[step.arch] | families[before.arch]
                families |= dict.fromkeys(joined, joined)
    return {tuple(sorted(family)) for family in families.values()}


def arch_costs(steps: Sequence[ReplayStep], seconds: Mapping[int, float]) -> tuple[ArchCost, ...]:
    """The cost of each family of archs, dearest first: those of which one stage reads what another wrote."""
    total = sum(seconds.get(step.id, 0.0) for step in steps)
    costs = []
    for archs in _families(steps):
        own = [step for step in steps if step.arch in archs]
        spent = sum(seconds.get(step.id, 0.0) for step in own)
        costs.append(
            ArchCost(
                archs=archs,
                stages=tuple(step.id for step in own),
                seconds=spent,
                share=spent / total if total else 0.0,
            )
        )
    return tuple(sorted(costs, key=lambda one: (-one.seconds, one.archs)))
