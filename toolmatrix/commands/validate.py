"""`toolmatrix validate`."""

from __future__ import annotations

import os

from toolmatrix.api.subjects import layer_store, targets_of
from toolmatrix.cli.progress import ProgressLine
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import (
    EXECUTOR,
    JOBS,
    NO_RUN,
    PLATFORM,
    STORES,
    only,
    resume,
    targets,
)
from toolmatrix.commands._subjects import (
    LARGEST_LIST,
    give_verdicts,
    listed_subjects,
    read_file,
)
from toolmatrix.errors import Position, UsageError
from toolmatrix.inventory import subjects
from toolmatrix.judge import validation
from toolmatrix.judge.pool import Pool, WorkBounds
from toolmatrix.judge.validation import REGISTRY, Baseline, Validator, expectations_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.finding import Judged

# Seconds for a subject where `--timeout` names none.
_PATIENCE = 3600
_EXPECTATION = "an expectation"


@command(
    group="Inspect files, images and machines",
    order=3,
    usage="SUBJECT...",
    completer="file",
    does="validating",
    formats=("text", "json", "jsonl", "junit", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix validate docker:app:latest --lock toolmatrix.lock",
        "toolmatrix validate oci:layout --expect 'gcc==12.*' --expect arch==arm64",
        "toolmatrix validate --all images.txt --jobs 2 --resume results.jsonl",
        "toolmatrix validate --all 'registry://registry.example/team/app:1.*' --shard 1/8",
        "toolmatrix validate --all images.txt --store /mnt/share/readings",
    ),
    own={
        "target": targets("Target of the lock to check against"),
        "expect": option(
            "--expect",
            kind="list",
            metavar="WORD",
            split=False,
            configurable=False,
            help="Requirement to check, such as `gcc==12.*` or `arch==arm64`; repeatable",
        ),
        "expect_file": option(
            "--expect-file",
            kind="text",
            shape="path",
            configurable=False,
            help="File of requirements to check, one per line",
        ),
        "only": only("Run only these checks, by name or kind; repeatable"),
        "platform": PLATFORM,
        "no_run": NO_RUN,
        "strict": option("--strict", kind="flag", help="Treat warnings as errors"),
        "everything": option(
            "--all",
            kind="flag",
            help="Read the subjects from each argument, such as a file with one per line",
        ),
        "jobs": JOBS,
        "resume": resume("Append results to FILE, and skip subjects that are already in it"),
        "attach": option(
            "--attach",
            kind="flag",
            help="Store verdicts in the registry beside the images (OCI referrers), and reuse them",
        ),
        "shard": option(
            "--shard",
            kind="text",
            metavar="I/N",
            configurable=False,
            help="Validate part I of N of the subjects; `toolmatrix merge` joins the results",
        ),
        "executor": EXECUTOR,
        "timeout": option(
            "--timeout",
            kind="number",
            metavar="SECONDS",
            help="Time limit for a subject, in seconds [default: 3600]",
        ),
        "cpu_time": option(
            "--cpu-time",
            kind="number",
            metavar="SECONDS",
            default=1800,
            help="Processor time limit for a subject, in seconds",
        ),
        "memory": option(
            "--memory",
            kind="number",
            metavar="MIB",
            default=2048,
            help="Memory limit for a subject, in MiB",
        ),
        **STORES,
    },
)
def run(context: Context) -> int:
    """Check images against a lock.

    Print the verdicts and return 0 when all hold, 1 when something is wrong, 4 when that cannot be said.
    """
    options = context.options
    words = _subjects(context)
    baseline = _baseline(context)
    validator = Validator(
        index=context.index(),
        baseline=baseline,
        directory=options.directory,
        platform=options.platform,
        only=options.only,
        run=not options.no_run,
        strict=options.strict,
        attach=options.attach,
        store=None if options.no_store else layer_store(options.store, options.store_size),
    )
    _can_attach(words, attach=options.attach)
    declared = context.command.options
    bounds = WorkBounds(
        seconds=options.timeout or _PATIENCE,
        processor=options.cpu_time or declared["cpu_time"].default,
        memory=options.memory or declared["memory"].default,
    )
    run = validator.key
    several = options.everything or options.shard or options.executor or options.resume
    alone = len(words) == 1 and not several
    if alone:
        many = [validation.validate(validator, words[0], bounds)]
        if options.format == "jsonl":
            context.write(_line(many[0], run))
    else:
        progress = ProgressLine(context, "validating", "subjects")
        done = 0

        def each(judged: Judged) -> None:
            nonlocal done
            done += 1
            _stream(context, judged, run)
            progress.at(done, len(words))

        workers = _workers(context, validator, bounds, words)
        many = validation.validate_all(run, words, workers, options.resume, each)
        progress.end()
    return give_verdicts(context, many, alone=alone)


