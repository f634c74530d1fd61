"""Readers that tables, statements, releases and the front page share, and what puts their facts into a layer.

Raises MatrixError with the position of the value or key at fault.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import layout, versions
from toolmatrix.factbase.model import FactSource, Release
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.factbase.model import (
        Channel,
        Claim,
        Component,
        InheritanceRule,
        Matrix,
        TableRow,
    )
    from toolmatrix.factbase.yamlfile import YamlNode

Conditions = tuple[tuple[str, str], ...]
"""(component, selector)."""

_THREAD = re.compile(r"([A-Za-z0-9-]+/[\w.-]+?)(?:#(\d+)|@([\w.+-]+))")

SEVERAL = "; "
"""The separator of the values of a cell that has several."""
RELEASE, _ = layout.keys(layout.ReleaseLayout)
"""The keys of a release that are not attributes."""


class LocatedStr(str):
    """A selector with its position."""

    # A text, as claims are compared, written and hashed with it; the compiler finds out what is wrong with it.

    __slots__ = ("node",)
    node: YamlNode

    @classmethod
    def at(cls, node: YamlNode, text: str) -> LocatedStr:
        located = cls(text)
        located.node = node
        return located


class Provenance(Value):
    """The origin of a statement: source, evidence word, place in the source, note."""

    source: str = ""
    evidence: str = ""
    where: str = ""
    note: str = ""

    @classmethod
    def read(
        cls,
        fields: Mapping[str, YamlNode],
        known: Mapping[str, FactSource],
        base: Provenance | None = None,
    ) -> Provenance:
        """Read the keys source, evidence, where, note; what is missing is taken from `base`."""
        base = base or cls()
        return cls(
            source=known_name(fields["source"], "source", known, "a key under `sources:`")
            if "source" in fields
            else base.source,
            evidence=choice(fields, "evidence", words.WORDS, base.evidence),
            where=text(fields, "where", base.where),
            note=text(fields, "note", base.note),
        )


def fields(node: YamlNode, what: str, entry: type[Value]) -> dict[str, YamlNode]:
    """The fields of a mapping after refusing unknown and missing keys of its entry in `layout`."""
    return node.only(what, *layout.keys(entry))


def text(fields: Mapping[str, YamlNode], name: str, default: str = "") -> str:
    """The text of a key, if it is there."""
    return fields[name].string(name) if name in fields else default


def choice(
    fields: Mapping[str, YamlNode], name: str, known: tuple[str, ...], default: str = ""
) -> str:
    """The word of a key, if it is there."""
    return fields[name].choice(name, known) if name in fields else default


def entries(fields: Mapping[str, YamlNode], name: str) -> Mapping[str, YamlNode]:
    """The entries of the mapping of a key; none where it is not there."""
    return fields[name].mapping(name) if name in fields else {}


def items(fields: Mapping[str, YamlNode], name: str) -> list[YamlNode]:
    """The items of the list of a key; none where it is not there."""
    return fields[name].sequence(name) if name in fields else []


def several(fields: Mapping[str, YamlNode], name: str) -> list[YamlNode]:
    """The items of a key, whose value may be a list or a single item; none where it is missing."""
    return fields[name].several() if name in fields else []


def flag(fields: Mapping[str, YamlNode], name: str, *, default: bool = False) -> bool:
    """True where a key is there and true."""
    return fields[name].flag(name) if name in fields else default


def identity(fields: Mapping[str, YamlNode], default: str = "") -> str:
    """The `id`, or the default."""
    # `#` is kept for the claims inside a row.
    name = text(fields, "id", default)
    if "id" in fields and "#" in name:
        fields["id"].fail("an id cannot hold `#`", expected="letters, digits, `-`, `.`, `/`")
    return name


def decides(fields: Mapping[str, YamlNode]) -> bool:
    """True where a row, cell or statement decides; one that does not needs a reason."""
    # The reason shows later that the row was not set aside by mistake.
    decisive = flag(fields, "decides", default=True)
    if not decisive and "note" not in fields:
        fields["decides"].fail(
            "a fact with `decides: false` needs a reason",
            expected="`note:` beside it",
            found="no such key",
        )
    return decisive


def known_component(node: YamlNode, components: Mapping[str, Component]) -> Component:
    """The component that is named."""
    help = "components are listed in matrix.yaml, or under `components:` of the file"
    otherwise = "a component of the front page"
    return components[known_name(node, "a component", components, otherwise, help=help)]


def rule(fields: Mapping[str, YamlNode], rules: Mapping[str, InheritanceRule]) -> str:
    """The rule of the key `rule`, if it is there."""
    return known_rule(fields["rule"], rules) if "rule" in fields else ""


def stands_for(
    fields: Mapping[str, YamlNode], rules: Mapping[str, InheritanceRule]
) -> tuple[str, ...]:
    """The rules of the key `stands-for`."""
    return tuple(known_rule(entry, rules) for entry in several(fields, "stands-for"))


def known_rule(node: YamlNode, rules: Mapping[str, InheritanceRule]) -> str:
    """The name of a rule of the front page."""
    return known_name(node, "a rule", rules, "a rule of the front page")


def known_name(
    node: YamlNode,
    what: str,
    known: Mapping[str, object],
    otherwise: str,
    wrong: str = "",
    help: str = "",
) -> str:
    """A known name; MatrixError with the one most like it, or `otherwise` what would do."""
    name = node.string(what)
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, 1)
        node.fail(
            wrong or f"no such {what.removeprefix('a ')}",
            expected=f"`{near[0]}`?" if near else otherwise,
            help=help,
        )
    return name


def selector(component: Component, node: YamlNode) -> str:
    """The text of a selector that can be read."""
    # Read here for its errors alone: releases that it could admit may still be to come.
    written = node.string(f"a selector of {component.name}")
    try:
        _check_selector(written, component.scheme == "names")
    except versions.SelectorError as error:
        node.fail(
            "a selector cannot be read",
            expected="a selector such as `*`, `11.2`, `>=11.2,<12`, `3.6-3.9` or `absent`",
            found=str(error),
        )
    return LocatedStr.at(node, written)


@lru_cache(1 << 14)
def _check_selector(written: str, names: bool) -> None:
    # All cells share a few thousand selectors.
    versions.parse(written, names=names)


def conditions(node: YamlNode | None, components: Mapping[str, Component]) -> Conditions:
    """`{component: selector}`, in the order written."""
    if node is None:
        return ()
    return tuple(
        (name, selector(known_component(node.key(name), components), entry))
        for name, entry in node.mapping("conditions").items()
    )


def subject_first(when: Conditions) -> Conditions:
    """Conditions in an order that does not depend on how they were written."""
    # The same condition may come from a table and from its row.
    return (when[0], *sorted(set(when[1:])))


def printed(node: YamlNode, first: str = "is") -> str:
    """A value as people read it; the keys of a mapping in alphabetical order but for the `first`."""
    if node.items is not None:
        return SEVERAL.join(printed(item, first) for item in node.items)
    if node.fields is not None:
        # What the value is comes before what it depends on.
        names = sorted(node.fields, key=lambda name: (name != first, name))
        return ", ".join(f"{name}: {printed(node.fields[name], first)}" for name in names)
    return node.text or ""


class Recorder:
    """Puts rows, claims and releases into a layer. `known` are the sources, `below` has the components and rules."""

    def __init__(self, layer: Matrix, below: Matrix) -> None:
        self.layer = layer
        self.below = below
        self.known = below.sources | layer.sources
        self.components = below.components
        self.positions = {name: position for position, name in enumerate(below.components)}
        self.rules = below.rules
        self.variants: list[YamlNode] = []
        """Tables of variants: they are read last, as their rows name releases that other tables define."""
        self._groups: set[str] = set()

    @property
    def channels(self) -> dict[str, Channel]:
        return self.below.channels | self.layer.channels

    def releases(self, component: str) -> list[Release]:
        """The releases of a component that were read so far."""
        # A release that a layer says again counts once, as the layer has it.
        known = {**self.below.releases, **self.layer.releases}
        return [release for release in known.values() if release.component == component]

    def group(self, fields: Mapping[str, YamlNode]) -> str:
        """The id of a table or list, which must be unique."""
        name = identity(fields)
        if name in self._groups:
            _fail_duplicate(fields["id"], name)
        self._groups.add(name)
        return name

    def thread(self, fields: Mapping[str, YamlNode]) -> None:
        """Record the thread or the release page that is a source by its own name."""
        node = fields.get("source")
        match = _THREAD.fullmatch(node.string("source")) if node is not None else None
        if node is None or match is None or ("read" not in fields and match[0] in self.known):
            return
        if "read" not in fields:
            node.fail("a thread needs the day on which it was read", expected="`read: YYYY-MM-DD`")
        repository, number, release = match.groups()
        page = f"issues/{number}" if number else f"releases/tag/{release}"
        source = FactSource(
            name=match[0],
            title=f"{repository}, " + (f"thread {number}" if number else f"release {release}"),
            at=f"https://github.com/{repository}/{page}",
            read=date(fields["read"], "read"),
        )
        if self.known.get(match[0], source) != source:
            fields["read"].fail(
                "a thread was read on two days",
                expected=self.known[match[0]].read,
                found=source.read,
            )
        self.layer.sources[match[0]] = self.known[match[0]] = source

    def claim(self, claim: Claim) -> None:
        if claim.id in self.layer.claims:
            _fail_duplicate(claim.node, claim.id)
        self.layer.claims[claim.id] = claim

    def row(self, node: YamlNode, row: TableRow) -> None:
        if row.id in self.layer.rows:
            _fail_duplicate(node, row.id)
        self.layer.rows[row.id] = row

    def release(
        self,
        component: Component,
        node: YamlNode,
        identifier: str,
        origin: Provenance,
        fields: Mapping[str, YamlNode],
        attributes: Mapping[str, str],
    ) -> None:
        """Record the release that `node` names; `fields` may have its date, rank and yanking."""
        version = node.string("a version")
        if component.scheme != "names":
            try:
                versions.key(version)
            except versions.SelectorError as error:
                node.fail(
                    "not a version",
                    expected="a version",
                    found=str(error),
                    help="releases are named one by one; a selector is for claims",
                )
        # What a request gives is never chosen, so that no order is needed.
        elif "rank" not in fields and not component.given:
            node.fail(
                f"a release of `{component.name}` has no rank",
                expected="`rank: N`, higher is preferred",
                help="names have no order of their own",
            )
        self.offer(
            Release(
                component=component.name,
                version=version,
                id=identifier,
                date=date(fields["date"], "date") if "date" in fields else "",
                rank=fields["rank"].integer("rank") if "rank" in fields else 0,
                yanked=flag(fields, "yanked"),
                attributes=attributes,
                node=node,
                **origin.as_dict("source", "evidence", "where"),
            )
        )

    def offer(self, release: Release) -> None:
        """Record a release; of the same one from two places the better known stays."""
        self.layer.offer(release, self.known)


def date(node: YamlNode, what: str) -> str:
    """A day of the calendar."""
    import datetime as dt

    # From Python 3.11 on `fromisoformat` also takes `20260102` and weeks, which do not sort as days do.
    written = node.string(what)
    try:
        dt.date.fromisoformat(written if len(written) == len("YYYY-MM-DD") else "")
    except ValueError:
        node.fail(f"{what} is not a date", expected="YYYY-MM-DD")
    return written


def _fail_duplicate(node: YamlNode, name: str) -> None:
    node.fail(
        "an id is used twice",
        expected="each id once",
        found=f"`{name}`",
        help="give one of the two another `id:`",
    )
