"""A diagnosis in words, as the document `toolmatrix.findings/1`, as SARIF and as what GitHub shows.

Lines of a log were written by strangers: they pass through `terminal.printable` before a terminal or a command of a CI
system sees them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from toolmatrix.documents import Count, Evidence, Literal, Ordinal, TypedDict
from toolmatrix.factbase.index import Index
from toolmatrix.logs.log import Cause, Diagnosis, Fix, Involved
from toolmatrix.report import claims, findings, terminal
from toolmatrix.report.annotations import Annotation, commands
from toolmatrix.report.answer import head
from toolmatrix.report.findings import COLOURS, SCHEMA, FindingHead, FindingsDocument, severities
from toolmatrix.report.terminal import Terminal, printable

# Letters of a line of the log that are shown; the line of a compiler may be a whole command.
_LONGEST = 200
# Components of an answer that are named.
_ANSWERED = 6


class WayOut(TypedDict):
    """A request that was solved, and what it gives."""

    request: list[str]
    command: str
    answer: dict[str, str]
    install: list[str]


class SideEntry(TypedDict):
    """A component that is incompatible with another one."""

    component: str
    version: str | None
    wanted: str | None
    needed: str | None
    where: str | None
    bring: str | None


class CauseEntry(FindingHead):
    """A failure that a log shows."""

    signature: str
    relation: str
    between: list[SideEntry]
    line: str
    count: Count
    follows: Ordinal | None
    evidence: Evidence | Literal[""]
    source: str
    fix: WayOut | None
    instead: WayOut | None


class FirstLine(TypedDict):
    """A line of a log."""

    line: Ordinal
    text: str


class Consequences(TypedDict):
    """Lines that say only that something failed."""

    count: Count
    first: FirstLine | None


class DiagnosisReport:
    """A diagnosis with the index it speaks about; `lock` is the path of the lock it was checked against."""

    def __init__(self, index: Index, diagnosis: Diagnosis, lock: str = "") -> None:
        self.index = index
        self.diagnosis = diagnosis
        self.lock = lock
        self.entries = [_entry(index, cause) for cause in diagnosis.causes]

    def document(self) -> FindingsDocument:
        """Everything as JSON values."""
        diagnosis = self.diagnosis
        followed = diagnosis.followed
        return {
            "schema": SCHEMA,
            "subject": diagnosis.subject,
            "matrix": head(self.index),
            "findings": self.entries,
            "components": {name: list(versions) for name, versions in diagnosis.components.items()},
            "consequences": {
                "count": diagnosis.following,
                "first": {"line": followed.line, "text": followed.text} if followed else None,
            },
            "summary": {
                **severities(diagnosis.causes),
                "lines": diagnosis.lines,
                "left_out": diagnosis.left,
            },
        }

    def text(self, screen: Terminal) -> str:
        """Everything in words; the last lines carry the point."""
        notes = claims.Notes(self.index)
        lines: list[str] = []
        for cause, entry in zip(self.diagnosis.causes, self.entries, strict=True):
            lines += [*self._lines(cause, entry, notes, screen), ""]
        if notes.numbers:
            lines += [*notes.lines(screen.width), ""]
        return "\n".join([*lines, self.closing()]) + "\n"

    def closing(self) -> str:
        """The numbers of lines that were read, and of failures."""
        diagnosis = self.diagnosis
        read = f"read {terminal.plural(diagnosis.lines, 'line')}"
        if not diagnosis.causes:
            return f"{read}: no known failure in this log"
        count = len(diagnosis.causes) + diagnosis.left
        parts = [f"{read}: {terminal.plural(count, 'known failure')}"]
        if diagnosis.left:
            parts.append(f"{diagnosis.left} not shown, `--limit 0` shows all")
        if diagnosis.followed is not None:
            verb = "says" if diagnosis.following == 1 else "say"
            lines = terminal.plural(diagnosis.following, "line")
            parts.append(f"{lines} only {verb} that something failed")
        return ", ".join(parts)

    def _lines(
        self, cause: Cause, entry: CauseEntry, notes: claims.Notes, screen: Terminal
    ) -> Iterator[str]:
        severity = screen.style(f"{cause.severity}[{cause.code}]", COLOURS[cause.severity])
        tail = f" (follows from line {cause.follows})" if cause.follows else ""
        yield f"{severity}: {cause.what}{tail}"
        yield f"  --> {printable(str(cause.where))}"
        yield f"    | {printable(cause.text[:_LONGEST])}"
        if cause.count > 1:
            yield f"    | and {terminal.plural(cause.count - 1, 'more line')} like it"
        # Signatures name facts, and a matrix of one's own may have none of them.
        mark = notes.mark(record.source for record in self.index.known(cause.facts))
        for reason in entry["because"] or [f"known from {cause.source}"]:
            bar = "    |   "
            yield from screen.wrap(f"{reason}  {entry['evidence']} {mark}", bar, bar)
        sides = " and ".join(printable(_describe_side(side)) for side in cause.between)
        remarks = [("between", sides)]
        if entry["expected"]:
            remarks.append(("expected", printable(entry["expected"])))
        for side in entry["between"]:
            if side["wanted"]:
                wanted = f"{side['component']} {side['wanted']} by {printable(self.lock)}"
                remarks.append(("wanted", wanted))
        if entry["facts"]:
            remarks.append(("facts", terminal.listing(entry["facts"])))
        for label, remark in remarks:
            yield from _block(f"    = {label}: ", remark, screen)
        yield from _block("help: ", printable(entry["help"]), screen)
        for fix, prefix in ((cause.fix, ""), (cause.instead, "or ")):
            if fix is not None:
                yield from _block("      ", prefix + _fix(fix), screen)

    def annotations(self) -> list[Annotation]:
        """The causes, each with its reason and its way out on one line."""
        results = []
        for cause, entry in zip(self.diagnosis.causes, self.entries, strict=True):
            because = "".join(f", because {reason}" for reason in entry["because"])
            fix = f"; {_fix(cause.fix)}" if cause.fix else ""
            fix += f"; or {_fix(cause.instead)}" if cause.instead else ""
            results.append(
                Annotation(
                    severity=cause.severity,
                    code=cause.code,
                    text=printable(f"{entry['text']}{because}. {entry['help']}{fix}"),
                    where=cause.where,
                    properties={
                        "facts": entry["facts"],
                        "signature": cause.signature,
                        "line": printable(cause.text),
                    },
                )
            )
        return results

    def github(self) -> str:
        """Workflow commands, and what was read."""
        return commands(self.annotations(), self.closing())


def _entry(index: Index, cause: Cause) -> CauseEntry:
    expected = cause.expected
    if not expected and cause.allowed is not None:
        component, releases = cause.allowed
        expected = f"{component} {claims.ranged(index, component, releases)}"
    return {
        **findings.entry(index, cause),
        "signature": cause.signature,
        "relation": cause.relation,
        "between": [_side(side) for side in cause.between],
        "expected": expected or None,
        "line": cause.text,
        "count": cause.count,
        "follows": cause.follows or None,
        # Where no fact explains a failure, it is known as well as its signature is.
        "evidence": cause.grounds[0].evidence if cause.grounds else cause.evidence,
        "source": cause.source,
        "fix": _fix_entry(cause.fix) if cause.fix else None,
        "instead": _fix_entry(cause.instead) if cause.instead else None,
    }


def _fix_entry(fix: Fix) -> WayOut:
    return {
        "request": list(fix.request),
        "command": _command(fix),
        "answer": dict(fix.answer),
        "install": list(fix.install),
    }


def _side(side: Involved) -> SideEntry:
    return {
        "component": side.component,
        "version": side.version or None,
        "wanted": side.wanted or None,
        "needed": side.needed or None,
        "where": side.where or None,
        "bring": side.bring or None,
    }


def _block(first: str, text: str, screen: Terminal) -> list[str]:
    return screen.wrap(text, first, " " * len(first))


def _describe_side(side: Involved) -> str:
    where = f" ({side.where})" if side.where else ""
    needed = f", asked for {side.needed}" if side.needed not in ("", side.component) else ""
    return f"{side.component} {side.version}".strip() + where + needed


def _command(fix: Fix) -> str:
    return f"toolmatrix resolve {shlex.join(fix.request)}"


def _fix(fix: Fix) -> str:
    """The command of a request and the releases that it gives, those that it names first."""
    positions: Mapping[str, int] = {
        name: position
        for position, argument in enumerate(fix.request)
        # An argument is `name==1.2` or `name>=1.2`; only its name is kept.
        if (name := argument.partition("=")[0].rstrip("<>~!")) in fix.answer
    }
    names = sorted(fix.answer, key=lambda name: positions.get(name, len(positions)))
    # Flags are part of an answer, but nothing that one could install; builds are named by the command that does.
    releases = [
        f"{name} {fix.answer[name]}"
        for name in names
        if not (fix.answer[name].startswith("-") or "@" in fix.answer[name])
    ]
    more = len(releases) - _ANSWERED
    answer = terminal.listing(releases[:_ANSWERED] + ([f"{more} more"] if more > 0 else []))
    installed = "".join(f": `{command}`" for command in fix.install)
    return f"`{_command(fix)}` gives {answer}{installed}"
