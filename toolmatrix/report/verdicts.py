"""Verdicts about images and machines: in words, as the document `toolmatrix.verdicts/1`, and as what GitHub shows.

What was read out of an image is written by strangers: it passes through `terminal.printable` before it is shown.
"""

from __future__ import annotations

from toolmatrix.errors import Position
from toolmatrix.finding import FAIL, PASS, SEVERITY_OF, SKIP, UNKNOWN, WARN, WORDS, Verdict, outcome
from toolmatrix.report import terminal
from toolmatrix.report.annotations import Annotation, commands
from toolmatrix.report.terminal import printable
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.verdicts/1"

# Fields that a document has under the same name.
_PLAIN = ("kind", "name", "seen_by", "help", "evidence", "reason", "code")
_COLOURS = {PASS: "yes", WARN: "partial", FAIL: "no", SKIP: "unknown", UNKNOWN: "unknown"}
_COUNTED = {WARN: "warned", FAIL: "failed", UNKNOWN: "unknown", SKIP: "skipped"}
_MARKUP = frozenset("\\`*_[]<>|&!~#@")
# Letters of a value that a line of text shows.
_LONGEST = 40
# Letters of a digest that are enough for people: `sha256:` and twelve more.
_DIGEST = 19


class Judged(Value):
    """One subject with its verdicts, and what it was held against: a lock (path, digest, target) or expectations."""

    subject: str
    verdicts: tuple[Verdict, ...]
    platform: str = ""
    digest: str = ""
    lock: str = ""
    lock_digest: str = ""
    target: str = ""

    @property
    def outcome(self) -> str:
        """yes, no or unknown."""
        return outcome(self.verdicts)

    def summary(self) -> dict[str, int]:
        """How many checks came to each word; `checked` are those that were not skipped."""
        held = [verdict.word for verdict in self.verdicts]
        counts = {word.lower(): held.count(word) for word in WORDS}
        return counts | {"checked": len(held) - counts[SKIP]}


def document(judged: Judged) -> dict[str, Any]:
    """Everything as JSON values."""
    lock = {"path": judged.lock, "digest": judged.lock_digest, "target": judged.target}
    return {
        "schema": SCHEMA,
        "subject": judged.subject,
        "platform": judged.platform or None,
        "digest": judged.digest or None,
        "lock": lock if judged.lock else None,
        "outcome": judged.outcome,
        "summary": judged.summary(),
        "verdicts": [entry(verdict) for verdict in judged.verdicts],
    }


def entry(verdict: Verdict) -> dict[str, Any]:
    """One verdict as JSON values."""
    return {
        "verdict": verdict.word,
        **{name: getattr(verdict, name) or None for name in _PLAIN},
        "severity": SEVERITY_OF.get(verdict.word),
        "expected": verdict.wanted or None,
        "actual": verdict.found or None,
        "where": {
            "path": verdict.where or None,
            "layer": verdict.layer or None,
            "instruction": verdict.made_by or None,
        },
        "others": [{"version": version, "where": where} for version, where in verdict.others],
        "facts": list(verdict.facts),
    }


def restored(body: Mapping[str, Any]) -> Judged:
    """A subject out of its document. Raises KeyError or TypeError for what is none."""
    lock = body["lock"] or {"path": "", "digest": "", "target": ""}
    return Judged(
        subject=body["subject"],
        platform=body["platform"] or "",
        digest=body["digest"] or "",
        lock=lock["path"],
        lock_digest=lock["digest"],
        target=lock["target"],
        verdicts=tuple(map(_restored, body["verdicts"])),
    )


def _restored(held: Mapping[str, Any]) -> Verdict:
    where = held["where"]
    return Verdict(
        word=held["verdict"],
        wanted=held["expected"] or "",
        found=held["actual"] or "",
        where=where["path"] or "",
        layer=where["layer"] or "",
        made_by=where["instruction"] or "",
        others=tuple((one["version"], one["where"]) for one in held["others"]),
        facts=tuple(held["facts"]),
        **{name: held[name] or "" for name in _PLAIN},
    )


