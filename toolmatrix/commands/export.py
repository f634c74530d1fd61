"""`toolmatrix export`: facts for other tools to import, by the contract `toolmatrix.export/1`, and one table in CSV.

`releases`, `claims` and `data` are the facts as written; `hard`, `soft` and `disputes` are what the claims amount to
once rules of inheritance have widened them and the better evidence has decided: all that an answer is solved from.
docs/data.md describes each field. Every list has an order of its own, so that equal facts make equal bytes.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from functools import cached_property

from toolmatrix.api import PLAIN, Outcome, Report
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.documents import (
    Annotated,
    Any,
    Evidence,
    HasIs,
    MatrixHead,
    NonEmpty,
    TypedDict,
)
from toolmatrix.factbase.records import ClaimRecord, ReleaseRecord
from toolmatrix.factbase.versions import ABSENT
from toolmatrix.report.answer import head
from toolmatrix.report.fact_pages import Pages
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolmatrix.api import Path
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import (
        Binding,
        ChannelRecord,
        ComponentHead,
        Dispute,
        FactRecord,
        RowGroup,
        RuleHead,
        SourceRecord,
        TargetHead,
    )
    from toolmatrix.report.terminal import Terminal

    class ExportedComponent(ComponentHead):
        """What a component is, with its names and releases."""

        aliases: list[str]
        packages: list[str]
        releases: list[str]


SCHEMA = "toolmatrix.export/1"
COLUMNS = (
    *("id", "kind", "strength", "evidence", "subject", "subject_is", "subject_releases", "when"),
    *("component", "is", "releases", "any_of", "says", "decides", "disputed_by", "rules", "date"),
    *("attributes", "note", "table", "where", "source", "title", "at", "read", "matrix"),
)
"""The columns of the CSV: others may follow them one day, these stay."""
_UNSAID: SelectedEntry = {"component": "", "is": "", "releases": []}
# Letters that are written at a time.
_CHUNK = 1 << 16


class ReadAt(TypedDict):
    """How well a fact is known, and where it was read."""

    evidence: Evidence
    source: str
    where: str


class ExportedRelease(ReadAt):
    """A release as it was read."""

    id: str
    row: str
    component: str
    version: str
    date: str | None
    yanked: bool
    attributes: dict[str, str]
    text: str


class SelectedEntry(HasIs):
    """A component with a selector, and the releases that it admits."""

    component: str
    releases: list[str] | None


class ExportedClaim(ReadAt):
    """A claim as it was read."""

    id: str
    row: str
    table: str
    kind: Annotated[str, "requires", "limits", "fails", "offers", "needs", "tested"]
    strength: Annotated[str, "hard", "soft"]
    subject: SelectedEntry
    when: list[SelectedEntry]
    says: SelectedEntry | None
    any_of: list[str]
    beside: bool
    text: str
    note: str
    rules: list[str]
    decides: bool
    disputed_by: list[str]
    disputes: list[str]
    exact: bool


class DatumEntry(ReadAt):
    """A row of data."""

    id: str
    table: str
    about: str
    subject: str
    cells: dict[str, str]
    note: str


class CiteEntry(TypedDict):
    """A fact, for which releases it is cited, and by which rules."""

    fact: str
    releases: list[str]
    rules: list[str]


class HardEntry(TypedDict):
    """What forbids, once rules have widened it."""

    kind: Annotated[str, "requires", "limits", "fails", "needs"]
    subject: str
    releases: list[str]
    when: dict[str, list[str]]
    component: str | None
    allowed: list[str] | None
    any_of: list[str]
    evidence: Evidence
    cites: NonEmpty[CiteEntry]


class TogetherEntry(TypedDict):
    """Releases that were tested with others."""

    component: str
    releases: list[str]
    evidence: Evidence


class SoftEntry(TypedDict):
    """What was tested together."""

    when: dict[str, list[str]]
    together: NonEmpty[TogetherEntry]
    evidence: Evidence
    carried: bool
    cites: NonEmpty[CiteEntry]


class ExportedDispute(TypedDict):
    """A claim that was outweighed."""

    subject: str
    releases: list[str]
    when: dict[str, list[str]]
    component: str
    claimed: list[str]
    kind: Annotated[str, "requires", "limits", "fails", "offers", "needs", "tested"]
    evidence: Evidence
    rival: str
    deciding: str


class ExportDocument(TypedDict):
    """What `toolmatrix export` writes: the facts of a matrix, or those about some components, for other tools;
    docs/data.md describes each field.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    names: list[str]
    components: dict[str, ExportedComponent]
    sources: dict[str, Annotated[dict[str, Any], SourceRecord]]
    channels: dict[str, Annotated[dict[str, Any], ChannelRecord]]
    rules: dict[str, RuleHead]
    targets: dict[str, TargetHead]
    releases: list[ExportedRelease]
    claims: list[ExportedClaim]
    data: list[DatumEntry]
    hard: list[HardEntry]
    soft: list[SoftEntry]
    disputes: list[ExportedDispute]


