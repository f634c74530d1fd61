"""Reads channels and tables of variants: what was published of a release, where, for which toolkit and machine.

A row of such a table names releases, a line, a channel and machines. Each release on each machine is one variant, a
release of the component `NAME-variant`; what the row says besides is said of these. docs/facts.md tells how to add one.
Raises MatrixError with the position of the row or key at fault.
"""

from __future__ import annotations

from toolmatrix.facts import pieces, tables
from toolmatrix.facts.model import Channel, Claim, Component, Release, TableRow
from toolmatrix.facts.versions import Scale, sort
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.facts.pieces import Provenance, Recorder
    from toolmatrix.facts.tables import FactTable
    from toolmatrix.facts.yamlfile import YamlNode

ONLY_THESE = "no-other-build"
"""The rule by which what no known channel publishes does not exist."""
KINDS = ("index", "feed", "releases", "images")
TABLE = (*tables.TABLE, "install", "matches")
_CHANNEL = ("id", "title", "kind", "source", "evidence", "where", "default", "install", "lines")
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
    fields = node.only(
        "a channel", _CHANNEL, ("id", "title", "kind", "source", "evidence", "where", "lines")
    )
    identity = recorder.group(fields)
    origin = pieces.Provenance.read(fields, recorder.known)
    lines: dict[str, str] = {}
    for accelerator, part in fields["lines"].mapping("lines").items():
        for item in part.sequence("lines of an accelerator"):
            lines[item.string("a line")] = accelerator
    held = fields.get("install")
    recorder.layer.channels[identity] = Channel(
        name=identity,
        title=fields["title"].string("title"),
        kind=fields["kind"].choice("kind", KINDS),
        source=origin.source,
        evidence=origin.evidence,
        where=origin.where,
        default=pieces.flag(fields, "default"),
        install=tuple(item.string("an argument") for item in held.sequence("install"))
        if held
        else (),
        lines=lines,
    )


class _Variant(Value):
    """One build: its name among the releases of the variant component, and what tells it from others."""

    name: str
    release: str
    machine: str


class _BuildRow(Value):
    """A row of builds: the parts that all its variants share."""

    id: str
    line: str
    channel: Channel
    accelerator: str
    variants: tuple[_Variant, ...]
    origin: Provenance
    decides: bool
    node: YamlNode


def table(recorder: Recorder, node: YamlNode) -> None:
    """Read a table of variants into releases of the variant component and what is said of them."""
    required = ("id", "source", "evidence", "key", "columns", "rows")
    fields = node.only("a table", TABLE, required)
    common = tables.head(recorder, fields, (*tables.ROW, *_OWN))
    if not recorder.components[common.key].variants:
        fields["key"].fail(
            f"`{common.key}` has no variants",
            expected=f"`variants: true` where the component `{common.key}` stands",
            help="a table of variants is about a component that is published in several builds",
        )
    of = recorder.components[common.key]
    released = {release.version: 0 for release in recorder.releases(of.name)}
    scale = Scale(of.scheme, sort(of.scheme, released))
    usual = pieces.text(fields, "install", f"{of.name}=={{release}}")
    matched = tuple(
        pieces.known_component(part, recorder.components).name
        for part in (fields["matches"].several() if "matches" in fields else ())
    )
    # A build beside another one runs by archs of its own.
    common = common.replace(by_device=bool(matched))
    for part in fields["rows"].sequence("rows"):
        row = _row(recorder, part, common, scale, usual)
        for claim in _belongs(row, common, matched):
            recorder.claim(claim)


def _row(
    recorder: Recorder, node: YamlNode, table: FactTable, scale: Scale, usual: str
) -> _BuildRow:
    fields = node.only(
        f"a row of `{table.id}`",
        (table.key, *table.columns, *tables.ROW, *_OWN),
        (table.key, "line", "channel", "machine"),
    )
    subject = pieces.selector(recorder.components[table.key], fields[table.key])
    releases = scale.mask(scale.parse(subject))
    if not releases:
        fields[table.key].fail(
            f"a row of `{table.id}` names a version of {table.key} that nobody released",
            expected=f"known releases of {table.key}",
        )
    where = _channel(recorder, fields)
    line = _line(fields, where)
    machines = fields["machine"].string("machine").split()
    abi = pieces.text(fields, "abi")
    found = tuple(
        _Variant(
            name=f"{release}+{line}@{where.name}/{machine}" + (f"/{abi}" if abi else ""),
            release=release,
            machine=machine,
        )
        for release in scale.named(releases)
        for machine in machines
    )
    printed = f"{subject}+{line}@{where.name}/{' '.join(machines)}" + (f"/{abi}" if abi else "")
    identity = pieces.identity(fields, f"{table.id}/{printed}")
    origin = tables.printed(recorder, node, fields, table, identity, printed)
    row = _BuildRow(
        id=identity,
        line=line,
        channel=where,
        accelerator=where.lines[line],
        variants=found,
        origin=origin,
        decides=pieces.decides(fields),
        node=node,
    )
    _check_archs(fields, table, row)
    _release(recorder, fields, table, row, pieces.text(fields, "install", usual), abi)
    names = " ".join(variant.name for variant in found)
    tables.claims(recorder, fields, table, (name(table.key), names), identity, origin)
    return row


