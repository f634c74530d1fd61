"""A second engine: CaDiCaL on the whole problem of a request, and every hard fact read anew over an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.solve.oracle import Sat
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.index import Index
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution


def satisfiable(index: Index, request: Request) -> bool:
    """Whether a request has an answer, whatever nobody knows."""
    assembly = Assembly(index, request, whole=True)
    sat = Sat(fewer(assembly.without(assembly.unread).problem()))
    try:
        return sat.satisfiable()
    finally:
        sat.close()


def fewer(problem: Problem) -> Problem:
    """The same problem with one candidate for all that no nogood tells apart."""
    masks: list[set[int]] = [set() for _ in problem.sizes]
    for terms in problem.nogoods:
        for variable, mask in terms:
            masks[variable].add(mask)
    classes = [_classes(domain, masks[variable]) for variable, domain in enumerate(problem.domains)]
    moved: list[dict[int, int]] = [
        {
            mask: sum(1 << place for place, one in enumerate(classes[variable]) if one & mask)
            for mask in masks[variable]
        }
        for variable in range(len(problem.sizes))
    ]
    nogoods = {
        tuple((variable, moved[variable][mask]) for variable, mask in terms)
        for terms in problem.nogoods
    }
    # What holds nowhere forbids nothing.
    kept = sorted(terms for terms in nogoods if all(mask for _, mask in terms))
    return Problem([len(one) for one in classes], kept)


def _classes(domain: int, masks: set[int]) -> Sequence[int]:
    found = [domain] if domain else []
    for mask in masks:
        found = [part for one in found for part in (one & mask, one & ~mask) if part]
    return found


def broken(answer: Resolution) -> Iterator[str]:
    """The hard facts that an answer breaks, read without what the solver made of them."""
    index = answer.index
    for target, choices in answer.targets.items():
        given = {
            ask.component: ask.selector
            for ask in answer.request.asks
            if ask.target in ("", target) and index.header["components"][ask.component]["given"]
        }
        hidden = {pin.component: pin.release for pin in answer.hidden if pin.target in ("", target)}
        for instance in sorted({choice.instance for choice in choices} - {0}) or [0]:
            chosen = given | hidden
            chosen |= {
                choice.component: choice.version
                for choice in choices
                if choice.instance in (0, instance)
            }
            yield from _facts(index, target, chosen)


def _facts(index: Index, target: str, chosen: Mapping[str, str]) -> Iterator[str]:
    bits = {name: index.scale(name).select(version) for name, version in chosen.items()}
    bits = {name: index.scale(name).bit(chosen[name]) or bit for name, bit in bits.items()}
    for name, bit in bits.items():
        for binding in index.component(name).bindings:
            if binding.evidence == UNKNOWN or not binding.mask & bit:
                continue
            if not all(bits.get(other, 1) & mask for other, mask in binding.conditions.items()):
                continue
            if binding.alternatives:
                right = any(other in bits for other in binding.alternatives)
            else:
                right = bool(bits.get(binding.component, 1) & binding.allowed)
            if not right:
                facts = [index.record(cite.record).id for cite in index.cites(binding.cites)]
                yield f"{target}: {name} {chosen[name]} {binding.kind} {binding.named}: {facts[:3]}"
