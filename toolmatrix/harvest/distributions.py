"""Families of kind `distributions`: what Debian and Ubuntu package, by their package lists.

docs/harvest-tools.md describes the keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.errors import MatrixError, Position, UsageError
from toolmatrix.facts import pieces, yamlfile
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.package_lists import PackageList, lists
from toolmatrix.harvest.series import SINGLE, series
from toolmatrix.harvest.transport import missing

_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_TWO = re.compile(r"\d+\.\d+")
# A snapshot of GCC has its day in the version of upstream (`16-20260322-1ubuntu1`), and a candidate its `~rc`; what
# else stands behind a dash is the distribution's.
_UPSTREAM = re.compile(r"(?:\d+:)?(\d[\w.]*(?:-\d{8}|~rc\d+|~beta\d+)?)")
_OFFERS: Mapping[str, Any] = {
    "id": "distro-packages",
    "about": "compilers, Pythons and the C library that each distribution packages",
    "evidence": "artifact",
    "key": "distro",
    "stands-for": ["same-distro-packages"],
    "columns": {
        "machine": {"as": "when"},
        "codename": {"as": "attribute"},
        "gcc": {
            "as": "limits",
            "unreleased": True,
            "context": {"gcc-origin": "distribution"},
            "says": "{subject} {release} packages g++ {value}",
        },
        "clang": {
            "as": "offers",
            "unreleased": True,
            "context": {"clang-origin": "distribution"},
            "says": "{subject} {release} packages clang {value}",
        },
        "python": {
            "as": "limits",
            "unreleased": True,
            "context": {"interpreter": "distribution"},
            "says": "{subject} {release} packages python {value}",
        },
        "glibc": {
            "as": "requires",
            "unreleased": True,
            "says": "{subject} {release} has glibc {value}",
        },
        "gcc_points": {"as": "attribute"},
        "gcc_packages": {"as": "attribute"},
        "lists": {"as": "attribute"},
    },
}


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The document of facts about the distributions whose package lists lie at a place. Raises ToolmatrixError."""
    known = ("kind", "about", "releases", "rolling", "series", "versions")
    fields = family.node.only(f"family `{family.name}`", known, known)
    if not context.place:
        raise UsageError(
            f"family `{family.name}` is read from package lists on the disk",
            expected="`--from DIR` with Packages files, such as /var/lib/apt/lists",
        )
    names = _codenames(fields, family)
    wanted = {
        column: _pattern(column, node.string(column)) for column, node in _of(fields, "series")
    }
    columns = {column: node.string(column) for column, node in _of(fields, "versions")}
    every = "|".join(
        [*(one.pattern for one in wanted.values()), *map(re.escape, columns.values()), "libc6"]
    )
    found = lists(context.place, tuple(names), re.compile(every))
    grouped: dict[tuple[str, str], list[PackageList]] = {}
    for one in found:
        grouped.setdefault((names[one.codename], one.machine), []).append(one)
    rows = [
        _row(distro, machine, several, wanted, columns)
        for (distro, machine), several in sorted(grouped.items())
    ]
    attributes = {column: {"as": "attribute"} for column in columns}
    return {
        "sources": {
            f"packages-{distro}": {
                "title": f"package lists of {distro}",
                "at": f"Packages of {_suites(found, codename)}, each with its sha256 in the row",
                "read": context.day,
            }
            for codename, distro in sorted(names.items())
            if any(one.codename == codename for one in found)
        },
        "tables": [
            {
                **_OFFERS,
                "source": rows[0]["source"],
                "columns": {**_OFFERS["columns"], **attributes},
                "rows": rows,
            },
        ],
    }


def _suites(found: Iterable[PackageList], codename: str) -> str:
    """Where an archive has the lists of a distribution."""
    places = {"/".join(one.name.split("/")[:2]) for one in found if one.codename == codename}
    return " and ".join(sorted(places))


def _of(fields: Mapping[str, yamlfile.YamlNode], name: str) -> list[tuple[str, yamlfile.YamlNode]]:
    return list(pieces.entries(fields, name).items())


def _codenames(fields: Mapping[str, yamlfile.YamlNode], family: Family) -> dict[str, str]:
    """The releases of the distributions by codename: those that a fact file has, and those that roll."""
    path = os.path.join(os.path.dirname(family.node.file), fields["releases"].string("releases"))
    found = {codename: node.string("a distribution") for codename, node in _of(fields, "rolling")}
    for group in pieces.items(yamlfile.read(path).mapping("the fact file"), "releases"):
        for name, node in _of(group.mapping("a list of releases"), "versions"):
            codename = pieces.text(node.mapping("a release"), "codename")
            if codename:
                found[codename] = name
    if not found:
        raise MatrixError(
            "no release of a distribution has a codename",
            where=Position(path),
            expected="releases with the attribute `codename`",
        )
    return found


def _pattern(component: str, name: str) -> re.Pattern[str]:
    """The names of packages of which there is one for each series, `{}` standing for the series."""
    before, _, after = name.partition("{}")
    # python3 is a package of all series, g++-12 of one.
    number = _NUMBERS if component in SINGLE else _TWO
    return re.compile(f"{re.escape(before)}{number.pattern}{re.escape(after)}")


def _row(
    distro: str,
    machine: str,
    found: Sequence[PackageList],
    wanted: Mapping[str, re.Pattern[str]],
    columns: Mapping[str, str],
) -> dict[str, Any]:
    versions, codename = _newest(found)
    offered = {column: _offered(column, one, versions) for column, one in wanted.items()}
    points = offered.get("gcc", {}).values()
    glibc = _NUMBERS.search(versions.get("libc6", ""))
    cells = {
        "codename": codename,
        **{column: " ".join(one) for column, one in offered.items()},
        "glibc": glibc[0] if glibc else "",
        "gcc_points": [_upstream(one) for one in points],
        "gcc_packages": list(points),
        **{column: versions.get(package, "") for column, package in columns.items()},
        "lists": [f"{one.name} {one.sha256}" for one in found],
    }
    return {
        "id": f"distro-offers/{distro}" + ("" if machine == "x86_64" else f"/{machine}"),
        "distro": distro,
        "machine": machine,
        **{name: cell for name, cell in cells.items() if cell},
        "source": f"packages-{distro}",
        "where": "the packages of these names, the newest of release, updates and security",
    }


def _newest(found: Iterable[PackageList]) -> tuple[dict[str, str], str]:
    try:
        from debian.debian_support import Version
    except ImportError:
        raise missing("python-debian") from None
    versions: dict[str, str] = {}
    codename = ""
    for one in found:
        codename = one.codename
        for name, version in one.versions.items():
            # In dpkg's order, where `~rc1` comes before the release: it decides which of two packages is installed.
            if name not in versions or Version(versions[name]) < Version(version):
                versions[name] = version
    return versions, codename


def _offered(column: str, pattern: re.Pattern[str], versions: Mapping[str, str]) -> dict[str, str]:
    """The series of a component that are packaged, the oldest first, each with the version of its package."""
    found = {}
    for name, version in versions.items():
        if pattern.fullmatch(name):
            numbers = [*map(int, _NUMBERS.findall(name)[-1].split(".")), 0]
            which = series(column, *numbers[:2])
            found[which] = version
    return dict(sorted(found.items(), key=lambda pair: [int(part) for part in pair[0].split(".")]))


def _upstream(version: str) -> str:
    """The version that a package is made of, without the distribution's own numbers."""
    found = _UPSTREAM.match(version)
    return found[1] if found else version
