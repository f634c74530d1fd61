"""Devices by the names that people buy them under: `RTX 3090` is compute capability 8.6, `MI300X` is gfx942.

Product lists are facts (rows with a `products` cell): a name in none of them is unknown.
"""

from __future__ import annotations

import re

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from toolmatrix.factbase.index import Index

# Words that say whose product it is and of which line, but not which, with the maker.
_BRANDS = {
    **dict.fromkeys(("nvidia", "geforce", "tesla", "quadro", "jetson"), "nvidia"),
    **dict.fromkeys(("amd", "radeon", "instinct"), "amd"),
}

# How much memory a board has and how it is put in: it is the same device.
_PACKAGED = re.compile(r"\d+g(i?b)?|sxm\d*|pcie\d*|hbm\d\w?|oam|nvl\d*")
# nvidia-smi cuts a name that is longer than its column, also within a word.
_CUT = re.compile(r"\s*(?:\.\.\.|…)\s*$")
_CUT_PACKAGING = re.compile(r"\d+|sx?|pc?i?|hb?|oa?|nv?")

_CAPABILITY = re.compile(r"(?:sm|cc|compute(?: capability)?)?[_ ]?(\d+)\.?(\d)[af]?")
_GFX = re.compile(r"(gfx[0-9a-f]+)(?::.*)?")
# What tools print around a name, and lawyers into it.
_DECORATION = re.compile(r"\(UUID:.*|\bMIG\b.*|\((?:TM|R)\)|[™®]", re.IGNORECASE)

_NEAR = 3
# How many names are offered instead of one that is not known, how like it they are, and what a beginning counts.
_ALIKE = 0.7
_BEGINS = 0.9

# Longer words are not looked into.
_LONGEST = 40


class _Name(Value):
    # `core` are the words that distinguish products, `lines` the words for its maker.
    words: tuple[str, ...]
    core: tuple[str, ...]
    lines: frozenset[str]
    device: str = ""
    text: str = ""


def exactly(name: str, known: Collection[str]) -> str:
    """The device that a compute capability or a gfx names in any of its spellings, such as those of compilers."""
    text = _device_name(name).strip().lower()
    capability, gfx = _CAPABILITY.fullmatch(text), _GFX.fullmatch(text)
    plain = ".".join(capability.groups()) if capability else gfx[1] if gfx else text
    return plain if plain in known else ""


def find(index: Index, name: str) -> list[tuple[str, str]]:
    """The devices of the products called `name`, as (device, product).

    A product of that very name is meant, else each that has every word asked for, and none with digits besides. Brands
    and packaging need not be said; a brand that is said is that of the product, and of the products of one brand those
    with no more words than were asked for come first. A name that was cut is that of each product that begins so.
    """
    if _CUT.search(name):
        return _beginning(index, _CUT.sub("", _device_name(name)))
    products = [(product, product.name.lower()) for product in index.products()]
    vocabulary = {*_BRANDS, *_words(" ".join(text for _, text in products))}
    wanted = _name(_device_name(name), vocabulary=vocabulary)
    known = [
        _name(product.name, product.device)
        for product, text in products
        if wanted.core and all(word in text for word in wanted.core)
    ]
    # The exact name wins: `A100` is a product, and a word in the names of others.
    exact = [candidate for candidate in known if candidate.words == wanted.words]
    devices: dict[str, str] = {}
    for match in exact or _best(known, wanted):
        devices.setdefault(match.device, match.text)
    return sorted(devices.items())


def _beginning(index: Index, text: str) -> list[tuple[str, str]]:
    wanted = _name(text)
    whole = not wanted.core or _words(text)[-1] != wanted.core[-1]
    beginnings = [" ".join(wanted.core) + (" " if whole else "")]
    if not whole and _CUT_PACKAGING.fullmatch(wanted.core[-1]):
        beginnings.append("".join(f"{word} " for word in wanted.core[:-1]))
    for begins in filter(str.strip, beginnings):
        devices: dict[str, str] = {}
        for entry in index.products():
            product = _name(entry.name, entry.device)
            if f"{' '.join(product.core)} ".startswith(begins) and _same_line(product, wanted):
                devices.setdefault(product.device, product.text)
        if devices:
            return sorted(devices.items())
    return []


