"""What commands about images, machines and saved file systems share, and the verdicts about them."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix import document_store
from toolmatrix.api import PLAIN, Outcome, Report, as_json, split_words
from toolmatrix.api.arguments import words
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.facts.store import cache_folder
from toolmatrix.finding import Judged
from toolmatrix.inventory.layers import LayerStore
from toolmatrix.judge.validation import Baseline, Validator, expectations_of
from toolmatrix.report import verdicts
from toolmatrix.report.annotations import sarif
from toolmatrix.request.fields import Fields, settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from toolmatrix.api import Matrix, Path, Wanted, Words
    from toolmatrix.report.terminal import Terminal

_IMAGES = "images"
"""The folder of the user's cache for what was read of images."""


class Validation(Judged, Outcome):
    """The verdicts about one subject, true where all of them hold; see `Judged` for its fields."""

    def text(self, screen: Terminal = PLAIN) -> str:
        """The lines that the command prints."""
        return verdicts.text(self, screen)

    def written(self, form: str, title: str = "") -> str:
        """The text of `--format`. Raises KeyError."""
        return report([self]).written(form, title)

    def step_summary(self, title: str) -> str:
        """The table that a step of GitHub keeps of it."""
        del title
        return verdicts.markdown([self])


def report(many: Sequence[Judged], *, alone: bool = True) -> Report:
    """The verdicts about one subject that is `alone`, or about several, in every form of the command."""
    codes = {judged.exit_code for judged in many}
    return Report(
        words=partial(verdicts.text_of_all, many),
        document=many[0].to_json if alone else partial(verdicts.document, many),
        # A failure is told before what nobody can say.
        exit_code=1 if 1 in codes else max(codes, default=0),
        forms={
            # The lines of JSON were printed as they came.
            "jsonl": str,
            "sarif": lambda: as_json(sarif(verdicts.annotated(many))),
            **{name: partial(form, many) for name, form in verdicts.FORMS.items()},
        },
    )


def layer_store(place: Path | None = "", size: int = 0) -> LayerStore | None:
    """The store of what was read of images, a folder of so many MiB or a URL of fsspec; None keeps nothing.

    Without a place it lies in the user's cache, as far as there is one. Raises UsageError.
    """
    if place is None:
        return None
    calling, where = caller(), os.fspath(place)
    if where and "://" not in where:
        where = calling.path(where)
    folder = cache_folder(calling.env)
    kept = where or (os.path.join(folder, _IMAGES) if folder else "")
    store = LayerStore(document_store.opened(kept, size or document_store.SIZE)) if kept else None
    # A cache that cannot be used is nobody's wish.
    if place and (why := document_store.hindrance(where)):
        calling.note(f"note: nothing is cached in `{os.fspath(place)}`: {why}")
    return store


def piped_archive() -> IO[bytes] | None:
    """The standard input as bytes, None where it has none."""
    # A stream of text alone, such as a test gives, has no buffer.
    return getattr(caller().stdin, "buffer", None)


def targets_of(target: Words, matrix: Matrix = None) -> tuple[str, ...]:
    """The targets that a call names, by the names of the matrix. Raises BadValue."""
    # A setting or a variable says where things run, not what to check or to compare.
    if not target or not caller().is_flag("target"):
        return ()
    return settled(Fields(target=split_words(target)), open_matrix(matrix).index).target


def validate(
    subject: str,
    *,
    lock: Path = "",
    expect: Wanted = (),
    target: str = "",
    platform: str = "",
    directory: Path = "",
    only: Words = (),
    run: bool = True,
    strict: bool = False,
    store: Path | None = "",
    matrix: Matrix = None,
) -> Validation:
    """Check a subject against a lock, against expectations such as `python==3.11.*`, or else against the lock in it.

    `target` names the target of the lock, where neither a label nor the platform of the image tells it. `only` keeps
    the verdicts of some kinds or names, `strict` makes a warning a failure, and `store` is that of `inventory`. The
    subject is read in this process, within no bounds of time or memory but those of the caller. Raises LockError for a
    lock that cannot be used, and what `inventory` raises.
    """
    baseline = Baseline(
        # A string is one expectation, with whatever commas it has.
        expected=expectations_of((word, None) for word in words(expect)),
        targets=(target,) if target else (),
    )
    validator = Validator(
        index=open_matrix(matrix).index,
        baseline=baseline.with_lock(os.fspath(lock)),
        directory=os.fspath(directory),
        platform=platform,
        only=split_words(only),
        run=run,
        strict=strict,
        store=layer_store(store),
    )
    found = validator.judge(subject)
    return Validation(**{field: getattr(found, field) for field in found._fields})
