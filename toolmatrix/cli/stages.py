"""`toolmatrix stages`: what a driver would run, shown, judged, compared, replayed and costed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from toolmatrix.cli import stage_log
from toolmatrix.errors import NothingMatched, ToolMissing, UsageError
from toolmatrix.report.answer import head
from toolmatrix.request.names import Names
from toolmatrix.stages.log import parse_log
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Finding
    from toolmatrix.stages.drivers.dry_run import DryRun
    from toolmatrix.stages.model import Log, Plan

_PAIR = "diff"
_LIVE_ONLY = ("arch", "driver", "timeout", "verify")
_ARCH_WORDS = (
    *("-arch", "--gpu-architecture", "-gencode", "--generate-code"),
    *("--offload-arch", "--cuda-gpu-arch"),
)
_UNLISTED = re.compile(r"\d+\.\d+|gfx\w+")
# Seconds that the graph program may take.
_PATIENCE = 60


class Told(Value):
    """What a driver said: where that was read, how it was asked if it was, and how it failed if it did."""

    log: Log
    where: str = ""
    dry: DryRun | None = None
    failure: ToolMissing | None = None


def run(context: Context) -> int:
    """Show plans and judge them; exit 1 when a driver failed in a log or a finding is an error."""
    if context.arguments[:1] == (_PAIR,):
        return _diff(context)
    told = _told(context)
    options = context.options
    if told.failure and options.format == "text" and not _has_stages(told.log):
        code = _show_findings(context, told)
    elif options.run or options.verify or options.cost or options.format in ("script", "ninja"):
        from toolmatrix.cli import stage_run

        code = stage_run.run(context, told)
    else:
        code = show(context, told)
    if told.failure is None:
        return code
    if options.format == "json":
        return told.failure.exit_code
    context.finish()
    raise told.failure


def _told(context: Context) -> Told:
    """The plans of the log or of the driver's dry run; raises UsageError for both or neither."""
    options = context.options
    if not options.from_log:
        if not context.arguments:
            raise UsageError(
                "`stages` needs a source or a log",
                expected="FILE..., or --from-log FILE",
                found="neither",
                help="`toolmatrix help stages` shows examples",
            )
        return _ask(context, context.arguments, options.driver)
    given = [*context.arguments, *(["--", *context.passed] if context.passed else [])]
    given += [
        origin.name
        for name in _LIVE_ONLY
        if (origin := context.origins[name]).kind == "flag" and options[name]
    ]
    if given:
        raise UsageError(
            f"`--from-log` and `{given[0]}` contradict each other",
            help="a log tells of what a driver was asked; leave out one of them",
        )
    log = stage_log.read(context, options.from_log)
    return Told(log=log, where=stage_log.called(options.from_log))


def _ask(context: Context, sources: Sequence[str], named: str) -> Told:
    """What a driver says to some sources and the flags after `--`."""
    from toolmatrix.stages.drivers import dry_run

    options = context.options
    flags = [*context.passed]
    archs = options.arch
    if context.origins["arch"].kind != "flag" and any(
        word.startswith(_ARCH_WORDS) for word in flags
    ):
        archs = ()  # what a file or a variable sets gives way to what was said to the driver itself
    flags += _arch_flags(archs, dry_run.find(sources, [*flags, *archs], named or None)[0].name)
    dry = dry_run.dry_run(
        sources,
        flags,
        named or None,
        work=os.path.relpath(options.keep_dir, options.directory or None)
        if options.keep_dir
        else "",
        limit=options.timeout or dry_run.LIMIT,
        environ=context.env,
        cwd=Path(options.directory or os.curdir),
    )
    for note in dry.notes:
        context.say(f"note: {note}")
    told = Told(log=parse_log(dry.text.split("\n")), dry=dry, failure=dry.failure())
    if told.failure and told.log.plans:
        return told.replace(log=_with_version(told.log, dry_run.version(dry)))
    if _has_stages(told.log):
        return told
    raise told.failure or ToolMissing(
        f"`{dry.program}` printed no command",
        found=dry.text.strip(),
        help="some flags make a driver do something else than compile; leave them out",
    )


def _has_stages(log: Log) -> bool:
    return any(plan.stages for plan in log.plans)


def _with_version(log: Log, version: str) -> Log:
    """A log in which runs that ended before they told their version have that of the driver."""
    plans = [one.replace(version=one.version or version) for one in log.plans]
    return log.replace(plans=tuple(plans))


def _arch_flags(archs: Sequence[str], family: str) -> list[str]:
    """The driver's own flags for codegen archs: as `nvcc -arch=sm_NN` means it, SASS and the PTX that it is made of."""
    if family != "nvcc":
        return [f"--offload-arch={arch}" for arch in archs]
    if len(archs) == 1:
        return [f"-arch={archs[0]}"]
    pairs = [(arch.replace("sm_", "compute_"), arch) for arch in archs]
    return [
        f"-gencode=arch={virtual},code={f'[{arch},{virtual}]' if arch != virtual else arch}"
        for virtual, arch in pairs
    ]


def show(context: Context, told: Told) -> int:
    """Print the plans in the format asked for."""
    from toolmatrix.report import stages as report

    options = context.options
    log = told.log.replace(plans=tuple(_part(context, plan) for plan in told.log.plans))
    if options.format in _forms():
        context.write(_forms()[options.format](log))
        return code_of(log, ())
    from toolmatrix.report import findings

    index = context.index()
    found = judge(context, told, index)
    if options.format == "json":
        context.write_json(
            log.to_json()
            | {"matrix": head(index), "findings": findings.plan_document(index, found)}
        )
    else:
        context.write(
            report.text(
                log,
                told.where,
                context.terminal,
                full=bool(options.verbose),
                explain=options.explain,
            )
        )
        words = findings.plan_text(index, found, context.terminal)
        context.write(f"\n{words}" if words else "")
    return code_of(log, found)


