"""The matrix beside what an index of packages lists: releases that one of the two has, and wheels that are refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from toolmatrix.codes.audit import RefusedWheel, UnknownRelease, WithdrawnRelease
from toolmatrix.facts.index import Index
from toolmatrix.facts.model import Matrix
from toolmatrix.finding import Finding, InstallMethod, merged
from toolmatrix.judge import sweep
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import NamedTuple, Value


class PublishedWheel(NamedTuple):
    """A release that has a wheel for a Python series and a machine."""

    release: str
    python: str
    machine: str


class Published(Value):
    """What an index lists of a package: its final releases, the oldest first, and the wheels of each."""

    releases: tuple[str, ...]
    wheels: tuple[PublishedWheel, ...] = ()


# What sources of a list of files say: `package numpy, final releases 1.13.0 to 2.5.5`.
_LISTED = re.compile(
    r"package ([\w.-]+), (?:final )?releases |packages ([\w.-]+(?:, [\w.-]+)*), each "
)


def packages(matrix: Matrix) -> dict[str, dict[str, list[str]]]:
    """Releases that were read in the list of files of a package, by component and by package."""
    found: dict[str, dict[str, list[str]]] = {}
    for (component, version), release in matrix.releases.items():
        at = _LISTED.match(matrix.sources[release.source].at)
        # A build is published with its release.
        if at and not matrix.components[component].variant_of:
            names = (at[1] or at[2]).split(", ")
            package = component if component in names else names[0]
            found.setdefault(component, {}).setdefault(package, []).append(version)
    return found


def releases(
    index: Index, own: Mapping[str, Collection[str]], listed: Mapping[str, Published]
) -> Iterator[Finding]:
    """Releases that the index lists and the matrix does not know, and the other way round.

    Those older than the oldest release that is known were left out on purpose: how many are known is what the floor of
    a family judges.
    """
    for component, published in listed.items():
        scale = index.scale(component)
        known = set(index.component(component).versions)
        # A package of many years has releases that no Python of today installs.
        first = next((at for at, one in enumerate(published.releases) if scale.bit(one)), 0)
        missing = tuple(one for one in published.releases[first:] if one not in known)
        # Not to know a release makes no answer wrong; one that is gone makes answers that nobody can install.
        if missing:
            yield UnknownRelease(severity="warning", component=component, listed=missing)
        gone = tuple(one for one in own.get(component, ()) if one not in published.releases)
        if gone:
            yield WithdrawnRelease(
                severity="error",
                component=component,
                releases=gone,
                facts=tuple(f"{component}=={one}" for one in gone),
            )


def refused(index: Index, component: str, wheels: Iterable[PublishedWheel]) -> Iterator[Finding]:
    """Published wheels without an answer, of which the refusal speaks of their own Pythons and machines.

    What refuses a wheel otherwise, as where no NumPy goes with its Python, is the fact that says why not.
    """
    found = [
        RefusedWheel(
            severity="error",
            component=component,
            releases=(wheel.release,),
            python=wheel.python,
            machine=wheel.machine,
            facts=facts,
        )
        for wheel in wheels
        if (facts := _own_tags(index, component, wheel))
    ]
    return iter(merged(found, "releases", "facts"))


def _own_tags(index: Index, component: str, wheel: PublishedWheel) -> tuple[str, ...]:
    bit = index.scale(component).bit(wheel.release)
    # What is not known cannot be refused: `releases` tells of it.
    if not bit or not index.scale("python").select(wheel.python):
        return ()
    # One way is enough: a wheel for CUDA is refused where nothing is to compute but the CPU.
    last: Finding | None = None
    for way in sweep.install_methods(index, component):
        if way.from_ != "wheel" or machine(index, way) != wheel.machine:
            continue
        python = ("python", wheel.python)
        found = attempt(index, sweep.request(index, (component, wheel.release), way, python))
        if not isinstance(found, Assembly):
            return ()
        last = last or sweep.refusal((component, wheel.release), way, found)
    # Wheels are those of a build where the component has several.
    own = (component, f"{component}-variant")
    grounds = last.grounds if last else ()
    if any(ground.subject not in own for ground in grounds):
        return ()
    return tuple(
        fact
        for ground in grounds
        if ground.component in ("python", "machine")
        for fact in ground.facts
    )


def machine(index: Index, way: InstallMethod) -> str:
    """The machine of the target of a way."""
    found: str = index.header["targets"][way.target]["context"].get("machine", "")
    return found
