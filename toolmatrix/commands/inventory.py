"""`toolmatrix inventory`."""

from __future__ import annotations

from toolmatrix.api import subjects
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, NO_RUN, PLATFORM, STORES
from toolmatrix.commands._subjects import stdin_of, store_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


@command(
    group="Inspect files, images and machines",
    order=5,
    usage="SUBJECT",
    completer="file",
    does="reading",
    formats=PRINTED,
    examples=(
        "toolmatrix inventory archive:image.tar",
        "toolmatrix inventory docker:app:latest --no-run",
        "toolmatrix inventory archive:app.tar --json",
        "toolmatrix inventory oci:layout --platform linux/arm64",
    ),
    own={
        "platform": PLATFORM,
        "no_run": NO_RUN,
        "everything": ALL,
        **STORES,
    },
)
def run(context: Context) -> int:
    """List what an image or a directory contains.

    Print the inventory of a subject; raises SubjectError where it cannot be read.
    """
    options = context.options
    index = None if options.no_run else context.index
    place = options.platform, options.directory
    store = store_of(context)
    found = subjects.observed(context.arguments[0], *place, stdin_of(context), index, store)
    return context.give(found, everything=options.everything)
