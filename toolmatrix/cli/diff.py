"""`toolmatrix diff`: what moved between two locks, what is not the same on two targets, or in two environments."""

from __future__ import annotations

from toolmatrix.api import differences
from toolmatrix.cli.validate import targets
from toolmatrix.judge import locked
from toolmatrix.lock import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.lock.model import Lock


def run(context: Context) -> int:
    """Print the differences and return 0, or 1 with `--exit-code` when a value moved or is suspicious."""
    options, words = context.options, context.arguments
    if any(locked.is_subject(word, context.path(word)) for word in words):
        explains = context.origins["lock"].kind == "flag"
        found = differences.of_subjects(
            words,
            targets(context) if explains else (),
            options.platform,
            lock=options.lock if explains else "",
            everything=options.all,
            directory=options.directory,
            stdin=getattr(context.stdin, "buffer", None),
        )
    else:
        held = [(path, _read(context, path)) for path in words]
        index = context.index()
        found = differences.of_locks(held, targets(context), index)
    code = context.give(found)
    return code if options.exit_code else 0


def _read(context: Context, argument: str) -> Lock:
    """The lock at a path, or on stdin."""
    if argument == "-":
        return read.parse(context.piped.read("a lock", read.LARGEST + 1), "stdin")
    return read.read(context.path(argument))
