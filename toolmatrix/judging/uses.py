"""Names that the code of a project uses, and that the release which a file installs does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolmatrix.codes.manifests import NameRemoved
from toolmatrix.factbase.index import Index
from toolmatrix.manifests.model import Traced, position
from toolmatrix.request.judgement import RequestedPart, RequestedParts, finding_fields
from toolmatrix.request.removed import tightest


def removed(
    index: Index,
    uses: Mapping[str, Traced],
    requested: RequestedParts,
    installed: Mapping[str, RequestedPart],
) -> Iterator[tuple[NameRemoved, tuple[RequestedPart, ...]]]:
    """What no release has that a part may be; `installed` are the newest of those that a file leaves open."""
    by_component = {part.component: part for part in requested.parts}
    for use in tightest(index, uses, by_component):
        part = by_component[use.component]
        scale = index.scale(use.component)
        releases = scale.select(installed.get(part.text, part).asks[0].selector)
        if releases and not releases & scale.select(use.releases):
            finding = NameRemoved(
                **finding_fields((part,), requested.name),
                severity="warning",
                name=use.place.text,
                place=str(position(use.place)),
                release=f"{use.component} {scale.named(releases)[-1]}",
                selector=use.releases,
                facts=(use.fact,),
            )
            yield finding, (part,)
