"""Turns soft claims into tested rows: the cells of a row together, as of the day on which it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.facts import evidence as words
from toolmatrix.facts.compiled import CompiledClaim, SoftConstraint, Terms, bits, union

# What a row covers: subject, context, terms with their evidence, evidence of the row, may the subject be absent.
_RowKey = tuple[str, Terms, tuple[tuple[str, int, str], ...], str, bool]


def soft_constraints(
    soft: Iterable[CompiledClaim], order: list[str], dates: Mapping[str, Sequence[str]]
) -> Iterator[SoftConstraint]:
    """Gather the cells of a row, then the rows that differ in their subject alone."""
    rows: dict[tuple[str, Terms, str], list[CompiledClaim]] = {}
    for reading in soft:
        row = reading.claim.row, reading.when, _row_evidence(reading)
        rows.setdefault(row, []).append(reading)
    same: dict[_RowKey, list[tuple[int, tuple[CompiledClaim, ...]]]] = {}
    for when, evidence, cells in _split_by_day(rows, dates):
        first = min((when[0][0], *(cell.claim.component for cell in cells)), key=order.index)
        terms = tuple(sorted(_term(cell, first) for cell in cells))
        key = when[0][0], tuple(sorted(when[1:])), terms, evidence, when[0][0] != first
        same.setdefault(key, []).append((when[0][1], tuple(cells)))
    for key in sorted(same):
        subject, context, terms, evidence, optional = key
        cites = sorted(same[key], key=lambda cite: cite[1][0].claim.id)
        mask = union(mask for mask, _ in cites)
        yield SoftConstraint(
            context=context,
            # A row about what is chosen later is no reason to have it: none is as good.
            terms=((subject, mask | optional, evidence), *terms),
            evidence=evidence,
            cites=tuple(cites),
        )


LATER = "released-later"
"""The rule by which a row covers releases after its subject, which it cannot have tested."""


def _split_by_day(
    rows: Mapping[tuple[str, Terms, str], list[CompiledClaim]], dates: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Terms, str, list[CompiledClaim]]]:
    # Each row covers what was released when it was written, and, by a rule, what came later.
    for (_, when, evidence), cells in rows.items():
        subject, whole = when[0]
        # Releases of the subject by which the same versions were out stay together, or each would be a row of its own.
        groups: dict[tuple[int, ...], int] = {}
        for bit in bits(whole):
            by_then = tuple(_by_then(cell, bit, dates) for cell in cells)
            groups[by_then] = groups.get(by_then, 0) | bit
        for by_then, mask in groups.items():
            mine = ((subject, mask), *when[1:])
            timely = [*zip(cells, by_then, strict=True)]
            released = [cell.replace(when=mine, allowed=then) for cell, then in timely if then]
            if released:
                yield mine, evidence, released
            if any(cell.allowed != then for cell, then in timely):
                later = [
                    cell.replace(
                        when=mine,
                        evidence=words.weaker(cell.evidence, "derived"),
                        rules=(*cell.rules, LATER),
                    )
                    for cell in cells
                ]
                yield mine, words.weaker(evidence, "derived"), later


def _by_then(cell: CompiledClaim, subject: int, dates: Mapping[str, Sequence[str]]) -> int:
    # The releases that a cell names and that were out when its row was written; one without a date counts as out.
    # What was run was there when it was run.
    if cell.claim.carried or cell.evidence == "ran":
        return cell.allowed
    day = written(cell, subject, dates[cell.when[0][0]])
    if not day:
        return cell.allowed
    released = dates[cell.claim.component]
    named = cell.allowed & ~1
    return cell.allowed & ~union(b for b in bits(named) if released[b.bit_length() - 2] > day)


def written(reading: CompiledClaim, subject: int, dates: Sequence[str]) -> str:
    """The day on which what is said of a release was written, by the dates of its subject; empty if one is unknown."""
    named = reading.written_for or subject
    # A row about a release was written with it; widened to another release, it was written with the one it names.
    days = [dates[bit.bit_length() - 2] for bit in bits(subject if subject & named else named)]
    return max(days) if all(days) else ""


def _term(cell: CompiledClaim, first: str) -> tuple[str, int, str]:
    # What is carried is no reason to have it: beside the component that is chosen first, none is as good.
    name = cell.claim.component
    return name, cell.allowed | (cell.claim.carried and name != first), cell.evidence


def _row_evidence(reading: CompiledClaim) -> str:
    # That a cell was taken as its series (same-series) does not weaken its neighbours.
    inherited = [name for name in reading.rules if name != "same-series"]
    return words.weaker(reading.claim.evidence, "derived") if inherited else reading.claim.evidence