class Extract:
    """The facts of a matrix, or those about some components and their variants."""

    def __init__(self, index: Index, names: Iterable[str] = ()) -> None:
        self.index = index
        self.names = tuple(sorted(set(names)))
        self.components = index.header["components"]
        self.family = {
            name
            for name, head in self.components.items()
            if not self.names or name in self.names or head["variant_of"] in self.names
        }
        self.pages = Pages(index)

    def document(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            name: list(section) if isinstance(section, Iterator) else section
            for name, section in self._sections()
        }

    def json(self) -> Iterator[str]:
        """The document as text, a record a line."""
        return _gathered(self._json())

    def csv(self) -> Iterator[str]:
        """Releases, claims and data as one table, a fact a line."""
        return _gathered(self._csv())

    def _sections(self) -> Iterator[tuple[str, Any]]:
        # In the order of their names, as in every document; what may be long is made while it is read.
        header = self.index.header
        yield "channels", self._channels
        yield "claims", map(self._claim, self._claims)
        yield "components", {name: self._component(name) for name in self._mentioned}
        yield "data", map(self._data, self._rows)
        yield "disputes", (self._dispute(*dispute) for dispute in self._disputes())
        yield "hard", (self._binding(*binding) for binding in self._bindings())
        yield "matrix", head(self.index)
        yield "names", list(self.names)
        yield "releases", map(self._release, self._releases())
        yield "rules", {name: dict(rule) for name, rule in header["rules"].items()}
        yield "schema", SCHEMA
        yield "soft", (self._tested(*row) for row in self._tested_rows())
        yield "sources", {name: self.pages.sources[name]._asdict() for name in self._sources}
        yield "targets", {name: dict(target) for name, target in header["targets"].items()}

    def _json(self) -> Iterator[str]:
        # The module writes a document as one line, or each value on its own. Tools that compare texts, and version
        # control, want a fact a line.
        encode = json.JSONEncoder(sort_keys=True).encode
        opening = "{\n"
        for name, section in self._sections():
            yield f"{opening}{encode(name)}: "
            opening = ",\n"
            if isinstance(section, dict):
                lines = (f"{encode(key)}: {encode(section[key])}" for key in sorted(section))
                yield from _enclosed("{", lines, "}")
            elif isinstance(section, Iterator):
                yield from _enclosed("[", map(encode, section), "]")
            else:
                yield encode(section)
        yield "\n}\n"

    def _csv(self) -> Iterator[str]:
        # The module writes into a file and nowhere else: the stream is emptied after each row, or all of the
        # table would stay in memory. By default its lines would end in CR LF.
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        common = {"matrix": head(self.index)["digest"]}
        releases = (_of_release(self._release(release)) for release in self._releases())
        claims = (_of_claim(self._claim(claim)) for claim in self._claims)
        data = (_of_data(self._data(row)) for row in self._rows)
        for entries in (releases, claims, data):
            for row in entries:
                source = self.pages.sources[row["source"]]
                writer.writerow(row | source._asdict() | common)
                yield stream.getvalue()
                stream.seek(0)
                stream.truncate()

    # which

    def _bindings(self) -> Iterator[tuple[str, Binding]]:
        for name in sorted(self.components):
            for binding in self.index.component(name).bindings:
                # What others say of a component decides as much as what it says of others.
                if not self.family.isdisjoint((name, *binding.named)):
                    yield name, binding

    def _tested_rows(self) -> Iterator[tuple[RowGroup, int]]:
        for name in sorted(self.components):
            for group in self.index.component(name).row_groups:
                if not self.family.isdisjoint(group.components):
                    yield from ((group, row) for row in range(len(group.cites)))

    def _disputes(self) -> Iterator[tuple[str, Dispute]]:
        for name in sorted(self.components):
            for dispute in self.index.component(name).disputes:
                if not self.family.isdisjoint((name, dispute.component)):
                    yield name, dispute

    @cached_property
    def _decisive(self) -> set[int]:
        # Cited by bindings or tested rows. A row that was tested with other components is exported with them.
        numbers = [binding.cites for _, binding in self._bindings()]
        numbers += [group.cites[row] for group, row in self._tested_rows()]
        return {cite.record for number in numbers for cite in self.index.cites(number)}

    @cached_property
    def _claims(self) -> list[ClaimRecord]:
        cited = {self.index.claim(number).id for number in self._decisive}
        # Both sides of a dispute are exported: one side alone does not show that it is disputed.
        cited |= {
            self.index.claim(number).id
            for _, dispute in self._disputes()
            for number in (dispute.rival, dispute.deciding)
        }
        return [
            record
            for record in self.pages.facts()
            if isinstance(record, ClaimRecord)
            and (record.id in cited or not self.family.isdisjoint(_about(record)))
        ]

    @cached_property
    def _rows(self) -> list[FactRecord]:
        return [
            record
            for record in self.pages.facts()
            if not isinstance(record, (ClaimRecord, ReleaseRecord))
            and (not self.names or self.pages.subject(record) in self.family)
        ]

    def _releases(self) -> Iterator[ReleaseRecord]:
        for name in sorted(self.family):
            yield from map(self.index.release, self.index.component(name).releases)

    @cached_property
    def _mentioned(self) -> list[str]:
        names = self.family.union(*map(_about, self._claims))
        names.update(name for record in self._claims for name, _ in record.conditions)
        # Rules may add a condition to a claim.
        names.update(name for _, binding in self._bindings() for name in binding.conditions)
        names.update(name for group, _ in self._tested_rows() for name in group.conditions)
        return sorted(names)

    @cached_property
    def _channels(self) -> dict[str, dict[str, Any]]:
        if not self.names:
            named = set(self.index.channels())
        else:
            named = {release.attributes.get("channel", "") for release in self._releases()} - {""}
        return {
            name: {**channel._asdict(), "install": list(channel.install)}
            for name in sorted(named)
            for channel in [self.index.channel(name)]
        }

    @cached_property
    def _sources(self) -> list[str]:
        if not self.names:
            return sorted(self.pages.sources)
        facts: list[FactRecord] = [*self._claims, *self._rows, *self._releases()]
        channels = [str(channel["source"]) for channel in self._channels.values()]
        return sorted({*channels, *(fact.source for fact in facts)})

    # as JSON values

    def _component(self, name: str) -> ExportedComponent:
        header = self.index.header
        return {
            **self.components[name],
            "aliases": sorted(alias for alias, of in header["aliases"].items() if of == name),
            "packages": sorted(package for package, of in header["packages"].items() if of == name),
            "releases": list(self.index.component(name).versions),
        }

    def _release(self, record: ReleaseRecord) -> ExportedRelease:
        facts = self.index.component(record.component)
        bit = self.index.scale(record.component).bit(record.selector)
        return {
            "id": f"{record.component}=={record.selector}",
            "row": record.id,
            "component": record.component,
            "version": record.selector,
            "date": record.date or None,
            "yanked": bool(facts.yanked & bit),
            "attributes": dict(record.attributes),
            "text": self.pages.text_of(record),
            **_origin(record),
        }

    def _claim(self, record: ClaimRecord) -> ExportedClaim:
        number = self.pages.ids[record.id]
        standing = self.pages.standing(record.subject)
        when = [self._selected(*condition) for condition in record.conditions]
        # One of several: the component of the first alone would be wrong.
        any_of = list(record.alternatives)
        return {
            "id": record.id,
            "row": record.row,
            "table": self.index.row(self.pages.ids[record.row]).table,
            "kind": record.kind,
            "strength": "soft" if record.kind == "tested" else "hard",
            "subject": self._selected(record.subject, record.releases, exact=record.exact),
            "when": when,
            "says": None if any_of else self._selected(record.component, record.selector),
            "any_of": any_of,
            "exact": record.exact,
            "beside": record.beside,
            "text": self.pages.text_of(record),
            "note": record.note,
            "rules": sorted({*standing.rules.get(number, ()), record.rule} - {""}),
            "decides": number in self._decisive,
            "disputed_by": self._ids(standing.winners.get(number, ())),
            "disputes": self._ids(standing.losers.get(number, ())),
            **_origin(record),
        }

    def _data(self, record: FactRecord) -> DatumEntry:
        row = self.index.row(self.pages.ids[record.id])
        return {
            "id": row.id,
            "table": row.table,
            "about": row.about,
            "subject": self.pages.subject(row),
            "cells": dict(row.cells),
            "note": row.note,
            **_origin(row),
        }

    def _binding(self, subject: str, binding: Binding) -> HardEntry:
        any_of = list(binding.alternatives)
        return {
            "kind": binding.kind,
            "subject": subject,
            "releases": self._named(subject, binding.mask),
            "when": self._all_named(binding.conditions),
            "component": None if any_of else binding.component,
            "allowed": None if any_of else self._named(binding.component, binding.allowed),
            "any_of": any_of,
            "evidence": binding.evidence,
            "cites": self._cited(subject, binding.cites),
        }

    def _tested(self, group: RowGroup, row: int) -> SoftEntry:
        columns = zip(group.components, group.columns, group.evidences, strict=True)
        return {
            "when": self._all_named(group.conditions),
            "together": [
                {"component": name, "releases": self._named(name, masks[row]), "evidence": evidence}
                for name, masks, evidence in columns
            ],
            "evidence": group.evidence,
            "carried": group.carried,
            "cites": self._cited(group.components[0], group.cites[row]),
        }

    def _dispute(self, subject: str, dispute: Dispute) -> ExportedDispute:
        return {
            "subject": subject,
            "releases": self._named(subject, dispute.mask),
            "when": self._all_named(dispute.conditions),
            "component": dispute.component,
            "claimed": self._named(dispute.component, dispute.allowed),
            "kind": dispute.kind,
            "evidence": dispute.evidence,
            "rival": self.index.claim(dispute.rival).id,
            "deciding": self.index.claim(dispute.deciding).id,
        }

    def _selected(self, component: str, selector: str, *, exact: bool = False) -> SelectedEntry:
        """A component with a selector, and the releases that it admits: null for every one, known or to come."""
        scale = self.index.scale(component)
        # A row of a table of releases means 3.0 and not 3.0.1, though the selector 3.0 admits both.
        mask = scale.bit(selector) if exact else scale.select(selector)
        releases = None if selector == "*" else self._named(component, mask)
        return {"component": component, "is": selector, "releases": releases}

    def _named(self, component: str, mask: int) -> list[str]:
        absent = [ABSENT] if mask & 1 else []
        return absent + self.index.scale(component).named(mask)

    def _all_named(self, masks: Mapping[str, int]) -> dict[str, list[str]]:
        return {name: self._named(name, mask) for name, mask in masks.items()}

    def _cited(self, subject: str, number: int) -> list[CiteEntry]:
        return [
            {
                "fact": self.index.claim(cite.record).id,
                # A binding joins releases of which several facts say the same: ids alone do not show which.
                "releases": self._named(subject, cite.mask),
                "rules": list(cite.rules),
            }
            for cite in self.index.cites(number)
        ]

    def _ids(self, numbers: Iterable[int]) -> list[str]:
        return sorted({self.index.claim(number).id for number in numbers})


