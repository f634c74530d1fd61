"""`toolmatrix harvest`: facts as their sources say them now."""

from __future__ import annotations

from contextlib import nullcontext

from toolmatrix.api import harvests
from toolmatrix.cli.context import Context
from toolmatrix.cli.progress import ProgressLine
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK, EXECUTOR


@command(
    group="Maintain the matrix",
    order=3,
    usage="[NAME...]",
    saves=True,
    does="harvesting",
    examples=(
        "toolmatrix harvest numpy",
        "toolmatrix harvest --check",
        "toolmatrix harvest vllm --output facts",
        "toolmatrix harvest numpy --from saved-index",
    ),
    own={
        "from_": option(
            "--from",
            kind="text",
            metavar="WORD",
            completer="from",
            help="Read the sources from this path instead",
        ),
        "check": CHECK,
        "accept": option(
            "--accept",
            kind="flag",
            only_flag=True,
            excludes=("check",),
            help="Write files even if some of their rows have disappeared from the source",
        ),
        "executor": EXECUTOR,
    },
)
def run(context: Context) -> int:
    """Refresh facts from their sources.

    Read families and write what changed; 1 with `--check` when something would.
    """
    options = context.options
    output = "" if options.output == "-" else options.output
    # A setting or variable says how frameworks get there, and no path.
    said = context.origins["from_"].kind == "flag"
    place = context.path(options.from_) if said else ""
    folder = harvests.folder_of(output)
    # What is only looked at may be written meanwhile.
    with nullcontext() if options.check else harvests.locked(folder):
        progress = ProgressLine(context, "reading", "families" if options.executor else "wheels")
        try:
            found = harvests.gathered(
                context.arguments,
                context.index,
                context.matrices,
                place,
                folder,
                context.env,
                progress.of,
                options.executor,
            )
        finally:
            progress.end()
        for warning in found.warnings:
            context.say(f"warning: harvested without what cannot be read: {warning}")
        if not options.check:
            found.write(accept=options.accept)
    context.say_after(str(found.effort))
    code = context.give(found)
    # A check answers whether anything changed; otherwise that it did is what was asked for.
    return code if options.check else 0
