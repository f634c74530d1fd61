"""What GitHub shows beside a step: workflow commands, at most ten of a kind, then how many more there are."""

from __future__ import annotations

from toolmatrix.finding import SEVERITIES
from toolmatrix.report import terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.errors import Position

PER_KIND = 10
"""GitHub drops what exceeds this many annotations of a kind in a step."""
_COMMANDS = dict(zip(SEVERITIES, ("error", "warning", "notice"), strict=True))


class Annotation(Value):
    """One line to show: its severity, code, text, and where in the repository."""

    severity: str
    code: str
    text: str
    where: Position | None = None


def commands(annotations: Iterable[Annotation]) -> list[str]:
    """The lines of the commands, the worst first."""
    held = list(annotations)
    lines = []
    for severity, command in _COMMANDS.items():
        mine = [one for one in held if one.severity == severity]
        shown = mine if len(mine) <= PER_KIND else mine[: PER_KIND - 1]
        lines += [_line(command, one) for one in shown]
        if len(shown) < len(mine):
            more = terminal.plural(len(mine) - len(shown), f"more {severity}")
            lines.append(f"::{command} title=toolmatrix::and {more}")
    return lines


def _line(command: str, one: Annotation) -> str:
    where = one.where
    fields = [("file", where.path), ("line", str(where.line or 1))] if where else []
    fields.append(("title", one.code))
    given = ",".join(f"{name}={escaped(value, ':,')}" for name, value in fields)
    return f"::{command} {given}::{escaped(one.text)}"


def escaped(text: str, more: str = "") -> str:
    """A text with the letters that a workflow command would take for its own written as %XX."""
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
