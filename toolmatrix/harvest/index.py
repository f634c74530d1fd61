"""Packages of an index: their file lists, and METADATA of as few wheels as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from toolmatrix.factbase import pieces
from toolmatrix.factbase.versions import Scale
from toolmatrix.harvest import code, families, package_facts, project
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.package_facts import BuildLine, Package, PackageRead, ReleaseRead
from toolmatrix.harvest.project import MACHINES, Metadata, PublishedRelease, Wheel

if TYPE_CHECKING:
    from toolmatrix.factbase.yamlfile import YamlNode
    from toolmatrix.harvest.package_facts import Served


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts of a family of packages. Raises ToolmatrixError."""
    fields = family.only(("packages",), ("by-request", "by-build"))
    by_request = pieces.flag(fields, "by-request")
    packages = [
        _package(name, node).replace(by_request=by_request)
        for name, node in fields["packages"].mapping("packages").items()
    ]
    urls = families.index_urls(context)
    published = families.run_parallel(
        lambda package: project.releases(context.session, urls, package.name), packages
    )
    chosen = [
        _chosen(releases, package) for releases, package in zip(published, packages, strict=True)
    ]
    reader = _Reader(context, _components(packages, context))
    read = [
        package.replace(published=len(releases))
        for package, releases in zip(reader.all(packages, chosen), published, strict=True)
    ]
    document = package_facts.document(read, context)
    if by_request:
        source, table = code.table(family.name, read, context)
        document["sources"] |= source
        document["data"] = [table]
    return document


def _package(name: str, node: YamlNode) -> Package:
    fields = node.only(
        f"package `{name}`",
        (
            *("component", "title", "since", "requires", "extras", "line", "install"),
            *("cuda", "beside", "device-code", "compiled", "newest", "besides", "unreviewed"),
            *("from-source", "lines", "only-limits", "accelerators", "only-with", "variants"),
        ),
    )
    return Package(
        name=name,
        component=pieces.text(fields, "component", name),
        title=pieces.text(fields, "title", name),
        since=pieces.text(fields, "since"),
        requires=_names(fields["requires"]) if "requires" in fields else None,
        extras=_names(fields["extras"]) if "extras" in fields else (),
        line=pieces.text(fields, "line"),
        lines=tuple(map(_line, pieces.items(fields, "lines"))),
        install=pieces.text(fields, "install", f"{name}=={{release}}"),
        cuda=pieces.text(fields, "cuda"),
        beside=pieces.flag(fields, "beside"),
        unread=pieces.choice(fields, "device-code", ("compiled", "unread")) == "unread",
        compiled=pieces.text(fields, "compiled"),
        newest=fields["newest"].integer("newest") if "newest" in fields else 0,
        besides=pieces.text(fields, "besides"),
        unreviewed=pieces.flag(fields, "unreviewed"),
        source=pieces.choice(fields, "from-source", ("read", "unread")),
        only_limits=pieces.flag(fields, "only-limits"),
        only_with={
            requirement: selector.string("accelerators")
            for requirement, selector in pieces.entries(fields, "only-with").items()
        },
        accelerators=_names(fields["accelerators"]) if "accelerators" in fields else (),
        variants=pieces.flag(fields, "variants"),
    )


def _line(node: YamlNode) -> BuildLine:
    keys = "releases", "machine", "line"
    fields = {
        key: pieces.text(node.only("the line of some builds", keys, keys), key) for key in keys
    }
    return BuildLine(**fields)


def _names(node: YamlNode) -> tuple[str, ...]:
    return tuple(item.string("a name") for item in node.sequence("a list of names"))


def _components(packages: Iterable[Package], context: HarvestContext) -> dict[str, str]:
    return {**context.packages, **{package.name: package.component for package in packages}}


def _chosen(releases: Sequence[PublishedRelease], package: Package) -> list[PublishedRelease]:
    releases = project.between(releases, package.since)
    if not package.newest:
        return releases
    wanted = {release.version for release in releases[: package.newest]}
    if package.besides:
        scale = Scale("pep440", [release.version for release in reversed(releases)])
        wanted |= {*scale.named(scale.select(package.besides))[-package.newest :]}
    return [release for release in releases if release.version in wanted]


class _Reader:
    """Reads METADATA, first of the wheels for the lowest and the highest Python of each release and machine."""

    def __init__(self, context: HarvestContext, components: dict[str, str]) -> None:
        self.context = context
        self.components = components
        self.known: dict[str, Metadata] = {}

    def all(
        self, packages: Sequence[Package], chosen: Sequence[Sequence[PublishedRelease]]
    ) -> list[PackageRead]:
        served = [
            [wheels_by_target(release, self.context.pythons) for release in several]
            for several in chosen
        ]
        pending = [
            by_target
            for package, several in zip(packages, served, strict=True)
            if package.requires != ()
            for by_target in several
        ]
        # METADATA rarely differs between the Pythons of a release, so that two of its wheels are mostly enough.
        # The wheels of all packages are one batch, or threads would wait for the last wheel of each package.
        self.read(
            wheel
            for by_target in pending
            for wheels in _ladders(by_target)
            # The first and the last, or the only one.
            for wheel in wheels[:: len(wheels) - 1 or 1]
        )
        # If both ends agree, so do the wheels between them; otherwise every wheel is read.
        self.read(
            wheel
            for by_target in pending
            for wheels in _ladders(by_target)
            if self.known[wheels[0].name].lines != self.known[wheels[-1].name].lines
            for wheel in wheels
        )
        return [
            PackageRead(
                package=package,
                releases=tuple(
                    ReleaseRead(
                        release=release, served=by_target, metadata=self._metadata(by_target)
                    )
                    for release, by_target in zip(releases, several, strict=True)
                ),
            )
            for package, releases, several in zip(packages, chosen, served, strict=True)
        ]

    def read(self, wheels: Iterable[Wheel]) -> None:
        wanted = {wheel.name: wheel for wheel in wheels if wheel.name not in self.known}
        read = families.run_parallel(
            lambda wheel: project.read_metadata(self.context.session, wheel, self.components),
            wanted.values(),
            self.context.progress,
        )
        self.known |= zip(wanted, read, strict=True)

    def _metadata(self, served: Served) -> dict[tuple[str, str], Metadata]:
        """METADATA for each machine and Python: of its wheel, or of the next lower one that was read."""
        metadata = {}
        for machine in MACHINES:
            last: Metadata | None = None
            for (wheel_machine, python), wheel in served.items():
                if wheel_machine == machine:
                    last = self.known.get(wheel.name, last)
                    if last is not None:
                        metadata[machine, python] = last
        return metadata


def wheels_by_target(release: PublishedRelease, pythons: Sequence[str]) -> Served:
    """The wheel that installers choose for each machine and Python, the oldest Python first."""
    served = {}
    for machine in MACHINES:
        for python in pythons:
            # Requires-Python counts as well: `py3` and abi3 also cover Pythons that the release no longer supports.
            fit = [
                (best, wheel)
                for wheel in release.files
                if wheel.allows(python) and (best := wheel.best(machine, python)) is not None
            ]
            if fit:
                served[machine, python] = min(
                    fit, key=lambda candidate: (candidate[0].order, candidate[1].name)
                )[1]
    return served


def _ladders(served: Served) -> list[list[Wheel]]:
    """The wheels of each machine, the one for the oldest Python first."""
    ladders = []
    for machine in MACHINES:
        wheels = {
            wheel.name: wheel
            for (wheel_machine, _), wheel in served.items()
            if wheel_machine == machine
        }
        if wheels:
            ladders.append(list(wheels.values()))
    return ladders
