"""The newest releases with what code uses: bounds of packages whose later releases lack a name."""

from __future__ import annotations

from toolmatrix.factbase import lookups
from toolmatrix.manifests.model import PIP, PYTHON, Item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.manifests.model import Traced

_TABLE = "removed-names"


def removed_names(index: Index) -> Mapping[str, Mapping[str, str]]:
    """By the whole name of a module or its member: its `component`, and the first release that lacks it (`before`)."""
    return {cells["name"]: cells for _, cells in lookups.rows(index, _TABLE)}


def bounds(index: Index, uses: Mapping[str, Traced], components: Container[str]) -> Iterator[Item]:
    """The tightest bound of each component that comes of the names that code uses, at the place of the name."""
    removed = removed_names(index)
    items: dict[str, list[Item]] = {}
    for name, place in uses.items():
        component = removed[name]["component"]
        specifier = f"<{removed[name]['before']}"
        kind = PYTHON if component == PYTHON else PIP
        item = Item(kind=kind, name=component, specifier=specifier, text=place, imported=True)
        if component in components:
            items.setdefault(component, []).append(item)
    for component, several in items.items():
        scale = index.scale(component)
        yield min(several, key=lambda item: scale.select(item.specifier))
