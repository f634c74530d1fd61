"""What is compatible with a release, as a document and as text: by component, tested before allowed before refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from toolmatrix.documents import Annotated, Evidence, HasFrom, MatrixHead, NonEmpty, TypedDict
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.report import answer, claims, terminal, variants
from toolmatrix.report.answer import WantedEntry
from toolmatrix.report.terminal import Terminal
from toolmatrix.solve.pairs import SAYS, PairFact, Partner, Partners

SCHEMA = "toolmatrix.partners/1"
_WORDS = {"tested": "yes", "allowed": "yes", "refused": "no", "unknown": "unknown"}
# Limits without `--all`: ranges of releases, of refused ones, sources, names.
_RANGES, _REFUSED, _SOURCES, _NAMES = 8, 4, 3, 12
_INDENT = " " * 21


class WayEntry(HasFrom):
    """A way to get a framework for a target."""

    target: str
    accelerator: str


class SaidEntry(TypedDict):
    """Releases with the same verdict and evidence."""

    says: Annotated[str, SAYS]
    releases: NonEmpty[str]
    evidence: Evidence
    facts: NonEmpty[str]


class PartnerEntry(TypedDict):
    """The releases of a component by their verdict."""

    component: str
    builds_of: str
    said: list[SaidEntry]
    unknown: list[str]


class PartnersDocument(TypedDict):
    """What `toolmatrix what --json` prints: which releases of other components are compatible with the requested
    ones, which are not, and which no fact mentions.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    request: WantedEntry
    ways: NonEmpty[WayEntry]
    component: str
    releases: list[str]
    needs: list[list[str]]
    partners: list[PartnerEntry]
    unjoined: list[str]


def document(index: Index, partners: Partners) -> PartnersDocument:
    """What is compatible with the releases as JSON values: all releases of each component that a fact joins to them."""
    requests = [answer.request_document(request) for request in partners.requests]
    heads = index.header["components"]
    # The release of a build is known.
    own = heads[partners.component]["variant_of"]
    joined = [
        partner
        for partner in partners.partners
        if partner.facts and partner.usable and partner.component != own
    ]
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        # The ways differ in nothing else.
        "request": answer.wanted_document(partners.requests[0]),
        "ways": [
            {
                "target": request["targets"][0],
                "from": request["from"],
                "accelerator": request["accelerator"][request["targets"][0]],
            }
            for request in requests
        ],
        "component": partners.component,
        "releases": index.scale(partners.component).named(partners.mask),
        "needs": [list(names) for names in partners.needs],
        "partners": [_partner(index, partner, partners.component) for partner in joined],
        "unjoined": [
            partner.component
            for partner in partners.partners
            if not (partner.facts or heads[partner.component]["variant_of"])
        ],
    }


def _partner(index: Index, partner: Partner, subject: str) -> PartnerEntry:
    scale = index.scale(partner.component)
    builds_of = index.header["components"][partner.component]["variant_of"]
    # Every build requires its own release: the builds of all others would be shown as refused.
    says = [verdict for verdict in SAYS if verdict != "refused" or builds_of != subject]
    return {
        "component": partner.component,
        "builds_of": builds_of,
        "said": [
            {
                "says": verdict,
                "releases": scale.named(mask),
                "evidence": evidence,
                "facts": sorted(cited(index, mask, facts)),
            }
            for verdict in says
            for evidence, mask, facts in partner.by_evidence(verdict)
        ],
        "unknown": scale.named(partner.unknown),
    }


def cited(index: Index, mask: int, facts: Iterable[PairFact]) -> set[str]:
    """The ids of the claims by which facts say something of some releases of a partner."""
    ids = set()
    for fact in facts:
        # A fact about the partner is cited for the releases in the mask, one about the subject for its own.
        own = fact.touching & mask if fact.touching == fact.mask else fact.touching
        cites = [cite for cite in index.cites(fact.cites) if cite.touches(own)]
        ids |= {index.claim(cite.record).id for cite in cites}
    return ids


def positive(document: PartnersDocument) -> bool:
    """True if some release of some component is known to be compatible with the requested ones."""
    return any(map(_is_compatible, document["partners"]))


def text(
    index: Index, document: PartnersDocument, screen: Terminal, *, everything: bool = False
) -> str:
    """What is compatible with the releases as text, by component; those that only refuse them or have no facts last."""
    notes = claims.Notes(index)
    heads = index.header["components"]
    # What answers leave out is left out here too.
    quiet = {name for name, head in heads.items() if head["hidden"] or head["flag"]}
    quiet = set() if everything else quiet
    partners = [partner for partner in document["partners"] if partner["component"] not in quiet]
    detailed = [partner for partner in partners if everything or _is_compatible(partner)]
    blocks = [_lines(index, partner, notes, screen, everything=everything) for partner in detailed]
    refused = [partner for partner in partners if partner not in detailed]
    silent = [name for name in document["unjoined"] if name not in quiet]
    return terminal.blocks(
        [
            _head(index, document, quiet),
            *blocks,
            _refused_lines(refused, silent, screen, everything=everything),
            notes.lines(screen.width),
        ]
    )


