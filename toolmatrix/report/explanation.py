"""Reasons for a version: its facts, the chain up to the request, what it decides in turn, and what was not taken."""

from __future__ import annotations

from toolmatrix.documents import Annotated, Evidence, MatrixHead, NonEmpty, NotRequired, TypedDict
from toolmatrix.factbase.records import ClaimRecord
from toolmatrix.report import answer, claims, cores, remarks, terminal, variants
from toolmatrix.solve.grounds import alternatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.report.answer import DisputeEntry, RequestEntry
    from toolmatrix.report.claims import Notes
    from toolmatrix.report.remarks import BuiltEntry
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.grounds import Alternative
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice

SCHEMA = "toolmatrix.explanation/1"
_LINES = 12
# So many groups of releases, and so many names in one group, are shown without `--depth`.
_NAMES = 6


class BecauseEntry(TypedDict):
    """A fact that the choice rests on."""

    text: str
    fact: str
    evidence: Evidence
    source: str
    where: str
    rules: list[str]


class NotTaken(TypedDict):
    """Newer releases that were not taken for one reason."""

    releases: NonEmpty[str]
    range: str
    kind: Annotated[str, "forbidden", "apart", "entangled", "later", "outranked", "after", "older"]
    why: str


class DecidedEntry(TypedDict):
    """A component that the choice decides."""

    component: str
    version: str
    why: str
    fact: str


class ExplainedEntry(TypedDict):
    """Why a version was chosen."""

    target: str
    component: str
    version: str
    evidence: Evidence
    because: NonEmpty[BecauseEntry]
    chain: list[str]
    disputed: list[DisputeEntry]
    not_taken: list[NotTaken]
    decides: list[DecidedEntry]
    built: NotRequired[list[BuiltEntry]]
    """Images of this release that were built and passed their check, those that are what the answer says or else those
    that differ in distribution or Python."""


class ExplanationDocument(TypedDict):
    """What `toolmatrix explain --json` prints: why each version of a component was chosen."""

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    request: RequestEntry
    explained: NonEmpty[ExplainedEntry]


def document(
    index: Index, resolution: Resolution, choices: Sequence[Choice], *, invert: bool
) -> ExplanationDocument:
    """The explanation as JSON values, one entry per target (and codegen arch)."""
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "request": answer.request_document(resolution.request),
        "explained": [_entry(index, resolution, choice, invert) for choice in choices],
    }


def _entry(index: Index, resolution: Resolution, choice: Choice, invert: bool) -> ExplainedEntry:
    because: list[BecauseEntry] = [
        {
            "text": claims.because(record, cite.rules, choice.component, choice.version),
            "fact": record.id,
            "evidence": cite.evidence,
            "source": index.source(record.source).at,
            "where": record.where,
            "rules": list(cite.rules),
        }
        for cite in choice.cites
        for record in [index.statement(cite.record)._replace(evidence=cite.evidence)]
    ]
    chosen = {other.component: other for other in resolution.targets[choice.target]}
    chain: list[str] = []
    parent = choice.parent
    # Facts may require each other in a circle; a parent that was met before ends the chain.
    while parent in chosen and parent not in chain:
        chain.append(parent)
        parent = chosen[parent].parent
    images = [
        image
        for image in remarks.images_of(index, resolution, choice.target)
        if image.component == choice.component
    ]
    entry: ExplainedEntry = {
        "target": choice.target,
        "component": choice.component,
        "version": choice.version,
        "evidence": choice.evidence,
        "because": because,
        "chain": [f"{name} {chosen[name].version}" for name in chain],
        "disputed": [answer.dispute_document(index, rival) for rival in choice.disputed],
        "not_taken": [] if invert else _rejected(resolution, choice),
        "decides": _decides(index, resolution, choice) if invert else [],
    }
    if images:
        entry["built"] = remarks.image_documents(images)
    return entry


def _rejected(resolution: Resolution, choice: Choice) -> list[NotTaken]:
    index = resolution.index
    build = index.header["components"][choice.component]["variant_of"]
    groups: dict[tuple[str, str], list[str]] = {}
    for group in alternatives(resolution, choice):
        # Builds of one release are ranked by rules of preference, which differ from one to the next.
        if build and group.kind in ("older", "outranked"):
            for name in group.releases:
                rule = variants.preferred(index, resolution, choice, name)
                groups.setdefault((group.kind, rule), []).append(name)
        else:
            reason = why(resolution, choice, group)
            groups.setdefault((group.kind, reason), []).extend(group.releases)
    age = index.scale(choice.component).versions.index
    # People ask first why they do not have the newest.
    newest_first = sorted(
        groups.items(), key=lambda group: max(map(age, group[1]), default=-1), reverse=True
    )
    return [
        {
            "releases": sorted(releases, key=age),
            "range": claims.ranged(index, choice.component, releases),
            "kind": kind,
            "why": reason,
        }
        for (kind, reason), releases in newest_first
    ]


