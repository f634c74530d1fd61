"""Gaps in the facts: builds for a machine, the toolkit of a build, cells of a column.

A release is offered for a machine by the limits of its wheels, or else by the list of its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolmatrix.codes.matrix import MissingBuild, MissingCell, MissingToolkit
from toolmatrix.facts.index import Index
from toolmatrix.facts.model import Component, Matrix, Release
from toolmatrix.finding import Finding, merged
from toolmatrix.judge import stage_facts


def findings(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Find every gap."""
    builds: dict[str, list[Release]] = {}
    for release in matrix.releases.values():
        of = matrix.components[release.component].variant_of
        if of:
            builds.setdefault(of, []).append(release)
    for component in (part for part in matrix.components.values() if part.variants):
        own = builds.get(component.name, ())
        yield from merged(machines(index, component.name, own), "releases", "facts")
        yield from merged(toolkits(matrix, index, component.name, own), "releases", "facts")
    yield from cells(matrix, index, [build for held in builds.values() for build in held])


def machines(index: Index, component: str, builds: Iterable[Release]) -> Iterator[MissingBuild]:
    """Machines that releases are offered for, and for which no build of them is known."""
    held = {(build.attributes["release"], build.attributes["machine"]) for build in builds}
    for place, release in enumerate(index.component(component).versions):
        offered, facts = _offered(index, component, 2 << place)
        for machine in index.scale("machine").named(offered):
            if (release, machine) not in held:
                yield MissingBuild(
                    severity="warning",
                    component=component,
                    releases=(release,),
                    machine=machine,
                    facts=tuple(facts),
                )


def _offered(index: Index, component: str, release: int) -> tuple[int, list[str]]:
    # By the limits of its wheels where facts give any, else by the list of its files.
    wheel = index.scale("from").bit("wheel")
    limited, listed = -1, 0
    by_limit: list[str] = []
    by_list: list[str] = []
    for binding in index.component(component).bindings:
        terms = dict(binding.conditions)
        spoken = binding.mask & release and binding.evidence != "unknown"
        if not spoken or terms.pop("from", 0) != wheel:
            continue
        named = [claim.id for claim in stage_facts.cited(index, binding, release)]
        # What the builds say together would say that none is missing.
        if any(fact.startswith(f"{component}-variants#") for fact in named):
            continue
        if binding.component == "machine" and not terms:
            limited &= binding.allowed
            by_limit += named
        elif binding.kind == "requires" and set(terms) == {"machine"}:
            listed |= terms["machine"]
            by_list += named
    return (limited, by_limit) if by_limit else (listed, by_list)


def toolkits(
    matrix: Matrix, index: Index, component: str, builds: Sequence[Release]
) -> Iterator[MissingToolkit]:
    """Builds for an accelerator of which no fact says which toolkit they are for."""
    named: dict[str, int] = {}
    for claim in matrix.claims.values():
        owner, selector = claim.when[0]
        toolkit = _toolkit_of(matrix.components[claim.component])
        if matrix.components[owner].variant_of == component and toolkit:
            named[toolkit] = named.get(toolkit, 0) | index.scale(owner).select(selector)
    for build in builds:
        accelerator = build.attributes["accelerator"]
        known = named.get(accelerator, 0) & index.scale(build.component).bit(build.version)
        if accelerator != "none" and not known:
            yield MissingToolkit(
                severity="warning",
                component=component,
                releases=(build.attributes["release"],),
                machine=build.attributes["machine"],
                channel=build.attributes["channel"],
                accelerator=accelerator,
                facts=(f"{build.component}=={build.version}",),
            )


def _toolkit_of(component: Component) -> str:
    """The accelerator that a component is the toolkit of; nothing for frameworks and what stands below a toolkit."""
    if component.framework or component.under or len(component.accelerators) != 1:
        return ""
    return component.accelerators[0]


def cells(matrix: Matrix, index: Index, builds: Iterable[Release]) -> Iterator[Finding]:
    """Columns about what computes on an accelerator, with cells in some rows for it and none in others."""
    accelerator_of = {build.id: build.attributes["accelerator"] for build in builds}
    groups: dict[tuple[str, str], list[str]] = {}
    for row in matrix.rows.values():
        if row.table not in ("statements", row.id):
            own = accelerator_of.get(row.id) or dict(row.cells).get("accelerator", "")
            for accelerator in own.split() or [""]:
                groups.setdefault((row.table, accelerator), []).append(row.id)
    named: dict[str, dict[str, str]] = {}
    inside = set()
    for claim in matrix.claims.values():
        named.setdefault(claim.row, {}).setdefault(claim.component, claim.id)
        if claim.carried or claim.complete:
            # What no cell names is not inside, or not wanted.
            inside.add((matrix.rows[claim.row].table, claim.component))
    # Rows for the CPU lack no toolkit, so that they are compared among themselves.
    for (table, accelerator), rows in groups.items():
        about = {name for row in rows for name in named.get(row, ())}
        for name in (name for name in matrix.components if name in about):
            usual = matrix.components[name].accelerators
            lacking = [row for row in rows if name not in named.get(row, ())]
            wanted = usual and accelerator in (*usual, "") and (table, name) not in inside
            if wanted and lacking:
                facts = [fact for row in lacking for fact in list(named.get(row, {}).values())[:1]]
                other = [named[row][name] for row in rows if row not in lacking]
                component, releases = _subject(matrix, index, lacking)
                yield MissingCell(
                    severity="info",
                    component=component,
                    releases=releases,
                    about=name,
                    table=table,
                    accelerator=accelerator,
                    facts=tuple(facts or other[:1]),
                )


def _subject(matrix: Matrix, index: Index, rows: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    component = matrix.rows[rows[0]].cells[0][0]
    mask = 0
    for row in rows:
        mask |= index.scale(component).select(matrix.rows[row].cells[0][1])
    return component, tuple(index.scale(component).named(mask))