def _about(record: ClaimRecord) -> set[str]:
    return {record.subject, record.component, *record.alternatives}


def _origin(record: FactRecord) -> ReadAt:
    return {"evidence": record.evidence, "source": record.source, "where": record.where}


# as rows of CSV


def _of_release(entry: ExportedRelease) -> dict[str, str]:
    return {
        "id": entry["id"],
        "kind": "release",
        "subject": entry["component"],
        "subject_is": entry["version"],
        "subject_releases": entry["version"],
        "says": entry["text"],
        "date": entry["date"] or "",
        "attributes": _pairs(entry["attributes"].items()),
        **_read_at(entry),
    }


def _of_claim(entry: ExportedClaim) -> dict[str, str]:
    subject, says = entry["subject"], entry["says"] or _UNSAID
    return {
        "id": entry["id"],
        "kind": entry["kind"],
        "strength": entry["strength"],
        "note": entry["note"],
        "table": entry["table"],
        "subject": subject["component"],
        "subject_is": subject["is"],
        "subject_releases": _joined(subject["releases"]),
        "when": _pairs((condition["component"], condition["is"]) for condition in entry["when"]),
        "component": says["component"],
        "is": says["is"],
        "releases": _joined(says["releases"]),
        "any_of": _joined(entry["any_of"]),
        "says": entry["text"],
        "decides": "yes" if entry["decides"] else "no",
        "disputed_by": _joined(entry["disputed_by"]),
        "rules": _joined(entry["rules"]),
        **_read_at(entry),
    }


