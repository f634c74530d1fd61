"""Today's date; nothing below asks for it."""

from __future__ import annotations

from datetime import date, datetime, timezone

from toolmatrix.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def today(env: Mapping[str, str]) -> date:
    """Today in UTC, or the day of SOURCE_DATE_EPOCH, so that a build can be repeated. Raises ConfigError."""
    fixed = env.get("SOURCE_DATE_EPOCH", "")
    if not fixed:
        return datetime.now(timezone.utc).date()
    try:
        return datetime.fromtimestamp(int(fixed), timezone.utc).date()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            "`SOURCE_DATE_EPOCH` is not a time",
            expected="seconds since 1970-01-01",
            found=f"`{fixed}`",
        ) from None
