"""Whether an image can be pulled: what lists of tags, and of deleted ones, say of its name.

A pattern is a reference with `*` (anything but a slash) and `{a,b}` (one of these). A list names images that were there
on its day; what it says is not there was deleted, or never published. The later day decides, and of one day the list of
those that are there. What no pattern names may be there or not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from toolmatrix.factbase.records import ImageRecord
from toolmatrix.value import Value

BASE = "base-image"
"""The component whose releases are images."""
PULLS = ("yes", "no")
_PIECE = re.compile(r"\{([\w./:,*-]*)\}|([\w./:-]+)|(\*)")


class Availability(Value):
    """What is known of an image: `pulls` is yes, no or empty, `since` the day by which it was gone.

    `facts` are the rows that say so, `recipe` the address of its recipe, and `notes` what to know of one that is there.
    """

    pulls: str = ""
    since: str = ""
    facts: tuple[str, ...] = ()
    recipe: str = ""
    notes: tuple[ImageRecord, ...] = ()


def is_pattern(text: str) -> bool:
    """True for a pattern of images."""
    return bool(text) and not _PIECE.sub("", text)


def availability(records: Iterable[ImageRecord], image: str) -> Availability:
    """What lists say of an image by its full name, without the registry that is meant when none is named."""
    speaking = [record for record in records if _compiled(record.image).fullmatch(image)]
    # A tag that was gone may have been pushed again.
    there = max((record.day for record in speaking if record.pulls == "yes"), default="")
    gone = sorted(
        (record for record in speaking if record.pulls == "no" and record.day > there),
        key=lambda record: record.day,
    )
    if gone:
        recipe = next((record.recipe for record in gone if record.recipe), "")
        facts = tuple(record.fact for record in gone)
        return Availability(pulls="no", since=gone[0].day, facts=facts, recipe=recipe)
    kept = [record for record in speaking if record.pulls == "yes"]
    return Availability(
        pulls="yes" if kept else "",
        facts=tuple(record.fact for record in kept),
        notes=tuple(record for record in kept if record.note),
    )


def references(records: Iterable[ImageRecord], repository: str) -> Iterator[str]:
    """The images of a repository that lists say are there, with nothing to note, in the order of the lists."""
    for record in records:
        # A pattern with `*` names no image that a file could begin with.
        if record.pulls == "yes" and not record.note and "*" not in record.image:
            yield from (name for name in _expanded(record.image) if name.startswith(repository))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = []
    for choices, plain, _ in _PIECE.findall(pattern):
        texts = [plain] if plain else choices.split(",") if choices else ["*"]
        sides = ("[^/]*".join(map(re.escape, text.split("*"))) for text in texts)
        pieces.append(f"(?:{'|'.join(sides)})")
    return re.compile("".join(pieces))


@lru_cache(maxsize=1024)
def _expanded(pattern: str) -> tuple[str, ...]:
    choices = [
        several.split(",") if not plain else [plain]
        for several, plain, _ in _PIECE.findall(pattern)
    ]
    return tuple(map("".join, itertools.product(*choices)))
