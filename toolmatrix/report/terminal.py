"""Terminals, and small pure functions that lay text out for them."""

from __future__ import annotations

from itertools import zip_longest

from toolmatrix import wording
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

few, listing, plural, some = wording.few, wording.listing, wording.plural, wording.some

DEFAULT_WIDTH = 80
# What is wrapped still has room for a word beside its indent.
NARROWEST = 20
SIGNS = {"added": "+", "removed": "-", "changed": "~"}
"""The sign that begins the line of a change; `style` colours it by itself."""

_CODES = {
    "bold": "1",
    "dim": "2",
    # By meaning: each of these words or signs is also printed, so colour is never needed to read an answer.
    "yes": "32",
    "no": "31",
    "partial": "33",
    "unknown": "2",
    "error": "1;31",
    "help": "1;36",
    "+": "32",
    "-": "31",
    "~": "33",
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
    """The width, colours and letters that the reader of one stream can see.

    `wraps`: a line that is longer would be broken anywhere; in a pipe or a file it stays whole.
    """

    colour: bool = False
    width: int = DEFAULT_WIDTH
    unicode: bool = True
    wraps: bool = False

    @property
    def charset(self) -> Charset:
        """The pieces for trees."""
        return UNICODE if self.unicode else ASCII

    def style(self, text: str, *names: str) -> str:
        """`text` in the named colours (`yes`, `no`, `partial`, `unknown`, `bold`, ...), or as it is."""
        if not self.colour or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def wrap(self, text: str, first: str = "", indent: str = "  ") -> list[str]:
        """A paragraph as wide as the terminal: `first` before its first line, `indent` before all others."""
        return wrap(text, self.width, indent=indent, first=first)


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
        wraps=tty,
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
    variable = env.get("COLUMNS", "")
    # `isdigit` alone accepts `²`, which int() does not.
    width = int(variable) if variable.isascii() and variable.isdigit() else measured
    return max(width, NARROWEST) if width else DEFAULT_WIDTH


def visible(text: str) -> str:
    """`text` without its colours."""
    # Text of strangers went through `printable`, so that every escape in a line is one of `style`.
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


def cut(text: str, most: int) -> str:
    """`text` made printable, with `...` for the end of what is longer than `most` letters."""
    plain = printable(text)
    return plain if len(plain) <= most else plain[: most - 3] + "..."


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` filled with spaces to `width` columns, colours not counted."""
    filler = " " * (width - len(visible(text)))
    return filler + text if right else text + filler


def columns(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Rows as lines with aligned columns, some to the `right`, and no blanks at the end of a line."""
    table = [list(row) for row in rows]
    # A row may have fewer cells than the widest one.
    cells = zip_longest(*table, fillvalue="")
    widths = [max(len(visible(cell)) for cell in column) for column in cells]
    return [
        "  ".join(
            pad(cell, widths[column], right=column in right) for column, cell in enumerate(row)
        ).rstrip()
        for row in table
    ]


def common_width(cells: Iterable[str], most: int) -> int:
    """The width of a column in which cells of more than `most` letters widen only their own line."""
    return max((len(cell) for cell in cells if len(cell) <= most), default=0)


def blocks(parts: Iterable[Iterable[str]]) -> str:
    """Blocks of lines as text, with an empty line between those that are not empty."""
    texts = ["\n".join(lines) for lines in parts]
    return "\n\n".join(block for block in texts if block) + "\n"


def wrap(text: str, width: int, *, indent: str = "", first: str | None = None) -> list[str]:
    """One paragraph as lines of at most `width` columns; a longer word keeps its line to itself."""
    start = indent if first is None else first
    lines: list[str] = []
    line = ""
    for word in text.split():
        head = indent if lines else start
        # Colours take no column.
        if line and len(visible(head + line)) + 1 + len(visible(word)) > width:
            lines.append(head + line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line or not lines:
        lines.append((indent if lines else start) + line)
    return lines