def _can_attach(words: list[str], *, attach: bool) -> None:
    elsewhere = [word for word in words if not word.startswith(REGISTRY)]
    if attach and elsewhere:
        raise UsageError(
            "`--attach` stores verdicts beside images in registries",
            expected="`registry://HOST/NAME:TAG`",
            found=f"`{elsewhere[0]}`",
        )


def _workers(context: Context, validator: Validator, bounds: WorkBounds, words: list[str]) -> Pool:
    options = context.options
    if not options.executor:
        return Pool(validator.attempt, bounds, options.jobs or 1)
    from toolmatrix.judge.executors import ExecutorPool

    validation.reachable(words)
    # Paths are relative to a folder of this machine.
    there = validator.replace(directory=os.path.abspath(options.directory or "."))
    return ExecutorPool(options.executor, there, options.matrix, bounds, options.jobs or 0)


def _stream(context: Context, judged: Judged, run: str) -> None:
    # Whoever reads lines as they come waits for each; into a file they go together, whole or not at all.
    from toolmatrix.cli.context import to_stream

    if context.options.format != "jsonl":
        return
    if context.options.output != "-":
        context.write(_line(judged, run))
    elif context.options.quiet < 2:
        to_stream(context.stdout, _line(judged, run))


def _line(judged: Judged, run: str) -> str:
    import json

    # By the run `merge` knows what may stand beside it.
    return json.dumps(judged.to_json() | {"run": run}, sort_keys=True) + "\n"


def _baseline(context: Context) -> Baseline:
    # Where nothing was named the lock that lies here counts, and without one that of each image.
    options = context.options
    words: list[tuple[str, Position | None]] = [(word, None) for word in options.expect]
    path = options.expect_file
    if path:
        lines = subjects.lines(
            path, read_file(context, path, _EXPECTATION, LARGEST_LIST), _EXPECTATION
        )
        words += [(word, Position(path, line)) for word, line in lines]
    expected = expectations_of(words)
    named = context.origins["lock"].kind == "flag"
    baseline = Baseline(expected=expected, targets=targets_of(options.target, context.matrices))
    return baseline.with_lock(
        options.lock if named or (not expected and os.path.exists(options.lock)) else ""
    )


def _subjects(context: Context) -> list[str]:
    words, options = context.arguments, context.options
    found = listed_subjects(context, words) if options.everything else list(dict.fromkeys(words))
    return _shard(found, options.shard) if options.shard else found


def _shard(words: list[str], shard: str) -> list[str]:
    number, _, count = shard.partition("/")
    given = [int(text) if text.isdecimal() else 0 for text in (number, count)]
    if not 1 <= given[0] <= given[1]:
        raise UsageError(
            f"`--shard {shard}` cannot be read",
            expected="`I/N`, the part I of N, counted from 1",
            found=f"`{shard}`",
        )
    # Neighbours in a list are often alike, such as tags of one image: each part gets some of all.
    return words[given[0] - 1 :: given[1]]
