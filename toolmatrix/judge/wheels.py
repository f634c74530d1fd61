"""What the builds that pip may take of a package compute on, and whether they load a toolkit that they do not bring."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.request.asked import builds, requirements_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import Binding
    from toolmatrix.request.asked import AskedPart


def accelerators(index: Index, part: AskedPart, machine: str) -> tuple[str, ...]:
    """What the builds of a package that are left on a machine were made for; nothing where they are not known."""
    name, left = builds(index, part, machine)
    found: dict[str, None] = {}
    scale = index.scale("accelerator")
    for binding in index.component(name).about("accelerator", left) if left else ():
        # A build for CUDA runs without one as well, and is no other for it.
        made = [one for one in scale.named(binding.allowed & ~1) if one != "none"]
        found |= dict.fromkeys(made or ["none"])
    return tuple(found)


def needs_toolkit(index: Index, part: AskedPart) -> bool | None:
    """Whether every build that is left of a wheel needs a toolkit beside it; None where that is unknown."""
    name, left = builds(index, part)
    beside = 0
    for binding in index.component(name).about("cuda", left) if left else ():
        if not _beside(index, binding):
            # pip may take one that brings its own.
            return False
        beside |= binding.mask
    # Builds for no accelerator need none beside them.
    return True if left & beside else None


def loads_toolkit(index: Index, part: AskedPart) -> bool:
    """True for a wheel that needs a toolkit beside it, and requires no other that brings one."""
    if not needs_toolkit(index, part):
        return False
    variants = (index.builds_of(name) for name in requirements_of(index, part))
    return not any(index.component(name).brings for name in variants if name)


def apart(index: Index, part: AskedPart) -> tuple[str, tuple[str, ...]] | None:
    """The evidence, and the facts, by which no build that is left of a wheel loads a toolkit beside it.

    They bring their own, or use none; None where that is unknown of one of them.
    """
    name, left = builds(index, part)
    found = list(_apart(index, name, left)) if left else []
    for binding in found:
        left &= ~binding.mask
    if left or not found:
        return None
    claims = (index.claim(cite.record).id for one in found for cite in index.cites(one.cites))
    best = max((one.evidence for one in found), key=words.rank)
    return best, tuple(dict.fromkeys(claims))[:4]


def _apart(index: Index, name: str, left: int) -> Iterator[Binding]:
    facts, none = index.component(name), index.scale("accelerator").bit("none")
    for binding in facts.about("cuda", left):
        if not _beside(index, binding):
            left &= ~binding.mask
            yield binding
    for binding in facts.about("accelerator", left):
        if binding.allowed & ~1 == none:
            yield binding


def _beside(index: Index, binding: Binding) -> bool:
    return any(index.claim(cite.record).beside for cite in index.cites(binding.cites))
