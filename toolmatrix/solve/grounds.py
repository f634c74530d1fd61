"""A core read as grounds: facts about the same pair of components joined, and of each only what matters here."""

from __future__ import annotations

from toolmatrix.facts.index import in_ranges
from toolmatrix.finding import Ground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import Reason

    Domains = dict[tuple[str, str], int]


def grounds(assembly: Assembly, core: Sequence[int]) -> tuple[Ground, ...]:
    """The facts of a core in the order of its nogoods; the lines of the request are left out."""
    reasons = [assembly.reason(number) for number in core]
    left = domains(assembly, reasons)
    found: dict[tuple[str, str, str, str], list[Reason]] = {}
    for reason in reasons:
        if reason.ask is None:
            key = (reason.target, reason.kind, reason.subject, reason.component)
            found.setdefault(key, []).append(reason)
    return tuple(_ground(assembly, held, left) for held in found.values())


def domains(assembly: Assembly, reasons: Sequence[Reason]) -> Domains:
    """What is left of each component when the request and then every fact that it triggers are heard."""
    left: Domains = {}
    for reason in reasons:
        if reason.ask is not None:
            key = (reason.target, reason.ask.component)
            left[key] = left.get(key, -1) & assembly.mask(reason.ask.component, reason.ask.selector)
    for _ in reasons:
        for reason in reasons:
            if reason.ask is None and reason.kind in ("requires", "limits"):
                _fire(reason, left)
    return left


def _fire(reason: Reason, left: Domains) -> None:
    """Narrow the component a fact speaks about, if its conditions hold and something remains."""
    if all(not left.get((reason.target, name), -1) & ~mask for name, mask in reason.terms):
        key = (reason.target, reason.component)
        left[key] = left.get(key, -1) & reason.allowed or left.get(key, -1)


def _ground(assembly: Assembly, reasons: Sequence[Reason], left: Domains) -> Ground:
    first = reasons[0]
    if first.kind == "evidence":
        return Ground(
            kind=first.kind,
            subject=first.subject,
            releases=(),
            component=first.component,
            values=(first.rule,),
        )
    mask = 0
    allowed = 0
    records: dict[str, dict[str, Any]] = {}
    for reason in reasons:
        allowed |= reason.allowed
        wanted = left.get((reason.target, first.subject), -1) & reason.terms[0][1]
        mask |= wanted
        for ranges, number, evidence, _ in assembly.index.cites(reason.cites):
            if in_ranges(ranges, wanted):
                record = assembly.index.record(number)
                records[record["id"]] = record | {"evidence": evidence}
    whole = (2 << len(assembly.component(first.component)["versions"])) - 2
    rest = left.get((first.target, first.component), -1) & whole
    return Ground(
        kind=first.kind,
        subject=first.subject,
        releases=_named(assembly, first.subject, mask),
        component=first.component,
        values=tuple(dict.fromkeys(record["selector"] for record in records.values())),
        clashing=() if rest & allowed or rest == whole else _named(assembly, first.component, rest),
        alternatives=first.alternatives,
        conditions=tuple(
            (name, _named(assembly, name, bits))
            for name, bits in first.terms[1:]
            if not assembly.header["components"][name]["given"]
        ),
        facts=tuple(records),
        evidence=next((record["evidence"] for record in records.values()), ""),
    )


def _named(assembly: Assembly, component: str, mask: int) -> tuple[str, ...]:
    versions = assembly.component(component)["versions"]
    return tuple(name for place, name in enumerate(versions) if mask >> place + 1 & 1)
