"""`toolmatrix show` for a name that is no component: a GPU generation, a device, a variable, a flag, a symbol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from toolmatrix.api import Matrix, Report
from toolmatrix.api.requests import read_request
from toolmatrix.documents import Annotated, Evidence, MatrixHead, TypedDict
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase import terms
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Term
from toolmatrix.report import answer, claims, terminal
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.names import Names

SCHEMA = "toolmatrix.term/1"
# Columns about the name itself, and the column that the first line shows.
_NAMING, _SAYS = ("name", "kind", "also", "of", "after"), "says"
_ADDS = "adds"
"""The column of what a generation has that those before it lack."""
# Products of a device that fit on a line or two.
_PRODUCTS = 6
# Below so many columns the values of a table are cut.
_VALUE = 60


class TermFact(TypedDict):
    """What a row says of a term: a cell and its column."""

    term: str
    column: str
    value: str
    evidence: Evidence
    fact: str


class FirstToolkit(TypedDict):
    """The first release of the matrix that makes code for a device."""

    device: str
    component: str
    release: str
    evidence: Evidence


class TermDocument(TypedDict):
    """What `toolmatrix show --json` prints for a name that is no component: what is known of it, of its parts, and of
    what it is a part of.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    term: str
    kind: str
    """such as GPU generation, device, environment variable or symbol"""
    names: list[str]
    says: str
    of: str
    after: str
    """the generation before"""
    parts: list[str]
    facts: list[TermFact]
    adds: list[TermFact]
    """what code that was made for the generation before does not use"""
    products: dict[str, list[str]]
    """the names that devices are sold under"""
    toolkits: list[FirstToolkit]


def find(index: Index, text: str) -> Term | None:
    """The term of a name, or of the device that a product or an arch names."""
    named = terms.named(index, text)
    if named or "device" not in index.header["components"]:
        return next(iter(named), None)
    try:
        device = Names(index).device(text)
    except ToolmatrixError:
        return None
    # Such as gfx90a:xnack+, of which rows say nothing of their own.
    known = terms.named(index, device.partition(":")[0])
    return next(iter(known), Term(device, "device", (), "", "", "", ()))


def also(index: Index, text: str, besides: Term | None = None) -> str:
    """What else a name means, and how to see it."""
    others = [term for term in terms.named(index, text) if term != besides]
    return "; ".join(
        f"`{text}` is also a name of {term.name}, {term.kind}: `toolmatrix show {plain}`"
        for term in others
        # A word that begins with a dash would be an option.
        if (plain := term.name.strip("-"))
    )


def report(index: Index, term: Term, matrix: Matrix, *, text: str, everything: bool) -> Report:
    """What is known of a term that a text names."""
    document = _document(index, term, matrix)
    devices = [*document["products"]]
    plan = f"`toolmatrix plan --device {devices[0]}` shows the code for it" if devices else ""
    return Report(
        words=partial(_text, index, document, everything=everything),
        document=lambda: document,
        hint=plan or also(index, text, term),
    )


def _document(index: Index, term: Term, matrix: Matrix) -> TermDocument:
    known = {entry.name: entry for entry in index.terms()}
    parts = [entry for entry in known.values() if entry.of == term.name]
    whole = [known[term.of]] if term.of in known else []
    facts = [fact for entry in (term, *parts, *whole) for fact in _facts(index, entry)]
    # A generation has devices as its parts, and a device is a term itself.
    devices = [
        entry.name for entry in (term, *parts) if entry.name in index.scale("device").versions
    ]
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "term": term.name,
        "kind": term.kind,
        "names": list(term.also),
        "says": term.says,
        "of": term.of,
        "after": term.after or (whole[0].after if whole else ""),
        "parts": [part.name for part in parts],
        "facts": [fact for fact in facts if fact["column"] != _ADDS],
        "adds": [fact for fact in facts if fact["column"] == _ADDS],
        "products": {
            device: [entry.name for entry in index.products() if entry.device == device]
            for device in devices
        },
        "toolkits": [first for device in devices for first in _toolkits(index, device, matrix)],
    }


def _facts(index: Index, term: Term) -> Iterator[TermFact]:
    for row in term.rows:
        record = index.row(index.number(row))
        for column, value in record.cells:
            if value and column not in _NAMING:
                yield {
                    "term": term.name,
                    "column": column,
                    "value": value,
                    "evidence": record.evidence,
                    "fact": row,
                }


