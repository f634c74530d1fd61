"""Small pieces of sentences: counts, lists of words, and what is left out of a long one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def plural(count: int, singular: str, plural_form: str = "") -> str:
    """`1 fact`, `2 facts`, `3 matches`."""
    return f"{count} {singular if count == 1 else plural_form or singular + 's'}"


def listing(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def quoted(names: Iterable[str]) -> str:
    """`a` and `b`, each between backquotes."""
    return listing([f"`{name}`" for name in names])


def few(text: str, most: int) -> str:
    """At most so many of the words of a text, and how many more there are."""
    # Ranges are listed with commas and names with blanks; words serve both.
    words = text.split()
    if len(words) <= most:
        return text
    return f"{' '.join(words[:most]).rstrip(',')} and {len(words) - most} more"


def some(names: Sequence[str], most: int) -> str:
    """At most so many of the names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
