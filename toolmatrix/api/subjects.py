"""What commands about images, machines and saved file systems share, and the verdicts about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import IO, Any

from toolmatrix import document_store, opener
from toolmatrix.api import PLAIN, Matrix, Outcome, Path, Words, as_json, path_list, split_words
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.errors import Position, UsageError
from toolmatrix.factbase.store import cache_folder
from toolmatrix.finding import OUTCOMES, Judged, Verdict
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.subjects import read_subjects
from toolmatrix.report import verdicts
from toolmatrix.report.annotations import sarif
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.fields import Fields, settled
from toolmatrix.value import Value
from toolmatrix.wording import plural

_IMAGES = "images"
"""The folder of the user's cache for what was read of images."""
LARGEST_LIST = 16 << 20
"""Bytes of a file of subjects or expectations."""


class Validation(Outcome, Value):
    """The verdicts about subjects, true where all of them hold; see `Judged` for the fields of each.

    One that is `alone` is a document of its own.
    """

    subjects: tuple[Judged, ...]
    alone: bool = True

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts about all subjects."""
        return tuple(verdict for subject in self.subjects for verdict in subject.verdicts)

    @property
    def outcome(self) -> str:
        """yes, no or unknown."""
        return next(answer for answer, code in OUTCOMES.items() if code == self.exit_code)

    @property
    def exit_code(self) -> int:
        """0, 1 or 4."""
        codes = {subject.exit_code for subject in self.subjects}
        # A failure comes before what cannot be said.
        return 1 if 1 in codes else max(codes, default=0)

    def text(self, screen: Terminal = PLAIN) -> str:
        """The lines that the command prints."""
        return verdicts.texts(self.subjects, screen)

    def to_json(self) -> Mapping[str, Any]:
        """The document that the command writes."""
        return self.subjects[0].to_json() if self.alone else verdicts.document(self.subjects)

    def written(self, form: str, title: str = "") -> str:
        """The text of `--format`. Raises KeyError."""
        if form == "sarif":
            return as_json(sarif(verdicts.annotated(self.subjects)))
        if form in verdicts.FORMS:
            return verdicts.FORMS[form](self.subjects)
        # The lines of JSON were printed as they came.
        return "" if form == "jsonl" else super().written(form, title)

    def step_summary(self, title: str) -> str:
        """The table that a step of GitHub keeps of it."""
        del title
        return verdicts.markdown(self.subjects)


def note_not_attached(validation: Validation) -> Validation:
    """Note of which subjects the verdicts are not in their registry, and why."""
    lost = [subject for subject in validation.subjects if subject.not_attached]
    if lost:
        what = lost[0].subject + (f" and of {plural(len(lost) - 1, 'other')}" if lost[1:] else "")
        why = lost[0].not_attached
        caller().note(f"note: the verdicts of {what} are not stored in the registry: {why}")
    return validation


def subjects_in_lists(lists: Path | Iterable[Path]) -> list[str]:
    """The subjects in lists, each once. Raises UsageError where there are none."""
    names = path_list(lists)
    subjects: dict[str, None] = {}
    for name in names:
        read = partial(read_file, name, "subjects", LARGEST_LIST)
        subjects |= dict.fromkeys(read_subjects("stdin" if name == "-" else name, read))
    if names and not subjects:
        raise UsageError(
            "no subjects found",
            expected="subjects such as `archive:image.tar`, one per line, or a manifest with images",
            found=", ".join(f"`{name}`" for name in names),
        )
    return list(subjects)


def read_file(path: str, what: str, most: int) -> bytes:
    """The bytes of a file or of stdin, at most so many. Raises UsageError."""
    calling = caller()
    try:
        # One more than may be: what is left out of a list would never be missed.
        data = (
            calling.piped(what, most + 1)
            if path == "-"
            else opener.read_file(calling.path(path), most)
        )
    except OSError as error:
        raise UsageError(
            f"cannot read {what}", where=Position(path), found=error.strerror or str(error)
        ) from None
    if data is None or len(data) > most:
        expected = f"at most {most >> 20} MiB"
        raise UsageError(f"cannot read {what}", where=Position(path), expected=expected)
    return data


def layer_store(location: Path | None = "", size: int = 0) -> LayerStore | None:
    """The store of what was read of images, a folder of so many MiB or a URL of fsspec; None keeps nothing.

    Without a location it is in the user's cache, if there is one. Raises UsageError.
    """
    if location is None:
        return None
    calling, where = caller(), os.fspath(location)
    if where and "://" not in where:
        where = calling.path(where)
    folder = cache_folder(calling.env)
    root = where or (os.path.join(folder, _IMAGES) if folder else "")
    store = (
        LayerStore(document_store.open_store(root, size or document_store.SIZE)) if root else None
    )
    # The default cache fails silently.
    if location and (why := document_store.problem_with_folder(where)):
        calling.note(f"note: nothing is cached in `{os.fspath(location)}`: {why}")
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
