"""Findings about pins of libraries that a package requires at releases of its own, as `pip freeze` writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from toolmatrix.codes.manifests import RefusedTogether
from toolmatrix.factbase.index import Index
from toolmatrix.judging.toolkits import is_beside
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import PIP, Item
from toolmatrix.request.judgement import (
    ManifestRefusal,
    RequestedPart,
    builds,
    finding_fields,
    has_answer,
    refused,
)
from toolmatrix.solve.request import Ask, Request

_CUDA = "cuda"


def pinned(
    index: Index,
    parts: Sequence[RequestedPart],
    items: Sequence[Item],
    request: Callable[[Sequence[RequestedPart]], Request],
    environment: str,
) -> Iterator[ManifestRefusal]:
    """The libraries of CUDA that are pinned at another release than a package beside them brings."""
    libraries = [*filter(None, (_library(index, item) for item in items if item.kind == PIP))]
    for part in parts if libraries else ():
        name, left = builds(index, part)
        for library, toolkit in libraries if left else ():
            about = index.component(name).about(library.component, left)
            # What a package looks for beside it may come from elsewhere.
            if all(is_beside(index, binding) for binding in about):
                continue
            alone, together = request((part,)), request((part, library))
            # The package of the library is for one toolkit, and builds for others do not require it.
            if not has_answer(index, alone.replace(asks=(*alone.asks, toolkit))):
                continue
            outcome = refused(index, together.replace(asks=(*together.asks, toolkit)))
            lines = [line for core in outcome.cores for line in core.lines] if outcome else []
            grounds = tuple(
                line.ground
                for line in lines
                if line.ground and line.ground.component == library.component
            )
            if grounds:
                finding = RefusedTogether(
                    **finding_fields((part, library), environment),
                    severity="error",
                    grounds=grounds,
                    facts=tuple(dict.fromkeys(fact for each in grounds for fact in each.facts)),
                )
                yield ManifestRefusal(finding=finding, parts=(part, library), request=together)


def _library(index: Index, item: Item) -> tuple[RequestedPart, Ask] | None:
    """The library that an item pins, and the toolkit that its package is for; None for any other item."""
    component, major = called.library(called.package_name(item.name))
    if component not in index.header["components"] or not item.specifier.startswith("=="):
        return None
    if item.specifier[2:] not in index.scale(component).versions:
        return None
    text = item.text.text
    ask = Ask(component=component, selector=item.specifier, text=text)
    part = RequestedPart(
        component=component, asks=(ask,), text=text, item=item, version=item.version
    )
    return part, Ask(component=_CUDA, selector=f"=={major}.*", text=text, implied=True)
