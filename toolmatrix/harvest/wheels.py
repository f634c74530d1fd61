"""Kind `wheels`: what is inside the wheels of a package of an index, of one wheel for each release and machine.

What a wheel says is a row about the build that it is, or about its release where that has no builds. It names the file,
its sha256 and the members that were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolmatrix.facts import pieces, variants, versions
from toolmatrix.facts.yamlfile import YamlNode
from toolmatrix.harvest import contents, families, listing, project
from toolmatrix.harvest.contents import Rule, WheelCell
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.project import MACHINES, PublishedRelease, Wheel
from toolmatrix.harvest.wheel import RemoteWheel

THREADS = 8
_NEEDED = ("kind", "about", "package", "component", "of", "columns", "inside")
_OPTIONAL = ("since", "before", "channel", "extends", "machines", "by-name")
_OF = ("builds", "releases")
# Digits of a sha256 that name a file.
_DIGITS = 16


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """What the wheels of a package hold. Raises ToolmatrixError."""
    fields = family.node.only(f"family `{family.name}`", (*_NEEDED, *_OPTIONAL), _NEEDED)
    package, component = (fields[name].string(name) for name in ("package", "component"))
    wanted = contents.rules(fields["inside"].sequence("rules"))
    where = families.indexes(context.env)
    context.session.trust(where.certificates, where.proxy)
    urls = (context.place,) if context.place else where.urls
    releases = _between(project.releases(context.session, urls, package), fields)
    machines = [one.string("a machine") for one in pieces.items(fields, "machines")] or MACHINES
    asked = [
        (release, machine, wheel)
        for release in releases
        for machine in machines
        if (wheel := _wheel(release, machine)) is not None
    ]
    told = _read(context, [wheel for *_, wheel in asked], wanted)
    by_build = fields["of"].choice("of", _OF) == "builds"
    key = variants.name(component) if by_build else component
    source = f"pypi-{package}-contents"
    made = [
        _row(family.name, key, release, machine, pieces.text(fields, "channel", "default"), held)
        for (release, machine, _), held in zip(asked, told, strict=True)
        if held[1]
    ]
    columns = {
        name: listing.plain_value(one) for name, one in fields["columns"].mapping("columns").items()
    }
    present = {column for row in made for column in row}
    table = {
        "id": family.name,
        "about": family.about.splitlines()[0],
        "source": source,
        "evidence": "artifact",
        "key": key,
        **({"extends": True} if pieces.flag(fields, "extends") else {}),
        "columns": {name: one for name, one in columns.items() if name in present},
        "rows": made,
    }
    ends = [releases[-1].version, releases[0].version] if releases else ["", ""]
    title = f"Python package index, {package}: members of its wheels, read by ranges"
    at = f"package {package}, final releases {ends[0]} to {ends[1]}, one wheel for each release and machine"
    return {
        "sources": {source: {"title": title, "at": at, "read": context.day.isoformat()}},
        "tables": [table],
    }


def _between(
    found: Sequence[PublishedRelease], fields: Mapping[str, YamlNode]
) -> list[PublishedRelease]:
    since, before = (pieces.text(fields, name) for name in ("since", "before"))

    def order(version: str) -> Any:
        return versions.order(versions.key(version))

    return [
        one
        for one in found
        if not since or order(one.version) >= order(since)
        if not before or order(one.version) < order(before)
    ]


def _wheel(release: PublishedRelease, machine: str) -> Wheel | None:
    """The wheel of a machine for the newest Python."""
    # One is enough: what is inside hardly differs from one Python to another, and a wheel may have hundreds of MiB.
    fit = [
        (one.major, one.minor, wheel.name, wheel)
        for wheel in release.wheels
        for one in wheel.serves
        if one.machine == machine
    ]
    return max(fit, key=lambda one: one[:3])[3] if fit else None


def _read(
    context: HarvestContext, wheels: Sequence[Wheel], wanted: Sequence[Rule]
) -> list[tuple[Wheel, dict[str, WheelCell]]]:
    found = []
    with ThreadPoolExecutor(THREADS) as workers:
        read = workers.map(
            lambda one: contents.read(RemoteWheel(context.session, one.url, one.sha256), wanted),
            wheels,
        )
        try:
            for done, (wheel, held) in enumerate(zip(wheels, read, strict=True), 1):
                found.append((wheel, held))
                context.progress(done, len(wheels))
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _row(
    table: str,
    key: str,
    release: PublishedRelease,
    machine: str,
    channel: str,
    told: tuple[Wheel, Mapping[str, WheelCell]],
) -> dict[str, Any]:
    wheel, held = told
    by_build = key.endswith(variants.name(""))
    members = dict.fromkeys(name for one in held.values() for name in one.members)
    subject = f"{release.version}+*@{channel}/{machine}" if by_build else release.version
    digest = f", sha256 {wheel.sha256[:_DIGITS]}" if wheel.sha256 else ""
    return {
        "id": f"{table}/{release.version}-{machine}",
        key: subject,
        **({} if by_build else {"machine": machine}),
        **dict(_cells(held)),
        "where": f"{wheel.name}{digest}: " + ", ".join([*members][:_SHOWN]),
    }


# Members that a row names.
_SHOWN = 4


def _cells(held: Mapping[str, WheelCell]) -> Iterator[tuple[str, Any]]:
    for cell, one in held.items():
        # As a whole list of archs a part of it would refuse devices that the rest is for.
        yield cell, {"is": one.text, "at-least": True} if one.partly else one.text
