"""`toolmatrix diff`."""

from __future__ import annotations

from toolmatrix.api import differences
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, EXIT_CODE, PLATFORM, STORES, targets
from toolmatrix.commands._subjects import stdin_of, store_of, targets_of
from toolmatrix.judge import validation
from toolmatrix.lock import lock_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.lock.model import Lock


@command(
    group="Inspect files, images and machines",
    order=2,
    usage="OLD [NEW]",
    completer="file",
    does="comparing",
    formats=PRINTED,
    examples=(
        "toolmatrix diff old.lock toolmatrix.lock --exit-code",
        "toolmatrix diff toolmatrix.lock --target x86,arm",
        "toolmatrix diff archive:x86.tar archive:arm.tar --lock toolmatrix.lock",
        "toolmatrix diff host inventory:arm.json --json",
    ),
    own={
        "exit_code": EXIT_CODE,
        "target": targets("Targets of the lock to compare, such as x86,arm"),
        "platform": PLATFORM,
        "everything": ALL,
        **STORES,
    },
)
def run(context: Context) -> int:
    """Compare locks, targets, images or machines.

    Print the differences and return 0, or 1 with `--exit-code` when a value moved or is suspicious.
    """
    options, words = context.options, context.arguments
    if any(validation.is_subject(word, context.path(word)) for word in words):
        # A lock that lies here by chance explains no difference: it counts where it was named.
        explains = context.origins["lock"].kind == "flag"
        found = differences.of_subjects(
            words,
            targets_of(context) if explains else (),
            options.platform,
            lock=options.lock if explains else "",
            everything=options.everything,
            directory=options.directory,
            stdin=stdin_of(context),
            store=store_of(context),
        )
    else:
        held = [(path, _lock(context, path)) for path in words]
        index = context.index()
        found = differences.of_locks(held, targets_of(context), index)
    code = context.give(found)
    return code if options.exit_code else 0


def _lock(context: Context, argument: str) -> Lock:
    if argument == "-":
        return lock_file.parse(context.piped.read("a lock", lock_file.LARGEST + 1), "stdin")
    return lock_file.read(context.path(argument))
