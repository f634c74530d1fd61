"""What `toolmatrix stages` does with a plan beyond showing it: scripts, runs, verification, cost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from toolmatrix.errors import LogError, Position, ToolMissing, UsageError
from toolmatrix.stages import cost, replay, scripts, timing
from toolmatrix.stages.drivers import dry_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.stages import Told
    from toolmatrix.stages.model import Plan
    from toolmatrix.stages.replay import Replay

_WRITERS: Mapping[str, Callable[[Replay, int | None], str]] = {
    "script": lambda made, _: scripts.script(made),
    "ninja": lambda made, jobs: scripts.ninja(made, depth=jobs or 0),
}


def run(context: Context, told: Told) -> int:
    """Do what was asked with the only plan there is; exit 1 when a result differs from the driver's own."""
    options = context.options
    plan = _only(told)
    work = _work(context, told, plan)
    made = replay.replay(
        plan,
        work=work,
        only=options.only,
        until=options.until or None,
        since=options.since or None,
        asked=told.dry.asked if told.dry else (),
    )
    if options.format in _WRITERS:
        if options.run or options.verify or options.cost:
            raise UsageError(f"`--{options.format}` only writes: nothing is run or costed with it")
        context.write(_WRITERS[options.format](made, options.jobs))
        return 0
    if options.format not in ("text", "json"):
        raise UsageError(
            f"a run or its cost cannot be shown as `{options.format}`",
            expected="one of text, json",
        )
    if options.cost:
        if options.run or options.verify:
            raise UsageError("`--cost FILE` and `--run` contradict each other")
        return _cost(context, plan, made)
    return _run(context, told, plan, made)


def _only(told: Told) -> Plan:
    count = len(told.log.plans)
    if count != 1:
        raise UsageError(
            f"the log tells of {count} runs of a driver",
            expected="one, to replay or to cost it",
            help="save the log of one run",
        )
    if told.failure:
        raise told.failure
    return told.log.plans[0]


def _work(context: Context, told: Told, plan: Plan) -> str:
    """Where temp files go, as the commands of the plan see it."""
    from toolmatrix.report.stage_table import sources

    if told.dry:
        return told.dry.work
    options = context.options
    if options.keep_dir:
        return os.path.relpath(options.keep_dir, options.directory or None)
    return dry_run.work_name(sources(plan))


def _cost(context: Context, plan: Plan, made: Replay) -> int:
    """The cost by a table of times."""
    from toolmatrix.report.stage_cost import cost_lines

    path = context.options.cost
    seconds, peaks, basis = _seconds(context, path, made)
    found = cost.cost(made.steps, seconds, peaks, basis=basis)
    if context.options.format == "json":
        _document(context, plan, {"cost": found.to_json()})
    else:
        context.write("\n".join(cost_lines(found, made.steps, context.terminal)) + "\n")
    return 0


def _seconds(
    context: Context, path: str, made: Replay
) -> tuple[Mapping[int, float], Mapping[int, int], str]:
    """Seconds and bytes per stage id, and what the seconds are, from the CSV of nvcc or the JSON of a run."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise LogError(
            "cannot read the times", where=Position(path), found=error.strerror or ""
        ) from None
    if not text.lstrip().startswith("{"):
        phases = timing.read(text.splitlines(), path)
        seconds, unknown = timing.match(phases, made.steps)
        for phase in unknown:
            context.say(f"note: no stage of the plan is `{phase.name}` of {path}:{phase.line}")
        return seconds, {}, "wall"
    try:
        (held,) = (plan["run"]["timings"] for plan in json.loads(text)["plans"])
        return (
            {int(one["stage"]): float(one["cpu"]) for one in held},
            {int(one["stage"]): int(one["peak"]) for one in held},
            "cpu",
        )
    except (ValueError, KeyError, TypeError):
        raise LogError(
            "this is no run of one plan",
            where=Position(path),
            expected="what `toolmatrix stages ... --run --json` printed",
            help="`nvcc -time FILE ...` writes times as well",
        ) from None


def _run(context: Context, told: Told, plan: Plan, made: Replay) -> int:
    """Run the plan, measure it, and compare its results with the driver's where that was asked."""
    from toolmatrix.report import stage_cost
    from toolmatrix.stages import execute
    from toolmatrix.stages.verify import LIMIT, verify

    options = context.options
    if options.verify and told.dry is None:
        raise UsageError(
            "`--verify` asks the driver again",
            expected="a source, not a log",
            help="`toolmatrix stages FILE --verify -- FLAGS`",
        )
    _refuse_what_is_missing(context, told)
    place = Path(options.directory or os.curdir)
    ours = not options.keep_dir and not (place / made.work).exists()
    try:
        measured = execute.run(made, jobs=options.jobs or _cores(), cwd=place)
        verdicts = (
            verify(told.dry, made, cwd=place, limit=options.timeout or LIMIT)
            if options.verify and told.dry
            else ()
        )
    finally:
        if ours:
            shutil.rmtree(place / made.work, ignore_errors=True)
    found = cost.from_run(made, measured)
    if options.format == "json":
        more: dict[str, Any] = {"run": measured.to_json(), "cost": found.to_json()}
        if options.verify:
            more["verdicts"] = [one.to_json() for one in verdicts]
        _document(context, plan, more)
    else:
        kinds = {stage.id: stage.kind for stage in plan.stages}
        lines = [
            *stage_cost.left_out_lines(made, kinds, context.terminal),
            *stage_cost.run_lines(made, measured),
            "",
            *stage_cost.cost_lines(found, made.steps, context.terminal, measured),
            *([""] if verdicts else []),
            *stage_cost.verdict_lines(verdicts, context.terminal),
        ]
        context.write("\n".join(lines) + "\n")
    return int(not all(one.identical for one in verdicts))


# Findings that say what a run cannot do without.
_MISSING = {"TM211": ToolMissing, "TM212": UsageError}


def _refuse_what_is_missing(context: Context, told: Told) -> None:
    """Raise ToolMissing for a program, UsageError for a source that is known not to be there, before anything runs."""
    from toolmatrix.cli.stages import judge
    from toolmatrix.report.findings import IndexWords

    index = context.index()
    for finding in judge(context, told, index):
        if finding.code in _MISSING and finding.severity == "error":
            raise _MISSING[finding.code](
                f"nothing was run: {finding.sentence(IndexWords(index))}",
                help=finding.help(),
            )


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _document(context: Context, plan: Plan, more: Mapping[str, Any]) -> None:
    context.write_json(
        {"schema": "toolmatrix.stages/1", "plans": [plan.to_json() | dict(more)], "diagnostics": []}
    )
