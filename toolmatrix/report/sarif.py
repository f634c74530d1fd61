"""Findings as SARIF 2.1.0: what code-scanning pages and editors read."""

from __future__ import annotations

from toolmatrix.report import findings as words
from toolmatrix.report.rules import load_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolmatrix.errors import Position
    from toolmatrix.finding import Finding
    from toolmatrix.report.findings import Report

VERSION = "2.1.0"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def document(report: Report, program: str) -> dict[str, Any]:
    """One run of `program` (its version) with a rule for each code found."""
    return log(program, [_result(report, finding) for finding in report.findings])


def log(program: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The log of one run: results that name their rule, level and message, and a rule for each code they name."""
    pages = load_rules()
    codes = sorted({result["ruleId"] for result in results})
    rules = [
        {
            "id": code,
            "name": pages[code].name.title().replace(" ", "").replace(",", ""),
            "shortDescription": {"text": pages[code].name},
            "fullDescription": {"text": pages[code].what},
            "help": {"text": pages[code].remedy},
            "defaultConfiguration": {"level": LEVELS[pages[code].severity]},
        }
        for code in codes
    ]
    return {
        "$schema": f"https://json.schemastore.org/sarif-{VERSION}.json",
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": {"name": "toolmatrix", "version": program, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [
                    result | {"ruleIndex": codes.index(result["ruleId"])} for result in results
                ],
            }
        ],
    }


def _result(report: Report, finding: Finding) -> dict[str, Any]:
    told = words.in_full(report.index, finding)
    help = words.help_of(finding)
    return {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": f"{told}. {help}".rstrip(". ")},
        "properties": {"facts": list(finding.facts)},
        "locations": [physical(finding.where)] if finding.where else [],
    }


def physical(where: Position) -> dict[str, Any]:
    """A location in a file of the repository."""
    place: dict[str, Any] = {"artifactLocation": {"uri": where.path.replace("\\", "/")}}
    if where.line:
        place["region"] = {"startLine": where.line, "startColumn": where.column or 1}
    return {"physicalLocation": place}