def _toolkits(index: Index, device: str, matrix: Matrix) -> Iterator[FirstToolkit]:
    # Most names are of no device.
    from toolmatrix.solve import arch_plans

    runs = arch_plans.runs(index, device)
    toolkit = arch_plans.toolkit_of(index, runs) if runs else ""
    if runs is None or not toolkit:
        return
    wanted = {"device": (device,), "from_": "source", "matrix": matrix}
    request = read_request(("arch",), wanted, varied=("arch",))[1]  # type: ignore[arg-type]
    release, evidence = arch_plans.Planner(index, request, toolkit, [runs]).oldest(runs.exact)
    if release:
        yield {
            "device": device,
            "component": toolkit,
            "release": index.scale(toolkit).named(release)[0],
            "evidence": evidence,
        }


def _text(
    index: Index, document: TermDocument, screen: Terminal, *, everything: bool = False
) -> str:
    notes = claims.Notes(index)
    described = [fact for fact in document["facts"] if fact["column"] != _SAYS]
    own = [fact for fact in described if fact["term"] == document["term"]]
    whole = [fact for fact in described if fact["term"] == document["of"]]
    sections = [
        _head(document, notes, screen.width),
        _lines(own, notes, screen.width),
        _parts(document, notes),
        _titled(f"of all {document['of']}", _lines(whole, notes, screen.width)),
        _adds(document, notes, screen.width),
        _devices(document, screen.width, everything=everything),
        notes.lines(screen.width),
    ]
    return terminal.blocks(sections)


def _head(document: TermDocument, notes: claims.Notes, width: int) -> list[str]:
    text = f"{document['term']} ({document['kind']})"
    text += f", of {document['of']}" if document["of"] else ""
    for fact in document["facts"]:
        if fact["term"] == document["term"] and fact["column"] == _SAYS:
            text += f": {fact['value']} {notes.cite([fact['fact']])}"
    names = [f"also called {terminal.listing(document['names'])}"] if document["names"] else []
    return [line for part in (text, *names) for line in terminal.wrap(part, width or _VALUE)]


def _titled(title: str, lines: list[str]) -> list[str]:
    return [title, *lines] if lines else []


def _lines(facts: Sequence[TermFact], notes: claims.Notes, width: int) -> list[str]:
    """A line for each fact; a long value goes on below its column."""
    wide = max((len(fact["column"]) for fact in facts), default=0) + 2
    lines = []
    for fact in facts:
        text = f"{fact['value']}  {notes.cite([fact['fact']])}"
        first, indent = f"{fact['column']:{wide}}", " " * wide
        # A narrow screen keeps some words of a value in one line.
        room = max(width, wide + 20) if width else len(text) + wide
        lines += terminal.wrap(text, room, indent=indent, first=first)
    return lines


def _parts(document: TermDocument, notes: claims.Notes) -> list[str]:
    """A table with a column for each part."""
    parts = document["parts"]
    cells: dict[str, dict[str, str]] = {}
    sources: dict[str, dict[str, None]] = {}
    for fact in document["facts"]:
        if fact["term"] in parts and fact["column"] != _SAYS:
            cells.setdefault(fact["column"], {})[fact["term"]] = fact["value"]
            sources.setdefault(fact["column"], {})[fact["fact"]] = None
    if not cells:
        return []
    rows = [
        [column, *(values.get(part, "") for part in parts), notes.cite(sources[column])]
        for column, values in cells.items()
    ]
    return terminal.columns([["", *parts], *rows])


def _adds(document: TermDocument, notes: claims.Notes, width: int) -> list[str]:
    if not document["adds"]:
        return []
    after = document["after"]
    title = f"new, and not used by code made for {after}" if after else "new"
    named = [{**fact, "column": fact["term"]} for fact in document["adds"]]
    return [title, *_lines(named, notes, width)]  # type: ignore[arg-type]


def _devices(document: TermDocument, width: int, *, everything: bool) -> list[str]:
    first = {entry["device"]: entry for entry in document["toolkits"]}
    lines = []
    for device, products in document["products"].items():
        visible = products if everything else products[:_PRODUCTS]
        rest = [f"{len(products) - len(visible)} more"] if len(products) > len(visible) else []
        text = terminal.listing([*visible, *rest]) if products else "no product is known"
        if entry := first.get(device):
            text += f"; code from {entry['component']} {entry['release']} on ({entry['evidence']})"
        mark = f"{device}  "
        indent = " " * len(mark)
        lines += terminal.wrap(text, width or len(text) + 20, indent=indent, first=mark)
    return _titled("devices", lines)
