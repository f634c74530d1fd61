"""Facts about drivers: the version that a release's driver tells, the order of its stages, its default arch."""

from __future__ import annotations

from toolmatrix.facts.versions import SelectorError, key, order
from toolmatrix.judge import stage_facts as facts
from toolmatrix.stages.known import Order
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolmatrix.facts.index import Index

_ORDERS = {"cuda": "nvcc-stages", "rocm": "hipcc-stages"}
_DEFAULTS = {"cuda": "cuda-default-archs"}


class KnownOrder(Value):
    """An order of stages for a release: the captured release it is of, its fact, and whether the next one differs."""

    order: Order
    captured: str
    fact: str
    differs: str = ""


def told_version(index: Index, component: str, release: str) -> str:
    """The version that the driver of a release tells of itself; empty where no fact says so."""
    if component == "cuda":
        return facts.attributes(index, component, release).get("nvcc", "")
    scale = facts.scale_of(index, component)
    mask = facts.selected(scale, release)
    for binding in index.component(component).about("hip", mask):
        held = facts.scale_of(index, "hip").named(binding.allowed & ~1)
        if len(held) == 1:
            return held[0]
    return ""


def stage_order(index: Index, component: str, release: str) -> KnownOrder | None:
    """The order of stages by the nearest captured release, of its major or else below; None where none is as old."""
    below, above = _beside(index, _ORDERS[component], component, release)
    beside = [one for one in (below, above) if one]
    major = release.partition(".")[0]
    same = [one for one in beside if one.release.partition(".")[0] == major]
    found = same[0] if same else below
    if found is None:
        return None
    cells = found.cells
    others = [one for one in beside if one.cells["compile"] != cells["compile"]]
    return KnownOrder(
        order=Order(compile=cells["compile"], link=cells["link"], images=cells.get("images", "")),
        captured=found.release,
        fact=found.fact,
        # What was captured decides for itself.
        differs=others[0].release if others and found.release != release else "",
    )


def default_arch(index: Index, component: str, release: str) -> tuple[str, str]:
    """The arch that a driver makes code for when none is named, and its fact; both empty where no fact says so."""
    if component not in _DEFAULTS:
        return "", ""
    below, above = _beside(index, _DEFAULTS[component], component, release)
    if below is None:
        return "", ""
    # Between two captures that agree the default has not changed.
    agree = above is not None and above.cells["default"] == below.cells["default"]
    known = agree or below.release == release
    return (below.cells["default"], below.fact) if known else ("", "")


class _Captured(Value):
    release: str
    fact: str
    cells: Mapping[str, str]


def _beside(
    index: Index, table: str, component: str, release: str
) -> tuple[_Captured | None, _Captured | None]:
    """The rows of a table about the nearest release that is not newer, and about the nearest that is."""
    held = {
        one: _Captured(release=one, fact=name, cells=cells)
        for name, cells in facts.rows(index, table)
        for one in cells[component].split()
    }
    older = [one for one in held if _place(one) <= _place(release)]
    newer = [one for one in held if one not in older]
    below = max(older, key=_place, default="")
    above = min(newer, key=_place, default="")
    return held.get(below), held.get(above)


def _place(release: str) -> Any:
    try:
        return order(key(release))
    except SelectorError:
        return order(key("0"))
