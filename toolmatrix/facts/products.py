"""Devices by the names people buy them under: `RTX 3090` is compute capability 8.6, `MI300X` is gfx942.

Product lists are facts (rows with a `products` cell); in them `30xx` stands for digits and `4050-4090` for a range.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.facts.index import Index

_BRANDS = frozenset(("nvidia", "amd", "geforce", "tesla", "quadro", "radeon", "instinct", "gpu"))
_VARIANTS = frozenset(("ti", "super", "laptop", "mobile", "xt", "xtx", "pcie", "sxm"))
_RANGE = re.compile(r"([a-z]*)(\d+)-\1(\d+)")


def find(index: Index, name: str) -> list[tuple[str, str]]:
    """The devices of the products called `name`, as (device, product).

    A product is meant when every word asked for is one of its words and all its words with digits were asked for; brand
    names do not count, and a product given as a pattern also has its variants (Ti, SUPER).
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
    pattern = any(_RANGE.fullmatch(part) or re.search(r"\dxx", part) for part in product)
    for word in wanted:
        place = next((place for place, part in enumerate(left) if _same(part, word)), None)
        if place is not None:
            left.pop(place)
        elif not (pattern and word in _VARIANTS):
            return False
    return not any(re.search(r"\d", part) for part in left)


def _same(part: str, word: str) -> bool:
    span = _RANGE.fullmatch(part)
    if span:
        number = re.fullmatch(re.escape(span[1]) + r"(\d+)", word)
        return (
            number is not None
            and len(number[1]) == len(span[2])
            and int(span[2]) <= int(number[1]) <= int(span[3])
        )
    if re.search(r"\dxx", part):
        digits = re.sub(r"(?<=[\dx])x", r"\\d", re.escape(part))
        return re.fullmatch(digits, word) is not None
    return part == word
