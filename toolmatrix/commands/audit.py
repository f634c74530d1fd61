"""`toolmatrix audit`."""

from __future__ import annotations

from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import EXECUTOR, JOBS, WRITE
from toolmatrix.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


@command(
    group="Maintain the matrix",
    order=2,
    usage="[NAME...]",
    completer="component",
    does="auditing",
    formats=("text", "json", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix audit",
        "toolmatrix audit torch jax",
        "toolmatrix audit numpy --online --format sarif --output findings.sarif",
        "toolmatrix audit --import 'jax==0.4.*' --write imports.yaml",
    ),
    own={
        "online": option(
            "--online",
            kind="flag",
            configurable=False,
            help="Compare the matrix with the package index, and its answers with uv",
        ),
        "from_": option(
            "--from",
            kind="text",
            metavar="WORD",
            completer="from",
            help="Directory of git clones to check values against",
        ),
        "import_": option(
            "--import",
            kind="flag",
            only_flag=True,
            excludes=("online",),
            help="Install answers from wheels, import them and use them, and report what fails",
        ),
        "python": option(
            "--python",
            kind="list",
            metavar="PATH",
            completer="file",
            shape="path",
            split=False,
            only_flag=True,
            help="Import with this Python instead of every installed one; repeatable",
        ),
        "write": WRITE,
        "jobs": JOBS,
        "executor": EXECUTOR,
    },
)
def run(context: Context) -> int:
    """Report coverage of the matrix, and wrong, missing or stale facts.

    Print what the matrix covers and what is wrong; 1 when an error is found, but 0 where a SARIF reader judges.
    """
    from toolmatrix.api import audits
    from toolmatrix.cli.progress import ProgressLine, summarize

    if context.options.import_:
        return _imports(context)
    if context.options.python or context.options.write:
        raise UsageError("only `--import` takes `--python` and `--write`")
    index, progress = context.index(), ProgressLine(context, "judging", "answers")
    sources = audits.asked_online(context.env) if context.options.online else None
    # A setting or variable says how frameworks get there, and no path.
    said = context.origins["from_"].kind == "flag"
    found = audits.audited(
        index,
        context.matrices,
        context.arguments,
        context.env,
        sources,
        clones=context.path(context.options.from_) if said else "",
        processes=context.options.jobs or 0,
        executor=context.options.executor,
        progress=progress.at,
    )
    progress.end()
    if context.options.format == "github":
        summarize(context, found.written("md"))
    return context.give(found)


def _imports(context: Context) -> int:
    from toolmatrix.api import harvests, imports
    from toolmatrix.cli.progress import ProgressLine

    index, options = context.index(), context.options
    if context.origins["executor"].kind == "flag":
        raise UsageError(
            "`--import` uses the interpreters of this machine, and takes no `--executor`"
        )
    progress = ProgressLine(context, "importing", "releases")
    try:
        found = imports.imported_releases(
            index,
            context.matrices,
            context.arguments,
            options.python,
            context.env,
            jobs=options.jobs or 1,
            progress=progress.at,
        )
    finally:
        progress.end()
    if options.write:
        file = imports.put(found, options.write)
        context.say_after(harvests.describe_changes(file).removesuffix("\n"))
    return context.give(imports.reported(index, context.matrices, context.arguments, found))
