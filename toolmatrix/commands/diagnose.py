"""`toolmatrix diagnose`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import lru_cache
from typing import TextIO

from toolmatrix.api import Matrix, Path, Report, as_json, log_of
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix, request_context
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.compilation import log_file
from toolmatrix.factbase.index import Index
from toolmatrix.judging import diagnose as judge
from toolmatrix.lockfile.lock_file import read
from toolmatrix.logs import signatures
from toolmatrix.logs.log import Fix, ObservedLog, observe
from toolmatrix.logs.signatures import SignatureCatalog
from toolmatrix.report.annotations import sarif
from toolmatrix.report.diagnosis import DiagnosisReport

# The default number of reported causes.
MOST = 10
_HELP = "`-` reads stdin"
_FEWEST_WORDS = 3
"""Of a line that was pasted: a misspelt path has fewer."""


@command(
    group="Inspect files, images and machines",
    order=7,
    does="reading",
    usage="LOG",
    completer="file",
    formats=("text", "json", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix diagnose build.log",
        "toolmatrix diagnose \"nvcc fatal : Unsupported gpu architecture 'compute_120'\"",
        "toolmatrix diagnose build.log --lock toolmatrix.lock --json",
        "toolmatrix diagnose build.log --format github --limit 3",
    ),
)
def diagnose(
    log: Path | Iterable[str],
    *,
    limit: int = option("--limit", default=MOST, help="Maximum number of results; 0 for all"),
    lock: Path = "",
    matrix: Matrix = None,
) -> Report:
    """Find known failures in a log, with facts and remedies.

    `log` is the text of a log, its lines, or its path. A text has a line break in it, or several words and is the name
    of no file. Each failure is shown beside the releases of a lock where one is named. Raises LogError, LockError.
    """
    path, lines = log_of(log)
    calling = caller()
    # A line that was copied from a screen names no file.
    if len(path.split()) >= _FEWEST_WORDS and not os.path.lexists(path):
        path, lines = "", (path,)
    text = calling.stdin if path else io.StringIO("\n".join(lines))
    name = log_file.display_name(path) if path else "log"
    observed = observe_log(calling.path(path) if path else "-", text, name, matrix)
    return diagnose_log(observed, os.fspath(lock), limit, matrix)


def diagnose_log(log: ObservedLog, lock: str, limit: int, matrix: Matrix) -> Report:
    """The known failures in a log that was read, beside the lock at a path."""
    index = open_matrix(matrix).index

    # Offer a fix only if it was solved here, with the settings that it would have when pasted.
    def answer(words: Sequence[str]) -> Fix | None:
        # Reads the settings, which only a log with a known fix needs.
        resolution = request_context(matrix).answered(words)
        if resolution is None:
            return None
        # Imports the solver, which only a log with a known fix needs.
        from toolmatrix.report import variants

        target = next(iter(resolution.targets))
        return Fix(
            request=tuple(words),
            answer=resolution.chosen(target),
            install=tuple(variants.commands(index, resolution, target)),
        )

    locked: dict[str, str] = {}
    for target in read(lock).targets.values() if lock else ():
        # If several targets have a component, the release of the first counts.
        for component, version in target.chosen.items():
            locked.setdefault(component, version)
    diagnosis = judge.diagnose(index, catalog(index), log, locked, answer, limit)
    report = DiagnosisReport(index, diagnosis, lock if locked else "")
    return Report(
        words=report.text,
        document=report.document,
        exit_code=int(bool(diagnosis.causes)),
        forms={
            "sarif": lambda: as_json(sarif(report.annotations())),
            "github": report.github,
        },
    )


# What is derived from its patterns is kept with it, for the next question of an assistant as well.
@lru_cache(maxsize=4)
def catalog(index: Index) -> SignatureCatalog:
    """The known failures, those of the field reports of a matrix among them."""
    return signatures.with_symptoms(signatures.load(), signatures.symptoms(index.reports()))


def observe_log(path: str, piped: TextIO | None, name: str, matrix: Matrix) -> ObservedLog:
    """The log at a path, with `-` the one `piped` in, as its name is reported. Raises LogError."""
    known = catalog(open_matrix(matrix).index)
    with closing(log_file.unpacked(path, piped, _HELP)) as stream, log_file.readable(name, _HELP):
        return observe(log_file.as_utf8(stream), known, name)
