"""What the page of `toolmatrix page` asks, each question answered by one document; in a browser as on this machine."""

from __future__ import annotations

import shlex

import toolmatrix
from toolmatrix.api import requests
from toolmatrix.api.answers import Allowed, NoAnswer, Resolved
from toolmatrix.documents import (
    Annotated,
    Day,
    Evidence,
    HasFrom,
    Literal,
    MatrixHead,
    Month,
    NonEmpty,
    TypedDict,
)
from toolmatrix.errors import NothingMatched, ToolmatrixError, UsageError
from toolmatrix.factbase.evidence import rank, weaker
from toolmatrix.report.claims import Notes
from toolmatrix.request.fields import DECLARED, BadValue, Fields, flag, known, parse_arguments
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.api import Matrix
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.report.answer import ResolutionDocument
    from toolmatrix.report.claims import NoteEntry
    from toolmatrix.report.grid import CellEntry, GridDocument, ReleasesDocument
    from toolmatrix.report.refusal import ConflictDocument, DerivedReason
    from toolmatrix.report.tree import TreeEntry

    Document = dict[str, Any]
    Pairs = dict[str, dict[str, CellEntry]]
    """By release of the other component, and by release of the one: the cells of a grid that say `yes`."""


SCHEMA = "toolmatrix.explorer/1"
COMMANDS = {"resolve": toolmatrix.resolve, "why-not": toolmatrix.why_not}
FUNCTIONS = ("facts", "lock", "matrix", "render", "resolve", "why_not")
"""Functions of `toolmatrix` that are asked."""
# Packages have the names of the functions `lock` and `render`, which type checkers see alone.
_FRONT: Any = toolmatrix
_VERDICTS = {0: "yes", 1: "no", 4: "unknown"}


class ExcludedTarget(TypedDict):
    """A target that a recipe builds no image for."""

    target: str
    reason: str


class ExplorerFilesDocument(TypedDict):
    """The Dockerfiles that the explorer shows of an answer: what `toolmatrix render --format dockerfile` writes but
    for the lock.
    """

    schema: Literal["toolmatrix.explorer-files/1"]
    command: str
    files: dict[str, str]
    excluded: list[ExcludedTarget]
    unpinned: list[str]


class OfferedRepair(TypedDict):
    """A way out of a refusal, with its words."""

    text: str
    evidence: Evidence | Literal[""]
    command: str
    words: list[str]


class LaidOut(TypedDict):
    """An answer as its command gives it, and laid out."""

    document: ResolutionDocument | ConflictDocument
    headline: str
    trees: list[TreeEntry]
    reasons: list[DerivedReason]
    remarks: list[str]
    repairs: list[OfferedRepair]


class ExplorerDocument(LaidOut):
    """What the explorer shows of an answer: the document of `toolmatrix resolve` or `why-not`, and the same laid out
    with its sources.
    """

    schema: Annotated[str, SCHEMA]
    command: str
    exit_code: Annotated[int, 0, 1, 4]
    verdict: Annotated[str, "yes", "no", "unknown"]
    text: str
    notes: list[NoteEntry]


class WordsComponent(TypedDict):
    """A component that a question can name."""

    name: str
    title: str
    framework: bool
    aliases: list[str]
    releases: list[str]
    builds_of: str


class WordsDevice(TypedDict):
    """A device by the names of its products."""

    device: str
    products: list[str]


class ExplorerWordsDocument(TypedDict):
    """What a question to the explorer can be made of: components with their releases, devices by their names, words of
    options.
    """

    schema: Literal["toolmatrix.explorer-words/1"]
    matrix: MatrixHead
    components: list[WordsComponent]
    devices: list[WordsDevice]
    options: dict[str, list[str]]


class DatedRelease(TypedDict):
    """A release and its day."""

    release: str
    date: Day


class NewReleases(TypedDict):
    """The new releases of a component."""

    component: str
    title: str
    releases: list[DatedRelease]


class ReadSource(TypedDict):
    """A source that was read since."""

    name: str
    title: str
    at: str
    read: Day


