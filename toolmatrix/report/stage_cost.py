"""The time and memory that a replay took and that a plan costs, as lines for people."""

from __future__ import annotations

from toolmatrix.report.terminal import columns, listing, pad, plural, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.report.terminal import Terminal
    from toolmatrix.stages.cost import Cost, Schedule
    from toolmatrix.stages.execute import Run
    from toolmatrix.stages.replay import Replay, ReplayStep
    from toolmatrix.stages.verify import Reproduction

_SCALES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))
_BASES = {"cpu": "the CPU seconds of this run", "wall": "nvcc's own seconds for each phase"}
_PROMISE = "as if each stage had a core to itself and nothing else ran: no promise"


def run_lines(replay: Replay, run: Run) -> list[str]:
    """Each step with what it took, and what all of it took."""
    steps = {step.id: step for step in replay.steps}
    rows = [["#", "stage", "tool", "arch", "wall s", "cpu s", "peak", "wrote"]]
    for timing in run.timings:
        step = steps[timing.stage]
        below = timing.peak <= run.floor
        rows.append(
            [
                str(step.id + 1),
                step.kind,
                step.tool,
                step.arch or "",
                f"{timing.wall:.2f}",
                f"{timing.cpu:.2f}",
                ("<" if below else "") + size(max(timing.peak, run.floor)),
                size(timing.size),
            ]
        )
    return [
        *_table(rows, "wall s", "cpu s", "peak", "wrote", "#"),
        f"{_stages(run)} in {run.wall:.2f} s with {plural(run.jobs, 'job')} ({_load(run)})",
        *(f"wrote {path}" for path in replay.results),
    ]


def cost_lines(
    cost: Cost, steps: Sequence[ReplayStep], terminal: Terminal, run: Run | None = None
) -> list[str]:
    """The cost by arch, along the critical path and on other numbers of cores, beside what was measured."""
    named = {step.id: step for step in steps}
    seconds = sum(cost.seconds.get(one, 0.0) for one in cost.critical)
    path = " > ".join(_short(named[one]) for one in cost.critical)
    lines = _arch_lines(cost)
    lines += wrap(
        f"critical path, {seconds:.2f} of {cost.total:.2f} s: {path}",
        terminal.width,
        indent="  ",
        first="",
    )
    lines += ["", *_schedule_lines(cost, run)]
    note = f"computed from {_BASES[cost.basis]}, {_PROMISE}"
    lines += wrap(note, terminal.width)
    if run and _crowded(run):
        lines += wrap(
            f"note: other work took part of the cores ({_load(run)}): the measured time is longer for it, and more"
            " jobs would not shorten it",
            terminal.width,
            indent="      ",
            first="",
        )
    return lines


def verdict_lines(verdicts: Sequence[Reproduction], terminal: Terminal) -> list[str]:
    """One line for each result: identical to what the driver makes, or where it differs."""
    lines = []
    for verdict in verdicts:
        if verdict.identical:
            given = f", given {verdict.given} as in its dry run" if verdict.given else ""
            lines.append(
                f"{verdict.path}: {terminal.style('identical', 'yes')}, byte for byte, to the driver's own{given}"
            )
            continue
        where = f"first at byte {verdict.offset}"
        if verdict.sections:
            where += f"; sections {listing(verdict.sections)}"
        if verdict.steady is False:
            word = f"{terminal.style('unknown', 'unknown')}, for the driver's own differs from run to run"
        else:
            word = f"{terminal.style('differs', 'no')} from the driver's own"
        lines.append(f"{verdict.path}: {word}, {where}")
        lines += [f"  ours:   {verdict.ours}", f"  theirs: {verdict.theirs}"]
        lines += [f"  {verdict.why}"] if verdict.why else []
    return lines


def left_out_lines(replay: Replay, kinds: Mapping[int, str], terminal: Terminal) -> list[str]:
    """The stages that a part of a plan leaves out, the files it needs, and its notes.

    `kinds` are what the plan's stages are called, per id.
    """
    lines: list[str] = []
    if replay.left_out:
        names = [f"{one + 1} {kinds[one]}" for one in replay.left_out]
        lines += wrap(f"left out: {', '.join(names)}", terminal.width, indent="  ", first="")
    if replay.needed:
        needed = ", ".join(replay.needed)
        lines += wrap(f"has to be there already: {needed}", terminal.width, indent="  ", first="")
    return lines + [line for note in replay.notes for line in wrap(f"note: {note}", terminal.width)]


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
    return [*_table(rows, "seconds", "share", "stages"), ""]


def _schedule_lines(cost: Cost, run: Run | None) -> list[str]:
    one_core = cost.schedules[0].seconds if cost.schedules else 0
    header = ["cores", "computed", "faster", *(["memory"] if cost.peaks else []), "measured"]
    rows = [header if run else header[:-1]]
    for schedule in cost.schedules:
        faster = f"{one_core / schedule.seconds:.2f}x" if schedule.seconds else ""
        row = [str(schedule.cores), f"{schedule.seconds:.2f} s", faster]
        row += [size(schedule.memory)] if cost.peaks else []
        rows.append(row + ([_measured(schedule, run)] if run else []))
    return _table(rows, "cores", "computed", "faster", "memory")


def _measured(schedule: Schedule, run: Run) -> str:
    if schedule.cores != min(run.jobs, run.cores):
        return ""
    return f"{run.wall:.2f} s, {_load(run)}"


def _crowded(run: Run) -> bool:
    """Return whether more was running than this machine has cores, or than this run can have caused."""
    # The load before the run is of others alone; the one after it is an average that includes the run itself.
    return run.load[0] > run.cores / 2 or run.load[1] > run.cores


def _stages(run: Run) -> str:
    return plural(len(run.timings), "stage")


def _load(run: Run) -> str:
    before, after = run.load
    return f"load {before:.1f} before, {after:.1f} after, on {plural(run.cores, 'core')}"


def _short(step: ReplayStep) -> str:
    return " ".join(filter(None, (str(step.id + 1), step.kind, step.arch)))


def _table(rows: Sequence[Sequence[str]], *right: str) -> list[str]:
    """Aligned columns; those headed by one of `right` to the right."""
    head = rows[0]
    widths = [max(len(row[index]) for row in rows) for index in range(len(head))]
    return columns(
        [
            [pad(cell, widths[index], right=head[index] in right) for index, cell in enumerate(row)]
            for row in rows
        ]
    )
