"""Shared by `validate` and `merge`: lists of subjects, and the output of verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from toolmatrix.api import subjects
from toolmatrix.cli.context import Context
from toolmatrix.cli.progress import summarize
from toolmatrix.errors import Position, UsageError
from toolmatrix.finding import Judged
from toolmatrix.inventory.subjects import read_subjects
from toolmatrix.opener import opened
from toolmatrix.report import verdicts
from toolmatrix.wording import plural

# Maximum bytes of a file of subjects or expectations.
LARGEST_LIST = 16 << 20


def give_verdicts(context: Context, many: list[Judged], *, alone: bool) -> int:
    """Print verdicts in the format asked for; returns the exit code."""
    if context.options.format == "github":
        summarize(context, verdicts.markdown(many))
    lost = [verdict for verdict in many if verdict.not_attached]
    if lost:
        what = lost[0].subject + (f" and of {plural(len(lost) - 1, 'other')}" if lost[1:] else "")
        why = lost[0].not_attached
        context.say_after(f"note: the verdicts of {what} are not stored in the registry: {why}")
    return context.give(subjects.report(many, alone=alone))


def listed_subjects(context: Context, lists: Iterable[str]) -> list[str]:
    """The subjects in lists, each once. Raises UsageError where there are none."""
    unique: dict[str, None] = {}
    for name in lists:
        read = partial(read_file, context, name, "subjects", LARGEST_LIST)
        unique |= dict.fromkeys(read_subjects("stdin" if name == "-" else name, read))
    if lists and not unique:
        raise UsageError(
            "no subjects found",
            expected="subjects such as `archive:image.tar`, one a line, or a manifest with images",
            found=", ".join(f"`{name}`" for name in lists),
        )
    return list(unique)


def read_file(context: Context, path: str, what: str, most: int) -> bytes:
    """Read at most `most` bytes of a file or of stdin. Raises UsageError."""
    try:
        # Read one byte more than allowed, to detect a list that is too long.
        if path == "-":
            data = context.piped.read(what, most + 1)
        else:
            with opened(context.path(path)) as file:
                data = file.read(most + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {what}", where=Position(path), found=reason) from None
    if len(data) > most:
        expected = f"at most {most >> 20} MiB"
        raise UsageError(f"cannot read {what}", where=Position(path), expected=expected)
    return data
