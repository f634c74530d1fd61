"""Facts as pages: one in full, a table as printed, a component, what a source says, and the matrix in numbers."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.facts.records import ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.report import claims, terminal
from toolmatrix.report.answer import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import FactRecord
    from toolmatrix.report.terminal import Terminal

    Entry = dict[str, Any]

LIST_SCHEMA = "toolmatrix.facts-list/1"
SCHEMA = "toolmatrix.fact/1"
_VERBS = {
    "requires": "requires",
    "limits": "allows only",
    "offers": "offers",
    "tested": "was tested with",
}


class Pages:
    """Reads facts out of an index; every record once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.ids = index.ids
        self.sources = index.sources()
        self._rows: dict[str, list[str]] | None = None
        self._tables: dict[str, list[str]] | None = None
        self._said: dict[str, _Said] = {}

    def record(self, name: str) -> FactRecord:
        """The record of an id."""
        return self.index.record(self.ids[name])

    def facts(self) -> Iterator[FactRecord]:
        """Every claim, release and row of data by id; other rows are what claims and releases are printed in."""
        defining = set()
        rows = []
        for name in self.ids:
            record = self.record(name)
            if isinstance(record, RowRecord):
                rows.append(record)
                continue
            if isinstance(record, ReleaseRecord):
                defining.add(record.id)
            yield record
        for record in rows:
            if record.id not in defining and not self.claims_of(record.id):
                yield record

    def claims_of(self, row: str) -> list[str]:
        """The ids of the claims of a row."""
        if self._rows is None:
            self._rows = {}
            for name in self.ids:
                if "#" in name:
                    self._rows.setdefault(name.partition("#")[0], []).append(name)
        return self._rows.get(row, [])

    def tables(self) -> Mapping[str, list[str]]:
        """The ids of the rows of each table, those of statements under their own id."""
        if self._tables is None:
            self._tables = {}
            for name in self.ids:
                record = self.record(name)
                if isinstance(record, RowRecord) and record.table != "statements":
                    self._tables.setdefault(record.table, []).append(name)
        return self._tables

    # one fact

    def entry(self, name: str) -> Entry:
        """One fact in full as JSON values: a row with its claims, a claim, or a release."""
        record = self.record(name)
        row = record.row if isinstance(record, ClaimRecord) else ""
        row = name if isinstance(record, RowRecord) else row
        names = [name] if "#" in name else self.claims_of(name) if row else []
        source = self.sources[record.source]
        printed = self.index.row(self.ids[row]) if row else None
        return {
            "id": name,
            "kind": record.kind,
            "component": self.subject(record),
            "evidence": record.evidence,
            "source": {"name": record.source} | source._asdict(),
            "where": record.where,
            "table": printed.table if printed else None,
            "about": printed.about if printed else None,
            "row": dict(printed.cells) if printed else None,
            "attributes": dict(record.attributes) if isinstance(record, ReleaseRecord) else {},
            "date": record.date or None if isinstance(record, ReleaseRecord) else None,
            "note": "" if isinstance(record, ReleaseRecord) else record.note,
            "text": self.text_of(record),
            "claims": [self.claim(part) for part in names],
        }

    def claim(self, name: str) -> Entry:
        """One claim: what it says, how it is widened, and what disputes it."""
        number = self.ids[name]
        record = self.index.claim(number)
        said = self.said(record.subject)
        when = [(record.subject, record.releases), *record.conditions]
        rules = self.index.header["rules"]
        return {
            "id": name,
            "kind": record.kind,
            "strength": "soft" if record.kind == "tested" else "hard",
            "component": record.component,
            "when": [{"component": part, "is": selector} for part, selector in when],
            "is": record.selector,
            "text": self.text_of(record),
            "evidence": record.evidence,
            "where": record.where,
            "note": record.note,
            "rules": [
                {"name": rule, "reason": rules[rule]["reason"]}
                for rule in sorted(said.rules.get(number, ()))
            ],
            "disputed_by": [self.rival(*part) for part in said.winners.get(number, {}).items()],
            "disputes": [self.rival(*part) for part in said.losers.get(number, {}).items()],
        }

    def rival(self, number: int, evidence: str) -> Entry:
        """The other side of a dispute."""
        record = self.index.record(number)
        return {"fact": record.id, "evidence": evidence, "says": self.text_of(record)}

    def said(self, component: str) -> _Said:
        """The rules and disputes of everything that is said with this component as its subject."""
        if component not in self._said:
            self._said[component] = _Said(self.index, component)
        return self._said[component]

    def subject(self, record: FactRecord) -> str:
        """The component a fact is about: whose release it is, or whose releases it speaks of."""
        if isinstance(record, ReleaseRecord):
            return record.component
        if isinstance(record, RowRecord):
            name = record.subject.partition(" ")[0]
            return name if name in self.index.header["components"] else ""
        return record.subject

    def text_of(self, record: FactRecord) -> str:
        """A fact in words."""
        if isinstance(record, ReleaseRecord):
            dated = f" on {record.date}" if record.date else ""
            return f"{record.component} {record.selector} was released{dated}"
        if isinstance(record, RowRecord):
            return ", ".join(f"{name} {value}" for name, value in record.cells)
        named = f"every {record.subject}"
        if record.releases != "*":
            named = f"{record.subject} {record.releases}"
        told = [f"{name} {value}" for name, value in record.conditions]
        context = f" ({', '.join(told)})" if told else ""
        if record.kind == "needs":
            return f"{named}{context} needs {terminal.listing(list(record.alternatives), 'or')}"
        if record.says:
            return f"{named}{context}: {claims.filled(record)}"
        if record.selector == "absent":
            return f"{named}{context} excludes {record.component}"
        return f"{named}{context} {_VERBS[record.kind]} {record.component} {record.selector}"

    # many facts

    def summary(self, records: Iterable[FactRecord]) -> Entry:
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
                name: {"facts": sources[name]} | source._asdict()
                for name, source in self.sources.items()
            },
        }

    def line(self, record: FactRecord) -> Entry:
        """One fact of a list."""
        return {
            "id": self.name(record),
            "kind": record.kind,
            "evidence": record.evidence,
            "source": record.source,
            "where": record.where,
            "text": self.text_of(record),
        }

    def name(self, record: FactRecord) -> str:
        """What `facts` calls a record: a release by its component and version."""
        if isinstance(record, ReleaseRecord):
            return f"{record.component}=={record.selector}"
        return record.id

    def list_document(self, records: Sequence[FactRecord], *, listed: bool, extra: Entry) -> Entry:
        """Facts in numbers and, where they were chosen by something, one by one."""
        return {
            "schema": LIST_SCHEMA,
            "matrix": head(self.index),
            "summary": self.summary(records),
            "facts": [self.line(record) for record in records] if listed else [],
        } | extra

    def document(self, entries: Sequence[Entry]) -> Entry:
        """Facts in full."""
        return {"schema": SCHEMA, "matrix": head(self.index), "facts": list(entries)}


