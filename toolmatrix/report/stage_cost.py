"""The time and memory that a replay took and that a plan costs, as lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolmatrix.compilation.cost import Cost
from toolmatrix.compilation.execute import Run
from toolmatrix.compilation.replay import Replay, ReplayStep
from toolmatrix.compilation.verify import Reproduction
from toolmatrix.report.terminal import Terminal, columns, listing, plural

_SCALES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))
_BASES = {"cpu": "the CPU seconds of this run", "wall": "nvcc's own seconds for each phase"}
_PROMISE = "assuming that each stage has a core to itself and nothing else runs: an estimate"


def run_lines(replay: Replay, run: Run) -> list[str]:
    """Each step with what it took, and what all of it took."""
    steps = {step.id: step for step in replay.steps}
    rows = [["#", "stage", "tool", "arch", "wall s", "cpu s", "peak", "wrote"]]
    for timing in run.timings:
        step = steps[timing.stage]
        # Linux counts to a process what the one that started it needed, so a smaller peak says nothing.
        below = "<" if timing.peak <= run.floor else ""
        rows.append(
            [
                str(step.id + 1),
                step.kind,
                step.tool,
                step.arch or "",
                f"{timing.wall:.2f}",
                f"{timing.cpu:.2f}",
                below + size(max(timing.peak, run.floor)),
                size(timing.size),
            ]
        )
    return [
        *columns(rows, right=(0, 4, 5, 6, 7)),
        f"{plural(len(run.timings), 'stage')} in {run.wall:.2f} s with {plural(run.jobs, 'job')} ({_load(run)})",
        *(f"wrote {path}" for path in replay.results),
    ]


def cost_lines(
    cost: Cost, steps: Sequence[ReplayStep], terminal: Terminal, run: Run | None = None
) -> list[str]:
    """The cost by arch, along the critical path and on other numbers of cores, beside what was measured."""
    named = {step.id: step for step in steps}
    seconds = sum(cost.seconds.get(stage, 0.0) for stage in cost.critical)
    path = " > ".join(_step_name(named[stage]) for stage in cost.critical)
    lines = _arch_lines(cost)
    lines += terminal.wrap(f"critical path, {seconds:.2f} of {cost.total:.2f} s: {path}")
    lines += ["", *_schedule_lines(cost, run)]
    lines += terminal.wrap(f"computed from {_BASES[cost.basis]}, {_PROMISE}", indent="")
    # The load before the run is of others alone; the one after it is an average that includes the run itself.
    if run and (run.load[0] > run.cores / 2 or run.load[1] > run.cores):
        note = (
            f"note: other work took part of the cores ({_load(run)}): the measured time is longer for it, and more"
            " jobs would not shorten it"
        )
        lines += terminal.wrap(note, indent="      ")
    return lines


def verdict_lines(verdicts: Sequence[Reproduction], terminal: Terminal) -> list[str]:
    """One line for each result: identical to what the driver makes, or where it differs."""
    lines = []
    for verdict in verdicts:
        if verdict.identical:
            condition = f", given {verdict.given} as in its dry run" if verdict.given else ""
            lines.append(
                f"{verdict.path}: {terminal.style('identical', 'yes')}, byte for byte, to the driver's own{condition}"
            )
            continue
        where = f"first at byte {verdict.offset}"
        if verdict.sections:
            where += f"; sections {listing(verdict.sections)}"
        # Where the driver makes something else each time, ours need not be like any of it.
        if verdict.steady is False:
            result = f"{terminal.style('unknown', 'unknown')}, as the driver's own output differs from run to run"
        else:
            result = f"{terminal.style('differs', 'no')} from the driver's own"
        lines.append(f"{verdict.path}: {result}, {where}")
        lines += [f"  ours:   {verdict.ours}", f"  theirs: {verdict.theirs}"]
        lines += [f"  {verdict.why}"] if verdict.why else []
    return lines


def left_out_lines(replay: Replay, kinds: Mapping[int, str], terminal: Terminal) -> list[str]:
    """The stages that a part of a plan leaves out, the files it needs, and its notes.

    `kinds` are what the plan's stages are called, per id.
    """
    lines: list[str] = []
    if replay.left_out:
        names = [f"{stage + 1} {kinds[stage]}" for stage in replay.left_out]
        lines += terminal.wrap(f"left out: {', '.join(names)}")
    if replay.needed:
        lines += terminal.wrap(f"must exist already: {', '.join(replay.needed)}")
    for note in replay.notes:
        lines += terminal.wrap(f"note: {note}", indent="")
    return lines


def size(count: int) -> str:
    """Bytes as people read them."""
    for scale, unit in _SCALES:
        if count >= scale:
            return f"{count / scale:.0f} {unit}"
    return f"{count} B"


def _arch_lines(cost: Cost) -> list[str]:
    if not cost.archs:
        return []
    rows = [["made for", "seconds", "share", "stages"]]
    rows += [
        [", ".join(arch.archs), f"{arch.seconds:.2f}", f"{arch.share:.0%}", str(len(arch.stages))]
        for arch in cost.archs
    ]
    rest = cost.total - sum(arch.seconds for arch in cost.archs)
    share = rest / cost.total if cost.total else 0
    rows.append(["the rest", f"{rest:.2f}", f"{share:.0%}", ""])
    return [*columns(rows, right=(1, 2, 3)), ""]


def _schedule_lines(cost: Cost, run: Run | None) -> list[str]:
    one_core = cost.schedules[0].seconds if cost.schedules else 0
    header = ["cores", "computed", "faster", *(["memory"] if cost.peaks else []), "measured"]
    rows = [header if run else header[:-1]]
    for schedule in cost.schedules:
        faster = f"{one_core / schedule.seconds:.2f}x" if schedule.seconds else ""
        row = [str(schedule.cores), f"{schedule.seconds:.2f} s", faster]
        row += [size(schedule.memory)] if cost.peaks else []
        # What was measured stands beside the schedule of as many cores as the run could use.
        if run and schedule.cores == min(run.jobs, run.cores):
            row.append(f"{run.wall:.2f} s, {_load(run)}")
        rows.append(row)
    return columns(rows, right=range(4 if cost.peaks else 3))


def _load(run: Run) -> str:
    before, after = run.load
    return f"load {before:.1f} before, {after:.1f} after, on {plural(run.cores, 'core')}"


def _step_name(step: ReplayStep) -> str:
    return " ".join(filter(None, (str(step.id + 1), step.kind, step.arch)))
