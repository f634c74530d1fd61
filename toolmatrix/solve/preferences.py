"""Preferences beside tested rows: the build that fits what was asked, and releases of the framework's own time.

They are supports like rows. Above all rows stand what a lock holds and what a policy asks for, then, among the builds
of a release, machine code for every device asked for (before code that the driver compiles) and a build for the
accelerator alone; beside a build that brings its runtime, an image without one. Below all rows, by the rule
`series-of-its-time`, stand releases whose series was out when the framework was.
"""

from __future__ import annotations

from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve import anchors
from toolmatrix.solve.engine import Support
from toolmatrix.solve.flags import PTX
from toolmatrix.solve.parts import EVIDENCE, SEVERAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import ComponentFacts
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import Variable

    Joined = dict[tuple[str, str], list[tuple[int, int]]]
    """By target and wanted component its releases that are joined with so many anchors at least, as masks."""

RULE = "series-of-its-time"
_NATIVE, _FOR_IT_ALONE, _PLAIN = 6, 5, 4
"""Above what any row weighs, and below what a lock or a policy does: see `EVIDENCE`."""
_ANCHOR, _BY_THEN, _A_YEAR_LATER = 3, 2, 1
"""Below what any row weighs, also for as many anchors as count (`anchors.MOST`)."""


class Fallback(Support):
    """A support that counts where no row speaks."""

    __slots__ = ()
    partial = True