class ChangesDocument(TypedDict):
    """What the explorer shows as new since a day: releases by component, and sources that were read after it."""

    schema: Literal["toolmatrix.changes/1"]
    matrix: MatrixHead
    since: str
    releases: list[NewReleases]
    sources: list[ReadSource]


class Explorer:
    """A matrix and what can be asked of it; `words` of a question are those of a command line."""

    def __init__(self, matrix: Matrix = None) -> None:
        self.matrix = requests.open_matrix(matrix)
        self.index = self.matrix.index

    def ask(self, kind: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document that answers a question of a kind; what cannot be answered is `toolmatrix.error/1`."""
        answers: dict[str, Callable[..., Mapping[str, Any]]] = {
            "answer": self.answer,
            "files": self.files,
            "grid": self.grid,
            "facts": self.facts,
            "timeline": self.timeline,
            "changes": self.changes,
            "coverage": self.coverage,
        }
        try:
            return answers[kind](**fields)
        except BadValue as bad:
            # Words are those of a command line, which has flags for the fields.
            return bad.about(UsageError, f"`{flag(bad.name)}`").to_json()
        except ToolmatrixError as error:
            return error.to_json()

    def answer(self, command: str, words: Sequence[str]) -> ExplorerDocument:
        """An answer as its command gives it (`document`), and laid out: trees or reasons, sources and ways out."""
        fields = parse_arguments(words)
        request = Fields(**fields)
        wanted = _wanted(fields)
        reply = COMMANDS[command](*wanted, **fields, matrix=self.matrix)
        notes = Notes(self.index)
        return {
            "schema": SCHEMA,
            "command": shlex.join(("toolmatrix", command, *request.arguments())),
            "exit_code": reply.exit_code,
            "verdict": _VERDICTS[reply.exit_code],
            "text": str(reply),
            **_lay_out(reply, notes),
            # Numbers are given while all else is laid out.
            "notes": notes.document(),
        }

    def files(self, words: Sequence[str]) -> ExplorerFilesDocument:
        """The Dockerfiles of the answer to a request, by their names, and what nothing pins in them."""
        from toolmatrix.api import files
        from toolmatrix.request.recipes import of_request

        fields = parse_arguments(words)
        wanted = _wanted(fields)
        # What a recipe asks for is part of the question, so that its answer may be another.
        recipe = fields.pop("recipe", "")
        if not recipe:
            options: Any = {**fields, "matrix": self.matrix}
            default = of_request(requests.read_request(wanted, options)[1], self.index)
            recipe = default.recipe
            if default.from_:
                fields["from_"], words = default.from_, (*words, f"--from={default.from_}")
        answer = _FRONT.lock(*wanted, **fields, recipe=recipe, matrix=self.matrix)
        if isinstance(answer, NoAnswer):
            raise NothingMatched(
                f"no answer that the recipe `{recipe}` can build an image from",
                found=" ".join(words),
                help=f"`{self._command('why-not', words, recipe)}` shows why",
            )
        rendered = _FRONT.render(answer, recipe=recipe, format="dockerfile", matrix=self.matrix)
        return {
            "schema": "toolmatrix.explorer-files/1",
            "command": self._command("render", words, recipe) + " --format dockerfile --output out",
            "files": {name: text for name, text in sorted(rendered.items()) if name != files.LOCK},
            "excluded": [{"target": name, "reason": why} for name, why in rendered.excluded],
            "unpinned": list(rendered.unpinned),
        }

    def _command(self, command: str, words: Sequence[str], recipe: str) -> str:
        request = Fields(**parse_arguments(words)).replace(recipe=recipe)
        return shlex.join(("toolmatrix", command, *request.arguments()))

    def grid(
        self, rows: str, cols: str, words: Sequence[str] = (), where: Sequence[str] = ()
    ) -> Document:
        """The document of `toolmatrix matrix --rows ROWS --cols COLS --json`."""
        fields = parse_arguments(words)
        fields.pop("wanted")
        table = toolmatrix.matrix(rows, cols, where=where, **fields, matrix=self.matrix)
        return dict(table.to_json())

    def facts(self, ids: Sequence[str]) -> Document:
        """Facts in full: what `toolmatrix facts ID... --json` prints, each with the address of its source."""
        from toolmatrix.report.claims import address

        document = dict(toolmatrix.facts(*ids, matrix=self.matrix).to_json())
        for entry in document["facts"]:
            entry["source"]["address"] = address(entry["source"]["at"])
        return document

    def timeline(self, component: str, beside: Sequence[str]) -> TimelineDocument:
        """Which releases of other components the releases of one go with, by the days of these: a lane for each."""
        return Timeline(component, self.matrix).document(beside)

    def changes(self, since: str) -> ChangesDocument:
        """What is new since a day: releases by component, and sources that were read after it."""
        releases: list[NewReleases] = []
        for name, head in self.index.header["components"].items():
            component = self.index.component(name)
            new: list[DatedRelease] = [
                {"release": version, "date": day}
                for version, day in zip(component.versions, component.dates, strict=True)
                if day > since
            ]
            if new and not head["hidden"] and not head["variant_of"]:
                releases.append({"component": name, "title": head["title"], "releases": new[::-1]})
        sources: list[ReadSource] = [
            {"name": name, "title": source.title, "at": source.at, "read": source.read}
            for name, source in self.index.sources().items()
            if source.read > since
        ]
        return {
            "schema": "toolmatrix.changes/1",
            "matrix": {"digest": self.matrix.digest, "date": self.matrix.date},
            "since": since,
            "releases": sorted(releases, key=lambda entry: -len(entry["releases"])),
            "sources": sources,
        }

    def coverage(self) -> Document:
        """The matrix in numbers: what `toolmatrix facts --json` prints, with the titles of components."""
        heads = self.index.header["components"]
        document = toolmatrix.facts(matrix=self.matrix).to_json()
        return {**document, "titles": {name: head["title"] for name, head in heads.items()}}

    def words(self) -> ExplorerWordsDocument:
        """What a question can be made of: components with their releases, devices by their names, words of options."""
        header = self.index.header
        components: list[WordsComponent] = [
            {
                "name": name,
                "title": head["title"],
                "framework": head["framework"],
                "aliases": [alias for alias, of in header["aliases"].items() if of == name],
                # Users do not ask for builds by their names in the index.
                "releases": []
                if head["variant_of"]
                else list(reversed(self.index.component(name).versions)),
                "builds_of": head["variant_of"],
            }
            for name, head in header["components"].items()
            if not head["hidden"] and not head["given"]
        ]
        products: dict[str, list[str]] = {}
        for product in self.index.products():
            products.setdefault(product.device, []).append(product.name)
        return {
            "schema": "toolmatrix.explorer-words/1",
            "matrix": {"digest": self.matrix.digest, "date": self.matrix.date},
            "components": components,
            "devices": [
                {"device": name, "products": products.get(name, [])}
                for name in self.index.component("device").versions
            ],
            "options": {
                name.rstrip("_"): list(known(self.index, name))
                for name in (*DECLARED, "prefer", "min_evidence")
            },
        }


def _wanted(fields: Document) -> tuple[str, ...]:
    wanted: tuple[str, ...] = fields.pop("wanted")
    if not wanted:
        raise UsageError("no request", expected="a component, such as `tensorflow` or `cuda==12.4`")
    return wanted


def _lay_out(answer: Resolved | NoAnswer, notes: Notes) -> LaidOut:
    from toolmatrix.report import refusal, remarks, tree

    if isinstance(answer, NoAnswer):
        refused = answer.to_json()
        several = len(refused["request"]["targets"]) > 1
        repairs: list[OfferedRepair] = [
            {
                "text": repair["text"],
                "evidence": repair["evidence"],
                "command": repair["command"],
                # Behind the names of the program and of its command.
                "words": shlex.split(repair["command"])[2:],
            }
            for repair in refused["repairs"]
        ]
        return {
            "document": refused,
            "headline": refusal.counted(refused),
            "trees": [],
            "reasons": refusal.reasons(refused["cores"], notes, several=several),
            "repairs": repairs,
            "remarks": [] if repairs else [refusal.NO_REPAIR],
        }
    document = answer.to_json()
    several = len(document["request"]["targets"]) > 1
    layout: LaidOut = {
        "document": document,
        "headline": "",
        "trees": tree.document(answer.context.index, answer.resolution, notes),
        "reasons": [],
        "remarks": [*tree.footer(answer.resolution), *remarks.lines(document)],
        "repairs": [],
    }
    if isinstance(answer, Allowed):
        layout["headline"] = refusal.allowed_headline(document)
        layout["reasons"] = refusal.reasons(document["untested"], notes, several=several)
    return layout


TIMELINE_SCHEMA = "toolmatrix.timeline/1"


class SpanEnd(TypedDict):
    """Until when releases are supported."""

    fact: str
    until: Day | Month | Literal[""]
    ended_by: Day | Month | Literal[""]
    """A day by which support had ended, where its end is unknown."""
    branch: str
    evidence: Evidence | Literal[""]


class RunEntry(HasFrom):
    """Releases one after the other that go with those of a span."""

    first: str
    last: str
    to: Day
    evidence: Evidence | Literal[""]
    facts: list[str]


class SpanEntry(TypedDict):
    """Releases of a lane that say the same."""

    releases: NonEmpty[str]
    date: Day | Literal[""]
    """The day on which the first of the releases came out, empty where it is unknown."""
    end: SpanEnd | None
    """Until when the releases are supported, a day or a month; null where it is unknown."""
    runs: list[RunEntry]


class LaneEntry(HasFrom):
    """The releases of another component, and what goes with them."""

    component: str
    via: str
    """The toolkit by which the two are joined, empty where facts speak of both."""
    spans: list[SpanEntry]


class TimelineDocument(TypedDict):
    """What the explorer shows along time: which releases of other components the releases of one go with, by the days
    of these, and until when those are supported.
    """

    schema: Annotated[str, TIMELINE_SCHEMA]
    matrix: MatrixHead
    component: str
    releases: list[DatedRelease]
    lanes: list[LaneEntry]


class Timeline:
    """The releases of one component by their days."""

    def __init__(self, component: str, matrix: OpenMatrix) -> None:
        """Raises NothingMatched for an unknown component."""
        self.matrix = matrix
        self.index = matrix.index
        self.component = component
        # Without `cells` it is a table.
        table: Any = toolmatrix.matrix(component, matrix=matrix)
        releases: ReleasesDocument = table.releases()
        self.head = releases["matrix"]
        self.dates = {
            entry["release"]: entry["date"] for entry in releases["releases"] if entry["date"]
        }

    def document(self, beside: Sequence[str]) -> TimelineDocument:
        """The document, with a lane for each of the others that any fact joins to it. Raises NothingMatched."""
        # Unknown names join nothing.
        names = filter(None, map(Names(self.index).called, beside))
        lanes = [lane for other in names for lane in self._lane(other)]
        if not lanes:
            reason = f"no fact joins {self.component} and {', '.join(beside)}"
            raise NothingMatched(reason, found=self.component)
        return {
            "schema": TIMELINE_SCHEMA,
            "matrix": self.head,
            "component": self.component,
            "releases": [{"release": name, "date": day} for name, day in self.dates.items()],
            "lanes": lanes,
        }

    def _lane(self, other: str) -> Iterator[LaneEntry]:
        for method, via, pairs in self._install_methods(other):
            spans = self._spans(other, pairs)
            if spans:
                yield {"component": other, "from": method, "via": via, "spans": spans}
                return

    def _install_methods(self, other: str) -> Iterator[tuple[str, str, Pairs]]:
        """The ways in which the two may be joined: by facts about both, or by those about a toolkit and its driver."""
        heads, methods = self.index.header["components"], self.index.component("from").versions
        # As a wheel a release goes with what it was built for, from source with what it can be built with.
        for method in reversed(methods):
            yield method, "", self._pairs(self.component, other, method)
        # A lower bound of what is taken is one of what takes it: any driver from some release on.
        toolkits = [
            name
            for name, head in heads.items()
            if head["accelerators"] and not head["framework"] and heads[other]["floor"]
            if any(self.index.component(name).about(other, -1))
        ]
        # An installed release brings its toolkit; from source the toolkit is a choice.
        for method in methods:
            for name in toolkits:
                needed = self._pairs(name, other, method)
                yield method, name, _join(self._pairs(self.component, name, method), needed)

    def _pairs(self, component: str, other: str, method: str) -> Pairs:
        pairs = self._cells(component, other, method)
        builds = f"{component}-variant"
        if pairs or builds not in self.index.header["components"]:
            return pairs
        # What is said of its builds is said of a release that has them.
        known = self._cells(builds, other, method)
        return _join(self._cells(component, builds, method), known) if known else {}

    def _cells(self, component: str, other: str, method: str) -> Pairs:
        try:
            table: Any = toolmatrix.matrix(component, other, from_=method, matrix=self.matrix)
            document: GridDocument = table.grid()
        except ToolmatrixError:
            return {}
        pairs: Pairs = {}
        for row in document["grid"]:
            for name, cell in row["cells"].items():
                column = pairs.setdefault(name, {})
                if cell["value"] == "yes":
                    column |= dict.fromkeys(row["releases"], cell)
        return pairs

    def _spans(self, other: str, pairs: Pairs) -> list[SpanEntry]:
        """Releases of the other, in its own order, that say the same one after the other and end together."""
        if not pairs:
            return []
        spans: list[SpanEntry] = []
        facts = self.index.component(other)
        days = dict(zip(facts.versions, facts.dates, strict=True))
        for name, cells in pairs.items():
            runs = _runs(cells, self.dates)
            if not runs:
                continue
            span: SpanEntry = {
                "releases": [name],
                "date": days[name],
                "end": self._end(other, name),
                "runs": runs,
            }
            if spans and _without_facts(spans[-1]) == _without_facts(span):
                spans[-1]["releases"].append(name)
                # Not known of all, the first day counts; none is before any.
                spans[-1]["date"] = spans[-1]["date"] or days[name]
            else:
                spans.append(span)
        return spans

    def _end(self, component: str, release: str) -> SpanEnd | None:
        """Until when a release is supported, None where it is unknown."""
        bit = self.index.scale(component).bit(release)
        for support in self.index.support(component):
            if support.mask & bit:
                return {
                    "fact": support.fact,
                    "until": support.until,
                    "ended_by": support.ended_by,
                    "branch": support.branch,
                    "evidence": support.evidence,
                }
        return None


def _join(first: Pairs, second: Pairs) -> Pairs:
    """Pairs by way of a third component: known as well as the weaker of two, by the way that is known best."""
    pairs: Pairs = {}
    for name, middles in second.items():
        best: dict[str, CellEntry] = {}
        for middle, cell in middles.items():
            for release, other in first.get(middle, {}).items():
                known = weaker(cell["evidence"], other["evidence"])
                before = best.get(release)
                if before and rank(known) <= rank(before["evidence"]):
                    continue
                facts = sorted({*cell["facts"], *other["facts"]})
                best[release] = {"value": "yes", "evidence": known, "facts": facts}
        pairs[name] = best
    return pairs


def _without_facts(span: SpanEntry) -> tuple[Any, ...]:
    # Patch releases of one series mostly say the same, by facts of their own.
    return span["end"], [{**run, "facts": None} for run in span["runs"]]


def _runs(cells: Mapping[str, CellEntry], dates: Mapping[str, str]) -> list[RunEntry]:
    """Runs of releases, from the oldest on, that are among the cells, by their first and last days."""
    runs: list[RunEntry] = []
    last = ""
    for release, day in dates.items():
        cell = cells.get(release)
        if cell and last == cell["evidence"]:
            # An older series may still have releases when a newer one has begun.
            run = runs[-1]
            run["last"] = release
            run["from"], run["to"] = min(run["from"], day), max(run["to"], day)
        elif cell:
            runs.append(
                {
                    "first": release,
                    "last": release,
                    "from": day,
                    "to": day,
                    "evidence": cell["evidence"],
                    "facts": cell["facts"],
                }
            )
        last = cell["evidence"] if cell else ""
    return runs