def _channel(recorder: Recorder, fields: Mapping[str, YamlNode]) -> Channel:
    word = fields["channel"].string("channel")
    known = recorder.channels
    if word not in known:
        fields["channel"].fail(
            "no such channel", expected=pieces.nearest(word, known, "a channel under `channels:`")
        )
    return known[word]


def _line(fields: Mapping[str, YamlNode], channel: Channel) -> str:
    line = fields["line"].string("line")
    if line not in channel.lines:
        fields["line"].fail(
            f"the channel `{channel.name}` carries no such line",
            expected=pieces.nearest(line, channel.lines, "one of " + ", ".join(channel.lines)),
            help="correct it, or add the line to the channel with its source",
        )
    return line


def _check_archs(fields: Mapping[str, YamlNode], table: FactTable, row: _BuildRow) -> None:
    """Check that a build for an accelerator says what it runs on, be it that this is unknown: people ask that first."""
    told = any(
        meaning.component == "arch"
        for column, meanings in table.columns.items()
        for meaning in meanings
        if column in fields
    )
    if row.accelerator != "none" and not told:
        row.node.fail(
            f"a row of `{table.id}` does not say which codegen archs its build holds",
            expected="a cell of a column about `arch`: their names, or `unknown`",
            found=f"none, for the line {row.line}",
        )


def _release(
    recorder: Recorder,
    fields: Mapping[str, YamlNode],
    table: FactTable,
    row: _BuildRow,
    install: str,
    abi: str,
) -> None:
    """Each variant as a release; the default channel is preferred, then the newest line."""
    lines = [line for line, held in row.channel.lines.items() if held == row.accelerator]
    rank = _ABOVE_LINES * row.channel.default + lines.index(row.line)
    attributes = tables.attributes(fields, table) | {"archs": _held(fields, table)}
    of = recorder.components[name(table.key)]
    for variant in row.variants:
        told = {
            "release": variant.release,
            "line": row.line,
            "channel": row.channel.name,
            "machine": variant.machine,
            "accelerator": row.accelerator,
            "install": install.replace("{release}", variant.release),
        } | ({"abi": abi} if abi else {})
        if (of.name, variant.name) in recorder.layer.releases:
            row.node.fail(
                "a variant stands twice",
                expected="each release, line, channel and machine once",
                found=f"`{variant.name}`",
                help="join the two rows, or tell the builds apart by `abi:`",
            )
        recorder.offer(
            Release(
                component=of.name,
                version=variant.name,
                id=row.id,
                source=row.origin.source,
                evidence=row.origin.evidence,
                where=row.origin.where,
                rank=rank,
                attributes=attributes | told,
                node=row.node,
            )
        )


def _held(fields: Mapping[str, YamlNode], table: FactTable) -> str:
    """The codegen archs that a build holds, as its row names them."""
    for column, meanings in table.columns.items():
        if column in fields and any(meaning.component == "arch" for meaning in meanings):
            node = fields[column]
            return pieces.printed(node.fields["is"] if node.fields else node)
    return ""


