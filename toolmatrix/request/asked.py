"""What a manifest asks for, as lines of a request, and what facts say of each: its builds, and what it requires."""

from __future__ import annotations

import re
from functools import partial

from toolmatrix.facts.index import Index
from toolmatrix.facts.versions import Key, Scale, SelectorError, key, order
from toolmatrix.manifests.model import PIP, Item, NotRead
from toolmatrix.manifests.source_text import Traced
from toolmatrix.solve.request import Ask
from toolmatrix.value import Value

ARCH = "arch"
_PIN = re.compile(r"==(\d+(?:\.\d+)*)")
# What sources of a list of files say.
_LISTED = re.compile(r"package ([\w.-]+), (?:final )?releases (\S+) to ([^\s,;]+)")
_ALL = ": file list"


class AskedPart(Value):
    """One line of a request that an item of a manifest makes.

    `asks` are its component, and the builds of it that it leaves; `text` is how a sentence names it. A change of
    version replaces `version`, which is None where the file does not have it as it is. `carried`: an image brings it.
    `open`: an index that nobody read may have builds of it; `older`: it may be a release before those that are known.
    """

    component: str
    asks: tuple[Ask, ...]
    text: str
    item: Item
    version: Traced | None = None
    carried: bool = False
    open: bool = False
    older: bool = False


class MissingRelease(Value):
    """A release that was not in the list of its package when that was `read`; `near` are its neighbours."""

    part: AskedPart
    package: str
    release: str
    near: tuple[str, ...]
    read: str


class AskedParts(Value):
    """All parts of one environment, the machine that it is for, and what of it the matrix does not know.

    `missing` are releases that are known not to be there.
    """

    name: str
    parts: tuple[AskedPart, ...]
    machine: str
    unknown: tuple[NotRead, ...]
    missing: tuple[MissingRelease, ...] = ()


def older(index: Index, component: str, *selectors: str) -> bool:
    """True if selectors admit releases before the oldest that is known: of these nobody says anything."""
    scale = index.scale(component)
    if index.header["components"][component]["scheme"] == "names" or not scale.versions:
        return False
    # Each bound, and what lies just above it, stands for all that is between bounds.
    bounds = {
        clause.text
        for selector in selectors
        for part in scale.parse(selector)
        for clause in part
        if clause.version
    }
    tried = {"0", *(bound + more for bound in bounds for more in ("", ".0.1"))}
    below = Scale("pep440", sorted(filter(partial(_before, scale.versions[0]), tried), key=_key))
    left = everything(len(below.versions))
    for selector in selectors:
        left &= below.select(selector)
    return bool(left)


def missing(index: Index, part: AskedPart, package: str) -> MissingRelease | None:
    """The release that a part pins, if a list of all files of its package lacks it, and has older and newer ones."""
    pinned = _PIN.fullmatch(part.asks[0].selector)
    if not pinned or part.item.kind != PIP or part.item.bounds or part.item.indexes:
        return None
    builds = (
        index.component(index.builds_of(part.component)).packages
        if package != part.component
        else {}
    )
    mask = sum(one for name, one in builds.items() if name.partition("[")[0] == package)
    names = index.scale(index.builds_of(part.component)).named(mask) if mask else ()
    releases = {name.partition("+")[0] for name in names if "@default/" in name}
    known = sorted(releases or index.component(part.component).versions, key=_key)
    older = [one for one in known if _before(pinned[1], one)]
    newer = [one for one in known if _before(one, pinned[1])]
    for source in index.sources().values() if older and newer else ():
        # What was listed on the index is all that there was.
        listed = _LISTED.match(source.at) if _ALL in source.title else None
        if listed and listed[1] == package and _before(listed[3], pinned[1]):
            near = older[-1], newer[0]
            return MissingRelease(
                part=part, package=package, release=pinned[1], near=near, read=source.read
            )
    return None


def requirements_of(index: Index, part: AskedPart) -> set[str]:
    """The components that hard facts say some release of a part requires."""
    left = index.scale(part.component).select(part.asks[0].selector)
    return {
        name
        for binding in index.component(part.component).bindings
        if binding.kind in ("requires", "needs") and binding.mask & left
        for name in binding.named
    }


def builds(index: Index, part: AskedPart, machine: str = "") -> tuple[str, int]:
    """The component of the builds of a package, and those of them that a part leaves, on a machine if one is given."""
    name = index.builds_of(part.component)
    if not name or part.item.kind != PIP:
        return name, 0
    facts = index.component(name)
    left = everything(len(facts.versions))
    selected = [
        (ask.component, index.scale(ask.component).select(ask.selector)) for ask in part.asks
    ]
    if machine:
        selected.append(("machine", index.scale("machine").bit(machine)))
    for component, mask in selected:
        if component == name:
            left &= mask
            continue
        for binding in facts.about(component, left):
            if not binding.conditions and not binding.allowed & mask:
                left &= ~binding.mask
    return name, left


def everything(count: int) -> int:
    """The mask of so many releases: bit 0 is the absence of a component, and none of them."""
    return (2 << count) - 2


def _key(version: str) -> Key:
    return order(key(version))


def _before(first: str, version: str) -> bool:
    try:
        return _key(version) < _key(first)
    except SelectorError:
        return False
