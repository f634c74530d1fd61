"""The records of the index as its readers see them: typed tuples, made where the index is read.

In the file each is a JSON array of the fields in the order of the class, which writer and reader share. A mask has bit
`n + 1` for release `n` of its component and bit 0 for its absence; conditions are masks by component.
"""

from __future__ import annotations

from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from toolmatrix.documents import Annotated, Evidence, TypedDict

    States = Mapping[str, tuple[int, int]]
    """Of files by name: size and time in nanoseconds, 0 where any will do."""

    class ComponentHead(TypedDict):
        """The fields of `model.Component`, and what is known of the code of its packages.

        `code` is its kind, empty where nothing is known; `against` are the components that its binaries are bound to.
        """

        name: str
        title: str
        scheme: Annotated[str, "pep440", "series", "names"]
        given: bool
        framework: bool
        hidden: bool
        floor: bool
        open: bool
        flag: bool
        variants: bool
        binds: bool
        variant_of: str
        under: str
        prefer: Annotated[str, "newest", "oldest"]
        major: int
        grid: str
        way: str
        accelerators: Sequence[str]
        code: str
        against: Sequence[str]

    class TargetHead(TypedDict):
        """The fields of `model.Target` but its name."""

        context: Mapping[str, str]
        accelerator: str
        policies: Mapping[str, str]

    class RuleHead(TypedDict):
        """A rule of inheritance, as answers name it."""

        evidence: Evidence
        reason: str

    class Header(TypedDict):
        """The header of an index; `sizes` are those of the files beside those of components, in bytes."""

        digest: str
        date: str
        files: States
        facts: int
        components: Mapping[str, ComponentHead]
        targets: Mapping[str, TargetHead]
        aliases: Mapping[str, str]
        packages: Mapping[str, str]
        rules: Mapping[str, RuleHead]
        sizes: Mapping[str, int]


class Binding(NamedTuple):
    """Hard: where a subject release in `mask` is chosen and the conditions hold, `component` is within `allowed`.

    `kind` is `requires`, `limits`, `fails` or `needs`, of which the last asks for one of the `alternatives`; `cites` is
    the number of the record of the claims behind it.
    """

    kind: str
    mask: int
    conditions: Mapping[str, int]
    component: str
    allowed: int
    alternatives: Sequence[str]
    evidence: str
    cites: int

    @property
    def named(self) -> Sequence[str]:
        """The components it speaks about."""
        return self.alternatives or (self.component,)


class BindingGroup(NamedTuple):
    """Bindings about the same component that differ in their releases alone, column by column.

    `releases` are those of the subject that any of them is about.
    """

    releases: int
    kind: str
    conditions: Mapping[str, int]
    component: str
    alternatives: Sequence[str]
    evidence: str
    masks: Sequence[int]
    alloweds: Sequence[int]
    cites: Sequence[int]

    @property
    def named(self) -> Sequence[str]:
        """The components it speaks about."""
        return self.alternatives or (self.component,)

    def binding(self, index: int) -> Binding:
        """The one at a place."""
        _, kind, conditions, component, alternatives, evidence, masks, alloweds, cites = self
        columns = masks[index], conditions, component, alloweds[index], alternatives
        return Binding._make((kind, *columns, evidence, cites[index]))

    def of(self, releases: int) -> list[Binding]:
        """The bindings of a mask of subject releases."""
        _, kind, conditions, component, alternatives, evidence, masks, alloweds, cites = self
        make = Binding._make
        return [
            make((kind, mask, conditions, component, allowed, alternatives, evidence, cite))
            for mask, allowed, cite in zip(masks, alloweds, cites, strict=True)
            if mask & releases
        ]


