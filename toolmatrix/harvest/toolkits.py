"""Families of kind `toolkits`: what the headers and programs of CUDA toolkits take, one row for each toolkit.

A toolkit is read in the wheels of its packages at the index, in wheels of a directory, or unpacked as it is installed;
docs/harvest-tools.md describes the keys.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.errors import HarvestRefused, MatrixError, Position
from toolmatrix.facts import pieces, yamlfile
from toolmatrix.harvest import archs, headers
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.headers import GlibcCeiling, HostCompilers
from toolmatrix.harvest.toolkit_files import HOST_CONFIG as _GUARD
from toolmatrix.harvest.toolkit_files import MATH_FUNCTIONS as _MATH
from toolmatrix.harvest.toolkit_files import ToolkitFiles, at_index, below
from toolmatrix.value import Value

_SERIES = re.compile(r"\d+\.\d+")
_MACHINES = ("x86_64", "aarch64")
_ARCHS: Mapping[str, Any] = {
    "id": "cuda-archs-toolkits",
    "about": "codegen archs each toolkit takes, found by asking its programs",
    "evidence": "ran",
    "key": "cuda",
    "stands-for": ["same-minor"],
    "columns": {
        "arch": {"as": "limits", "says": "nvcc accepts {value}"},
        "list-gpu-code": {"as": "attribute"},
    },
}
_HOSTS: Mapping[str, Any] = {
    "id": "cuda-host-compilers-toolkits",
    "about": "newest GCC and Clang that the guard of each toolkit lets pass, found by asking the preprocessor",
    "evidence": "artifact",
    "key": "cuda",
    "columns": {
        "machine": {"as": "when"},
        "gcc": {
            "as": "limits",
            "topic": "gcc-max",
            "says": "takes GCC {value} as host compiler",
        },
        "clang": {
            "as": "limits",
            "topic": "clang-max",
            # Where Clang compiles the CUDA sources itself, nvcc's guard is not asked.
            "context": {"cuda-compiler": "absent nvcc"},
            "says": "takes Clang {value} as host compiler",
        },
        "clang-oldest": {"as": "attribute"},
        "guard": {"as": "attribute"},
        "override": {"as": "attribute"},
    },
}
_MSVC: Mapping[str, Any] = {
    "id": "cuda-msvc",
    "about": "releases of Microsoft's compiler, as _MSC_VER, that the guard of each toolkit lets pass",
    "evidence": "artifact",
    "key": "cuda",
    "columns": {"msvc": {"as": "attribute"}, "override": {"as": "attribute"}},
}
_GLIBC: Mapping[str, Any] = {
    "id": "cuda-glibc-toolkits",
    "about": "the glibc beside which each toolkit's headers compile, found by compiling them",
    "evidence": "artifact",
    "context": {"from": "source"},
    "key": "cuda",
    "stands-for": ["x86-row-for-arm"],
    "columns": {
        "machine": {"as": "when"},
        "glibc": {
            "as": "limits",
            "topic": "glibc-max",
            "says": "its headers compile with glibc {value}",
        },
        "guards": {"as": "attribute"},
    },
}


class _Keys(Value):
    wheels: tuple[str, ...]
    # The releases that have each nvcc.
    releases: Mapping[str, tuple[str, ...]]
    # The functions of one double that each glibc brought.
    glibc: Mapping[str, tuple[str, ...]]


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The document of facts about the toolkits of a family. Raises ToolmatrixError."""
    keys = _keys(family)
    found = below(context.place, context) if context.place else at_index(keys.wheels, context)
    toolkits = _once(found)
    named = _named(toolkits, keys.releases)
    rows = _Rows(keys, named, _progress(toolkits, context))
    tables = [
        {**_ARCHS, "rows": rows.archs(toolkits)},
        {**_HOSTS, "rows": rows.hosts(toolkits)},
        {**_MSVC, "rows": rows.microsoft(toolkits)},
        {**_GLIBC, "rows": rows.glibc(toolkits)},
    ]
    return {
        "sources": {one.source: one.described(context.day) for one in toolkits},
        "releases": _releases(toolkits, keys.releases),
        "tables": [
            {"id": table["id"], "source": table["rows"][0]["source"], **table}
            for table in tables
            if table["rows"]
        ],
    }


