"""Findings about the matrix and about plans: as documents, in words, and as what CI systems show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.codes.plans import DeviceFinding
from toolmatrix.documents import (
    Annotated,
    Any,
    Code,
    Count,
    FilePlace,
    HasFrom,
    MatrixHead,
    NotRequired,
    TypedDict,
)
from toolmatrix.factbase.evidence import weakest
from toolmatrix.factbase.index import Index
from toolmatrix.finding import SEVERITIES, UNDECIDED, Finding, InstallMethod
from toolmatrix.report import claims, cores, terminal
from toolmatrix.report.annotations import Annotation, commands, step_summary
from toolmatrix.report.answer import head
from toolmatrix.report.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.report.diagnosis import CauseEntry, Consequences
    from toolmatrix.report.imports import ImportedAnswer

SCHEMA = "toolmatrix.findings/1"
COLOURS = {"error": "error", "warning": "partial", "info": "unknown"}
_FROM = {"source": "from source", "wheel": "as wheel"}
_WITH = {"": "", "none": " without an accelerator"}


class FindingWay(HasFrom):
    """A way to get a framework that a finding is about."""

    target: str
    accelerator: NotRequired[str | None]


class FindingHead(TypedDict):
    """The fields of every finding."""

    code: Code
    severity: Annotated[str, SEVERITIES]
    component: str | None
    expected: str | None
    actual: str | None
    where: FilePlace | None
    text: str
    because: NotRequired[list[str]]
    help: str
    facts: list[str]


class FindingEntry(FindingHead):
    """A finding about the matrix."""

    releases: list[str]
    ways: list[FindingWay]


class PlanFindingEntry(FindingEntry):
    """A finding about a plan: its invocation, its stage, and what it is about."""

    plan: Count | None
    stage: Count | None
    names: list[str]


class FamilyEntry(TypedDict):
    """A component: releases that are known and that the package index lists (null where it was not asked), builds,
    ways with an answer, without one and undecided by target, facts and answers by evidence.
    """

    component: str
    title: str
    known: Count
    newest: str | None
    published: int | None
    newest_published: str | None
    variants: Count
    targets: dict[str, dict[str, Count]]
    facts: dict[str, Count]
    answers: dict[str, Count]


class FindingsDocument(TypedDict):
    """What `toolmatrix check --json`, `toolmatrix audit --json` and `toolmatrix diagnose --json` print. `families` is
    what an audit found of each component, `imports` what came of answers that `--import` used. Of a log, `between`
    are the sides that do not go together, `fix` a request that was solved, `instead` another way out, and `follows`
    the line of what it is a consequence of.
    """

    schema: Annotated[str, SCHEMA]
    subject: str
    matrix: MatrixHead
    findings: list[FindingEntry] | list[CauseEntry]
    families: NotRequired[list[Annotated[dict[str, Any], FamilyEntry]]]
    imports: NotRequired[list[Annotated[dict[str, Any], ImportedAnswer]]]
    components: NotRequired[dict[str, list[str]]]
    consequences: NotRequired[Consequences]
    summary: Annotated[dict[str, Count], "errors", "warnings", "infos"]


class IndexWords:
    """Words for releases and ways in the order of an index; see `finding.Words`."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def named(self, component: str, releases: Sequence[str]) -> str:
        """`tensorflow 2.6.0-2.6.5`, or the component alone where all of its releases are meant."""
        return f"{component} {claims.ranged(self.index, component, releases)}".strip()

    def ways(self, methods: Sequence[InstallMethod]) -> str:
        """`on arm and amd as wheel`, `on x86 from source with cuda and on arm`."""
        every = tuple(reversed(self.index.component("from").versions))
        by_target: dict[tuple[str, str], list[str]] = {}
        for method in methods:
            by_target.setdefault((method.target, method.accelerator), []).append(method.from_)
        # Targets that have the same ways share one phrase.
        by_kind: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (target, accelerator), sources in by_target.items():
            by_kind.setdefault((accelerator, tuple(sources)), []).append(target)
        return terminal.listing(
            [
                f"on {terminal.listing(targets)}"
                + ("" if sources == every else f" {_FROM.get(sources[0], sources[0])}")
                + _WITH.get(accelerator, f" with {accelerator}")
                for (accelerator, sources), targets in by_kind.items()
            ]
        )


def document(index: Index, findings: Iterable[Finding]) -> list[FindingEntry]:
    """Findings as JSON values."""
    return [
        {
            **entry(index, finding),
            "releases": list(finding.releases),
            "ways": [
                {"target": how.target, "from": how.from_, "accelerator": how.accelerator or None}
                for how in finding.ways
            ],
        }
        for finding in findings
    ]