def why(resolution: Resolution, choice: Choice, group: Alternative) -> str:
    """Why the releases of a group were not taken."""
    if group.kind == "older":
        return f"older than {choice.version}, otherwise equal" if group.releases else ""
    if group.kind == "outranked":
        return f"weaker evidence than {choice.version}"
    if group.kind == "after":
        return f"they came out after {group.anchors[0]} and do not declare it; see --prefer newest"
    if group.kind == "apart":
        return f"no source joins them with {terminal.listing(group.anchors)}"
    reasons = cores.sentences(resolution.index, group.core, choice.component)
    if group.kind == "entangled":
        return "no combination includes them: " + " and ".join(
            [*reasons, "no alternative avoids it"]
        )
    if group.kind == "later":
        first = "that was chosen first" if reasons else "earlier choices exclude them"
        return " and ".join([*reasons, first])
    return " and ".join(reasons) if reasons else f"{choice.target} prefers {choice.version}"


def _decides(index: Index, resolution: Resolution, choice: Choice) -> list[DecidedEntry]:
    return [
        {
            "component": other.component,
            "version": other.version,
            "why": claims.because(record, cite.rules, other.component, other.version),
            "fact": record.id,
        }
        for other in resolution.targets[choice.target]
        if other is not choice
        for cite in other.cites
        for record in [index.statement(cite.record)._replace(evidence=cite.evidence)]
        if isinstance(record, ClaimRecord) and record.subject == choice.component
    ]


def text(
    document: ExplanationDocument, notes: Notes, screen: Terminal, *, depth: int | None = None
) -> str:
    """The explanation in words."""
    several = len(document["request"]["targets"]) > 1
    parts = [
        [
            line
            for sentence in _sentences(entry, notes, several, depth)
            for line in screen.wrap(sentence)
        ]
        for entry in document["explained"]
    ]
    return terminal.blocks([*parts, notes.lines(screen.width)])


def _sentences(
    entry: ExplainedEntry, notes: Notes, several: bool, depth: int | None
) -> Iterator[str]:
    target = f" on {entry['target']}" if several else ""
    yield f"{entry['component']} {entry['version']}{target}, {entry['evidence']}"
    # Facts that say the same are one reason, with the note of each.
    same: dict[str, list[str]] = {}
    for ground in entry["because"]:
        fact = _fact_id(notes.index, ground["fact"], entry["component"], entry["version"])
        same.setdefault(f"{ground['text']} ({ground['evidence']})", []).append(fact)
    for position, (reason, facts) in enumerate(same.items()):
        yield f"{'And because' if position else 'Because'} {reason} {notes.cite(facts)}"
    if entry["chain"]:
        yield f"needed by {', needed by '.join(entry['chain'])}, which you requested"
    for image in entry.get("built", ()):
        yield f"built {image['date']} {image['text']} (ran) {notes.cite([image['fact']])}"
    for dispute in entry["disputed"]:
        yield f"disputed: {dispute['says']} ({dispute['evidence']})  TM301"
    for other in entry["decides"]:
        fact_id = _fact_id(notes.index, other["fact"], other["component"], other["version"])
        mark = notes.cite([fact_id])
        yield f"decides {other['component']} {other['version']}: {other['why']} {mark}"
    groups = entry["not_taken"] if depth is not None else entry["not_taken"][:_LINES]
    for group in groups:
        releases = group["range"] if depth else terminal.few(group["range"], _NAMES)
        yield f"not taken: {releases} ({group['why']})"
    if len(groups) < len(entry["not_taken"]):
        rest = terminal.plural(len(entry["not_taken"]) - len(groups), "more group")
        yield f"... and {rest} (--depth)"


def _fact_id(index: Index, fact: str, component: str, version: str) -> str:
    # A release that is no row of a table is listed by its component and version. One id is asked for, as all ids
    # together are the largest section of the index.
    try:
        index.number(fact)
    except KeyError:
        return f"{component}=={version}"
    return fact
