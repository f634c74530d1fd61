"""Tables of pages that hold all they need: words stay whole, and on a phone a table is cards or scrolls by itself."""

from __future__ import annotations

import re

from toolmatrix.report.pictures import colours, page
from toolmatrix.report.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Behind these a path, an address or a version may go on in the next line.
_JOINT = re.compile(r"((?<=\w)[/:@_](?=\w))")
_STYLE = (
    "*{box-sizing:border-box}"
    "body{font:16px/1.5 system-ui,'DejaVu Sans',sans-serif;background:var(--back);color:var(--plain);"
    "margin:1rem auto;max-width:76rem;padding:0 1rem;overflow-wrap:break-word}"
    "h1{font-size:1.3rem}h2{font-size:1.1rem;margin:1.5rem 0 .3rem}h3{font-size:1rem;margin:1rem 0 .2rem}"
    "a{color:var(--blue)}pre{overflow-x:auto}code,pre{font-family:ui-monospace,'DejaVu Sans Mono',monospace}"
    ".scroll{overflow-x:auto;border:1px solid var(--edge);border-radius:.3rem}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--edge);vertical-align:top}"
    ".grid{width:auto}.grid td,.grid th{white-space:nowrap}"
    ".grid th:first-child{position:sticky;left:0;background:var(--back)}"
    ".FAIL>:first-child,.no{color:var(--red);font-weight:700}.pass>:first-child,.yes{color:var(--green)}"
    ".warn>:first-child,td.unknown,.unknown>:first-child{color:var(--amber)}.skip{color:var(--dim)}\n"
    "@media(max-width:52rem){.cards thead{display:none}"
    ".cards tr{display:block;border:1px solid var(--edge);border-radius:.3rem;margin:.6rem 0;padding:.2rem 0}"
    ".cards td{display:grid;grid-template-columns:7rem minmax(0,1fr);border:0}"
    ".cards td:empty{display:none}.cards td::before{content:attr(data-label);color:var(--dim)}}\n"
    "@media print{body{margin:0}.scroll{overflow:visible}}"
)


def document(title: str, body: str) -> str:
    """A page of tables; its body is HTML already."""
    return page(
        text(title), colours("color") + _STYLE, f"<main><h1>{text(title)}</h1>\n{body}</main>"
    )


def text(told: str) -> str:
    """What somebody wrote, on one line, with places where a path or a version may be broken."""
    return _JOINT.sub(r"\1<wbr>", _plain(told))


def _plain(told: str) -> str:
    from html import escape

    return escape(printable(told))


def cards(name: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of rows, each with its class and its cells in HTML, which on a phone are cards below each other."""
    head = "".join(f'<th scope="col">{text(one)}</th>' for one in columns)
    lines = []
    for kind, cells in rows:
        told = zip(columns, cells, strict=True)
        parts = "".join(
            f'<td data-label="{_plain(one)}"><span>{cell}</span></td>' if cell else "<td></td>"
            for one, cell in told
        )
        lines.append(f'<tr class="{kind}">{parts}</tr>\n')
    return (
        f'<table class="cards" aria-label="{_plain(name)}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(lines)}</tbody></table>\n"
    )


def grid(name: str, table: Sequence[Sequence[str]]) -> str:
    """A table whose first row and column are its names, which scrolls by itself; the word of a cell is its class."""
    head, *body = table
    lines = ["".join(f'<th scope="col">{_plain(cell)}</th>' for cell in head)]
    for first, *rest in body:
        cells = "".join(f'<td class="{_plain(cell)}">{_plain(cell)}</td>' for cell in rest)
        lines.append(f'<th scope="row">{_plain(first)}</th>{cells}')
    rows = "".join(f"<tr>{line}</tr>\n" for line in lines)
    scrolls = f'class="scroll" tabindex="0" role="region" aria-label="{_plain(name)}"'
    return f'<div {scrolls}><table class="grid">\n{rows}</table></div>\n'
