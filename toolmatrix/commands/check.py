"""`toolmatrix check`."""

from __future__ import annotations

import os.path

from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import EXECUTOR, JOBS, STALE, only
from toolmatrix.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


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
    own={
        "only": only("Check only these files of facts; repeatable"),
        "stale": STALE,
        "render": option(
            "--render",
            kind="flag",
            only_flag=True,
            excludes=("stale",),
            help="Render every answer of every recipe instead; `--only` limits the recipes, `--arch` adds archs",
        ),
        "arch": option(
            "--arch", kind="list", completer="arch", help="With `--render`: codegen archs to add"
        ),
        "jobs": JOBS,
        "executor": EXECUTOR,
    },
)
def run(context: Context) -> int:
    """Check the matrix, or files of your own.

    Judge the matrix and print what was found; 1 when an error is among it, but 0 where a SARIF reader judges.
    """
    from toolmatrix.api import checks
    from toolmatrix.cli.progress import ProgressLine, summarize

    context = _with_files(context)
    options = context.options
    if options.render:
        return _renders(context)
    index, progress = context.index(), ProgressLine(context, "solving", "releases")
    found = checks.checked(
        index,
        context.matrices,
        options.only,
        options.stale,
        context.env,
        processes=options.jobs or 0,
        executor=options.executor,
        progress=progress.at,
    )
    progress.end()
    if options.format == "github":
        summarize(context, found.written("md"))
    return context.give(found)


def _with_files(context: Context) -> Context:
    """This run with the files that it names in force, and they alone judged."""
    from toolmatrix.api import checks

    if not context.arguments:
        return context
    files = tuple(map(context.path, context.arguments))
    there = set(map(os.path.realpath, checks.files(context.matrices)))
    more = tuple(path for path in files if os.path.realpath(path) not in there)
    options = context.options
    only = () if options.render else files
    return context.replace(
        options=options.replace(
            matrix=(*options.matrix, *more),
            only=(*options.only, *only),
        )
    )


def _renders(context: Context) -> int:
    from toolmatrix.api import renders
    from toolmatrix.cli.progress import ProgressLine

    options, index = context.options, context.index()
    if options.format not in ("text", "json"):
        raise UsageError(
            "`--render` has no such format", expected="text or json", found=f"`{options.format}`"
        )
    asked = renders.questions(index, options.arch, options.only)
    progress = ProgressLine(context, "rendering", "answers")
    found = renders.rendered(
        index,
        context.matrices,
        asked,
        processes=options.jobs or 0,
        executor=options.executor,
        progress=progress.at,
    )
    progress.end()
    return context.give(found)