def entry(index: Index, finding: Finding) -> FindingHead:
    """The part of the document of a finding that is the same for the matrix, plans and logs."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "component": finding.component or None,
        "expected": finding.expected or None,
        "actual": finding.actual or None,
        "where": finding.where.to_json() if finding.where else None,
        "text": finding.sentence(IndexWords(index)),
        "because": _reasons(index, finding),
        "help": finding.help(),
        "facts": list(finding.facts),
    }


def plan_document(index: Index, findings: Sequence[Finding]) -> list[PlanFindingEntry]:
    """Findings about plans as JSON values: with their invocation, their stage, and what they are about."""
    return [
        {**entry, "plan": finding.plan, "stage": finding.stage, "names": list(finding.names)}
        for finding, entry in zip(findings, document(index, findings), strict=True)
    ]


def _reasons(index: Index, finding: Finding) -> list[str]:
    if finding.code == UNDECIDED:
        return [claims.silence(index, ground) for ground in finding.grounds]
    # The sentence of a finding names these releases already.
    own = (finding.component, finding.releases)
    return [cores.ground_text(index, ground, own) for ground in finding.grounds]


def severities(findings: Iterable[Finding]) -> dict[str, int]:
    """The number of findings of each severity."""
    levels = [finding.severity for finding in findings]
    return {name + "s": levels.count(name) for name in SEVERITIES}


class MatrixReport:
    """Findings about the matrix, the worst first."""

    def __init__(
        self,
        index: Index,
        findings: Iterable[Finding],
        counts: Mapping[str, int],
        subject: str = "the matrix",
    ) -> None:
        positions = {name: position for position, name in enumerate(index.header["components"])}

        def order(finding: Finding) -> tuple[object, ...]:
            severity = SEVERITIES.index(finding.severity)
            return severity, finding.code, positions.get(finding.component, -1), finding.names

        self.index = index
        self.subject = subject
        self.findings = sorted(findings, key=order)
        self.entries = document(index, self.findings)
        self.summary = severities(self.findings) | dict(counts)

    @property
    def failed(self) -> bool:
        """True if an error is among them."""
        return self.summary["errors"] > 0

    def document(self, subject: str) -> FindingsDocument:
        """Everything as JSON values."""
        return {
            "schema": SCHEMA,
            "subject": subject,
            "matrix": head(self.index),
            "findings": self.entries,
            "summary": self.summary,
        }

    def text(self, screen: Terminal) -> str:
        """Everything in words; the last lines carry the point."""
        notes = claims.Notes(self.index)
        lines = [
            line
            for finding, entry in zip(self.findings, self.entries, strict=True)
            for line in self._lines(finding, entry, notes, screen)
        ]
        if notes.numbers:
            lines += ["", *notes.lines()]
        return "\n".join([*lines, *([""] if lines else []), self.closing()]) + "\n"

    def closing(self) -> str:
        """The numbers of what was looked at, and the verdict."""
        return f"{self.looked()}\n{self.verdict()}"

    def looked(self) -> str:
        """The numbers of what was looked at."""
        counts = self.summary
        return (
            f"solved {terminal.plural(counts['frameworks'], 'release')} of frameworks in "
            f"{terminal.plural(counts['ways'], 'way')}: {terminal.plural(counts['answers'], 'answer')}, "
            f"{terminal.plural(counts['refusals'], 'refusal')}, {counts['unknown']} unknown\n"
            f"answers cover {counts['reached']} of {terminal.plural(counts['releases'], 'release')}"
        )

    def verdict(self) -> str:
        """The last line: yes without an error, and how many findings there are."""
        counts = self.summary
        totals = [
            terminal.plural(counts[name + "s"], name) for name in SEVERITIES if counts[name + "s"]
        ]
        verdict = "no" if self.failed else "yes"
        return f"{verdict}: {self.subject} has {terminal.listing(totals) or 'no findings'}"

    def _lines(
        self, finding: Finding, entry: FindingEntry, notes: claims.Notes, screen: Terminal
    ) -> Iterator[str]:
        yield from _first_line(entry, "", screen)
        for ground, reason in zip(finding.grounds, entry["because"], strict=True):
            mark = notes.cite(ground.facts)
            evidence = f" ({ground.evidence})" if ground.evidence else ""
            yield from screen.wrap(f"{reason}{evidence} {mark}", "  ", "    ")
        # The sources of its grounds locate a finding better than a line of our files.
        if finding.where is not None and not finding.grounds:
            yield f"  --> {finding.where}"
        # There are hundreds of notes; JSON has their help.
        if finding.severity != "info":
            yield from _help(entry, screen)

    def annotations(self) -> list[Annotation]:
        """The findings, each with its reasons on one line."""
        return [
            Annotation(
                severity=finding.severity,
                code=finding.code,
                text=_in_full(entry),
                where=finding.where,
                help=entry["help"],
                properties={"facts": entry["facts"]},
            )
            for finding, entry in zip(self.findings, self.entries, strict=True)
        ]

    def github(self) -> str:
        """Workflow commands: at most ten of a kind, then how many more there are."""
        return commands(self.annotations(), self.closing().replace("\n", "; "))

    def markdown(self) -> str:
        """The table for the summary of a GitHub step."""
        rows = [
            (entry["severity"], entry["code"], _in_full(entry).replace("|", "\\|"))
            for entry in self.entries
        ]
        return step_summary(("severity", "code", "finding"), rows, self.closing())


def _in_full(entry: FindingEntry) -> str:
    because = " and ".join(entry["because"])
    return f"{entry['text']}, because {because}" if because else entry["text"]


def _first_line(entry: FindingEntry, marks: str, screen: Terminal) -> list[str]:
    head = screen.style(f"{entry['severity']}[{entry['code']}]", COLOURS[entry["severity"]])
    return screen.wrap(f"{head}: {entry['text']}{marks}")


def _help(entry: FindingEntry, screen: Terminal) -> list[str]:
    return screen.wrap(f"help: {entry['help']}", "  ", " " * 8) if entry["help"] else []


def plan_text(index: Index, findings: Sequence[Finding], screen: Terminal) -> str:
    """Findings about plans in words, the worst first, then the devices, then the sources; empty without findings."""
    notes = claims.Notes(index)
    ordered = sorted(
        (finding for finding in findings if not isinstance(finding, DeviceFinding)),
        key=lambda finding: (SEVERITIES.index(finding.severity), finding.plan or 0, finding.code),
    )
    lines: list[str] = []
    for finding, entry in zip(ordered, document(index, ordered), strict=True):
        lines += _first_line(entry, _marks(index, finding, notes), screen)
        if finding.where is not None:
            stage = "" if finding.stage is None else f" (stage {finding.stage + 1})"
            lines.append(f"  --> {finding.where}{stage}")
        lines += _help(entry, screen)
    device_findings = [finding for finding in findings if isinstance(finding, DeviceFinding)]
    if device_findings:
        lines += [*([""] if lines else []), *_devices(index, device_findings, notes, screen)]
    if notes.numbers:
        lines += ["", *notes.lines(screen.width)]
    return "".join(line + "\n" for line in lines)


def _marks(index: Index, finding: Finding, notes: claims.Notes) -> str:
    """The weakest evidence of the facts behind a finding, and the numbers of their sources."""
    records = index.known(finding.facts)
    if not records:
        return ""
    worst = weakest(record.evidence for record in records)
    return f" ({worst}) {notes.mark(record.source for record in records)}"


def _devices(
    index: Index, findings: Sequence[DeviceFinding], notes: claims.Notes, screen: Terminal
) -> list[str]:
    """A paragraph for each device, with what several plans say where there are any; the last line carries the point."""
    lines: list[str] = []
    decided: list[DeviceFinding] = []
    longest = max(len(finding.device) for finding in findings)
    for device in dict.fromkeys(finding.device for finding in findings):
        own = [finding for finding in findings if finding.device == device]
        # Of several plans each may say something else; the finding about all of them decides.
        total = next((finding for finding in own if finding.plan is None), None)
        decided.append(total or own[0])
        answer = decided[-1].answer
        head = f"device {device:<{longest}}  {terminal.pad(screen.style(answer, answer), 9)}"
        blank = " " * len(terminal.visible(head))
        others = [finding for finding in own if finding is not total]
        for sentence in _of_device(index, total, others, notes):
            lines += screen.wrap(sentence, head, blank)
            head = blank
    named: dict[str, list[str]] = {}
    for finding in decided:
        named.setdefault(finding.answer, []).append(finding.device)
    words = (("yes", "runs on"), ("no", "not on"), ("unknown", "not known for"))
    closing = [
        f"{verb} {terminal.listing(named[answer])}" for answer, verb in words if answer in named
    ]
    return [*lines, "", ", ".join(closing)]


def _of_device(
    index: Index, total: DeviceFinding | None, own: Sequence[DeviceFinding], notes: claims.Notes
) -> Iterator[str]:
    """The sentences about one device: about all plans, then about each, those that say the same together."""
    words = IndexWords(index)
    if total:
        yield total.sentence(words)
    same: dict[str, list[str]] = {}
    for finding in own:
        sentence = finding.sentence(words) + _marks(index, finding, notes)
        # A build of a hundred files says the same a hundred times.
        same.setdefault(sentence, []).append(str((finding.plan or 0) + 1))
    for sentence, numbers in same.items():
        several = "s" * (len(numbers) > 1)
        where = f"invocation{several} {terminal.listing(numbers)}: " if total else ""
        yield where + sentence
