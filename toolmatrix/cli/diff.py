"""`toolmatrix diff`: what moved between two locks."""

from __future__ import annotations

from toolmatrix.errors import UsageError
from toolmatrix.lock import compare, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.lock.model import Lock


def run(context: Context) -> int:
    """Print the differences and return 0, or 1 with `--exit-code` when a value differs."""
    paths = context.arguments[0], context.arguments[1]
    if paths[0] == paths[1] == "-":
        raise UsageError("only one of the two locks can be `-`")
    old, new = (_read(context, path) for path in paths)
    found = compare.locks(old, new)
    index = context.index()
    from toolmatrix.report import differences

    if context.options.format == "json":
        context.write_json(differences.document(index, (paths[0], old), (paths[1], new), found))
    else:
        context.write(differences.text(index, old, new, found, context.terminal))
    return int(context.options.exit_code and found.any)


def _read(context: Context, argument: str) -> Lock:
    """The lock at a path, or on stdin."""
    if argument == "-":
        return read.parse(context.piped.read("a lock", read.LARGEST + 1), "stdin")
    return read.read(context.path(argument))
