"""Reads statements (where a table would have one row) and data tables (kept and shown, never solved with).

Raises MatrixError with the position of the value or key at fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.facts import pieces
from toolmatrix.facts.model import CODE, CODE_LIST, Claim, TableRow
from toolmatrix.facts.pieces import Recorder
from toolmatrix.facts.yamlfile import YamlNode

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
_STATEMENT = ("id", "evidence", "source", "where", "note", *_PRINTED)
_DATA = ("id", "about", "source", "where", "evidence", "columns", "rows", "note", "lists")
_CODE = ("component", "kind", "against")


def statement(recorder: Recorder, node: YamlNode) -> None:
    """Read one statement into a row and its claims."""
    fields = node.only("a statement", _STATEMENT, ("id", "when", "evidence", "source", "where"))
    if not any(kind in fields for kind in ("needs", *_MAPPINGS)):
        node.fail(
            "a statement says nothing",
            expected="one or more of needs, " + ", ".join(_MAPPINGS),
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

    With `lists: code` each row is about the code of one component, and is known by its name.
    """
    fields = node.only(
        "a data table", _DATA, ("id", "source", "where", "evidence", "columns", "rows")
    )
    name = recorder.group(fields)
    origin = pieces.Provenance.read(fields, recorder.known)
    columns = [column.string("a column") for column in fields["columns"].sequence("columns")]
    lists = pieces.choice(fields, "lists", (CODE_LIST,))
    if lists and tuple(columns[: len(_CODE)]) != _CODE:
        fields["columns"].fail(
            "a list of code has the wrong columns",
            expected=", ".join(_CODE),
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
        if lists:
            _check_code(recorder, row, cells)
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
    against = cells[2].several() if len(cells) > len(_CODE) - 1 else []
    for component in against:
        pieces.known_component(component, recorder.components)
    if (kind == "pure") == bool(against):
        row.fail(
            f"code of the kind `{kind}` "
            + ("has no binaries" if against else "is compiled against something"),
            expected="no third cell" if against else "a list of components in the third cell",
            found=pieces.printed(cells[2]) if against else "none",
        )
