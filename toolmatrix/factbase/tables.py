"""Reads tables into rows and claims. Tables stay tables in the files; a claim is one cell that binds or ranks.

Raises MatrixError with the position of the cell, row or key at fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import independents, layout, pieces, versions
from toolmatrix.factbase.model import (
    BREAKS,
    CODE,
    CODE_LIST,
    DATA_LISTS,
    INDEPENDENT_LIST,
    KINDS,
    LISTS,
    PRODUCTS,
    SUPPORT,
    Claim,
    Component,
    ReadRequirements,
    TableRow,
)
from toolmatrix.factbase.pieces import Recorder
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.factbase.pieces import Conditions, Provenance


_MAPPINGS = ("requires", "limits", "offers", "tested")
_PRINTED = (
    "when",
    "needs",
    *_MAPPINGS,
    "says",
    "topic",
    "stands-for",
    "decides",
    "rule",
    "unreleased",
)
DATA_COLUMNS = {
    CODE_LIST: ("component", "kind", "against"),
    INDEPENDENT_LIST: ("package", "releases", "requires-python", "requires"),
}
"""The first columns of a data table by what its rows list."""


def statement(recorder: Recorder, node: YamlNode) -> None:
    """Read one statement into a row and its claims."""
    fields = pieces.fields(node, "a statement", layout.StatementLayout)
    if not any(kind in fields for kind in layout.StatementLayout.any_of):
        node.fail(
            "a statement says nothing",
            expected="one or more of " + ", ".join(layout.StatementLayout.any_of),
            found="none of them",
        )
    name = pieces.identity(fields)
    when = pieces.conditions(fields["when"], recorder.components)
    # The first condition is the subject, whose releases the claims are about.
    if not when:
        fields["when"].fail("a statement needs a subject", expected="`when: {component: selector}`")
    origin = pieces.Provenance.read(fields, recorder.known)
    subject = when[0]
    row = TableRow(
        id=name,
        table="statements",
        about=name,
        subject=" ".join(subject),
        cells=tuple(
            (key, pieces.printed(fields[key], subject[0])) for key in _PRINTED if key in fields
        ),
        **origin.as_dict(),
    )
    recorder.row(node, row)
    base = Claim(
        id=name,
        row=name,
        kind="",
        when=pieces.subject_first(when),
        component=subject[0],
        selector="*",
        topic=pieces.text(fields, "topic", name),
        says=pieces.text(fields, "says"),
        rule=pieces.rule(fields, recorder.rules),
        stands_for=pieces.stands_for(fields, recorder.rules),
        decides=pieces.decides(fields),
        unreleased=pieces.flag(fields, "unreleased"),
        node=node,
        **origin.as_dict(),
    )
    for claim in _claims(recorder, fields, base):
        recorder.claim(claim)


def _claims(recorder: Recorder, fields: Mapping[str, YamlNode], base: Claim) -> Iterator[Claim]:
    for kind in _MAPPINGS:
        for component, node in pieces.entries(fields, kind).items():
            known = pieces.known_component(fields[kind].key(component), recorder.components)
            yield base.replace(
                id=f"{base.row}#{component}",
                kind=kind,
                component=component,
                selector=pieces.selector(known, node),
                node=node,
            )
    for index, node in enumerate(pieces.items(fields, "needs")):
        names = tuple(
            pieces.known_component(item, recorder.components).name for item in node.several()
        )
        if not names:
            node.fail("a need names no component", expected="a component or a list of them")
        yield base.replace(
            id=f"{base.row}#needs.{index + 1}",
            kind="needs",
            component=names[0],
            alternatives=names,
            # Needs add up, where claims of one topic would be rivals.
            topic=f"{base.topic}.{index + 1}",
            node=node,
        )


def data(recorder: Recorder, node: YamlNode) -> None:
    """Read sourced rows about what is no component; a row is known by its place in the table.

    One that `lists` something is known by the name of the component or package that it is about.
    """
    fields = pieces.fields(node, "a data table", layout.DataLayout)
    name = recorder.group(fields)
    origin = pieces.Provenance.read(fields, recorder.known)
    columns = [column.string("a column") for column in fields["columns"].sequence("columns")]
    lists = pieces.choice(fields, "lists", DATA_LISTS)
    first_columns = DATA_COLUMNS.get(lists, ())
    if tuple(columns[: len(first_columns)]) != first_columns:
        fields["columns"].fail(
            f"a list of `{lists}` has the wrong columns",
            expected=", ".join(first_columns),
            found=", ".join(columns) or "none",
        )
    about = pieces.text(fields, "about", name)
    for index, row in enumerate(fields["rows"].sequence("rows")):
        cells = row.sequence("a row")
        # A shorter row leaves its last cells out; the rest of a longer one would have no column.
        if len(cells) > len(columns):
            row.fail(
                "a row is longer than its columns",
                expected=f"{len(columns)} cells",
                found=f"{len(cells)} cells",
            )
        if lists == CODE_LIST:
            _check_code(recorder, row, cells)
        elif lists:
            _check_independent(row, cells)
        named_cells = zip(columns, cells, strict=False)
        recorder.row(
            row,
            TableRow(
                id=f"{name}/{pieces.printed(cells[0]) if lists else index + 1}",
                table=name,
                about=about,
                subject=name,
                cells=tuple((column, pieces.printed(cell)) for column, cell in named_cells),
                lists=lists,
                **origin.as_dict(),
            ),
        )


def _check_code(recorder: Recorder, row: YamlNode, cells: Sequence[YamlNode]) -> None:
    if len(cells) < 2:
        row.fail("a row of code is too short", expected="a component and the kind of its code")
    pieces.known_component(cells[0], recorder.components)
    kind = cells[1].choice("a kind of code", CODE)
    # Silence about what binaries are bound to would read as if they were bound to nothing.
    against = cells[2].several() if len(cells) > 2 else []
    for component in against:
        pieces.known_component(component, recorder.components)
    if (kind == "pure") == bool(against):
        row.fail(
            f"code of the kind `{kind}` "
            + ("has no binaries" if against else "is compiled against something"),
            expected="no third cell" if against else "a list of components in the third cell",
            found=pieces.printed(cells[2]) if against else "none",
        )


def _check_independent(row: YamlNode, cells: Sequence[YamlNode]) -> None:
    texts = [pieces.printed(cell) for cell in cells]
    problem = ""
    if len(texts) < len(DATA_COLUMNS[INDEPENDENT_LIST]) or not _PACKAGE.fullmatch(texts[0]):
        problem = "a cell is missing, or the name is none"
    else:
        try:
            independents.read(texts)
        except ValueError as error:
            problem = str(error)
    if problem:
        row.fail(
            "a row of an independent package cannot be read",
            expected="name, releases, Pythons and requirements, as docs/facts.md describes the cells",
            found=problem,
        )


_PACKAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
UNKNOWN = "unknown"
"""A cell whose value was not read."""
ROW, _ = layout.keys(layout.RowLayout)
_ENDS = ("until", "ended-by")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?")


class Column(Value):
    """The meaning of one column of a table."""

    name: str
    mark: str
    kind: str
    component: str
    topic: str
    context: Conditions
    rule: str
    says: str
    unreleased: bool
    rival: bool
    beside: bool
    complete: bool
    evidence: str


class FactTable(Value):
    """A table without its rows."""

    id: str
    about: str
    key: str
    origin: Provenance
    columns: Mapping[str, tuple[Column, ...]]
    context: Conditions
    rules: tuple[str, ...]
    defines: bool
    lists: str = ""
    by_device: bool = False


def table(recorder: Recorder, node: YamlNode) -> None:
    """Read one table into its rows, releases and claims; one of variants is read after all releases are known."""
    defines = node.mapping("a table").get("defines")
    if defines is not None and defines.choice("defines", layout.DEFINITIONS) == "variants":
        recorder.variants.append(node)
        return
    fields = pieces.fields(node, "a table", layout.TableLayout)
    # A column must not have the name of a key of every row.
    common = head(recorder, fields, ROW)
    if "requirements-read" in fields:
        component = recorder.components[common.key]
        read = _requirements(fields["requirements-read"], common.id, component)
        recorder.layer.requirements[common.id] = read
    for row in fields["rows"].sequence("rows"):
        _row(recorder, row, common)


def head(recorder: Recorder, fields: Mapping[str, YamlNode], own: tuple[str, ...]) -> FactTable:
    """Read a table without its rows; no column has a name of its `own` keys."""
    name = recorder.group(fields)
    key = pieces.known_component(fields["key"], recorder.components).name
    lists = pieces.choice(fields, "lists", LISTS)
    if lists == PRODUCTS and key != "device":
        fields["lists"].fail("only devices have products", expected="a table with `key: device`")
    columns = fields["columns"]
    for column in columns.mapping("columns"):
        if column in (key, *own):
            columns.key(column).fail(
                "a column has a reserved name",
                expected=f"another name than {', '.join((key, *own))}",
                help="name its component with `component:`",
            )
    return FactTable(
        id=name,
        about=pieces.text(fields, "about", name),
        key=key,
        origin=pieces.Provenance.read(fields, recorder.known),
        columns={
            column: tuple(
                _column(recorder, columns.key(column), meaning, index)
                for index, meaning in enumerate(meanings.several())
            )
            for column, meanings in columns.mapping("columns").items()
        },
        context=pieces.conditions(fields.get("context"), recorder.components),
        rules=pieces.stands_for(fields, recorder.rules),
        defines="defines" in fields,
        lists=lists,
        by_device=pieces.flag(fields, "extends"),
    )


def _requirements(node: YamlNode, table: str, component: Component) -> ReadRequirements:
    fields = pieces.fields(node, "requirements that were read", layout.RequirementsLayout)
    others = fields["others"].sequence("others")
    for other in others:
        if not _PACKAGE.fullmatch(other.string("a package")):
            other.fail(
                "not the name of a package",
                expected="its normalized name (PEP 503): a-z, 0-9 and `-`",
            )
    unread = fields.get("unread")
    return ReadRequirements(
        table=table,
        component=component.name,
        others=tuple(sorted(other.string("a package") for other in others)),
        unread=pieces.selector(component, unread) if unread is not None else versions.ABSENT,
        node=node,
    )


def _column(recorder: Recorder, key: YamlNode, node: YamlNode, index: int) -> Column:
    name = key.string("a column")
    fields = pieces.fields(node, f"column `{name}`", layout.ColumnLayout)
    kind = fields["as"].choice("as", KINDS)
    component = pieces.text(fields, "component", name)
    # An attribute is kept and shown, and is about no component.
    if kind != "attribute":
        pieces.known_component(fields.get("component", key), recorder.components)
    rule = pieces.rule(fields, recorder.rules)
    return Column(
        name=name,
        # A column may mean several things, each a claim: the first has the plain id, which must not change.
        mark=f"@{rule or kind}" if index else "",
        kind=kind,
        component=component,
        topic=pieces.text(fields, "topic", name),
        context=pieces.conditions(fields.get("context"), recorder.components),
        rule=rule,
        says=pieces.text(fields, "says"),
        unreleased=pieces.flag(fields, "unreleased"),
        rival=pieces.flag(fields, "rival"),
        beside=pieces.flag(fields, "beside"),
        complete=pieces.flag(fields, "complete"),
        evidence=pieces.choice(fields, "evidence", words.WORDS),
    )


def _row(recorder: Recorder, node: YamlNode, table: FactTable) -> None:
    released = pieces.RELEASE if table.defines else ()
    fields = node.only(
        f"a row of `{table.id}`", (table.key, *table.columns, *ROW, *released), (table.key,)
    )
    component = recorder.components[table.key]
    subject = pieces.selector(component, fields[table.key])
    name = pieces.identity(fields, f"{table.id}/{subject}")
    row = PrintedRow(recorder, table, node, fields, name, subject)
    if table.defines:
        attributes = row.attributes()
        recorder.release(component, fields[table.key], name, row.origin, fields, attributes)
    if table.lists == SUPPORT:
        _check_end(node, fields)
    if table.lists == BREAKS:
        _check_break(node, fields, component)
    row.claims((table.key, subject))


def _check_end(node: YamlNode, fields: Mapping[str, YamlNode]) -> None:
    """Fail unless a row says one of the two: when support ends, or a day by which it had."""
    ends = [fields[name] for name in _ENDS if name in fields]
    if len(ends) != 1:
        node.fail("a row of ends of support needs one date", expected=f"one of {', '.join(_ENDS)}")
    day = ends[0].string("a day or a month")
    # Many sources name a month alone.
    if not _DAY.fullmatch(day):
        ends[0].fail("not a day or a month", expected="YYYY-MM-DD or YYYY-MM", found=day)


def _check_break(node: YamlNode, fields: Mapping[str, YamlNode], component: Component) -> None:
    """Fail unless a row names one release, the day from which makers could know of it, and what it broke."""
    release = fields[component.name]
    try:
        versions.key(release.string("a release"))
    except versions.SelectorError as error:
        release.fail(
            "a row of breaks must name one release", expected="a version", found=str(error)
        )
    for name, expected in (("known", "a day"), ("breaks", "a few words")):
        if name not in fields:
            node.fail(f"a row of breaks has no `{name}`", expected=expected, found="no such key")
    pieces.date(fields["known"], "known")


class PrintedRow:
    """A row of a table, kept as its source prints it."""

    def __init__(
        self,
        recorder: Recorder,
        table: FactTable,
        node: YamlNode,
        fields: Mapping[str, YamlNode],
        name: str,
        subject: str,
    ) -> None:
        self.recorder = recorder
        self.table = table
        self.node = node
        self.fields = fields
        self.id = name
        self.origin = pieces.Provenance.read(fields, recorder.known, table.origin)
        if not self.origin.where:
            node.fail(
                f"a row of `{table.id}` has no `where`",
                expected="`where:` in the row or in its table",
                found="no such key",
            )
        row = TableRow(
            id=name,
            table=table.id,
            about=table.about,
            lists=table.lists,
            subject=f"{table.key} {subject}",
            cells=self._cells(),
            **self.origin.as_dict(),
        )
        recorder.row(node, row)
        self.filled = [
            (fields[column], meaning)
            for column, meanings in table.columns.items()
            for meaning in meanings
            if column in fields
        ]

    def _cells(self) -> tuple[tuple[str, str], ...]:
        # The order in a file says nothing: the key comes first, then the columns in the order of their components.
        positions, table = self.recorder.positions, self.table

        def sort_key(name: str) -> tuple[bool, int, str]:
            meanings = table.columns.get(name)
            component = meanings[0].component if meanings else name
            return name != table.key, positions.get(component, len(positions)), name

        names = sorted((name for name in self.fields if name not in ROW), key=sort_key)
        return tuple((name, pieces.printed(self.fields[name])) for name in names)

    def attributes(self) -> dict[str, str]:
        """The attributes that the row gives its subject, by column; they are not claims."""
        filled = [(node, meaning) for node, meaning in self.filled if meaning.kind == "attribute"]
        return {meaning.name: pieces.printed(node) for node, meaning in filled}

    def claims(self, subject: tuple[str, str]) -> None:
        """Record the claims of the cells about the subject of the row, a component and a selector."""
        components = self.recorder.components
        narrowing = [
            (meaning.component, pieces.selector(components[meaning.component], node))
            for node, meaning in self.filled
            if meaning.kind == "when"
        ]
        when = (subject, *self.table.context, *narrowing)
        decides = pieces.decides(self.fields)
        for node, meaning in self.filled:
            if meaning.kind not in ("when", "attribute"):
                for claim in self._cell(node, meaning, when):
                    # What is set aside as a row is so in each cell.
                    self.recorder.claim(claim if decides else claim.replace(decides=False))

    def _cell(self, node: YamlNode, column: Column, when: Conditions) -> Iterator[Claim]:
        alternatives = node.several()
        # Two unconditional parts would restrict each other, and it would be unclear which one was meant.
        unconditional = [cell for cell in alternatives if "when" not in (cell.fields or ())]
        if len(unconditional) > 1:
            unconditional[1].fail(
                "two parts of a cell apply at the same time",
                expected="`{is: SELECTOR, when: {...}}`",
                help="alternatives are one selector, separated by spaces",
            )
        for index, alternative in enumerate(alternatives):
            suffix = f".{index + 1}" if len(alternatives) > 1 else ""
            claim = self._claim(alternative, column, when, suffix)
            # Code that is compiled where it runs needs a toolkit that knows the device by name.
            if claim.kind == "names":
                claim = claim.replace(kind="limits", by_toolkit=True)
            # The contents of an image or a build bind its choice, and rank its parts as a tested row does.
            if claim.kind == "carries":
                yield claim.replace(kind="requires")
                yield claim.replace(id=f"{claim.id}+tested", kind="tested", carried=True)
            else:
                yield claim

    def _claim(self, node: YamlNode, column: Column, when: Conditions, suffix: str) -> Claim:
        components = self.recorder.components
        written = {"is": node} if node.text is not None else None
        fields = written or pieces.fields(node, "a cell", layout.CellLayout)
        origin = pieces.Provenance.read(fields, self.recorder.known, self.origin)
        narrower = pieces.conditions(fields.get("when"), components)
        selector = pieces.selector(components[column.component], fields["is"])
        if selector == UNKNOWN:
            # An unread cell refuses as long as nothing better is known, with the evidence `unknown`.
            selector = pieces.LocatedStr.at(fields["is"], versions.ABSENT)
            origin = origin.replace(evidence=UNKNOWN)
        return Claim(
            id=f"{self.id}#{column.name}{suffix}{column.mark}",
            row=self.id,
            when=pieces.subject_first((*when, *column.context, *narrower)),
            # A build is no release of the key of its table.
            exact=self.table.defines and when[0][0] == self.table.key,
            selector=selector,
            evidence=words.weaker(column.evidence or origin.evidence, origin.evidence),
            stands_for=self.table.rules,
            decides=pieces.decides(fields),
            by_device=self.table.by_device and column.component == "arch",
            least=_read_at_least(fields, column),
            unreleased=column.unreleased or pieces.flag(fields, "unreleased"),
            node=fields["is"],
            **column.as_dict(
                "kind", "component", "topic", "says", "rule", "rival", "beside", "complete"
            ),
            **origin.as_dict("source", "where", "note"),
        )


def _read_at_least(fields: Mapping[str, YamlNode], column: Column) -> bool:
    least = pieces.flag(fields, "at-least")
    if least and column.kind != "limits":
        fields["at-least"].fail(
            "only a limit can be known in part",
            expected="a cell of a column with `as: limits`",
            found=f"`as: {column.kind}`",
        )
    return least
