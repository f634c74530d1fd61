"""`toolmatrix check`: whether the matrix itself is sound."""

from __future__ import annotations

import os
from contextlib import contextmanager

from toolmatrix import resources
from toolmatrix.cli import clock
from toolmatrix.cli.progress import Progress, summarize
from toolmatrix.errors import Position, UsageError
from toolmatrix.judge import lints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future
    from datetime import date

    from typing_extensions import Self

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.judge.sweep import Release, ReleaseOutcome, Sweeper
    from toolmatrix.report.findings import MatrixReport

# Parts of the work that are worth starting a process for.
_WORTHWHILE = 4


def run(context: Context) -> int:
    """Judge the matrix and print what was found; 1 when an error is among it, but 0 where a SARIF reader judges."""
    options = context.options
    today = clock.today(context.env)
    index = context.index()
    report = judge(context, index, today)
    if options.format == "json":
        context.write_json(report.document(", ".join(options.only) or "matrix"))
    elif options.format == "sarif":
        from toolmatrix.report import annotations

        context.write_json(annotations.sarif(report.annotations()))
        return 0
    elif options.format == "github":
        context.write(report.github())
        summarize(context, report.markdown())
    else:
        context.write(report.text(context.terminal))
    return 1 if report.failed else 0


def judge(context: Context, index: Index, today: date) -> MatrixReport:
    """Everything that can be found: by solving, and in the files as they stand."""
    from toolmatrix.facts import load
    from toolmatrix.judge import answers, doubts, gaps, lints, sweep
    from toolmatrix.report.findings import MatrixReport

    only = context.options.only
    files = _files(context)
    chosen = [_file(name, files) for name in only]
    env = {name: context.env[name] for name in ("XDG_CACHE_HOME", "HOME") if name in context.env}
    # Without `--only` the processes begin to solve while this one reads the files again.
    matrix = load.load([_front(), *context.matrices]) if only else None
    parts = sweep.parts(sweep.touched(index, matrix, chosen) if matrix else sweep.releases(index))
    outcomes: list[ReleaseOutcome] = []
    with _Workers(sweep.Sweeper(context.matrices, env), parts) as workers:
        matrix = matrix or load.load([_front(), *context.matrices])
        progress = Progress(context, sum(map(len, parts)), "solving", "releases")
        for held in workers.results():
            outcomes += held
            progress.at(len(outcomes))
        progress.end()
    solved = [
        *answers.findings(outcomes, sweep.promised(index), sweep.first_framework(index)),
        *doubts.findings(outcomes, matrix),
    ]
    read = [
        *gaps.findings(matrix, index),
        *lints.findings(matrix, index, today, context.options.stale),
        *lints.unlisted(files),
    ]
    found = list(lints.located(solved, matrix, files))
    shown = {lints.shortened(Position(path)).path for path in chosen}
    found += [
        one
        for one in lints.located(read, matrix, files)
        if not only or (one.where and one.where.path in shown)
    ]
    counts = sweep.counts(index, outcomes)
    return MatrixReport(index, found, counts, " and ".join(sorted(shown)) or "the matrix")


def _file(name: str, files: Sequence[str]) -> str:
    """The file in force that a word of `--only` names: by its path, as findings name it, or by its last parts.

    Raises UsageError if there is none, with the nearest.
    """
    wanted = os.path.normpath(name)
    for path in files:
        if os.path.realpath(path) == os.path.realpath(wanted):
            return path
    for path in files:
        if f"{os.sep}{os.path.normpath(path)}".endswith(f"{os.sep}{wanted}"):
            return path
    from toolmatrix.request.spelling import closest

    known = {os.path.basename(path): path for path in files}
    near = closest(os.path.basename(wanted), list(known))
    help = f"did you mean `{lints.shortened(Position(known[near])).path}`?" if near else ""
    if wanted.endswith((".yaml", ".yml")) and os.path.isfile(wanted):
        help = "list it under `files` of the front page, or add it by `--matrix FILE`"
    raise UsageError(
        "no file of facts in force is called so",
        expected="a file that the front page lists",
        found=f"`--only {name}`",
        help=help or "`toolmatrix facts` shows the file of each fact",
    )


def _front() -> str:
    return os.path.join(resources.matrix_root(), "matrix.yaml")


def _files(context: Context) -> list[str]:
    """The files that are in force: a front page of the user's replaces all before it."""
    from toolmatrix.facts import load

    found: list[str] = []
    for path in (_front(), *context.matrices):
        part = load.files(path)
        found = part if len(part) > 1 else [*found, *part]
    return found


class _Workers:
    """The parts of the work shared out over processes; where there can be none, done here."""

    def __init__(self, worker: Sweeper, parts: list[list[Release]]) -> None:
        self.worker = worker
        self.parts = parts
        self.pool: Executor | None = None
        self.started: list[Future[list[ReleaseOutcome]]] = []

    def __enter__(self) -> Self:
        count = min(_processors(), len(self.parts) // _WORTHWHILE)
        if count > 1:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            method = multiprocessing.get_context("spawn")
            try:
                self.pool = ProcessPoolExecutor(
                    count, mp_context=method, initializer=_heed_interrupts
                )
                with _interrupts_kept():
                    self.started = [self.pool.submit(self.worker, part) for part in self.parts]
            except (OSError, ImportError, NotImplementedError):
                self.started = []  # no semaphores, or no more processes
        return self

    def results(self) -> Iterator[list[ReleaseOutcome]]:
        """The outcomes in the order of the parts."""
        for place, part in enumerate(self.parts):
            yield self.awaited(place) if self.started else self.worker(part)

    def awaited(self, place: int) -> list[ReleaseOutcome]:
        """What a process made of a part; when it is lost, so are all, and the rest is done here."""
        from concurrent.futures import BrokenExecutor

        try:
            return self.started[place].result()
        except BrokenExecutor:
            self.started = []
            return self.worker(self.parts[place])

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started here until they can heed it: an interpreter would print it."""
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _heed_interrupts() -> None:
    """End on Ctrl-C without a word: the process that talks to the user says it."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
