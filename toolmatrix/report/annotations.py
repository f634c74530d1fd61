"""Findings and verdicts as CI systems read them: GitHub's workflow commands, and SARIF 2.1.0 for code scanning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.errors import Position
from toolmatrix.finding import SEVERITIES
from toolmatrix.report import terminal
from toolmatrix.report.rules import load_rules
from toolmatrix.value import Value

# GitHub drops what exceeds this many annotations of a kind in a step (GitHub, workflow commands).
PER_KIND = 10
SARIF = "2.1.0"
_COMMANDS = dict(zip(SEVERITIES, ("error", "warning", "notice"), strict=True))
_LEVELS = dict(zip(SEVERITIES, ("error", "warning", "note"), strict=True))


class Annotation(Value):
    """One line to show, and where in the repository.

    SARIF has more room: it adds `help`, `properties`, and `logical`, the name of a location outside the repository.
    """

    severity: str
    code: str
    text: str
    where: Position | None = None
    help: str = ""
    properties: Mapping[str, object] = {}
    logical: str = ""


def commands(annotations: Iterable[Annotation], closing: str) -> str:
    """The workflow commands, the worst first; at most ten of a kind, then how many more there are; and `closing`."""
    entries = list(annotations)
    lines = []
    for severity, command in _COMMANDS.items():
        own = [entry for entry in entries if entry.severity == severity]
        # The last of the ten says how many more there are.
        visible = own if len(own) <= PER_KIND else own[: PER_KIND - 1]
        for entry in visible:
            where = entry.where
            place = f"file={escaped(where.path, ':,')},line={where.line or 1}," if where else ""
            title = escaped(entry.code, ":,")
            lines.append(f"::{command} {place}title={title}::{escaped(entry.text)}")
        if len(visible) < len(own):
            more = terminal.plural(len(own) - len(visible), f"more {severity}")
            lines.append(f"::{command} title=toolmatrix::and {more}")
    return "".join(line + "\n" for line in [*lines, closing])


def step_summary(head: Sequence[str], rows: Iterable[Sequence[str]], closing: str) -> str:
    """The Markdown of a table, which is left out where it has no rows, and the closing line."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if lines:
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]
    return "\n".join([*lines, "", closing]) + "\n"


def escaped(text: str, more: str = "") -> str:
    """A text with the letters that a workflow command would take for its own written as %XX."""
    # The percent sign comes first, so that none of those written here is escaped again.
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def sarif(annotations: Iterable[Annotation]) -> dict[str, Any]:
    """The SARIF log of one run, with a rule for each code that is named."""
    from toolmatrix import __version__

    pages = load_rules()
    entries = list(annotations)
    # Results may be those of another version, with codes of its own.
    codes = sorted(pages.keys() & {entry.code for entry in entries})
    indexes = {code: index for index, code in enumerate(codes)}
    rules = [
        {
            "id": code,
            # SARIF wants an identifier here that people understand, not a sentence.
            "name": pages[code].name.title().replace(" ", "").replace(",", ""),
            "shortDescription": {"text": pages[code].name},
            "fullDescription": {"text": pages[code].what},
            "help": {"text": pages[code].remedy},
            "defaultConfiguration": {"level": _LEVELS[pages[code].severity]},
        }
        for code in codes
    ]
    return {
        "$schema": f"https://json.schemastore.org/sarif-{SARIF}.json",
        "version": SARIF,
        "runs": [
            {
                "tool": {"driver": {"name": "toolmatrix", "version": __version__, "rules": rules}},
                # Columns count letters, as our positions do; the default would be UTF-16 units.
                "columnKind": "unicodeCodePoints",
                # SARIF 2.1.0, 3.27.6: -1 where there is no rule.
                "results": [_result(entry, indexes.get(entry.code, -1)) for entry in entries],
            }
        ],
    }


def _result(entry: Annotation, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if where := entry.where:
        # A URI has slashes on every system.
        physical: dict[str, Any] = {"artifactLocation": {"uri": where.path.replace("\\", "/")}}
        if where.line:
            physical["region"] = {"startLine": where.line, "startColumn": where.column or 1}
        location["physicalLocation"] = physical
    if entry.logical:
        location["logicalLocations"] = [{"fullyQualifiedName": entry.logical}]
    return {
        "ruleId": entry.code,
        "ruleIndex": rule,
        "level": _LEVELS[entry.severity],
        "message": {"text": f"{entry.text}. {entry.help}" if entry.help else entry.text},
        "locations": [location] if location else [],
        "properties": dict(entry.properties),
    }
