"""Look-ups in an index by name: selectors, rows of tables, attributes of releases.

They are cached, for a long log asks the same of the same index a thousand times.
"""

from __future__ import annotations

from functools import lru_cache

from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import RowRecord
from toolmatrix.factbase.versions import Scale, SelectorError


@lru_cache(maxsize=4096)
def mask_or_none(scale: Scale, selector: str) -> int:
    """The mask of a selector, 0 for one that cannot be read."""
    try:
        return scale.select(selector)
    except SelectorError:
        return 0


@lru_cache(maxsize=64)
def rows(index: Index, table: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Every row of a table: (id, cells as printed)."""
    return tuple(
        (name, dict(index.row(number).cells))
        # A claim has the id of its row, then `#` and its column.
        for name, number in index.ids_of(table).items()
        if "#" not in name
    )


def row(index: Index, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """One row by its id: the id and its cells, both empty where the matrix has no such row."""
    record = index.find(name)
    return ((name,), dict(record.cells)) if isinstance(record, RowRecord) else ((), {})


def attributes(index: Index, component: str, version: str) -> dict[str, str]:
    """The attributes of a release, none where it is not known."""
    facts = index.component(component)
    if version not in facts.versions:
        return {}
    return dict(index.release(facts.releases[facts.versions.index(version)]).attributes)
