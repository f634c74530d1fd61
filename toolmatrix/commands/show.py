"""`toolmatrix show`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.requests import with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, ONLINE
from toolmatrix.documents import Annotated, Count, Evidence, MatrixHead, NotRequired, TypedDict
from toolmatrix.errors import NothingMatched
from toolmatrix.facts import evidence as words
from toolmatrix.report import answer, claims, remarks, terminal, variants
from toolmatrix.request.names import Names
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.api import Matrix
    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import ClaimRecord, ComponentFacts
    from toolmatrix.report.terminal import Terminal


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
    """Show the releases, builds and facts of a component.

    A subject such as `torch==2.7` names some of its releases or builds. The text has the newest releases, and the
    builds of the newest that has some, unless `everything` is asked for. Raises NothingMatched for what no fact knows.
    """
    index = with_online_packages((subject,), {"matrix": matrix}, online=online).index
    names = Names(index)
    # The second of two is the builds that the same word names: `torch==2.7.1+cu128`.
    first, *builds = [
        (ask, names.scale(ask.component).select(ask.selector)) for ask in names.asks(subject)
    ]
    # Before anything is collected: a release that was not out yet is another error than one that nobody knows.
    if at:
        names.known_at(first[0], at)
    wanted = Shown(
        component=first[0].component,
        releases=first[1],
        builds=builds[0][1] if builds else -1,
        at=at,
        everything=everything,
    )
    document = _document(index, wanted)
    if not document["releases"]:
        raise NothingMatched(
            f"the matrix knows no release of {wanted.component}", found=f"`{subject}`"
        )
    return Report(
        words=partial(_text, index, document, everything=everything),
        document=lambda: document,
    )


SCHEMA = "toolmatrix.component/1"
# So many lines of each fit on a screen together.
_RELEASES, _SAID = 8, 12
# And a list of bounds of so many letters in its column.
_WIDE = 36
_VERBS = {
    "requires": "requires",
    "limits": "allows",
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


class Shown(Value):
    """What is to be shown: masks of the releases of a component and of its builds, of which -1 is all."""

    component: str
    releases: int = -1
    builds: int = -1
    at: str = ""
    everything: bool = False


def _document(index: Index, asked: Shown) -> ComponentDocument:
    """The component as JSON values: its releases, the newest first, and builds and facts of those in `focus`."""
    head, part = index.header["components"][asked.component], index.component(asked.component)
    places = [
        place
        for place in reversed(range(len(part.versions)))
        # Bit 0 is that the component is absent: releases begin with bit 1. One without a date counts as out.
        if asked.releases >> place + 1 & 1 and not (asked.at and part.dates[place] > asked.at)
    ]
    name = index.builds_of(asked.component)
    builds = _by_release(index, name, asked)
    # A withdrawn release is no answer to what there is, unless it is all that was asked for.
    usable = [place for place in places if not part.yanked >> place + 1 & 1] or places
    newest = [place for place in usable if builds.get(place)] or usable
    focus = places if asked.everything else newest[:1]
    made: ComponentDocument = {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "component": asked.component,
        "title": head["title"],
        "framework": head["framework"],
        "accelerators": list(head["accelerators"]),
        "known": len(part.versions),
        "releases": [_release(index, part, place, builds) for place in places],
        "focus": [part.versions[place] for place in focus],
        "builds": [
            _build(index, name, build)
            for place in focus
            if place in builds
            for build in _ordered(index, name, builds[place])
        ],
        "says": [
            {"release": part.versions[place], **entry}
            for place in focus
            for entry in _claims_about(index, asked.component, place)
        ],
    }
    if images := _images_of(index, asked.component, [part.versions[place] for place in places]):
        made["images"] = images
    return made


def _by_release(index: Index, name: str, asked: Shown) -> Mapping[int, int]:
    # Every build requires its own release and no other.
    found: dict[int, int] = {}
    for binding in index.component(name).about(asked.component, -1) if name else ():
        if not binding.conditions:
            place = binding.allowed.bit_length() - 2
            found[place] = found.get(place, 0) | binding.mask & asked.builds
    return found


def _release(
    index: Index, part: ComponentFacts, place: int, builds: Mapping[int, int]
) -> ReleaseEntry:
    record = index.release(part.releases[place])
    return {
        "release": part.versions[place],
        "date": part.dates[place],
        "yanked": bool(part.yanked >> place + 1 & 1),
        "builds": builds.get(place, 0).bit_count(),
        "evidence": record.evidence,
        "fact": f"{record.component}=={record.selector}",
    }


def _ordered(index: Index, name: str, mask: int) -> list[int]:
    """The builds of a mask, those of the default channel first, and in each channel the newest line first."""
    part = index.component(name)
    places = [place for place in reversed(range(len(part.versions))) if mask >> place + 1 & 1]

    def channel(place: int) -> tuple[bool, str]:
        own = index.release(part.releases[place]).attributes["channel"]
        return not index.channel(own).default, own

    return sorted(places, key=channel)


def _build(index: Index, name: str, place: int) -> BuildEntry:
    part = index.component(name)
    variant = variants.build(index, name, part.versions[place])
    record = index.release(part.releases[place])
    holds = list(_claims_about(index, name, place))
    return {
        **variants.document(variant),
        "release": variant.release,
        "channel_title": variant.channel_title,
        # That there is a build and what is in it are facts of their own, and the line tells all of them.
        "evidence": words.weakest([record.evidence, *(entry["evidence"] for entry in holds)]),
        "fact": f"{record.component}=={record.selector}",
        "holds": holds,
    }


def _claims_about(index: Index, subject: str, place: int) -> Iterator[ClaimEntry]:
    """What facts say of other components for one release of a subject, as the claims have it."""
    components, part, bit = index.header["components"], index.component(subject), 2 << place
    cites = [binding.cites for binding in part.bindings if binding.mask & bit]
    for group in part.row_groups:
        rows = zip(group.subjects, group.cites, strict=True)
        cites += [number for mask, number in rows if mask & bit]
    seen: dict[str, tuple[ClaimRecord, str]] = {}
    for number in cites:
        for cite in index.cites(number):
            if cite.touches(bit):
                record = index.claim(cite.record)
                # A row says less where a rule widens it than where it speaks itself.
                known = seen.get(record.id, (record, words.UNKNOWN))[1]
                seen[record.id] = record, max(known, cite.evidence, key=words.rank)
    order = {name: at for at, name in enumerate(components)}
    own = components[subject]["variant_of"]
    for record, evidence in sorted(
        seen.values(), key=lambda told: (order.get(told[0].component, -1), told[0].id)
    ):
        about = record.component
        # A need names no version, and what is given no component to look for.
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
    index: Index, held: ComponentDocument, screen: Terminal, *, everything: bool = False
) -> str:
    """The component for people: what fits a screen, and how much more there is."""
    notes = claims.Notes(index)
    parts = [
        _summary(held),
        _releases(held, notes, everything=everything),
        *_builds(index, held, notes, everything=everything),
        _images(held, notes),
        _claims(index, held, notes, everything=everything),
        notes.lines(screen.width),
    ]
    return terminal.blocks(parts)


def _summary(held: ComponentDocument) -> list[str]:
    told = [
        *(["framework"] if held["framework"] else []),
        *(
            [f"computes on {terminal.listing(held['accelerators'])}"]
            if held["accelerators"]
            else []
        ),
        f"{len(held['releases'])} of {terminal.plural(held['known'], 'release')}",
    ]
    builds = sum(release["builds"] for release in held["releases"])
    told += [terminal.plural(builds, "build")] if builds else []
    return [f"{held['component']} ({held['title']}): {', '.join(told)}"]


def _releases(held: ComponentDocument, notes: claims.Notes, *, everything: bool) -> list[str]:
    found = held["releases"]
    shown = found if everything else found[:_RELEASES]
    built = any(release["builds"] for release in found)
    rows = [["release", "date", *(["builds"] if built else []), "evidence"]]
    for release in shown:
        count = [str(release["builds"] or "")] if built else []
        mark = notes.cite([release["fact"]]) + (" yanked" if release["yanked"] else "")
        rows.append(
            [release["release"], release["date"], *count, f"{release['evidence']:8} {mark}"]
        )
    lines = terminal.columns(rows, right=(2,) if built else ())
    if rest := found[len(shown) :]:
        lines.append(f"{len(rest)} more, down to {rest[-1]['release']} (--all)")
    return lines


def _builds(
    index: Index, held: ComponentDocument, notes: claims.Notes, *, everything: bool
) -> Iterator[list[str]]:
    """The builds of each channel under the command that installs them."""
    by_command: dict[tuple[str, str], list[BuildEntry]] = {}
    for build in held["builds"]:
        arguments = index.channel(build["channel"]).install
        command = " ".join(["pip install", *build["requirements"], *arguments])
        # The line stays a word of the command until here, so that the builds of a channel have one in common.
        by_command.setdefault((build["channel_title"], command), []).append(build)
    for (title, command), found in by_command.items():
        told = command.replace("{line}", found[0]["line"] if len(found) == 1 else "LINE")
        rows = [_build_row(build, notes, everything=everything) for build in found]
        yield [f"{title}: {told}", *(f"  {line}" for line in terminal.columns(rows))]


def _build_row(build: BuildEntry, notes: claims.Notes, *, everything: bool) -> list[str]:
    # What it was built with says less than what it requires.
    known = sorted(build["holds"], key=lambda entry: entry["kind"] != "tested")
    holds = {entry["component"]: entry for entry in known}
    inside = [holds.get(name) for name in ("python", build["accelerator"])]
    archs = [*(build["sass"] or ()), *(build["ptx"] or ())]
    code = " ".join(archs) if everything else claims.shortened(" ".join(archs))
    # None is that nobody looked; an empty list, that there is no such code.
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


def _images_of(index: Index, component: str, releases: Sequence[str]) -> list[ImageEntry]:
    return [
        {"release": release, "fact": build.fact, "cells": dict(build.cells)}
        for release in releases
        for build in index.builds(component, release)
    ]


def _images(held: ComponentDocument, notes: claims.Notes) -> list[str]:
    """The images that were really built."""
    rows = [
        [image["release"], *remarks.image_row(image["cells"]), notes.cite([image["fact"]])]
        for image in held.get("images", ())
    ]
    return ["built images", *terminal.columns(rows)] if rows else []


def _claims(
    index: Index, held: ComponentDocument, notes: claims.Notes, *, everything: bool
) -> list[str]:
    components = index.header["components"]
    # What is hidden in answers, and what the lines of builds say already, is left to `--all`.
    told = [
        entry
        for entry in held["says"]
        if everything or not (components[entry["component"]]["hidden"] or held["builds"])
    ]
    by_words: dict[tuple[str, ...], list[ReleaseClaim]] = {}
    for entry in told:
        # Of a single release the title of the block says which it is.
        head = (entry["release"],) if len(held["focus"]) > 1 else ()
        value = claims.shortened(entry["selector"])
        value = value if everything else terminal.cut(value, _WIDE)
        said = _VERBS[entry["kind"]], entry["component"], value, entry["evidence"]
        by_words.setdefault((*head, *said), []).append(entry)
    rows = [
        [
            *words_said,
            notes.cite(dict.fromkeys(entry["fact"] for entry in found)),
            _when(found),
        ]
        for words_said, found in by_words.items()
    ]
    shown = rows if everything else rows[:_SAID]
    if not rows:
        return []
    of = held["focus"][0] if len(held["focus"]) == 1 else "each"
    lines = [f"facts about {of}", *terminal.columns(shown)]
    if rest := len(rows) - len(shown):
        lines.append(f"{rest} more (--all)")
    return lines


def _when(found: Sequence[ReleaseClaim]) -> str:
    """The conditions under which facts say the same; nothing where one of them says it without."""
    # Facts that differ in one condition alone, such as the machine, are told in one breath.
    conditions = [entry["when"] for entry in found]
    names = {name: None for when in conditions for name in when}
    values = {name: dict.fromkeys(when.get(name, "") for when in conditions) for name in names}
    if {} in conditions:
        return ""
    if sum(len(said) > 1 for said in values.values()) <= 1 and all(
        "" not in said for said in values.values()
    ):
        told = [f"{name} {' or '.join(said)}" for name, said in values.items()]
        return f"where {' and '.join(told)}"
    every = [" and ".join(f"{name} {said}" for name, said in when.items()) for when in conditions]
    return f"where {' or '.join(dict.fromkeys(every))}"
