"""Facts in words: one claim as a sentence fragment, its source as a numbered note.

Wording is made here and nowhere else, from records of the index; a table may bring its own words (`says`).
"""

from __future__ import annotations

from toolmatrix.documents import Ordinal, TypedDict
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.records import FAILS, ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.report import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import FactRecord
    from toolmatrix.finding import Incompatibility
    from toolmatrix.lockfile.model import LockedTarget
    from toolmatrix.solve.support import Choice, Cite

# A file of a repository, or all of it, at a commit: `owner/name:path@commit`.
_IN_REPOSITORY = r"([\w.-]+/[\w.-]+)(?::([\w./*+-]+))?@([0-9a-f]{7,40})"
# So many names are listed in one sentence.
_NAMES = 6
# A list of releases longer than this many letters is cut to the one that matters.
_LONG = 28


class NoteEntry(TypedDict):
    """A source by its number, with the address that a browser opens, if it has one."""

    number: Ordinal
    name: str
    title: str
    at: str
    read: str
    address: str


class Notes:
    """Sources in the order they are cited, each numbered once."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.numbers: dict[str, int] = {}

    def mark(self, sources: Iterable[str]) -> str:
        """`[1][3]` for the sources given."""
        return "".join(f"[{number}]" for number in self.numbered(sources))

    def numbered(self, sources: Iterable[str]) -> list[int]:
        """The numbers of the sources given."""
        # A set would number the sources of one fact differently on every run.
        return sorted(
            self.numbers.setdefault(source, len(self.numbers) + 1)
            for source in dict.fromkeys(sources)
        )

    def cite(self, facts: Iterable[str]) -> str:
        """The marks for the sources of facts, given by their ids."""
        return self.mark(self.sources(facts))

    def sources(self, facts: Iterable[str]) -> Iterator[str]:
        """The sources of facts, given by their ids."""
        return (self.index.record(self.index.number(fact)).source for fact in facts)

    def carrier(self, facts: Sequence[str], evidence: str) -> str:
        """The mark for the source that carries the evidence of a locked value; empty where the matrix lacks it."""
        record = carrier(self.index, facts, evidence)
        return self.mark([record.source]) if record else ""

    def lines(self, width: int = 0) -> list[str]:
        """Number, place, title, day it was read: one line per note, or several where it is wider than `width`."""
        paragraphs = []
        for name, number in self.numbers.items():
            source = self.index.source(name)
            mark = f"[{number}] "
            title = f"{source.title}, read {source.read}"
            if not width or len(mark + source.at + title) + 2 <= width:
                paragraphs.append(f"{mark}{source.at}  {title}")
            else:
                # A path in a repository has no blanks: it overflows rather than being broken.
                paragraphs += terminal.wrap(source.at, width, indent="    ", first=mark)
                paragraphs += terminal.wrap(title, width, indent="    ")
        return paragraphs

    def document(self) -> list[NoteEntry]:
        """The notes as JSON values in their order, each with the address that a browser opens, if it has one."""
        return [
            {
                "number": number,
                "name": name,
                "title": source.title,
                "at": source.at,
                "read": source.read,
                "address": address(source.at),
            }
            for name, number in self.numbers.items()
            for source in [self.index.source(name)]
        ]


def address(at: str) -> str:
    """The address of a source that is one, or a file of a repository at a commit; else nothing."""
    if at.startswith(("https://", "http://")):
        return at if at.isprintable() and " " not in at else ""
    # A text that is printed has no addresses, and does not wait for this import.
    import re

    match = re.fullmatch(_IN_REPOSITORY, at)
    if not match:
        return ""
    repository, path, commit = match.groups()
    location = path or ""
    if "*" in location:
        # Of several files the folder is shown.
        location = location.partition("*")[0].rpartition("/")[0]
    kind = "blob" if location and location == path else "tree"
    return f"https://github.com/{repository}/{kind}/{commit}/{location}".rstrip("/")


def series(version: str) -> str:
    """`2.6.*` for 2.6.0: the minor series that a row represents."""
    return ".".join(version.split(".")[:2]) + ".*"


def because(
    record: ClaimRecord | ReleaseRecord, rules: Sequence[str], component: str, version: str
) -> str:
    """The reason that a claim gives for a chosen version, as a fragment for the end of a line."""
    if isinstance(record, ReleaseRecord):
        return _released(record)
    subject, release, value = record.subject, record.releases, record.selector
    mine = version if subject == component else ""
    if record.component != component:
        version = ""
    # The text of a tested row shows these two already: it names a release and its series.
    named = [name for name in rules if name not in ("same-minor", "same-series")]
    by_rule = f", by rule {' and '.join(named)}" if named else ""
    if record.says:
        return filled(record, version, mine) + by_rule
    if record.kind != "tested":
        verb = record.kind if record.kind in ("requires", "offers") else "allows"
        claim = claimed(verb, record.component, shortened(value, version))
        return f"{subject} {shortened(release, mine)} {claim}{by_rule}"
    if subject == component:
        return f"row {subject} {release} names {record.component} {shortened(value)}{by_rule}"
    # A row that names 3.9 names the chosen 3.9.7 as well, and needs not say so.
    exact = value == version or version.startswith(value + ".")
    row = f"row {release}" if exact else f"row {release} ({record.component} {shortened(value)})"
    stands = f" is assumed for {series(release)}" if "same-minor" in rules else ""
    return f"{row}{stands}{by_rule}"


def best(index: Index, choice: Choice) -> Cite:
    """The cite that carries the evidence of a choice."""
    carried = [
        cite
        for cite in choice.cites
        if cite.evidence == choice.evidence or choice.component == "device"
    ]

    def standing(cite: Cite) -> tuple[bool, bool, int, str]:
        # The claim of a build about itself comes first, and of a device that about the code it runs.
        record = index.statement(cite.record)
        subject = record.subject if isinstance(record, ClaimRecord) else ""
        build = bool(subject) and bool(index.header["components"][subject]["variant_of"])
        runs = choice.component == "device" and record.component == "arch"
        return not build, not runs, len(cite.rules), record.id

    return min(carried or choice.cites, key=standing)


def reason(index: Index, choice: Choice) -> str:
    """The reason for this version, in one fragment."""
    cite = best(index, choice)
    record = index.statement(cite.record)._replace(evidence=cite.evidence)
    return because(record, cite.rules, choice.component, choice.version)


def carrier(index: Index, facts: Sequence[str], evidence: str) -> FactRecord | None:
    """The record that carries the evidence of a locked value, None where the matrix has none of its facts."""
    # A lock may be older than the matrix, and name facts that are no longer there.
    records = index.known(facts)

    def rank(record: FactRecord) -> tuple[bool, bool, bool]:
        # A lock lists facts without saying which of them decided. A claim says more than the row it stands in, one
        # of the same evidence is likely the one, and what is `derived` was derived from a tested row.
        other = record.evidence != evidence
        return isinstance(record, RowRecord), other, other and record.kind != "tested"

    return min(records, key=rank, default=None)


def locked_reason(
    record: FactRecord, target: LockedTarget | None, component: str, value: str
) -> str:
    """The reason that a record gives for a value of a lock; empty for a row, which makes no claim."""
    if isinstance(record, RowRecord):
        return ""
    rules = []
    if record.kind == "tested" and isinstance(record, ClaimRecord) and target is not None:
        chosen = target.components.get(record.subject)
        # A lock lists no rules, but a row of another release than the chosen one can only apply by this one.
        rules = ["same-minor"] if chosen and chosen.version != record.releases else []
    return because(record, rules, component, value.removeprefix(">="))


def disagreement(record: ClaimRecord) -> str:
    """A rival claim in a few words."""
    release = record.releases
    if record.kind != "tested":
        return f"{record.subject} {shortened(release)} says {shortened(record.selector)}"
    return f"row {release} says {shortened(record.selector)}"


def claimed(verb: str, component: str, values: str) -> str:
    """A claim about a component: `requires cuda 11.2`, `requires cuda`, `excludes cuda`."""
    if values == "absent":
        return f"excludes {component}"
    return f"{verb} {component}" if values == "*" else f"{verb} {component} {values}"


def filled(record: ClaimRecord, version: str = "", mine: str = "") -> str:
    """The text of a table with its placeholders filled in; `mine` is the chosen release of its subject."""
    # Not by `str.format`: the words are data, in which any other brace is only a brace.
    words = record.says
    for name, value in (
        ("subject", record.subject),
        # That it is this release and none that is finer is for the solver.
        ("release", shortened(record.releases.removeprefix("==="), mine)),
        ("component", record.component),
        ("value", shortened(record.selector, version)),
    ):
        words = words.replace("{" + name + "}", value)
    return words


def ranged(index: Index, component: str, releases: Sequence[str]) -> str:
    """Releases as merged ranges: `2.6.0-2.6.5`, `3.6-3.9, 3.11`; nothing when all of several are meant."""
    if not releases:
        return ""
    versions = index.component(component).versions
    positions = sorted({versions.index(name) for name in releases})
    if len(positions) == len(versions) > 1:
        return ""
    if index.header["components"][component]["variant_of"]:
        return " ".join(dict.fromkeys(_build(index, versions[position]) for position in positions))
    if index.header["components"][component]["scheme"] == "names":
        # Names have no order by which a range would say what lies within it.
        return " ".join(versions[position] for position in positions)
    spans: list[list[int]] = []
    for position in positions:
        if spans and spans[-1][-1] == position - 1:
            spans[-1].append(position)
        else:
            spans.append([position])
    ends = [(versions[span[0]], versions[span[-1]]) for span in spans]
    return ", ".join(first if first == last else f"{first}-{last}" for first, last in ends)


def _build(index: Index, name: str) -> str:
    # The rest of the sentence names the machine, and the default channel is what pip asks anyway.
    build, _, where = name.partition("@")
    channel = where.partition("/")[0]
    return build if index.channel(channel).default else f"{build} ({channel})"


def union(index: Index, component: str, selectors: Sequence[str]) -> str:
    """Several selectors as one: the one that admits all that the others do, else their releases as ranges."""
    if len(selectors) == 1:
        return shortened(selectors[0])
    scale = index.scale(component)
    masks = [scale.select(selector) for selector in selectors]
    # One that admits all that the others do is shown as it was printed.
    whole = 0
    for mask in masks:
        whole |= mask
    if whole in masks:
        return shortened(selectors[masks.index(whole)])
    return shortened(ranged(index, component, scale.named(whole))) or "*"


def shortened(selector: str, version: str = "") -> str:
    """A selector as people read it; of a long list only the release that matters, or its ends."""
    words = selector.split()
    if len(selector) <= _LONG or len(words) < 3:
        return selector
    return version or f"{words[0]} ... {words[-1]}"


def _released(record: ReleaseRecord) -> str:
    if record.evidence == "unknown":
        return "free choice: no fact ties it to the request"
    if "channel" in record.attributes:
        return f"is published on {record.attributes['channel']}"
    if "effect" in record.attributes:
        return record.attributes["effect"]
    return f"released {record.date}" if record.date else "released"


def open_question(index: Index, ground: Incompatibility, *, offered: bool) -> str:
    """The question that an unread statement leaves open."""
    releases = ranged(index, ground.subject, ground.releases)
    named = f"{named_as(index, ground.subject)} {terminal.few(releases, _NAMES)}".rstrip()
    head = index.header["components"][ground.subject]
    # A hidden component has no public name: its title is the question.
    if head["hidden"] and head["under"] == ground.component:
        return f"no fact says {head['title']}"
    # What is left open of some releases alone is asked of these.
    if ground.clashing and all(value.startswith("!=") for value in ground.values):
        clashing = ranged(index, ground.component, ground.clashing)
        return f"no fact says whether {named} goes with {ground.component} {clashing}"
    if ground.kind == FAILS:
        failing = ranged(index, ground.component, ground.clashing) or union(
            index, ground.component, ground.values
        )
        return f"a part of {named} was reported to fail with {ground.component} {failing}"
    about = index.header["components"][ground.component]["title"]
    return f"no fact says which {about} {named} {'offers' if offered else 'goes with'}"


def silence(index: Index, ground: Incompatibility) -> str:
    """`open_question` by the kind of the fact that says so."""
    if not ground.facts:
        return open_question(index, ground, offered=False)
    record = index.claim(index.number(ground.facts[0]))
    words = open_question(index, ground, offered=record.kind == "offers")
    if record.evidence == UNKNOWN:
        # A doubt about single releases says what gave rise to it.
        doubts = ground.clashing and all(value.startswith("!=") for value in ground.values)
        return f"{words}: {record.note}" if doubts and record.note else words
    # What was read in part is known as well as any other fact; what came after a minimum is unknown.
    if ground.evidence != UNKNOWN:
        words += f" besides {shortened(record.selector)}"
        return f"{words}: {record.note}" if record.rule and record.note else words
    return _outdated(index, ground, record)


def _outdated(index: Index, ground: Incompatibility, record: ClaimRecord) -> str:
    """A minimum, the day on which it was written, and what it cannot know."""
    from toolmatrix.factbase import minimums

    day = minimums.day(index, record, ground.releases)
    later = minimums.find_later(
        minimums.of_index(index, ground.component, record.subject), record.selector, day
    )
    releases = terminal.few(ranged(index, ground.subject, ground.releases), _NAMES)
    asks = "" if record.selector == "*" else f" {shortened(record.selector)}"
    words = f"{named_as(index, ground.subject)} {releases} goes with {ground.component}{asks}, written {day}"
    if later is None:
        return words
    title = index.header["components"][ground.component]["title"].partition(" (")[0]
    before = f"before {title} {later.release}"
    return f"{words}, {before}, which {later.breaks}" if later.breaks else f"{words}, {before}"


def named_as(index: Index, component: str) -> str:
    """The name of a component in a sentence: a build goes by the component that it is a build of."""
    # The name of a variant is an internal id of the index.
    of: str = index.header["components"][component]["variant_of"]
    return of or component
