"""Reads tables and statements into rows and claims. Tables stay tables in the files; a claim is one cell that binds or ranks.

Raises MatrixError with the position of the cell, row or key at fault.
"""

from __future__ import annotations

from toolmatrix.errors import MatrixError
from toolmatrix.facts import evidence as words
from toolmatrix.facts import versions
from toolmatrix.facts.model import KINDS, Claim, Component, Release, Row
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.errors import Position
    from toolmatrix.facts.load import Layer
    from toolmatrix.facts.model import Source
    from toolmatrix.facts.yamlfile import Node

_TABLE = ("id", "about", "source", "where", "evidence", "context", "key", "stands-for", "columns", "rows", "defines", "note")
_COLUMN = ("as", "component", "topic", "context", "rule", "says", "unreleased", "evidence", "rival")
_CELL = ("is", "when", "evidence", "where", "note", "decides", "unreleased", "source")
_ROW = ("id", "source", "where", "evidence", "note", "decides")
_STATEMENT = (
    *("id", "when", "needs", "requires", "limits", "tested", "evidence", "source", "where", "note", "says", "topic"),
    *("stands-for", "decides", "rule", "unreleased"),
)


class Provenance(Value):
    """Where a statement comes from: source, evidence word, place in the source, note."""

    source: str
    evidence: str
    where: str
    note: str

    @classmethod
    def read(
        cls, fields: Mapping[str, Node], known: Mapping[str, Source], base: Provenance | None = None
    ) -> Provenance:
        """Read the keys source, evidence, where, note; what is missing is taken from `base`."""
        source = base.source if base else ""
        if "source" in fields:
            source = fields["source"].string("source")
            if source not in known:
                fields["source"].fail("no such source", expected="a key under `sources:`")
        word = base.evidence if base else ""
        if "evidence" in fields:
            word = fields["evidence"].choice("evidence", words.WORDS)
        return cls(
            source=source,
            evidence=word,
            where=fields["where"].string("where") if "where" in fields else base.where if base else "",
            note=fields["note"].string("note") if "note" in fields else base.note if base else "",
        )


class Column(Value):
    """What one column of a table means."""

    name: str
    mark: str
    kind: str
    component: str
    topic: str
    context: tuple[tuple[str, str], ...]
    rule: str
    says: str
    unreleased: bool
    rival: bool
    evidence: str


def known_component(name: str, node: Node, components: Mapping[str, Component]) -> Component:
    """The component of that name; MatrixError naming the nearest if there is none."""
    if name not in components:
        import difflib

        near = difflib.get_close_matches(name, components, 1)
        node.fail(
            "no such component",
            expected=f"`{near[0]}`?" if near else "a component of the front page",
            found=f"`{name}`",
            help="components are listed in matrix.yaml, or under `components:` of the file",
        )
    return components[name]


def add_release(
    layer: Layer,
    component: Component,
    version: str,
    common: Provenance,
    name: str,
    fields: Mapping[str, Node],
    attributes: Mapping[str, str],
    where: Position,
    node: Node,
) -> None:
    """Record a release; the same release from two places keeps the better evidence."""
    try:
        if component.scheme != "names":
            versions.key(version)
    except versions.SelectorError as error:
        raise MatrixError("not a version", where=where, expected="a version", found=str(error)) from None
    if component.scheme == "names" and "rank" not in fields and not component.given:
        raise MatrixError(
            f"a release of `{component.name}` has no rank",
            where=where,
            expected="`rank: N`, higher is preferred",
            found=f"`{version}`",
            help="names have no order of their own",
        )
    release = Release(
        component=component.name,
        version=version,
        id=name,
        source=common.source,
        evidence=common.evidence,
        where=common.where,
        date=fields["date"].string("date") if "date" in fields else "",
        rank=fields["rank"].integer("rank") if "rank" in fields else 0,
        yanked="yanked" in fields and fields["yanked"].text in ("true", "yes"),
        attributes=attributes,
        node=node,
    )
    held = layer.releases.get((component.name, version))
    if held is None or words.rank(held.evidence) < words.rank(release.evidence):
        layer.releases[component.name, version] = release


