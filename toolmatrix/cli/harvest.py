"""`toolmatrix harvest`: facts as their sources say them now."""

from __future__ import annotations

from toolmatrix.api import harvests
from toolmatrix.cli.progress import Progress
from toolmatrix.harvest import families

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Read families and write what changed; 1 with `--check` when something would."""
    options = context.options
    wanted = families.chosen(families.families(), context.arguments)
    output = "" if options.output == "-" else options.output
    # A setting or variable says how frameworks get there, and no path.
    said = context.origins["from_"].kind == "flag"
    place = context.path(options.from_) if said else ""
    with harvests.locked(harvests.folder_of(output)) as folder:
        progress = Progress(context, "reading", "wheels")
        try:
            found = harvests.gathered(
                wanted, context.index(), place, folder, context.env, progress.of
            )
        finally:
            progress.end()
        if not options.check:
            found.write(accept=options.accept)
    context.say_after(str(found.effort))
    code = context.give(found)
    return code if options.check else 0
