"""A diagnosis in words, as the document `toolmatrix.findings/1`, as SARIF and as what GitHub shows.

Lines of a log were written by strangers: they pass through `terminal.printable` before a terminal or a command of a CI
system sees them.
"""

from __future__ import annotations

import shlex

from toolmatrix.finding import SEVERITIES
from toolmatrix.report import claims, cores, sarif, terminal
from toolmatrix.report.annotations import Annotation, commands
from toolmatrix.report.answer import head
from toolmatrix.report.findings import SCHEMA, place
from toolmatrix.report.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.logs.diagnosis import Cause, Diagnosis, Fix, Involved
    from toolmatrix.report.terminal import Terminal

_COLOURS = {"error": "error", "warning": "partial", "info": "unknown"}
# Characters of a line of the log that are shown.
_LONGEST = 200
# Components of an answer that are named.
_ANSWERED = 6


class Report:
    """A diagnosis with the index it speaks about; `lock` is the path of the lock it was held against."""

    def __init__(self, index: Index, diagnosis: Diagnosis, lock: str = "") -> None:
        self.index = index
        self.found = diagnosis
        self.lock = lock

    def document(self) -> dict[str, Any]:
        """Everything as JSON values."""
        found = self.found
        severities = [cause.finding.severity for cause in found.causes]
        followed = found.followed
        return {
            "schema": SCHEMA,
            "subject": found.subject,
            "matrix": head(self.index),
            "findings": [self.entry(cause) for cause in found.causes],
            "components": {name: list(versions) for name, versions in found.components.items()},
            "consequences": {
                "count": found.following,
                "first": None
                if followed is None
                else {"line": followed.line, "text": followed.text},
            },
            "summary": {name + "s": severities.count(name) for name in SEVERITIES}
            | {"lines": found.lines, "left_out": found.left},
        }

    def entry(self, cause: Cause) -> dict[str, Any]:
        """One cause as JSON values."""
        finding = cause.finding
        return {
            "code": finding.code,
            "severity": finding.severity,
            "signature": cause.signature,
            "component": finding.component or None,
            "between": [side_document(side) for side in cause.between],
            "expected": self.expected(cause) or None,
            "actual": finding.actual or None,
            "where": place(finding.where),
            "line": cause.text,
            "count": cause.count,
            "follows": cause.follows or None,
            "text": self.what(cause),
            "because": self.because(cause),
            "evidence": self.evidence(cause),
            "source": cause.source,
            "help": cause.do,
            "fix": None if cause.fix is None else fix_document(cause.fix),
            "facts": list(finding.facts),
        }

    def what(self, cause: Cause) -> str:
        """A cause in one sentence."""
        return f"{cause.what}: {cause.finding.actual}"

    def because(self, cause: Cause) -> list[str]:
        """The facts by which two sides do not go together, in words."""
        return [cores.ground_text(self.index, ground) for ground in cause.finding.grounds]

    def evidence(self, cause: Cause) -> str:
        """How well the reason is known: that of the facts, else that of the signature."""
        grounds = cause.finding.grounds
        return grounds[0].evidence if grounds else cause.evidence

    def expected(self, cause: Cause) -> str:
        """What would go together: what the log asks for, else what the facts allow."""
        if cause.finding.expected or cause.allowed is None:
            return cause.finding.expected
        component, releases = cause.allowed
        return f"{component} {claims.ranged(self.index, component, releases)}"

    def text(self, screen: Terminal) -> str:
        """Everything in words; the last lines carry the point."""
        notes = claims.Notes(self.index)
        lines: list[str] = []
        for cause in self.found.causes:
            lines += [*self._lines(cause, notes, screen), ""]
        if notes.numbers:
            lines += [*notes.lines(screen.width), ""]
        return "\n".join([*lines, self.closing()]) + "\n"

    def closing(self) -> str:
        """What was read and what came of it."""
        found = self.found
        read = f"read {terminal.plural(found.lines, 'line')}"
        if not found.causes:
            return f"{read}: nothing known; no signature of a failure is in this log"
        told = [read + f": {terminal.plural(len(found.causes) + found.left, 'known failure')}"]
        if found.left:
            told.append(f"{found.left} not shown, `--limit 0` shows all")
        if found.followed is not None:
            lines = terminal.plural(found.following, "line")
            told.append(
                f"{lines} only {'says' if found.following == 1 else 'say'} that something failed"
            )
        return ", ".join(told)

    def _lines(self, cause: Cause, notes: claims.Notes, screen: Terminal) -> Iterator[str]:
        finding = cause.finding
        severity = screen.style(f"{finding.severity}[{finding.code}]", _COLOURS[finding.severity])
        tail = f" (follows from line {cause.follows})" if cause.follows else ""
        yield f"{severity}: {cause.what}{tail}"
        yield f"  --> {printable(str(finding.where))}"
        yield f"    | {printable(cause.text[:_LONGEST])}"
        if cause.count > 1:
            yield f"    | and {terminal.plural(cause.count - 1, 'more line')} like it"
        mark = notes.mark(self._sources(cause))
        for told in self.because(cause):
            yield from _block("    |   ", f"{told}  {self.evidence(cause)} {mark}", screen)
        if not finding.grounds:
            yield from _block(
                "    |   ", f"known from {cause.source}  {cause.evidence} {mark}", screen
            )
        sides = " and ".join(printable(_shown(side)) for side in cause.between)
        yield from _block("    = between: ", sides, screen)
        for label, told in self._remarks(cause):
            yield from _block(f"    = {label}: ", told, screen)
        yield from _block("help: ", printable(cause.do), screen)
        if cause.fix is not None:
            yield from _block("      ", f"{command(cause.fix)} gives {answer(cause.fix)}", screen)

    def _sources(self, cause: Cause) -> list[str]:
        ids = self.index.ids
        return [self.index.record(ids[fact]).source for fact in cause.finding.facts if fact in ids]

    def _remarks(self, cause: Cause) -> Iterator[tuple[str, str]]:
        if self.expected(cause):
            yield "expected", printable(self.expected(cause))
        for side in cause.between:
            if side.wanted:
                yield "wanted", f"{side.component} {side.wanted} by {printable(self.lock)}"
        if cause.finding.facts:
            yield "facts", terminal.listing(cause.finding.facts)

    def _told(self, cause: Cause) -> str:
        """A cause with its reason and its way out on one line."""
        because = "".join(f", because {told}" for told in self.because(cause))
        fix = f"; {command(cause.fix)} gives {answer(cause.fix)}" if cause.fix else ""
        return printable(f"{self.what(cause)}{because}. {cause.do}{fix}")

    def github(self) -> str:
        """Workflow commands, and what was read."""
        held = [
            Annotation(
                severity=cause.finding.severity,
                code=cause.finding.code,
                text=self._told(cause),
                where=cause.finding.where,
            )
            for cause in self.found.causes
        ]
        return "".join(line + "\n" for line in [*commands(held), self.closing()])

    def sarif(self, program: str) -> dict[str, Any]:
        """The log of one run."""
        return sarif.log(
            program,
            [
                {
                    "ruleId": cause.finding.code,
                    "level": sarif.LEVELS[cause.finding.severity],
                    "message": {"text": self._told(cause)},
                    "properties": {
                        "facts": list(cause.finding.facts),
                        "signature": cause.signature,
                        "line": printable(cause.text),
                    },
                    "locations": [sarif.physical(cause.finding.where)]
                    if cause.finding.where
                    else [],
                }
                for cause in self.found.causes
            ],
        )


