"""Answers from wheels installed, imported and used, for Python: what runs, what does not, and with what it breaks."""

from __future__ import annotations

import os
import os.path

from toolmatrix.api import Report, harvests, this_day
from toolmatrix.api.checks import files, findings_report, loaded
from toolmatrix.api.trials import ImportedReleases, Trials, standing
from toolmatrix.errors import NothingMatched
from toolmatrix.facts.store import cache_folder
from toolmatrix.harvest import environments, runs, written
from toolmatrix.harvest.environments import Bench
from toolmatrix.harvest.resolver import Uv
from toolmatrix.judge import audit, lints
from toolmatrix.outputs import replace_files
from toolmatrix.report.imports import ImportReport
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolmatrix.api import Path
    from toolmatrix.api.harvests import HarvestedFile
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.facts.index import Index
    from toolmatrix.harvest.environments import Operation
    from toolmatrix.judge.sweep import Release


def imports(
    *names: str,
    pythons: Sequence[Path] = (),
    write: Path = "",
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Report:
    """Answers from wheels without an accelerator, installed, imported and used: the newest of each minor release.

    `names` are components, or releases of them such as `jax==0.4.*`; all that have an operation where none is named.
    `pythons` are paths, all that are installed where none is named. `write` is the file that gets the facts.
    Raises NothingMatched, MatrixError, OutputError, ToolMissing, UsageError.
    """
    from toolmatrix.api.requests import open_matrix

    opened = open_matrix(matrix)
    paths = [os.fspath(one) for one in pythons]
    found = imported_releases(opened.index, opened.paths, names, paths, os.environ)
    if write:
        put(found, os.fspath(write))
    return reported(opened.index, opened.paths, names, found)


def put(found: ImportedReleases, path: str) -> HarvestedFile:
    """Put what was found into a file of facts, which keeps what else it has.

    Raises MatrixError, OutputError, and UsageError where somebody else writes there.
    """
    with harvests.locked(os.path.dirname(path) or "."):
        # Read while nobody else writes: their rows stay.
        made = runs.imports_document(path, found.together, found.breaks)
        text = written.text(made, runs.ABOUT_IMPORTS, "toolmatrix audit --import --write")
        file = harvests.compared("imports", path, text)
        replace_files({path: text} if file.changed and made["tables"] else {})
    return file


def reported(
    index: Index, paths: Sequence[str], names: Sequence[str], found: ImportedReleases
) -> Report:
    """What was run as a report; 1 where an answer cannot be used."""
    located = lints.located(found.findings, loaded(paths), files(paths))
    return findings_report(
        ImportReport(index, located, found.answers), ", ".join(names) or "matrix"
    )


def imported_releases(
    index: Index,
    paths: Sequence[str],
    names: Sequence[str],
    pythons: Sequence[str],
    env: Mapping[str, str],
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ImportedReleases:
    """Run them, so many at a time; `progress` hears how many releases are done, and of how many."""
    from concurrent.futures import ThreadPoolExecutor

    operations = environments.operations()
    work = list(_releases(index, names, operations.of))
    folder = cache_folder(env)
    kept = os.path.join(folder, "imports") if folder else ""
    bench = Bench(Uv(env, "--import"), operations, kept, this_day(env).isoformat())
    there = [
        one
        for one in bench.uv.interpreters(pythons)
        if one.series in index.component("python").versions
    ]
    if not there:
        raise NothingMatched(
            "no installed Python is known to the matrix", help="name one with `--python PATH`"
        )
    own = audit.packages(loaded(paths))
    trials = Trials(index, bench, own, there)
    parts = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done, part in enumerate(pool.map(trials.of, work), 1):
                parts.append(part)
                progress(done, len(work))
        finally:
            # An interrupt waits for what runs at the moment, and for nothing after it.
            bench.stopped.set()
    return ImportedReleases(
        **{
            field: tuple(one for part in parts for one in getattr(part, field))
            for field in ImportedReleases._fields
        }
    )


def _releases(
    index: Index, names: Sequence[str], known: Mapping[str, Operation]
) -> Iterator[Release]:
    read = Names(index)
    for text in names or [name for name in known if name in index.header["components"]]:
        ask = read.asks(text)[0]
        operation = known.get(ask.component)
        if operation is None:
            raise NothingMatched(
                f"no operation is known for {ask.component}",
                expected="one of " + ", ".join(sorted(known)),
                help="toolmatrix/operations.yaml has a program for each",
            )
        mask = read.scale(ask.component).select(ask.selector)
        scale = read.scale(ask.component)
        versions = [
            version for version in standing(index, ask.component) if mask & scale.bit(version)
        ]
        for version in operation.newest(versions):
            yield ask.component, version
