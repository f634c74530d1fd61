"""Packages of Python alone as one compact table: their releases, and all that METADATA of each requires.

A release is in it if all its wheels for Linux are for any machine, and METADATA of each was read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.factbase.model import DATA_LISTS, INDEPENDENT_LIST
from toolmatrix.harvest import families, project
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.index import wheels_by_target
from toolmatrix.harvest.package_facts import cell
from toolmatrix.harvest.project import PublishedRelease

_SOURCE = "independent-packages"


class _EveryPackage(dict[str, str]):
    """The component of each package, its own name where the matrix has none."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return name


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """A data table with a row for each package. Raises ToolmatrixError."""
    fields = family.only(("packages",), ("newest", "connections"))
    # Sorted, so that a new package moves no row.
    names = sorted(node.string("a package") for node in fields["packages"].sequence("packages"))
    newest = fields["newest"].integer("newest") if "newest" in fields else None
    threads = fields["connections"].integer("connections") if "connections" in fields else 2
    urls = families.index_urls(context)
    published = families.run_parallel(
        lambda name: project.releases(context.session, urls, name),
        names,
        context.progress,
        threads,
    )
    chosen = {
        name: [release for release in releases if release.is_pure][:newest]
        for name, releases in zip(names, published, strict=True)
        if _check(name, releases)
    }
    reader = _Reader(context, chosen, threads)
    counts = dict(zip(names, map(len, published), strict=True))
    rows = {name: reader.row(name, releases, counts[name]) for name, releases in chosen.items()}
    if unread := [f"{name} {chosen[name][0].version}" for name, row in rows.items() if not row]:
        raise HarvestRefused(
            "the requirements of a newest release cannot be read",
            where=Position(unread[0]),
            expected="METADATA that names releases in its requirements",
            found=", ".join(unread),
            help="leave these packages out",
        )
    source = {
        "title": "Python package index: file lists and METADATA",
        "at": f"packages {names[0]} to {names[-1]}, the releases that each row lists",
        "read": context.day.isoformat(),
    }
    table = {
        "id": family.name,
        "about": family.about.removesuffix("."),
        "source": _SOURCE,
        "where": "file list; Requires-Dist in METADATA of the wheels of each release",
        "evidence": "artifact",
        "lists": INDEPENDENT_LIST,
        "columns": [*DATA_LISTS[INDEPENDENT_LIST]],
        "rows": [*rows.values()],
    }
    return {"sources": {_SOURCE: source}, "data": [table]}


def _check(name: str, releases: Sequence[PublishedRelease]) -> bool:
    # With older releases alone, the newest of these would be given as the newest there is.
    newest = next((release for release in releases if not release.yanked), releases[0])
    if not newest.is_pure:
        raise HarvestRefused(
            "a package is not of Python alone",
            where=Position(f"{name} {newest.version}"),
            expected="wheels for any machine, and no others",
            found=", ".join(wheel.name for wheel in newest.files[:3]) or "no file for Linux",
            help="move it to a family of the kind `index`",
        )
    return True


class _Reader:
    """METADATA of the wheels of some releases, by the name of the wheel."""

    def __init__(
        self,
        context: HarvestContext,
        chosen: Mapping[str, Sequence[PublishedRelease]],
        threads: int,
    ) -> None:
        self.context = context
        components = _EveryPackage(context.packages)
        wheels = {
            wheel.name: wheel
            for releases in chosen.values()
            for release in releases
            for wheel in release.wheels
        }
        read = families.run_parallel(
            lambda wheel: project.read_metadata(context.session, wheel, components),
            wheels.values(),
            context.progress,
            threads,
        )
        self.metadata = dict(zip(wheels, read, strict=True))

    def row(self, name: str, releases: Sequence[PublishedRelease], count: int) -> list[str]:
        """The cells of a package, whose releases come the newest first; none where the newest cannot be read."""
        known = [
            (release, required)
            for release in reversed(releases)
            if (required := self.required(name, release)) is not None
        ]
        if not known or known[-1][0].version != releases[0].version:
            return []
        whole = [release for release, _ in known]
        pythons = [
            {project.ordered(release.requires_python)} if release.requires_python else set()
            for release in whole
        ]
        spans = [release.version for release in whole]
        return [
            name,
            " ".join(_dated(whole)),
            "; ".join(_runs(pythons, spans)),
            "; ".join(_runs([required for _, required in known], spans)),
            str(count),
        ]

    def required(self, name: str, release: PublishedRelease) -> set[str] | None:
        """The requirements of a release as text; None where they are not known whole."""
        by_target = {
            target: self.metadata[wheel.name]
            for target, wheel in wheels_by_target(release, self.context.pythons).items()
        }
        if not by_target or not all(metadata.whole for metadata in by_target.values()):
            return None
        selectors = {
            target: project.required(metadata, *target) for target, metadata in by_target.items()
        }
        texts = set()
        # Extras of a package name the package itself.
        for other in {other for required in selectors.values() for other in required} - {name}:
            value = cell(
                {target: required.get(other, "") for target, required in selectors.items()},
                self.context.pythons,
                later=True,
            )
            for part in value if isinstance(value, list) else [value]:
                inner = part if isinstance(part, dict) else {"is": part}
                # A pre-release, of which nothing is known.
                if "evidence" in inner:
                    return None
                conditions = "".join(
                    f",{component}={selector.replace(' ', '')}"
                    for component, selector in sorted(inner.get("when", {}).items())
                )
                texts.add(f"{other} {inner['is']}{conditions and ' if ' + conditions[1:]}")
        return texts


def _dated(releases: Sequence[PublishedRelease]) -> Iterator[str]:
    """Releases with their days: the first day in full, then the days since the one before."""
    before: date | None = None
    for release in releases:
        mark = release.version + "!" * release.yanked
        if not release.date:
            yield mark
            continue
        day = date.fromisoformat(release.date)
        yield f"{mark}@{day}" if before is None else f"{mark}{(day - before).days:+d}"
        before = day


def _runs(stated: Sequence[set[str]], releases: Sequence[str]) -> Iterator[str]:
    """Each text with the runs of releases that state it; a run to the newest release is open."""
    for text in sorted(set().union(*stated)):
        spans = []
        for holds, run in groupby(enumerate([text in texts for texts in stated]), itemgetter(1)):
            places = [place for place, _ in run]
            # Closed ends are written only where a release ends a run: a new release that says the same adds no text.
            if holds:
                last = releases[places[-1]] if places[-1] + 1 < len(releases) else ""
                first = releases[places[0]] if places[0] else ""
                spans.append(first if first == last != "" else f"{first}..{last}")
        yield f"{text}: {' '.join(spans)}"
