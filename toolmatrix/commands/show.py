"""`toolmatrix show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from toolmatrix.api import Matrix, Report
from toolmatrix.api.requests import with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, ONLINE
from toolmatrix.commands._terms import also, find, report
from toolmatrix.documents import Annotated, Count, Evidence, MatrixHead, NotRequired, TypedDict
from toolmatrix.errors import NothingMatched
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ClaimRecord, ComponentFacts
from toolmatrix.report import answer, claims, remarks, terminal, variants
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.names import Names


@command(
    group="Explore the matrix",
    order=3,
    usage="NAME",
    completer="release",
    formats=PRINTED,
    examples=(
        "toolmatrix show torch",
        "toolmatrix show torch==2.7.1",
        "toolmatrix show cuda==12.4 --all",
        "toolmatrix show ampere",
    ),
)
def show(
    subject: str,
    *,
    everything: bool = ALL,
    online: bool = ONLINE,
    at: str = "",
    matrix: Matrix = None,
) -> Report:
    """Show the releases, builds and facts of a component, or what else a name means.

    A subject such as `torch==2.7` names some of its releases or builds. The text has the newest releases, and the
    builds of the newest that has some, unless `everything` is asked for. Other names are those of GPU generations and
    devices, and of variables, flags and symbols. Raises NothingMatched for what no fact knows.
    """
    opened = with_online_packages((subject,), {"matrix": matrix}, online=online)
    index = opened.index
    names = Names(index)
    if not names.called(names.split(subject)[0].partition("[")[0]) and (
        term := find(index, subject)
    ):
        return report(index, term, opened, text=subject, everything=everything)
    # The second of two is the build that the same text names: `torch==2.7.1+cu128`.
    first, *builds = [
        (ask, names.scale(ask.component).select(ask.selector)) for ask in names.asks(subject)
    ]
    # Check first: a release after `--at` is another error than an unknown one.
    if at:
        names.known_at(first[0], at)
    component, mask = first[0].component, first[1]
    document = _document(
        index, component, mask, builds[0][1] if builds else -1, at=at, everything=everything
    )
    if not document["releases"]:
        raise NothingMatched(f"the matrix knows no release of {component}", found=f"`{subject}`")
    return Report(
        words=partial(_text, index, document, everything=everything),
        document=lambda: document,
        hint=also(index, subject),
    )


SCHEMA = "toolmatrix.component/1"
# How many lines of each fit on a screen together.
_RELEASES, _FACTS = 8, 12
# Characters of a list of bounds.
_WIDE = 36
# Commands that install builds of one release, where each has its own.
_COMMANDS = 8
_VERBS = {
    "requires": "requires",
    "limits": "allows",
    "fails": "fails with",
    "offers": "offers",
    "carries": "carries",
    "tested": "tested with",
}


class ReleaseEntry(TypedDict):
    """A release of a component."""

    release: str
    date: str
    yanked: bool
    builds: Count
    evidence: Evidence
    fact: str


class ClaimEntry(TypedDict):
    """What a fact says of another component."""

    component: str
    kind: Annotated[str, _VERBS]
    selector: str
    when: dict[str, str]
    evidence: Evidence
    fact: str


class BuildEntry(variants.BuildForm):
    """A build, and what it is bound to."""

    release: str
    channel_title: str
    evidence: Evidence
    fact: str
    holds: list[ClaimEntry]


class ReleaseClaim(ClaimEntry):
    """What a fact says of another component for a release."""

    release: str


class ImageEntry(TypedDict):
    """An image that was built, or could not be."""

    release: str
    fact: str
    cells: dict[str, str]


class ComponentDocument(TypedDict):
    """What `toolmatrix show --json` prints: the releases of a component, the builds of the newest or of all, and what
    facts say of them.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    component: str
    title: str
    framework: bool
    accelerators: list[str]
    known: Count
    releases: list[ReleaseEntry]
    focus: list[str]
    builds: list[BuildEntry]
    says: list[ReleaseClaim]
    images: NotRequired[list[ImageEntry]]
    """Images of these releases that were built, or could not be for want of an address; `cells` is the row as it
    stands in its file."""