def _is_compatible(partner: PartnerEntry) -> bool:
    return any(entry["says"] != "refused" for entry in partner["said"])


def _head(index: Index, document: PartnersDocument, quiet: Collection[str]) -> list[str]:
    component = document["component"]
    named = claims.named_as(index, component)
    of = claims.ranged(index, component, document["releases"]) or "of any release"
    if named != component:
        of = ranges(index, component, document["releases"])
    target, source, accelerator = (
        terminal.listing([*dict.fromkeys(method[key] for method in document["ways"])], "or")
        for key in ("target", "from", "accelerator")
    )
    lines = [f"{named} {of} on {target}, from {source}, accelerator {accelerator}"]
    needs = [
        terminal.listing(names, "or")
        for names in document["needs"]
        if not any(name in quiet or name != claims.named_as(index, name) for name in names)
    ]
    return [*lines, f"needs {', '.join(needs)}"] if needs else lines


def _lines(
    index: Index, partner: PartnerEntry, notes: claims.Notes, screen: Terminal, *, everything: bool
) -> list[str]:
    component, of = partner["component"], partner["builds_of"]
    lines = [f"builds of {of}" if of else component]
    for entry in _merged(partner):
        releases = ranges(index, component, entry["releases"])
        most = _REFUSED if entry["says"] == "refused" else _RANGES
        sources = dict.fromkeys(notes.sources(entry["facts"]))
        # The releases of a family rest on as many tables: the rest of the sources is in the document.
        marks = notes.mark(list(sources)[: None if everything else _SOURCES])
        label = screen.style(entry["says"].ljust(8), _WORDS[entry["says"]])
        text = releases if everything else few(releases, most)
        lines += screen.wrap(f"{text} {marks}", f"  {label} {entry['evidence']:9} ", _INDENT)
    if partner["unknown"]:
        releases = ranges(index, component, partner["unknown"])
        label = screen.style("unknown".ljust(18), "unknown")
        text = releases if everything else few(releases, _REFUSED)
        lines += screen.wrap(text, f"  {label} ", _INDENT)
    return lines


def _merged(partner: PartnerEntry) -> Iterator[SaidEntry]:
    """The entries of a component; all refused releases are one entry with the weakest evidence."""
    yield from (entry for entry in partner["said"] if entry["says"] != "refused")
    # Which fact refuses which release does not help in the search for compatible ones.
    refused = [entry for entry in partner["said"] if entry["says"] == "refused"]
    if refused:
        yield {
            "says": "refused",
            "releases": [name for entry in refused for name in entry["releases"]],
            "evidence": words.weakest(entry["evidence"] for entry in refused),
            "facts": [fact for entry in refused for fact in entry["facts"]],
        }


def few(text: str, most: int) -> str:
    """At most so many ranges of releases, and how many more there are."""
    ranges = text.split(", ")
    if len(ranges) <= most:
        return text
    return f"{', '.join(ranges[:most])} and {len(ranges) - most} more"


def ranges(index: Index, component: str, names: Sequence[str]) -> str:
    """Releases as ranges; builds by their line, with the releases that are published in it."""
    of = index.header["components"][component]["variant_of"]
    if not of:
        merged = claims.ranged(index, component, names)
        names_only = index.header["components"][component]["scheme"] == "names"
        # The last of them are those that an answer would rather have.
        return ", ".join(reversed(names)) if names_only else merged or "any release"
    by_line: dict[str, list[str]] = {}
    for name in names:
        build = variants.build(index, component, name)
        default = index.channel(build.channel).default
        line = build.line if default else f"{build.line} ({build.channel})"
        by_line.setdefault(line, []).append(build.release)
    return ", ".join(
        # `few` splits ranges at commas, so those of one line must not contain any.
        f"{line} of {claims.ranged(index, of, releases) or 'any release'}".replace(", ", " ")
        for line, releases in by_line.items()
    )


def _refused_lines(
    refused: Sequence[PartnerEntry], silent: Sequence[str], screen: Terminal, *, everything: bool
) -> list[str]:
    lines = []
    if refused:
        names = ", ".join(
            f"builds of {partner['builds_of']}" if partner["builds_of"] else partner["component"]
            for partner in refused
        )
        lines += screen.wrap(f"no fact allows it with {names}")
    if silent:
        names = ", ".join(silent) if everything else terminal.some(silent, _NAMES)
        lines += screen.wrap(f"no fact joins it with {names}")
    return lines
