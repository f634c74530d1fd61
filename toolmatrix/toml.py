"""TOML with the place of what is wrong: settings and locks are read by it."""

from __future__ import annotations

import re
import sys
from typing import Any

from toolmatrix.errors import Position, ToolmatrixError

# `tomllib` takes the square of the time for a number of twice as many digits or a key of twice as many parts, and no
# interpreter prints such a number. Nothing that is read here has either.
_TOO_LONG = re.compile(r"(?<!\w)\d\w{999}|(?<![\w\"' \t.-])(?:[\w\"' \t-]*\.){64}", re.ASCII)


def parse(
    text: str, path: str, error: type[ToolmatrixError], named: str, help: str = ""
) -> dict[str, Any]:
    """The tables of a TOML text; raises `error` with line and column, `named` being what the text should be."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if match := _TOO_LONG.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise error(
            f"{named} has a number or a key that is too long",
            where=Position(path, line),
            expected="less than 1,000 digits, and less than 64 parts of a key",
            help=help,
        )
    try:
        body: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as invalid:
        # `Expected '=' after a key (at line 3, column 5)`, or `(at end of document)`; no attribute has the numbers
        # before Python 3.14.
        what, _, rest = str(invalid).partition(" (at ")
        digits = list(map(int, re.findall(r"\d+", rest)))
        line, column = digits if len(digits) == 2 else (text.count("\n") + 1, 0)
        raise error(
            f"{named} is not TOML",
            where=Position(path, line, column),
            found=what[:1].lower() + what[1:],
            help=help,
        ) from None
    # Brackets in brackets: `tomllib` recurses, and knows no place then.
    except RecursionError:
        raise error(f"{named} is not TOML", where=Position(path), help=help) from None
    return body