def _belongs(row: _BuildRow, table: FactTable, matched: tuple[str, ...]) -> Iterator[Claim]:
    """The claims that make variants: release, machine, accelerator, that they are installed, what they go with."""
    base = Claim(
        id="",
        row=row.id,
        kind="limits",
        when=(),
        component="",
        selector="",
        topic="",
        evidence=row.origin.evidence,
        source=row.origin.source,
        where=row.origin.where,
        note=row.origin.note,
        stands_for=(),
        decides=row.decides,
        node=row.node,
    )

    def claim(mark: str, variants: list[str], kind: str, component: str, selector: str) -> Claim:
        return base.replace(
            id=f"{row.id}#{mark}",
            kind=kind,
            when=((name(table.key), " ".join(variants)),),
            component=component,
            selector=selector,
            topic=f"variant-{component}",
            says=_SAYS.get(component, ""),
        )

    releases = dict.fromkeys(variant.release for variant in row.variants)
    for place, release in enumerate(releases):
        mine = [variant.name for variant in row.variants if variant.release == release]
        mark = "release" + (f".{place + 1}" if len(releases) > 1 else "")
        yield claim(mark, mine, "requires", table.key, f"==={release}")
    machines = dict.fromkeys(variant.machine for variant in row.variants)
    for place, machine in enumerate(machines):
        mine = [variant.name for variant in row.variants if variant.machine == machine]
        mark = "machine" + (f".{place + 1}" if len(machines) > 1 else "")
        yield claim(mark, mine, "limits", "machine", machine)
    every = [variant.name for variant in row.variants]
    yield claim("accelerator", every, "limits", "accelerator", _computing({row.accelerator}))
    for other in matched:
        pattern = f"*+{row.line}@*"
        yield claim(f"matches-{other}", every, "limits", name(other), pattern)


_SAYS = {
    "machine": "is built for {value}",
    "accelerator": "computes on {value}",
}


def silence(recorder: Recorder) -> None:
    """Record what follows from all rows together: an installed release is one of its builds; of one without builds
    in the matrix nobody knows what is inside.
    """
    for of in recorder.components.values():
        builds = recorder.releases(name(of.name)) if of.variants else []
        if any((build.component, build.version) in recorder.layer.releases for build in builds):
            _needed(recorder, of.name, builds)


def _needed(recorder: Recorder, of: str, builds: list[Release]) -> None:
    first = min(builds, key=lambda build: build.id)
    identity = f"{of}-variants"
    base = Claim(
        id="",
        row=identity,
        kind="limits",
        when=(),
        component="",
        selector="*",
        topic="variant",
        evidence="derived",
        source=first.source,
        where=first.where,
        rule=ONLY_THESE if ONLY_THESE in recorder.rules else "",
        node=first.node,
    )
    recorder.row(
        first.node,
        TableRow(
            id=identity,
            table=identity,
            about=f"{of}: what is installed is one of the builds that were published",
            subject=of,
            cells=(),
            source=first.source,
            evidence="derived",
            where=first.where,
            note="",
        ),
    )
    covered = {build.attributes["release"] for build in builds}
    releases = sorted(release.version for release in recorder.releases(of))
    known = [release for release in releases if release in covered]
    unread = [release for release in releases if release not in covered]
    subject = ((of, _alone(known)), ("from", "wheel"))
    needs = base.replace(id=f"{identity}#needs", when=subject, kind="needs", rule="")
    recorder.claim(needs.replace(component=name(of), alternatives=(name(of),)))
    for claim in _published(base, of, builds):
        recorder.claim(claim)
    if unread:
        recorder.claim(
            base.replace(
                id=f"{identity}#unread",
                when=((of, _alone(unread)), ("from", "wheel")),
                component="accelerator",
                selector="none",
                evidence="unknown",
                rule="",
            )
        )


def _published(base: Claim, of: str, builds: list[Release]) -> Iterator[Claim]:
    """For which machines a release has builds, and for each machine what they compute on."""
    offered: dict[str, dict[str, set[str]]] = {}
    for build in builds:
        told = build.attributes
        by_machine = offered.setdefault(told["release"], {})
        by_machine.setdefault(told["machine"], set()).add(told["accelerator"])
    same: dict[tuple[str, str, str], list[str]] = {}
    for release, machines in sorted(offered.items()):
        same.setdefault(("machine", " ".join(sorted(machines)), ""), []).append(release)
        for machine, accelerators in sorted(machines.items()):
            key = "accelerator", _computing(accelerators), machine
            same.setdefault(key, []).append(release)
    for place, ((component, selector, machine), releases) in enumerate(sorted(same.items())):
        narrower = (("machine", machine),) if machine else ()
        yield base.replace(
            id=f"{base.row}#{component}.{place + 1}",
            when=((of, _alone(releases)), ("from", "wheel"), *narrower),
            component=component,
            selector=selector,
            topic=f"published-{component}",
            says="is published for {value}",
        )


def _computing(accelerators: set[str]) -> str:
    """A selector of what builds compute on. One for CUDA also runs without one; what it brings is then not used."""
    return " ".join(sorted(accelerators | ({"none"} if "cuda" in accelerators else set())))


def _alone(releases: list[str]) -> str:
    """A selector of these releases and none that is finer."""
    return " ".join(f"==={release}" for release in releases)