class _Said:
    """What the index knows of the claims about one subject, by number of record."""

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
        for part in facts.disputes:
            winner = index.claim(part.deciding).evidence
            self.winners.setdefault(part.rival, {})[part.deciding] = winner
            known = self.losers.setdefault(part.deciding, {})
            known[part.rival] = max(
                known.get(part.rival, part.evidence), part.evidence, key=words.rank
            )


def summary_text(pages: Pages, summary: Entry) -> str:
    """The matrix in numbers."""
    index = pages.index
    facts = terminal.plural(summary["count"], "fact")
    data = terminal.plural(summary["data"], "row")
    parts = [
        f"matrix of {index.header['date']}: {facts} and {data} of further data",
        "\n".join(_counted(summary["evidence"], "evidence")),
        "\n".join(_counted(summary["components"], "component")),
        "\n".join(_source_lines(summary["sources"])),
    ]
    return "\n\n".join(parts) + "\n"


def _counted(counts: Mapping[str, int], title: str) -> list[str]:
    rows = [(str(count), name) for name, count in counts.items() if count]
    wide = max((len(count) for count, _ in rows), default=0)
    return [f"facts by {title}", *(f"  {count.rjust(wide)}  {name}" for count, name in rows)]


def _source_lines(sources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (str(part["facts"]), part["read"], name)
        for name, part in sorted(sources.items())
        if part["facts"]
    ]
    wide = max((len(count) for count, _, _ in rows), default=0)
    told = [f"  {count.rjust(wide)}  read {read}  {name}" for count, read, name in rows]
    return ["facts by source", *told]


def list_text(pages: Pages, records: Sequence[FactRecord], screen: Terminal) -> str:
    """One line or more for each fact: its id and evidence, then its words."""
    lines = []
    for record in records:
        lines.append(f"{screen.style(pages.name(record), 'bold')}  {record.evidence}")
        lines += terminal.wrap(pages.text_of(record), screen.width, indent="  ")
    return "\n".join(lines) + "\n" if lines else ""


