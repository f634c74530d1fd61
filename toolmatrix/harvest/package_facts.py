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
    Target = tuple[str, str]
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
    published: int = 0


def document(read: Sequence[PackageRead], context: HarvestContext) -> dict[str, Any]:
    """The facts of packages, those of one component together."""
    by_component: dict[str, list[PackageRead]] = {}
    for entry in read:
        by_component.setdefault(entry.package.component, []).append(entry)
    facts: dict[str, Any] = {"sources": {}, "tables": [], "statements": []}
    for entry in read:
        facts["sources"][_source(entry.package)] = {
            "title": f"Python package index, {entry.package.name}: file list"
            + (" and METADATA" if entry.package.requires != () else ""),
            "at": f"package {entry.package.name}, {_count(entry)}final releases "
            f"{entry.releases[-1].release.version} to {entry.releases[0].release.version}",
            "read": context.day.isoformat(),
        }
    for component, several in by_component.items():
        if context.components is not None and component not in context.components:
            facts.setdefault("components", {})[component] = {
                "title": several[0].package.title,
                "scheme": "pep440",
            }
        facts["tables"] += _Tables(component, several, context).all()
        facts["statements"] += _unread(component, several[0])
    return facts


def _count(read: PackageRead) -> str:
    count = len(read.releases)
    return f"{count} of {read.published} " if read.package.newest and count < read.published else ""


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


def _is_pure(record: ReleaseRead) -> bool:
    # Wheels that are the same for every machine hold no code for any.
    wheels = record.release.wheels
    return bool(wheels) and not any(tag.machine for wheel in wheels for tag in wheel.serves)


def _source(package: Package) -> str:
    return f"pypi-{package.name}"


