"""`toolmatrix judge`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from toolmatrix.api import Report, as_json, path_list
from toolmatrix.api.caller import caller
from toolmatrix.api.machines import on_machine
from toolmatrix.api.requests import fields, open_matrix
from toolmatrix.codes.manifests import ManifestFinding, short
from toolmatrix.command import PRINTED, command
from toolmatrix.documents import Annotated, Count, FilePlace, MatrixHead, NonEmpty, Pair, TypedDict
from toolmatrix.errors import ErrorEntry, ManifestError, NothingMatched
from toolmatrix.factbase.index import Index
from toolmatrix.judging import edits
from toolmatrix.judging import manifests as judging
from toolmatrix.manifests import files, read
from toolmatrix.manifests import names as called
from toolmatrix.manifests.imports import source_imports
from toolmatrix.manifests.model import NotRead, ProjectManifest, Traced
from toolmatrix.report import claims, findings, terminal
from toolmatrix.report.annotations import Annotation, commands, sarif
from toolmatrix.report.answer import head
from toolmatrix.report.terminal import Terminal, printable
from toolmatrix.request.inventories import manifest_of
from toolmatrix.request.judgement import (
    FINE,
    REFUSED,
    UNKNOWN,
    JudgedEnvironment,
    JudgedFile,
    JudgedPair,
    ManifestRefusal,
    RequestedPart,
)
from toolmatrix.request.machine import ANY_MACHINE, TargetMachine, target_machine
from toolmatrix.request.removed import removed_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolmatrix.api import Matrix, Path, Wanted, Words
    from toolmatrix.factbase.index import Index


@command(
    group="Inspect files, images and machines",
    order=1,
    does="judging",
    usage="FILE...",
    completer="file",
    formats=("text", "json", "patch", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix judge Dockerfile requirements.txt",
        "toolmatrix judge . --format github",
        "toolmatrix judge environment.yml --format patch --output mend.patch",
        "pip list | toolmatrix judge -",
    ),
)
def judge(
    paths: Path | Iterable[Path],
    *,
    device: Words = (),
    with_: Wanted = (),
    distro: str = "",
    target: Words = (),
    edit: bool = True,
    matrix: Matrix = None,
) -> Report:
    """Check a Dockerfile or another project file against the facts.

    Other files are requirements, environments of conda, projects, lock files, compose files, pipelines, scripts and
    what is pasted into bug reports; `-` reads stdin, and a folder means all such files below it. `device`, `with_`
    such as a driver, `distro` and `target` describe the machine that it has to run on, in place of a pasted one.
    Without `edit` no way out is looked for, which takes longest. Raises ManifestError for a file that cannot be read,
    NothingMatched for a folder without any.
    """
    manifests = [*_files(path_list(paths))]
    index, verdicts = open_matrix(matrix).index, []
    options = {"device": device, "with_": with_, "distro": distro, "target": target}
    machine = target_machine(index, on_machine(index, fields((), options), ("python", "glibc")))
    with caller().progress("judging", "files") as progress:
        read_files = [_read_file(path, folder) for path, folder in manifests]
        indexed = [_with_indexes(manifest) for _, manifest in read_files]
        uses = _uses(index, manifests)
        for done, (path, manifest) in enumerate(read_files):
            progress.at(done, len(manifests))
            if isinstance(manifest, ManifestError):
                verdicts.append(JudgedFile(path=path, error=manifest))
                continue
            elsewhere = frozenset().union(*indexed[:done], *indexed[done + 1 :])
            result = judging.judge(
                index, manifest, machine, elsewhere=elsewhere, uses=uses.get(path)
            )
            # Slow: each edit that is tried is judged as a file.
            mended = edits.smallest(index, result) if edit else None
            verdicts.append(JudgedFile(path=path, judged=result, edit=mended))
    # Most workflows, scripts and READMEs below a folder install nothing.
    asking = [file for file in verdicts if file.asks]
    report = ManifestReport(index, asking or verdicts, machine)
    return Report(
        words=report.text,
        document=report.document,
        exit_code=OUTCOMES[report.outcome],
        forms={
            "sarif": lambda: as_json(sarif(report.annotations())),
            "github": report.github,
            "patch": report.patch,
        },
    )


def _files(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The path of each file, and the folder that it was named by; empty where it was named by itself."""
    for path in paths:
        if not os.path.isdir(path) or _is_subject(path):
            yield path, ""
            continue
        below = [*read.below(path)]
        if not below:
            raise NothingMatched(
                f"no file below {path} can be judged",
                expected=read.KINDS,
                found=f"`{path}`",
            )
        yield from ((file, path) for file in below)