def _document(
    index: Index, component: str, mask: int, builds_mask: int, *, at: str, everything: bool
) -> ComponentDocument:
    """A component as JSON values: releases in a mask, the newest first, with builds and facts of those in `focus`."""
    head, facts = index.header["components"][component], index.component(component)
    positions = [
        position
        for position in reversed(range(len(facts.versions)))
        # Bit 0 is that the component is absent: releases begin with bit 1. One without a date counts as out.
        if mask >> position + 1 & 1 and not (at and facts.dates[position] > at)
    ]
    name = index.builds_of(component)
    builds = _by_release(index, name, component, builds_mask)
    # Skip withdrawn releases, unless all are.
    usable = [
        position for position in positions if not facts.yanked >> position + 1 & 1
    ] or positions
    newest = [position for position in usable if builds.get(position)] or usable
    focus = positions if everything else newest[:1]
    document: ComponentDocument = {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "component": component,
        "title": head["title"],
        "framework": head["framework"],
        "accelerators": list(head["accelerators"]),
        "known": len(facts.versions),
        "releases": [_release(index, facts, position, builds) for position in positions],
        "focus": [facts.versions[position] for position in focus],
        "builds": [
            _build(index, name, build)
            for position in focus
            if position in builds
            for build in _ordered(index, name, builds[position])
        ],
        "says": [
            {"release": facts.versions[position], **entry}
            for position in focus
            for entry in _claims_about(index, component, position)
        ],
    }
    images: list[ImageEntry] = [
        {"release": facts.versions[position], "fact": build.fact, "cells": dict(build.cells)}
        for position in positions
        for build in index.builds(component, facts.versions[position])
    ]
    if images:
        document["images"] = images
    return document


def _by_release(index: Index, name: str, component: str, mask: int) -> Mapping[int, int]:
    # Every build requires its own release and no other.
    by_release: dict[int, int] = {}
    for binding in index.component(name).about(component, -1) if name else ():
        if not binding.conditions:
            position = binding.allowed.bit_length() - 2
            by_release[position] = by_release.get(position, 0) | binding.mask & mask
    return by_release


def _release(
    index: Index, facts: ComponentFacts, position: int, builds: Mapping[int, int]
) -> ReleaseEntry:
    record = index.release(facts.releases[position])
    return {
        "release": facts.versions[position],
        "date": facts.dates[position],
        "yanked": bool(facts.yanked >> position + 1 & 1),
        "builds": builds.get(position, 0).bit_count(),
        "evidence": record.evidence,
        "fact": f"{record.component}=={record.selector}",
    }


def _ordered(index: Index, name: str, mask: int) -> list[int]:
    """The builds of a mask, those of the default channel first, and in each channel the newest line first."""
    facts = index.component(name)
    positions = [
        position for position in reversed(range(len(facts.versions))) if mask >> position + 1 & 1
    ]

    def channel(position: int) -> tuple[bool, str]:
        own = index.release(facts.releases[position]).attributes["channel"]
        return not index.channel(own).default, own

    return sorted(positions, key=channel)


def _build(index: Index, name: str, position: int) -> BuildEntry:
    facts = index.component(name)
    variant = variants.build(index, name, facts.versions[position])
    record = index.release(facts.releases[position])
    holds = list(_claims_about(index, name, position))
    return {
        **variants.document(variant),
        "release": variant.release,
        "channel_title": variant.channel_title,
        # The existence of a build and its content are separate facts; its evidence is the weakest.
        "evidence": words.weakest([record.evidence, *(entry["evidence"] for entry in holds)]),
        "fact": f"{record.component}=={record.selector}",
        "holds": holds,
    }