class Supports:
    """The supports of an assembly, made when the search first ranks something."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly

    def __iter__(self) -> Iterator[Support]:
        assembly = self.assembly
        yield from kept_releases(assembly)
        yield from builds(assembly)
        # Without rows the newest release ranks first by itself.
        if assembly.request.prefer != "newest":
            for target in assembly.request.targets:
                yield from assembly.support_groups(target)
            joined: Joined = {}
            for target in assembly.request.targets:
                beside = anchors.Anchors(assembly, target)
                for name in assembly.request.wanted:
                    joined[target, name] = list(beside.ranked(name))
            yield from with_anchors(assembly, joined)
            yield from of_its_time(assembly, joined)
            yield from unneeded(assembly)


def kept_releases(assembly: Assembly) -> Iterator[Support]:
    """The releases that a lock holds and a policy prefers, anchored on the target."""
    request = assembly.request
    wanted = [(*part, 0) for part in request.keep]
    for target, component, releases in request.policies:
        wanted += [(target, component, release, -place) for place, release in enumerate(releases)]
    most = (len(assembly.variables) + 1) * EVIDENCE + EVIDENCE
    for target, component, version, less in wanted:
        variable = assembly.pick(target, component) if target in request.targets else None
        anchor = assembly.pick(target, "target")
        # A lock may have been made with files of facts that are not there now.
        known = component in assembly.header["components"]
        mask = assembly.scale(component).bit(version) if known else 0
        if variable is not None and anchor is not None and mask and variable is not anchor:
            yield _support(anchor, variable, mask, most + less)


def unneeded(assembly: Assembly) -> Iterator[Support]:
    """The absence of what only rows about other things name: what was tested together may be there for another reason.

    What was asked for was tested with counts as needed, and so does each of several of which one is needed.
    """
    above = (len(assembly.variables) + 1) * EVIDENCE + _PLAIN
    asked = {name for _, name in assembly.asked}
    kept = asked.union(SEVERAL)
    for leading in assembly.request.leading:
        for rows in assembly.component(leading).row_groups:
            kept.update(rows.components)
    for _, name in assembly.by_name:
        for group in assembly.component(name).binding_groups:
            if len(group.alternatives) > 1 and asked.isdisjoint(group.alternatives):
                kept.update(group.alternatives)
    for target, name in assembly.by_name:
        anchor = assembly.pick(target, "target")
        if anchor is not None and name not in kept:
            yield _support(anchor, assembly.variable(target, name), 1, above)


def with_anchors(assembly: Assembly, joined: Joined) -> Iterator[Support]:
    """The releases of what is wanted that sources join with what the request names beside it."""
    for (target, name), releases in joined.items():
        anchor, variable = assembly.pick(target, "target"), assembly.pick(target, name)
        if anchor is not None and variable is not None:
            for mask, count in releases:
                yield _support(anchor, variable, mask, count * _ANCHOR)


def builds(assembly: Assembly) -> Iterator[Support]:
    """The builds of a release that fit best."""
    above = (len(assembly.variables) + 1) * EVIDENCE
    for target, name in assembly.by_name:
        if assembly.header["components"][name]["variant_of"]:
            variable = assembly.variable(target, name)
            yield from _native(assembly, target, variable, above + _NATIVE)
            yield from _for_it_alone(assembly, target, variable, above + _FOR_IT_ALONE)
            yield from _plain(assembly, target, variable, above + _PLAIN)


def _plain(assembly: Assembly, target: str, variable: Variable, weight: int) -> Iterator[Support]:
    # A build that brings its runtime needs no image that carries one once more.
    components = assembly.header["components"]
    brings = assembly.component(variable.component).brings
    for name, other in assembly.parts(target).items() if brings else ():
        part = assembly.component(name)
        if any(group.carried for group in part.row_groups):
            plain = (2 << other.count) - 2
            for group in part.binding_groups:
                if group.kind == "requires" and components[group.component]["accelerators"]:
                    for mask in group.masks:
                        plain &= ~mask
            yield _support(variable, other, plain, weight, anchor_mask=brings)


def _native(assembly: Assembly, target: str, variable: Variable, weight: int) -> Iterator[Support]:
    devices = list(assembly.named(target, "device"))
    if not devices:
        return
    # PTX runs as well, but the driver compiles it when it is first loaded.
    names = assembly.component("arch").versions
    machine_code = sum(2 << place for place, name in enumerate(names) if not name.startswith(PTX))
    native = (2 << variable.count) - 2
    for _, name in devices:
        runs = limits(assembly.index, "device", "arch", assembly.scale("device").bit(name))
        holding = 0
        for when, allowed in limiting(assembly.index, variable.component, "arch"):
            if allowed & runs & machine_code:
                holding |= when
        native &= holding
    # Any of the devices would do: the support holds whatever they are.
    anchor = assembly.instance(target, "device", devices[-1][0])
    yield _support(anchor, variable, native, weight)


def _for_it_alone(
    assembly: Assembly, target: str, variable: Variable, weight: int
) -> Iterator[Support]:
    anchor = assembly.pick(target, "accelerator")
    if anchor is None:
        return
    asked = assembly.remaining[target]["accelerator"]
    alone = 0
    for when, allowed in limiting(assembly.index, variable.component, "accelerator"):
        # A build that can do more than is used, such as one for CUDA where none was asked for, is larger for nothing.
        if allowed & ~1 == asked & (2 << anchor.count) - 2:
            alone |= when
    yield _support(anchor, variable, alone, weight)


def limiting(index: Index, subject: str, about: str) -> Iterator[tuple[int, int]]:
    """What facts limit a component to, by the releases of a subject for which they do."""
    for group in index.component(subject).binding_groups:
        if group.kind == "limits" and group.component == about:
            for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                # Of what nobody read nothing is admitted but absence; of what was read in part, what is known.
                if group.evidence != UNKNOWN or allowed & ~1:
                    yield mask, allowed


def limits(index: Index, subject: str, about: str, bit: int) -> int:
    """The releases that facts limit a component to for one release of a subject, as a mask."""
    found = -1
    for when, allowed in limiting(index, subject, about):
        if when & bit:
            found &= allowed
    return found


def of_its_time(assembly: Assembly, joined: Joined) -> Iterator[Support]:
    """Of the packages that come with a framework, those whose series was out by its release, or within a year of it.

    Among releases that are joined with as many anchors these come first as well.
    """
    components = assembly.header["components"]
    if RULE not in assembly.header["rules"]:
        return
    for target in assembly.request.targets:
        parts = assembly.parts(target)
        first = _leading(assembly)
        if first not in parts:
            continue
        days: dict[str, int] = {}
        left = assembly.remaining[target][first]
        for place, day in enumerate(assembly.component(first).dates):
            if day and left & 2 << place:
                days[day] = days.get(day, 0) | 2 << place
        by_then = sorted(days.items())
        limits = (
            (_BY_THEN, by_then),
            (_A_YEAR_LATER, [(_a_year_later(day), mask) for day, mask in by_then]),
        )
        for name, variable in parts.items():
            part = components[name]
            if variable.number > parts[first].number and part["scheme"] == "pep440":
                facts = assembly.component(name)
                for weight, releases in limits:
                    for out, anchor_mask in _out_by(facts, releases):
                        # What nothing needs stays away.
                        yield _support(
                            parts[first], variable, out | 1, weight, Fallback, anchor_mask
                        )
                        for together, count in joined.get((target, name), ()):
                            both, worth = (out | 1) & together, count * _ANCHOR + weight
                            yield _support(
                                parts[first], variable, both, worth, anchor_mask=anchor_mask
                            )


def _out_by(facts: ComponentFacts, days: list[tuple[str, int]]) -> Iterator[tuple[int, int]]:
    """The releases of a component whose series was out by some of the days, each with what these days stand for.

    The days are sorted; those by which the same series were out come as one.
    """
    place, anchor_mask = 0, 0
    for day, mask in days:
        while place < len(facts.since_days) and facts.since_days[place] <= day:
            if place and anchor_mask:
                yield facts.since_masks[place - 1], anchor_mask
            place, anchor_mask = place + 1, 0
        anchor_mask |= mask
    if place and anchor_mask:
        yield facts.since_masks[place - 1], anchor_mask


def stands_on_framework(index: Index, component: str) -> bool:
    """True if who asks for a component installs a framework with it."""
    components, facts = index.header["components"], index.component(component)
    # An image holds its framework: nobody installs that.
    held = {name for group in facts.row_groups if group.carried for name in group.components[1:]}
    return any(
        group.kind == "requires"
        and group.component not in held
        and components[group.component]["framework"]
        for group in facts.binding_groups
    )


def _leading(assembly: Assembly) -> str:
    """What others are taken for: the framework that was asked for, else what stands on one."""
    components, wanted = assembly.header["components"], assembly.request.wanted
    frameworks = (name for name in wanted if components[name]["framework"])
    standing = (name for name in wanted if stands_on_framework(assembly.index, name))
    return next(frameworks, "") or next(standing, "")


def _a_year_later(day: str) -> str:
    # Days are compared as text: that the 29th of February may not exist a year later does not matter.
    return f"{int(day[:4]) + 1}{day[4:]}"


def _support(
    anchor: Variable,
    variable: Variable,
    mask: int,
    weight: int,
    kind: type[Support] = Support,
    anchor_mask: int = -1,
) -> Support:
    gated = anchor_mask & (2 << anchor.count) - 1
    return kind(((anchor.number, gated, weight), (variable.number, mask, weight)), weight)
