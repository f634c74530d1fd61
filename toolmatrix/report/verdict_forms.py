"""Verdicts for other programs and for browsers: JUnit, SARIF, and one HTML file that loads nothing."""

from __future__ import annotations

from toolmatrix.errors import Position
from toolmatrix.finding import FAIL, PASS, SEVERITY_OF, SKIP, UNKNOWN, WARN
from toolmatrix.report import sarif as findings_sarif
from toolmatrix.report.terminal import printable
from toolmatrix.report.verdicts import Judged, closing_of_all, entry, sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any
    from xml.etree.ElementTree import Element

    from toolmatrix.finding import Verdict

# The element that tells each word; what passed or warned has none.
_JUNIT = {FAIL: "failure", UNKNOWN: "error", SKIP: "skipped"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.25rem .5rem;"
    "border-bottom:1px solid #8884;vertical-align:top;overflow-wrap:anywhere}"
    ".FAIL{color:#b00020}.pass{color:#0a6b2c}.warn,.unknown{color:#8a5a00}.skip{opacity:.7}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}.FAIL{color:#ff8a8a}"
    ".pass{color:#7ddc9a}.warn,.unknown{color:#f0c060}}"
)
_COLUMNS = ("verdict", "check", "found", "wanted", "how it was seen", "code", "what to do")


def junit(many: Sequence[Judged]) -> str:
    """A suite for each subject and a case for each check; XML cannot hold control letters, so they are escaped."""
    from xml.etree import ElementTree as ET

    root = ET.Element("testsuites", name="toolmatrix")
    for judged in many:
        counts = judged.summary()
        suite = ET.SubElement(
            root,
            "testsuite",
            name=printable(judged.subject),
            tests=str(len(judged.verdicts)),
            failures=str(counts["fail"]),
            errors=str(counts["unknown"]),
            skipped=str(counts["skip"]),
        )
        for one in judged.verdicts:
            _case(suite, judged, one)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _case(suite: Element, judged: Judged, one: Verdict) -> None:
    from xml.etree import ElementTree as ET

    names = {"classname": printable(f"toolmatrix.{one.kind}"), "name": printable(one.name)}
    case = ET.SubElement(suite, "testcase", names)
    if one.word in _JUNIT:
        said = {"message": sentence(judged, one)} | ({"type": one.code} if one.word != SKIP else {})
        told = ET.SubElement(case, _JUNIT[one.word], said)
        told.text = printable(one.help)
    elif one.word == WARN:
        ET.SubElement(case, "system-out").text = sentence(judged, one)


def sarif(many: Sequence[Judged], program: str) -> dict[str, Any]:
    """A result for each check that did not pass; it lies in the lock, and logically at a path of the image."""
    results = [
        _result(judged, one) for judged in many for one in judged.verdicts if one.word != PASS
    ]
    return findings_sarif.log(program, results)


def _result(judged: Judged, one: Verdict) -> dict[str, Any]:
    place: dict[str, Any] = {}
    if judged.lock:
        place = findings_sarif.physical(Position(judged.lock, 1))
    name = "!".join(printable(part) for part in (judged.subject, one.where) if part)
    place["logicalLocations"] = [{"fullyQualifiedName": name}]
    help = f". {printable(one.help)}" if one.help else ""
    return {
        "ruleId": one.code,
        "level": findings_sarif.LEVELS[SEVERITY_OF[one.word]],
        "message": {"text": sentence(judged, one) + help},
        "locations": [place],
        "properties": {
            "facts": list(one.facts),
            "layer": printable(one.layer),
            "instruction": printable(one.made_by),
        },
    }


def html(many: Sequence[Judged]) -> str:
    """One page: what failed first, a table for each subject."""
    from html import escape

    order = {"no": 0, "unknown": 1, "yes": 2}
    parts = [_section(judged) for judged in sorted(many, key=lambda one: order[one.outcome])]
    title = escape(closing_of_all(many))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{title}</h1>\n{''.join(parts)}</body></html>\n"
    )


def _section(judged: Judged) -> str:
    from html import escape

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(f"<{tag}>{escape(printable(text))}</{tag}>" for text in texts)

    rows = [f'<tr class="{one.word}">{cells("td", _texts(one))}</tr>\n' for one in judged.verdicts]
    against = f"{judged.lock} {judged.target}".strip()
    about = " · ".join(part for part in (judged.platform, judged.digest, against) if part)
    return (
        f"<h2>{escape(printable(judged.subject))}</h2><p>{escape(printable(about))}</p>\n"
        f"<table><thead><tr>{cells('th', _COLUMNS)}</tr></thead>\n"
        f"<tbody>{''.join(rows)}</tbody></table>\n"
    )


def _texts(one: Verdict) -> tuple[str, ...]:
    held = entry(one)
    how = " ".join(part for part in (one.reason, one.where, one.made_by) if part)
    also = "".join(f"; also {version} at {where}" for version, where in one.others)
    help = "" if one.word in (PASS, SKIP) else one.help
    return (
        one.word,
        one.name,
        one.found + also,
        held["expected"] or "",
        how or one.seen_by,
        one.code,
        help,
    )
