"""Devices by the names people buy them under: `RTX 3090` is compute capability 8.6, `MI300X` is gfx942.

Product lists are facts (rows with a `products` cell): a name that stands in none is not known.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.facts.index import Index

_BRANDS = frozenset(("nvidia", "amd", "geforce", "tesla", "quadro", "radeon", "instinct", "gpu"))
_NEAR = 3
_ALIKE = 0.7
_BEGINS = 0.9
"""How many names are offered instead of one that is not known, how like it they are, and what a beginning counts."""


def find(index: Index, name: str) -> list[tuple[str, str]]:
    """The devices of the products called `name`, as (device, product).

    A product is meant when every word asked for is one of its words and all its words with digits were asked for; brand
    names do not count.
    """
    wanted = _words(name)
    found: dict[str, str] = {}
    for device, product in _products(index):
        if wanted and _fits(_words(product), wanted):
            found.setdefault(device, product)
    return sorted(found.items())


def names(index: Index) -> list[str]:
    """Every product name, for finding the nearest to a misspelt one."""
    return [product for _, product in _products(index)]


def _products(index: Index) -> Iterator[tuple[str, str]]:
    for identifier, number in index.section("ids").items():
        if "-products/" in identifier and "#" not in identifier:
            cells = dict(index.record(number)["cells"])
            for product in cells.get("products", "").split(";"):
                if product.strip() and "device" in cells:
                    yield cells["device"], product.strip()


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s/()_]+", text.lower()) if word and word not in _BRANDS]


def _fits(product: list[str], wanted: list[str]) -> bool:
    left = list(product)
    for word in wanted:
        if word not in left:
            return False
        left.remove(word)
    return not any(re.search(r"\d", part) for part in left)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like a misspelt or shortened one, word by word: `RTX 30` begins as `RTX 3050` does."""
    from difflib import SequenceMatcher

    wanted = _words(name)
    if not wanted:
        return []

    def alike(word: str, part: str) -> float:
        if part.startswith(word):
            return 1 if part == word else _BEGINS
        return SequenceMatcher(None, word, part).ratio()

    def likeness(product: str) -> float:
        parts = _words(product) or [product]
        return sum(max(alike(word, part) for part in parts) for word in wanted) / len(wanted)

    ranked = sorted((-likeness(product), len(product), product) for product in dict.fromkeys(known))
    return [product for likeness, _, product in ranked[:_NEAR] if -likeness >= _ALIKE]
