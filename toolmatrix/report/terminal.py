"""Terminals, and small pure functions that lay text out for them."""

from __future__ import annotations

from toolmatrix import wording
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

few, listing, plural = wording.few, wording.listing, wording.plural

DEFAULT_WIDTH = 80
NARROWEST = 20

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
    # By meaning: each of these words is also printed, so colour is never needed to read an answer.
    "yes": "32",
    "no": "31",
    "partial": "33",
    "unknown": "2",
    "error": "1;31",
    "help": "1;36",
}


class Charset(Value):
    """The four pieces a tree is drawn with."""

    tee: str
    corner: str
    bar: str
    blank: str


UNICODE = Charset(tee="├── ", corner="└── ", bar="│   ", blank="    ")
ASCII = Charset(tee="|-- ", corner="`-- ", bar="|   ", blank="    ")


class Terminal(Value):
    """The width, colours and letters that the reader of one stream can see."""

    colour: bool = False
    width: int = DEFAULT_WIDTH
    unicode: bool = True

    @property
    def charset(self) -> Charset:
        """The pieces for trees."""
        return UNICODE if self.unicode else ASCII

    def style(self, text: str, *names: str) -> str:
        """`text` in the named colours (`yes`, `no`, `partial`, `unknown`, `bold`, ...), or as it is."""
        if not self.colour or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


def detect(
    env: Mapping[str, str],
    *,
    tty: bool,
    encoding: str,
    color: str = "auto",
    ascii_only: bool = False,
    measured_width: int = 0,
) -> Terminal:
    """Judge a stream by the options given and the variables people expect to be honoured."""
    return Terminal(
        colour=_wants_colour(env, tty=tty, color=color),
        width=_width(env, measured_width),
        unicode=not ascii_only and encoding.lower().replace("-", "").startswith("utf"),
    )


def _wants_colour(env: Mapping[str, str], *, tty: bool, color: str) -> bool:
    if color != "auto":
        return color == "always"
    # An empty NO_COLOR does not count (no-color.org), and FORCE_COLOR=0 forces nothing.
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return tty and env.get("TERM") != "dumb"


def _width(env: Mapping[str, str], measured: int) -> int:
    asked = env.get("COLUMNS", "")
    # `isdigit` alone takes `²`, of which int() makes nothing.
    width = int(asked) if asked.isascii() and asked.isdigit() else measured
    return max(width, NARROWEST) if width else DEFAULT_WIDTH


def visible(text: str) -> str:
    """`text` without its colours."""
    first, *rest = text.split("\x1b[")
    return first + "".join(piece.partition("m")[2] for piece in rest)


def printable(text: str) -> str:
    """`text` on one line, with what a terminal would obey or not show written as an escape."""
    if text.isprintable():
        return text
    # Marks that turn the direction of writing are not printable to Python either.
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` filled with spaces to `width` columns, colours not counted."""
    filler = " " * (width - len(visible(text)))
    return filler + text if right else text + filler


def columns(rows: Iterable[Sequence[str]], *, gap: int = 2) -> list[str]:
    """Rows as lines with aligned columns and no blanks at the end of a line."""
    table = [list(row) for row in rows]
    widths: list[int] = []
    for row in table:
        widths += [0] * (len(row) - len(widths))
        for index, cell in enumerate(row):
            widths[index] = max(widths[index], len(visible(cell)))
    return [
        (" " * gap)
        .join(pad(cell, width) for cell, width in zip(row, widths, strict=False))
        .rstrip()
        for row in table
    ]


def wrap(text: str, width: int, *, indent: str = "", first: str | None = None) -> list[str]:
    """One paragraph as lines of at most `width` columns; a longer word keeps its line to itself."""
    start = indent if first is None else first
    lines: list[str] = []
    line = ""
    for word in text.split():
        head = indent if lines else start
        if line and len(visible(head + line)) + 1 + len(visible(word)) > width:
            lines.append(head + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line or not lines:
        lines.append((indent if lines else start) + line)
    return lines
