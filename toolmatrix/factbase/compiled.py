"""A matrix once compiled: claims with their masks, what binds, what ranks, what disagrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_

from toolmatrix.factbase.model import Claim, Matrix
from toolmatrix.factbase.versions import Scale
from toolmatrix.value import Value

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
    """For the subject releases in `mask` the rival says of its component what the deciding reading does not."""

    mask: int
    rival: CompiledClaim
    deciding: CompiledClaim


def bits(mask: int) -> Iterator[int]:
    """The set bits of a mask, one by one."""
    # `mask & -mask` is the lowest one: no count of the releases is needed, and few of hundreds are set.
    while mask:
        bit = mask & -mask
        yield bit
        mask ^= bit


def union(masks: Iterable[int]) -> int:
    """The union of some masks."""
    return reduce(or_, masks, 0)


class Compiled(Value):
    """Everything the index holds; bindings, rows and disputes of the `subjects` alone."""

    matrix: Matrix
    subjects: frozenset[str]
    digest: str
    scales: Mapping[str, Scale]
    bindings: tuple[CompiledBinding, ...]
    soft_constraints: tuple[SoftConstraint, ...]
    disputes: tuple[CompiledDispute, ...]
