"""Verdicts about images and machines: in words, for CI systems, as JUnit, and as one HTML file that loads nothing.

What was read out of an image is written by strangers: it passes through `terminal.printable` before it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

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
# The element that tells each word; what passed or warned has none.
# JUnit has no word for what nobody can say: an error is a check that came to no result.
_JUNIT = {FAIL: "failure", UNKNOWN: "error", SKIP: "skipped"}
# The page shows what strangers wrote; even if something slipped through, it could load and run nothing.
_COLUMNS = ("verdict", "check", "found", "wanted", "how it was seen", "code", "what to do")


class ValidationDocument(TypedDict):
    """What `toolmatrix validate --json` prints of several subjects: each as `toolmatrix.verdicts/1`, in the order in
    which they were named.
    """

    schema: Annotated[str, SCHEMA]
    subjects: list[VerdictsDocument]
    summary: Annotated[dict[str, Count], OUTCOMES, "subjects"]


def text(validation: Judged, screen: Terminal) -> str:
    """A subject in words: a line a check, and below them what can be done."""
    head = (validation.subject, validation.platform, validation.digest[:_DIGEST])
    # FAIL alone is written in capitals, to be seen; counts have all words in small letters.
    counts = validation.summary()
    closing = [f"{counts['checked']} checked"]
    closing += [
        f"{counts[outcome.lower()]} {name}"
        for outcome, name in _COUNTED.items()
        if counts[outcome.lower()]
    ]
    lines = [
        "  ".join(printable(field) for field in head if field),
        *terminal.columns(_rows(validation.verdicts, screen)),
        ", ".join(closing),
    ]
    helps = [line for verdict in validation.verdicts for line in _help(verdict, screen)]
    return "\n".join([*lines, *([""] if helps else []), *helps]) + "\n"


def text_of_all(many: Sequence[Judged], screen: Terminal) -> str:
    """Several subjects in words, and how many there were; one alone is not counted."""
    parts = [text(validation, screen) for validation in many]
    return "\n".join([*parts, *([closing_of_all(many) + "\n"] if len(many) != 1 else [])])


def _rows(verdicts: Sequence[Verdict], screen: Terminal) -> Iterator[tuple[str, ...]]:
    for verdict in verdicts:
        # What was wanted is not said again where it was found or stands in the name.
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
    outcomes = [validation.outcome for validation in many]
    names = {"yes": "passed", "no": "failed", "unknown": "unknown"}
    parts = [
        f"{outcomes.count(outcome)} {name}"
        for outcome, name in names.items()
        if outcome in outcomes
    ]
    return ", ".join([terminal.plural(len(many), "subject"), *parts])


def sentence(validation: Judged, verdict: Verdict) -> str:
    """A verdict on one line, for readers that show nothing beside it."""
    state = (
        f"{verdict.name} is {verdict.found}"
        if verdict.found
        else f"{verdict.name}: {verdict.reason or 'not there'}"
    )
    wanted = f", wanted {verdict.wanted}" if verdict.wanted else ""
    why = f" ({verdict.reason})" if verdict.reason and verdict.found else ""
    where = f" at {verdict.where}" if verdict.where else ""
    return printable(f"{validation.subject}: {state}{where}{wanted}{why}")


def document(many: Sequence[Judged]) -> ValidationDocument:
    """Several subjects as the document `toolmatrix.validation/1`."""
    outcomes = [validation.outcome for validation in many]
    return {
        "schema": SCHEMA,
        "subjects": [validation.to_json() for validation in many],
        "summary": {outcome: outcomes.count(outcome) for outcome in OUTCOMES}
        | {"subjects": len(many)},
    }


def annotated(many: Sequence[Judged]) -> list[Annotation]:
    """The verdicts that did not pass, placed in the lock, for an image has no line; SARIF adds the path in it."""
    return [
        Annotation(
            severity=SEVERITY_OF[verdict.word],
            code=verdict.code,
            text=sentence(validation, verdict),
            where=Position(printable(validation.lock), 1) if validation.lock else None,
            help=printable(verdict.help),
            properties={
                "facts": list(verdict.facts),
                "layer": printable(verdict.layer),
                "instruction": printable(verdict.made_by),
            },
            logical="!".join(
                printable(name) for name in (validation.subject, verdict.where) if name
            ),
        )
        for validation in many
        for verdict in validation.verdicts
        if verdict.word != PASS
    ]


def github(many: Sequence[Judged]) -> str:
    """Workflow commands; a skip is not worth one of the few that GitHub shows."""
    annotations = (
        annotation for annotation in annotated(many) if annotation.severity != SEVERITY_OF[SKIP]
    )
    return commands(annotations, closing_of_all(many))


def markdown(many: Sequence[Judged]) -> str:
    """The table for the summary of a GitHub step."""
    rows = [
        [_cell(text) for text in (verdict.word, verdict.code, sentence(validation, verdict))]
        for validation in many
        for verdict in validation.verdicts
        if verdict.word not in (PASS, SKIP)
    ]
    return step_summary(("verdict", "code", "what"), rows, closing_of_all(many))


def _cell(text: str) -> str:
    # Neither Markdown nor HTML finds anything of its own in a number.
    return "".join(f"&#{ord(letter)};" if letter in _MARKUP else letter for letter in text)


def junit(many: Sequence[Judged]) -> str:
    """A suite for each subject and a case for each check; XML cannot hold control letters, so they are escaped."""
    from xml.etree import ElementTree as ET

    root = ET.Element("testsuites", name="toolmatrix")
    for validation in many:
        counts = validation.summary()
        suite = ET.SubElement(
            root,
            "testsuite",
            name=printable(validation.subject),
            tests=str(len(validation.verdicts)),
            failures=str(counts["fail"]),
            errors=str(counts["unknown"]),
            skipped=str(counts["skip"]),
        )
        for verdict in validation.verdicts:
            _case(suite, validation, verdict)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _case(suite: Element, validation: Judged, verdict: Verdict) -> None:
    from xml.etree import ElementTree as ET

    names = {"classname": printable(f"toolmatrix.{verdict.kind}"), "name": printable(verdict.name)}
    case = ET.SubElement(suite, "testcase", names)
    if verdict.word in _JUNIT:
        attributes = {"message": sentence(validation, verdict)} | (
            {"type": verdict.code} if verdict.word != SKIP else {}
        )
        element = ET.SubElement(case, _JUNIT[verdict.word], attributes)
        element.text = printable(verdict.help)
    elif verdict.word == WARN:
        ET.SubElement(case, "system-out").text = sentence(validation, verdict)


def html(many: Sequence[Judged]) -> str:
    """One page that needs nothing else: every subject with every check, then what the codes mean."""
    # Who opens the page looks for what failed.
    order = {"no": 0, "unknown": 1, "yes": 2}
    parts = [
        _section(validation)
        for validation in sorted(many, key=lambda validation: order[validation.outcome])
    ]
    codes = sorted({verdict.code for validation in many for verdict in validation.verdicts} - {""})
    return pictures.html_page(closing_of_all(many), "".join(parts) + _codes(codes))


def _section(validation: Judged) -> str:
    rows = []
    for verdict in validation.verdicts:
        *before, code, help = map(pictures.html_text, _texts(verdict))
        code = f'<a href="#{code}">{code}</a>' if code else ""
        rows.append((verdict.word, [*before, code, help]))
    against = f"{validation.lock} {validation.target}".strip()
    about = " · ".join(
        field for field in (validation.platform, validation.digest, against) if field
    )
    named = pictures.html_text(validation.subject)
    table = pictures.html_cards(f"checks of {validation.subject}", _COLUMNS, rows)
    return f"<h2>{named}</h2><p>{pictures.html_text(about)}</p>\n{table}"


def _codes(codes: Sequence[str]) -> str:
    from toolmatrix.report.rules import load_rules

    rules = load_rules() if codes else {}
    sections = []
    # Results may be those of another version, with codes of its own.
    for code in filter(rules.__contains__, codes):
        rule = rules[code]
        body = "".join(
            f"<p>{pictures.html_text(paragraph)}</p>" for paragraph in (rule.what, rule.why)
        )
        remedy = f"<p><strong>what to do:</strong> {pictures.html_text(rule.remedy)}</p>"
        sections.append(
            f'<h3 id="{code}">{code} {pictures.html_text(rule.name)}</h3>{body}{remedy}\n'
        )
    return f"<h2>what the codes mean</h2>\n{''.join(sections)}" if sections else ""


def _texts(verdict: Verdict) -> tuple[str, ...]:
    how = " ".join(field for field in (verdict.reason, verdict.where, verdict.made_by) if field)
    also = "".join(f"; also {version} at {where}" for version, where in verdict.others)
    help = "" if verdict.word in (PASS, SKIP) else verdict.help
    return (
        verdict.word,
        verdict.name,
        verdict.found + also,
        verdict.wanted,
        how or verdict.seen_by,
        verdict.code,
        help,
    )


FORMS = {"junit": junit, "github": github, "html": html}
"""The forms of several subjects that need no terminal."""
