"""The matrix itself, checked for Python: every release solved, and its files judged as they stand."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from toolmatrix import resources
from toolmatrix.api import Report, as_json, listed, this_day
from toolmatrix.errors import Position, UsageError
from toolmatrix.facts import load
from toolmatrix.judge import answers, doubts, gaps, lints, sweep
from toolmatrix.processors import processors
from toolmatrix.report.annotations import sarif
from toolmatrix.report.findings import MatrixReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor, Future

    from typing_extensions import Self

    from toolmatrix.api import Path, Words
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Matrix
    from toolmatrix.judge.sweep import ReleaseOutcome

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# Parts of the work that are worth starting a process for.
_WORTHWHILE = 4


def check(
    *,
    only: Words = (),
    stale: int | None = None,
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Report:
    """Everything that can be found wrong with a matrix, in this process; of `only` some of its files where named.

    `stale` reports what was read more than so many days ago. The whole takes a minute of processor time. Raises
    UsageError.
    """
    from toolmatrix.api.requests import open_matrix

    opened = open_matrix(matrix)
    return checked(opened.index, opened.paths, listed(only), stale, os.environ, processes=1)


def checked(
    index: Index,
    paths: Sequence[str],
    only: Sequence[str],
    stale: int | None,
    env: Mapping[str, str],
    *,
    processes: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Report:
    """The findings of a matrix with files on top, by so many processes, 0 for one a processor.

    `progress` hears how many releases were solved, and of how many.
    """
    today = this_day(env)
    held = files(paths)
    chosen = [_file(name, held) for name in only]
    # Without `--only` the processes begin to solve while this one reads the files again.
    matrix = loaded(paths) if only else None
    parts = sweep.parts(sweep.touched(index, matrix, chosen) if matrix else sweep.releases(index))
    outcomes: list[ReleaseOutcome] = []
    with Workers(sweep.Sweeper(paths, env), parts, processes) as workers:
        matrix = matrix or loaded(paths)
        for part in workers.results():
            outcomes += part
            progress(len(outcomes), sum(map(len, parts)))
    solved = [
        *answers.findings(outcomes, sweep.promised(index), sweep.first_framework(index)),
        *doubts.findings(outcomes, matrix),
    ]
    read = [
        *gaps.findings(matrix, index),
        *lints.findings(matrix, index, today, stale),
        *lints.unlisted(held),
    ]
    # What was found by solving is about the releases of the files; what was found by reading names its file.
    shown = {lints.shortened(Position(path)).path for path in chosen}
    found = [
        *lints.located(solved, matrix, held),
        *(
            one
            for one in lints.located(read, matrix, held)
            if not only or (one.where and one.where.path in shown)
        ),
    ]
    subject = " and ".join(sorted(shown)) or "the matrix"
    report = MatrixReport(index, found, sweep.counts(index, outcomes), subject)
    return told(report, ", ".join(only) or "matrix")


def told(report: MatrixReport, subject: str) -> Report:
    """Findings about a matrix in every form; 1 when an error is among them."""
    return Report(
        words=report.text,
        document=partial(report.document, subject),
        exit_code=int(report.failed),
        forms={
            "sarif": lambda: as_json(sarif(report.annotations())),
            "github": report.github,
            "md": report.markdown,
        },
    )


def _file(name: str, files: Sequence[str]) -> str:
    # A word of `--only` names a file by its path, as findings do, or by its last parts.
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


def loaded(paths: Sequence[str]) -> Matrix:
    """The matrix with files on top, read from its files again: an index keeps no places. Raises MatrixError."""
    return load.load([_front(), *paths])


def _front() -> str:
    return os.path.join(resources.matrix_root(), "matrix.yaml")


def files(paths: Sequence[str]) -> list[str]:
    """The files of a matrix and of those on top: a front page of the user's replaces all before it."""
    found: list[str] = []
    for path in (_front(), *paths):
        part = load.files(path)
        found = part if len(part) > 1 else [*found, *part]
    return found


class Workers(Generic[Piece, Result]):
    """The parts of the work shared out over processes, 0 for one a processor; where there can be none, done here.

    The worker can be pickled, and makes of each part a list of results.
    """

    def __init__(
        self, worker: Callable[[list[Piece]], list[Result]], parts: list[list[Piece]], most: int
    ) -> None:
        self.worker = worker
        self.parts = parts
        self.count = min(most or processors(), len(parts) // _WORTHWHILE)
        self.pool: Executor | None = None
        self.started: list[Future[list[Result]]] = []

    def __enter__(self) -> Self:
        if self.count > 1:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            method = multiprocessing.get_context("spawn")
            try:
                self.pool = ProcessPoolExecutor(
                    self.count, mp_context=method, initializer=_heed_interrupts
                )
                with _interrupts_kept():
                    self.started = [self.pool.submit(self.worker, part) for part in self.parts]
            # No semaphores, as in some containers and browsers, or no more processes: then all is done here.
            except (OSError, ImportError, NotImplementedError):
                self.started = []
        return self

    def results(self) -> Iterator[list[Result]]:
        """The outcomes in the order of the parts."""
        for place, part in enumerate(self.parts):
            yield self.awaited(place) if self.started else self.worker(part)

    def awaited(self, place: int) -> list[Result]:
        """The outcomes of a part by its process; when one is lost, so are all, and the rest is done here."""
        from concurrent.futures import BrokenExecutor

        try:
            return self.started[place].result()
        except BrokenExecutor:
            # The pool is of no use once a process of it is lost, such as one that was killed for its memory.
            self.started = []
            return self.worker(self.parts[place])

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    # Processes that are started here get Ctrl-C before they can heed it, and their interpreters would print tracebacks.
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _heed_interrupts() -> None:
    # The process that talks to the user says that it was interrupted; this one ends without a word.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