def _once(found: Iterable[ToolkitFiles]) -> list[ToolkitFiles]:
    """Toolkits by version, each once: one may be in several wheels that differ in the tag of their platform."""
    kept: dict[tuple[str, str, str], ToolkitFiles] = {}
    for one in sorted(
        found, key=lambda one: (_numbers(one.nvcc), _MACHINES.index(one.machine), one.name)
    ):
        first = kept.setdefault((one.source, one.nvcc, one.machine), one)
        if (one.host_config, one.math) != (first.host_config, first.math):
            raise HarvestRefused(
                "the headers of one toolkit differ",
                where=Position(one.name),
                expected=f"those of {first.name}",
            )
    return list(kept.values())


def _keys(family: Family) -> _Keys:
    known = ("kind", "about", "wheels", "releases", "glibc")
    fields = family.node.only(f"family `{family.name}`", known, known)
    path = os.path.join(os.path.dirname(family.node.file), fields["releases"].string("releases"))
    return _Keys(
        wheels=tuple(one.string("a package") for one in pieces.items(fields, "wheels")),
        releases=_known_releases(path),
        glibc={
            version: tuple(one.string("a function") for one in node.several())
            for version, node in sorted(
                pieces.entries(fields, "glibc").items(), key=lambda pair: _numbers(pair[0])
            )
        },
    )


def _known_releases(path: str) -> dict[str, tuple[str, ...]]:
    """The releases of the toolkit by their attribute `nvcc`, from a fact file."""
    found: dict[str, list[str]] = {}
    for group in pieces.items(yamlfile.read(path).mapping("the fact file"), "releases"):
        for version, node in pieces.entries(
            group.mapping("a list of releases"), "versions"
        ).items():
            nvcc = pieces.text(node.mapping("a release"), "nvcc")
            if nvcc:
                found.setdefault(nvcc, []).append(version)
    if not found:
        raise MatrixError(
            "no release says which nvcc it has",
            where=Position(path),
            expected="releases of the toolkit with the attribute `nvcc`",
        )
    return {nvcc: tuple(sorted(names, key=_numbers)) for nvcc, names in found.items()}