def _is_subject(path: str) -> bool:
    """True for a subject of `validate`: its readers are loaded for what begins with a word as schemes are."""
    scheme = path.partition(":")[0]
    if not (scheme.isalpha() and scheme.islower()):
        return False
    from toolmatrix.inspection import subjects

    return subjects.is_named(path, subjects.SCHEMES)


def _read_file(path: str, folder: str) -> tuple[str, ProjectManifest | ManifestError]:
    """A file with its name; of a folder, the error of one that cannot be read."""
    try:
        if _is_subject(path):
            from toolmatrix.inspection import subjects

            return path, manifest_of(subjects.observe(path, directory=caller().path("")))
        if path == "-":
            text = files.decode(caller().piped("a file", files.LARGEST + 1), read.STDIN)
            return read.STDIN, read.manifest(text)
        return path, read.manifest(files.read_file(path, folder or files.root_of(path)))
    except ManifestError as error:
        # Go on with the other files of a folder: it may contain templates.
        if not folder:
            raise
        return path, error


def _uses(index: Index, manifests: Iterable[tuple[str, str]]) -> dict[str, Mapping[str, Traced]]:
    """By the files at the top of a folder, the names that its code uses and some releases of their packages lack."""
    uses: dict[str, Mapping[str, Traced]] = {}
    by_file = {}
    for path, folder in manifests:
        if folder and os.path.normpath(os.path.dirname(path)) == os.path.normpath(folder):
            if folder not in uses:
                uses[folder] = source_imports(folder, index.packages(), removed_names(index)).uses
            by_file[path] = uses[folder]
    return by_file


def _with_indexes(manifest: ProjectManifest | ManifestError) -> frozenset[str]:
    """The packages for which a file names an index."""
    environments = () if isinstance(manifest, ManifestError) else manifest.environments
    return frozenset(
        called.package_name(item.name)
        for environment in environments
        for item in environment.items
        if item.indexes
    )


SCHEMA = "toolmatrix.judged/1"
OUTCOMES = {"yes": 0, "no": 1, "unknown": 4, "unread": 2}
"""The outcome of a file, with the exit code of each."""
NO_EDIT = "no edit resolves every conflict"
# How many lines of a kind are printed; a document has all.
_MOST = 8


class PartEntry(TypedDict):
    """Something that a file asks for."""

    component: str
    selector: str
    text: str
    kind: str
    where: FilePlace


class NotReadEntry(TypedDict):
    """Something that was not read, and why."""

    text: str
    why: str
    where: FilePlace


class PairEntry(TypedDict):
    """What facts say of two parts."""

    between: Pair[str]
    says: Annotated[str, FINE, REFUSED, UNKNOWN]
    evidence: str | None
    facts: list[str]


class JudgedEnvironmentEntry(TypedDict):
    """What an environment of a file asks for."""

    name: str | None
    parts: list[PartEntry]
    unknown: list[NotReadEntry]
    pairs: list[PairEntry]


class AskedEntry(TypedDict):
    """What is asked for, and where."""

    text: str
    where: FilePlace


class RefusedEntry(findings.FindingHead):
    """What facts refuse."""

    environment: str | None
    asked: NonEmpty[AskedEntry]


class EditEntry(TypedDict):
    """The patch with which nothing is refused, and of a paste the commands that install what fits."""

    patch: str
    files: list[str]
    commands: list[str]


class JudgedCounts(TypedDict):
    """How many findings and pairs there are."""

    refused: Count
    warnings: Count
    pairs: Annotated[dict[str, Count], FINE, REFUSED, UNKNOWN]