class _Tables:
    """The tables of one component: its releases, and its builds where they differ by toolkit."""

    def __init__(self, component: str, read: list[PackageRead], context: HarvestContext) -> None:
        self.component = component
        self.read = read
        self.context = context
        self.has_builds = any(entry.package.line for entry in read)
        self.built = {
            record.release.version
            for entry in read
            for record in entry.releases
            if any(self.builds(entry.package, record))
        }

    def all(self) -> Iterator[dict[str, Any]]:
        yield self.releases()
        if self.has_builds:
            for entry in self.read:
                rows = [
                    row for record in entry.releases for row in self.builds(entry.package, record)
                ]
                if rows:
                    yield self.table(f"{entry.package.name}-variants", entry.package, rows)

    def releases(self) -> dict[str, Any]:
        """The table of releases; of a release in several packages that of the first says what it requires."""
        rows: dict[str, dict[str, Any]] = {}
        for entry in self.read:
            for record in entry.releases:
                row = self.release(entry, record)
                known = rows.setdefault(record.release.version, row)
                if known is not row:
                    known["date"] = min(known.get("date", ""), row.get("date", ""))
        table = self.table(f"{self.component}-releases", self.read[0].package, list(rows.values()))
        if all(entry.package.requires != () for entry in self.read):
            named = table.pop("rows")
            table |= {"requirements-read": self.requirements_read(), "rows": named}
        return table

    def requirements_read(self) -> dict[str, Any]:
        """The packages that are required and have no cell, and the releases whose METADATA does not say all."""
        others: set[str] = set()
        unread: dict[str, None] = {}
        for entry in self.read:
            for record in entry.releases:
                known = {self.component, *self.required(entry.package, record)}
                for target, metadata in record.metadata.items():
                    named = project.named(metadata, *target, entry.package.extras)
                    others |= {
                        package for package, component in named.items() if component not in known
                    }
                if not record.metadata or not all(
                    metadata.whole for metadata in record.metadata.values()
                ):
                    unread[self.alone(record.release.version)] = None
        selector = {"unread": " ".join(unread)} if unread else {}
        return {"others": sorted(others), **selector}

    def release(self, entry: PackageRead, record: ReleaseRead) -> dict[str, Any]:
        release = record.release
        row: dict[str, Any] = {self.component: release.version, "date": release.date}
        if release.yanked:
            row["yanked"] = True
        row["requires-python"] = project.ordered(release.requires_python)
        if not self.has_builds:
            row |= self.installed(record)
        if entry.package.source and not self.has_builds:
            row["machine"] = _machines(record)
        # What has a line of its own has channels of its own as well, of which this index says nothing.
        elif entry.package.unread or (
            entry.package.line in self.context.lines and release.version not in self.built
        ):
            row["wheel-machine" if release.wheels else "from"] = (
                _machines(record) if release.wheels else "source"
            )
        if len(self.read) == 1 and not release.wheels and "from" not in row:
            row["archive"] = "source"
        if entry.package.unreviewed:
            row |= self.unreviewed(record)
        if len(self.read) > 1:
            row["source"] = _source(entry.package)
        elif required := self.required(entry.package, record):
            row |= required | {"where": _where(record)}
            # A source says what it would make a wheel with; building one decides.
            row |= {"evidence": "stated"} if release.source is not None else {}
        return {key: value for key, value in row.items() if value}

    def installed(self, record: ReleaseRead) -> dict[str, Any]:
        """The Pythons and the glibc of the wheels of each machine; nothing where one serves any machine."""
        row: dict[str, Any] = {}
        # A wheel for any machine serves where the others do not, so that what these ask for limits nobody.
        if record.release.portable:
            return row
        for machine in MACHINES:
            mark = "" if machine == MACHINES[0] else f"-{machine}"
            row[f"python{mark}"] = self.pythons(record, machine)
            row[f"glibc{mark}"] = self.glibc(record, machine)
        return row

    def unreviewed(self, record: ReleaseRead) -> dict[str, Any]:
        """What people would look at: the machines that a release has files for, and what else it requires."""
        release = record.release
        row: dict[str, Any] = {"harvested": self.context.day.isoformat()}
        if machines := _machines(record):
            # Elsewhere it may be built from its source, of which nobody knows what that takes.
            unknown = {"evidence": "unknown"} if release.buildable else {}
            row["machine"] = {"is": machines, **unknown}
        requirements = {
            line
            for target, metadata in record.metadata.items()
            for line in project.besides(metadata, *target)
        }
        # Sources say what they require only since PKG-INFO has a field for it.
        if release.source is not None and not any(
            metadata.requires for metadata in record.metadata.values()
        ):
            requirements = requirements or {"what its source names when it is built"}
        row |= {"also-requires": "; ".join(sorted(requirements)), "where": _where(record)}
        return row

    def pythons(self, record: ReleaseRead, machine: str) -> str:
        pythons = [python for here, python in record.served if here == machine]
        later = _goes_on(record, machine, self.context.pythons)
        return series(pythons, self.context.pythons, later=later)

    def glibc(self, record: ReleaseRead, machine: str) -> Any:
        floors = {}
        for (here, python), wheel in record.served.items():
            best = wheel.best(machine, python)
            if here == machine and best is not None:
                major, minor = best.glibc
                floors[machine, python] = f">={major}.{minor}" if major else ""
        return cell(floors, self.context.pythons)

    def required(self, package: Package, record: ReleaseRead) -> dict[str, Any]:
        """A cell for each component that METADATA requires."""
        by_target = {
            target: project.required(metadata, *target, package.extras)
            for target, metadata in record.metadata.items()
        }
        wanted = {name for selectors in by_target.values() for name in selectors}
        if package.requires is not None:
            wanted &= set(package.requires)
        return {
            name: cell(
                {target: selectors.get(name, "") for target, selectors in by_target.items()},
                self.context.pythons,
                later=any(_goes_on(record, machine, self.context.pythons) for machine in MACHINES),
            )
            for name in sorted(wanted - {self.component})
        }

    def builds(self, package: Package, record: ReleaseRead) -> Iterator[dict[str, Any]]:
        """A row for each machine that there is a build for, where its line is known."""
        requires = self.required(package, record)
        for machine in MACHINES:
            pythons = self.pythons(record, machine)
            line, accelerator = self.line(package, record.release.version, requires, machine)
            if not (package.line and pythons and line):
                continue
            row = {
                "id": f"{package.name}-variants/{record.release.version}+{line}-{machine}",
                self.component: self.alone(record.release.version),
                "line": line,
                "channel": "default",
                "machine": machine,
                "python": pythons,
                "glibc": self.glibc(record, machine),
                **(requires if len(self.read) > 1 else {}),
                # Said and not left out, as people ask first what a build runs on. What reads the code inside takes
                # the place of this.
                "archs": "" if accelerator == "none" else "unknown",
                "where": _where(record, machine),
            }
            if package.cuda and "cuda" not in row:
                row["cuda-beside" if package.beside else "cuda-named"] = package.cuda
            yield {key: value for key, value in row.items() if value}

    def alone(self, version: str) -> str:
        """The selector of a release that does not admit finer ones, such as 0.9.0.1 besides 0.9.0."""
        known = [record.release.version for entry in self.read for record in entry.releases]
        return (
            f"==={version}" if any(other.startswith(f"{version}.") for other in known) else version
        )

    def line(
        self, package: Package, release: str, requires: Mapping[str, Any], machine: str
    ) -> tuple[str, str]:
        """The line of a build and what it computes on: that of the package's name, or of what it requires exactly."""
        for build_line in package.lines:
            if build_line.machine == machine and Scale("pep440", [release]).select(
                build_line.releases
            ):
                return build_line.line, ""
        if package.line not in self.context.lines:
            return package.line, "none" if package.line in ("", "cpu") else ""
        pinned = requires.get(package.line, "")
        exact = pinned.removeprefix("==") if isinstance(pinned, str) else ""
        return self.context.lines[package.line].get((exact, machine), ("", "none"))

    def table(self, name: str, package: Package, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """A table with the columns that its rows have cells in."""
        builds = name.endswith("-variants")
        of_another = package.line in self.context.lines
        table: dict[str, Any] = {
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
            table["context"] = {"from": "wheel"}
        if package.extras and not builds:
            table["note"] = "what it requires is told with its extras " + ", ".join(package.extras)
        if builds:
            table["install"] = package.install
            if of_another:
                table["matches"] = [package.line]
                table["note"] = f"its line is that of the {package.line} that it requires"
        present = {column for row in rows for column in row}
        plain = {self.component, "where", "source", "evidence", "line", "channel", "machine", "id"}
        known = _BUILD_COLUMNS if builds else _COLUMNS
        whole = all(record.release.wheels for entry in self.read for record in entry.releases)
        table["columns"] = {
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
        table["rows"] = rows
        return table


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


def _goes_on(record: ReleaseRead, machine: str, pythons: Sequence[str]) -> bool:
    """Whether the wheel of the newest Python also serves those to come."""
    wheel = record.served.get((machine, pythons[-1]))
    best = wheel.best(machine, pythons[-1]) if wheel is not None else None
    return best is not None and best.later


def _machines(record: ReleaseRead) -> str:
    """The machines that a release has wheels for, "" where it has them for all."""
    served = {machine for machine, _ in record.served}
    if record.release.portable or len(served) == len(MACHINES):
        return ""
    return " ".join(machine for machine in MACHINES if machine in served) or "absent"


def _where(record: ReleaseRead, machine: str = "") -> str:
    """The files that METADATA was read of."""
    digests = {
        metadata.wheel.name: metadata.wheel.sha256[:_DIGITS]
        for (here, _), metadata in record.metadata.items()
        if machine in ("", here)
    }
    return "; ".join(
        f"{name}, sha256 {digest}" if digest else name for name, digest in sorted(digests.items())
    )


_PRE_RELEASE = re.compile(r"==[\d.]+(a|b|rc|\.dev)\d+")


def _known(value: str) -> dict[str, Any]:
    # Final releases alone are read: of what is pinned to another one nobody can say whether it is there.
    return {"is": value} | ({"evidence": "unknown"} if _PRE_RELEASE.search(value) else {})


def series(pythons: Iterable[str], known: Sequence[str], *, later: bool = False) -> str:
    """The selector of some Python series, `known` being all of them, the oldest first.

    With `later` what reaches the newest one goes on.
    """
    # By the places among those that there are: next after 2.7 may come 3.8, and after 3.9 comes 3.10.
    indices = sorted(map(known.index, pythons))
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return " | ".join(_run(known[run[0]], known[run[-1]], known, later=later) for run in runs)


def _run(first: str, last: str, known: Sequence[str], *, later: bool) -> str:
    if later and last == known[-1]:
        return f">={first}"
    return first if first == last else f"{first}-{last}"


def cell(values: Mapping[Target, str], known: Sequence[str], *, later: bool = False) -> Any:
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
        own = {
            python: value
            for (cell_machine, python), value in values.items()
            if cell_machine == machine
        }
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
            "when": {**when} if alone else {**when, "python": series(pythons, known, later=later)},
        }
        for value, pythons in groups.items()
        if value
    ]
