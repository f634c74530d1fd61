"""Findings as SARIF 2.1.0: what code-scanning pages and editors read."""

from __future__ import annotations

from toolmatrix.report import findings as words
from toolmatrix.report.rules import load_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.finding import Finding
    from toolmatrix.report.findings import Report

VERSION = "2.1.0"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def document(report: Report, program: str) -> dict[str, Any]:
    """One run of `program` (its version) with a rule for each code found."""
    pages = load_rules()
    codes = sorted({finding.code for finding in report.findings})
    rules = [
        {
            "id": code,
            "name": pages[code].name.title().replace(" ", "").replace(",", ""),
            "shortDescription": {"text": pages[code].name},
            "fullDescription": {"text": pages[code].what},
            "help": {"text": pages[code].remedy},
            "defaultConfiguration": {"level": _LEVELS[pages[code].severity]},
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
                    _result(report, finding, codes.index(finding.code))
                    for finding in report.findings
                ],
            }
        ],
    }


def _result(report: Report, finding: Finding, rule: int) -> dict[str, Any]:
    told = words.in_full(report.index, finding)
    help = words.help_of(finding)
    found: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{told}. {help}".rstrip(". ")},
        "properties": {"facts": list(finding.facts)},
        "locations": [],
    }
    where = finding.where
    if where is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": where.path.replace("\\", "/")}}
        if where.line:
            place["region"] = {"startLine": where.line, "startColumn": where.column or 1}
        found["locations"] = [{"physicalLocation": place}]
    return found
