"""Facts of a matrix that contradict each other, file against file: none of them is wrong by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from toolmatrix.codes import audit as codes
from toolmatrix.facts import evidence as words
from toolmatrix.facts.compiled import bits, union
from toolmatrix.facts.index import Index
from toolmatrix.facts.model import Claim, Matrix, Release
from toolmatrix.facts.tables import UNKNOWN
from toolmatrix.facts.versions import ABSENT
from toolmatrix.finding import Finding, merged

_TOOLKITS = {"cu": "cuda", "cuda": "cuda", "rocm": "rocm", "rocm-rel-": "rocm"}
"""The toolkit by what names of lines begin with."""
_LINE = re.compile(rf"({'|'.join(sorted(_TOOLKITS, reverse=True))})(\d+)")
_FIRST_MAJOR_YET_TO_COME = 20
"""`cu92` is of CUDA 9 and `cu126` of CUDA 12: no toolkit has a number as high as two digits would make of the first."""
_FILE = re.compile(r"[\w.+-]+\.(?:whl|tar\.gz|zip)\b")
_PURE = "-none-any.whl"
_RUNS_ANYWHERE = ("pure", "run-time")
"""Kinds of code that a source archive brings as well as a wheel does."""


def findings(matrix: Matrix, index: Index, packages: Mapping[str, str]) -> Iterator[Finding]:
    """Find every contradiction; `packages` are the components of packages that are called otherwise."""
    yield from merged(code_on_cpu(matrix, index), "releases", "facts")
    yield from unread_requirements(matrix, packages)
    yield from merged(without_wheel(matrix, index), "releases", "facts")
    yield from merged(old_toolkits(matrix, index), "releases", "facts")
    yield from merged(two_lines(matrix, index), "releases", "facts")
    yield from merged(pure_unread(matrix, index), "releases", "facts")
    yield from read_before(matrix)


def code_on_cpu(matrix: Matrix, index: Index) -> Iterator[codes.DeviceCodeOnCpu]:
    """Builds for the CPU in which somebody read code for devices."""
    for claim in _of_builds(matrix, ("arch",), "limits"):
        for build in _builds(matrix, index, claim):
            if build.attributes["accelerator"] == "none" and _archs(index, claim.selector):
                yield codes.DeviceCodeOnCpu(
                    severity="error",
                    component=matrix.components[build.component].variant_of,
                    releases=(build.attributes["release"],),
                    machine=build.attributes["machine"],
                    line=build.attributes["line"],
                    facts=(claim.id,),
                )


def unread_requirements(
    matrix: Matrix, packages: Mapping[str, str]
) -> Iterator[codes.UnreadRequirement]:
    """Packages that releases require beside components, and that are one by now."""
    for read in matrix.requirements.values():
        for other in (read.node.fields or {})["others"].items or ():
            name = other.text or ""
            component = packages.get(name)
            if component in matrix.components and component != read.component:
                yield codes.UnreadRequirement(
                    severity="error",
                    component=read.component,
                    table=read.table,
                    package=name,
                    expected=f"a column about {component}",
                    where=other.where,
                )


def without_wheel(matrix: Matrix, index: Index) -> Iterator[codes.WheelWithoutFile]:
    """Releases with compiled code of which no file is a wheel for a machine, and that facts let go as one there."""
    built = {
        (matrix.components[one.component].variant_of, one.attributes["release"])
        for one in matrix.releases.values()
        if matrix.components[one.component].variant_of
    }
    for (component, version), release in matrix.releases.items():
        files = _files(matrix, release)
        # What the builds of a release are for facts say already.
        if not files or not _is_compiled(matrix, index, component) or (component, version) in built:
            continue
        bit = index.scale(component).bit(version)
        for machine in index.component("machine").versions:
            ours = any(
                file.endswith(".whl") and (machine in file or file.endswith(_PURE))
                for file in files
            )
            if not ours and not _refused(index, component, bit, machine):
                yield codes.WheelWithoutFile(
                    severity="error",
                    component=component,
                    releases=(version,),
                    machine=machine,
                    facts=(f"{component}=={version}",),
                )


def _is_compiled(matrix: Matrix, index: Index, component: str) -> bool:
    code = index.header["components"][component].get("code", "")
    part = matrix.components[component]
    return code not in _RUNS_ANYWHERE and (part.variants or bool(code and part.accelerators))


def _refused(index: Index, component: str, release: int, machine: str) -> bool:
    """Whether facts say that a release is no wheel for a machine, or that nobody knows of one."""
    given = {
        "from": index.scale("from").bit("wheel"),
        "machine": index.scale("machine").bit(machine),
    }
    facts = index.component(component)
    return any(
        not binding.allowed & bit
        and all(mask & given.get(name, 0) for name, mask in binding.conditions.items())
        for name, bit in given.items()
        for binding in facts.about(name, release)
    )


def old_toolkits(matrix: Matrix, index: Index) -> Iterator[codes.OldToolkit]:
    """Builds with code that no release of the toolkit which they were built with makes."""
    for claim in _of_builds(matrix, _TOOLKITS.values(), "requires"):
        toolkit = claim.component
        makes = union(
            _made(index, toolkit, bit)
            for bit in bits(index.scale(toolkit).select(claim.selector) & ~1)
        )
        for build in _builds(matrix, index, claim):
            # Of a toolkit of which nobody knows what it makes nothing is too old.
            newer = _archs(index, build.attributes["archs"]) & ~makes if makes else 0
            if newer:
                yield codes.OldToolkit(
                    severity="error",
                    component=matrix.components[build.component].variant_of,
                    releases=(build.attributes["release"],),
                    toolkit=toolkit,
                    archs=tuple(index.scale("arch").named(newer)),
                    actual=str(claim.selector),
                    facts=(claim.id,),
                )


def two_lines(matrix: Matrix, index: Index) -> Iterator[codes.TwoLines]:
    """Builds under two lines in two files, and those whose line is not of the toolkit that was read inside."""
    same: dict[tuple[str, ...], list[Release]] = {}
    for build in matrix.releases.values():
        told = build.attributes
        # On another channel each line has an address of its own.
        if matrix.components[build.component].variant_of and (
            matrix.channels[told["channel"]].default
        ):
            place = build.component, *(told.get(key, "") for key in _ONE_FILE)
            same.setdefault(place, []).append(build)
    for several in same.values():
        if len({build.node.where.path for build in several}) > 1:
            yield _two_lines(matrix, several[0], several[1].attributes["line"], several[1])
    for claim in _of_builds(matrix, _TOOLKITS.values(), "requires"):
        inside = index.scale(claim.component).select(claim.selector)
        for build in _builds(matrix, index, claim):
            named = _toolkit(build.attributes["line"], claim.component)
            if named and not inside & index.scale(claim.component).select(named):
                line = f"{claim.component} {claim.selector}"
                yield _two_lines(matrix, build, line).replace(facts=(claim.id,))


_CPU = "cpu"
_ONE_FILE = ("release", "channel", "machine", "install", "abi")


def _two_lines(
    matrix: Matrix, build: Release, other: str, rival: Release | None = None
) -> codes.TwoLines:
    return codes.TwoLines(
        severity="error",
        component=matrix.components[build.component].variant_of,
        releases=(build.attributes["release"],),
        machine=build.attributes["machine"],
        line=build.attributes["line"],
        actual=other,
        facts=tuple(f"{one.component}=={one.version}" for one in (rival, build) if one),
    )


def _toolkit(line: str, toolkit: str) -> str:
    """The major release of a toolkit that a line names: `cu126` is of 12; "" where it does not say."""
    found = _LINE.match(line)
    if found is None:
        return ABSENT if line == _CPU else ""
    if _TOOLKITS[found[1]] != toolkit:
        return ABSENT
    first, two = found[2][:1], found[2][:2]
    return two if int(two) < _FIRST_MAJOR_YET_TO_COME else first


def pure_unread(matrix: Matrix, index: Index) -> Iterator[codes.PureUnread]:
    """Releases of which nobody read the code for devices, and whose wheels are Python alone."""
    for claim in matrix.claims.values():
        component, selector = claim.when[0]
        if (claim.component, claim.evidence) != ("device", UNKNOWN):
            continue
        scale = index.scale(component)
        for version in scale.named(scale.select(selector)):
            files = _files(matrix, matrix.releases[component, version])
            # A wheel for any machine may hold libraries all the same, which somebody has read.
            if (
                files
                and all(file.endswith(_PURE) for file in files)
                and not any(
                    binding.evidence != UNKNOWN
                    for toolkit in set(_TOOLKITS.values()) & matrix.components.keys()
                    for binding in index.component(component).about(toolkit, scale.bit(version))
                )
            ):
                yield codes.PureUnread(
                    severity="error", component=component, releases=(version,), facts=(claim.id,)
                )


def read_before(matrix: Matrix) -> Iterator[codes.ReadBefore]:
    """Tables of releases that cite METADATA, and do not say whether it was read whole."""
    told: set[str] = set()
    for (component, version), release in matrix.releases.items():
        row = matrix.rows.get(release.id)
        if (
            row is not None
            and row.table not in told
            and row.table not in matrix.requirements
            and not matrix.components[component].variant_of
            and _METADATA.search(row.where)
        ):
            told.add(row.table)
            yield codes.ReadBefore(
                severity="error",
                component=component,
                table=row.table,
                expected="`requirements-read:` in the table",
                facts=(f"{component}=={version}",),
            )


_METADATA = re.compile(r"\b(METADATA|Requires-Dist)\b|\.whl, sha256 ")


def _of_builds(matrix: Matrix, components: Iterable[str], kind: str) -> Iterator[Claim]:
    known = set(components)
    for claim in matrix.claims.values():
        about = claim.component in known and claim.kind == kind
        read = about and claim.evidence != words.UNKNOWN and claim.decides
        if read and matrix.components[claim.when[0][0]].variant_of:
            yield claim


def _builds(matrix: Matrix, index: Index, claim: Claim) -> Iterator[Release]:
    component, selector = claim.when[0]
    scale = index.scale(component)
    for name in scale.named(scale.select(selector)):
        yield matrix.releases[component, name]


def _archs(index: Index, selector: str) -> int:
    return index.scale("arch").select(selector) & ~1 if selector not in ("", UNKNOWN) else 0


def _made(index: Index, toolkit: str, release: int) -> int:
    """The archs that a release of a toolkit makes code for, 0 where nobody knows."""
    found = -1
    for binding in index.component(toolkit).about("arch", release):
        if binding.kind == "limits" and binding.evidence != UNKNOWN and not binding.conditions:
            found &= binding.allowed
    return 0 if found == -1 else found & ~1


def _files(matrix: Matrix, release: Release) -> list[str]:
    """The files of a release that its row cites."""
    row = matrix.rows.get(release.id)
    return _FILE.findall(row.where) if row is not None else []
