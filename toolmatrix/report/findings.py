"""Findings in words, as the document `toolmatrix.findings/1`, and as what GitHub shows."""

from __future__ import annotations

from toolmatrix.finding import SEVERITIES
from toolmatrix.report import claims, cores, terminal
from toolmatrix.report.annotations import Annotation, commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.errors import Position
    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Finding, Way
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.findings/1"
_FROM = {"source": "from source", "wheel": "as wheel"}
# Words of releases that a sentence holds where all of them would fill a page.
_NAMES = 12
_WITH = {"": "", "none": " without an accelerator"}
_HELP = {
    "TM104": "",
    "TM105": "`toolmatrix why-not '{ask}'{way}` shows the whole reason",
    "TM120": "`toolmatrix resolve '{ask}'{way}` shows the answer and what it rests on",
    "TM301": "`toolmatrix facts '{fact}'` shows the claim that does not decide",
    "TM302": "install a newer toolmatrix, or add newer facts with `--matrix FILE`",
    "TM304": "remove it, or let a fact name it",
    "TM305": "correct the name, or add what it names",
    "TM306": "`toolmatrix why-not '{ask}'` shows the whole reason",
    "TM307": "correct the date",
    "TM310": "read the source again and change the date, or the fact and the date",
    "TM311": "`toolmatrix facts '{fact}'` shows the row; correct a date, or what the row is worth",
    "TM312": "enter the fact that names it, or `toolmatrix explain` the answer to see where it is from",
    "TM313": "add what is missing with its source, or that nobody can say, with evidence `unknown`",
}


class Report:
    """Findings with the index they speak about, ordered for reading: what is worst first."""

    def __init__(
        self,
        index: Index,
        findings: Iterable[Finding],
        counts: Mapping[str, int],
        subject: str = "the matrix",
    ) -> None:
        places = {name: place for place, name in enumerate(index.header["components"])}

        def order(finding: Finding) -> tuple[object, ...]:
            severity = SEVERITIES.index(finding.severity)
            return severity, finding.code, places.get(finding.component, -1), finding.names

        self.index = index
        self.findings = sorted(findings, key=order)
        self.counts = dict(counts)
        self.subject = subject

    @property
    def failed(self) -> bool:
        """Whether an error is among them."""
        return any(finding.severity == "error" for finding in self.findings)

    def summary(self) -> dict[str, int]:
        """How many of each severity, and what was looked at."""
        held = [finding.severity for finding in self.findings]
        return {name + "s": held.count(name) for name in SEVERITIES} | self.counts

    def document(self, subject: str) -> dict[str, Any]:
        """Everything as JSON values."""
        from toolmatrix.report.answer import head

        return {
            "schema": SCHEMA,
            "subject": subject,
            "matrix": head(self.index),
            "findings": [self.entry(finding) for finding in self.findings],
            "summary": self.summary(),
        }

    def entry(self, finding: Finding) -> dict[str, Any]:
        """One finding as JSON values."""
        return {
            "code": finding.code,
            "severity": finding.severity,
            "component": finding.component or None,
            "releases": list(finding.releases),
            "ways": [
                {
                    "target": way.target,
                    "from": way.from_,
                    "accelerator": way.accelerator or None,
                }
                for way in finding.ways
            ],
            "expected": finding.expected or None,
            "actual": finding.actual or None,
            "where": place(finding.where),
            "text": what(self.index, finding),
            "because": reasons(self.index, finding),
            "help": help_of(finding),
            "facts": list(finding.facts),
        }

    def text(self, screen: Terminal) -> str:
        """Everything in words; the last lines carry the point."""
        notes = claims.Notes(self.index)
        lines = [line for finding in self.findings for line in self._lines(finding, notes, screen)]
        if notes.numbers:
            lines += ["", *notes.lines()]
        return "\n".join([*lines, *([""] if lines else []), self.closing()]) + "\n"

    def closing(self) -> str:
        """What was looked at and what came of it."""
        counts = self.summary()
        looked = (
            f"solved {terminal.plural(counts['frameworks'], 'release')} of frameworks in "
            f"{terminal.plural(counts['ways'], 'way')}: {terminal.plural(counts['answers'], 'answer')}, "
            f"{terminal.plural(counts['refusals'], 'refusal')}, {counts['unknown']} unknown\n"
            f"reached {counts['reached']} of {terminal.plural(counts['releases'], 'release')}"
        )
        found = [
            terminal.plural(counts[name + "s"], name) for name in SEVERITIES if counts[name + "s"]
        ]
        verdict = "no" if self.failed else "yes"
        return f"{looked}\n{verdict}: {self.subject} has {terminal.listing(found) or 'no findings'}"

    def _lines(self, finding: Finding, notes: claims.Notes, screen: Terminal) -> Iterator[str]:
        colour = {"error": "error", "warning": "partial", "info": "unknown"}[finding.severity]
        head = screen.style(f"{finding.severity}[{finding.code}]", colour)
        yield from terminal.wrap(
            f"{head}: {what(self.index, finding)}", screen.width, indent="  ", first=""
        )
        ids = self.index.ids
        for ground, told in zip(finding.grounds, reasons(self.index, finding), strict=True):
            mark = notes.mark(self.index.record(ids[fact]).source for fact in ground.facts)
            evidence = f" ({ground.evidence})" if ground.evidence else ""
            yield from terminal.wrap(
                f"{told}{evidence} {mark}", screen.width, indent="    ", first="  "
            )
        if finding.where is not None and not finding.grounds:
            yield f"  --> {finding.where}"
        if finding.severity != "info" and help_of(finding):
            yield from terminal.wrap(
                f"help: {help_of(finding)}", screen.width, indent="        ", first="  "
            )

    def github(self) -> str:
        """Workflow commands: at most ten of a kind, then how many more there are."""
        lines = commands(
            Annotation(
                severity=finding.severity,
                code=finding.code,
                text=in_full(self.index, finding),
                where=finding.where,
            )
            for finding in self.findings
        )
        return "".join(line + "\n" for line in [*lines, self.closing().replace("\n", "; ")])

    def markdown(self) -> str:
        """The table for the summary of a GitHub step."""
        rows = [
            f"| {finding.severity} | {finding.code} | {in_full(self.index, finding).replace('|', chr(92) + '|')} |"
            for finding in self.findings
        ]
        head = ["| severity | code | finding |", "|---|---|---|"]
        return "\n".join([*(head if rows else []), *rows, "", *self.closing().splitlines()]) + "\n"