def names(index: Index) -> list[str]:
    """Every product name, for finding the nearest to a misspelt one."""
    return [product.name for product in index.products()]


def _device_name(text: str) -> str:
    # `GPU 0: NVIDIA A100 (UUID: ...)` of `nvidia-smi -L`, `Card series: MI300X` of `rocm-smi --showproductname`.
    return re.split(r":\s+", _DECORATION.sub(" ", text))[-1]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^\w:.+]+|_", text.lower()) if word and word != "gpu"]


def _name(text: str, device: str = "", vocabulary: Collection[str] = ()) -> _Name:
    words = _words(text)
    if vocabulary:
        words = [piece for word in words for piece in _split_word(word, vocabulary)]
    makers = frozenset(_BRANDS.values())
    return _Name(
        words=tuple(sorted(word for word in words if word not in makers)),
        core=tuple(word for word in words if word not in _BRANDS and not _PACKAGED.fullmatch(word)),
        lines=frozenset(word for word in words if word in _BRANDS),
        device=device,
        text=text,
    )


def _split_word(word: str, known: Collection[str]) -> list[str]:
    # A word that no product has is cut into words that some have: `rtx5090`, `gtx1080ti`; numbers stay whole.
    if word in known or _PACKAGED.fullmatch(word) or len(word) > _LONGEST:
        return [word]
    splits: list[list[str]] = [[]]
    for end in range(1, len(word) + 1):
        splits.append([])
        for start in range(end):
            inside = start and word[start - 1].isdigit() and word[start].isdigit()
            if (splits[start] or not start) and not inside and word[start:end] in known:
                splits[end] = [*splits[start], word[start:end]]
                break
    return splits[-1] or [word]


def _best(known: list[_Name], wanted: _Name) -> list[_Name]:
    # The products that have every word asked for, and of each brand those that have no more, if there are any.
    fitting = [
        (product, left) for product in known if (left := _extra_words(product, wanted)) is not None
    ]
    # Every number of a product is asked for.
    whole = [product for product, left in fitting if not _numbered(left)]
    # Of a name without a number at least half is said, or it is no name: `Orin` is one, `Blackwell` and `RTX` are none.
    if not _numbered(wanted.core):
        named = any(len(product.core) <= 2 * len(wanted.core) for product in whole)
        whole = [product for product, _ in fitting] if named else []
    best = []
    for lines in dict.fromkeys(product.lines for product in whole):
        own = [product for product in whole if product.lines == lines]
        best += [product for product in own if len(product.core) == len(wanted.core)] or own
    return best


def _same_line(product: _Name, wanted: _Name) -> bool:
    maker = "amd" if product.device.startswith("gfx") else "nvidia"
    if wanted.lines and maker not in {_BRANDS[line] for line in wanted.lines}:
        return False
    lines = wanted.lines - {maker}
    return not (lines and product.lines) or bool(lines & product.lines)


def _extra_words(product: _Name, wanted: _Name) -> list[str] | None:
    # None where the product lacks a word, or is of another brand.
    if not _same_line(product, wanted):
        return None
    left = list(product.core)
    for word in wanted.core:
        if word not in left:
            return None
        left.remove(word)
    return left


def _numbered(words: Iterable[str]) -> bool:
    return any(re.search(r"\d", word) for word in words)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like a misspelt or shortened one, word by word: `RTX 30` begins as `RTX 3050` does."""
    from difflib import SequenceMatcher

    wanted = _name(_device_name(name)).core
    if not wanted:
        return []

    def alike(word: str, other: str) -> float:
        if other.startswith(word):
            return 1 if other == word else _BEGINS
        return SequenceMatcher(None, word, other).ratio()

    def likeness(product: str) -> float:
        others = _name(product).core or (product,)
        return sum(max(alike(word, other) for other in others) for word in wanted) / len(wanted)

    ranked = sorted((-likeness(product), len(product), product) for product in dict.fromkeys(known))
    return [product for likeness, _, product in ranked[:_NEAR] if -likeness >= _ALIKE]