def _claims_about(index: Index, subject: str, position: int) -> Iterator[ClaimEntry]:
    """The claims about other components for one release of a subject."""
    components, facts, bit = index.header["components"], index.component(subject), 2 << position
    cites = [binding.cites for binding in facts.bindings if binding.mask & bit]
    for group in facts.row_groups:
        rows = zip(group.subjects, group.cites, strict=True)
        cites += [number for mask, number in rows if mask & bit]
    by_id: dict[str, tuple[ClaimRecord, str]] = {}
    for number in cites:
        for cite in index.cites(number):
            if cite.touches(bit):
                record = index.claim(cite.record)
                # A row has weaker evidence where a rule widens it.
                known = by_id.get(record.id, (record, words.UNKNOWN))[1]
                by_id[record.id] = record, max(known, cite.evidence, key=words.rank)
    order = {name: at for at, name in enumerate(components)}
    own = components[subject]["variant_of"]
    for record, evidence in sorted(
        by_id.values(), key=lambda pair: (order.get(pair[0].component, -1), pair[0].id)
    ):
        about = record.component
        # A need has no version, and a given component is not one to install.
        if record.kind in _VERBS and about != own and not components[about]["given"]:
            yield {
                "component": about,
                "kind": record.kind,
                "selector": record.selector,
                "when": dict(record.conditions),
                "evidence": evidence,
                "fact": record.id,
            }


def _text(
    index: Index, document: ComponentDocument, screen: Terminal, *, everything: bool = False
) -> str:
    """The component for people: what fits a screen, and how much more there is."""
    notes = claims.Notes(index)
    sections = [
        [*_summary(document), *_independent(index, document)],
        _releases(document, notes, everything=everything),
        *_builds(index, document, notes, everything=everything),
        _images(document, notes),
        _claims(index, document, notes, everything=everything),
        notes.lines(screen.width),
    ]
    return terminal.blocks(sections)


def _summary(document: ComponentDocument) -> list[str]:
    releases = document["releases"]
    details = ["framework"] if document["framework"] else []
    if document["accelerators"]:
        details.append(f"computes on {terminal.listing(document['accelerators'])}")
    details.append(f"{len(releases)} of {terminal.plural(document['known'], 'release')}")
    if builds := sum(release["builds"] for release in releases):
        details.append(terminal.plural(builds, "build"))
    return [f"{document['component']} ({document['title']}): {', '.join(details)}"]


def _independent(index: Index, document: ComponentDocument) -> list[str]:
    """What was read of a package of Python alone, and which components its newest release names."""
    name = document["component"]
    if not index.is_independent(name):
        return []
    named = dict.fromkeys(
        entry["component"] for entry in document["says"] if entry["component"] != "python"
    )
    count = terminal.plural(document["known"], "release")
    says = f"names {terminal.listing([*named])}" if named else "names no component of the matrix"
    of = document["focus"][0] if len(document["focus"]) == 1 else "each"
    return [f"independent: METADATA of {count} read; {of} {says}"]


def _releases(document: ComponentDocument, notes: claims.Notes, *, everything: bool) -> list[str]:
    releases = document["releases"]
    visible = releases if everything else releases[:_RELEASES]
    built = any(release["builds"] for release in releases)
    rows = [["release", "date", *(["builds"] if built else []), "evidence"]]
    for release in visible:
        count = [str(release["builds"] or "")] if built else []
        mark = notes.cite([release["fact"]]) + (" yanked" if release["yanked"] else "")
        rows.append(
            [release["release"], release["date"], *count, f"{release['evidence']:8} {mark}"]
        )
    lines = terminal.columns(rows, right=(2,) if built else ())
    if rest := releases[len(visible) :]:
        lines.append(f"{len(rest)} more, down to {rest[-1]['release']} (--all)")
    return lines


