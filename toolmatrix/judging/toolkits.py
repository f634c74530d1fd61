"""Whether a wheel takes the toolkit that is beside it: it may bring its own, or use none."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Binding
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import PIP
from toolmatrix.request.judgement import RequestedPart, builds, requirements_of

LOADABLE = frozenset(("cuda", "cudnn"))
"""What a wheel may load that it does not bring."""


def widened(index: Index, part: RequestedPart) -> RequestedPart:
    """A part of a toolkit with all releases that a library compiled for one of them loads beside."""
    ask = part.asks[0]
    scale = index.scale(part.component)
    releases = scale.named(scale.select(ask.selector))
    first, back = called.family(part.component)
    if not releases or not first:
        return part
    if not scale.select(f">={first}") & scale.select(f"=={releases[0]}"):
        return part
    major, minor, *_ = *releases[-1].split("."), "0"
    # What was compiled with a later minor release may lack a function.
    until = "" if back else f",<{major}.{int(minor) + 1}"
    return part.replace(asks=(ask.replace(selector=f"=={major}.*{until}"),))


def needs_toolkit(index: Index, part: RequestedPart) -> bool | None:
    """Whether every build that is left of a wheel needs a toolkit beside it; None where that is unknown."""
    name, left = builds(index, part)
    if not name and part.item.kind == PIP:
        name, left = part.component, index.scale(part.component).select(part.asks[0].selector)
    beside = 0
    for binding in index.component(name).about("cuda", left) if left else ():
        if not is_beside(index, binding):
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
        if not is_beside(index, binding):
            left &= ~binding.mask
            yield binding
    for binding in facts.about("accelerator", left):
        if binding.allowed & ~1 == none:
            yield binding


def is_beside(index: Index, binding: Binding) -> bool:
    """True for what a wheel looks for beside it, and does not bring."""
    return any(index.claim(cite.record).beside for cite in index.cites(binding.cites))
