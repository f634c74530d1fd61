"""Which components files on top of a matrix change, so that all others keep what was compiled of them.

A component is compiled from its own releases, rows and claims, and from the releases of the components that its claims
name. `compile` and `writer` read nothing else of others but what this module counts as a change of everything.
"""

from __future__ import annotations

from toolmatrix.facts import minimums

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from toolmatrix.facts.model import Matrix

    _Key = TypeVar("_Key")
    _Fact = TypeVar("_Fact")


def changed(below: Matrix, matrix: Matrix) -> set[str] | None:
    """The components of which something differs; None where that may be any."""
    # Names and their order, when a source was read, code and breaks count wherever they are named.
    if (
        [*below.components.items()] != [*matrix.components.items()]
        or any(matrix.sources[name] != source for name, source in below.sources.items())
        or below.code() != matrix.code()
        or minimums.breaks(below) != minimums.breaks(matrix)
    ):
        return None
    claims = _differences(below.claims, matrix.claims)
    released = {release.component for release in _differences(below.releases, matrix.releases)}
    components = {claim.when[0][0] for claim in claims} | released
    components |= {row.subject.partition(" ")[0] for row in _differences(below.rows, matrix.rows)}
    components |= {read.component for read in _differences(below.requirements, matrix.requirements)}
    # A build is of the day of its release.
    components |= {
        name for name, component in matrix.components.items() if component.variant_of in released
    }
    # Which devices run an arch is in claims of others.
    runs = bool(released & {"arch", "device"}) or any(
        (claim.kind, claim.component) == ("limits", "arch") for claim in claims
    )
    if released or runs:
        components |= {
            claim.when[0][0]
            for claim in matrix.claims.values()
            if (runs and (claim.by_device or claim.by_toolkit))
            or not released.isdisjoint((claim.component, *dict(claim.when)))
        }
    return components


def _differences(below: Mapping[_Key, _Fact], above: Mapping[_Key, _Fact]) -> list[_Fact]:
    # What was not replaced is the same object.
    return [
        fact
        for side, opposite in ((below, above), (above, below))
        for key, fact in side.items()
        if opposite.get(key) is not fact
    ]
