"""Reads channels and tables of variants: what was published of a release, where, for which toolkit and machine.

A row of such a table names releases, a line, a channel and machines. Each release on each machine is one variant, a
release of the component `NAME-variant`, about which the row says the rest. docs/facts.md explains how to add one.
Raises MatrixError with the position of the row or key at fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from toolmatrix.factbase import layout, pieces, tables
from toolmatrix.factbase.model import Channel, Claim, Component, Release, TableRow
from toolmatrix.factbase.pieces import Recorder
from toolmatrix.factbase.tables import FactTable, PrintedRow
from toolmatrix.factbase.versions import Scale, sort
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.value import Value

ONLY_THESE = "no-other-build"
"""The rule by which what no known channel publishes does not exist."""
# What every row of variants may say beside its columns.
_OWN = ("line", "channel", "machine", "abi", "install")
# What the default channel is preferred by: more than any channel has lines.
_ABOVE_LINES = 1000


def name(component: str) -> str:
    """The component whose releases are the variants of another."""
    return f"{component}-variant"


def component(of: Component) -> Component:
    """That component."""
    return Component(
        name=name(of.name),
        title=f"{of.title} variant",
        scheme="names",
        variant_of=of.name,
        under=of.name,
    )


def channel(recorder: Recorder, node: YamlNode) -> None:
    """Read one channel."""
    fields = pieces.fields(node, "a channel", layout.ChannelLayout)
    identity = recorder.group(fields)
    origin = pieces.Provenance.read(fields, recorder.known)
    lines: dict[str, str] = {}
    for accelerator, entries in fields["lines"].mapping("lines").items():
        for item in entries.sequence("lines of an accelerator"):
            lines[item.string("a line")] = accelerator
    recorder.layer.channels[identity] = Channel(
        name=identity,
        title=fields["title"].string("title"),
        kind=fields["kind"].choice("kind", layout.CHANNELS),
        default=pieces.flag(fields, "default"),
        install=tuple(item.string("an argument") for item in pieces.items(fields, "install")),
        lines=lines,
        unread=tuple(
            pieces.known_component(item, recorder.components).name
            for item in pieces.items(fields, "unread")
        ),
        **origin.as_dict("source", "evidence", "where"),
    )


class _Variant(Value):
    # One build: its name among the releases of the variant component, and what distinguishes it in its row.
    name: str
    release: str
    machine: str


class _Builds(Value):
    # The builds of a row, with what they share.
    row: PrintedRow
    line: str
    channel: Channel
    variants: tuple[_Variant, ...]
    decides: bool

    @property
    def accelerator(self) -> str:
        return self.channel.lines[self.line]


def table(recorder: Recorder, node: YamlNode) -> None:
    """Read a table of variants into releases of the variant component and what is said of them."""
    fields = pieces.fields(node, "a table", layout.VariantTableLayout)
    if "requirements-read" in fields:
        fields["requirements-read"].fail(
            "a table of variants cannot have `requirements-read`",
            expected="the key in the table of their releases",
            help="a release has one answer, and builds of it may require different packages",
        )
    common = tables.head(recorder, fields, (*tables.ROW, *_OWN))
    if not recorder.components[common.key].variants:
        fields["key"].fail(
            f"`{common.key}` has no variants",
            expected=f"`variants: true` in the definition of `{common.key}`",
            help="a table of variants is about a component that is published in several builds",
        )
    of = recorder.components[common.key]
    released = {release.version: 0 for release in recorder.releases(of.name)}
    scale = Scale(of.scheme, sort(of.scheme, released))
    usual = pieces.text(fields, "install", f"{of.name}=={{release}}")
    matched = tuple(
        pieces.known_component(entry, recorder.components).name
        for entry in pieces.several(fields, "matches")
    )
    # A build beside another one runs by archs of its own.
    common = common.replace(by_device=common.by_device or bool(matched))
    for row in fields["rows"].sequence("rows"):
        builds = _row(recorder, row, common, scale, usual)
        for claim in _variant_claims(builds, common, matched):
            recorder.claim(claim)


def _row(recorder: Recorder, node: YamlNode, table: FactTable, scale: Scale, usual: str) -> _Builds:
    fields = node.only(
        f"a row of `{table.id}`",
        (table.key, *table.columns, *tables.ROW, *_OWN),
        (table.key, "line", "channel", "machine"),
    )
    subject = pieces.selector(recorder.components[table.key], fields[table.key])
    releases = scale.mask(scale.parse(subject))
    if not releases:
        fields[table.key].fail(
            f"a row of `{table.id}` names a version of {table.key} that was never released",
            expected=f"known releases of {table.key}",
        )
    known = recorder.channels
    channel = known[
        pieces.known_name(fields["channel"], "channel", known, "a channel under `channels:`")
    ]
    line = pieces.known_name(
        fields["line"],
        "line",
        channel.lines,
        otherwise="one of " + ", ".join(channel.lines),
        wrong=f"the channel `{channel.name}` has no such line",
        help="correct it, or add the line to the channel with its source",
    )
    machines = fields["machine"].string("machine").split()
    abi = {"abi": fields["abi"].string("abi")} if "abi" in fields else {}

    def named(releases: str, machines: str) -> str:
        return "/".join([f"{releases}+{line}@{channel.name}", machines, *abi.values()])

    published = tuple(
        _Variant(name=named(release, machine), release=release, machine=machine)
        for release in scale.named(releases)
        for machine in machines
    )
    printed = named(subject, " ".join(machines))
    identity = pieces.identity(fields, f"{table.id}/{printed}")
    row = tables.PrintedRow(recorder, table, node, fields, identity, printed)
    decides = pieces.decides(fields)
    builds = _Builds(row=row, line=line, channel=channel, variants=published, decides=decides)
    attributes = row.attributes() | _archs(builds) | abi
    for release in _releases(builds, pieces.text(fields, "install", usual), attributes):
        recorder.offer(release)
    row.claims((name(table.key), " ".join(variant.name for variant in published)))
    return builds


def _archs(builds: _Builds) -> dict[str, str]:
    row = builds.row
    for node, meaning in row.filled:
        if meaning.component == "arch":
            fields = node.fields or {"is": node}
            partly = {"at-least": "true"} if pieces.flag(fields, "at-least") else {}
            return {"archs": pieces.printed(fields["is"]), **partly}
    # The archs of a build for an accelerator matter most: its row must have them, if only as `unknown`.
    if builds.accelerator != "none":
        row.node.fail(
            f"a row of `{row.table.id}` does not name the codegen archs of its build",
            expected="a cell of a column about `arch`: their names, or `unknown`",
            found=f"none, for the line {builds.line}",
        )
    return {"archs": ""}


def _releases(builds: _Builds, install: str, attributes: Mapping[str, str]) -> Iterator[Release]:
    # The default channel is preferred, then the newest line.
    channel, row = builds.channel, builds.row
    lines = [line for line, runtime in channel.lines.items() if runtime == builds.accelerator]
    rank = _ABOVE_LINES * channel.default + lines.index(builds.line)
    component = name(row.table.key)
    for variant in builds.variants:
        if (component, variant.name) in row.recorder.layer.releases:
            row.node.fail(
                "a variant is listed twice",
                expected="each release, line, channel and machine once",
                found=f"`{variant.name}`",
                help="join the two rows, or distinguish the builds by `abi:`",
            )
        build = {"release": variant.release, "line": builds.line, "machine": variant.machine}
        own = {
            **build,
            "channel": channel.name,
            "accelerator": builds.accelerator,
            "install": _fill(install, build),
        }
        yield Release(
            component=component,
            version=variant.name,
            id=row.id,
            rank=rank,
            attributes={**attributes, **own},
            node=row.node,
            **row.origin.as_dict("source", "evidence", "where"),
        )


def _fill(install: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        install = install.replace(f"{{{name}}}", value)
    return install


def _variant_claims(builds: _Builds, table: FactTable, matched: tuple[str, ...]) -> Iterator[Claim]:
    row = builds.row

    # Claims make releases of a component the variants of another: which release, on what machine, beside which builds.
    def claim(mark: str, variants: list[str], kind: str, component: str, selector: str) -> Claim:
        return Claim(
            id=f"{row.id}#{mark}",
            row=row.id,
            kind=kind,
            when=((name(table.key), " ".join(variants)),),
            component=component,
            selector=selector,
            topic=f"variant-{component}",
            says=_SAYS.get(component, ""),
            decides=builds.decides,
            node=row.node,
            **row.origin.as_dict(),
        )

    for mark, kind, component in (
        ("release", "requires", table.key),
        ("machine", "limits", "machine"),
    ):
        groups: dict[str, list[str]] = {}
        for variant in builds.variants:
            groups.setdefault(getattr(variant, mark), []).append(variant.name)
        for index, (value, names) in enumerate(groups.items()):
            suffix = f".{index + 1}" if len(groups) > 1 else ""
            selector = _exactly([value]) if mark == "release" else value
            yield claim(mark + suffix, names, kind, component, selector)
    every = [variant.name for variant in builds.variants]
    yield claim(
        "accelerator", every, "limits", "accelerator", " ".join(_runs_on(builds.accelerator))
    )
    for other in matched:
        # Whatever its release and channel: builds of one line are made with the same toolkit.
        pattern = f"*+{builds.line}@*"
        yield claim(f"matches-{other}", every, "limits", name(other), pattern)


_SAYS = {
    "machine": "is built for {value}",
    "accelerator": "computes on {value}",
}


def record_published_builds(recorder: Recorder) -> None:
    """Record what follows from all rows together: an installed release is one of its builds; the contents of one
    without builds in the matrix are unknown.
    """
    holding: dict[str, list[Claim]] = {}
    for _, claim in sorted(recorder.layer.claims.items()):
        if (claim.component, claim.kind) == ("arch", "limits"):
            holding.setdefault(claim.when[0][0], []).append(claim)
    for of in recorder.components.values():
        builds = recorder.releases(name(of.name)) if of.variants else []
        if any((build.component, build.version) in recorder.layer.releases for build in builds):
            _record_archs(recorder, holding.get(name(of.name), []), builds)
            for claim in _published_claims(recorder, of.name, builds):
                recorder.claim(claim)


def _record_archs(recorder: Recorder, holding: list[Claim], builds: list[Release]) -> None:
    # The contents of a build may come from another source than its list.
    scale = Scale("names", sort("names", {build.version: build.rank for build in builds}))
    by_name = {build.version: build for build in builds}
    for claim in holding:
        for version in scale.named(scale.select(claim.when[0][1])):
            build = by_name[version]
            if build.attributes["archs"] == tables.UNKNOWN != claim.evidence:
                partly = {"at-least": "true"} if claim.least else {}
                archs = {"archs": str(claim.selector), **partly}
                changed = build.replace(attributes={**build.attributes, **archs})
                recorder.layer.releases[build.component, version] = changed


def _published_claims(recorder: Recorder, of: str, builds: list[Release]) -> Iterator[Claim]:
    first = min(builds, key=lambda build: build.id)
    identity = f"{of}-variants"
    # As derived as what follows from rows can be, and found where the first of them was read.
    origin = pieces.Provenance(source=first.source, evidence="derived", where=first.where)
    about = f"{of}: what is installed is one of the builds that were published"
    recorder.row(
        first.node,
        TableRow(
            id=identity, table=identity, about=about, subject=of, cells=(), **origin.as_dict()
        ),
    )

    def claim(mark: str, releases: list[str], machine: str = "", **fields: Any) -> Claim:
        narrower = (("machine", machine),) if machine else ()
        common = {"kind": "limits", "selector": "*", "topic": "variant", **origin.as_dict()}
        return Claim(
            id=f"{identity}#{mark}",
            row=identity,
            when=((of, _exactly(releases)), ("from", "wheel"), *narrower),
            node=first.node,
            **(common | fields),
        )

    covered = {build.attributes["release"] for build in builds}
    releases = sorted(release.version for release in recorder.releases(of))
    known = [release for release in releases if release in covered]
    unread = [release for release in releases if release not in covered]
    # What a channel that was not read publishes for is no accelerator that a release has no builds for.
    unseen = {
        accelerator: channel
        for channel in recorder.channels.values()
        if of in channel.unread
        for accelerator in channel.lines.values()
    }
    read = {name for build in builds for name in _runs_on(build.attributes["accelerator"], unseen)}
    published = sorted(_releases_by_build(builds, unseen).items())
    alike = _without_builds(published, known, unseen)
    for index, (lacking, releases) in enumerate(sorted(alike.items())):
        condition = (("accelerator", " ".join(sorted(read.difference(lacking)))),)
        mark = f"needs.{index}" if index else "needs"
        needs = claim(mark, releases, kind="needs", component=name(of), alternatives=(name(of),))
        yield needs.replace(when=(*needs.when, *(condition if lacking else ())))
    for index, ((component, selector, machine), releases) in enumerate(published):
        beyond = sorted(unseen.keys() - {*selector.split()}) if component == "accelerator" else []
        yield claim(
            f"{component}.{index + 1}",
            releases,
            machine,
            component=component,
            selector=selector,
            topic=f"published-{component}",
            says="is published for {value}",
            least=bool(beyond),
            note=_unread_note(unseen[accelerator].title for accelerator in beyond),
            rule=ONLY_THESE if ONLY_THESE in recorder.rules else "",
        )
    if unread:
        yield claim("unread", unread, component="accelerator", selector="none", evidence="unknown")


def _unread_note(channels: Iterable[str]) -> str:
    titles = [*dict.fromkeys(channels)]
    return f"{' and '.join(titles)} {'were' if titles[1:] else 'was'} not read" if titles else ""


def _without_builds(
    published: list[tuple[tuple[str, str, str], list[str]]],
    known: list[str],
    unseen: Collection[str],
) -> dict[tuple[str, ...], list[str]]:
    # Releases by those of some accelerators that they have no builds for.
    own: dict[str, set[str]] = {release: set() for release in known}
    for (component, selector, _), releases in published:
        for release in releases if component == "accelerator" else ():
            own[release].update(selector.split())
    alike: dict[tuple[str, ...], list[str]] = {}
    for release, accelerators in own.items():
        alike.setdefault(tuple(sorted({*unseen} - accelerators)), []).append(release)
    return alike


def _releases_by_build(
    builds: list[Release], unseen: Collection[str]
) -> dict[tuple[str, str, str], list[str]]:
    # Releases by the machines they have builds for, and for each machine by what those compute on.
    offered: dict[str, dict[str, set[str]]] = {}
    for build in builds:
        machines = offered.setdefault(build.attributes["release"], {})
        accelerators = machines.setdefault(build.attributes["machine"], set())
        accelerators.update(_runs_on(build.attributes["accelerator"], unseen))
    same: dict[tuple[str, str, str], list[str]] = {}
    for release, by_machine in sorted(offered.items()):
        same.setdefault(("machine", " ".join(sorted(by_machine)), ""), []).append(release)
        for machine, computing in sorted(by_machine.items()):
            key = "accelerator", " ".join(sorted(computing)), machine
            same.setdefault(key, []).append(release)
    return same


def _runs_on(accelerator: str, unseen: Collection[str] = ()) -> tuple[str, ...]:
    # A build for CUDA also runs without a GPU, where what it brings is not used, unless there are others for that.
    return (
        (accelerator, "none") if accelerator == "cuda" and "none" not in unseen else (accelerator,)
    )


def _exactly(releases: list[str]) -> str:
    # A plain `2.6.0` would admit finer releases as well, of which the builds are others.
    return " ".join(f"==={release}" for release in releases)
