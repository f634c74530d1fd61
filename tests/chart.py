"""A chart of bars, light or dark as whoever looks at it has it."""

from __future__ import annotations

from html import escape

_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 872, 250, 90, 30, 56
_STYLE = """\
text{font:14px ui-sans-serif,system-ui,sans-serif;fill:var(--plain)}
:root{--back:#ffffff;--edge:#d0d7de;--plain:#1f2328;--ours:#116329;--theirs:#59636e}
@media (prefers-color-scheme:dark){:root{--back:#0d1117;--edge:#3d444d;--plain:#f0f6fc;--ours:#56d364;--theirs:#9198a1}}
.title{font-weight:700}.back{fill:var(--back);stroke:var(--edge)}.ours{fill:var(--ours)}.theirs{fill:var(--theirs)}"""


def bars(title: str, rows: list[tuple[str, float, str]], ours: str) -> str:
    """An SVG of rows (name, number, what stands behind the bar), from zero on and to one scale."""
    most = max(number for _, number, _ in rows)
    height = _TOP + _LINE * len(rows) + 10
    room = _WIDTH - _LEFT - _RIGHT
    said = escape(f"{title}: {', '.join(f'{name} {shown}' for name, _, shown in rows)}")
    told = f'width="{_WIDTH}" height="{height}" role="img" aria-label="{said}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {told}>',
        f"<title>{said}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="back" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="title" x="16" y="32">{escape(title)}</text>',
    ]
    for place, (name, number, shown) in enumerate(rows):
        y, width = _TOP + _LINE * place, max(2.0, room * number / most)
        kind = "ours" if name == ours else "theirs"
        lines += [
            f'<text x="16" y="{y + 15}">{escape(name)}</text>',
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="20" rx="3"/>',
            f'<text x="{_LEFT + width + 8:.1f}" y="{y + 15}">{escape(shown)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
