"""Packages that were read at an index as the document of a fact file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmatrix.facts.versions import Scale
from toolmatrix.harvest import project
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.project import MACHINES, Metadata, PublishedRelease, Wheel
from toolmatrix.value import Value

if TYPE_CHECKING:
    Place = tuple[str, str]
    """A machine and a Python series."""
    Served = dict[tuple[str, str], Wheel]
    """The wheel that a machine and a Python series get."""

_DIGITS = 16
"""Digits of a sha256 that name a file."""


class BuildLine(Value):
    """The line of the builds of some releases for a machine, where it is another than that of what they require."""

    releases: str
    machine: str
    line: str


class Package(Value):
    """A package of a family, as its keys say it."""

    name: str
    component: str
    title: str
    # The oldest release that is read, "" for all.
    since: str
    # Components that its requirements are read of, None for all that the matrix knows.
    requires: tuple[str, ...] | None
    extras: tuple[str, ...]
    # The line of its builds; `COMPONENT` for that of the build of a component that it requires exactly; "" for a
    # package that computes on no accelerator by itself.
    line: str
    lines: tuple[BuildLine, ...]
    install: str
    # The CUDA that its name stands for, "" for none, and whether that has to be there beside it.
    cuda: str
    beside: bool
    # Nobody read which devices the code inside is for.
    unread: bool
    # The releases with such code, "" for all.
    compiled: str = ""
    # So many of the newest releases are read, 0 for all, and as many of those that a selector admits besides.
    newest: int = 0
    besides: str = ""
    # Nobody looks at what was read before it is answered with: rows say so, and what they leave out.
    unreviewed: bool = False
    # It is built from source as well, so that its files speak of wheels alone; what a build takes other facts say
    # (`read`) or nobody (`unread`). "" where nobody thinks of a build.
    source: str = ""


class ReleaseRead(Value):
    """A release with what was read of it."""

    release: PublishedRelease
    served: Served
    metadata: Mapping[tuple[str, str], Metadata]


class PackageRead(Value):
    """A package with its releases, the newest first."""

    package: Package
    releases: tuple[ReleaseRead, ...]
    # Final releases that the index has.
    listed: int = 0


def document(read: Sequence[PackageRead], context: HarvestContext) -> dict[str, Any]:
    """The facts of packages, those of one component together."""
    by_component: dict[str, list[PackageRead]] = {}
    for one in read:
        by_component.setdefault(one.package.component, []).append(one)
    made: dict[str, Any] = {"sources": {}, "tables": [], "statements": []}
    for one in read:
        made["sources"][_source(one.package)] = {
            "title": f"Python package index, {one.package.name}: file list"
            + (" and METADATA" if one.package.requires != () else ""),
            "at": f"package {one.package.name}, {_number(one)}final releases "
            f"{one.releases[-1].release.version} to {one.releases[0].release.version}",
            "read": context.day.isoformat(),
        }
    for component, several in by_component.items():
        if context.components is not None and component not in context.components:
            made.setdefault("components", {})[component] = {
                "title": several[0].package.title,
                "scheme": "pep440",
            }
        made["tables"] += _Tables(component, several, context).all()
        made["statements"] += _unread(component, several[0])
    return made


def _number(read: PackageRead) -> str:
    count = len(read.releases)
    return f"{count} of {read.listed} " if read.package.newest and count < read.listed else ""


def _unread(component: str, read: PackageRead) -> Iterator[dict[str, Any]]:
    """What nobody knows of a package, as facts that are let go where nothing better refuses."""
    package = read.package
    about = {"evidence": "unknown", "source": _source(package)}
    if package.source == "unread" or (package.line and not package.source):
        yield {
            "id": f"{component}-from-source",
            "when": {component: "*"},
            "requires": {"from": "wheel"},
            "says": "is known as a wheel",
            **about,
            "where": "file list: what a build from source takes was not read",
        }
    if package.unread and not (package.unreviewed and all(map(_is_pure, read.releases))):
        code = "may have code" if package.unreviewed else "has code"
        yield {
            "id": f"{component}-devices",
            "when": {component: package.compiled or "*"},
            "limits": {"device": "absent"},
            "says": f"{code} for devices that nobody read",
            **about,
            "where": "file list: which devices its kernels are for was not read",
        }


def _is_pure(held: ReleaseRead) -> bool:
    # Wheels that are the same for every machine hold no code for any.
    wheels = held.release.wheels
    return bool(wheels) and not any(one.machine for wheel in wheels for one in wheel.serves)


def _source(package: Package) -> str:
    return f"pypi-{package.name}"


class _Tables:
    """The tables of one component: its releases, and its builds where they differ by toolkit."""

    def __init__(self, component: str, read: list[PackageRead], context: HarvestContext) -> None:
        self.component = component
        self.read = read
        self.context = context
        self.has_builds = any(one.package.line for one in read)
        self.built = {
            held.release.version
            for one in read
            for held in one.releases
            if any(self.builds(one.package, held))
        }

    def all(self) -> Iterator[dict[str, Any]]:
        yield self.releases()
        if self.has_builds:
            for one in self.read:
                rows = [row for held in one.releases for row in self.builds(one.package, held)]
                if rows:
                    yield self.table(f"{one.package.name}-variants", one.package, rows)

    def releases(self) -> dict[str, Any]:
        """The table of releases; of a release in several packages that of the first says what it requires."""
        rows: dict[str, dict[str, Any]] = {}
        for one in self.read:
            for held in one.releases:
                row = self.release(one, held)
                known = rows.setdefault(held.release.version, row)
                if known is not row:
                    known["date"] = min(known.get("date", ""), row.get("date", ""))
        made = self.table(f"{self.component}-releases", self.read[0].package, list(rows.values()))
        if all(one.package.requires != () for one in self.read):
            named = made.pop("rows")
            made |= {"requirements-read": self.requirements_read(), "rows": named}
        return made

    def requirements_read(self) -> dict[str, Any]:
        """The packages that are required and have no cell, and the releases whose METADATA does not say all."""
        others: set[str] = set()
        unread: dict[str, None] = {}
        for one in self.read:
            for held in one.releases:
                known = {self.component, *self.required(one.package, held)}
                for place, told in held.metadata.items():
                    named = project.named(told, *place, one.package.extras)
                    others |= {
                        package for package, component in named.items() if component not in known
                    }
                if not held.metadata or not all(told.whole for told in held.metadata.values()):
                    unread[self.alone(held.release.version)] = None
        selector = {"unread": " ".join(unread)} if unread else {}
        return {"others": sorted(others), **selector}

    def release(self, read: PackageRead, held: ReleaseRead) -> dict[str, Any]:
        release = held.release
        row: dict[str, Any] = {self.component: release.version, "date": release.date}
        if release.yanked:
            row["yanked"] = True
        row["requires-python"] = project.ordered(release.requires_python)
        if not self.has_builds:
            row |= self.installed(held)
        if read.package.source and not self.has_builds:
            row["machine"] = _machines(held)
        # What has a line of its own has channels of its own as well, of which this index says nothing.
        elif read.package.unread or (
            read.package.line in self.context.lines and release.version not in self.built
        ):
            row["wheel-machine" if release.wheels else "from"] = (
                _machines(held) if release.wheels else "source"
            )
        if len(self.read) == 1 and not release.wheels and "from" not in row:
            row["archive"] = "source"
        if read.package.unreviewed:
            row |= self.unreviewed(held)
        if len(self.read) > 1:
            row["source"] = _source(read.package)
        elif required := self.required(read.package, held):
            row |= required | {"where": _where(held)}
            # A source says what it would make a wheel with; building one decides.
            row |= {"evidence": "stated"} if release.source is not None else {}
        return {key: value for key, value in row.items() if value}

    def installed(self, held: ReleaseRead) -> dict[str, Any]:
        """The Pythons and the glibc of the wheels of each machine; nothing where one serves any machine."""
        row: dict[str, Any] = {}
        # A wheel for any machine serves where the others do not, so that what these ask for limits nobody.
        if held.release.portable:
            return row
        for machine in MACHINES:
            mark = "" if machine == MACHINES[0] else f"-{machine}"
            row[f"python{mark}"] = self.pythons(held, machine)
            row[f"glibc{mark}"] = self.glibc(held, machine)
        return row

    def unreviewed(self, held: ReleaseRead) -> dict[str, Any]:
        """What people would look at: the machines that a release has files for, and what else it requires."""
        release = held.release
        row: dict[str, Any] = {"harvested": self.context.day.isoformat()}
        if machines := _machines(held):
            # Elsewhere it may be built from its source, of which nobody knows what that takes.
            unknown = {"evidence": "unknown"} if release.buildable else {}
            row["machine"] = {"is": machines, **unknown}
        told = {
            line for place, one in held.metadata.items() for line in project.besides(one, *place)
        }
        # Sources say what they require only since PKG-INFO has a field for it.
        if release.source is not None and not any(one.requires for one in held.metadata.values()):
            told = told or {"what its source names when it is built"}
        row |= {"also-requires": "; ".join(sorted(told)), "where": _where(held)}
        return row

    def pythons(self, held: ReleaseRead, machine: str) -> str:
        found = [python for here, python in held.served if here == machine]
        later = _goes_on(held, machine, self.context.pythons)
        return series(found, self.context.pythons, later=later)

    def glibc(self, held: ReleaseRead, machine: str) -> Any:
        floors = {}
        for (here, python), wheel in held.served.items():
            best = wheel.best(machine, python)
            if here == machine and best is not None:
                major, minor = best.glibc
                floors[machine, python] = f">={major}.{minor}" if major else ""
        return cell(floors, self.context.pythons)

    def required(self, package: Package, held: ReleaseRead) -> dict[str, Any]:
        """A cell for each component that METADATA requires."""
        told = {
            place: project.required(one, *place, package.extras)
            for place, one in held.metadata.items()
        }
        wanted = {name for one in told.values() for name in one}
        if package.requires is not None:
            wanted &= set(package.requires)
        return {
            name: cell(
                {place: one.get(name, "") for place, one in told.items()},
                self.context.pythons,
                later=any(_goes_on(held, machine, self.context.pythons) for machine in MACHINES),
            )
            for name in sorted(wanted - {self.component})
        }

    def builds(self, package: Package, held: ReleaseRead) -> Iterator[dict[str, Any]]:
        """A row for each machine that there is a build for, where its line is known."""
        requires = self.required(package, held)
        for machine in MACHINES:
            pythons = self.pythons(held, machine)
            line, accelerator = self.line(package, held.release.version, requires, machine)
            if not (package.line and pythons and line):
                continue
            row = {
                "id": f"{package.name}-variants/{held.release.version}+{line}-{machine}",
                self.component: self.alone(held.release.version),
                "line": line,
                "channel": "default",
                "machine": machine,
                "python": pythons,
                "glibc": self.glibc(held, machine),
                **(requires if len(self.read) > 1 else {}),
                # Said and not left out, as people ask first what a build runs on. What reads the code inside takes
                # the place of this.
                "archs": "" if accelerator == "none" else "unknown",
                "where": _where(held, machine),
            }
            if package.cuda and "cuda" not in row:
                row["cuda-beside" if package.beside else "cuda-named"] = package.cuda
            yield {key: value for key, value in row.items() if value}

    def alone(self, version: str) -> str:
        """The selector of a release that does not admit finer ones, such as 0.9.0.1 besides 0.9.0."""
        known = [held.release.version for one in self.read for held in one.releases]
        return f"==={version}" if any(one.startswith(f"{version}.") for one in known) else version

    def line(
        self, package: Package, release: str, requires: Mapping[str, Any], machine: str
    ) -> tuple[str, str]:
        """The line of a build and what it computes on: that of the package's name, or of what it requires exactly."""
        for one in package.lines:
            if one.machine == machine and Scale("pep440", [release]).select(one.releases):
                return one.line, ""
        if package.line not in self.context.lines:
            return package.line, "none" if package.line in ("", "cpu") else ""
        pinned = requires.get(package.line, "")
        exact = pinned.removeprefix("==") if isinstance(pinned, str) else ""
        return self.context.lines[package.line].get((exact, machine), ("", "none"))

    def table(self, name: str, package: Package, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """A table with the columns that its rows have cells in."""
        builds = name.endswith("-variants")
        of_another = package.line in self.context.lines
        made: dict[str, Any] = {
            "id": name,
            "about": f"{package.title}: "
            + ("builds on the default index" if builds else "releases, and what their wheels say"),
            "source": _source(package),
            "where": _WHERE_BUILDS if builds else _WHERE,
            # The line that another component has is in no name of a file: it follows from what that release was
            # built for.
            "evidence": "derived" if builds and of_another else "artifact",
            "defines": "variants" if builds else "releases",
            "key": self.component,
        }
        if package.source and not builds:
            made["context"] = {"from": "wheel"}
        if package.extras and not builds:
            made["note"] = "what it requires is told with its extras " + ", ".join(package.extras)
        if builds:
            made["install"] = package.install
            if of_another:
                made["matches"] = [package.line]
                made["note"] = f"its line is that of the {package.line} that it requires"
        present = {column for row in rows for column in row}
        plain = {self.component, "where", "source", "evidence", "line", "channel", "machine", "id"}
        known = _BUILD_COLUMNS if builds else _COLUMNS
        whole = all(held.release.wheels for one in self.read for held in one.releases)
        made["columns"] = {
            **{column: meaning for column, meaning in known.items() if column in present},
            **{
                column: {
                    # A program need not come from the index, so that nothing brings it along.
                    "as": "limits" if column in self.context.programs else "requires",
                    "says": "requires {component} {value}",
                    # What a package asks for need not be there: it may be yet to come, or may have been withdrawn.
                    "unreleased": True,
                    # Wheels say all that they require; a source may find out when it is built.
                    **({"complete": True} if whole else {}),
                }
                for column in sorted(present - plain - set(known))
            },
        }
        made["rows"] = rows
        return made


_WHERE = (
    "file list (upload date, Requires-Python, wheel tags); Requires-Dist in METADATA of the wheels, or PKG-INFO of the "
    "sources, that rows name"
)
_WHERE_BUILDS = "file list (wheel tags); METADATA of the files that rows name"
_COLUMNS: dict[str, dict[str, Any]] = {
    "date": {"as": "attribute"},
    "yanked": {"as": "attribute"},
    "harvested": {"as": "attribute"},
    "also-requires": {"as": "attribute"},
    "archive": {"as": "attribute"},
    "machine": {"as": "limits", "says": "has files for machine {value}"},
    "from": {"as": "limits", "says": "has no wheel on the default index"},
    "wheel-machine": {
        "component": "machine",
        "as": "limits",
        "context": {"from": "wheel"},
        "says": "has wheels for machine {value}",
    },
    "requires-python": {
        "component": "python",
        "topic": "requires-python",
        "as": "limits",
        "says": "declares Python {value}",
    },
    **{
        f"python{mark}": {
            "component": "python",
            "topic": "wheel-python",
            "as": "requires",
            "context": {"machine": machine},
            "says": "wheels for Python {value}",
        }
        for mark, machine in (("", MACHINES[0]), (f"-{MACHINES[1]}", MACHINES[1]))
    },
    **{
        f"glibc{mark}": {
            "component": "glibc",
            "topic": "glibc",
            "as": "limits",
            "context": {"machine": machine},
            "says": "manylinux tag wants glibc {value}",
        }
        for mark, machine in (("", MACHINES[0]), (f"-{MACHINES[1]}", MACHINES[1]))
    },
}
_NAMED = {
    "component": "cuda",
    "as": "requires",
    "context": {"accelerator": "cuda"},
    "evidence": "derived",
    "says": "is named after CUDA {value}",
}
_BUILD_COLUMNS: dict[str, dict[str, Any]] = {
    "cuda-named": _NAMED,
    "cuda-beside": _NAMED | {"beside": True},
    "python": {"as": "requires", "says": "wheels for Python {value}"},
    "glibc": {"as": "limits", "says": "manylinux tag wants glibc {value}"},
    "archs": {"component": "arch", "as": "limits", "says": "holds {value}"},
}


def _goes_on(held: ReleaseRead, machine: str, pythons: Sequence[str]) -> bool:
    """Whether the wheel of the newest Python also serves those to come."""
    wheel = held.served.get((machine, pythons[-1]))
    best = wheel.best(machine, pythons[-1]) if wheel is not None else None
    return best is not None and best.later


def _machines(held: ReleaseRead) -> str:
    """The machines that a release has wheels for, "" where it has them for all."""
    served = {machine for machine, _ in held.served}
    if held.release.portable or len(served) == len(MACHINES):
        return ""
    return " ".join(machine for machine in MACHINES if machine in served) or "absent"


def _where(held: ReleaseRead, machine: str = "") -> str:
    """The files that METADATA was read of."""
    found = {
        one.wheel.name: one.wheel.sha256[:_DIGITS]
        for (here, _), one in held.metadata.items()
        if machine in ("", here)
    }
    return "; ".join(
        f"{name}, sha256 {digest}" if digest else name for name, digest in sorted(found.items())
    )


_PRE_RELEASE = re.compile(r"==[\d.]+(a|b|rc|\.dev)\d+")


def _known(value: str) -> dict[str, Any]:
    # Final releases alone are read: of what is pinned to another one nobody can say whether it is there.
    return {"is": value} | ({"evidence": "unknown"} if _PRE_RELEASE.search(value) else {})


def series(found: Iterable[str], known: Sequence[str], *, later: bool = False) -> str:
    """The selector of some Python series, `known` being all of them, the oldest first.

    With `later` what reaches the newest one goes on.
    """
    # By the places among those that there are: next after 2.7 may come 3.8, and after 3.9 comes 3.10.
    places = sorted(map(known.index, found))
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return " | ".join(_run(known[run[0]], known[run[-1]], known, later=later) for run in runs)


def _run(first: str, last: str, known: Sequence[str], *, later: bool) -> str:
    if later and last == known[-1]:
        return f">={first}"
    return first if first == last else f"{first}-{last}"


def cell(values: Mapping[Place, str], known: Sequence[str], *, later: bool = False) -> Any:
    """The cell that says of each machine and Python what it says of them; "" says nothing, and so does None."""
    if len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return (_known(value) if _PRE_RELEASE.search(value) else value) if value else None
    # Machines are named only where they make a difference: a condition more is one more that an answer depends on.
    by_python: dict[str, set[str]] = {}
    for (_, python), value in values.items():
        by_python.setdefault(python, set()).add(value)
    if all(len(several) == 1 for several in by_python.values()):
        return _parts({python: value for (_, python), value in values.items()}, known, later, {})
    parts = []
    for machine in sorted({machine for machine, _ in values}, reverse=True):
        own = {python: value for (held, python), value in values.items() if held == machine}
        parts += _parts(own, known, later, {"machine": machine})
    return parts


def _parts(
    values: Mapping[str, str], known: Sequence[str], later: bool, when: Mapping[str, str]
) -> list[dict[str, Any]]:
    groups: dict[str, list[str]] = {}
    for python in sorted(values, key=known.index):
        groups.setdefault(values[python], []).append(python)
    alone = len(groups) == 1
    return [
        _known(value)
        | {
            "when": {**when} if alone else {**when, "python": series(held, known, later=later)},
        }
        for value, held in groups.items()
        if value
    ]
