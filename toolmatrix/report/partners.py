"""What goes with a release, as a document and for people: by component, tested before allowed before refused."""

from __future__ import annotations

from toolmatrix.documents import Annotated, Evidence, HasFrom, MatrixHead, NonEmpty, TypedDict
from toolmatrix.facts import evidence as words
from toolmatrix.report import answer, claims, terminal, variants
from toolmatrix.solve.pairs import SAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.report.answer import WantedEntry
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.pairs import PairFact, Partner, Partners

SCHEMA = "toolmatrix.partners/1"
_WORDS = {"tested": "yes", "allowed": "yes", "refused": "no", "unknown": "unknown"}
# So much of each is told unless all is asked for: ranges of releases, of what does not go, sources, names.
_RANGES, _REFUSED, _SOURCES, _NAMES = 8, 4, 3, 12
_INDENT = " " * 21


class WayEntry(HasFrom):
    """A way to get a framework for a target."""

    target: str
    accelerator: str


class SaidEntry(TypedDict):
    """Releases of which facts say the same, as well known as the word says."""

    says: Annotated[str, SAYS]
    releases: NonEmpty[str]
    evidence: Evidence
    facts: NonEmpty[str]


class PartnerEntry(TypedDict):
    """The releases of a component by what is said of them."""

    component: str
    builds_of: str
    said: list[SaidEntry]
    unknown: list[str]


