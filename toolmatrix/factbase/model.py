"""The model of the matrix as its files say it: components, sources, releases, rows and claims. No masks, no decisions.

Made by `load`, turned into the index by `compile`; docs/facts.md gives the meaning of every field.
"""

from __future__ import annotations

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import OPENED_CODE, PURE, RUN_TIME, UNOPENED_CODE
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.factbase.yamlfile import YamlNode

SCHEMES = ("pep440", "series", "names")
KINDS = ("when", "requires", "limits", "offers", "tested", "carries", "names", "attribute")


class Component(Value):
    """Anything with versions that others care about."""

    name: str
    title: str
    scheme: str
    given: bool = False
    framework: bool = False
    hidden: bool = False
    floor: bool = False
    open: bool = False
    flag: bool = False
    variants: bool = False
    binds: bool = False
    variant_of: str = ""
    under: str = ""
    prefer: str = "newest"
    major: int = 0
    grid: str = ""
    way: str = ""
    accelerators: tuple[str, ...] = ()


CODE = (PURE, RUN_TIME, OPENED_CODE, UNOPENED_CODE)
"""The kinds of code in a package: Python alone; compiled where it runs; binaries that were read; others."""


class Target(Value):
    """A place where results run: the context it fixes and the policies that hold there."""

    name: str
    context: Mapping[str, str]
    accelerator: str
    policies: Mapping[str, str]


class InheritanceRule(Value):
    """A named rule of inheritance: how a row may cover what it does not name."""

    name: str
    evidence: str
    reason: str
    widens: str = ""
    context: Mapping[str, str]


class FactSource(Value):
    """A source of statements: title, place (repository:path@commit, package, address), and the day."""

    name: str
    title: str
    at: str
    read: str


class Channel(Value):
    """A place where variants are published.

    `install` is what pip gets beside the requirement, `lines` are the accelerators by line, the oldest line first.
    `unread` are components that it also publishes, in builds that were not read.
    """

    name: str
    title: str
    kind: str
    source: str
    evidence: str
    where: str
    default: bool = False
    install: tuple[str, ...] = ()
    lines: Mapping[str, str]
    unread: tuple[str, ...] = ()


class Release(Value):
    """One version of one component."""

    component: str
    version: str
    id: str
    source: str
    evidence: str
    where: str
    date: str = ""
    rank: int = 0
    yanked: bool = False
    attributes: Mapping[str, str]
    node: YamlNode


LISTS = BUILDS, PRODUCTS, SUPPORT, BREAKS = ("builds", "products", "support", "breaks")
"""What rows of a table list: images that were built, the names that devices are sold under, ends of support, or
releases that broke what was made for those before."""

REPORTS = "reports"
"""What statements list that have the line by which a failure shows."""

CODE_LIST, IMAGES_LIST, TERM_LIST, INDEPENDENT_LIST = ("code", "images", "terms", "independent")
"""What rows of a data table list: the kind of code of a package and what its binaries are compiled against, which
images can be pulled, names that are no components, such as that of a GPU generation, or packages of Python alone, which
become components when something names them."""
DATA_LISTS = {
    CODE_LIST: ("component", "kind", "against"),
    IMAGES_LIST: ("image", "pulls", "day"),
    TERM_LIST: ("name",),
    INDEPENDENT_LIST: ("package", "releases", "requires-python", "requires", "published"),
}
"""The columns with which a data table begins, by what its rows list."""


class TableRow(Value):
    """One row of a table (or one statement) as printed: what `toolmatrix facts ID` shows.

    `lists` is one of `LISTS` where the row is looked up by something else as well.
    """

    id: str
    table: str
    about: str
    subject: str
    cells: tuple[tuple[str, str], ...]
    source: str
    evidence: str
    where: str
    note: str
    lists: str = ""


class ReadRequirements(Value):
    """What was read whole: beside components the releases of a table require `others`, packages by their names.

    The requirements of releases that `unread` admits were not read completely.
    """

    table: str
    component: str
    others: tuple[str, ...]
    unread: str
    node: YamlNode


