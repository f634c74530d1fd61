"""What changed between two matrices, fact by fact: what came, what went, and what says something else now."""

from __future__ import annotations

from contextlib import suppress

from toolmatrix.api.requests import open_matrix
from toolmatrix.report.fact_pages import Pages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.api import Path
    from toolmatrix.api.requests import OpenMatrix

    Facts = dict[str, tuple[str, dict[str, Any]]]
    """By id: the component, and the fact as a list of facts has it."""

SCHEMA = "toolmatrix.matrix-changes/1"
# What a zip archive begins with.
_ARCHIVE = b"PK\x03\x04"
# Facts that are listed of each component; all are counted.
_MOST = 40
# Less than these and a fact says the same, read again at another place.
_SAID = ("text", "evidence")


def earlier(path: Path) -> OpenMatrix:
    """An earlier matrix: the folder of an index, what `to_bytes` made in a file, or the front page of a checkout.

    Raises MatrixError.
    """
    # What cannot be read is told where files of facts are read.
    with suppress(OSError), open(path, "rb") as file:
        if file.read(len(_ARCHIVE)) == _ARCHIVE:
            return open_matrix(_ARCHIVE + file.read())
    return open_matrix(path)


def changes(before: OpenMatrix, after: OpenMatrix) -> dict[str, Any]:
    """The document `toolmatrix.matrix-changes/1`: by component, those of which most changed first."""
    old, new = _facts(before), _facts(after)
    found: dict[str, list[dict[str, Any]]] = {}
    reread = 0
    for name in sorted({*old, *new}):
        component, fact = new.get(name) or old[name]
        was, now = (side[name][1] if name in side else None for side in (old, new))
        if was == now:
            continue
        if was and now and all(was[key] == now[key] for key in _SAID):
            reread += 1
            continue
        how = "changed" if was and now else "added" if now else "removed"
        said = {key: fact[key] for key in ("id", *_SAID)}
        earlier_said = {key: was[key] for key in _SAID} if was and now else None
        found.setdefault(component, []).append({"how": how, **said, "was": earlier_said})
    heads = {**before.index.header["components"], **after.index.header["components"]}
    parts = [_part(name, heads.get(name), facts) for name, facts in found.items()]
    return {
        "schema": SCHEMA,
        "before": {"digest": before.digest, "date": before.date, "facts": len(old)},
        "after": {"digest": after.digest, "date": after.date, "facts": len(new)},
        "reread": reread,
        "components": sorted(parts, key=lambda part: (-part["facts"], part["component"])),
    }


def _facts(matrix: OpenMatrix) -> Facts:
    pages = Pages(matrix.index)
    lines = ((pages.subject(record), pages.line(record)) for record in pages.facts())
    return {line["id"]: (component, line) for component, line in lines}


def _part(name: str, head: Any, facts: list[dict[str, Any]]) -> dict[str, Any]:
    # What says something else than before is what somebody has to look at.
    order = ("changed", "removed", "added")
    listed = sorted(facts, key=lambda fact: (order.index(fact["how"]), fact["id"]))
    counts = {how: sum(fact["how"] == how for fact in facts) for how in order}
    return {
        "component": name,
        "title": head["title"] if head else "",
        "facts": len(facts),
        **counts,
        "listed": listed[:_MOST],
    }
