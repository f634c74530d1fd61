"""What commands that judge a whole matrix share: its files, processes for the work, and findings in every form."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from toolmatrix import resources
from toolmatrix.api import Report, as_json
from toolmatrix.errors import BoundExceeded, ToolmatrixError
from toolmatrix.factbase import load
from toolmatrix.judging.pool import Pool, WorkBounds
from toolmatrix.process import processors
from toolmatrix.report.annotations import sarif
from toolmatrix.report.findings import MatrixReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from typing_extensions import Self

    from toolmatrix.factbase.model import Matrix
    from toolmatrix.judging.pool import IndexedWork, WorkResult

# Parts of the work that are worth starting a process for.
_WORTHWHILE = 4
# Errors of a process that ended at its work, such as one killed for its memory; exact classes, no subclasses.
_LOST = (BoundExceeded, ToolmatrixError)


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


def load_matrix(paths: Sequence[str]) -> Matrix:
    """The matrix with files on top, read from its files again: an index keeps no places. Raises MatrixError."""
    return load.load([_front(), *paths])


def _front() -> str:
    return os.path.join(resources.matrix_root(), "matrix.yaml")


def files(paths: Sequence[str]) -> list[str]:
    """The files of a matrix and of those on top: a front page of the user's replaces all before it."""
    matrix_files: list[str] = []
    for path in (_front(), *paths):
        members = load.files(path)
        matrix_files = members if len(members) > 1 else [*matrix_files, *members]
    return matrix_files


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
            from toolmatrix.judging.executors import ExecutorPool

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
                    {index: (part,) for index, part in enumerate(self.parts)}
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
        finished: dict[int, WorkResult] = {}
        for index, part in enumerate(self.parts):
            # Results that arrive early wait for their turn, so that findings keep one order.
            with suppress(OSError, StopIteration):
                while index not in finished:
                    finished |= [next(self.outcomes)]
            outcome = finished.pop(index, None)
            if outcome is None or type(outcome.error) in _LOST:
                yield self.work.attempt(part)
            else:
                yield outcome.result()

    def __exit__(self, *ended: object) -> None:
        if self.pool is not None:
            self.pool.__exit__(*ended)
