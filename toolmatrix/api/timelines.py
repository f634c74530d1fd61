"""Which releases of other components the releases of one go with along time, and until when those are supported."""

from __future__ import annotations

import toolmatrix
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
from toolmatrix.errors import NothingMatched, ToolmatrixError
from toolmatrix.factbase.evidence import rank, weaker
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.api.explorer import DatedRelease
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.report.grid import CellEntry, GridDocument, ReleasesDocument

    Pairs = dict[str, dict[str, CellEntry]]
    """By release of the other component, and by release of the one: the cells of a grid that say `yes`."""

SCHEMA = "toolmatrix.timeline/1"


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

    schema: Annotated[str, SCHEMA]
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
            "schema": SCHEMA,
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
        spans: list[SpanEntry] = []
        days = dict(zip(*self.index.component(other)[:2], strict=True)) if pairs else {}
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
