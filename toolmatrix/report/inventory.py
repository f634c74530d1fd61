"""An inventory as text: what is there and how it was seen, what of it is the default, and what could not be seen."""

from __future__ import annotations

from toolmatrix.report.terminal import columns, plural, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.inventory.model import Inventory, Seen
    from toolmatrix.report.terminal import Terminal

# Features that are counted and not listed; `--json` has them, `--all` lists them.
_QUIET = ("cpu:", "dpkg:", "apk:", "conda:", "rpm:", "dist:", "soname:", "env:", "label:")
_LONGEST = 60


def text(inventory: Inventory, screen: Terminal, *, everything: bool = False) -> str:
    """The inventory on a terminal; nothing that a subject names reaches it raw."""
    head = [inventory.subject, inventory.platform, inventory.digest[:19]]
    lines = [printable("  ".join(word for word in head if word))]
    lines += _block("components", _components(inventory), screen)
    lines += _block("features", _features(inventory, everything=everything), screen)
    lines += _block("libraries that no file gives", _missing(inventory), screen)
    lines += _block("not seen", ([one.what, one.reason] for one in inventory.skipped), screen)
    return "\n".join([*lines, "", _closing(inventory)]) + "\n"


def _block(title: str, rows: Iterable[list[str]], screen: Terminal) -> list[str]:
    made = columns([[printable(cell) for cell in row] for row in rows])
    return ["", screen.style(title, "bold"), *(f"  {line}" for line in made)] if made else []


def _components(inventory: Inventory) -> Iterator[list[str]]:
    for name, several in inventory.components.items():
        for place, seen in enumerate(several):
            word = "default" if seen.default else ""
            yield [name if not place else "", seen.version, word, seen.seen_by, seen.where]


def _features(inventory: Inventory, *, everything: bool) -> Iterator[list[str]]:
    for name, several in inventory.features.items():
        if everything or not name.startswith(_QUIET):
            for seen, more in _by_value(several):
                also = f"and {more} more" if more else ""
                yield [name, seen.version[:_LONGEST], seen.seen_by, seen.where, also]


def _by_value(several: Iterable[Seen]) -> list[tuple[Seen, int]]:
    """The first sighting of each value, and how many more there are."""
    found: dict[str, list[Seen]] = {}
    for seen in several:
        found.setdefault(seen.version, []).append(seen)
    return [(held[0], len(held) - 1) for held in found.values()]


def _missing(inventory: Inventory) -> Iterator[list[str]]:
    for one in inventory.sonames:
        if not one.found:
            there = f"there is {', '.join(one.others)}" if one.others else ""
            yield [one.name, f"needed by /{one.needed_by[0]}", there]


def _closing(inventory: Inventory) -> str:
    missing = sum(not one.found for one in inventory.sonames)
    counts = (
        plural(len(inventory.components), "component"),
        plural(len(inventory.features), "feature"),
        f"{plural(len(inventory.sonames), 'library', 'libraries')} needed, {missing} missing",
    )
    return ", ".join(counts)
