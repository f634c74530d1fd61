"""Known failures in logs for Python: the facts behind them, and the way out."""

from __future__ import annotations

import io
from contextlib import closing

from toolmatrix.api import Report, as_json, log_of
from toolmatrix.judge import diagnose as judge
from toolmatrix.lock.read import read
from toolmatrix.logs import signatures
from toolmatrix.logs.diagnosis import Fix
from toolmatrix.logs.log import observe
from toolmatrix.report.annotations import sarif
from toolmatrix.report.diagnosis import DiagnosisReport
from toolmatrix.stages import saved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TextIO

    from toolmatrix.api import Matrix, Path
    from toolmatrix.facts.index import Index
    from toolmatrix.logs.log import ObservedLog
    from toolmatrix.request.read import RequestContext

# The causes that are reported where no number is named.
MOST = 10
_HELP = "`-` reads stdin"


def diagnose(
    log: Path | Iterable[str], *, lock: Path = "", limit: int = MOST, matrix: Matrix = None
) -> Report:
    """The known failures in a log, at most `limit`, 0 for all; each beside the releases of a lock where one is named.

    `log` is the text of a log, its lines, or its path: a text has a line break in it. Raises LogError, LockError.
    """
    import os

    from toolmatrix.api.requests import request_context

    place = request_context(matrix)
    path, lines = log_of(log)
    text = None if path else io.StringIO("\n".join(lines))
    seen = observe_log(path or "-", text, path or "log")
    return diagnosed(place.index, seen, os.fspath(lock), limit, lambda: place)


def observe_log(path: str, piped: TextIO | None, name: str) -> ObservedLog:
    """The log at a path, with `-` the one `piped` in, as its name is reported. Raises LogError."""
    with closing(saved.unpacked(path, piped, _HELP)) as stream, saved.readable(name, _HELP):
        return observe(saved.as_utf8(stream), signatures.load(), name)


def diagnosed(
    index: Index, log: ObservedLog, lock: str, limit: int, context: Callable[[], RequestContext]
) -> Report:
    """The known failures in a log, beside the lock at a path; `context` is where ways out are pasted."""

    # A way out is offered only if it was solved here, with the settings that a paste of it would meet.
    def answer(words: Sequence[str]) -> Fix | None:
        resolution = context().answered(words)
        if resolution is None:
            return None
        # Loads what solves, which a log without a way out has no use for.
        from toolmatrix.report import variants

        target = next(iter(resolution.targets))
        return Fix(
            request=tuple(words),
            answer=resolution.chosen(target),
            install=tuple(variants.commands(index, resolution, target)),
        )

    locked: dict[str, str] = {}
    for target in read(lock).targets.values() if lock else ():
        # Of a component that several targets hold, the release of the first counts.
        for component, version in target.chosen.items():
            locked.setdefault(component, version)
    found = judge.diagnose(index, signatures.load(), log, locked, answer, limit)
    report = DiagnosisReport(index, found, lock if locked else "")
    return Report(
        words=report.text,
        document=report.document,
        exit_code=int(bool(found.causes)),
        forms={
            "sarif": lambda: as_json(sarif(report.annotations())),
            "github": report.github,
        },
    )