def _block(first: str, text: str, screen: Terminal) -> list[str]:
    bar = "    |   " if first.lstrip().startswith("|") else " " * len(first)
    return terminal.wrap(text, screen.width, indent=bar, first=first)


def _shown(side: Involved) -> str:
    where = f" ({side.where})" if side.where else ""
    asked = f", asked for {side.needed}" if side.needed not in ("", side.component) else ""
    return f"{side.component} {side.version}".strip() + where + asked


def side_document(side: Involved) -> dict[str, Any]:
    """One side of a failure as JSON values."""
    return {
        "component": side.component,
        "version": side.version or None,
        "where": side.where or None,
        "needed": side.needed or None,
        "wanted": side.wanted or None,
        "bring": side.bring or None,
    }


def fix_document(fix: Fix) -> dict[str, Any]:
    """A request that was solved as JSON values."""
    return {
        "request": list(fix.request),
        "command": "toolmatrix resolve " + shlex.join(fix.request),
        "answer": dict(fix.answer),
    }


def command(fix: Fix) -> str:
    """The command of a request."""
    return f"`toolmatrix resolve {shlex.join(fix.request)}`"


def answer(fix: Fix) -> str:
    """The releases that a request gives, those that it names first."""
    asked: Mapping[str, int] = {
        name: place
        for place, word in enumerate(fix.request)
        if (name := word.partition("=")[0].rstrip("<>~!")) in fix.answer
    }
    names = sorted(fix.answer, key=lambda name: asked.get(name, len(asked)))
    told = [f"{name} {fix.answer[name]}" for name in names if not fix.answer[name].startswith("-")]
    more = len(told) - _ANSWERED
    return terminal.listing(told[:_ANSWERED] + ([f"{more} more"] if more > 0 else []))
