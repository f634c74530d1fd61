"""Whether a wheel takes the toolkit that is beside it: it may bring its own, or use none."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Binding
from toolmatrix.manifests.model import PIP
from toolmatrix.request.judgement import RequestedPart, builds, requirements_of

LOADABLE = frozenset(("cuda", "cudnn"))
"""What a wheel may load that it does not bring."""


def needs_toolkit(index: Index, part: RequestedPart) -> bool | None:
    """Whether every build that is left of a wheel needs a toolkit beside it; None where that is unknown."""
    name, left = builds(index, part)
    if not name and part.item.kind == PIP:
        name, left = part.component, index.scale(part.component).select(part.asks[0].selector)
    beside = 0
    for binding in index.component(name).about("cuda", left) if left else ():
        if not _beside(index, binding):
            # pip may take one that brings its own.
            return False
        beside |= binding.mask
    # Builds for no accelerator need none beside them.
    return True if left & beside else None


def loads_toolkit(index: Index, part: RequestedPart) -> bool:
    """True for a wheel that needs a toolkit beside it, and requires no other that brings one."""
    if not needs_toolkit(index, part):
        return False
    variants = (index.builds_of(name) for name in requirements_of(index, part))
    return not any(index.component(name).brings for name in variants if name)


def without_loaded_toolkit(index: Index, part: RequestedPart) -> tuple[str, tuple[str, ...]] | None:
    """The evidence, and the facts, by which no build that is left of a wheel loads a toolkit beside it.

    They bring their own, or use none; None where that is unknown of one of them.
    """
    name, left = builds(index, part)
    bindings = list(_without_toolkit(index, name, left)) if left else []
    for binding in bindings:
        left &= ~binding.mask
    if left or not bindings:
        return None
    cites = (cite for binding in bindings for cite in index.cites(binding.cites))
    claims = (index.claim(cite.record).id for cite in cites)
    best = max((binding.evidence for binding in bindings), key=words.rank)
    return best, tuple(dict.fromkeys(claims))[:4]


def _without_toolkit(index: Index, name: str, left: int) -> Iterator[Binding]:
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