def _named(
    toolkits: Iterable[ToolkitFiles], known: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """What the releases of each nvcc are called: those that are known, else the series of the nvcc."""
    # A wheel does not say which update of CUDA it is of. Its nvcc does, as updates of one series differ in it
    # and in what they take (12.3.52 and 12.3.103).
    named = dict(known)
    for one in toolkits:
        series = _SERIES.match(one.nvcc)
        name = series[0] if series else one.nvcc
        clash = next((nvcc for nvcc, names in named.items() if (name,) == names), one.nvcc)
        if one.nvcc not in known and clash != one.nvcc:
            raise HarvestRefused(
                f"no release is known that has nvcc {one.nvcc}",
                where=Position(one.name),
                expected=f"`nvcc: {one.nvcc}` on a release",
                found=f"{name}, which has nvcc {clash}",
                help="add the release to the file that the family names under `releases`",
            )
        named.setdefault(one.nvcc, (name,))
    return named


def _releases(
    toolkits: Sequence[ToolkitFiles], known: Mapping[str, tuple[str, ...]]
) -> list[dict[str, Any]]:
    fresh = [one for one in toolkits if one.nvcc not in known]
    versions = {}
    for one in fresh:
        date = {"date": one.uploaded} if one.uploaded else {}
        versions[next(iter(_named([one], {})[one.nvcc]))] = {**date, "nvcc": one.nvcc}
    if not fresh:
        return []
    return [
        {
            "id": "cuda-releases-nvcc",
            "component": "cuda",
            "source": fresh[0].source,
            "evidence": "artifact",
            "where": "releases that nothing else tells of, by their nvcc; date: first upload",
            "versions": versions,
        }
    ]


class _Rows:
    """The rows of each table; headers that are equal byte for byte are asked once."""

    def __init__(
        self,
        keys: _Keys,
        named: Mapping[str, tuple[str, ...]],
        progress: Callable[[], None],
    ) -> None:
        self._keys = keys
        self._named = named
        self._progress = progress
        self._hosts: dict[tuple[bytes, str], HostCompilers] = {}
        self._ceilings: dict[bytes, GlibcCeiling] = {}

    def archs(self, toolkits: Iterable[ToolkitFiles]) -> list[dict[str, Any]]:
        """A row for each toolkit whose programs run on this machine."""
        rows = []
        for one in toolkits:
            if one.programs is not None and one.machine == platform.machine():
                known = archs.known_archs(one.programs(), one.name)
                lists = "; nvcc --list-gpu-code; nvcc --list-gpu-arch" if known.listed else ""
                cells = {"arch": " ".join(known.archs), "list-gpu-code": " ".join(known.listed)}
                rows.append(self._row("cuda-archs", one, cells, f"ptxas -arch{lists}"))
            self._progress()
        return rows

    def hosts(self, toolkits: Iterable[ToolkitFiles]) -> list[dict[str, Any]]:
        """A row for each toolkit with the header, and machine."""
        rows = []
        for one in toolkits:
            found = self._guard(one)
            if found is not None:
                cells = {
                    "machine": one.machine,
                    "gcc": found.gcc,
                    "clang": found.clang,
                    "clang-oldest": found.clang_oldest,
                    "guard": found.guard,
                    "override": found.override,
                }
                rows.append(self._row("cuda-host-compilers", one, cells, _GUARD, one.machine))
            self._progress()
        return rows

    def microsoft(self, toolkits: Iterable[ToolkitFiles]) -> list[dict[str, Any]]:
        """A row for each toolkit: those for Linux carry the header for Windows as well, on every machine."""
        rows: dict[str, dict[str, Any]] = {}
        for one in toolkits:
            found = self._guard(one)
            if found is not None and found.msvc and one.nvcc not in rows:
                cells = {"msvc": found.msvc, "override": found.override}
                rows[one.nvcc] = self._row("cuda-msvc", one, cells, _GUARD)
        return list(rows.values())

    def glibc(self, toolkits: Iterable[ToolkitFiles]) -> list[dict[str, Any]]:
        """A row for each toolkit, which machines share whose headers say the same."""
        rows: dict[tuple[str, GlibcCeiling], dict[str, Any]] = {}
        for one in toolkits:
            if not one.math:
                continue
            found = self._ceiling(one)
            if row := rows.get((one.nvcc, found)):
                row["machine"] += f" {one.machine}"
                row["where"] += f"; {one.where}"
                continue
            cells = {
                "machine": one.machine,
                "glibc": found.glibc,
                "guards": " ".join(found.guards) or "none",
            }
            other = one.machine if any(nvcc == one.nvcc for nvcc, _ in rows) else ""
            rows[one.nvcc, found] = self._row("cuda-glibc", one, cells, _MATH, other)
        return list(rows.values())

    def _ceiling(self, one: ToolkitFiles) -> GlibcCeiling:
        if one.math not in self._ceilings:
            self._ceilings[one.math] = headers.glibc_ceiling(one.math, self._keys.glibc, one.name)
        return self._ceilings[one.math]

    def _guard(self, one: ToolkitFiles) -> HostCompilers | None:
        if not one.host_config:
            return None
        key = (one.host_config, one.machine)
        if key not in self._hosts:
            self._hosts[key] = headers.host_compilers(*key, one.name)
        return self._hosts[key]

    def _row(
        self, table: str, one: ToolkitFiles, cells: Mapping[str, str], where: str, suffix: str = ""
    ) -> dict[str, Any]:
        names = self._named[one.nvcc]
        return {
            "id": f"{table}/{names[0]}" + (suffix and f"/{suffix}"),
            "cuda": " ".join(names),
            **{name: cell for name, cell in cells.items() if cell},
            "source": one.source,
            "where": f"{one.where}, {where}",
        }


def _progress(toolkits: Sequence[ToolkitFiles], context: HarvestContext) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        context.progress(done, 2 * len(toolkits))

    return step


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