def _show_findings(context: Context, told: Told) -> int:
    """Print what is known about a driver that gave up before its first command."""
    from toolmatrix.report import findings

    index = context.index()
    context.write(findings.plan_text(index, judge(context, told, index), context.terminal))
    return 1


def judge(context: Context, told: Told, index: Index) -> list[Finding]:
    """What the matrix says of the plans, and of the devices that were asked for."""
    from toolmatrix.judge import stages
    from toolmatrix.judge.stages import Here

    names = Names(index)
    here = Here(has_program=_is_found, has_file=lambda path: os.path.exists(context.path(path)))
    return stages.findings(
        told.log.plans,
        index,
        tuple(_device(names, device) for device in context.options.device),
        path=told.where,
        asked=told.dry.asked if told.dry else None,
        here=here if told.dry or context.options.run else None,
    )


def _device(names: Names, device: str) -> str:
    """A device as the facts call it; a capability or gfx that they do not know stays as it is, to be told unknown."""
    name, colon, features = device.partition(":") if device.startswith("gfx") else (device, "", "")
    try:
        return names.device(name) + colon + features
    except NothingMatched:
        if _UNLISTED.fullmatch(name):
            return device
        raise


def _is_found(program: str, path: str) -> bool:
    """Whether a program is on the PATH that the driver printed, or on this process's where it printed none."""
    return shutil.which(program, path=path or None) is not None


def code_of(log: Log, found: Sequence[Finding]) -> int:
    """1 when a driver failed or a finding is an error."""
    said = [one.severity for plan in log.plans for one in plan.diagnostics]
    return int("error" in [*said, *(one.severity for one in found)])


def _part(context: Context, plan: Plan) -> Plan:
    """The stages of a plan that were asked for, with the ids that they have in the whole."""
    options = context.options
    if not (options.only or options.since or options.until):
        return plan
    from toolmatrix.stages.replay import select

    chosen = select(
        plan,
        only=options.only,
        until=options.until or None,
        since=options.since or None,
    )
    return plan.replace(
        stages=tuple(stage for stage in plan.stages if stage.id in chosen),
        edges=tuple(edge for edge in plan.edges if chosen.issuperset(edge)),
    )


def _forms() -> dict[str, Callable[[Log], str]]:
    from toolmatrix.report import stage_graphs, stages

    return {
        "raw": stages.raw,
        "dot": stage_graphs.dot,
        "mermaid": stage_graphs.mermaid,
        "svg": lambda log: _drawn(stage_graphs.dot(log)),
    }


def _drawn(graph: str) -> str:
    """A graph in the DOT language as SVG; raises ToolMissing without graphviz."""
    import subprocess

    program = shutil.which("dot")
    if program is None:
        raise ToolMissing(
            "`dot` is not on PATH",
            help="install graphviz (Debian and Ubuntu: `apt-get install graphviz`), or take `--dot` or `--mermaid`",
        )
    try:
        made = subprocess.run(  # noqa: S603 - a program from PATH, no shell, the graph on its stdin
            [program, "-Tsvg"],
            input=graph.encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(
            f"`dot` did not finish within {_PATIENCE} s and was ended",
            help="draw a part with `--only`, `--since` or `--until`, or take `--dot`",
        ) from None
    if made.returncode:
        said = made.stderr.decode("utf-8", "replace").strip()
        raise ToolMissing(f"`dot` failed with exit code {made.returncode}", found=said)
    return made.stdout.decode("utf-8")


def _diff(context: Context) -> int:
    """`stages diff A B`: two logs, or two drivers on the sources that follow them."""
    from toolmatrix.report import stage_diff
    from toolmatrix.stages.compare import compare

    if len(context.arguments) < 3:
        raise UsageError(
            "`stages diff` needs OLD NEW",
            expected="two logs, or two drivers and a source",
            help="a source that is called `diff` is `./diff`",
        )
    first, second, *sources = context.arguments[1:]
    if first == second == "-":
        raise UsageError("only one of the two logs can be `-`")
    if context.passed and not sources:
        raise UsageError(
            "flags after `--` go to a driver", expected="`stages diff OLD NEW FILE... -- FLAGS`"
        )
    if context.options.format not in ("text", "json"):
        raise UsageError(
            f"`stages diff` has no format `{context.options.format}`", expected="one of text, json"
        )
    sides = [_side(context, one, sources) for one in (first, second)]
    old, new = ((name, told.log) for name, told in zip((first, second), sides, strict=True))
    found = compare(old[1], new[1])
    if context.options.format == "json":
        context.write_json(stage_diff.document(old, new, found))
    else:
        by_default = _by_default(context.index())
        context.write(stage_diff.text(old, new, found, context.terminal, by_default))
    return int(context.options.exit_code and bool(found))


def _by_default(index: Index) -> Callable[[Plan], bool]:
    from toolmatrix.judge import stage_archs
    from toolmatrix.judge.stages import PlanContext

    return lambda plan: bool(stage_archs.defaults(PlanContext(plan, index)))


def _side(context: Context, name: str, sources: Sequence[str]) -> Told:
    if sources:
        told = _ask(context, sources, name)
        if told.failure:
            raise told.failure
        return told
    return Told(log=stage_log.read(context, context.path(name)))
