"""Times at which the archive of a distribution is taken: how users write them, and what services call them.

The services of Debian and Ubuntu have a folder for each time, in UTC: https://snapshot.debian.org/archive/debian and
https://snapshot.ubuntu.com.
"""

from __future__ import annotations

from datetime import datetime, timezone

from toolmatrix.errors import UsageError

_STAMP, _DAY = "%Y%m%dT%H%M%SZ", "%Y-%m-%d"


def stamp(text: str) -> str:
    """The name of a time, of a day its beginning; nothing of nothing. Raises UsageError for another text."""
    return time(text).strftime(_STAMP) if text else ""


def epoch(text: str) -> int:
    """A time as seconds since 1970, as SOURCE_DATE_EPOCH has it. Raises UsageError."""
    return int(time(text).timestamp())


def time(text: str) -> datetime:
    """The time that a text says. Raises UsageError."""
    for form in (_DAY, _STAMP):
        try:
            found = datetime.strptime(text, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
        # It would take 2026-1-2 as well, which no service knows.
        if found.strftime(form) == text:
            return found
    raise UsageError(
        f"`--snapshot {text}` is not a time",
        expected="a day such as 2026-11-20, or a time of a snapshot such as 20261120T030400Z",
        found=f"`{text}`",
    )
