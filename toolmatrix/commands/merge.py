"""`toolmatrix merge`."""

from __future__ import annotations

from collections.abc import Iterable

from toolmatrix.api import Path, path_list
from toolmatrix.api.subjects import Validation, note_not_attached, read_file, subjects_in_lists
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.errors import UsageError
from toolmatrix.judging import validation
from toolmatrix.outputs import LARGEST_RESULTS


@command(
    group="Inspect files, images and machines",
    order=4,
    usage="FILE...",
    completer="file",
    formats=("text", "json", "junit", "sarif", "github", *PRINTED[2:]),
    examples=("toolmatrix merge shard-*.jsonl --subjects images.txt",),
)
def merge(
    *results: Path,
    subjects: Path | Iterable[Path] = option(
        "--subjects",
        kind="list",
        metavar="LIST",
        completer="file",
        configurable=False,
        help="List of subjects that the results must cover, as for `validate --all`; repeatable",
    ),
) -> Validation:
    """Merge the results of several validate runs.

    The verdicts of several runs over shards are those of one, with the exit code that one would have; of what
    `subjects` lists beside them is said that no run has a result. Raises UsageError for files that are no results, or
    of different runs.
    """
    names = list(dict.fromkeys(path_list(results)))
    merged = validation.merge_results(
        (name, read_file(name, "results", LARGEST_RESULTS)) for name in names
    )
    wanted = subjects_in_lists(subjects)
    if not merged:
        raise UsageError(
            "no results found",
            expected="results of subjects, as `--resume` and `--format jsonl` write them",
            found=", ".join(f"`{name}`" for name in names),
        )
    # Without a list it is unknown what is missing.
    many = [merged.get(name) or validation.missing_result(name) for name in wanted or merged]
    return note_not_attached(Validation(subjects=tuple(many), alone=False))
