"""A matrix once compiled: claims with their masks, what binds, what ranks, what disagrees."""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.facts.model import Claim, Matrix
    from toolmatrix.facts.versions import Scale

Terms = tuple[tuple[str, int], ...]
"""Conditions: (component, mask), the subject first."""


class CompiledClaim(Value):
    """A claim with its masks, as read directly or through rules of inheritance (`evidence` is then weaker)."""

    claim: Claim
    when: Terms
    allowed: int
    evidence: str
    rules: tuple[str, ...]
    written_for: int = 0
    """The releases that a widened claim names itself."""


class CompiledBinding(Value):
    """Hard: when the terms hold, `component` is within `allowed`. `cites`: which claim binds which subject releases."""

    kind: str
    when: Terms
    component: str
    allowed: int
    alternatives: tuple[str, ...]
    evidence: str
    cites: tuple[tuple[int, CompiledClaim], ...]


class SoftConstraint(Value):
    """Soft: these versions were tested together; `terms` are (component, mask, evidence)."""

    context: Terms
    terms: tuple[tuple[str, int, str], ...]
    evidence: str
    cites: tuple[tuple[int, tuple[CompiledClaim, ...]], ...]


class CompiledDispute(Value):
    """For the subject releases in `mask` the rival says of `component` what the deciding reading does not."""

    subject: str
    component: str
    mask: int
    rival: CompiledClaim
    deciding: CompiledClaim


class Compiled(Value):
    """Everything the index holds."""

    matrix: Matrix
    digest: str
    scales: Mapping[str, Scale]
    bindings: tuple[CompiledBinding, ...]
    soft_constraints: tuple[SoftConstraint, ...]
    disputes: tuple[CompiledDispute, ...]