def text(judged: Judged, screen: Terminal) -> str:
    """A subject in words: a line a check, and below them what can be done."""
    lines = [_head(judged), *terminal.columns(_rows(judged.verdicts, screen)), _closing(judged)]
    helps = [line for one in judged.verdicts for line in _help(one, screen)]
    return "\n".join([*lines, *([""] if helps else []), *helps]) + "\n"


def _head(judged: Judged) -> str:
    parts = (judged.subject, judged.platform, judged.digest[:_DIGEST])
    return "  ".join(printable(part) for part in parts if part)


def _rows(verdicts: Sequence[Verdict], screen: Terminal) -> Iterator[tuple[str, ...]]:
    for one in verdicts:
        said = one.wanted in ("", one.found, one.name)
        wanted = "" if said else f"wanted {shown(one.wanted)}"
        how = one.reason or one.where or one.seen_by
        yield (
            screen.style(one.word, _COLOURS[one.word]),
            printable(one.name),
            shown(one.found) or ("-" if wanted else ""),
            wanted,
            printable(how),
            one.code,
        )
        for version, where in one.others:
            also = (shown(version), "", printable(where))
            yield ("", screen.style("also", "dim"), *also)


def shown(value: str) -> str:
    """A value from a subject, printable and of bearable length; a digest is cut as people cut it."""
    plain = printable(value)
    if plain.startswith("sha256:"):
        return plain[:_DIGEST]
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."


def _closing(judged: Judged) -> str:
    counts = judged.summary()
    told = [
        f"{counts[word.lower()]} {name}" for word, name in _COUNTED.items() if counts[word.lower()]
    ]
    return ", ".join([f"{counts['checked']} checked", *told])


def _help(one: Verdict, screen: Terminal) -> Iterator[str]:
    if one.word in (PASS, SKIP) or not one.help:
        return
    facts = f" ({terminal.few(' '.join(one.facts), 3)})" if one.facts else ""
    head = screen.style("help", "help")
    said = f"{head}: {printable(one.name)}: {printable(one.help)}{printable(facts)}"
    yield from terminal.wrap(said, screen.width, indent="      ", first="")


def closing_of_all(many: Sequence[Judged]) -> str:
    """How many subjects there were, and what came of them."""
    words = [judged.outcome for judged in many]
    names = {"yes": "passed", "no": "failed", "unknown": "unknown"}
    told = [f"{words.count(word)} {name}" for word, name in names.items() if word in words]
    return ", ".join([terminal.plural(len(many), "subject"), *told])


def sentence(judged: Judged, one: Verdict) -> str:
    """A verdict on one line, for readers that show nothing beside it."""
    found = (
        f"{one.name} is {one.found}" if one.found else f"{one.name}: {one.reason or 'not there'}"
    )
    wanted = f", wanted {one.wanted}" if one.wanted else ""
    why = f" ({one.reason})" if one.reason and one.found else ""
    where = f" at {one.where}" if one.where else ""
    return printable(f"{judged.subject}: {found}{where}{wanted}{why}")


def github(many: Sequence[Judged]) -> str:
    """Workflow commands; they point at the lock, for an image has no line."""
    found = [
        Annotation(
            severity=SEVERITY_OF[one.word],
            code=one.code,
            text=sentence(judged, one),
            where=Position(printable(judged.lock), 1) if judged.lock else None,
        )
        for judged in many
        for one in judged.verdicts
        if one.word not in (PASS, SKIP)
    ]
    return "".join(line + "\n" for line in [*commands(found), closing_of_all(many)])


def markdown(many: Sequence[Judged]) -> str:
    """The table for the summary of a GitHub step."""
    rows = [
        "| "
        + " | ".join(_cell(text) for text in (one.word, one.code, sentence(judged, one)))
        + " |"
        for judged in many
        for one in judged.verdicts
        if one.word not in (PASS, SKIP)
    ]
    head = ["| verdict | code | what |", "|---|---|---|"] if rows else []
    return "\n".join([*head, *rows, "", closing_of_all(many)]) + "\n"


def _cell(text: str) -> str:
    """A text in which neither Markdown nor HTML finds anything of its own."""
    return "".join(f"&#{ord(letter)};" if letter in _MARKUP else letter for letter in text)
