"""Packages of an index as the document of a fact file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmatrix.factbase.versions import Scale
from toolmatrix.harvest import project
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.project import MACHINES, Metadata, PublishedRelease, Wheel
from toolmatrix.value import Value

if TYPE_CHECKING:
    Target = tuple[str, str]
    """A machine and a Python series."""
    Served = dict[tuple[str, str], Wheel]
    """The wheel for each machine and Python series."""

_DIGITS = 16
"""Digits of a sha256 in a row."""


class BuildLine(Value):
    """The line of the builds of some releases for a machine, if it is not the line of the required component."""

    releases: str
    machine: str
    line: str


_ALL: Mapping[str, str] = {}


class Package(Value):
    """A package of a family, with the keys of the family."""

    name: str
    component: str
    title: str
    # The oldest release that is read, "" for all.
    since: str
    # Components whose requirements are read, None for all of the matrix.
    requires: tuple[str, ...] | None
    extras: tuple[str, ...]
    # The line of its builds; `COMPONENT` for the line of the component that it pins; "" for a package that does not
    # use an accelerator itself.
    line: str
    lines: tuple[BuildLine, ...]
    install: str
    # The CUDA in its name, "" for none, and whether that has to be installed as well.
    cuda: str
    beside: bool
    # The devices of its code are unknown.
    unread: bool
    # The releases with such code, "" for all.
    compiled: str = ""
    # The number of newest releases to read, 0 for all, and a selector for as many more.
    newest: int = 0
    besides: str = ""
    # Requirements that only builds for some accelerators have, as others are on channels of their own.
    only_with: Mapping[str, str] = _ALL
    # It is used without review, so rows show the day and requirements that they leave out.
    unreviewed: bool = False
    # It is also built from source, so its files limit only wheels; other facts have the requirements of a build
    # (`read`) or they are unknown (`unread`). "" for a package that is not built.
    source: str = ""
    # Answers have it only where a request names it, and its file declares it.
    by_request: bool = False
    # Other facts define its releases; only what these limit is read.
    only_limits: bool = False
    # The accelerators that its code computes on.
    accelerators: tuple[str, ...] = ()
    # It has builds on indexes of its makers, which curated tables list.
    variants: bool = False


class ReleaseRead(Value):
    """A release with its wheels and their METADATA."""

    release: PublishedRelease
    served: Served
    metadata: Mapping[tuple[str, str], Metadata]


class PackageRead(Value):
    """A package with its releases, the newest first."""

    package: Package
    releases: tuple[ReleaseRead, ...]
    # The number of final releases on the index.
    published: int = 0


def document(read: Sequence[PackageRead], context: HarvestContext) -> dict[str, Any]:
    """The facts of packages, grouped by component."""
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
        package = several[0].package
        lacking = context.components is not None and component not in context.components
        if package.by_request or lacking:
            declared = {
                "title": package.title,
                "scheme": "pep440",
                "accelerators": [*package.accelerators],
                "variants": package.variants,
            }
            facts.setdefault("components", {})[component] = {
                key: value for key, value in declared.items() if value
            }
        facts["tables"] += _Tables(component, several, context).all()
        facts["statements"] += _unread(component, several[0])
    return facts


def _count(read: PackageRead) -> str:
    count = len(read.releases)
    return f"{count} of {read.published} " if read.package.newest and count < read.published else ""


def _unread(component: str, read: PackageRead) -> Iterator[dict[str, Any]]:
    """What is unknown of a package, as facts that give way to better ones."""
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
    # Wheels for any machine contain no machine code.
    if package.unread and not (
        package.unreviewed and all(record.release.is_pure for record in read.releases)
    ):
        code = "may have code" if package.unreviewed else "has code"
        yield {
            "id": f"{component}-devices",
            "when": {component: package.compiled or "*"},
            "limits": {"device": "absent"},
            "says": f"{code} for devices that nobody read",
            **about,
            "where": "file list: which devices its kernels are for was not read",
        }


def _source(package: Package) -> str:
    return f"pypi-{package.name}{'-limits' * package.only_limits}"


class _Tables:
    """The tables of one component: its releases, and its builds if they differ by toolkit."""

    def __init__(self, component: str, read: list[PackageRead], context: HarvestContext) -> None:
        self.component = component
        self.read = read
        self.context = context
        self.has_builds = any(entry.package.line for entry in read)
        self.holds_libraries = any(
            tag.machine and not tag.minor
            for entry in read
            for record in entry.releases
            for wheel in record.release.files
            for tag in wheel.serves
        )
        self.built = {
            record.release.version
            for entry in read
            for record in entry.releases
            if any(self.builds(entry.package, record))
        }

    def all(self) -> Iterator[dict[str, Any]]:
        if self.read[0].package.only_limits:
            limits = self.limits()
            if limits["rows"]:
                yield limits
            return
        yield self.releases()
        if self.has_builds:
            for entry in self.read:
                rows = [
                    row for record in entry.releases for row in self.builds(entry.package, record)
                ]
                if rows:
                    yield self.table(f"{entry.package.name}-variants", entry.package, rows)

    def releases(self) -> dict[str, Any]:
        """The table of releases; if several packages have a release, the first one gives its requirements."""
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

    def limits(self) -> dict[str, Any]:
        """The table of what releases limit, whose other requirements are facts of another file."""
        rows = [
            {self.component: self.alone(record.release.version), **limited, "where": _where(record)}
            for entry in self.read
            for record in entry.releases
            if (limited := self.limited(entry.package, record))
        ]
        table = self.table(f"{self.component}-limits", self.read[0].package, rows)
        del table["defines"]
        return table

    def limited(self, package: Package, record: ReleaseRead) -> dict[str, Any]:
        cells = self.required(package, record)
        return {name: value for name, value in cells.items() if name in self.context.limited}

    def requirements_read(self) -> dict[str, Any]:
        """The required packages that have no cell, and the releases whose METADATA is incomplete."""
        others: set[str] = set()
        unread: dict[str, None] = {}
        for entry in self.read:
            for record in entry.releases:
                known = {self.component, *self.required(entry.package, record)}
                for target, metadata in record.metadata.items():
                    named = project.required_packages(metadata, *target, entry.package.extras)
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
        # A package with a line of its own also has channels of its own, which this index does not list.
        elif entry.package.unread or (
            entry.package.line in self.context.lines and release.version not in self.built
        ):
            row |= {"wheel-machine": _machines(record)} if release.wheels else {"from": "source"}
        elif len(self.read) == 1 and not self.has_builds and record.served:
            # What another machine needs of Python says nothing of one without a wheel.
            row["wheel-machine"] = _machines(record)
        if len(self.read) == 1 and not release.wheels and "from" not in row:
            row["archive"] = "source"
        if entry.package.unreviewed:
            row |= self.unreviewed(record)
        if len(self.read) > 1:
            row["source"] = _source(entry.package)
        elif required := self.required(entry.package, record):
            row |= required | {"where": _where(record)}
            # The requirements of a source may change when it is built.
            row |= {"evidence": "stated"} if release.source is not None else {}
        return {key: value for key, value in row.items() if value}

    def installed(self, record: ReleaseRead) -> dict[str, Any]:
        """The Pythons and the glibc of the wheels of each machine; any if one serves any machine."""
        row: dict[str, Any] = {}
        # A wheel for any machine is a fallback, so that the others limit nothing: of libraries alone, bound to that of
        # C, it is a fact.
        if record.release.portable:
            return {"glibc-any": "*"} if self.holds_libraries else row
        for machine in MACHINES:
            mark = "" if machine == MACHINES[0] else f"-{machine}"
            row[f"python{mark}"] = self.pythons(record, machine)
            row[f"glibc{mark}"] = self.glibc(record, machine)
        return row

    def unreviewed(self, record: ReleaseRead) -> dict[str, Any]:
        """The cells for a reviewer: the machines that a release has files for, and its other requirements."""
        release = record.release
        row: dict[str, Any] = {"harvested": self.context.day.isoformat()}
        if machines := _machines(record):
            # Other machines may build it from source, with unknown requirements.
            unknown = {"evidence": "unknown"} if release.buildable else {}
            row["machine"] = {"is": machines, **unknown}
        requirements = {
            line
            for target, metadata in record.metadata.items()
            for line in project.other_requirements(metadata, *target)
        }
        # PKG-INFO of older sources has no field for requirements.
        if release.source is not None and not any(
            metadata.requires for metadata in record.metadata.values()
        ):
            requirements = requirements or {"what its source names when it is built"}
        row |= {"also-requires": "; ".join(sorted(requirements)), "where": _where(record)}
        return row

    def pythons(self, record: ReleaseRead, machine: str) -> str:
        pythons = [python for wheel_machine, python in record.served if wheel_machine == machine]
        later = _serves_later(record, machine, self.context.pythons)
        return series(pythons, self.context.pythons, later=later)

    def glibc(self, record: ReleaseRead, machine: str) -> Any:
        floors = {}
        for (wheel_machine, python), wheel in record.served.items():
            best = wheel.best(machine, python)
            if wheel_machine == machine and best is not None:
                major, minor = best.glibc
                floors[machine, python] = f">={major}.{minor}" if major else ""
        return cell(floors, self.context.pythons)

    def required(self, package: Package, record: ReleaseRead) -> dict[str, Any]:
        """A cell for each component that is required."""
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
                later=any(
                    _serves_later(record, machine, self.context.pythons) for machine in MACHINES
                ),
            )
            for name in sorted(wanted - {self.component})
        }

    def builds(self, package: Package, record: ReleaseRead) -> Iterator[dict[str, Any]]:
        """A row for each machine that has a build with a known line."""
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
                # Explicitly unknown, as users look for this first. A family that reads the code replaces it.
                "archs": "" if accelerator == "none" else "unknown",
                "where": _where(record, machine),
            }
            if package.cuda and "cuda" not in row:
                row["cuda-beside" if package.beside else "cuda-named"] = package.cuda
            yield {key: value for key, value in row.items() if value}

    def alone(self, version: str) -> str:
        """The selector of exactly this release, also if there is a finer one (0.9.0.1 beside 0.9.0)."""
        known = [record.release.version for entry in self.read for record in entry.releases]
        return (
            f"==={version}" if any(other.startswith(f"{version}.") for other in known) else version
        )

    def line(
        self, package: Package, release: str, requires: Mapping[str, Any], machine: str
    ) -> tuple[str, str]:
        """The line and the accelerator of a build: by the package's name, or by the component that it pins."""
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
        """A table with the columns that its rows use."""
        builds = name.endswith("-variants")
        of_another = package.line in self.context.lines
        table: dict[str, Any] = {
            "id": name,
            "about": f"{package.title}: "
            + ("builds on the default index" if builds else "releases, and what their wheels say"),
            "source": _source(package),
            "where": _WHERE_BUILDS if builds else _WHERE,
            # No file name has the line of another component: it follows from the pinned release.
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
                    "as": "limits" if column in self.context.limited else "requires",
                    **(
                        {"context": {"accelerator": package.only_with[column]}}
                        if column in package.only_with
                        else {}
                    ),
                    "says": "requires {component} {value}",
                    # A required release may not exist yet, or may have been withdrawn.
                    "unreleased": True,
                    # The requirements of wheels are complete; a source may add some when it is built.
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
    "glibc-any": {
        "component": "glibc",
        "topic": "glibc",
        "as": "limits",
        "says": "a wheel for any machine takes any glibc",
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


def _serves_later(record: ReleaseRead, machine: str, pythons: Sequence[str]) -> bool:
    """Whether the wheel for the newest Python also serves later ones."""
    wheel = record.served.get((machine, pythons[-1]))
    best = wheel.best(machine, pythons[-1]) if wheel is not None else None
    return best is not None and best.later


def _machines(record: ReleaseRead) -> str:
    """The machines that a release has wheels for, "" for all."""
    served = {machine for machine, _ in record.served}
    if record.release.portable or len(served) == len(MACHINES):
        return ""
    return " ".join(machine for machine in MACHINES if machine in served) or "absent"


def _where(record: ReleaseRead, machine: str = "") -> str:
    """The files whose METADATA was read."""
    digests = {
        metadata.wheel.name: metadata.wheel.sha256[:_DIGITS]
        for (wheel_machine, _), metadata in record.metadata.items()
        if machine in ("", wheel_machine)
    }
    return "; ".join(
        f"{name}, sha256 {digest}" if digest else name for name, digest in sorted(digests.items())
    )


_PRE_RELEASE = re.compile(r"==[\d.]+(a|b|rc|\.dev)\d+")


def _known(value: str) -> dict[str, Any]:
    # Only final releases are read, so it is unknown whether a pinned pre-release exists.
    return {"is": value} | ({"evidence": "unknown"} if _PRE_RELEASE.search(value) else {})


def series(pythons: Iterable[str], known: Sequence[str], *, later: bool = False) -> str:
    """The selector of some Python series; `known` are all of them, the oldest first.

    With `later`, a range that ends with the newest one is open.
    """
    # Ranges go by the order of `known`: 3.8 may follow 2.7, and 3.10 follows 3.9.
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
    """The cell with a value for each machine and Python; "" is no value, and None is no cell."""
    if len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return (_known(value) if _PRE_RELEASE.search(value) else value) if value else None
    # Machines are named only if they make a difference: answers depend on every condition.
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
        | {"when": {**when} if alone else {**when, "python": series(pythons, known, later=later)}}
        for value, pythons in groups.items()
        if value
    ]
