"""Facts as pages: one in full, a table as printed, a component, a source, and the matrix in numbers.

Documents are made by `Pages`, out of an index; texts are made from documents.
"""

from __future__ import annotations

from datetime import date
from functools import cached_property

from toolmatrix.documents import (
    Annotated,
    Count,
    Evidence,
    HasIs,
    MatrixHead,
    NonEmpty,
    NotRequired,
    TypedDict,
)
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.report import claims, terminal
from toolmatrix.report.answer import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import FactRecord
    from toolmatrix.report.terminal import Terminal

LIST_SCHEMA = "toolmatrix.facts-list/1"
SCHEMA = "toolmatrix.fact/1"
_VERBS = {
    "requires": "requires",
    "limits": "allows only",
    "fails": "fails with",
    "offers": "offers",
    "tested": "was tested with",
}


class CountedSource(TypedDict):
    """A source, and how many facts are of it."""

    facts: Count
    title: str
    at: str
    read: str


class FactsSummary(TypedDict):
    """Facts in numbers."""

    count: Count
    data: Count
    components: dict[str, Count]
    evidence: dict[str, Count]
    sources: dict[str, CountedSource]


class SaidFact(TypedDict):
    """A fact or claim in words."""

    id: str
    kind: Annotated[
        str, "requires", "limits", "fails", "offers", "carries", "needs", "tested", "release", "row"
    ]
    evidence: Evidence
    where: str
    text: str


class FactLine(SaidFact):
    """A fact in a line."""

    source: str


class FactsListDocument(TypedDict):
    """What `toolmatrix facts --json` prints: the matrix in numbers, and the facts that `--source` or `--stale`
    choose.
    """

    schema: Annotated[str, LIST_SCHEMA]
    matrix: MatrixHead
    summary: FactsSummary
    facts: list[FactLine]
    source: NotRequired[str]
    stale: NotRequired[Count]
    today: NotRequired[str]


class NamedSource(TypedDict):
    """A source with its name."""

    name: str
    title: str
    at: str
    read: str


class WhenEntry(HasIs):
    """Releases of a component for which a claim holds."""

    component: str


class RuleEntry(TypedDict):
    """A rule of inheritance."""

    name: str
    reason: str


class RivalEntry(TypedDict):
    """A claim that says otherwise."""

    fact: str
    evidence: Evidence
    says: str


class ClaimInFull(SaidFact, HasIs):
    """A claim, how it is widened, and what disputes it."""

    strength: Annotated[str, "hard", "soft"]
    component: str
    when: NonEmpty[WhenEntry]
    note: str
    rules: list[RuleEntry]
    disputed_by: list[RivalEntry]
    disputes: list[RivalEntry]


class FactEntry(SaidFact):
    """A fact in full."""

    component: str
    source: NamedSource
    table: str | None
    about: str | None
    row: dict[str, str] | None
    attributes: dict[str, str]
    date: str | None
    note: str
    claims: list[ClaimInFull]


class FactDocument(TypedDict):
    """What `toolmatrix facts ID --json` prints: facts in full."""

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    facts: list[FactEntry]


