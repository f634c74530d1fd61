"""What a command prints as a picture (`svg`), a page (`html`) or a part of a pull request (`md`): a title and a text.

Pictures and pages are light or dark as their reader is, are complete and load nothing. Tables of a
page are cards below each other on a phone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from toolmatrix.report.terminal import Terminal, printable, visible

SCREEN = Terminal(colour=True, width=100, wraps=True)
"""The terminal that is drawn."""

# By the codes of `terminal.style`: the class of a span.
_CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "amber", "36": "blue"}
# By the name of a colour: what it is on light and on dark ground.
_COLOURS = {
    "back": ("#ffffff", "#0d1117"),
    "edge": ("#d0d7de", "#3d444d"),
    "plain": ("#1f2328", "#f0f6fc"),
    "dim": ("#59636e", "#9198a1"),
    "red": ("#a40e26", "#ff7b72"),
    "green": ("#116329", "#56d364"),
    "amber": ("#7d4e00", "#e3b341"),
    "blue": ("#0550ae", "#79c0ff"),
}
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
# In pixels. A letter is three fifths as wide as high, and a line is made as long as its letters whatever the font.
_SIZE, _HIGH, _EDGE = 14, 20, 16
_WIDE = _SIZE * 3 / 5
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_LINK = re.compile(r"(https://[^\s<>\"')]+[^\s<>\"').,;])")


def svg(title: str, text: str) -> str:
    """A card with the text as a terminal shows it."""
    lines = ([f"\x1b[1m$ {title}\x1b[0m"] if title else []) + text.rstrip("\n").split("\n")
    columns = max(len(visible(line)) for line in lines)
    width, height = columns * _WIDE + 2 * _EDGE, len(lines) * _HIGH + 2 * _EDGE
    elements = []
    for row, line in enumerate(lines):
        if plain := visible(line):
            at = f'x="{_EDGE}" y="{_EDGE + (row + 0.7) * _HIGH:g}"'
            fit = f'textLength="{len(plain) * _WIDE:.1f}" lengthAdjust="spacingAndGlyphs"'
            elements.append(f"<text {at} {fit}>{_spans(line, 'tspan', escape)}</text>\n")
    # A title is one line of plain text.
    named = escape(title or visible(lines[0]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" role="img" aria-label="{named}">\n<title>{named}</title>\n'
        f"<style>text{{font:{_SIZE}px {_FONT};fill:var(--plain);white-space:pre}}\n"
        f"{colours('fill')}rect{{fill:var(--back);stroke:var(--edge)}}</style>\n"
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>\n'
        f"{''.join(elements)}</svg>\n"
    )


def html(title: str, text: str) -> str:
    """A page with the text, in which addresses are links."""

    def linked(plain: str) -> str:
        # Every other part is an address.
        parts = map(escape, _LINK.split(plain))
        links = (f'<a href="{url}">{url}</a>' if at % 2 else url for at, url in enumerate(parts))
        return "".join(links)

    named = escape(title or "toolmatrix")
    style = (
        f"{colours('color')}body{{background:var(--back);color:var(--plain);margin:1rem}}\n"
        "h1{font-size:1.1rem;overflow-wrap:anywhere}a{color:var(--blue)}\n"
        f"pre{{font-family:{_FONT};font-size:min(.9rem,2.2vw + .4rem);line-height:1.45;overflow-x:auto}}\n"
        "@media print{body{margin:0}pre{white-space:pre-wrap}}"
    )
    spans = _spans(text, "span", linked)
    return page(named, style, f"<main><h1>{named}</h1>\n<pre>{spans}</pre></main>")


def page(title: str, style: str, body: str) -> str:
    """A complete page that loads nothing; its title and body are HTML already."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )


def markdown(title: str, text: str) -> str:
    """A block of text that no letter in it ends."""
    plain = "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
    block = f"$ {title}\n{plain}" if title else plain
    longest = max((len(run) for run in re.findall("`+", block)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n{block}\n{fence}\n"


FORMS: Mapping[str, Callable[[str, str], str]] = {"md": markdown, "html": html, "svg": svg}
"""By the word of `--format`."""


def _spans(text: str, tag: str, escape: Callable[[str], str]) -> str:
    # Text of strangers went through `printable`, so that every escape is one of `style`.
    first, *rest = text.split("\x1b[")
    spans = [escape(first)]
    for piece in rest:
        codes, _, words = piece.partition("m")
        names = [_CLASSES[code] for code in codes.split(";") if code in _CLASSES]
        escaped = escape(words)
        spans.append(f'<{tag} class="{" ".join(names)}">{escaped}</{tag}>' if names else escaped)
    return "".join(spans)


def colours(what: str) -> str:
    """The rules of a style sheet for the colours, light and dark, as variables and as classes that set `what`."""
    light, dark = (
        ";".join(f"--{name}:{both[side]}" for name, both in _COLOURS.items()) for side in (0, 1)
    )
    used = [f".{name}{{{what}:var(--{name})}}" for name in _COLOURS if name in _CLASSES.values()]
    return (
        f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f".bold{{font-weight:700}}{''.join(used)}\n"
    )


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


def html_page(title: str, body: str) -> str:
    """A page of tables; its body is HTML already."""
    return page(
        html_text(title),
        colours("color") + _STYLE,
        f"<main><h1>{html_text(title)}</h1>\n{body}</main>",
    )


def html_text(text: str) -> str:
    """What somebody wrote, on one line, with places where a path or a version may be broken."""
    return _JOINT.sub(r"\1<wbr>", _plain(text))


def _plain(text: str) -> str:
    return escape(printable(text))


def html_cards(name: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of rows, each with its class and its cells in HTML, which on a phone are cards below each other."""
    head = "".join(f'<th scope="col">{html_text(column)}</th>' for column in columns)
    lines = []
    for kind, cells in rows:
        labelled = zip(columns, cells, strict=True)
        parts = "".join(
            f'<td data-label="{_plain(column)}"><span>{cell}</span></td>' if cell else "<td></td>"
            for column, cell in labelled
        )
        lines.append(f'<tr class="{kind}">{parts}</tr>\n')
    return (
        f'<table class="cards" aria-label="{_plain(name)}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(lines)}</tbody></table>\n"
    )


def html_grid(name: str, table: Sequence[Sequence[str]]) -> str:
    """A table whose first row and column are its names, which scrolls by itself; the word of a cell is its class."""
    head, *body = table
    lines = ["".join(f'<th scope="col">{_plain(cell)}</th>' for cell in head)]
    for first, *rest in body:
        cells = "".join(f'<td class="{_plain(cell)}">{_plain(cell)}</td>' for cell in rest)
        lines.append(f'<th scope="row">{_plain(first)}</th>{cells}')
    rows = "".join(f"<tr>{line}</tr>\n" for line in lines)
    scrolls = f'class="scroll" tabindex="0" role="region" aria-label="{_plain(name)}"'
    return f'<div {scrolls}><table class="grid">\n{rows}</table></div>\n'