class PartnersDocument(TypedDict):
    """What `toolmatrix what --json` prints: which releases of other components go with those asked about, which do
    not, and of which nobody speaks.
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


def document(index: Index, found: Partners) -> PartnersDocument:
    """What goes with the releases as JSON values: of each component that a fact joins with them, all releases."""
    ways = [answer.request_document(request) for request in found.requests]
    heads = index.header["components"]
    # Of which release a build is, is no question.
    own = heads[found.component]["variant_of"]
    joined = [
        partner
        for partner in found.partners
        if partner.facts and partner.usable and partner.component != own
    ]
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        # The ways differ in nothing else.
        "request": answer.wanted_document(found.requests[0]),
        "ways": [
            {
                "target": way["targets"][0],
                "from": way["from"],
                "accelerator": way["accelerator"][way["targets"][0]],
            }
            for way in ways
        ],
        "component": found.component,
        "releases": index.scale(found.component).named(found.mask),
        "needs": [list(names) for names in found.needs],
        "partners": [_partner(index, partner, found.component) for partner in joined],
        "unjoined": [
            partner.component
            for partner in found.partners
            if not (partner.facts or heads[partner.component]["variant_of"])
        ],
    }


def _partner(index: Index, partner: Partner, subject: str) -> PartnerEntry:
    scale = index.scale(partner.component)
    builds_of = index.header["components"][partner.component]["variant_of"]
    # Every build requires its own release: the builds of all others would be told as refused.
    says = [word for word in SAYS if word != "refused" or builds_of != subject]
    return {
        "component": partner.component,
        "builds_of": builds_of,
        "said": [
            {
                "says": word,
                "releases": scale.named(mask),
                "evidence": evidence,
                "facts": sorted(cited(index, mask, facts)),
            }
            for word in says
            for evidence, mask, facts in partner.by_evidence(word)
        ],
        "unknown": scale.named(partner.unknown),
    }


def cited(index: Index, mask: int, facts: Iterable[PairFact]) -> set[str]:
    """The ids of the claims by which facts say something of some releases of a partner."""
    found = set()
    for said in facts:
        # A fact about the partner is cited for the releases that are told, one about the subject for its own.
        own = said.touching & mask if said.touching == said.mask else said.touching
        told = [cite for cite in index.cites(said.cites) if cite.touches(own)]
        found |= {index.claim(cite.record).id for cite in told}
    return found


def positive(held: PartnersDocument) -> bool:
    """True if some release of some component is known to go with what was asked about."""
    return any(said["says"] != "refused" for part in held["partners"] for said in part["said"])


def text(
    index: Index, held: PartnersDocument, screen: Terminal, *, everything: bool = False
) -> str:
    """What goes with the releases for people, by component; what only refuses them, and what is silent, at the end."""
    notes = claims.Notes(index)
    heads = index.header["components"]
    # What answers leave out is left out here too.
    quiet = {name for name, head in heads.items() if head["hidden"] or head["flag"]}
    quiet = set() if everything else quiet
    parts = [part for part in held["partners"] if part["component"] not in quiet]
    shown = [part for part in parts if everything or _goes(part)]
    blocks = [_lines(index, part, notes, screen, everything=everything) for part in shown]
    refused = [part for part in parts if part not in shown]
    silent = [name for name in held["unjoined"] if name not in quiet]
    return terminal.blocks(
        [
            _head(index, held, quiet),
            *blocks,
            _rest(refused, silent, screen, everything=everything),
            notes.lines(screen.width),
        ]
    )


def _goes(part: PartnerEntry) -> bool:
    return any(said["says"] != "refused" for said in part["said"])


def _head(index: Index, held: PartnersDocument, quiet: Collection[str]) -> list[str]:
    component = held["component"]
    named = claims.named_as(index, component)
    of = claims.ranged(index, component, held["releases"]) or "of any release"
    if named != component:
        of = ranges(index, component, held["releases"])
    ways = zip(
        *((way["target"], way["from"], way["accelerator"]) for way in held["ways"]), strict=True
    )
    target, source, accelerator = (terminal.listing([*dict.fromkeys(way)], "or") for way in ways)
    lines = [f"{named} {of} on {target}, from {source}, accelerator {accelerator}"]
    needs = [
        terminal.listing(names, "or")
        for names in held["needs"]
        if not any(name in quiet or name != claims.named_as(index, name) for name in names)
    ]
    return [*lines, f"needs {', '.join(needs)}"] if needs else lines


def _lines(
    index: Index, part: PartnerEntry, notes: claims.Notes, screen: Terminal, *, everything: bool
) -> list[str]:
    lines = [f"{part['builds_of']}, its builds" if part["builds_of"] else part["component"]]
    for said in _merged(part):
        told = ranges(index, part["component"], said["releases"])
        most = _REFUSED if said["says"] == "refused" else _RANGES
        sources = dict.fromkeys(index.record(index.number(fact)).source for fact in said["facts"])
        # The releases of a family rest on as many tables: the rest of the sources is in the document.
        marks = notes.mark(list(sources)[: None if everything else _SOURCES])
        word = screen.style(said["says"].ljust(8), _WORDS[said["says"]])
        shown = told if everything else few(told, most)
        lines += screen.wrap(f"{shown} {marks}", f"  {word} {said['evidence']:9} ", _INDENT)
    if part["unknown"]:
        told = ranges(index, part["component"], part["unknown"])
        word = screen.style("unknown".ljust(18), "unknown")
        lines += screen.wrap(told if everything else few(told, _REFUSED), f"  {word} ", _INDENT)
    return lines


def _merged(part: PartnerEntry) -> Iterator[SaidEntry]:
    """What is said of a component, all that is refused in one line, which is worth its weakest fact."""
    yield from (said for said in part["said"] if said["says"] != "refused")
    # Which of the facts refuses which release helps nobody who looks for what goes.
    refused = [said for said in part["said"] if said["says"] == "refused"]
    if refused:
        yield {
            "says": "refused",
            "releases": [name for said in refused for name in said["releases"]],
            "evidence": words.weakest(said["evidence"] for said in refused),
            "facts": [fact for said in refused for fact in said["facts"]],
        }


def few(told: str, most: int) -> str:
    """At most so many ranges of releases, and how many more there are."""
    ranges = told.split(", ")
    if len(ranges) <= most:
        return told
    return f"{', '.join(ranges[:most])} and {len(ranges) - most} more"


def ranges(index: Index, component: str, names: Sequence[str]) -> str:
    """Releases as ranges; builds by their line, with the releases that are published in it."""
    of = index.header["components"][component]["variant_of"]
    if not of:
        told = claims.ranged(index, component, names)
        names_only = index.header["components"][component]["scheme"] == "names"
        # The last of them are those that an answer would rather have.
        return ", ".join(reversed(names)) if names_only else told or "any release"
    by_line: dict[str, list[str]] = {}
    for name in names:
        build = variants.build(index, component, name)
        default = index.channel(build.channel).default
        line = build.line if default else f"{build.line} ({build.channel})"
        by_line.setdefault(line, []).append(build.release)
    return ", ".join(
        # `few` tells ranges apart by their commas: within those of one line there is to be none.
        f"{line} of {claims.ranged(index, of, releases) or 'any release'}".replace(", ", " ")
        for line, releases in by_line.items()
    )


def _rest(
    refused: Sequence[PartnerEntry], silent: Sequence[str], screen: Terminal, *, everything: bool
) -> list[str]:
    lines = []
    if refused:
        told = ", ".join(
            f"builds of {part['builds_of']}" if part["builds_of"] else part["component"]
            for part in refused
        )
        lines += screen.wrap(f"no fact allows it with any of {told}")
    if silent:
        told = ", ".join(silent) if everything else terminal.some(silent, _NAMES)
        lines += screen.wrap(f"no fact joins it with {told}")
    return lines
