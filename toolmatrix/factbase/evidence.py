"""The words for how well a statement is known, best first; the order is the order of preference everywhere."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS = ("ran", "artifact", "tested", "stated", "derived", "reported", "unknown")
"""`ran` (a capture we hold), `artifact` (read out of a published file), `tested` (the vendor's tested row), `stated`
(the vendor says supported), `derived` (by a named rule), `reported` (third party), `unknown` (no fact)."""

REPORTED, UNKNOWN = WORDS[-2:]
"""The word of a third party, and what is neither a yes nor a no."""

# Higher is better, so that `>` and `max` read as they are meant; 0 is what no fact says.
_RANK = {word: rank for rank, word in enumerate(reversed(WORDS))}


def rank(word: str) -> int:
    """The rank of an evidence word, higher is better, 0 for `unknown`; KeyError for another word."""
    return _RANK[word]


def word(number: int) -> str:
    """The evidence word of a rank."""
    return WORDS[-1 - number]


def weaker(first: str, second: str) -> str:
    """The weaker of two evidence words: a chain is worth its weakest link."""
    return first if _RANK[first] <= _RANK[second] else second


def weakest(levels: Iterable[str]) -> str:
    """The weakest of some evidence words; the best there is for none."""
    return min(levels, key=rank, default=WORDS[0])
