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


def text(judged: Judged, screen: Terminal) -> str:
    """A subject in words: a line a check, and below them what can be done."""
    head = (judged.subject, judged.platform, judged.digest[:_DIGEST])
    # FAIL alone is written in capitals, to be seen; counts have all words in small letters.
    counts = judged.summary()
    closing = [f"{counts['checked']} checked"]
    closing += [
        f"{counts[word.lower()]} {name}" for word, name in _COUNTED.items() if counts[word.lower()]
    ]
    lines = [
        "  ".join(printable(part) for part in head if part),
        *terminal.columns(_rows(judged.verdicts, screen)),
        ", ".join(closing),
    ]
    helps = [line for one in judged.verdicts for line in _help(one, screen)]
    return "\n".join([*lines, *([""] if helps else []), *helps]) + "\n"


def text_of_all(many: Sequence[Judged], screen: Terminal) -> str:
    """Several subjects in words, and how many there were; one alone is not counted."""
    parts = [text(judged, screen) for judged in many]
    return "\n".join([*parts, *([closing_of_all(many) + "\n"] if len(many) != 1 else [])])


def _rows(verdicts: Sequence[Verdict], screen: Terminal) -> Iterator[tuple[str, ...]]:
    for one in verdicts:
        # What was wanted is not said again where it was found or stands in the name.
        said = one.wanted in ("", one.found, one.name)
        wanted = "" if said else f"wanted {shorten(one.wanted)}"
        how = one.reason or one.where or one.seen_by
        yield (
            screen.style(one.word, _COLOURS[one.word]),
            printable(one.name),
            shorten(one.found) or ("-" if wanted else ""),
            wanted,
            printable(how),
            one.code,
        )
        # A second copy is what a program may load instead of the one that was checked.
        for version, where in one.others:
            also = (shorten(version), "", printable(where))
            yield ("", screen.style("also", "dim"), *also)


def shorten(value: str) -> str:
    """A value from a subject, printable and of bearable length; a digest is cut as people cut it."""
    if value.startswith("sha256:"):
        return printable(value)[:_DIGEST]
    return cut(value, _LONGEST)


def _help(one: Verdict, screen: Terminal) -> Iterator[str]:
    if one.word in (PASS, SKIP) or not one.help:
        return
    facts = f" ({terminal.few(' '.join(one.facts), 3)})" if one.facts else ""
    head = screen.style("help", "help")
    said = f"{head}: {printable(one.name)}: {printable(one.help)}{printable(facts)}"
    yield from screen.wrap(said, indent="      ")


def closing_of_all(many: Sequence[Judged]) -> str:
    """The number of subjects by their outcome."""
    words = [judged.outcome for judged in many]
    names = {"yes": "passed", "no": "failed", "unknown": "unknown"}
    parts = [f"{words.count(word)} {name}" for word, name in names.items() if word in words]
    return ", ".join([terminal.plural(len(many), "subject"), *parts])


def sentence(judged: Judged, one: Verdict) -> str:
    """A verdict on one line, for readers that show nothing beside it."""
    found = (
        f"{one.name} is {one.found}" if one.found else f"{one.name}: {one.reason or 'not there'}"
    )
    wanted = f", wanted {one.wanted}" if one.wanted else ""
    why = f" ({one.reason})" if one.reason and one.found else ""
    where = f" at {one.where}" if one.where else ""
    return printable(f"{judged.subject}: {found}{where}{wanted}{why}")


def document(many: Sequence[Judged]) -> ValidationDocument:
    """Several subjects as the document `toolmatrix.validation/1`."""
    words = [judged.outcome for judged in many]
    return {
        "schema": SCHEMA,
        "subjects": [judged.to_json() for judged in many],
        "summary": {word: words.count(word) for word in OUTCOMES} | {"subjects": len(many)},
    }