def _of_data(entry: DatumEntry) -> dict[str, str]:
    return {
        "id": entry["id"],
        "kind": "data",
        "subject": entry["subject"],
        "note": entry["note"],
        "table": entry["table"],
        "says": _pairs(entry["cells"].items()),
        **_read_at(entry),
    }


def _read_at(entry: ReadAt) -> dict[str, str]:
    return {"evidence": entry["evidence"], "source": entry["source"], "where": entry["where"]}


def _pairs(parts: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{name} {value}" for name, value in parts)


def _joined(words: Iterable[str] | None) -> str:
    # A `*`, as in a selector, is every release, known or to come.
    return "*" if words is None else " ".join(words)


def _enclosed(first: str, lines: Iterable[str], last: str) -> Iterator[str]:
    comma = "\n"
    yield first
    for line in lines:
        yield comma + line
        comma = ",\n"
    yield "\n" + last if comma != "\n" else last


def _gathered(chunks: Iterable[str]) -> Iterator[str]:
    pending: list[str] = []
    size = 0
    for chunk in chunks:
        pending.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            yield "".join(pending)
            pending, size = [], 0
    yield "".join(pending)


class Export(Outcome):
    """The facts of a matrix, or those about some components; `chunks` are its text without holding all of it."""

    def __init__(self, extract: Extract) -> None:
        self.extract = extract

    def text(self, screen: Terminal = PLAIN) -> str:
        """The document as JSON, whatever the screen."""
        del screen
        return self.written("json")

    def written(self, form: str, title: str = "") -> str:
        """The whole text as `json` or `csv`, which have no title."""
        del title
        return "".join(self.chunks(form))

    def chunks(self, form: str) -> Iterator[str]:
        """The text as `json` or `csv`, each part made when it is read."""
        return self.extract.csv() if form == "csv" else self.extract.json()

    def to_json(self) -> dict[str, Any]:
        """The document `toolmatrix.export/1`."""
        return self.extract.document()


@command(
    group="Explore the matrix",
    order=7,
    usage="[NAME...]",
    completer="component",
    formats=("json", "csv"),
    does="exporting",
    examples=(
        "toolmatrix export --output matrix.json",
        "toolmatrix export torch cudnn --format csv",
        "toolmatrix export --bundle public",
    ),
)
def export(
    *names: str,
    bundle: Path = option(
        "--bundle",
        shape="path",
        configurable=False,
        completer="dir",
        metavar="DIR",
        help="Write the whole matrix, compiled, into this directory, for `toolmatrix update`",
    ),
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Export | Report:
    """Export facts for other tools.

    They are the facts about some components, their variants, and what they were read from; all facts where none is
    named. A name is that of a component, or any other that it has. Raises NothingMatched; with `bundle` UsageError,
    MatrixError and OutputError.
    """
    if bundle:
        from toolmatrix.commands import _bundle

        return _bundle.write(os.fspath(bundle), names, matrix)
    index = open_matrix(matrix).index
    known = Names(index)
    return Export(Extract(index, map(known.component, names)))
