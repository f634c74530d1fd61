"""An inventory as text: what is there and how it was seen, what of it is the default, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolmatrix.inventory.model import Inventory, Seen
from toolmatrix.report.terminal import Terminal, columns, plural, printable

# Features that are counted and not listed; `--json` has them, `--all` lists them.
_QUIET = ("cpu:", "dpkg:", "apk:", "conda:", "rpm:", "dist:", "soname:", "env:", "label:")
_LONGEST = 60


def text(inventory: Inventory, screen: Terminal, *, everything: bool = False) -> str:
    """The inventory on a terminal; nothing that a subject names reaches it raw."""
    head = [inventory.subject, inventory.platform, inventory.digest[:19]]
    lines = [printable("  ".join(word for word in head if word))]
    lines += _block("components", _components(inventory), screen)
    lines += _block("features", _features(inventory, everything=everything), screen)
    lines += _block("libraries that no file provides", _missing(inventory), screen)
    lines += _block("not seen", ([one.what, one.reason] for one in inventory.skipped), screen)
    missing = sum(not one.found for one in inventory.sonames)
    counts = (
        plural(len(inventory.components), "component"),
        plural(len(inventory.features), "feature"),
        f"{plural(len(inventory.sonames), 'library', 'libraries')} needed, {missing} missing",
    )
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"


def _block(title: str, rows: Iterable[list[str]], screen: Terminal) -> list[str]:
    made = columns([[printable(cell) for cell in row] for row in rows])
    return ["", screen.style(title, "bold"), *(f"  {line}" for line in made)] if made else []


def _components(inventory: Inventory) -> Iterator[list[str]]:
    for name, several in inventory.components.items():
        for place, seen in enumerate(several):
            # What is there several times is named once.
            word = "default" if seen.default else ""
            yield [name if not place else "", seen.version, word, seen.seen_by, seen.where]


def _features(inventory: Inventory, *, everything: bool) -> Iterator[list[str]]:
    for name, several in inventory.features.items():
        if everything or not name.startswith(_QUIET):
            # A library lies in many places and says the same in each: the first one stands for all.
            by_value: dict[str, list[Seen]] = {}
            for seen in several:
                by_value.setdefault(seen.version, []).append(seen)
            for first, *more in by_value.values():
                also = f"and {len(more)} more" if more else ""
                yield [name, first.version[:_LONGEST], first.seen_by, first.where, also]


def _missing(inventory: Inventory) -> Iterator[list[str]]:
    for one in inventory.sonames:
        if not one.found:
            there = f"there is {', '.join(one.others)}" if one.others else ""
            yield [one.name, f"needed by /{one.needed_by[0]}", there]
