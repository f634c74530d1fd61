"""Soft reasons: pairs of what was asked for that rows speak about, but never together: nobody tested them."""

from __future__ import annotations

from toolmatrix.solve.assemble import assembled
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import CitedClaim
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import TestedRow, Variable
    from toolmatrix.solve.request import Request


class Untested(Value):
    """Rows name `subject` with other releases of `component` than the ones asked for, as the claims of `cites` say."""

    target: str
    subject: str
    component: str
    cites: tuple[CitedClaim, ...]


def untested(index: Index, request: Request) -> list[Untested]:
    """The pairs of asked components for which rows exist, none of which holds for both."""
    named = {ask.component for ask in request.asks}.union(SEVERAL)
    # Rows of most components name none of the others: these need not be put together.
    if not any(
        named.intersection(group.components) - {name}
        for name in named
        if name in index.header["components"]
        for group in index.component(name).row_groups
    ):
        return []
    assembly = assembled(index, request)
    rows: dict[int, list[tuple[TestedRow, dict[int, int]]]] = {}
    for row in assembly.every_row():
        masks = {number: mask for number, mask, _ in row.terms}
        rows.setdefault(row.owner, []).append((row, masks))
    found = []
    for target in assembly.request.targets:
        asked = _requested(assembly, target)
        for one in asked:
            wanted = _wanted(assembly, target, one)
            about = [
                (row, masks)
                for row, masks in rows.get(one.number, ())
                if row.target == target and masks[one.number] & wanted
            ]
            for other in asked if about else ():
                both = [(row, masks[other.number]) for row, masks in about if other.number in masks]
                # Who tested both tested other releases of them; where no row names both there is nothing to compare.
                met = _wanted(assembly, target, other)
                if other is not one and both and not any(mask & met for _, mask in both):
                    cites = _cites(assembly, [row for row, _ in both], target, one, other)
                    found.append(
                        Untested(
                            target=target,
                            subject=one.component,
                            component=other.component,
                            cites=tuple(cites),
                        )
                    )
    return found


def _cites(
    assembly: Assembly, rows: Sequence[TestedRow], target: str, one: Variable, other: Variable
) -> Iterator[CitedClaim]:
    asked = assembly.asked.get((target, one.component), -1)
    for row in rows:
        for cite in assembly.index.cites(row.cites):
            claim = assembly.index.claim(cite.record)
            # A row has a claim for each of its columns.
            if cite.touches(asked) and claim.component == other.component:
                yield cite


def _requested(assembly: Assembly, target: str) -> list[Variable]:
    """What was asked for that is no context."""
    components = assembly.header["components"]
    asked: list[Variable] = []
    for ask in assembly.asks(target):
        variable = assembly.pick(target, ask.component)
        if (
            variable is not None
            and variable not in asked
            and not components[ask.component]["given"]
            # What a recipe needs nobody asked for.
            and ask.option != "recipe"
        ):
            asked.append(variable)
    for name in SEVERAL:
        asked += [
            assembly.instance(target, name, number) for number, _ in assembly.named(target, name)
        ]
    return asked


def _wanted(assembly: Assembly, target: str, variable: Variable) -> int:
    """The candidates of a component that the request names; all releases where it names none."""
    asked = assembly.asked.get((target, variable.component), -2)
    if variable.component in SEVERAL:
        named = dict(assembly.named(target, variable.component)).get(variable.instance)
        asked = assembly.mask(variable.component, named) if named else -2
    return asked & (2 << variable.count) - 1
