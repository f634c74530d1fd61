"""Differences between two inventories, and whether each was to be expected."""

from __future__ import annotations

from toolmatrix.value import Document, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.inventory.model import Inventory

EXPECTED, SUSPICIOUS = "expected", "suspicious"
ADDED, REMOVED, CHANGED = "added", "removed", "changed"


class Held(Document):
    """The value of something on one side, several joined by commas, and where that was seen first."""

    value: str
    seen_by: str = ""
    where: str = ""


class Difference(Value):
    """Something that is not the same; `old` and `new` are None where that side has none of it.

    `unit` is what its values count, bytes or hertz, where they are numbers of those.
    """

    group: str
    kind: str
    name: str
    shown: str
    old: Held | None
    new: Held | None
    verdict: str
    why: str
    source: str = ""
    unit: str = ""

    @property
    def change(self) -> str:
        """The change that happened to it on the way from the first side to the second."""
        if self.old is None:
            return ADDED
        return REMOVED if self.new is None else CHANGED


class Unseen(Value):
    """Things of a kind that were not compared, because one side (0 or 1) cannot tell of them."""

    group: str
    kind: str
    names: tuple[str, ...]
    side: int
    reason: str


class Comparison(Value):
    """Two subjects compared; `same` are group, name and value of what is the same."""

    sides: tuple[Inventory, Inventory]
    differences: tuple[Difference, ...]
    same: tuple[tuple[str, str, str], ...]
    unseen: tuple[Unseen, ...]

    def count(self, verdict: str) -> int:
        """The number of differences that have a verdict."""
        return sum(one.verdict == verdict for one in self.differences)
