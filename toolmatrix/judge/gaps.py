"""Gaps in the facts: builds for a machine, the toolkit of a build, cells of a column.

A release is offered for a machine by the limits of its wheels, or else by the list of its files.
"""

from __future__ import annotations

from toolmatrix.codes.matrix import MissingBuild, MissingCell, MissingToolkit
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Component, Matrix, Release
    from toolmatrix.finding import Finding


def findings(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Find every gap."""
    builds: dict[str, list[Release]] = {}
    for release in matrix.releases.values():
        of = matrix.components[release.component].variant_of
        if of:
            builds.setdefault(of, []).append(release)
    for component in (part for part in matrix.components.values() if part.variants):
        yield from machines(index, component.name, builds.get(component.name, ()))
        yield from toolkits(matrix, index, component.name, builds.get(component.name, ()))
    yield from cells(matrix, index, [build for held in builds.values() for build in held])


def machines(index: Index, component: str, builds: Iterable[Release]) -> Iterator[Finding]:
    """Machines that releases are offered for, and for which no build of them is known."""
    held = {(build.attributes["release"], build.attributes["machine"]) for build in builds}
    known = index.component("machine").versions
    missing: dict[str, dict[str, list[str]]] = {}
    for place, release in enumerate(index.component(component).versions):
        offered, facts = _offered(index, component, 2 << place)
        for number, machine in enumerate(known):
            if offered >> number + 1 & 1 and (release, machine) not in held:
                missing.setdefault(machine, {})[release] = facts
    for machine, releases in missing.items():
        yield MissingBuild(
            severity="warning",
            component=component,
            releases=tuple(releases),
            machine=machine,
            facts=tuple(dict.fromkeys(fact for facts in releases.values() for fact in facts)),
        )


def _offered(index: Index, component: str, release: int) -> tuple[int, list[str]]:
    """The machines that the wheels of a release are for, and the facts that say so."""
    wheel = index.scale("from").bit("wheel")
    limited, listed = -1, 0
    by_limit: list[str] = []
    by_list: list[str] = []
    for binding in index.component(component).bindings:
        terms = dict(binding.conditions)
        if not binding.mask & release or binding.evidence == "unknown":
            continue
        if terms.pop("from", 0) != wheel:
            continue
        named = _cited(index, binding.cites, release)
        if any(fact.startswith(f"{component}-variants#") for fact in named):
            continue  # That is what the builds say together.
        if binding.component == "machine" and not terms:
            limited &= binding.allowed
            by_limit += named
        elif binding.kind == "requires" and set(terms) == {"machine"}:
            listed |= terms["machine"]
            by_list += named
    return (limited, by_limit) if by_limit else (listed, by_list)


def _cited(index: Index, cites: int, release: int) -> list[str]:
    return [index.claim(cite.record).id for cite in index.cites(cites) if cite.touches(release)]


def toolkits(
    matrix: Matrix, index: Index, component: str, builds: Sequence[Release]
) -> Iterator[Finding]:
    """Builds for an accelerator of which no fact says which toolkit they are for."""
    named: dict[str, int] = {}
    for claim in matrix.claims.values():
        owner, selector = claim.when[0]
        toolkit = _toolkit_of(matrix.components[claim.component])
        if matrix.components[owner].variant_of == component and toolkit:
            named[toolkit] = named.get(toolkit, 0) | index.scale(owner).select(selector)
    missing: dict[tuple[str, str, str], list[Release]] = {}
    for build in builds:
        accelerator = build.attributes["accelerator"]
        known = named.get(accelerator, 0) & index.scale(build.component).bit(build.version)
        if accelerator != "none" and not known:
            place = build.attributes["machine"], build.attributes["channel"], accelerator
            missing.setdefault(place, []).append(build)
    for (machine, channel, accelerator), held in missing.items():
        yield MissingToolkit(
            severity="warning",
            component=component,
            releases=tuple(dict.fromkeys(build.attributes["release"] for build in held)),
            machine=machine,
            channel=channel,
            accelerator=accelerator,
            facts=tuple(f"{build.component}=={build.version}" for build in held),
        )


def _toolkit_of(component: Component) -> str:
    """The accelerator that a component is the toolkit of; nothing for frameworks and what stands below a toolkit."""
    if component.framework or component.under or len(component.accelerators) != 1:
        return ""
    return component.accelerators[0]


class _TableRows(Value):
    """Rows of one table that compute on the same."""

    table: str
    accelerator: str


def cells(matrix: Matrix, index: Index, builds: Iterable[Release]) -> Iterator[Finding]:
    """Columns about what computes on an accelerator, with cells in some rows for it and none in others."""
    accelerator_of = {build.id: build.attributes["accelerator"] for build in builds}
    groups: dict[_TableRows, list[str]] = {}
    for row in matrix.rows.values():
        if row.table not in ("statements", row.id):
            own = accelerator_of.get(row.id) or dict(row.cells).get("accelerator", "")
            for accelerator in own.split() or [""]:
                group = _TableRows(table=row.table, accelerator=accelerator)
                groups.setdefault(group, []).append(row.id)
    named: dict[str, dict[str, str]] = {}
    inside = set()
    for claim in matrix.claims.values():
        named.setdefault(claim.row, {}).setdefault(claim.component, claim.id)
        if claim.carried:
            # What no cell names is not inside.
            inside.add((matrix.rows[claim.row].table, claim.component))
    for group, rows in groups.items():
        about = {name for row in rows for name in named.get(row, ())}
        for name in (name for name in matrix.components if name in about):
            usual = matrix.components[name].accelerators
            lacking = [row for row in rows if name not in named.get(row, ())]
            if usual and group.accelerator in (*usual, "") and (group.table, name) not in inside:
                facts = [fact for row in lacking for fact in list(named.get(row, {}).values())[:1]]
                other = [named[row][name] for row in rows if row not in lacking]
                if lacking:
                    yield _lacking(matrix, index, group, name, lacking, facts or other[:1])


def _lacking(
    matrix: Matrix,
    index: Index,
    group: _TableRows,
    about: str,
    rows: Sequence[str],
    facts: Sequence[str],
) -> Finding:
    component = matrix.rows[rows[0]].cells[0][0]
    mask = 0
    for row in rows:
        mask |= index.scale(component).select(matrix.rows[row].cells[0][1])
    return MissingCell(
        severity="info",
        component=component,
        releases=tuple(index.scale(component).named(mask)),
        about=about,
        table=group.table,
        accelerator=group.accelerator,
        facts=tuple(facts),
    )
