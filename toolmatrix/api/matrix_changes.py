"""What changed between two matrices, fact by fact: what came, what went, and what says something else now."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from toolmatrix.api.requests import open_matrix
from toolmatrix.documents import Annotated, Count, Day, Digest, Evidence, Literal, TypedDict
from toolmatrix.report.fact_pages import Pages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.api import Path
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.report.fact_pages import FactLine

    Facts = dict[str, tuple[str, FactLine]]
    """By id: the component, and the fact as a list of facts has it."""

SCHEMA = "toolmatrix.matrix-changes/1"
# What a zip archive begins with.
_ARCHIVE = b"PK\x03\x04"
# Facts that are listed of each component; all are counted.
_MOST = 40


class CountedMatrix(TypedDict):
    """A matrix, and how many facts it has."""

    digest: Digest
    date: Day
    facts: Count


class SaidBefore(TypedDict):
    """The text and evidence of a fact."""

    text: str
    evidence: Evidence | Literal[""]


class ChangedFact(SaidBefore):
    """A fact that came, went, or says something else."""

    id: str
    how: Annotated[str, "changed", "removed", "added"]
    was: SaidBefore | None


class ChangedComponent(TypedDict):
    """What changed in the facts of a component."""

    component: str
    title: str
    facts: Count
    changed: Count
    removed: Count
    added: Count
    listed: list[ChangedFact]
    """Some of them, those that say something else first."""


class MatrixChangesDocument(TypedDict):
    """What changed between two matrices, fact by fact: what came, what went, and what says something else."""

    schema: Annotated[str, SCHEMA]
    before: CountedMatrix
    after: CountedMatrix
    reread: Count
    """Facts that say the same and were read again at another place."""
    components: list[ChangedComponent]


def open_earlier(path: Path) -> OpenMatrix:
    """An earlier matrix: the folder of an index, what `to_bytes` made in a file, or the front page of a checkout.

    Raises MatrixError.
    """
    # Files that cannot be read are reported where files of facts are read.
    with suppress(OSError), open(path, "rb") as file:
        if file.read(len(_ARCHIVE)) == _ARCHIVE:
            return open_matrix(_ARCHIVE + file.read())
    return open_matrix(path)


def changes(before: OpenMatrix, after: OpenMatrix) -> MatrixChangesDocument:
    """The document `toolmatrix.matrix-changes/1`: by component, those of which most changed first."""
    old, new = _facts(before), _facts(after)
    by_component: dict[str, list[ChangedFact]] = {}
    reread = 0
    for name in sorted({*old, *new}):
        component, fact = new.get(name) or old[name]
        was, now = (side[name][1] if name in side else None for side in (old, new))
        if was == now:
            continue
        # What says the same was read again at another place.
        if was and now and _statement(was) == _statement(now):
            reread += 1
            continue
        how = "changed" if was and now else "added" if now else "removed"
        previous = _statement(was) if was and now else None
        changed: ChangedFact = {**_statement(fact), "how": how, "id": fact["id"], "was": previous}
        by_component.setdefault(component, []).append(changed)
    heads = {**before.index.header["components"], **after.index.header["components"]}
    components = [_changes_of(name, heads.get(name), facts) for name, facts in by_component.items()]
    return {
        "schema": SCHEMA,
        "before": {"digest": before.digest, "date": before.date, "facts": len(old)},
        "after": {"digest": after.digest, "date": after.date, "facts": len(new)},
        "reread": reread,
        "components": sorted(components, key=lambda entry: (-entry["facts"], entry["component"])),
    }


def _statement(fact: FactLine) -> SaidBefore:
    return {"text": fact["text"], "evidence": fact["evidence"]}


def _facts(matrix: OpenMatrix) -> Facts:
    pages = Pages(matrix.index)
    lines = ((pages.subject(record), pages.line(record)) for record in pages.facts())
    return {line["id"]: (component, line) for component, line in lines}


def _changes_of(name: str, head: Any, facts: list[ChangedFact]) -> ChangedComponent:
    # Changed facts are the ones to review.
    order = ("changed", "removed", "added")
    ordered = sorted(facts, key=lambda fact: (order.index(fact["how"]), fact["id"]))
    counts = Counter(fact["how"] for fact in facts)
    return {
        "component": name,
        "title": head["title"] if head else "",
        "facts": len(facts),
        "changed": counts["changed"],
        "removed": counts["removed"],
        "added": counts["added"],
        "listed": ordered[:_MOST],
    }
