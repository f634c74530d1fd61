"""What an assembly is made of: variables, rows that vouch, and the reasons behind nogoods."""

from __future__ import annotations

from itertools import compress

from toolmatrix.facts import evidence as words
from toolmatrix.solve.engine import Support
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.solve.request import Ask

SEVERAL = ("arch", "device")
"""The components a target may have several of."""

EVIDENCE = 8
"""Weights are (how early the row's first component is chosen) * EVIDENCE + rank of the evidence word."""


class Reason(Value):
    """Why a nogood is there: a request line, a fact (with its cites and the terms it joins), or a policy of the run."""

    kind: str
    ask: Ask | None = None
    target: str = ""
    subject: str = ""
    component: str = ""
    terms: tuple[tuple[str, int], ...] = ()
    allowed: int = 0
    alternatives: tuple[str, ...] = ()
    evidence: str = ""
    cites: int = -1
    rule: str = ""


class Variable:
    """One unknown: a component in a target, with the number of its releases (candidates are these plus absent)."""

    __slots__ = ("component", "count", "domain", "instance", "number", "oldest", "target")

    def __init__(
        self, target: str, component: str, instance: int, count: int, oldest: bool
    ) -> None:
        self.target = target
        self.component = component
        self.instance = instance
        self.count = count
        self.number = -1
        self.oldest = oldest
        self.domain = (2 << count) - 1

    def flip(self, mask: int) -> int:
        """A mask of the facts as the engine's: absent on top; reversed where the oldest is preferred."""
        releases = mask >> 1
        if self.oldest:
            releases = int(f"{releases:b}".zfill(self.count)[::-1], 2)
        return releases | (mask & 1) << self.count

    def column(self, masks: Iterable[int], worth: int) -> list[tuple[int, int, int]]:
        """The terms of this variable in rows, from their masks of the facts."""
        if self.oldest:
            return [(self.number, self.flip(mask), worth) for mask in masks]
        number, count = self.number, self.count
        return [(number, mask >> 1 | (mask & 1) << count, worth) for mask in masks]


class Vouching(Support):
    """A support with where it came from; its terms come in the order of their variables."""

    __slots__ = ("carried", "cites", "evidence", "owner", "subject", "target")

    def __init__(
        self,
        terms: list[tuple[int, int, int]],
        weight: int,
        target: str,
        subject: Variable,
        evidence: str,
        cites: int,
        carried: bool,
    ) -> None:
        self.terms = terms
        self.weight = weight
        self.target = target
        self.subject = subject.component
        self.owner = subject.number
        self.evidence = evidence
        self.cites = cites
        self.carried = carried


def vouchings(
    target: str,
    head: Sequence[Any],
    parts: Mapping[str, Variable],
    asked: int,
    left: Mapping[str, int],
    count: int,
) -> Iterator[Vouching]:
    """The rows under one head of the index; `asked` is what the request leaves of its subject, `left` of all others."""
    _, names, evidences, evidence, carried, columns, cites = head
    subject = parts.get(names[0])
    held = sorted((parts[name].number, place) for place, name in enumerate(names) if name in parts)
    if len(held) < 2 or subject is None:
        return
    first, gate = held[0]
    live = [
        asked & mask and left.get(names[gate], -1) & other
        for mask, other in zip(columns[0], columns[gate], strict=True)
    ]
    earliness = (count - first) * EVIDENCE
    weight = earliness + words.rank(evidence)
    told = []
    for _, place in held:
        worth = earliness + words.rank(evidences[place])
        told.append(parts[names[place]].column(compress(columns[place], live), worth))
    for *terms, cite in zip(*told, compress(cites, live), strict=True):
        yield Vouching(terms, weight, target, subject, evidence, cite, carried)