class Pages:
    """Reads facts out of an index; every record once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.ids = index.ids
        self.sources = index.sources()
        self._tables: dict[str, list[str]] = {}
        self._standing: dict[str, _Standing] = {}

    def facts(self) -> Iterator[FactRecord]:
        """Every claim, release and row of data by id; other rows are what claims and releases are printed in."""
        defining = set()
        rows = []
        for name in self.ids:
            record = self.index.record(self.ids[name])
            if isinstance(record, RowRecord):
                rows.append(record)
                continue
            if isinstance(record, ReleaseRecord):
                defining.add(record.id)
            yield record
        # Which rows stand by themselves is known only after all claims and releases.
        for record in rows:
            if record.id not in defining and not self.claims_of(record.id):
                yield record

    @cached_property
    def _columns(self) -> Mapping[str, list[str]]:
        # Made when first asked for: the page of one claim needs none of it.
        columns: dict[str, list[str]] = {}
        for name in self.ids:
            row, column, _ = name.partition("#")
            if column:
                columns.setdefault(row, []).append(name)
        return columns

    def claims_of(self, row: str) -> list[str]:
        """The ids of the claims of a row."""
        return self._columns.get(row, [])

    def tables(self) -> Mapping[str, list[str]]:
        """The ids of the rows of each table, those of statements under their own id."""
        if not self._tables:
            # A claim of a row is called by the row and its column.
            for name in (name for name in self.ids if "#" not in name):
                record = self.index.record(self.ids[name])
                if isinstance(record, RowRecord) and record.table != "statements":
                    self._tables.setdefault(record.table, []).append(name)
        return self._tables

    # one fact

    def entry(self, name: str) -> FactEntry:
        """One fact in full as JSON values: a row with its claims, a claim, or a release."""
        record = self.index.record(self.ids[name])
        row = record.row if isinstance(record, ClaimRecord) else ""
        row = name if isinstance(record, RowRecord) else row
        names = [name] if "#" in name else self.claims_of(name) if row else []
        source = self.sources[record.source]
        printed = self.index.row(self.ids[row]) if row else None
        return {
            **self._fact_head(name, record),
            "component": self.subject(record),
            "source": {
                "name": record.source,
                "title": source.title,
                "at": source.at,
                "read": source.read,
            },
            "table": printed.table if printed else None,
            "about": printed.about if printed else None,
            "row": dict(printed.cells) if printed else None,
            "attributes": dict(record.attributes) if isinstance(record, ReleaseRecord) else {},
            "date": record.date or None if isinstance(record, ReleaseRecord) else None,
            "note": "" if isinstance(record, ReleaseRecord) else record.note,
            "claims": [self.claim(claim) for claim in names],
        }

    def _fact_head(self, name: str, record: FactRecord) -> SaidFact:
        return {
            "id": name,
            "kind": record.kind,
            "evidence": record.evidence,
            "where": record.where,
            "text": self.text_of(record),
        }

    def claim(self, name: str) -> ClaimInFull:
        """One claim: what it says, how it is widened, and what disputes it."""
        number = self.ids[name]
        record = self.index.claim(number)
        standing = self.standing(record.subject)
        when = [(record.subject, record.releases), *record.conditions]
        rules = self.index.header["rules"]
        return {
            **self._fact_head(name, record),
            "strength": "soft" if record.kind == "tested" else "hard",
            "component": record.component,
            "when": [{"component": component, "is": selector} for component, selector in when],
            "is": record.selector,
            "note": record.note,
            "rules": [
                {"name": rule, "reason": rules[rule]["reason"]}
                for rule in sorted(standing.rules.get(number, ()))
            ],
            "disputed_by": self._rivals(standing.winners.get(number, {})),
            "disputes": self._rivals(standing.losers.get(number, {})),
        }

    def _rivals(self, rivals: Mapping[int, str]) -> list[RivalEntry]:
        records = [(self.index.record(number), evidence) for number, evidence in rivals.items()]
        return [
            {"fact": record.id, "evidence": evidence, "says": self.text_of(record)}
            for record, evidence in records
        ]

    def standing(self, component: str) -> _Standing:
        """The rules and disputes of all claims with this component as their subject."""
        if component not in self._standing:
            self._standing[component] = _Standing(self.index, component)
        return self._standing[component]

    def subject(self, record: FactRecord) -> str:
        """The component a fact is about: the one whose release or releases it describes."""
        if isinstance(record, ReleaseRecord):
            return record.component
        if isinstance(record, RowRecord):
            name = record.subject.partition(" ")[0]
            return name if name in self.index.header["components"] else ""
        return record.subject

    @staticmethod
    def text_of(record: FactRecord) -> str:
        """A fact in words."""
        return text_of(record)

    # many facts

    def summary(self, records: Iterable[FactRecord]) -> FactsSummary:
        """Facts in numbers: per component, per evidence word, per source."""
        components = dict.fromkeys(self.index.header["components"], 0)
        evidence = dict.fromkeys(words.WORDS, 0)
        sources = dict.fromkeys(self.sources, 0)
        count = data = 0
        for record in records:
            data += isinstance(record, RowRecord)
            count += not isinstance(record, RowRecord)
            if self.subject(record):
                components[self.subject(record)] += 1
            evidence[record.evidence] += 1
            sources[record.source] += 1
        return {
            "count": count,
            "data": data,
            "components": components,
            "evidence": evidence,
            "sources": {
                name: {
                    "facts": sources[name],
                    "title": source.title,
                    "at": source.at,
                    "read": source.read,
                }
                for name, source in self.sources.items()
            },
        }

    def line(self, record: FactRecord) -> FactLine:
        """One fact of a list; a release is called by its component and version."""
        name = record.id
        if isinstance(record, ReleaseRecord):
            name = f"{record.component}=={record.selector}"
        return {**self._fact_head(name, record), "source": record.source}

    def list_document(
        self, records: Sequence[FactRecord], *, one_by_one: bool = True
    ) -> FactsListDocument:
        """Facts in numbers and, where they were chosen by something, one by one."""
        return {
            "schema": LIST_SCHEMA,
            "matrix": head(self.index),
            "summary": self.summary(records),
            "facts": [self.line(record) for record in records] if one_by_one else [],
        }

    def document(self, entries: Sequence[FactEntry]) -> FactDocument:
        """Facts in full."""
        return {"schema": SCHEMA, "matrix": head(self.index), "facts": list(entries)}

    def about(self, name: str, source: str = "") -> list[FactEntry]:
        """The claims that have a component as their subject or object, those of one source if it is given."""
        return [
            self.entry(record.id)
            for record in self.facts()
            if isinstance(record, ClaimRecord)
            and source in ("", record.source)
            and (name in (record.subject, record.component) or name in record.alternatives)
        ]


def text_of(record: FactRecord) -> str:
    """A fact in words."""
    if isinstance(record, ReleaseRecord):
        dated = f" on {record.date}" if record.date else ""
        return f"{record.component} {record.selector} was released{dated}"
    if isinstance(record, RowRecord):
        return ", ".join(f"{name} {value}" for name, value in record.cells)
    named = f"every {record.subject}"
    if record.releases != "*":
        named = f"{record.subject} {record.releases}"
    conditions = ", ".join(f"{name} {value}" for name, value in record.conditions)
    context = f" ({conditions})" if conditions else ""
    if record.kind == "needs":
        return f"{named}{context} needs {terminal.listing(list(record.alternatives), 'or')}"
    if record.says:
        return f"{named}{context}: {claims.filled(record)}"
    if record.selector == "absent":
        return f"{named}{context} excludes {record.component}"
    return f"{named}{context} {_VERBS[record.kind]} {record.component} {record.selector}"


class _Standing:
    """The rules and disputes of the claims about one subject, by number of record."""

    def __init__(self, index: Index, component: str) -> None:
        facts = index.component(component)
        self.rules: dict[int, set[str]] = {}
        self.winners: dict[int, dict[int, str]] = {}
        self.losers: dict[int, dict[int, str]] = {}
        cited = [binding.cites for binding in facts.bindings]
        cited += [number for group in facts.row_groups for number in group.cites]
        for number in cited:
            for cite in index.cites(number):
                self.rules.setdefault(cite.record, set()).update(cite.rules)
        for dispute in facts.disputes:
            winner = index.claim(dispute.deciding).evidence
            self.winners.setdefault(dispute.rival, {})[dispute.deciding] = winner
            # A rival may dispute by several rules; the best evidence of it is kept.
            known = self.losers.setdefault(dispute.deciding, {})
            known[dispute.rival] = max(
                known.get(dispute.rival, dispute.evidence), dispute.evidence, key=words.rank
            )


def summary_text(document: FactsListDocument) -> str:
    """The matrix in numbers."""
    summary = document["summary"]
    facts = terminal.plural(summary["count"], "fact")
    data = terminal.plural(summary["data"], "row")
    sources = {
        f"read {source['read']}  {name}": source["facts"]
        for name, source in sorted(summary["sources"].items())
    }
    parts = [
        f"matrix of {document['matrix']['date']}: {facts} and {data} of further data",
        _counted(summary["evidence"], "evidence"),
        _counted(summary["components"], "component"),
        _counted(sources, "source"),
    ]
    return "\n\n".join(parts) + "\n"


def _counted(counts: Mapping[str, int], title: str) -> str:
    rows = [("", str(count), name) for name, count in counts.items() if count]
    return "\n".join([f"facts by {title}", *terminal.columns(rows, right=(1,))])


def list_text(facts: Sequence[FactLine], screen: Terminal) -> str:
    """One line or more for each fact: its id and evidence, then its words."""
    lines = []
    for fact in facts:
        lines.append(f"{screen.style(fact['id'], 'bold')}  {fact['evidence']}")
        lines += screen.wrap(fact["text"], first="  ")
    return "\n".join(lines) + "\n" if lines else ""


def entry_text(entry: FactEntry, screen: Terminal) -> str:
    """One fact in full."""
    rows: list[tuple[str, str]] = []
    # A statement is written by itself, and its id is all that it would be called by.
    if entry["table"] not in (None, "statements"):
        rows.append(("table", f"{entry['table']}: {entry['about']}"))
    if entry["row"] is not None:
        cells = [f"{name} {value}" for name, value in entry["row"].items() if value]
        rows.append(("row", "; ".join(cells)))
    else:
        attributes = [f"{name} {value}" for name, value in entry["attributes"].items()]
        rows += [("says", entry["text"]), ("with", "; ".join(attributes))]
    for claim in entry["claims"]:
        rows += _claim_rows(entry, claim)
    source = entry["source"]
    rows += [
        ("where", entry["where"]),
        ("source", f"{source['name']}: {source['title']}"),
        ("at", source["at"]),
        ("read", source["read"]),
    ]
    # The columns of a row are widened by the same rules; each is explained once.
    rules = {rule["name"]: rule["reason"] for claim in entry["claims"] for rule in claim["rules"]}
    rows += [("by rule", f"{name}: {reason}") for name, reason in rules.items()]
    rows.append(("note", entry["note"]))
    lines = [f"{screen.style(entry['id'], 'bold')}  {entry['evidence']}"]
    for title, text in rows:
        if text:
            lines += screen.wrap(text, title.ljust(10), " " * 10)
    return "\n".join(lines) + "\n"


def _claim_rows(entry: FactEntry, claim: ClaimInFull) -> Iterator[tuple[str, str]]:
    # One of several begins with its column.
    mark = f"#{claim['id'].partition('#')[2]}: " if len(entry["claims"]) > 1 else ""
    weaker = f", {claim['evidence']}" if claim["evidence"] != entry["evidence"] else ""
    yield "says", f"{mark}{claim['text']} ({claim['strength']}{weaker})"
    for rivals, verb in (
        (claim["disputed_by"], "decides"),
        (claim["disputes"], "does not decide"),
    ):
        for rival in rivals:
            yield "disputed", f"{mark}{rival['fact']} ({rival['evidence']}) {verb}: {rival['says']}"
    # The note of a row is printed once, below all of its claims.
    if claim["note"] != entry["note"]:
        yield "note", f"{mark}{claim['note']}"


def table_text(name: str, entries: Sequence[FactEntry], screen: Terminal) -> str:
    """A table as printed, from the entries of its rows."""
    printed = [entry["row"] or {} for entry in entries]
    columns = list(dict.fromkeys(column for row in printed for column in row))
    cells = [[claims.shortened(row.get(column, "")) for column in columns] for row in printed]
    first = entries[0]
    lines = [f"{screen.style(name, 'bold')}  {first['evidence']}  {first['about']}", ""]
    lines += [*terminal.columns([columns, *cells]), "", f"where   {first['where']}"]
    for source in {entry["source"]["name"]: entry["source"] for entry in entries}.values():
        lines.append(
            f"source  {source['name']}: {source['title']}, {source['at']}, read {source['read']}"
        )
    return "\n".join(lines) + "\n"


def component_text(index: Index, name: str, entries: Sequence[FactEntry], screen: Terminal) -> str:
    """A component with its releases, and the tables and statements about it, from the entries of claims."""
    versions = index.component(name).versions
    ends = f", {versions[0]} to {versions[-1]}" if versions else ""
    title = index.header["components"][name]["title"]
    count = terminal.plural(len(versions), "release")
    tables: dict[str, list[FactEntry]] = {}
    for entry in entries:
        statement = entry["id"].partition("#")[0]
        table = statement if entry["table"] == "statements" else entry["table"] or ""
        tables.setdefault(table, []).append(entry)
    rows = [("facts", "evidence", "table or statement", "source")]
    for table, table_entries in tables.items():
        known = {entry["evidence"] for entry in table_entries}
        evidence = " ".join(word for word in words.WORDS if word in known)
        sources = list(dict.fromkeys(entry["source"]["name"] for entry in table_entries))
        rows.append((str(len(table_entries)), evidence, table, terminal.some(sources, 1)))
    lines = [f"{screen.style(name, 'bold')}  {title}, {count}{ends}", "", *terminal.columns(rows)]
    return "\n".join(lines) + "\n"


def age(read: str, today: str) -> int:
    """Days since a source was read; a day that never was is as old as can be."""
    day = date.fromisoformat(today)
    try:
        return (day - date.fromisoformat(read)).days
    except ValueError:
        return (day - date.min).days


def stale_text(document: FactsListDocument, *, ids: bool) -> str:
    """Sources that were read too long ago, the oldest first, and how many facts rest on them; `ids` names each fact."""
    by_source: dict[str, list[str]] = {}
    for fact in document["facts"]:
        by_source.setdefault(fact["source"], []).append(fact["id"])
    read = {name: document["summary"]["sources"][name]["read"] for name in by_source}
    ages = {name: age(day, document["today"]) for name, day in read.items()}
    lines = []
    # Those that were read on one day stand in the order of their names.
    for name in sorted(by_source, key=lambda name: (-ages[name], name)):
        count = terminal.plural(len(by_source[name]), "fact")
        days = terminal.plural(ages[name], "day")
        lines.append(f"{name}: {count}, read {read[name]}, {days} ago  TM310")
        lines += [f"  {fact}" for fact in by_source[name] if ids]
    limit = f"read more than {terminal.plural(document['stale'], 'day')} ago"
    if not lines:
        return f"no fact was {limit}\n"
    count = terminal.plural(len(document["facts"]), "fact")
    sources = terminal.plural(len(by_source), "source")
    return "\n".join([*lines, "", f"{count} of {sources} {limit}"]) + "\n"
