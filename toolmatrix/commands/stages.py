"""`toolmatrix stages`: what a driver would run, shown, judged, compared, replayed and costed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from toolmatrix.api import Matrix, Path, Words, locks, log_of, split_words, stage_answers
from toolmatrix.api.answers import NoAnswer
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix, read_kept_releases, request_context
from toolmatrix.api.stages import Compared, DriverCall, Stages, Wanted
from toolmatrix.api.stages import ask as ask_driver
from toolmatrix.api.subjects import targets_of
from toolmatrix.cli.context import Context
from toolmatrix.command import PRINTED, command
from toolmatrix.command import options as shared
from toolmatrix.command.option import option
from toolmatrix.command.options import EXIT_CODE, JOBS
from toolmatrix.errors import UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import DEFAULT, Lock
from toolmatrix.request.fields import OPTIONS, Fields
from toolmatrix.request.read import read as read_request

# The first word of `stages diff OLD NEW`; a file of that name is `./diff`.
_PAIR = "diff"
# Formats of every result; a single plan can also be drawn, and `svg` is its drawing.
_TEXTS = ("text", "json", "md", "html", "svg")
# Options for a driver, not for a log.
_LIVE_ONLY = ("arch", "driver", "timeout", "verify")

_LOG = option(
    "--from-log",
    kind="text",
    shape="path",
    configurable=False,
    help="Read a driver's output from a saved log, or from stdin with `-`",
)
_DRIVER = option(
    "--driver",
    metavar="PATH",
    completer="file",
    configurable=False,
    help="The nvcc, hipcc or clang++ to run, by name or path",
)
_SINCE = option(
    "--since",
    metavar="STAGE",
    configurable=False,
    help="Start at this stage: a number, a kind, a tool, or KIND:ARCH",
)
_UNTIL = option("--until", metavar="STAGE", configurable=False, help="Stop after this stage")
_TIMEOUT = option("--timeout", metavar="SECONDS", help="Time limit for a driver, in seconds")
_KEEP_DIR = option(
    "--keep-dir",
    metavar="DIR",
    completer="dir",
    shape="path",
    configurable=False,
    help="Keep intermediate files in this directory",
)


def _run(context: Context) -> int:
    """Show plans and judge them; 1 when a driver failed in a log or a finding is an error."""
    try:
        lock = _lock(context)
    except locks.Unsolved as refused:
        matrix_context = request_context(context.matrices, context.options.keep)
        return context.give(NoAnswer(matrix_context, refused.refusal), depth=context.options.depth)
    if context.arguments[:1] == (_PAIR,):
        if lock:
            raise UsageError("`stages diff` takes neither `--for` nor `--lock`")
        return _diff(context)
    answer = _read_stages(context, lock)
    options = context.options
    failed = answer.failure and options.format == "text" and not answer.has_stages
    replays = options.run or options.verify or options.cost or options.format in ("script", "ninja")
    code = (_replay if replays and not failed else _show)(context, answer)
    if answer.failure is None or options.format == "json":
        return code
    # Show the driver's output before its failure.
    context.finish()
    raise answer.failure


def _lock(context: Context) -> Lock | None:
    """The answer that plans are for: the lock that the command line names, or that of the requests of `--for`."""
    options, named = context.options, context.origins["lock"].kind == "flag"
    if not options.for_:
        return lock_file.read(options.lock) if named else None
    if named:
        raise UsageError("`--for` and `--lock` contradict each other", help="leave out one of them")
    index = context.index()
    # A driver compiles from source, whatever the device.
    fields = {name: options[name] for name in OPTIONS} | {"from_": options.from_ or "source"}
    keep = read_kept_releases(options.keep) if options.keep else ()
    request = read_request(index, Fields(wanted=options.for_, **fields), keep=keep)
    return locks.solve(index, {DEFAULT: locks.LockRequest(request=request, words=options.for_)})


def _read_stages(context: Context, lock: Lock | None) -> Stages:
    options = context.options
    if not options.log:
        if not context.arguments:
            raise UsageError(
                "`stages` needs a source or a log",
                expected="FILE..., or --from-log FILE",
                found="neither",
                help="`toolmatrix help stages` shows examples",
            )
        return _stages(context, sources=context.arguments, driver=options.driver, lock=lock)
    contradicting = [*context.arguments, *(["--", *context.passed] if context.passed else [])]
    contradicting += [
        origin.name
        for name in _LIVE_ONLY
        if (origin := context.origins[name]).kind == "flag" and options[name]
    ]
    if contradicting:
        raise UsageError(
            f"`--from-log` and `{contradicting[0]}` contradict each other",
            help="a log already records the flags of the driver; leave out one of them",
        )
    return _stages(context, options.log, lock=lock)


def _stages(context: Context, log: str = "", **arguments: Any) -> Stages:
    options = context.options
    arguments |= {name: options[name] for name in ("target", "timeout", *Wanted._fields)}
    # For a request, the archs are in its answer.
    arch = () if options.for_ else options.arch
    return stages(log, flags=context.passed, arch=arch, matrix=context.matrices, **arguments)


def _show(context: Context, answer: Stages) -> int:
    options = context.options
    if options.format not in _TEXTS or options.format == "svg":
        context.write(answer.draw(options.format))
        return int(answer.failed)
    return context.give(answer, full=bool(options.verbose), explain=options.explain)


def _replay(context: Context, answer: Stages) -> int:
    # Exit with 1 if a result differs from the driver's own.
    options = context.options
    if options.format in ("script", "ninja"):
        if options.run or options.verify or options.cost:
            raise UsageError(
                f"`--{options.format}` cannot be combined with `--run`, `--verify` or `--cost`"
            )
        text = answer.script() if options.format == "script" else answer.ninja(options.jobs or 0)
        context.write(text)
        return 0
    if options.format not in _TEXTS:
        raise UsageError(
            f"a run or its cost cannot be shown as `{options.format}`",
            expected=f"one of {', '.join(_TEXTS)}",
        )
    if not options.cost:
        return context.give(
            answer.run(options.jobs or 0, verify=options.verify, timeout=options.timeout)
        )
    if options.run or options.verify:
        raise UsageError("`--cost FILE` and `--run` contradict each other")
    return context.give(answer.cost(options.cost, lambda text: context.say(f"note: {text}")))


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
    sides = []
    for name in (first, second):
        arguments = {"sources": sources, "driver": name} if sources else {"log": context.path(name)}
        side = _stages(context, **arguments)
        if side.failure:
            raise side.failure
        sides.append(side)
    comparison = Compared(sides[0], sides[1], (first, second))
    context.give(comparison)
    return int(context.options.exit_code and bool(comparison))


@command(
    group="Inspect files, images and machines",
    order=8,
    usage="[FILE... | diff OLD NEW] [-- FLAGS]",
    completer="file",
    passthrough=True,
    formats=("text", "json", "raw", "dot", "mermaid", *PRINTED[2:], "script", "ninja"),
    request=True,
    line=_run,
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
            cli_only=True,
            help="Plan for this request",
        ),
        "run": option("--run", kind="flag", cli_only=True, help="Run the stages and time each one"),
        "verify": option(
            "--verify",
            kind="flag",
            cli_only=True,
            help="Run the stages and the driver, and compare their outputs",
        ),
        "jobs": JOBS,
        "cost": option(
            "--cost",
            kind="text",
            shape="path",
            configurable=False,
            help="Add the cost of stages from the CSV of `nvcc -time` or the JSON of a run",
        ),
        "explain": option(
            "--explain", kind="flag", help="Explain what each stage does and which flag changes it"
        ),
        "exit_code": EXIT_CODE,
    },
)
def stages(
    log: Path | Iterable[str] = _LOG,
    *,
    sources: Words = (),
    flags: Words = (),
    driver: str = _DRIVER,
    arch: Words = (),
    device: Words = (),
    only: Words = shared.only("Include only stages that serve these codegen archs; repeatable"),
    since: str = _SINCE,
    until: str = _UNTIL,
    timeout: int | None = _TIMEOUT,
    directory: Path = "",
    keep_dir: Path = _KEEP_DIR,
    lock: Lock | None = None,
    target: Words = (),
    matrix: Matrix = None,
) -> Stages:
    """Show what nvcc, hipcc or clang would run, stage by stage.

    The plans are those of a log, or of a driver that is asked what it would do with `sources` and `flags`. `log` is the
    text of a log, its lines, or its path: a text has a line break in it. With `lock` they are for its answer. Raises
    LogError, ToolMissing, UsageError, CannotSay.
    """
    from toolmatrix.compilation import log_file
    from toolmatrix.compilation.drivers.dry_run import names_archs

    def index() -> Index:
        return open_matrix(matrix).index

    wanted = Wanted(
        device=split_words(device),
        only=split_words(only),
        until=until,
        since=since,
        directory=os.fspath(directory),
        keep_dir=os.fspath(keep_dir),
    )
    if bool(log) is bool(sources):
        raise UsageError("`stages` takes a log or sources", expected="one of them")
    calling, targets = caller(), targets_of(target, matrix) if lock else ()
    if log:
        path, lines = log_of(log)
        parsed = log_file.read(path, calling.stdin) if path else log_file.parse(lines)
        where = log_file.display_name(path) if path else "log"
        answer = Stages(parsed, index, where=where, wanted=wanted)
        return stage_answers.of_log(answer, lock, targets) if lock else answer
    words = split_words(flags)
    # Archs of a settings file or variable are overridden by the answer and by flags for the driver.
    named = calling.is_flag("arch") or not (lock or names_archs(words))
    call = DriverCall(
        sources=split_words(sources),
        flags=words,
        driver=driver,
        archs=split_words(arch) if named else (),
        timeout=timeout,
        env=calling.env,
    )
    question = call, index, wanted
    return stage_answers.ask(lock, targets, *question) if lock else ask_driver(*question)
