"""Verdicts about images and machines: in words, for CI systems, as JUnit, and as one HTML file that loads nothing.

What was read out of an image is written by strangers: it passes through `terminal.printable` before it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from toolmatrix.documents import Annotated, Count, TypedDict
from toolmatrix.errors import Position
from toolmatrix.finding import (
    FAIL,
    OUTCOMES,
    PASS,
    SEVERITY_OF,
    SKIP,
    UNKNOWN,
    WARN,
    Judged,
    Verdict,
    VerdictsDocument,
)
from toolmatrix.report import pictures, terminal
from toolmatrix.report.annotations import Annotation, commands, step_summary
from toolmatrix.report.rules import load_rules
from toolmatrix.report.terminal import Terminal, cut, printable

SCHEMA = "toolmatrix.validation/1"
_COLOURS = {PASS: "yes", WARN: "partial", FAIL: "no", SKIP: "unknown", UNKNOWN: "unknown"}
_COUNTED = {WARN: "warned", FAIL: "failed", UNKNOWN: "unknown", SKIP: "skipped"}
# Letters that Markdown or HTML may take for its own.
_MARKUP = frozenset("\\`*_[]<>|&!~#@")
# Letters of a value that a line of text shows.
_LONGEST = 40
# Letters of a digest that are enough for people: `sha256:` and twelve more.
_DIGEST = 19
# The element of each verdict; what passed or warned has none.
# JUnit has no word for unknown: an error is a check without a result.
_JUNIT = {FAIL: "failure", UNKNOWN: "error", SKIP: "skipped"}
# The page shows what strangers wrote; even if something slipped through, it could load and run nothing.
_COLUMNS = ("verdict", "check", "found", "wanted", "details", "code", "what to do")


class ValidationDocument(TypedDict):
    """What `toolmatrix validate --json` prints of several subjects: each as `toolmatrix.verdicts/1`, in the order in
    which they were named.
    """

    schema: Annotated[str, SCHEMA]
    subjects: list[VerdictsDocument]
    summary: Annotated[dict[str, Count], OUTCOMES, "subjects"]


def text(subject: Judged, screen: Terminal) -> str:
    """A subject in words: a line a check, and below them what can be done."""
    head = (subject.subject, subject.platform, subject.digest[:_DIGEST])
    # FAIL alone is written in capitals, to be seen; counts have all words in small letters.
    counts = subject.summary()
    closing = [f"{counts['checked']} checked"]
    closing += [
        f"{counts[key.lower()]} {name}" for key, name in _COUNTED.items() if counts[key.lower()]
    ]
    lines = [
        "  ".join(printable(field) for field in head if field),
        *terminal.columns(_rows(subject.verdicts, screen)),
        ", ".join(closing),
    ]
    helps = [line for verdict in subject.verdicts for line in _help(verdict, screen)]
    return "\n".join([*lines, *([""] if helps else []), *helps]) + "\n"


def texts(many: Sequence[Judged], screen: Terminal) -> str:
    """Several subjects in words, and how many there were; one alone is not counted."""
    parts = [text(subject, screen) for subject in many]
    return "\n".join([*parts, *([closing_of_all(many) + "\n"] if len(many) != 1 else [])])


def _rows(verdicts: Sequence[Verdict], screen: Terminal) -> Iterator[tuple[str, ...]]:
    for verdict in verdicts:
        # The wanted value is not repeated where it was found or is part of the name.
        redundant = verdict.wanted in ("", verdict.found, verdict.name)
        wanted = "" if redundant else f"wanted {shorten(verdict.wanted)}"
        how = verdict.reason or verdict.where or verdict.seen_by
        yield (
            screen.style(verdict.word, _COLOURS[verdict.word]),
            printable(verdict.name),
            shorten(verdict.found) or ("-" if wanted else ""),
            wanted,
            printable(how),
            verdict.code,
        )
        # A second copy is what a program may load instead of the one that was checked.
        for version, where in verdict.others:
            also = (shorten(version), "", printable(where))
            yield ("", screen.style("also", "dim"), *also)


def shorten(value: str) -> str:
    """A value from a subject, printable and of bearable length; a digest is cut as people cut it."""
    if value.startswith("sha256:"):
        return printable(value)[:_DIGEST]
    return cut(value, _LONGEST)


def _help(verdict: Verdict, screen: Terminal) -> Iterator[str]:
    if verdict.word in (PASS, SKIP) or not verdict.help:
        return
    facts = f" ({terminal.few(' '.join(verdict.facts), 3)})" if verdict.facts else ""
    head = screen.style("help", "help")
    text = f"{head}: {printable(verdict.name)}: {printable(verdict.help)}{printable(facts)}"
    yield from screen.wrap(text, indent="      ")


def closing_of_all(many: Sequence[Judged]) -> str:
    """The number of subjects by their outcome."""
    outcomes = [subject.outcome for subject in many]
    names = {"yes": "passed", "no": "failed", "unknown": "unknown"}
    parts = [f"{outcomes.count(key)} {name}" for key, name in names.items() if key in outcomes]
    return ", ".join([terminal.plural(len(many), "subject"), *parts])


def sentence(subject: Judged, verdict: Verdict) -> str:
    """A verdict on one line, for readers that show nothing beside it."""
    state = (
        f"{verdict.name} is {verdict.found}"
        if verdict.found
        else f"{verdict.name}: {verdict.reason or 'not there'}"
    )
    wanted = f", wanted {verdict.wanted}" if verdict.wanted else ""
    why = f" ({verdict.reason})" if verdict.reason and verdict.found else ""
    where = f" at {verdict.where}" if verdict.where else ""
    return printable(f"{subject.subject}: {state}{where}{wanted}{why}")


def document(many: Sequence[Judged]) -> ValidationDocument:
    """Several subjects as the document `toolmatrix.validation/1`."""
    outcomes = [subject.outcome for subject in many]
    return {
        "schema": SCHEMA,
        "subjects": [subject.to_json() for subject in many],
        "summary": {key: outcomes.count(key) for key in OUTCOMES} | {"subjects": len(many)},
    }


def annotated(many: Sequence[Judged]) -> list[Annotation]:
    """The verdicts that did not pass, placed in the lock, for an image has no line; SARIF adds the path in it."""
    return [
        Annotation(
            severity=SEVERITY_OF[verdict.word],
            code=verdict.code,
            text=sentence(subject, verdict),
            where=Position(printable(subject.lock), 1) if subject.lock else None,
            help=printable(verdict.help),
            properties={
                "facts": list(verdict.facts),
                "layer": printable(verdict.layer),
                "instruction": printable(verdict.made_by),
            },
            logical="!".join(printable(name) for name in (subject.subject, verdict.where) if name),
        )
        for subject in many
        for verdict in subject.verdicts
        if verdict.word != PASS
    ]


def github(many: Sequence[Judged]) -> str:
    """Workflow commands; a skip is not worth one of the few that GitHub shows."""
    entries = (entry for entry in annotated(many) if entry.severity != SEVERITY_OF[SKIP])
    return commands(entries, closing_of_all(many))


def markdown(many: Sequence[Judged]) -> str:
    """The table for the summary of a GitHub step."""
    rows = [
        [_cell(text) for text in (verdict.word, verdict.code, sentence(subject, verdict))]
        for subject in many
        for verdict in subject.verdicts
        if verdict.word not in (PASS, SKIP)
    ]
    return step_summary(("verdict", "code", "what"), rows, closing_of_all(many))


def _cell(text: str) -> str:
    # Neither Markdown nor HTML finds anything of its own in a number.
    return "".join(f"&#{ord(letter)};" if letter in _MARKUP else letter for letter in text)


def junit(many: Sequence[Judged]) -> str:
    """A suite for each subject and a case for each check; XML cannot hold control letters, so they are escaped."""
    root = ET.Element("testsuites", name="toolmatrix")
    for subject in many:
        counts = subject.summary()
        suite = ET.SubElement(
            root,
            "testsuite",
            name=printable(subject.subject),
            tests=str(len(subject.verdicts)),
            failures=str(counts["fail"]),
            errors=str(counts["unknown"]),
            skipped=str(counts["skip"]),
        )
        for verdict in subject.verdicts:
            _case(suite, subject, verdict)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _case(suite: ET.Element, subject: Judged, verdict: Verdict) -> None:
    names = {"classname": printable(f"toolmatrix.{verdict.kind}"), "name": printable(verdict.name)}
    case = ET.SubElement(suite, "testcase", names)
    if verdict.word in _JUNIT:
        attributes = {"message": sentence(subject, verdict)}
        if verdict.word != SKIP:
            attributes["type"] = verdict.code
        element = ET.SubElement(case, _JUNIT[verdict.word], attributes)
        element.text = printable(verdict.help)
    elif verdict.word == WARN:
        ET.SubElement(case, "system-out").text = sentence(subject, verdict)


def html(many: Sequence[Judged]) -> str:
    """One page that needs nothing else: every subject with every check, then what the codes mean."""
    # Who opens the page looks for what failed.
    order = {"no": 0, "unknown": 1, "yes": 2}
    sections = map(_section, sorted(many, key=lambda subject: order[subject.outcome]))
    codes = sorted({verdict.code for subject in many for verdict in subject.verdicts} - {""})
    return pictures.html_page(closing_of_all(many), "".join(sections) + _codes(codes))


def _section(subject: Judged) -> str:
    rows = []
    for verdict in subject.verdicts:
        *before, code, help = map(pictures.html_text, _texts(verdict))
        code = f'<a href="#{code}">{code}</a>' if code else ""
        rows.append((verdict.word, [*before, code, help]))
    against = f"{subject.lock} {subject.target}".strip()
    about = " · ".join(filter(None, (subject.platform, subject.digest, against)))
    named = pictures.html_text(subject.subject)
    table = pictures.html_cards(f"checks of {subject.subject}", _COLUMNS, rows)
    return f"<h2>{named}</h2><p>{pictures.html_text(about)}</p>\n{table}"


def _codes(codes: Sequence[str]) -> str:
    rules = load_rules() if codes else {}
    sections = []
    # Results may be those of another version, with codes of its own.
    for code in filter(rules.__contains__, codes):
        rule = rules[code]
        name, what, why, remedy = map(
            pictures.html_text, (rule.name, rule.what, rule.why, rule.remedy)
        )
        sections.append(
            f'<h3 id="{code}">{code} {name}</h3><p>{what}</p><p>{why}</p>'
            f"<p><strong>what to do:</strong> {remedy}</p>\n"
        )
    return f"<h2>what the codes mean</h2>\n{''.join(sections)}" if sections else ""


def _texts(verdict: Verdict) -> tuple[str, ...]:
    how = (
        " ".join(filter(None, (verdict.reason, verdict.where, verdict.made_by))) or verdict.seen_by
    )
    actual = verdict.found + "".join(
        f"; also {version} at {where}" for version, where in verdict.others
    )
    help = "" if verdict.word in (PASS, SKIP) else verdict.help
    return verdict.word, verdict.name, actual, verdict.wanted, how, verdict.code, help


FORMS = {"junit": junit, "github": github, "html": html}
"""The forms of several subjects that need no terminal."""