class JudgedFileEntry(TypedDict):
    """What came of judging a file."""

    path: str
    kind: str | None
    outcome: Annotated[str, "yes", "no", "unknown", "unread"]
    error: ErrorEntry | None
    environments: list[JudgedEnvironmentEntry]
    findings: list[RefusedEntry]
    edit: EditEntry | None
    unread: list[NotReadEntry]
    summary: JudgedCounts


class MachineEntry(TypedDict):
    """A component of the machine that the files are judged for, as the command names it."""

    component: str
    selector: str
    text: str


class JudgedDocument(TypedDict):
    """What `toolmatrix judge --json` prints: the machine, and of each file what it asks for by environment (a stage, a
    service, an extra), what facts say of every two parts of it, what they refuse, the patch with which nothing is
    refused, what the matrix does not know and what was not read.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    outcome: Annotated[str, "yes", "no", "unknown", "unread"]
    machine: list[MachineEntry]
    files: list[JudgedFileEntry]


class ManifestReport:
    """The report on several files."""

    def __init__(
        self, index: Index, files: Sequence[JudgedFile], machine: TargetMachine = ANY_MACHINE
    ) -> None:
        self.index = index
        self.files = files
        self.machine = machine

    @property
    def outcome(self) -> str:
        """The outcome of all: no if one is, else yes if any is."""
        outcomes = {file.outcome for file in self.files}
        return next(
            (outcome for outcome in ("no", "yes", "unknown") if outcome in outcomes), "unread"
        )

    def document(self) -> JudgedDocument:
        """Everything as JSON values."""
        return {
            "schema": SCHEMA,
            "matrix": head(self.index),
            "outcome": self.outcome,
            "machine": [
                {"component": item.name, "selector": item.specifier, "text": item.text.text}
                for item in self.machine.items
            ],
            "files": [self._file(file) for file in self.files],
        }

    def _file(self, file: JudgedFile) -> JudgedFileEntry:
        environments = file.judged.environments if file.judged else ()
        return {
            "path": file.path,
            "kind": file.judged.manifest.kind if file.judged else None,
            "outcome": file.outcome,
            "error": file.error.to_json()["error"] if file.error else None,
            "environments": [self._environment(environment) for environment in environments],
            "findings": [self._finding(refusal) for refusal in file.refusals],
            "edit": {
                "patch": file.edit.patch,
                "files": [path for path, _, _ in file.edit.files],
                "commands": list(file.edit.commands),
            }
            if file.edit
            else None,
            "unread": [_not_read(entry) for entry in file.unread],
            "summary": {
                "refused": len(file.hard),
                "warnings": len(file.refusals) - len(file.hard),
                "pairs": {says: file.count(says) for says in (FINE, REFUSED, UNKNOWN)},
            },
        }

    def _environment(self, environment: JudgedEnvironment) -> JudgedEnvironmentEntry:
        return {
            "name": environment.name or None,
            "parts": [_part_entry(component) for component in environment.parts],
            "unknown": [_not_read(entry) for entry in environment.unknown],
            "pairs": [
                {
                    "between": [pair.first.text, pair.second.text],
                    "says": pair.says,
                    "evidence": pair.evidence or None,
                    "facts": list(pair.facts),
                }
                for pair in environment.pairs
            ],
        }

    def _finding(self, refusal: ManifestRefusal) -> RefusedEntry:
        finding = refusal.finding
        return {
            **self._entry(finding),
            "environment": finding.environment or None,
            "asked": [
                {"text": text, "where": position.to_json()}
                for text, position in zip(finding.asked, finding.positions, strict=True)
            ],
        }

    def _entry(self, finding: ManifestFinding) -> findings.FindingHead:
        entry = findings.entry(self.index, finding)
        entry["because"] = entry["because"] or [finding.reason]
        return entry

    def text(self, screen: Terminal) -> str:
        """The report as text; the last line is the summary."""
        notes = claims.Notes(self.index)
        blocks = [
            block
            for file, refusals in self._reported()
            for block in self._file_lines(file, refusals, notes, screen)
        ]
        closing = [self._closing(file, screen) for file in self.files]
        if len(self.files) > 1:
            closing.append(self.closing())
        return terminal.blocks([*blocks, notes.lines(screen.width), closing])

    def _reported(self) -> Iterator[tuple[JudgedFile, list[ManifestRefusal]]]:
        """Each file with what is refused of it and was not of one before it, which may have the same lines in it."""
        reported: set[tuple[object, ...]] = set()
        for file in self.files:
            by_key = {_key(refusal.finding): refusal for refusal in file.refusals}
            yield file, [refusal for key, refusal in by_key.items() if key not in reported]
            reported |= by_key.keys()

    def _file_lines(
        self,
        file: JudgedFile,
        refusals: Sequence[ManifestRefusal],
        notes: claims.Notes,
        screen: Terminal,
    ) -> Iterator[list[str]]:
        pairs = [*file.judged.pairs()] if file.judged else []
        if file.error is not None:
            yield [f"{printable(str(file.error.where or file.path))}: {file.error.what}"]
        for refusal in refusals:
            yield self._refusal(refusal, notes, screen)
        if any(refusal.hard for refusal in refusals):
            yield self._edit(file)
        joined = [pair for pair in pairs if pair.says == FINE]
        yield self._pairs(screen.style("facts join", "yes"), joined, notes)
        if file.outcome == "unknown":
            silent = [pair for pair in pairs if pair.says == UNKNOWN]
            # These alone make the answer unknown.
            silent = [pair for pair in silent if pair.decides] or silent
            yield self._pairs(
                screen.style("no fact says whether these join", "unknown"), silent, notes
            )
        yield _not_read_lines("the matrix does not know", file.unknown, screen)
        yield _not_read_lines("not read", file.unread, screen)

    def _refusal(
        self, refusal: ManifestRefusal, notes: claims.Notes, screen: Terminal
    ) -> list[str]:
        finding = refusal.finding
        entry = self._entry(finding)
        mark = screen.style(
            f"{finding.severity}[{finding.code}]", findings.COLOURS[finding.severity]
        )
        lines = screen.wrap(f"{mark}: {printable(entry['text'])}")
        positions = [printable(str(position)) for position in finding.positions]
        width = max(map(len, positions))
        for position, text in zip(positions, finding.asked, strict=True):
            lines.append(f"  --> {position:<{width}}  {printable(text)}")
        reasons = [
            f"{reason}{f' ({ground.evidence})' if ground.evidence else ''} {notes.cite(ground.facts)}"
            for ground, reason in zip(finding.grounds, entry["because"], strict=False)
        ]
        own = f" {notes.cite(finding.facts)}" if finding.facts and not finding.grounds else ""
        for reason in reasons or [f"{reason}{own}" for reason in entry["because"]]:
            lines += screen.wrap(reason, "    | ", "    |   ")
        if entry["help"]:
            lines += screen.wrap(f"help: {entry['help']}", "", " " * 6)
        return lines

    def _edit(self, file: JudgedFile) -> list[str]:
        if file.edit is None:
            return [NO_EDIT]
        if file.edit.commands:
            commands = [f"  {printable(command)}" for command in file.edit.commands]
            return ["these commands resolve every conflict:", "", *commands]
        lines = [printable(line) for line in file.edit.patch.rstrip("\n").split("\n")]
        return ["the smallest edit found that resolves every conflict:", "", *lines]

    def _pairs(self, heading: str, pairs: Sequence[JudgedPair], notes: claims.Notes) -> list[str]:
        if not pairs:
            return []
        more = max(0, len(pairs) - _MOST)
        rows = [_row(self.index, pair, notes) for pair in pairs[:_MOST]]
        lines = [f"  {line}".rstrip() for line in terminal.columns(rows)]
        tail = [f"  and {more} more (--json)"] if more else []
        return [heading, *lines, *tail]

    def _closing(self, file: JudgedFile, screen: Terminal) -> str:
        outcome = file.outcome
        path = printable(file.path)
        if outcome == "unread":
            return f"{path}: not read"
        counts = [
            f"{file.count(REFUSED)} refused",
            f"{file.count(FINE)} fine",
            f"{file.count(UNKNOWN)} not covered by facts",
        ]
        count = sum(file.count(says) for says in (FINE, REFUSED, UNKNOWN))
        pairs = (
            f"of {terminal.plural(count, 'pair')} {terminal.listing(counts)}"
            if count
            else "nothing to judge"
        )
        verdict = {
            "yes": "nothing forbids it",
            "no": "facts forbid it",
            "unknown": "cannot say",
        }[outcome]
        machine = terminal.listing([printable(item.text.text) for item in self.machine.items])
        on = f" on {machine}" if machine else ""
        return f"{path}{on}: {screen.style(verdict, outcome)}; {pairs}"

    def closing(self) -> str:
        """How many files there are, by outcome."""
        outcomes = [file.outcome for file in self.files]
        labels = {
            "yes": "without a refusal",
            "no": "refused",
            "unknown": "unknown",
            "unread": "not read",
        }
        counts = [
            f"{outcomes.count(outcome)} {text}"
            for outcome, text in labels.items()
            if outcome in outcomes
        ]
        return f"{terminal.plural(len(outcomes), 'file')}: {terminal.listing(counts)}"

    def annotations(self) -> list[Annotation]:
        """The findings, each with its reasons on one line."""
        annotations = []
        for _, refusals in self._reported():
            for refusal in refusals:
                entry = self._entry(refusal.finding)
                because = " and ".join(entry["because"])
                others = terminal.listing(
                    [str(position) for position in refusal.finding.positions[1:]]
                )
                beside = f" ({others})" if others else ""
                annotations.append(
                    Annotation(
                        severity=refusal.finding.severity,
                        code=refusal.finding.code,
                        text=printable(f"{entry['text']}{beside}, because {because}"),
                        where=refusal.finding.where,
                        help=entry["help"],
                        properties={"facts": entry["facts"]},
                    )
                )
        return annotations

    def github(self) -> str:
        """Workflow commands, and what was judged."""
        return commands(self.annotations(), self.closing())

    def patch(self) -> str:
        """The edits of all files as one patch; of several edits of a file the first."""
        edits: dict[str, str] = {}
        for file in self.files:
            paths = [os.path.normpath(path) for path, _, _ in file.edit.files] if file.edit else []
            if file.edit and not edits.keys() & paths:
                edits |= dict.fromkeys(paths, "") | {paths[0]: file.edit.patch}
        return "".join(edits.values())


def _key(finding: ManifestFinding) -> tuple[object, ...]:
    """What is refused, and where: `./a` is `a`."""
    positions = (
        (os.path.normpath(position.path), position.line, position.column)
        for position in finding.positions
    )
    return (finding.code, finding.component, finding.asked, *positions)


def _row(index: Index, pair: JudgedPair, notes: claims.Notes) -> tuple[str, ...]:
    marks = notes.mark(record.source for record in index.known(pair.facts))
    sides = (printable(short(side.text)) for side in (pair.first, pair.second))
    return (*sides, pair.evidence, marks)


def _not_read_lines(title: str, entries: Sequence[NotRead], screen: Terminal) -> list[str]:
    if not entries:
        return []
    rows = [
        (printable(str(entry.where)), printable(f"{entry.text.text}: {entry.why}"))
        for entry in entries[:_MOST]
    ]
    width = max(len(position) for position, _ in rows)
    lines = [title]
    for position, text in rows:
        lines += screen.wrap(text, f"  {position:<{width}}  ", " " * (width + 4))
    more = len(entries) - len(rows)
    return [*lines, f"  and {more} more (--json)"] if more else lines


def _part_entry(requirement: RequestedPart) -> PartEntry:
    return {
        "component": requirement.component,
        "selector": requirement.asks[0].selector,
        "text": requirement.text,
        "kind": requirement.item.kind,
        "where": requirement.item.where.to_json(),
    }


def _not_read(entry: NotRead) -> NotReadEntry:
    return {"text": entry.text.text, "why": entry.why, "where": entry.where.to_json()}
