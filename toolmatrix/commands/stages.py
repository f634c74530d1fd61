"""`toolmatrix stages`: what a driver would run, shown, judged, compared, replayed and costed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolmatrix.api import locks, stage_answers
from toolmatrix.api import stages as api
from toolmatrix.api.stages import Stages
from toolmatrix.cli import ask
from toolmatrix.cli.context import Context
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import EXIT_CODE, JOBS, only
from toolmatrix.commands._subjects import targets_of
from toolmatrix.errors import UsageError
from toolmatrix.lock import lock_file
from toolmatrix.lock.model import DEFAULT, Lock

# The first word of `stages diff OLD NEW`; a file that is called so is `./diff`.
_PAIR = "diff"
# What is told in words; a plan by itself is also drawn, and `svg` is its drawing.
_TEXTS = ("text", "json", "md", "html", "svg")
# Options that only a driver can heed, not the log of one.
_LIVE_ONLY = ("arch", "driver", "timeout", "verify")


@command(
    group="Inspect files, images and machines",
    order=8,
    usage="[FILE... | diff OLD NEW] [-- FLAGS]",
    completer="file",
    passes=True,
    formats=("text", "json", "raw", "dot", "mermaid", *PRINTED[2:], "script", "ninja"),
    request=True,
    examples=(
        "toolmatrix stages saxpy.cu --explain -- -arch=sm_86 -c",
        "toolmatrix stages saxpy.cu --for tensorflow==2.6.5 --device 8.6 -- -c",
        "toolmatrix stages --from-log build.log --device 8.6,9.0",
        "toolmatrix stages diff before.log after.log",
    ),
    own={
        "for_": option(
            "--for",
            kind="list",
            metavar="SPEC",
            completer="release",
            only_flag=True,
            help="Plan for this request",
        ),
        "run": option(
            "--run", kind="flag", only_flag=True, help="Run the stages and time each one"
        ),
        "verify": option(
            "--verify",
            kind="flag",
            only_flag=True,
            help="Run the stages and the driver, and compare their outputs",
        ),
        "exit_code": EXIT_CODE,
        "from_log": option(
            "--from-log",
            kind="text",
            shape="path",
            configurable=False,
            help="Read a driver's output from a saved log, or from stdin with `-`",
        ),
        "driver": option(
            "--driver",
            kind="text",
            metavar="PATH",
            completer="file",
            configurable=False,
            help="The nvcc, hipcc or clang++ to run, by name or path",
        ),
        "explain": option(
            "--explain", kind="flag", help="Explain what each stage does and which flag changes it"
        ),
        "only": only("Include only stages that serve these codegen archs; repeatable"),
        "since": option(
            "--since",
            kind="text",
            metavar="STAGE",
            configurable=False,
            help="Start at this stage: a number, a kind, a tool, or KIND:ARCH",
        ),
        "until": option(
            "--until",
            kind="text",
            metavar="STAGE",
            configurable=False,
            help="Stop after this stage",
        ),
        "timeout": option(
            "--timeout",
            kind="number",
            metavar="SECONDS",
            help="Time limit for a driver, in seconds",
        ),
        "jobs": JOBS,
        "keep_dir": option(
            "--keep-dir",
            kind="text",
            metavar="DIR",
            completer="dir",
            shape="path",
            configurable=False,
            help="Keep intermediate files in this directory",
        ),
        "cost": option(
            "--cost",
            kind="text",
            shape="path",
            configurable=False,
            help="Add the cost of stages from the CSV of `nvcc -time` or the JSON of a run",
        ),
    },
)
def run(context: Context) -> int:
    """Show what nvcc, hipcc or clang would run, stage by stage.

    Show plans and judge them; exit 1 when a driver failed in a log or a finding is an error.
    """
    try:
        lock = _lock(context)
    except locks.Unsolved as refused:
        return ask.refuse(context, context.index(), refused.refusal)
    if context.arguments[:1] == (_PAIR,):
        if lock:
            raise UsageError("`stages diff` compares two plans, and takes no answer")
        return _diff(context)
    found = _read_stages(context, lock)
    options = context.options
    if found.failure and options.format == "text" and not found.has_stages:
        code = _show(context, found)
    elif options.run or options.verify or options.cost or options.format in ("script", "ninja"):
        code = _replay(context, found)
    else:
        code = _show(context, found)
    if found.failure is None or options.format == "json":
        return code
    # What the driver said before it failed is shown, then that it failed.
    context.finish()
    raise found.failure


def _lock(context: Context) -> Lock | None:
    """The answer that plans are for: the lock that the command line names, or that of the requests of `--for`."""
    options, named = context.options, context.origins["lock"].kind == "flag"
    if not options.for_:
        return lock_file.read(options.lock) if named else None
    if named:
        raise UsageError("`--for` and `--lock` contradict each other", help="leave out one of them")
    index = context.index()
    # A driver is planned for what it compiles, whatever device that is for.
    building = context.replace(options=options.replace(from_=options.from_ or "source"))
    request = ask.build(building, index, options.for_)
    return locks.solved(index, {DEFAULT: locks.LockRequest(request=request, words=options.for_)})


def _read_stages(context: Context, lock: Lock | None) -> Stages:
    options = context.options
    if not options.from_log:
        if not context.arguments:
            raise UsageError(
                "`stages` needs a source or a log",
                expected="FILE..., or --from-log FILE",
                found="neither",
                help="`toolmatrix help stages` shows examples",
            )
        if lock:
            return _answered(context, lock)
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
            help="a log already records the flags of the driver; leave out one of them",
        )
    found = _read(context, options.from_log)
    return stage_answers.of_log(found, lock, targets_of(context)) if lock else found


def _wanted(context: Context) -> api.Wanted:
    return api.Wanted(**{name: context.options[name] for name in api.Wanted._fields})


def _read(context: Context, path: str) -> Stages:
    from toolmatrix.stages import log_file

    log = log_file.read(path, context.stdin)
    return api.Stages(log, context.index, where=log_file.called(path), wanted=_wanted(context))


def _answered(context: Context, lock: Lock) -> Stages:
    options = context.options
    # Of a request the archs are in its answer.
    archs = () if options.for_ or context.origins["arch"].kind != "flag" else options.arch
    words = (lock, context.arguments, context.passed, options.driver, archs)
    return stage_answers.ask(*words, targets=targets_of(context), **_driven(context))


def _ask(context: Context, sources: Sequence[str], driver: str) -> Stages:
    from toolmatrix.stages.drivers.dry_run import names_archs

    # What a file or a variable sets gives way to what was said to the driver itself.
    unsaid = context.origins["arch"].kind != "flag" and names_archs(context.passed)
    archs = () if unsaid else context.options.arch
    return api.ask(sources, context.passed, driver, archs, **_driven(context))


def _driven(context: Context) -> dict[str, Any]:
    # How a driver is asked.
    return {
        "index": context.index,
        "wanted": _wanted(context),
        "timeout": context.options.timeout,
        "environ": context.env,
        "note": lambda text: context.say(f"note: {text}"),
    }


def _show(context: Context, found: Stages) -> int:
    options = context.options
    if options.format not in _TEXTS or options.format == "svg":
        context.write(found.drawn(options.format))
        return int(found.failed)
    return context.give(found, full=bool(options.verbose), explain=options.explain)


def _replay(context: Context, found: Stages) -> int:
    # A script or a run is of one plan; exit 1 when a result differs from the driver's own.
    options = context.options
    if options.format in ("script", "ninja"):
        if options.run or options.verify or options.cost:
            raise UsageError(f"`--{options.format}` only writes a file, without a run or its cost")
        text = found.script() if options.format == "script" else found.ninja(options.jobs or 0)
        context.write(text)
        return 0
    if options.format not in _TEXTS:
        raise UsageError(
            f"a run or its cost cannot be shown as `{options.format}`",
            expected=f"one of {', '.join(_TEXTS)}",
        )
    if not options.cost:
        return context.give(
            found.run(options.jobs or 0, verify=options.verify, timeout=options.timeout)
        )
    if options.run or options.verify:
        raise UsageError("`--cost FILE` and `--run` contradict each other")
    return context.give(found.cost(options.cost, lambda text: context.say(f"note: {text}")))


def _diff(context: Context) -> int:
    """`stages diff A B`: two logs, or two drivers on the sources that follow them."""
    if len(context.arguments) < 3:
        raise UsageError(
            "`stages diff` needs OLD NEW",
            expected="two logs, or two drivers and a source",
            help="write a source named `diff` as `./diff`",
        )
    first, second, *sources = context.arguments[1:]
    if first == second == "-":
        raise UsageError("only one of the two logs can be `-`")
    if context.passed and not sources:
        raise UsageError(
            "flags after `--` go to a driver", expected="`stages diff OLD NEW FILE... -- FLAGS`"
        )
    if context.options.format not in _TEXTS:
        raise UsageError(
            f"`stages diff` has no format `{context.options.format}`",
            expected=f"one of {', '.join(_TEXTS)}",
        )
    old, new = (_side(context, one, sources) for one in (first, second))
    found = api.Compared(old, new, (first, second))
    context.give(found)
    return int(context.options.exit_code and bool(found))


def _side(context: Context, name: str, sources: Sequence[str]) -> Stages:
    if not sources:
        return _read(context, context.path(name))
    found = _ask(context, sources, name)
    if found.failure:
        raise found.failure
    return found