def place(where: Position | None) -> dict[str, Any] | None:
    """A place as JSON values."""
    if where is None:
        return None
    return {"path": where.path, "line": where.line or None, "column": where.column or None}


def in_full(index: Index, finding: Finding) -> str:
    """A finding with its reasons on one line."""
    told = reasons(index, finding)
    return what(index, finding) + (f", because {' and '.join(told)}" if told else "")


def what(index: Index, finding: Finding) -> str:
    """A finding in one sentence."""
    named = (
        f"{finding.component} {claims.ranged(index, finding.component, finding.releases)}".strip()
    )
    names = finding.names
    if finding.code in ("TM104", "TM105"):
        tail = "" if finding.code == "TM104" else ", and no short reason is recorded"
        return f"no answer for {named} {ways_text(index, finding.ways)}{tail}"
    if finding.code == "TM120":
        return f"cannot say whether {named} has an answer {ways_text(index, finding.ways)}"
    if finding.code == "TM306":
        return f"nobody can reach {named}: no target, accelerator or way has an answer"
    if finding.code == "TM301":
        about, rival, deciding, weaker, better = names
        why = " as the other is set aside" if finding.actual else ""
        return (
            f"sources disagree about {about} for {named}: "
            f"{rival} ({weaker}) says otherwise than {deciding} ({better}), which decides{why}"
        )
    if finding.code == "TM302":
        return f"the matrix was reviewed on {finding.actual}, {names[0]} days ago"
    if finding.code == "TM304":
        return f"nothing uses the {names[0]} `{names[1]}`"
    if finding.code == "TM305":
        return f"{names[0]} names `{names[1]}`, which is not there"
    if finding.code == "TM307":
        return f"the source `{names[0]}` was read on {finding.actual}, which is yet to come"
    if finding.code == "TM311":
        component, version = names
        return (
            f"a row about {named} is said to have been tested with {component} {version}, "
            f"which came out on {finding.actual}, after {finding.expected}"
        )
    if finding.code == "TM312":
        return _unnamed(index, finding, named)
    if finding.code == "TM313":
        return _missing(finding, terminal.few(named, _NAMES))
    count = terminal.plural(len(finding.facts), "fact")
    return f"{names[0]} was read on {finding.actual}, {names[1]} days ago; {count} rest on it"


def _unnamed(index: Index, finding: Finding, named: str) -> str:
    component, *versions = finding.names
    chosen = f"{component} {claims.ranged(index, component, versions)}".strip()
    why = f"is there by facts of {finding.actual} alone" if finding.actual else "is there by chance"
    return (
        f"no fact of {finding.component} names the {component} in the answer for {named} "
        f"{ways_text(index, finding.ways)}: {chosen} {why}"
    )


def _missing(finding: Finding, named: str) -> str:
    kind, about, *rest = finding.names
    if kind == "machine":
        return f"{named} is offered for {about} as wheel, and no build of it for that is known"
    one, accelerator = rest
    if kind == "toolkit":
        return (
            f"no fact says which toolkit the {accelerator} builds of {named} for {about} "
            f"on the channel `{one}` need"
        )
    return (
        f"{one} does not say which {about} goes with {named}, "
        f"and does for other rows{_WITH.get(accelerator, f' with {accelerator}')}"
    )


def help_of(finding: Finding) -> str:
    """What to do next."""
    ask = f"{finding.component}=={finding.releases[-1]}" if finding.releases else ""
    way = ""
    for first in finding.ways[:1]:
        way = f" --target {first.target} --from {first.from_}"
        way += f" --accelerator {first.accelerator}" if first.accelerator else ""
    fact = finding.facts[0] if finding.facts else ""
    return _HELP[finding.code].replace("{ask}", ask).replace("{way}", way).replace("{fact}", fact)


def ways_text(index: Index, ways: Sequence[Way]) -> str:
    """`on arm and amd as wheel`, `on x86 from source with cuda and on arm`."""
    every = tuple(reversed(index.component("from").versions))
    by_place: dict[tuple[str, str], list[str]] = {}
    for way in ways:
        by_place.setdefault((way.target, way.accelerator), []).append(way.from_)
    by_kind: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (target, accelerator), held in by_place.items():
        by_kind.setdefault((accelerator, tuple(held)), []).append(target)
    return terminal.listing(
        [
            f"on {terminal.listing(targets)}"
            + ("" if held == every else f" {_FROM.get(held[0], held[0])}")
            + _WITH.get(accelerator, f" with {accelerator}")
            for (accelerator, held), targets in by_kind.items()
        ]
    )


def reasons(index: Index, finding: Finding) -> list[str]:
    """The grounds of a finding in words."""
    if finding.code == "TM120":
        return [claims.silence(index, ground) for ground in finding.grounds]
    mine = (finding.component, finding.releases)
    return [cores.ground_text(index, ground, mine) for ground in finding.grounds]
