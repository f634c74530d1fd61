"""The matrix itself, checked for Python: every release solved, and its files judged as they stand."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from toolmatrix import resources
from toolmatrix.api import Report, as_json, split_words, this_day
from toolmatrix.errors import BoundExceeded, Position, ToolmatrixError, UsageError
from toolmatrix.facts import load
from toolmatrix.judge import lints, sweep
from toolmatrix.judge.pool import Pool, WorkBounds
from toolmatrix.process import processors
from toolmatrix.report.annotations import sarif
from toolmatrix.report.findings import MatrixReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from typing_extensions import Self

    from toolmatrix.api import Path, Words
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Matrix
    from toolmatrix.judge.pool import IndexedWork, WorkResult
    from toolmatrix.judge.sweep import ReleaseOutcome

# Parts of the work that are worth starting a process for.
_WORTHWHILE = 4
# What tells that a process ended at its work, such as one that was killed for its memory: by no class below these.
_LOST = (BoundExceeded, ToolmatrixError)


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
    return checked(opened.index, opened.paths, split_words(only), stale, os.environ, processes=1)


def checked(
    index: Index,
    paths: Sequence[str],
    only: Sequence[str],
    stale: int | None,
    env: Mapping[str, str],
    *,
    processes: int = 0,
    executor: str = "",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Report:
    """The findings of a matrix with files on top, by so many processes, 0 for one a processor, or by an executor.

    `progress` hears how many releases were solved, and of how many.
    """
    today = this_day(env)
    held = files(paths)
    chosen = [_file(name, held) for name in only]
    matrix = loaded(paths) if only else None
    parts = sweep.parts(sweep.touched(index, matrix, chosen) if matrix else sweep.releases(index))
    outcomes: list[ReleaseOutcome] = []
    work = sweep.Sweeper(index=index)
    with Workers(work, parts, paths, processes, executor) as workers:
        # The processes begin to solve while this one reads the files again.
        reading = workers.meanwhile(lambda: matrix or loaded(paths))
        for part in workers.results():
            outcomes += part
            progress(len(outcomes), sum(map(len, parts)))
        matrix = reading()
    solved = [
        *sweep.unanswered(outcomes, sweep.promised(index), sweep.first_framework(index)),
        *sweep.doubts_about(outcomes, matrix),
    ]
    read = [
        *lints.gaps(matrix, index),
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
    return findings_report(report, ", ".join(only) or "matrix")


def findings_report(report: MatrixReport, subject: str) -> Report:
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
        help = "list it under `files` on the front page, or add it with `--matrix FILE`"
    raise UsageError(
        "no such file of facts is in force",
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


class Workers:
    """Parts of work done by processes, 0 for one a processor, or by an executor; what is lost there is done here."""

    def __init__(
        self,
        work: IndexedWork,
        parts: Sequence[Sequence[object]],
        paths: Sequence[str],
        processes: int,
        executor: str,
    ) -> None:
        self.work = work
        self.parts = parts
        count = min(processes or processors(), len(parts) // _WORTHWHILE)
        self.pool: Pool | None = None
        if executor:
            from toolmatrix.judge.executors import ExecutorPool

            self.pool = ExecutorPool(executor, work, paths, WorkBounds(), processes)
        # A browser forks no process, and a single one would only wait for another.
        elif count > 1:
            self.pool = Pool(work.attempt, WorkBounds(), count)
        self.outcomes: Iterator[tuple[int, WorkResult]] = iter(())

    def __enter__(self) -> Self:
        if self.pool is not None:
            self.pool.__enter__()
            # Where there can be no more processes all is done here.
            with suppress(OSError):
                self.outcomes = self.pool.outcomes(
                    {place: (part,) for place, part in enumerate(self.parts)}
                )
        return self

    def meanwhile(self, reading: Callable[[], Matrix]) -> Callable[[], Matrix]:
        """What returns the matrix that is read by a thread of this process while the others work."""
        if self.pool is None:
            return reading
        from concurrent.futures import ThreadPoolExecutor

        # All processes were forked by now but one that takes the place of one that is killed.
        # A system that gives no more processes gives no thread either.
        with suppress(RuntimeError):
            return ThreadPoolExecutor(1).submit(reading).result
        return reading

    def results(self) -> Iterator[Any]:
        """The results in the order of the parts. Raises ToolmatrixError for an executor that cannot do them."""
        done: dict[int, WorkResult] = {}
        for place, part in enumerate(self.parts):
            # Those that are done before their turn are kept: findings stand in one order, whoever was faster.
            with suppress(OSError, StopIteration):
                while place not in done:
                    done |= [next(self.outcomes)]
            outcome = done.pop(place, None)
            if outcome is None or type(outcome.error) in _LOST:
                yield self.work.attempt(part)
            else:
                yield outcome.result()

    def __exit__(self, *ended: object) -> None:
        if self.pool is not None:
            self.pool.__exit__(*ended)
