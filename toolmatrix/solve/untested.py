"""Soft reasons: pairs of requested components that have tested rows, but none for these releases together."""

from __future__ import annotations

from toolmatrix.solve.assemble import assembled
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import CitedClaim
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
    """The pairs of requested components that have rows, but none that holds for both."""
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
    pairs = []
    for target in assembly.request.targets:
        variables = _requested(assembly, target)
        for variable in variables:
            wanted = _wanted(assembly, target, variable)
            about = [
                (row, masks)
                for row, masks in rows.get(variable.number, ())
                if row.target == target and masks[variable.number] & wanted
            ]
            for other in variables if about else ():
                both = [(row, masks[other.number]) for row, masks in about if other.number in masks]
                # Rows that name both name other releases of them; where no row names both there is nothing to compare.
                met = _wanted(assembly, target, other)
                if other is not variable and both and not any(mask & met for _, mask in both):
                    cites = _cites(assembly, [row for row, _ in both], target, variable, other)
                    pairs.append(
                        Untested(
                            target=target,
                            subject=variable.component,
                            component=other.component,
                            cites=tuple(cites),
                        )
                    )
    return pairs


def _cites(
    assembly: Assembly, rows: Sequence[TestedRow], target: str, variable: Variable, other: Variable
) -> Iterator[CitedClaim]:
    admitted = assembly.requested.get((target, variable.component), -1)
    for row in rows:
        for cite in assembly.index.cites(row.cites):
            claim = assembly.index.claim(cite.record)
            # A row has a claim for each of its columns.
            if cite.touches(admitted) and claim.component == other.component:
                yield cite


def _requested(assembly: Assembly, target: str) -> list[Variable]:
    """What was asked for that is no context."""
    components = assembly.header["components"]
    requested: list[Variable] = []
    for ask in assembly.asks(target):
        variable = assembly.pick(target, ask.component)
        if (
            variable is not None
            and variable not in requested
            and not components[ask.component]["given"]
            # What a recipe needs was not requested.
            and ask.option != "recipe"
        ):
            requested.append(variable)
    for name in SEVERAL:
        instances = assembly.named(target, name)
        requested += [assembly.instance(target, name, number) for number, _ in instances]
    return requested


def _wanted(assembly: Assembly, target: str, variable: Variable) -> int:
    """The candidates of a component that the request names; all releases where it names none."""
    admitted = assembly.requested.get((target, variable.component), -2)
    if variable.component in SEVERAL:
        named = dict(assembly.named(target, variable.component)).get(variable.instance)
        admitted = assembly.mask(variable.component, named) if named else -2
    return admitted & (2 << variable.count) - 1
