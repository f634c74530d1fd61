"""Plans for people and machines: as text, as commands, and as the document `toolmatrix.stages/1`."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.report import terminal
from toolmatrix.report.stage_table import FileNames, products, sources, table
from toolmatrix.report.stage_words import prose_of
from toolmatrix.report.terminal import Terminal
from toolmatrix.stages.compare import host_compiler
from toolmatrix.stages.model import Diagnostic, Log, Plan

# So many files are named in a heading.
_NAMED = 3
# So many archs are named in a total.
_ARCHS = 8
# So many diagnostics of one plan are shown; `full` shows all.
_SHOWN = 10
_STYLES = {"error": "error", "warning": "partial", "note": "unknown"}


def text(
    log: Log,
    where: str,
    screen: Terminal,
    *,
    full: bool = False,
    explain: bool = False,
    place: str = "",
) -> str:
    """Every plan of a log with a heading, its stages and what there is to know of it; then a total.

    `where` is what the log is called, empty for a dry run of our own; `place` is what is said of where plans come from
    that come from neither. `full` leaves nothing out, `explain` adds a
    sentence for each stage.
    """
    several = len(log.plans) > 1
    seen: dict[object, int] = {}
    blocks = []
    for number, plan in enumerate(log.plans, 1):
        origin = f"{where}:{plan.line}" if where else place or "dry run: nothing executed"
        like = number if full else seen.setdefault(_shape(plan), number)
        shown = (
            table(plan, screen, full=full, explain=explain)
            if like == number and plan.stages
            else []
        )
        alike = f", as in {like}" if like != number and plan.stages else ""
        blocks.append(
            [
                *heading(plan, origin, screen, number=number if several else 0),
                *shown,
                *diagnostics(plan.diagnostics, screen, full=full),
                *screen.wrap(_counted([plan]) + alike),
            ]
        )
    closing = [*diagnostics(log.diagnostics, screen, full=full)]
    if several:
        closing += screen.wrap(_counted(log.plans))
    return terminal.blocks([*blocks, closing])


def heading(plan: Plan, where: str, screen: Terminal, *, number: int = 0) -> list[str]:
    """The driver with its version, what it makes of what, and where that was read; `number` counts from 1."""
    parts = [(f"{number}. " if number else "") + title(plan)]
    if compiler := host_compiler(plan):
        parts.append(f"host compiler {_release(compiler)}")
    parts.append(where)
    # The first line is broken as if it were indented as well.
    lines = screen.wrap(terminal.printable(", ".join(parts)), first="  ")
    return [screen.style(lines[0].strip(), "bold"), *lines[1:]]


def title(plan: Plan) -> str:
    """The driver with its version, and what it makes of what: `nvcc 12.4: a.cu, b.cu -> app`."""
    named = f"{plan.tool} {plan.version}".rstrip()
    if plan.tool == "hipcc":
        # The release of HIP counts; the clang below it has versions of its own.
        version = f"(clang {plan.version})" if plan.version else ""
        named = " ".join(filter(None, (plan.tool, plan.hip, version)))
    names = FileNames(plan)
    of, made = (
        terminal.some(list(map(names.of, paths)), _NAMED)
        for paths in (sources(plan), products(plan))
    )
    makes = f"{of} -> {made}" if of and made else of or made
    return ": ".join(filter(None, (named, makes)))


def _release(compiler: str) -> str:
    # A front end is told the version as one number: `gnu 120200` is gnu 12.2.0.
    name, _, number = compiler.partition(" ")
    if name == "microsoft" or not number.isdigit():
        return compiler
    major, rest = divmod(int(number), 10_000)
    # GCC has no release X.0.0: where a plan has this number, the series is all that is known.
    if name == "gnu" and not rest:
        return f"{name} {major}"
    return f"{name} {major}.{rest // 100}.{rest % 100}"


def diagnostics(found: Sequence[Diagnostic], screen: Terminal, *, full: bool) -> list[str]:
    """Messages of a driver and of its reader, each with its stage and line."""
    lines: list[str] = []
    shown = found if full else found[:_SHOWN]
    for one in shown:
        place = [f"stage {one.stage + 1}"] if one.stage is not None else []
        place += [f"line {one.line}"] if one.line else []
        message = terminal.printable(one.text) + (f" ({', '.join(place)})" if place else "")
        severity = screen.style(one.severity, _STYLES.get(one.severity, "unknown"))
        lines += screen.wrap(message, f"{severity}: ")
    if len(shown) < len(found):
        lines.append(f"and {len(found) - len(shown)} more; `-v` shows all")
    return lines


def _shape(plan: Plan) -> object:
    # A build compiles many files in one way; a plan like one above is not laid out again.
    return (
        plan.tool,
        plan.version,
        tuple((prose_of(plan, stage).name, stage.tool, stage.arch) for stage in plan.stages),
    )


def _counted(plans: Sequence[Plan]) -> str:
    counted = terminal.plural(sum(len(plan.stages) for plan in plans), "stage")
    if len(plans) > 1:
        counted = f"{terminal.plural(len(plans), 'invocation')}, {counted}"
    named = list(dict.fromkeys(stage.arch for plan in plans for stage in plan.stages if stage.arch))
    if not named:
        return counted
    archs = terminal.listing(named) if len(named) <= _ARCHS else f"{len(named)} archs"
    return terminal.printable(f"{counted} for {archs}")


def raw(log: Log) -> str:
    """The commands as they were printed, each below a comment that says which stage it is."""
    lines = []
    for plan in log.plans:
        for stage in plan.stages:
            prose = prose_of(plan, stage)
            arch = f" for {stage.arch}" if stage.arch else ""
            # A shell takes it for a comment, so that what is printed can be run.
            lines.append(f"# {stage.id + 1} {prose.side} {prose.name}{arch}, line {stage.line}")
            lines.append(stage.text)
    return "".join(terminal.printable(line) + "\n" for line in lines)
