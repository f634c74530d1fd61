"""The layout of the files of a matrix: the keys of each mapping, and which of them must be there.

The loader refuses other keys by these classes, and tests/schemas.py makes of them the schemas that editors read. A key
has `-` where a field has `_`; a field with a default is optional. docs/facts.md says what each key means.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from toolmatrix.documents import (
    Annotated,
    Any,
    ComponentName,
    Day,
    Evidence,
    Flag,
    Id,
    NonEmpty,
    Ordinal,
    PackageName,
    Rank,
    Text,
)
from toolmatrix.factbase.model import DATA_LISTS, KINDS, LISTS, SCHEMES
from toolmatrix.value import Value

FRONT = "toolmatrix.matrix/1"
FACTS = "toolmatrix.facts/1"
INSTALL_SOURCES = ("source", "wheel")
ORDERS = ("newest", "oldest")
WIDENINGS = ("minor", "series")
DEFINITIONS = ("releases", "variants")
CHANNELS = ("index", "feed", "releases", "images")

Texts = Text | tuple[Text, ...]
Selector = Text
"""Which versions: `*`, `11.2`, `>=11.2,<12`, `~=1.19.2`, `!=4.21.0`, `==3.9.*`, `3.6-3.9`, alternatives separated by
spaces or `|`, `absent`."""
Conditions = Mapping[str, Selector]
"""Component: selector. All must hold."""
NO_CONDITIONS: Conditions = {}
EvidenceWord = Evidence
"""How well it is known, best first: ran (a capture is kept), artifact (read out of a published file), tested (the
vendor's tested row), stated (the vendor says supported), derived (by a named rule), reported (a third party),
unknown."""
SourceName = Text
"""A key under `sources`."""
Where = Text
"""The place in the source: table, row, line, field."""
StandsFor = Texts
"""Rules of inheritance of the front page."""
Decides = Flag
"""false: kept and shown as disputed, never deciding; needs a note."""
Unreleased = Flag
"""The selector may name versions that were never released."""


class ComponentLayout(Value):
    """A component."""

    title: Text
    """What people see."""
    scheme: Annotated[str, SCHEMES]
    """How versions are compared: pep440 (dotted numbers), series (one candidate per series), names (no order; each
    carries a rank)."""
    given: Flag = False
    """Fixed by the request, never chosen."""
    framework: Flag = False
    """Something people ask for."""
    hidden: Flag = False
    """Solved with, and shown only on request."""
    floor: Flag = False
    """Its version is a lower bound."""
    open: Flag = False
    """Unlisted versions may exist."""
    flag: Flag = False
    """A compiler flag."""
    variants: Flag = False
    """It is published in several builds, which tables with `defines: variants` list."""
    binds: Flag = False
    """Binaries that are compiled against one of its minor releases go with no other."""
    under: Text = ""
    """The component it belongs to."""
    prefer: Annotated[str, ORDERS] = ""
    major: Ordinal = 0
    """How many numbers of a version make a major: a minimum holds up to the newest one of the day on which it was
    written."""
    grid: Selector = ""
    """Which of its releases a grid shows as columns."""
    way: Annotated[str, INSTALL_SOURCES] = ""
    """How a request that names it gets frameworks by default: a build tool builds them, a driver runs wheels."""
    accelerators: tuple[Text, ...] = ()
    """The accelerators it can use."""


class TargetLayout(Value):
    """Where a result runs."""

    context: Conditions
    accelerator: Text
    """Used where nothing else is asked for."""
    policies: Conditions = NO_CONDITIONS
    """What a port asks for where it can have it."""


class RuleLayout(Value):
    """A named rule of inheritance."""

    widens: Annotated[str, WIDENINGS] | Conditions = ""
    """What a row also speaks for: the patches of its minor, its series, or another context."""
    evidence: EvidenceWord
    reason: Text


class FrontPage(Value):
    """The front page of a matrix; docs/facts.md."""

    schema: Annotated[str, FRONT]
    date: Day
    """The day from which it is; that of the newest reading of a source, if that is later."""
    components: Mapping[ComponentName, ComponentLayout]
    """In the order in which the solver chooses."""
    aliases: Mapping[str, Text] = {}
    """What people call components besides: name to component."""
    targets: Mapping[str, TargetLayout]
    """Where a result runs; the first is the default."""
    rules: Mapping[str, RuleLayout] = {}
    """Named rules of inheritance."""
    families: Text = ""
    """The file of the families that harvesters read, relative to this one: its names of packages are names here."""
    files: tuple[Text, ...]
    """The fact files, relative to this one; their order says nothing."""


class SourceLayout(Value):
    """What was read."""

    title: Text
    at: Text
    """repository:path@commit, package and version, or an address."""
    read: Day


class ReleaseLayout(Value):
    """A release; other keys are its attributes."""

    extra_items = Any

    date: Day = ""
    rank: Rank = 0
    """For the scheme `names`: the higher is preferred."""
    yanked: Flag = False
    """Known, and never chosen unless named exactly."""


class ReleaseList(Value):
    """Releases of a component."""

    id: Id
    component: Text
    source: SourceName
    evidence: EvidenceWord
    where: Where
    versions: Mapping[str, ReleaseLayout | None]
    about: Text = ""


class CellLayout(Value):
    """A selector with what only it says."""

    is_: Selector
    when: Conditions = NO_CONDITIONS
    evidence: EvidenceWord = ""
    where: Where = ""
    note: Text = ""
    decides: Decides = True
    unreleased: Unreleased = False
    source: SourceName = ""
    at_least: Flag = False
    """In a column that limits: not everything was read, so that what the selector does not admit is unknown."""


Cell = Text | bool | CellLayout


class RowLayout(Value):
    """A row; other keys are columns."""

    extra_items = Cell | tuple[Cell, ...]

    id: Id = ""
    source: SourceName = ""
    where: Where = ""
    evidence: EvidenceWord = ""
    note: Text = ""
    decides: Decides = True


class ColumnLayout(Value):
    """The meaning of a column."""

    as_: Annotated[str, KINDS]
    """when (narrows), requires (must be there), limits (if there), offers (if there; several offers add up), tested
    (ranks, never refuses), carries (requires and tested), names (limits by a toolkit that knows the device by name),
    attribute (data about the subject)."""
    component: Text = ""
    """Default: the name of the column."""
    topic: Text = ""
    """Claims of one topic are rivals."""
    context: Conditions = NO_CONDITIONS
    rule: Text = ""
    says: Text = ""
    """May hold {subject}, {release}, {component}, {value}."""
    unreleased: Unreleased = False
    evidence: EvidenceWord = ""
    rival: Flag = False
    """Tested rows that share nothing are disputed."""
    beside: Flag = False
    """Of a variant: what its cells name is not inside and not brought by it; it has to be there."""
    complete: Flag = False
    """A row without a cell wants none of it: the source was read whole."""


class RequirementsLayout(Value):
    """What the releases of its rows require was read whole: nothing but what facts and `others` name."""

    others: tuple[PackageName, ...]
    """Packages that they require and that are no component, by their normalized names."""
    unread: Selector = ""
    """The releases whose requirements were not all read."""


class TableLayout(Value):
    """A table of anything but variants."""

    id: Id
    about: Text = ""
    source: SourceName
    where: Where = ""
    evidence: EvidenceWord
    context: Conditions = NO_CONDITIONS
    """Narrows every row."""
    key: Text
    """The column with the subject of each row."""
    stands_for: StandsFor = ()
    columns: Mapping[str, ColumnLayout | tuple[ColumnLayout, ...]]
    rows: tuple[RowLayout, ...]
    defines: Annotated[str, DEFINITIONS] = ""
    """releases: the versions in the key column were released. variants: each row is a published build of them, with
    `line`, `channel` and `machine`."""
    lists: Annotated[str, LISTS] = ""
    """builds: each row is an image that was built, or was not. products: each row has names that a device is sold
    under. support: each row says until when releases are supported. breaks: each row is a release that broke what was
    made for those before it, with `known` (a day) and `breaks` (what)."""
    note: Text = ""
    extends: Flag = False
    """Of variants: they are loaded into another package's process, which holds code of its own."""
    requirements_read: RequirementsLayout | None = None


class VariantTableLayout(TableLayout):
    """A table; each of its rows, or it, has a `where`."""

    install: Text = ""
    """Of variants: the requirement that installs one, with `{release}`, `{line}`, `{machine}`, `{python}` and
    `{abitag}` (tags such as cp311); a row may say another."""
    matches: Texts = ()
    """Of variants: components whose build of the same line they go with."""


class StatementLayout(Value):
    """What holds where versions are as `when` says."""

    any_of = ("needs", "requires", "limits", "fails", "offers", "tested")

    id: Id
    evidence: EvidenceWord
    source: SourceName
    """A key under `sources`, or a thread of GitHub with `read`: `owner/name#123`, `owner/name@v1.2`."""
    where: Where
    note: Text = ""
    when: Conditions
    """The first is the subject."""
    needs: tuple[Text | NonEmpty[Text], ...] = ()
    """Components that must be there; a list inside: one of these."""
    requires: Conditions = NO_CONDITIONS
    limits: Conditions = NO_CONDITIONS
    fails: Conditions = NO_CONDITIONS
    """Releases that it does not go with, as was reported; of all others it says nothing."""
    offers: Conditions = NO_CONDITIONS
    tested: Conditions = NO_CONDITIONS
    symptom: Texts = ()
    """Lines by which `fails` shows in a log, `...` for what differs."""
    read: Day = ""
    """The day on which a thread was read that is the source."""
    says: Text = ""
    topic: Text = ""
    stands_for: StandsFor = ()
    decides: Decides = True
    rule: Text = ""
    unreleased: Unreleased = False


class DataLayout(Value):
    """Sourced rows about what is no component."""

    id: Id
    about: Text = ""
    source: SourceName
    where: Where
    evidence: EvidenceWord
    columns: tuple[Text, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: Text = ""
    lists: Annotated[str, DATA_LISTS] = ""
    """What each row is about. code: that of one component, with `component`, `kind`, `against`. images: whether some
    images can be pulled, with `image` (a pattern), `pulls` (yes or no), `day`, `recipe`, `note`. terms: a name, in its
    first column `name`, which `show` and `search` know. independent: a package of Python alone, with `package`,
    `releases`, `requires-python`, `requires`, `published`."""


class ChannelLayout(Value):
    """Where variants are published."""

    id: Id
    title: Text
    """What people see."""
    kind: Annotated[str, CHANNELS]
    """index (packages by name), feed (an index beside the default one), releases (files of a release page), images."""
    source: SourceName
    evidence: EvidenceWord
    where: Where
    default: Flag = False
    """The one that is asked by default."""
    install: tuple[Text, ...] = ()
    """Arguments of pip beside the requirement; `{line}` is replaced by the line."""
    lines: Mapping[str, tuple[Text, ...]]
    """By accelerator, the lines it carries, the oldest first."""
    unread: tuple[Text, ...] = ()
    """Components that it publishes as well, in builds that were not read."""


class FactFile(Value):
    """A file of facts; docs/facts.md."""

    schema: Annotated[str, FACTS]
    sources: Mapping[str, SourceLayout] = {}
    """What was read; keys are unique over the whole matrix."""
    channels: tuple[ChannelLayout, ...] = ()
    """Where variants are published."""
    releases: tuple[ReleaseList, ...] = ()
    tables: tuple[VariantTableLayout, ...] = ()
    statements: tuple[StatementLayout, ...] = ()
    data: tuple[DataLayout, ...] = ()
    """Sourced rows about what is no component."""
    components: Mapping[ComponentName, ComponentLayout] = {}
    """Components that the front page does not have."""


@cache
def keys(entry: type[Value]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of a mapping, and those of them that must be there."""
    named = {field: field.rstrip("_").replace("_", "-") for field in entry._fields}
    required = (key for field, key in named.items() if field not in entry._defaults)
    return tuple(named.values()), tuple(required)
