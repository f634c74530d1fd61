"""Names that code uses and later releases of a package do not have, as bounds of the package."""

from __future__ import annotations

from functools import lru_cache

from toolmatrix.factbase import lookups
from toolmatrix.manifests.model import PIP, PYTHON, Item
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.manifests.model import Traced

_TABLE = "removed-names"


class RemovedName(NamedTuple):
    """A name that code uses where `place` is: the component that had it, a selector of its releases, and the fact."""

    name: str
    place: Traced
    component: str
    releases: str
    fact: str

    @property
    def item(self) -> Item:
        """The bound as a line of a project."""
        kind = PYTHON if self.component == PYTHON else PIP
        return Item(
            kind=kind,
            name=self.component,
            specifier=self.releases,
            text=self.place,
            imported=True,
        )


# A folder is judged file by file, and each asks.
@lru_cache(maxsize=4)
def removed_names(index: Index) -> Mapping[str, tuple[str, str, str]]:
    """By the whole name of a module or its member: its component, a selector of the releases with it, and the fact."""
    return {
        cells["name"]: (cells["component"], f"<{cells['before']}", fact)
        for fact, cells in lookups.rows(index, _TABLE)
    }


def tightest(
    index: Index, uses: Mapping[str, Traced], components: Container[str]
) -> Iterator[RemovedName]:
    """Of each of the components the name that code uses and the fewest releases have."""
    removed = removed_names(index) if uses else {}
    by_component: dict[str, list[RemovedName]] = {}
    for name, place in uses.items():
        use = RemovedName(name, place, *removed[name])
        if use.component in components:
            by_component.setdefault(use.component, []).append(use)
    for component, several in by_component.items():
        scale = index.scale(component)
        yield min(several, key=lambda use: scale.select(use.releases))
