"""`toolmatrix merge`."""

from __future__ import annotations

from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.commands._subjects import give_verdicts, listed_subjects, read_file
from toolmatrix.errors import UsageError
from toolmatrix.judge import validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context

# Bytes of a file of results.
_LARGEST_RESULTS = 1 << 30


@command(
    group="Inspect files, images and machines",
    order=4,
    usage="FILE...",
    completer="file",
    formats=("text", "json", "junit", "sarif", "github", *PRINTED[2:]),
    examples=("toolmatrix merge shard-*.jsonl --subjects images.txt",),
    own={
        "subjects": option(
            "--subjects",
            kind="list",
            metavar="LIST",
            completer="file",
            configurable=False,
            help="List of subjects that the results must cover, as for `validate --all`; repeatable",
        ),
    },
)
def run(context: Context) -> int:
    """Merge the results of several validate runs.

    Print the verdicts of several runs over shards as those of one, with the exit code that one would have.
    """
    found = validation.merged(
        (name, read_file(context, name, "results", _LARGEST_RESULTS))
        for name in dict.fromkeys(context.arguments)
    )
    wanted = listed_subjects(context, context.options.subjects)
    if not found:
        raise UsageError(
            "no results found",
            expected="results of subjects, as `--resume` and `--format jsonl` write them",
            found=", ".join(f"`{name}`" for name in context.arguments),
        )
    # Without a list nobody knows what is missing.
    many = [found.get(name) or validation.lacking(name) for name in wanted or found]
    return give_verdicts(context, many, alone=False)