class RowGroup(NamedTuple):
    """Soft: tested rows about the same components with the same evidence, column by column.

    The first component is the subject. `carried`: an image or a build carries these versions, without a test.
    """

    conditions: Mapping[str, int]
    components: Sequence[str]
    evidences: Sequence[str]
    evidence: str
    carried: bool
    columns: Sequence[Sequence[int]]
    cites: Sequence[int]

    @property
    def subjects(self) -> Sequence[int]:
        """The mask of the subject in each row."""
        return self.columns[0]


class Dispute(NamedTuple):
    """For the subject releases in `mask` a rival claim says of `component` what the deciding claim does not."""

    component: str
    mask: int
    conditions: Mapping[str, int]
    rival: int
    evidence: str
    deciding: int
    allowed: int
    kind: str


PURE, RUN_TIME, OPENED_CODE, UNOPENED_CODE = ("pure", "run-time", "opened", "unopened")
"""Kinds of code in a package: Python alone, what is compiled where it runs, and binaries that were read or not."""
FAILS = "fails"
"""The kind of a binding by which releases do not go with some of another component; of all others it says nothing."""
JOINS_NONE = ("needs", FAILS)
"""Kinds of bindings that join no two releases: that something must be there, at whatever release, or must not be."""
REQUIREMENT = "requires {component} {value}"
"""What a limit says that METADATA of a package states: an installer brings the component, shown or not."""
BOUNDS = ("limits", FAILS)
"""Kinds of bindings that only exclude releases: they are no reason for the other component to be there."""
REFUSE = ("requires", *BOUNDS)
"""Kinds of bindings that may refuse releases of two components together."""
MINIMUM = "minimum-of-its-time"
"""The rule by which what came after a minimum was written is unread, by its name on the front page."""


class CitedClaim(NamedTuple):
    """A claim behind a binding or row: its record, its evidence there, and the rules that widened it."""

    ranges: Sequence[int]
    record: int
    evidence: str
    rules: Sequence[str]

    def covers(self, position: int) -> bool:
        """True if the claim covers the release with this bit; ranges are first, last, first, last, ..."""
        # The first end that is not below the position: a last (the position is inside), or the position itself.
        for before, end in enumerate(self.ranges):
            if end >= position:
                return before % 2 == 1 or end == position
        return False

    @property
    def mask(self) -> int:
        """The releases that the claim covers."""
        inside = 0
        bounds = iter(self.ranges)
        for first, last in zip(bounds, bounds, strict=True):
            inside |= (2 << last) - (1 << first)
        return inside

    def touches(self, mask: int) -> bool:
        """True if the claim covers any release in a mask."""
        return bool(mask & self.mask)


UNREVIEWED = {"harvested", "also-requires"}
"""The attributes of releases that were harvested for a request, which answers mention."""


class ComponentFacts(NamedTuple):
    """The section of a component: its releases, oldest first, and what is said with it as the subject.

    `releases` are the records of the releases, `since_days` the days on which series began and `since_masks` the
    releases of all that had by each, `packages` the variants by the package that installs them, `brings` the variants
    that bring the runtime of an accelerator, `unreviewed` what was harvested for a request, `complete` the releases
    whose requirements were read whole: what no fact names they do not require, but for `unbounded`, by component the
    releases that may require it, of whatever release. `blocks` are the offsets of the blocks of its records in their
    file, and its size.
    """

    blocks: Sequence[int]
    versions: Sequence[str]
    dates: Sequence[str]
    since_days: Sequence[str]
    since_masks: Sequence[int]
    yanked: int
    releases: Sequence[int]
    packages: Mapping[str, int]
    brings: int
    unreviewed: int
    complete: int
    unbounded: Mapping[str, int]
    binding_groups: Sequence[BindingGroup]
    row_groups: Sequence[RowGroup]
    disputes: Sequence[Dispute]

    @property
    def bindings(self) -> Iterator[Binding]:
        """The hard facts, one by one; frequent callers use the groups."""
        return (binding for group in self.binding_groups for binding in group.of(-1))

    def about(self, component: str, releases: int) -> Iterator[Binding]:
        """The bindings of a mask of releases about one component."""
        for group in self.binding_groups:
            if group.component == component and group.releases & releases:
                yield from group.of(releases)