def _builds(
    index: Index, document: ComponentDocument, notes: claims.Notes, *, everything: bool
) -> Iterator[list[str]]:
    """The builds of each channel under the command that installs them."""
    by_command: dict[tuple[str, str], list[BuildEntry]] = {}
    for build in document["builds"]:
        arguments = index.channel(build["channel"]).install
        command = " ".join(["pip install", *build["requirements"], *arguments])
        # `{line}` is filled in only here, so that the builds of a channel share a command.
        by_command.setdefault((build["channel_title"], command), []).append(build)
    named = len(by_command) if everything else _COMMANDS
    for (title, command), builds in [*by_command.items()][:named]:
        full_command = command.replace("{line}", builds[0]["line"] if len(builds) == 1 else "LINE")
        rows = [_build_row(build, notes, everything=everything) for build in builds]
        yield [f"{title}: {full_command}", *(f"  {line}" for line in terminal.columns(rows))]
    if (rest := len(by_command) - named) > 0:
        yield [f"{rest} more commands, each for other builds (--all)"]


def _build_row(build: BuildEntry, notes: claims.Notes, *, everything: bool) -> list[str]:
    # Requirements matter more than what it was built with.
    known = sorted(build["holds"], key=lambda entry: entry["kind"] != "tested")
    holds = {entry["component"]: entry for entry in known}
    inside = [holds.get(name) for name in ("python", build["accelerator"])]
    archs = [*(build["sass"] or ()), *(build["ptx"] or ())]
    code = " ".join(archs) if everything else claims.shortened(" ".join(archs))
    # None means unknown; an empty list means no such code.
    if build["sass"] is None:
        code = "codegen archs unknown"
    marks = notes.cite(dict.fromkeys([build["fact"], *(entry["fact"] for entry in build["holds"])]))
    return [
        build["line"],
        build["machine"],
        *(f"{entry['component']} {entry['selector']}" if entry else "" for entry in inside),
        code,
        build["evidence"],
        marks,
    ]


def _images(document: ComponentDocument, notes: claims.Notes) -> list[str]:
    """The images that were actually built."""
    rows = [
        [image["release"], *remarks.image_row(image["cells"]), notes.cite([image["fact"]])]
        for image in document.get("images", ())
    ]
    return ["built images", *terminal.columns(rows)] if rows else []


def _claims(
    index: Index, document: ComponentDocument, notes: claims.Notes, *, everything: bool
) -> list[str]:
    components = index.header["components"]
    # Hidden components, and facts that the lines of builds show, need `--all`.
    entries = [
        entry
        for entry in document["says"]
        if everything or not (components[entry["component"]]["hidden"] or document["builds"])
    ]
    by_words: dict[tuple[str, ...], list[ReleaseClaim]] = {}
    for entry in entries:
        # The title of the block names a single release.
        head = (entry["release"],) if len(document["focus"]) > 1 else ()
        value = claims.shortened(entry["selector"])
        value = value if everything else terminal.cut(value, _WIDE)
        cells = _VERBS[entry["kind"]], entry["component"], value, entry["evidence"]
        by_words.setdefault((*head, *cells), []).append(entry)
    rows = [
        [
            *cells,
            notes.cite(dict.fromkeys(entry["fact"] for entry in group)),
            _when(group),
        ]
        for cells, group in by_words.items()
    ]
    visible = rows if everything else rows[:_FACTS]
    if not rows:
        return []
    of = document["focus"][0] if len(document["focus"]) == 1 else "each"
    lines = [f"facts about {of}", *terminal.columns(visible)]
    if rest := len(rows) - len(visible):
        lines.append(f"{rest} more (--all)")
    return lines


def _when(group: Sequence[ReleaseClaim]) -> str:
    """The conditions of facts with the same statement; empty if one of them has none."""
    # Facts that differ in one condition, such as the machine, share a line.
    conditions = [entry["when"] for entry in group]
    names = {name: None for when in conditions for name in when}
    values = {name: dict.fromkeys(when.get(name, "") for when in conditions) for name in names}
    if {} in conditions:
        return ""
    if sum(len(alternatives) > 1 for alternatives in values.values()) <= 1 and all(
        "" not in alternatives for alternatives in values.values()
    ):
        clauses = [f"{name} {' or '.join(alternatives)}" for name, alternatives in values.items()]
        return f"where {' and '.join(clauses)}"
    every = [" and ".join(f"{name} {value}" for name, value in when.items()) for when in conditions]
    return f"where {' or '.join(dict.fromkeys(every))}"