def entry_text(entry: Entry, screen: Terminal) -> str:
    """One fact in full."""
    lines = [f"{screen.style(entry['id'], 'bold')}  {entry['evidence']}"]

    def told(title: str, text: str) -> None:
        if text:
            lines.extend(terminal.wrap(text, screen.width, indent=" " * 10, first=title.ljust(10)))

    several = len(entry["claims"]) > 1
    told("table", f"{entry['table']}: {entry['about']}" if _in_table(entry) else "")
    if entry["row"] is not None:
        cells = [f"{name} {value}" for name, value in entry["row"].items() if value]
        told("row", "; ".join(cells))
    else:
        told("says", entry["text"])
        cells = [f"{name} {value}" for name, value in entry["attributes"].items()]
        told("with", "; ".join(cells))
    for claim in entry["claims"]:
        mark = f"#{claim['id'].partition('#')[2]}: " if several else ""
        weaker = f", {claim['evidence']}" if claim["evidence"] != entry["evidence"] else ""
        told("says", f"{mark}{claim['text']} ({claim['strength']}{weaker})")
        for part in claim["disputed_by"]:
            told("disputed", f"{mark}{part['fact']} ({part['evidence']}) decides: {part['says']}")
        for part in claim["disputes"]:
            told(
                "disputed",
                f"{mark}{part['fact']} ({part['evidence']}) does not decide: {part['says']}",
            )
        if claim["note"] != entry["note"]:
            told("note", f"{mark}{claim['note']}")
    told("where", entry["where"])
    told("source", f"{entry['source']['name']}: {entry['source']['title']}")
    told("at", entry["source"]["at"])
    told("read", entry["source"]["read"])
    rules = {rule["name"]: rule["reason"] for claim in entry["claims"] for rule in claim["rules"]}
    for name, reason in rules.items():
        told("by rule", f"{name}: {reason}")
    told("note", entry["note"])
    return "\n".join(lines) + "\n"


def _in_table(entry: Entry) -> bool:
    return entry["table"] not in (None, "statements")


def table_text(pages: Pages, name: str, rows: Sequence[str], screen: Terminal) -> str:
    """A table as printed."""
    records = [pages.index.row(pages.ids[row]) for row in rows]
    columns = list(dict.fromkeys(column for record in records for column, _ in record.cells))
    grid = [columns]
    for record in records:
        cells = dict(record.cells)
        grid.append([claims.shortened(cells.get(column, "")) for column in columns])
    first = records[0]
    sources = dict.fromkeys(record.source for record in records)
    lines = [f"{screen.style(name, 'bold')}  {first.evidence}  {first.about}", ""]
    lines += terminal.columns(grid)
    lines += ["", f"where   {first.where}"]
    for source in sources:
        part = pages.sources[source]
        lines.append(f"source  {source}: {part.title}, {part.at}, read {part.read}")
    return "\n".join(lines) + "\n"


def component_text(pages: Pages, name: str, source: str, screen: Terminal) -> str:
    """What the matrix holds about a component: its releases, and the tables and statements that speak of it."""
    part = pages.index.header["components"][name]
    versions = pages.index.component(name).versions
    ends = f", {versions[0]} to {versions[-1]}" if versions else ""
    count = terminal.plural(len(versions), "release")
    lines = [f"{screen.style(name, 'bold')}  {part['title']}, {count}{ends}", ""]
    tables: dict[str, list[ClaimRecord]] = {}
    for record in about(pages, name, source):
        row = pages.index.row(pages.ids[record.row])
        table = record.row if row.table == "statements" else row.table
        tables.setdefault(table, []).append(record)
    shown = [("facts", "evidence", "table or statement", "source")]
    for table, held in tables.items():
        known = {record.evidence for record in held}
        evidence = " ".join(word for word in words.WORDS if word in known)
        sources = list(dict.fromkeys(record.source for record in held))
        more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        shown.append((str(len(held)), evidence, table, sources[0] + more))
    return "\n".join([*lines, *terminal.columns(shown)]) + "\n"


def about(pages: Pages, name: str, source: str = "") -> list[ClaimRecord]:
    """The claims that have a component as their subject or speak about it, those of one source if it is given."""
    return [
        record
        for record in pages.facts()
        if isinstance(record, ClaimRecord)
        and source in ("", record.source)
        and (name in (record.subject, record.component) or name in record.alternatives)
    ]


def stale_text(
    pages: Pages, records: Sequence[FactRecord], ages: Mapping[str, int], limit: int, *, ids: bool
) -> str:
    """Sources that were read too long ago, the oldest first, and how many facts rest on them; `ids` names each fact."""
    by_source: dict[str, list[str]] = {}
    for record in records:
        by_source.setdefault(record.source, []).append(pages.name(record))
    lines = []
    for name in sorted(by_source, key=lambda name: (-ages[name], name)):
        held = by_source[name]
        count, days = terminal.plural(len(held), "fact"), terminal.plural(ages[name], "day")
        lines.append(f"{name}: {count}, read {pages.sources[name].read}, {days} ago  TM310")
        lines += [f"  {fact}" for fact in held if ids]
    count, few = terminal.plural(len(records), "fact"), terminal.plural(limit, "day")
    sources = terminal.plural(len(by_source), "source")
    told = (
        f"{count} of {sources} read more than {few} ago"
        if records
        else f"no fact was read more than {few} ago"
    )
    return "\n".join([*lines, *([""] if lines else []), told]) + "\n"
