"""`toolmatrix validate`: whether images are what a lock or expectations say."""

from __future__ import annotations

import os

from toolmatrix.cli import ask
from toolmatrix.cli.fleet import Fleet
from toolmatrix.cli.judging import Bench, Yardstick, expectations_of, refused
from toolmatrix.cli.options import OPTIONS
from toolmatrix.cli.progress import Progress, summarize
from toolmatrix.cli.worker import Bounds
from toolmatrix.errors import BoundReached, Position, UsageError
from toolmatrix.report import verdicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.report.verdicts import Judged

SCHEMA = "toolmatrix.validation/1"
EXIT = {"yes": 0, "no": 1, "unknown": 4}
# Seconds for a subject where `--timeout` says none.
_PATIENCE = 3600
# Bytes of a file of subjects or expectations.
_LARGEST = 16 << 20


def run(context: Context) -> int:
    """Print the verdicts and return 0 when all hold, 1 when something is wrong, 4 when that cannot be said."""
    subjects = _subjects(context)
    bench = Bench(
        matrices=tuple(context.matrices),
        env={name: context.env[name] for name in ("XDG_CACHE_HOME", "HOME") if name in context.env},
        yardstick=_yardstick(context),
        directory=context.options.directory,
        platform=context.options.platform,
        only=context.options.only,
        run=not context.options.no_run,
        strict=context.options.strict,
    )
    if len(subjects) == 1 and not context.options.all:
        many = [_one(context, bench, subjects[0])]
        if context.options.format == "jsonl":
            context.write(_line(many[0]))
    else:
        many = _all(context, bench, subjects)
    return _report(context, many)


def _one(context: Context, bench: Bench, subject: str) -> Judged:
    """The only subject. Raises ToolmatrixError where it cannot be observed, unless a bound is what stopped it."""
    bench.open()
    with Fleet(bench.judge, _bounds(context)) as fleet:
        ((_, outcome),) = fleet.outcomes({subject: (subject,)})
    if isinstance(outcome.error, BoundReached):
        return refused(subject, outcome.error)
    judged: Judged = outcome.result()
    return judged


def _bounds(context: Context) -> Bounds:
    options = context.options
    return Bounds(
        seconds=options.timeout or _PATIENCE,
        processor=options.cpu_time or OPTIONS["cpu_time"].default,
        memory=options.memory or OPTIONS["memory"].default,
    )


def _report(context: Context, many: Sequence[Judged]) -> int:
    form = context.options.format
    if form == "github":
        summarize(context, verdicts.markdown(many))
    if form != "jsonl":
        context.write(FORMS[form](context, many))
    words = {judged.outcome for judged in many}
    worst = next((word for word in ("no", "unknown") if word in words), "yes")
    return 0 if form == "sarif" else EXIT[worst]


def _text(context: Context, many: Sequence[Judged]) -> str:
    parts = [verdicts.text(judged, context.terminal) for judged in many]
    return "\n".join([*parts, *([verdicts.closing_of_all(many) + "\n"] if len(many) != 1 else [])])


def _json(context: Context, many: Sequence[Judged]) -> str:
    from toolmatrix.cli.context import as_json

    if len(many) == 1 and not context.options.all:
        return as_json(verdicts.document(many[0]))
    counts = [judged.outcome for judged in many]
    return as_json(
        {
            "schema": SCHEMA,
            "subjects": [verdicts.document(judged) for judged in many],
            "summary": {word: counts.count(word) for word in EXIT} | {"subjects": len(many)},
        }
    )


def _junit(_: Context, many: Sequence[Judged]) -> str:
    from toolmatrix.report import verdict_forms

    return verdict_forms.junit(many)


def _sarif(_: Context, many: Sequence[Judged]) -> str:
    from toolmatrix import __version__
    from toolmatrix.cli.context import as_json
    from toolmatrix.report import verdict_forms

    return as_json(verdict_forms.sarif(many, __version__))


def _html(_: Context, many: Sequence[Judged]) -> str:
    from toolmatrix.report import verdict_forms

    return verdict_forms.html(many)


FORMS: Mapping[str, Callable[[Context, Sequence[Judged]], str]] = {
    "text": _text,
    "json": _json,
    "junit": _junit,
    "sarif": _sarif,
    "github": lambda _, many: verdicts.github(many),
    "html": _html,
}


def _all(context: Context, bench: Bench, subjects: Sequence[str]) -> list[Judged]:
    """Every subject, each result as it comes; what `--resume` has of the same subjects is not done again."""
    from toolmatrix.cli.results import Results

    options = context.options
    found: dict[str, Judged] = {}
    with (
        Results(options.resume, bench.key) as results,
        Fleet(bench.attempt, _bounds(context), options.jobs or 1) as fleet,
    ):
        held = {name: results.identity(name) if options.resume else None for name in subjects}
        progress = Progress(context, len(subjects), "validating", "subjects")
        for name, outcome in fleet.outcomes({name: (name, held[name]) for name in subjects}):
            found[name] = results.settled(name, outcome)
            _stream(context, found[name])
            progress.at(len(found))
        progress.end()
    return [found[name] for name in subjects]


def _stream(context: Context, judged: Judged) -> None:
    """A line at once where lines are read as they come; into a file they go together."""
    from toolmatrix.cli.context import to_stream

    if context.options.format != "jsonl":
        return
    if context.options.output != "-":
        context.write(_line(judged))
    elif context.options.quiet < 2:
        to_stream(context.stdout, _line(judged))


def _line(judged: Judged) -> str:
    import json

    return json.dumps(verdicts.document(judged), sort_keys=True) + "\n"


def _yardstick(context: Context) -> Yardstick:
    """The lock and expectations that were named; where none were the lock that lies here, else that of each image."""
    options = context.options
    words: list[tuple[str, Position | None]] = [(word, None) for word in options.expect]
    path = options.expect_file
    if path:
        words += [
            (word, Position(path, line)) for word, line in _lines(context, path, "an expectation")
        ]
    expected = expectations_of(words)
    named = context.origins["lock"].kind == "flag"
    flag = context.origins["target"].kind == "flag"
    targets = ask.settled(context, context.index()).target if flag else ()
    if not named and (expected or not os.path.exists(options.lock)):
        return Yardstick(expected=expected, targets=targets)
    from toolmatrix.lock import read, write

    lock = read.read(options.lock)
    return Yardstick(
        expected=expected,
        lock=lock,
        path=options.lock,
        digest=write.digest(lock),
        targets=targets,
    )


def _subjects(context: Context) -> list[str]:
    """The subjects, each once; with `--all` they stand in the files that are named, one a line."""
    if not context.options.all:
        return list(dict.fromkeys(context.arguments))
    found: dict[str, None] = {}
    for path in context.arguments:
        found |= dict.fromkeys(word for word, _ in _lines(context, path, "subjects"))
    if not found:
        raise UsageError(
            "there is no subject to validate",
            expected="subjects such as `archive:image.tar`, one a line",
            found=f"`--all {' '.join(context.arguments)}`",
        )
    return list(found)


def _lines(context: Context, path: str, what: str) -> list[tuple[str, int]]:
    """The words of a file, one a line, with the number of each; `#` at the beginning makes a comment."""
    try:
        if path == "-":
            data = context.piped.read(what, _LARGEST)
        else:
            with open(context.path(path), "rb") as file:
                data = file.read(_LARGEST)
        lines = data.decode("utf-8").splitlines()
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {what}", where=Position(path), found=found) from None
    words = [(line.strip(), number) for number, line in enumerate(lines, 1)]
    return [(word, number) for word, number in words if word and not word.startswith("#")]
