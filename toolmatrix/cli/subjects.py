"""`toolmatrix inventory`, `validate`, `doctor` and `diff`: images, machines and locks, looked at and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import IO

from toolmatrix import document_store
from toolmatrix.api import differences, subjects
from toolmatrix.cli import ask
from toolmatrix.cli.context import Context
from toolmatrix.cli.options import OPTIONS
from toolmatrix.cli.progress import Progress, summarize
from toolmatrix.errors import Position, UsageError
from toolmatrix.finding import Judged
from toolmatrix.inventory import subject_lists
from toolmatrix.inventory.layers import LayerStore
from toolmatrix.judge import locked, machine, results
from toolmatrix.judge.pool import Pool, WorkBounds
from toolmatrix.judge.validator import REGISTRY, Baseline, Validator, expectations_of
from toolmatrix.lock import read
from toolmatrix.lock.model import Lock
from toolmatrix.opener import opened
from toolmatrix.report import terminal, verdicts
from toolmatrix.wording import plural

# Seconds for a subject where `--timeout` names none.
_PATIENCE = 3600
_EXPECTATION = "an expectation"
# Bytes of a file of subjects or expectations, and of results.
_LARGEST_LIST = 16 << 20
_LARGEST_RESULTS = 1 << 30


def inventory(context: Context) -> int:
    """Print the inventory of a subject; raises SubjectError where it cannot be read."""
    options = context.options
    index = None if options.no_run else context.index
    place = options.platform, options.directory
    store = _store(context)
    found = subjects.observed(context.arguments[0], *place, _stdin(context), index, store)
    return context.give(found, everything=options.all)


def _store(context: Context) -> LayerStore | None:
    options = context.options
    if options.no_store:
        return None
    place = options.store
    where = place if "://" in place or not place else context.path(place)
    size = options.store_size or OPTIONS["store_size"].default
    store = subjects.layer_store(where, size, context.env)
    # A cache that cannot be used is nobody's wish.
    if place and (why := document_store.hindrance(where)):
        context.say_after(f"note: nothing is cached in `{place}`: {why}")
    return store


def _stdin(context: Context) -> IO[bytes] | None:
    # A stream of text alone, such as a test gives, has no buffer.
    return getattr(context.stdin, "buffer", None)


def validate(context: Context) -> int:
    """Print the verdicts and return 0 when all hold, 1 when something is wrong, 4 when that cannot be said."""
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
        store=_store(context),
    )
    _can_attach(words, attach=options.attach)
    bounds = WorkBounds(
        seconds=options.timeout or _PATIENCE,
        processor=options.cpu_time or OPTIONS["cpu_time"].default,
        memory=options.memory or OPTIONS["memory"].default,
    )
    run = validator.key
    several = options.all or options.shard or options.executor or options.resume
    alone = len(words) == 1 and not several
    if alone:
        many = [results.validate(validator, words[0], bounds)]
        if options.format == "jsonl":
            context.write(_line(many[0], run))
    else:
        progress = Progress(context, "validating", "subjects")
        done = 0

        def each(judged: Judged) -> None:
            nonlocal done
            done += 1
            _stream(context, judged, run)
            progress.at(done, len(words))

        workers = _workers(context, validator, bounds, words)
        many = results.validate_all(run, words, workers, options.resume, each)
        progress.end()
    return _give(context, many, alone=alone)


def _give(context: Context, many: list[Judged], *, alone: bool) -> int:
    if context.options.format == "github":
        summarize(context, verdicts.markdown(many))
    lost = [judged for judged in many if judged.not_attached]
    if lost:
        what = lost[0].subject + (f" and of {plural(len(lost) - 1, 'other')}" if lost[1:] else "")
        why = lost[0].not_attached
        context.say_after(f"note: the verdicts of {what} are not stored in the registry: {why}")
    return context.give(subjects.report(many, alone=alone))


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

    results.reachable(words)
    # Paths are relative to a folder of this machine.
    there = validator.replace(directory=os.path.abspath(options.directory or "."))
    return ExecutorPool(options.executor, there, options.matrix, bounds, options.jobs or 0)


def merge(context: Context) -> int:
    """Print the verdicts of several runs over shards as those of one, with the exit code that one would have."""
    found = results.merged(
        (name, _read(context, name, "results", _LARGEST_RESULTS))
        for name in dict.fromkeys(context.arguments)
    )
    wanted = _listed(context, context.options.subjects)
    if not found:
        raise UsageError(
            "no results found",
            expected="results of subjects, as `--resume` and `--format jsonl` write them",
            found=", ".join(f"`{name}`" for name in context.arguments),
        )
    # Without a list nobody knows what is missing.
    many = [found.get(name) or results.lacking(name) for name in wanted or found]
    return _give(context, many, alone=False)


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
        lines = subject_lists.lines(
            path, _read(context, path, _EXPECTATION, _LARGEST_LIST), _EXPECTATION
        )
        words += [(word, Position(path, line)) for word, line in lines]
    expected = expectations_of(words)
    named = context.origins["lock"].kind == "flag"
    baseline = Baseline(expected=expected, targets=targets(context))
    return baseline.with_lock(
        options.lock if named or (not expected and os.path.exists(options.lock)) else ""
    )


def targets(context: Context) -> tuple[str, ...]:
    """The targets of `--target`."""
    # A setting or a variable says where things run, not what to check or to compare.
    if context.origins["target"].kind != "flag":
        return ()
    return tuple(ask.settled(context, context.index()).target)


def _subjects(context: Context) -> list[str]:
    words, options = context.arguments, context.options
    found = _listed(context, words) if options.all else list(dict.fromkeys(words))
    return _shard(found, options.shard) if options.shard else found


def _listed(context: Context, lists: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in lists:
        read = partial(_read, context, name, "subjects", _LARGEST_LIST)
        found |= dict.fromkeys(subject_lists.read_subjects("stdin" if name == "-" else name, read))
    if lists and not found:
        raise UsageError(
            "no subjects found",
            expected="subjects such as `archive:image.tar`, one a line, or a manifest with images",
            found=", ".join(f"`{name}`" for name in lists),
        )
    return list(found)


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


def _read(context: Context, path: str, what: str, most: int) -> bytes:
    try:
        # One more than may be: what is left out of a list would never be missed.
        if path == "-":
            data = context.piped.read(what, most + 1)
        else:
            with opened(context.path(path)) as file:
                data = file.read(most + 1)
    except OSError as error:
        found = error.strerror or str(error)
        raise UsageError(f"cannot read {what}", where=Position(path), found=found) from None
    if len(data) > most:
        expected = f"at most {most >> 20} MiB"
        raise UsageError(f"cannot read {what}", where=Position(path), expected=expected)
    return data


def doctor(context: Context) -> int:
    """Print the verdicts and return 0 when the machine is ready, 1 when something is wrong, 4 when nobody can say."""
    options = context.options
    if options.list_checks:
        return _checks(context)
    path = options.lock
    # Without a lock the machine is judged by the facts alone.
    if context.origins["lock"].kind != "flag" and not os.path.exists(path):
        path = ""
    judged = subjects.ready(
        context.index(),
        path,
        targets(context) if path else (),
        options.only,
        options.directory,
        context.env,
    )
    return _give(context, [judged], alone=True)


def _checks(context: Context) -> int:
    checks = {name: about for name, (about, _) in machine.CHECKS.items()}
    if context.options.format == "json":
        context.write_json({"schema": "toolmatrix.checks/1", "checks": checks})
    else:
        context.write("".join(line + "\n" for line in terminal.columns(checks.items())))
    return 0


def diff(context: Context) -> int:
    """Print the differences and return 0, or 1 with `--exit-code` when a value moved or is suspicious."""
    options, words = context.options, context.arguments
    if any(locked.is_subject(word, context.path(word)) for word in words):
        # A lock that lies here by chance explains no difference: it counts where it was named.
        explains = context.origins["lock"].kind == "flag"
        found = differences.of_subjects(
            words,
            targets(context) if explains else (),
            options.platform,
            lock=options.lock if explains else "",
            everything=options.all,
            directory=options.directory,
            stdin=_stdin(context),
            store=_store(context),
        )
    else:
        held = [(path, _lock(context, path)) for path in words]
        index = context.index()
        found = differences.of_locks(held, targets(context), index)
    code = context.give(found)
    return code if options.exit_code else 0


def _lock(context: Context, argument: str) -> Lock:
    if argument == "-":
        return read.parse(context.piped.read("a lock", read.LARGEST + 1), "stdin")
    return read.read(context.path(argument))