class ClaimRecord(NamedTuple):
    """A claim as written: of `subject`, at `releases`, under the conditions; the selectors are as printed.

    `exact` they are one release, and none that is finer is meant.
    """

    id: str
    row: str
    kind: str
    subject: str
    releases: str
    conditions: Sequence[tuple[str, str]]
    component: str
    selector: str
    alternatives: Sequence[str]
    evidence: str
    source: str
    where: str
    says: str
    note: str
    rule: str
    beside: bool
    exact: bool


class ReleaseRecord(NamedTuple):
    """A release; `selector` is its version."""

    id: str
    kind: str
    component: str
    selector: str
    evidence: str
    source: str
    where: str
    date: str
    attributes: Mapping[str, str]


class RowRecord(NamedTuple):
    """A row as printed, cell by cell, behind what claims and releases may have from it."""

    id: str
    subject: str
    evidence: str
    source: str
    where: str
    note: str
    kind: str
    table: str
    about: str
    cells: Sequence[tuple[str, str]]


# The file has the number, so that another order is another format.
KINDS = (ClaimRecord, ReleaseRecord, RowRecord)
"""By the number that a record begins with in the file."""

if TYPE_CHECKING:
    FactRecord: TypeAlias = ClaimRecord | ReleaseRecord | RowRecord


class SourceRecord(NamedTuple):
    """A source in which facts were read, and the day."""

    title: str
    at: str
    read: str


class ChannelRecord(NamedTuple):
    """A place where variants are published; `install` are the words that pip needs to find them there."""

    title: str
    kind: Annotated[str, "index", "feed", "releases", "images"]
    source: str
    default: bool
    install: Sequence[str]


class BuildRecord(NamedTuple):
    """An image of a release that was built, and what its row says of it by column; `fact` is the id of the row.

    A row without `check` is of one that was not built, as the address in `missing` was not to be had.
    """

    fact: str
    cells: Mapping[str, str]


class ImageRecord(NamedTuple):
    """What a list says of images: whether they can be pulled on a day; `fact` is the id of the row that says so.

    `image` is a pattern, `recipe` where the recipes of deleted ones are, and `note` what to know of one that is there.
    """

    fact: str
    image: str
    pulls: str
    day: str
    recipe: str
    note: str


class SupportRecord(NamedTuple):
    """Until when releases of a component, those in `mask`, are supported; `fact` is the id of the row that says so.

    Of `until` and `ended_by` one is a day or a month, `2028-06`, and the other is empty: it had ended by then, on
    an unknown day.
    """

    fact: str
    mask: int
    until: str
    ended_by: str
    branch: str
    evidence: str


class BreakRecord(NamedTuple):
    """A release that broke what was made for those before it; `fact` is the id of the row that says so.

    `known` is the day from which makers could know, and `breaks` what it broke, as the end of a sentence.
    """

    fact: str
    release: str
    known: str
    breaks: str


class Term(NamedTuple):
    """A name that is no component, such as that of a GPU generation, and the rows about it.

    `also` are other names of it, `of` is the term that it is a part of, and `after` the one that came before it.
    """

    name: str
    kind: str
    also: Sequence[str]
    of: str
    after: str
    says: str
    rows: Sequence[str]


class ReportRecord(NamedTuple):
    """A failure of two components that was reported, and the lines by which it shows in a log.

    `fact` is the id of the claim, `releases` and `selector` are those of the subject and the component that fail.
    """

    fact: str
    subject: str
    releases: str
    component: str
    selector: str
    symptoms: Sequence[str]
    source: str
    evidence: str


class Product(NamedTuple):
    """A name that a device is sold under: its machine, where it is on one board with a CPU, and the kind of GPU."""

    device: str
    name: str
    machine: str
    kind: str