class Reader:
    """Reads the tables and statements of one layer; `known` are the sources, `merged` holds the components and rules."""

    def __init__(self, layer: Layer, known: Mapping[str, Source], merged: Layer) -> None:
        self.layer = layer
        self.known = known
        self.components = merged.components
        self.rules = merged.rules

    def table(self, node: Node) -> None:
        fields = node.only("a table", _TABLE, ("id", "source", "evidence", "key", "columns", "rows"))
        name = fields["id"].string("id")
        key = fields["key"].string("key")
        known_component(key, fields["key"], self.components)
        common = Provenance.read(fields, self.known)
        columns = self.columns(fields["columns"])
        context = self.conditions(fields.get("context"))
        rules = self.rule_names(fields.get("stands-for"))
        defines = "defines" in fields and fields["defines"].choice("defines", ("releases",)) != ""
        about = fields["about"].string("about") if "about" in fields else name
        for row in fields["rows"].sequence("rows"):
            self.row(row, name, about, key, common, columns, context, rules, defines)

    def columns(self, node: Node) -> dict[str, tuple[Column, ...]]:
        found = {}
        for name, part in node.mapping("columns").items():
            meanings = part.items if part.items is not None else [part]
            found[name] = tuple(self.column(name, meaning, place) for place, meaning in enumerate(meanings))
        return found

    def column(self, name: str, node: Node, place: int) -> Column:
        fields = node.only(f"column `{name}`", _COLUMN, ("as",))
        kind = fields["as"].choice("as", KINDS)
        component = fields["component"].string("component") if "component" in fields else name
        if kind != "attribute":
            known_component(component, fields.get("component", node), self.components)
        rule = fields["rule"].string("rule") if "rule" in fields else ""
        if rule and rule not in self.rules:
            fields["rule"].fail("no such rule", expected="a rule of the front page")
        return Column(
            name=name,
            mark=f"@{rule or kind}" if place else "",
            kind=kind,
            component=component,
            topic=fields["topic"].string("topic") if "topic" in fields else name,
            context=self.conditions(fields.get("context")),
            rule=rule,
            says=fields["says"].string("says") if "says" in fields else "",
            unreleased="unreleased" in fields and fields["unreleased"].flag("unreleased"),
            rival="rival" in fields and fields["rival"].flag("rival"),
            evidence=fields["evidence"].choice("evidence", words.WORDS) if "evidence" in fields else "",
        )

    def conditions(self, node: Node | None) -> tuple[tuple[str, str], ...]:
        if node is None:
            return ()
        found = []
        for name, value in node.mapping("conditions").items():
            component = known_component(name, value, self.components)
            self.selector(component, value)
            found.append((name, value.string(name)))
        return tuple(found)

    def selector(self, component: Component, node: Node) -> str:
        text = node.string(f"a selector of {component.name}")
        try:
            versions.parse(text, names=component.scheme == "names")
        except versions.SelectorError as error:
            node.fail("a selector cannot be read", expected="a selector (docs/facts.md)", found=str(error))
        return text

    def rule_names(self, node: Node | None) -> tuple[str, ...]:
        if node is None:
            return ()
        items = node.items if node.items is not None else [node]
        for item in items:
            if item.text not in self.rules:
                item.fail("no such rule", expected="a rule of the front page")
        return tuple(item.string("a rule") for item in items)

    def row(
        self,
        node: Node,
        table: str,
        about: str,
        key: str,
        common: Provenance,
        columns: Mapping[str, tuple[Column, ...]],
        context: tuple[tuple[str, str], ...],
        rules: tuple[str, ...],
        defines: bool,
    ) -> None:
        fields = node.only(f"a row of `{table}`", (key, *columns, *_ROW, "date", "rank", "yanked"), (key,))
        component = self.components[key]
        subject = self.selector(component, fields[key])
        name = fields["id"].string("id") if "id" in fields else f"{table}/{subject}"
        provenance = Provenance.read(fields, self.known, common)
        self.add_row(node, name, table, about, f"{key} {subject}", fields, provenance)
        if defines:
            attributes = {
                column: _printed(fields[column])
                for column, meanings in columns.items()
                if column in fields and any(meaning.kind == "attribute" for meaning in meanings)
            }
            add_release(self.layer, component, subject, provenance, name, fields, attributes, node.where, fields[key])
        when = ((key, subject), *context, *self.narrowing(fields, columns))
        decides = "decides" not in fields or fields["decides"].flag("decides")
        for column, meanings in columns.items():
            if column in fields:
                for meaning in meanings:
                    self.cell(fields[column], meaning, name, when, provenance, rules, decides)

    def narrowing(
        self, fields: Mapping[str, Node], columns: Mapping[str, tuple[Column, ...]]
    ) -> tuple[tuple[str, str], ...]:
        return tuple(
            (meaning.component, self.selector(self.components[meaning.component], fields[column]))
            for column, meanings in columns.items()
            for meaning in meanings
            if meaning.kind == "when" and column in fields
        )

    def cell(
        self,
        node: Node,
        column: Column,
        row: str,
        when: tuple[tuple[str, str], ...],
        provenance: Provenance,
        rules: tuple[str, ...],
        decides: bool,
    ) -> None:
        if column.kind in ("when", "attribute"):
            return
        parts = node.items if node.items is not None else [node]
        for place, part in enumerate(parts):
            fields = part.only("a cell", _CELL, ("is",)) if part.fields is not None else {"is": part}
            origin = Provenance.read(fields, self.known, provenance)
            selector = self.selector(self.components[column.component], fields["is"])
            suffix = f".{place + 1}" if len(parts) > 1 else ""
            kinds = ("requires", "tested") if column.kind == "carries" else (column.kind,)
            for kind in kinds:
                self.claim(
                    Claim(
                        id=f"{row}#{column.name}{suffix}{column.mark}{'' if kind == kinds[0] else '+' + kind}",
                        row=row,
                        kind=kind,
                        when=(*when, *column.context, *self.conditions(fields.get("when"))),
                        component=column.component,
                        selector=selector,
                        topic=column.topic,
                        evidence=words.weaker(column.evidence, origin.evidence) if column.evidence else origin.evidence,
                        source=origin.source,
                        where=origin.where,
                        says=column.says,
                        note=origin.note,
                        rule=column.rule,
                        stands_for=rules,
                        decides=decides and ("decides" not in fields or fields["decides"].flag("decides")),
                        rival=column.rival,
                        carried=column.kind == "carries" and kind == "tested",
                        unreleased=column.unreleased
                        or ("unreleased" in fields and fields["unreleased"].flag("unreleased")),
                        node=fields["is"],
                    )
                )

    def claim(self, claim: Claim) -> None:
        if claim.id in self.layer.claims:
            claim.node.fail("an id stands twice", expected="each id once", found=f"`{claim.id}`", help="give the row an `id:`")
        self.layer.claims[claim.id] = claim

    def add_row(
        self, node: Node, name: str, table: str, about: str, subject: str, fields: Mapping[str, Node], origin: Provenance
    ) -> None:
        if name in self.layer.rows:
            node.fail("an id stands twice", expected="each id once", found=f"`{name}`", help="give the row an `id:`")
        cells = tuple((key, _printed(value)) for key, value in fields.items() if key not in _ROW)
        self.layer.rows[name] = Row(
            id=name,
            table=table,
            about=about,
            subject=subject,
            cells=cells,
            source=origin.source,
            evidence=origin.evidence,
            where=origin.where,
            note=origin.note,
        )

    def statement(self, node: Node) -> None:
        fields = node.only("a statement", _STATEMENT, ("id", "when", "evidence", "source"))
        name = fields["id"].string("id")
        when = self.conditions(fields["when"])
        if not when:
            fields["when"].fail("a statement needs a subject", expected="`when: {component: selector}`")
        origin = Provenance.read(fields, self.known)
        shown = {key: value for key, value in fields.items() if key not in ("id", "source", "evidence", "where", "note")}
        self.add_row(node, name, "statements", name, " ".join(when[0]), shown, origin)
        rules = self.rule_names(fields.get("stands-for"))
        says = fields["says"].string("says") if "says" in fields else ""
        common = {"row": name, "when": when, "evidence": origin.evidence, "source": origin.source, "where": origin.where}
        common |= {"says": says, "note": origin.note, "stands_for": rules}
        common["decides"] = "decides" not in fields or fields["decides"].flag("decides")
        common["unreleased"] = "unreleased" in fields and fields["unreleased"].flag("unreleased")
        topic = fields["topic"].string("topic") if "topic" in fields else name
        for kind in ("requires", "limits", "tested"):
            for component, part in fields[kind].mapping(kind).items() if kind in fields else ():
                selector = self.selector(known_component(component, part, self.components), part)
                made = Claim(
                    id=f"{name}#{component}", kind=kind, component=component, selector=selector, topic=topic, node=part, **common
                )
                self.claim(made)
        for place, part in enumerate(fields["needs"].sequence("needs") if "needs" in fields else ()):
            self.need(part, place, name, topic, common)

    def need(self, node: Node, place: int, name: str, topic: str, common: Mapping[str, object]) -> None:
        parts = node.items if node.items is not None else [node]
        names = tuple(part.string("a component") for part in parts)
        for component, part in zip(names, parts, strict=True):
            known_component(component, part, self.components)
        self.claim(
            Claim(
                id=f"{name}#needs.{place + 1}",
                kind="needs",
                component=names[0],
                selector="*",
                alternatives=names,
                topic=f"{topic}.{place + 1}",
                node=node,
                **common,  # type: ignore[arg-type]
            )
        )

    def data(self, node: Node) -> None:
        """Sourced rows about what is no component; kept, shown by `facts`, never solved with."""
        keys = ("id", "about", "source", "where", "evidence", "columns", "rows", "note")
        fields = node.only("a data table", keys, ("id", "source", "evidence", "columns", "rows"))
        name = fields["id"].string("id")
        origin = Provenance.read(fields, self.known)
        columns = [part.string("a column") for part in fields["columns"].sequence("columns")]
        about = fields["about"].string("about") if "about" in fields else name
        for place, row in enumerate(fields["rows"].sequence("rows")):
            cells = row.sequence("a row")
            if len(cells) > len(columns):
                row.fail("a row is longer than its columns", expected=f"{len(columns)} cells", found=f"{len(cells)}")
            named = dict(zip(columns, cells, strict=False))
            self.add_row(row, f"{name}/{place + 1}", name, about, name, named, origin)


def _printed(node: Node) -> str:
    if node.items is not None:
        return "; ".join(_printed(item) for item in node.items)
    if node.fields is not None:
        return ", ".join(f"{key}: {_printed(value)}" for key, value in node.fields.items())
    return node.text or ""
