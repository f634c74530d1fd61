"""An inventory as text: what is there and how it was seen, what of it is the default, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolmatrix.inspection.model import Inventory, Seen
from toolmatrix.report.terminal import Terminal, columns, plural, printable

# Features that are counted and not listed; `--json` has them, `--all` lists them.
_QUIET = ("cpu:", "dpkg:", "apk:", "conda:", "rpm:", "dist:", "soname:", "env:", "label:")
_LONGEST = 60


def text(inventory: Inventory, screen: Terminal, *, everything: bool = False) -> str:
    """The inventory on a terminal; nothing that a subject names reaches it raw."""
    head = [inventory.subject, inventory.platform, inventory.digest[:19]]
    lines = [printable("  ".join(field for field in head if field))]
    lines += _block("components", _components(inventory), screen)
    lines += _block("features", _features(inventory, everything=everything), screen)
    lines += _block("libraries that no file provides", _missing(inventory), screen)
    lines += _block("not inspected", ([gap.what, gap.reason] for gap in inventory.skipped), screen)
    missing = sum(not soname.found for soname in inventory.sonames)
    counts = (
        plural(len(inventory.components), "component"),
        plural(len(inventory.features), "feature"),
        f"{plural(len(inventory.sonames), 'library', 'libraries')} needed, {missing} missing",
    )
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"


def _block(title: str, rows: Iterable[list[str]], screen: Terminal) -> list[str]:
    lines = columns([[printable(cell) for cell in row] for row in rows])
    return ["", screen.style(title, "bold"), *(f"  {line}" for line in lines)] if lines else []


def _components(inventory: Inventory) -> Iterator[list[str]]:
    for name, several in inventory.components.items():
        for position, copy in enumerate(several):
            # What is there several times is named once.
            title = "" if position else name
            mark = "default" if copy.default else ""
            yield [title, copy.version, mark, copy.seen_by, copy.where]


def _features(inventory: Inventory, *, everything: bool) -> Iterator[list[str]]:
    for name, several in inventory.features.items():
        if everything or not name.startswith(_QUIET):
            # A library lies in many places and says the same in each: the first one represents all.
            by_value: dict[str, list[Seen]] = {}
            for copy in several:
                by_value.setdefault(copy.version, []).append(copy)
            for first, *more in by_value.values():
                also = f"and {len(more)} more" if more else ""
                yield [name, first.version[:_LONGEST], first.seen_by, first.where, also]


def _missing(inventory: Inventory) -> Iterator[list[str]]:
    for soname in inventory.sonames:
        if not soname.found:
            there = f"found {', '.join(soname.others)}" if soname.others else ""
            yield [soname.name, f"needed by /{soname.needed_by[0]}", there]
