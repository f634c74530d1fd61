"""Cost of a plan by the times of its stages: by arch, along its critical path, and on other numbers of cores.

Times are those of the table that `nvcc -time FILE` writes, for each phase, or what a run of a replay measured.
"""

from __future__ import annotations

import csv
import heapq
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.compilation import model
from toolmatrix.compilation.compare import own_name
from toolmatrix.compilation.replay import Replay, ReplayStep
from toolmatrix.documents import Amount, Annotated, Any, Count, Ordinal, TypedDict
from toolmatrix.errors import LogError, Position, UsageError
from toolmatrix.opener import read_file
from toolmatrix.value import Document, Value

if TYPE_CHECKING:
    from toolmatrix.compilation.execute import Run


HEADER = ("source file name", "phase name", "phase input files", "phase output file", "arch")
# Bytes of a file.
_LARGEST = 64 << 20
# Characters of a row that count; the csv module refuses more than twice as many in a field.
_LONGEST = 1 << 16
_UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# Phases whose program alone does not determine the kind of the stage.
_KINDS = (
    (re.compile(r".*\(preprocessing"), "preprocess"),
    (re.compile(r"cudafe"), "cudafe"),
    (re.compile(r".*\(compiling"), "host-compile"),
    (re.compile(r".*\(linking"), "link"),
)


class Phase(Value):
    """One row: `output` is the file's name without directory and pid, `seconds` are on the clock."""

    line: int
    name: str
    output: str
    arch: str
    seconds: float

    @property
    def kind(self) -> str:
        """The kind of stage that it is."""
        return next((kind for words, kind in _KINDS if words.match(self.name)), self.name)


def seconds_of(
    path: str, steps: Sequence[ReplayStep], note: Callable[[str], None]
) -> tuple[Mapping[int, float], Mapping[int, int], str]:
    """Seconds and bytes per stage id, and what the seconds are, from the CSV of nvcc or the JSON of a run.

    `note` is called for rows that match no step. Raises LogError, UsageError.
    """
    try:
        data = read_file(path, _LARGEST)
    except OSError as error:
        raise LogError(
            "cannot read the times", where=Position(path), found=error.strerror or ""
        ) from None
    if data is None:
        expected = f"at most {_LARGEST >> 20} MiB"
        raise LogError("the times are too large", where=Position(path), expected=expected)
    text = data.decode("utf-8", "replace")
    # Neither file has a name of its own kind; only a document begins with a brace.
    if not text.lstrip().startswith("{"):
        phases = read_times(text.splitlines(), path)
        seconds, unknown = match_times(phases, steps)
        for phase in unknown:
            note(f"no stage of the plan matches `{phase.name}` of {path}:{phase.line}")
        return seconds, {}, "wall"
    try:
        (timings,) = (plan["run"]["timings"] for plan in json.loads(text)["plans"])
        return (
            {int(timing["stage"]): float(timing["cpu"]) for timing in timings},
            {int(timing["stage"]): int(timing["peak"]) for timing in timings},
            "cpu",
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise LogError(
            "this is not a run of one plan",
            where=Position(path),
            expected="the output of `toolmatrix stages ... --run --json`",
            help="`nvcc -time FILE ...` writes times as well",
        ) from None


def read_times(lines: Iterable[str], name: str) -> tuple[Phase, ...]:
    """The rows of a table; other lines of the same stream are skipped.

    `name` is the file in errors. Raises UsageError where there is no such table or a row of it is damaged.
    """
    # The csv module refuses NUL, which a cut log may hold, and a quote in a path is no quoting.
    plain = (line[:_LONGEST].replace("\0", "").replace('"', "") for line in lines)
    phases: list[Phase] = []
    header_at = 0
    for line_number, row in enumerate(csv.reader(plain, skipinitialspace=True), 1):
        cells = [cell.strip() for cell in row]
        if tuple(cells[: len(HEADER)]) == HEADER:
            header_at = line_number
        elif header_at and len(cells) >= len(HEADER) + 3:
            phases.append(_phase(cells, Position(name, line_number)))
    if not header_at:
        raise UsageError(
            "this is not a table of `nvcc -time`",
            where=Position(name),
            expected=f"a line `{', '.join(HEADER)}, ...`",
            help="`nvcc -time FILE ...` writes one",
        )
    return tuple(phases)


def _phase(cells: Sequence[str], where: Position) -> Phase:
    amount, unit = cells[-2], cells[-1]
    try:
        seconds = float(amount) * _UNITS[unit]
    except (KeyError, ValueError):
        raise UsageError(
            "a row of nvcc's times cannot be read",
            where=where,
            expected=f"a number and one of {', '.join(_UNITS)} at its end",
            found=f"{amount} , {unit}",
        ) from None
    return Phase(
        line=where.line, name=cells[1], output=own_name(cells[3]), arch=cells[4], seconds=seconds
    )


def match_times(
    phases: Sequence[Phase], steps: Sequence[ReplayStep]
) -> tuple[Mapping[int, float], tuple[Phase, ...]]:
    """Seconds per stage id, and the phases that match no step.

    A phase is the first free step that writes its output, else the first free one of its kind and arch.
    """
    seconds: dict[int, float] = {}
    unknown: list[Phase] = []
    for phase in phases:
        free = [step for step in steps if step.id not in seconds]
        by_output = [step for step in free if phase.output and phase.output in _written(step)]
        by_kind = [
            step
            for step in free
            if step.kind == phase.kind and (step.arch or "") in ("", phase.arch)
        ]
        if candidates := by_output or by_kind:
            seconds[candidates[0].id] = phase.seconds
        else:
            unknown.append(phase)
    return seconds, tuple(unknown)


def _written(step: ReplayStep) -> set[str]:
    names = {own_name(path) for path in step.outputs}
    # nvcc's table names the byte array of a fatbinary after the binary inside.
    return names | {name.removesuffix(".c") for name in names if name.endswith(".fatbin.c")}


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
            "schedules": [planned.to_json() for planned in self.schedules],
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
    """The cost of steps by seconds, and bytes of peak memory, per id; a missing one counts as zero."""
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
        left[step.id] = own + max((left[follower] for follower in followers[step.id]), default=0.0)
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
    ready = [(-left[stage], stage) for stage, count in waits.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now, memory, most = 0.0, 0, 0
    while ready or running:
        while ready and len(running) < cores:
            _, stage = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds.get(stage, 0.0), stage))
            memory += peaks.get(stage, 0)
            most = max(most, memory)
        now, ended = heapq.heappop(running)
        memory -= peaks.get(ended, 0)
        for stage in followers[ended]:
            waits[stage] -= 1
            if not waits[stage]:
                heapq.heappush(ready, (-left[stage], stage))
    return Schedule(cores=cores, seconds=now, memory=most)


def _families(steps: Sequence[ReplayStep]) -> set[tuple[str, ...]]:
    by_id = {step.id: step for step in steps}
    families = {step.arch: {step.arch} for step in steps if step.arch}
    for step in steps:
        for before in (by_id[stage] for stage in step.after):
            # Two stages of one kind share a file, such as the id of the module, and no code.
            if step.arch and before.arch and step.kind != before.kind:
                joined = families[step.arch] | families[before.arch]
                families |= dict.fromkeys(joined, joined)
    return {tuple(sorted(family)) for family in families.values()}


def arch_costs(steps: Sequence[ReplayStep], seconds: Mapping[int, float]) -> tuple[ArchCost, ...]:
    """The cost of each family of archs (one stage reads what another wrote), dearest first."""
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
    return tuple(sorted(costs, key=lambda arch_cost: (-arch_cost.seconds, arch_cost.archs)))