class Claim(Value):
    """One statement about one component: when the conditions hold, then `component` is within `selector`.

    `kind` is requires, limits, offers, carries (hard) or tested (soft); for `needs` the selector is a list of
    alternatives, and for `fails` it is of what is excluded. `when` starts with the subject; `exact` it is a release,
    and none that is finer is meant. `by_device` codegen archs limit the devices that run one of them, and not what
    other code is made for; `by_toolkit` the releases of a toolkit that is inside limit the devices for which one of
    them makes code by name. `least`: what the selector does not admit is unknown, as not everything was read.
    """

    id: str
    row: str
    kind: str
    when: tuple[tuple[str, str], ...]
    exact: bool = False
    component: str
    selector: str
    alternatives: tuple[str, ...] = ()
    topic: str
    evidence: str
    source: str
    where: str
    says: str = ""
    note: str = ""
    rule: str = ""
    stands_for: tuple[str, ...] = ()
    decides: bool = True
    rival: bool = False
    beside: bool = False
    by_device: bool = False
    by_toolkit: bool = False
    least: bool = False
    carried: bool = False
    # A row of its table that has no cell of its column wants none of it.
    complete: bool = False
    unreleased: bool = False
    node: YamlNode


class PackageCode(Value):
    """The kind of code of a component, and the components that it is compiled against."""

    code: str = ""
    against: tuple[str, ...] = ()


# No `Value`, as a layer is filled while its files are read; what is compiled of it does not change any more.
class Matrix:
    """Everything the files say: all of them, or those of one layer (a front page with its files, or one fact file)."""

    def __init__(self) -> None:
        self.date = ""
        self.components: dict[str, Component] = {}
        self.aliases: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.targets: dict[str, Target] = {}
        self.rules: dict[str, InheritanceRule] = {}
        self.sources: dict[str, FactSource] = {}
        self.channels: dict[str, Channel] = {}
        self.releases: dict[tuple[str, str], Release] = {}
        self.rows: dict[str, TableRow] = {}
        self.requirements: dict[str, ReadRequirements] = {}
        self.claims: dict[str, Claim] = {}

    def copy(self) -> Matrix:
        """The same facts, on which others can be put."""
        matrix = Matrix()
        for name, value in vars(self).items():
            setattr(matrix, name, value.copy() if isinstance(value, dict) else value)
        return matrix

    def rows_of(self, lists: str) -> list[TableRow]:
        """The rows of tables that list such things.

        By id, so that of two rows about one component the same one counts in whatever order files were read.
        """
        return [row for _, row in sorted(self.rows.items()) if row.lists == lists]

    def code(self) -> dict[str, PackageCode]:
        """The code of each component of which a table lists it."""
        by_component: dict[str, PackageCode] = {}
        for row in self.rows_of(CODE_LIST):
            cells = dict(row.cells)
            against = [name.strip() for name in cells.get("against", "").split(";")]
            code = PackageCode(code=cells["kind"], against=tuple(filter(None, against)))
            by_component[cells["component"]] = code
        return by_component

    def overlay(self, layer: Matrix) -> None:
        """Put the facts of a later layer on top; the same id replaces the earlier row and all its facts."""
        self.sources |= layer.sources
        self.channels |= layer.channels
        replaced = {release.id for release in layer.releases.values()}.union(layer.rows)
        # A repeated id replaces everything it said below: a row may define releases and make claims.
        self.releases = {
            name: release for name, release in self.releases.items() if release.id not in replaced
        }
        for release in layer.releases.values():
            self.offer(release, self.sources)
        self.claims = {
            name: claim for name, claim in self.claims.items() if claim.row not in layer.rows
        } | layer.claims
        self.rows |= layer.rows
        self.requirements |= layer.requirements

    def offer(self, release: Release, sources: Mapping[str, FactSource]) -> None:
        """Record a release; of the same one from two places the better known stays."""

        def preference(candidate: Release) -> tuple[int, int, str]:
            # Best evidence first, then the one read later, then the smaller id.
            read = int(sources[candidate.source].read.replace("-", ""))
            return -words.rank(candidate.evidence), -read, candidate.id

        name = release.component, release.version
        known = self.releases.get(name)
        if known is None or preference(release) < preference(known):
            self.releases[name] = release