def annotated(many: Sequence[Judged]) -> list[Annotation]:
    """The verdicts that did not pass, placed in the lock, for an image has no line; SARIF adds the path in it."""
    return [
        Annotation(
            severity=SEVERITY_OF[one.word],
            code=one.code,
            text=sentence(judged, one),
            where=Position(printable(judged.lock), 1) if judged.lock else None,
            help=printable(one.help),
            properties={
                "facts": list(one.facts),
                "layer": printable(one.layer),
                "instruction": printable(one.made_by),
            },
            logical="!".join(printable(part) for part in (judged.subject, one.where) if part),
        )
        for judged in many
        for one in judged.verdicts
        if one.word != PASS
    ]


def github(many: Sequence[Judged]) -> str:
    """Workflow commands; a skip is not worth one of the few that GitHub shows."""
    shown = (one for one in annotated(many) if one.severity != SEVERITY_OF[SKIP])
    return commands(shown, closing_of_all(many))


def markdown(many: Sequence[Judged]) -> str:
    """The table for the summary of a GitHub step."""
    rows = [
        [_cell(text) for text in (one.word, one.code, sentence(judged, one))]
        for judged in many
        for one in judged.verdicts
        if one.word not in (PASS, SKIP)
    ]
    return step_summary(("verdict", "code", "what"), rows, closing_of_all(many))


def _cell(text: str) -> str:
    # Neither Markdown nor HTML finds anything of its own in a number.
    return "".join(f"&#{ord(letter)};" if letter in _MARKUP else letter for letter in text)


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
        element = ET.SubElement(case, _JUNIT[one.word], said)
        element.text = printable(one.help)
    elif one.word == WARN:
        ET.SubElement(case, "system-out").text = sentence(judged, one)


def html(many: Sequence[Judged]) -> str:
    """One page that needs nothing else: every subject with every check, then what the codes mean."""
    # Who opens the page looks for what failed.
    order = {"no": 0, "unknown": 1, "yes": 2}
    parts = [_section(judged) for judged in sorted(many, key=lambda one: order[one.outcome])]
    codes = sorted({one.code for judged in many for one in judged.verdicts} - {""})
    return pictures.html_page(closing_of_all(many), "".join(parts) + _codes(codes))


def _section(judged: Judged) -> str:
    rows = []
    for one in judged.verdicts:
        *before, code, help = map(pictures.html_text, _texts(one))
        code = f'<a href="#{code}">{code}</a>' if code else ""
        rows.append((one.word, [*before, code, help]))
    against = f"{judged.lock} {judged.target}".strip()
    about = " · ".join(part for part in (judged.platform, judged.digest, against) if part)
    named = pictures.html_text(judged.subject)
    table = pictures.html_cards(f"checks of {judged.subject}", _COLUMNS, rows)
    return f"<h2>{named}</h2><p>{pictures.html_text(about)}</p>\n{table}"


def _codes(codes: Sequence[str]) -> str:
    from toolmatrix.report.rules import load_rules

    rules = load_rules() if codes else {}
    told = []
    # Results may be those of another version, with codes of its own.
    for code in filter(rules.__contains__, codes):
        rule = rules[code]
        said = "".join(f"<p>{pictures.html_text(part)}</p>" for part in (rule.what, rule.why))
        remedy = f"<p><strong>what to do:</strong> {pictures.html_text(rule.remedy)}</p>"
        told.append(f'<h3 id="{code}">{code} {pictures.html_text(rule.name)}</h3>{said}{remedy}\n')
    return f"<h2>what the codes mean</h2>\n{''.join(told)}" if told else ""


def _texts(one: Verdict) -> tuple[str, ...]:
    how = " ".join(part for part in (one.reason, one.where, one.made_by) if part)
    also = "".join(f"; also {version} at {where}" for version, where in one.others)
    help = "" if one.word in (PASS, SKIP) else one.help
    return one.word, one.name, one.found + also, one.wanted, how or one.seen_by, one.code, help


FORMS = {"junit": junit, "github": github, "html": html}
"""The forms of several subjects that need no terminal."""
