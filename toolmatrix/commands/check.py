"""`toolmatrix check`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from toolmatrix.api import Path, Report, Words, split_words, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.checks import Workers, findings_report, load_matrix
from toolmatrix.api.checks import files as files_of
from toolmatrix.api.requests import OpenMatrix, open_matrix, paths_of
from toolmatrix.command import PRINTED, command, options
from toolmatrix.command.option import option
from toolmatrix.command.options import EXECUTOR, JOBS, STALE
from toolmatrix.commands import _renders
from toolmatrix.errors import Position, UsageError
from toolmatrix.judging import lints, sweep
from toolmatrix.judging.sweep import ReleaseOutcome
from toolmatrix.report.findings import MatrixReport


@command(
    group="Maintain the matrix",
    order=1,
    usage="[FILE...]",
    completer="file",
    does="checking the matrix",
    formats=("text", "json", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix check",
        "toolmatrix check --only matrix/curated/bazel.yaml",
        "toolmatrix check ours.yaml --stale 180",
        "toolmatrix check --format sarif --output findings.sarif",
        "toolmatrix check --render --arch sm_80,gfx90a",
    ),
)
def check(
    *files: Path,
    only: Words = options.only("Check only these files of facts; repeatable"),
    stale: int | None = STALE,
    render: bool = option(
        "--render",
        cli_only=True,
        excludes=("stale",),
        formats=("text", "json"),
        help="Render every answer of every recipe instead; `--only` limits the recipes, `--arch` adds archs",
    ),
    arch: Words = option("--arch", completer="arch", help="With `--render`: codegen archs to add"),
    jobs: int | None = JOBS,
    executor: str = EXECUTOR,
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Report:
    """Check the matrix, or files of your own.

    Found is all that can be wrong with it, or with `files` that are put on top. `stale` reports what was read more than
    so many days ago. The whole takes a minute of processor time: Python does it in this process unless `jobs` says
    more. Raises UsageError.
    """
    calling, names = caller(), split_words(only)
    paths = [calling.path(os.fspath(path)) for path in files]
    if paths:
        overlays = paths_of(matrix)
        there = set(map(os.path.realpath, files_of(overlays)))
        matrix = (*overlays, *(path for path in paths if os.path.realpath(path) not in there))
    opened = open_matrix(matrix)
    processes = jobs or calling.processes
    workers = partial(Workers, paths=opened.paths, processes=processes, executor=executor)
    if render:
        questions = _renders.questions(opened.index, split_words(arch), names)
        return _renders.table(opened.index, questions, workers)
    return _check_matrix(opened, (*names, *paths), stale, workers)


def check_render(*, arch: Words = (), only: Words = (), matrix: OpenMatrix | None = None) -> Report:
    """Render every answer of every recipe, or of some recipes.

    Each release is also asked for with those of the archs that its target can have. Raises ToolmatrixError.
    """
    return check(only=only, render=True, arch=arch, matrix=matrix)


def _check_matrix(
    opened: OpenMatrix, only: Sequence[str], stale: int | None, workers: Callable[..., Workers]
) -> Report:
    index, today = opened.index, this_day(caller().env)
    files = files_of(opened.paths)
    chosen = [_file(name, files) for name in only]
    matrix = load_matrix(opened.paths) if only else None
    batches = sweep.batches(
        sweep.touched(index, matrix, chosen) if matrix else sweep.releases(index)
    )
    outcomes: list[ReleaseOutcome] = []
    with (
        caller().progress("solving", "releases") as progress,
        workers(sweep.Sweeper(index=index), batches) as shared,
    ):
        # The workers start to solve while this process reads the files again.
        reading = shared.meanwhile(lambda: matrix or load_matrix(opened.paths))
        for batch in shared.results():
            outcomes += batch
            progress.at(len(outcomes), sum(map(len, batches)))
        matrix = reading()
    solved = [
        *sweep.unanswered(outcomes, sweep.promised(index), sweep.first_framework(index)),
        *sweep.doubts_about(outcomes, matrix),
    ]
    read = [
        *lints.gaps(matrix, index),
        *lints.findings(matrix, index, today, stale),
        *lints.unlisted(files),
    ]
    # Solving was limited to releases of the chosen files; findings of reading are selected by file.
    chosen_paths = {lints.shortened(Position(path)).path for path in chosen}
    findings = [
        *lints.located(solved, matrix, files),
        *(
            finding
            for finding in lints.located(read, matrix, files)
            if not only or (finding.where and finding.where.path in chosen_paths)
        ),
    ]
    subject = " and ".join(sorted(chosen_paths)) or "the matrix"
    report = MatrixReport(index, findings, sweep.counts(index, outcomes), subject)
    return findings_report(report, ", ".join(only) or "matrix")


def _file(name: str, files: Sequence[str]) -> str:
    # `--only` names a file by its path, as findings do, or by its last parts.
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
        "the matrix has no such file of facts",
        expected="a file that the front page lists",
        found=f"`--only {name}`",
        help=help or "`toolmatrix facts` shows the file of each fact",
    )
