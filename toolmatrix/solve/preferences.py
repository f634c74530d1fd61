"""Preferences beside tested rows: builds that fit, releases joined with what is named, and those of a framework's time.

They are supports like rows. Above all rows stand what a lock holds and what a policy asks for, then, among the builds
of a release, machine code for every device asked for (before code that the driver compiles) and a build for the
accelerator alone; beside a build that brings its runtime, an image without one. Below all rows, by the rule
`series-of-its-time`, stand releases whose series was the newest in the year before the framework, and those of a
wanted package that declare with which of its releases they go.

A component that the request names with a release, or with a range without its newest, is an anchor. A release of a
wanted component is joined to it where a row names both, or where a fact about both admits them. Where no row names such
a pair, what the anchor requires under a condition joins: other facts refuse what does not fit; else what admits the
anchor, where that was not read of other releases. What is joined to more anchors comes first, and age decides among
equals.
"""

from __future__ import annotations

from bisect import bisect_right

from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.records import BOUNDS, JOINS_NONE, PURE
from toolmatrix.solve.engine import Support
from toolmatrix.solve.flags import PTX
from toolmatrix.solve.known import names_releases
from toolmatrix.solve.parts import EVIDENCE, SEVERAL, union
from toolmatrix.solve.request import BEST_EVIDENCE
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding, ComponentFacts, RowGroup
    from toolmatrix.solve.assemble import Assembly, Reachable
    from toolmatrix.solve.parts import Variable
    from toolmatrix.solve.request import Ask

    Joined = dict[tuple[str, str], list[tuple[int, int]]]
    """By target and wanted component its releases that are joined with so many anchors at least, as masks."""

RULE = "series-of-its-time"
_NATIVE, _DEDICATED, _PLAIN = 6, 5, 4
"""Above what any row weighs, and below what a lock or a policy does: see `EVIDENCE`."""
_ANCHOR, _BY_THEN, _A_YEAR_LATER = 3, 2, 1
"""Below what any row weighs, also for as many anchors as count (`MOST`)."""


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
        yield from preferred_releases(assembly)
        yield from builds(assembly)
        # Without rows the newest release ranks first by itself.
        if assembly.request.prefer != "newest":
            for target in assembly.request.targets:
                yield from assembly.support_groups(target)
            joined: Joined = {}
            for target in assembly.request.targets:
                anchors = Anchors(assembly, target)
                for name in assembly.request.wanted:
                    joined[target, name] = list(anchors.ranked(name))
            yield from with_anchors(assembly, joined)
            yield from of_its_time(assembly, joined)
            yield from unneeded(assembly)


def preferred_releases(assembly: Assembly) -> Iterator[Support]:
    """The releases that a lock holds and a policy prefers, anchored on the target."""
    request = assembly.request
    wanted = [(*pin, 0) for pin in request.keep]
    for target, component, releases in request.policies:
        wanted += [(target, component, release, -i) for i, release in enumerate(releases)]
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
    """The absence of what only rows about other things name: these may be tested together and needed by nothing."""
    above = (len(assembly.variables) + 1) * EVIDENCE + _PLAIN
    partners = tested_partners(assembly)
    for target, name in assembly.by_name:
        anchor = assembly.pick(target, "target")
        if anchor is not None and name not in partners:
            yield _support(anchor, assembly.variable(target, name), 1, above)


def tested_partners(assembly: Assembly) -> set[str]:
    """What may be there though nothing chosen needs it: what was asked for, or tested with that, or one of several."""
    requested = {name for _, name in assembly.requested}
    partners = requested.union(SEVERAL)
    for leading in assembly.request.leading:
        for rows in assembly.component(leading).row_groups:
            partners.update(rows.components)
    for _, name in assembly.by_name:
        for group in assembly.index.requirements(name):
            if len(group.alternatives) > 1 and requested.isdisjoint(group.alternatives):
                partners.update(group.alternatives)
    return partners


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
            yield from _dedicated(assembly, target, variable, above + _DEDICATED)
            yield from _plain(assembly, target, variable, above + _PLAIN)


def _plain(assembly: Assembly, target: str, variable: Variable, weight: int) -> Iterator[Support]:
    # A build that brings its runtime needs no image that carries one once more.
    components = assembly.header["components"]
    brings = assembly.component(variable.component).brings
    for name, other in assembly.by_component(target).items() if brings else ():
        component = assembly.component(name)
        if any(group.carried for group in component.row_groups):
            plain = (2 << other.count) - 2
            for group in component.binding_groups:
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
    machine_code = sum(2 << i for i, name in enumerate(names) if not name.startswith(PTX))
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


def _dedicated(
    assembly: Assembly, target: str, variable: Variable, weight: int
) -> Iterator[Support]:
    anchor = assembly.pick(target, "accelerator")
    if anchor is None:
        return
    admitted = assembly.remaining[target]["accelerator"]
    dedicated = 0
    for when, allowed in limiting(assembly.index, variable.component, "accelerator"):
        # A build that can do more than is used, such as one for CUDA where none was asked for, is larger for nothing.
        if allowed & ~1 == admitted & (2 << anchor.count) - 2:
            dedicated |= when
    yield _support(anchor, variable, dedicated, weight)


def limiting(index: Index, subject: str, about: str) -> Iterator[tuple[int, int]]:
    """What facts limit a component to, by the releases of a subject for which they do."""
    for group in index.component(subject).binding_groups:
        if group.kind == "limits" and group.component == about:
            for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                # Of what was not read only absence is admitted; of what was read in part, what is known.
                if group.evidence != UNKNOWN or allowed & ~1:
                    yield mask, allowed


def limits(index: Index, subject: str, about: str, bit: int) -> int:
    """The releases that facts limit a component to for one release of a subject, as a mask."""
    admitted = -1
    for when, allowed in limiting(index, subject, about):
        if when & bit:
            admitted &= allowed
    return admitted


def of_its_time(assembly: Assembly, joined: Joined) -> Iterator[Support]:
    """Of the packages that come with a framework, those whose series was out by its release, or within a year of it.

    Among releases that are joined with as many anchors these come first as well.
    """
    components = assembly.header["components"]
    if RULE not in assembly.header["rules"]:
        return
    for target in assembly.request.targets:
        variables = assembly.by_component(target)
        first = leading(assembly)
        if first not in variables:
            continue
        days: dict[str, int] = {}
        left = assembly.remaining[target][first]
        for position, day in enumerate(assembly.component(first).dates):
            if day and left & 2 << position:
                days[day] = days.get(day, 0) | 2 << position
        # The oldest is meant that will do, however old it is.
        nearest = assembly.request.prefer == BEST_EVIDENCE
        for name, variable in variables.items():
            head = components[name]
            if variable.number > variables[first].number and head["scheme"] == "pep440":
                facts = assembly.component(name)
                wanted = name in assembly.request.wanted
                if wanted and _stands_alone(assembly.index, name):
                    continue
                # What nothing needs stays away.
                always = 1 | (_declaring(assembly.index, name, first) if wanted else 0)
                for weight, out, anchor_mask in _of_its_time(facts, days, nearest=nearest):
                    yield _support(
                        variables[first], variable, out | always, weight, Fallback, anchor_mask
                    )
                    for together, count in joined.get((target, name), ()):
                        both, worth = (out | always) & together, count * _ANCHOR + weight
                        yield _support(
                            variables[first], variable, both, worth, anchor_mask=anchor_mask
                        )


def _declaring(index: Index, package: str, framework: str) -> int:
    """The releases of a package that declare with which releases of a framework, or of what stands on it, they go.

    Those that require any of these at whatever release are left out: a newer one may have left the framework behind.
    """
    components = index.header["components"]
    declaring = silent = 0
    groups = index.component(package).binding_groups
    for name in dict.fromkeys(group.component for group in groups):
        if not name or components[name]["scheme"] != "pep440":
            continue
        if name != framework and not bounded(index, name, framework):
            continue
        whole = (2 << len(index.component(name).versions)) - 2
        named = required = 0
        for group in groups:
            if group.component == name and group.kind not in JOINS_NONE:
                for binding in group.of(-1):
                    speaks = names_releases(index, binding, whole)
                    named |= binding.mask if speaks else 0
                    required |= 0 if group.kind in BOUNDS else binding.mask
        declaring |= named if name == framework else named & required
        silent |= required & ~named
    return declaring & ~silent


def stands_on(index: Index, component: str, frameworks: Sequence[str]) -> bool:
    """True for a package that requires a framework, or one of some; an image that carries one does not."""
    is_package = bool(index.header["components"][component]["code"])
    return requires_framework(index, component) or (
        is_package and any(bounded(index, component, framework) for framework in frameworks)
    )


def known_as_wheels(index: Index, asks: Sequence[Ask]) -> list[Ask]:
    """The packages that facts know as wheels, where they know none of all that is asked for otherwise."""
    heads = [index.header["components"][ask.component] for ask in asks]
    if any(head["accelerators"] and not head["code"] for head in heads):
        return []
    methods = {ask: {*_methods_named(index, ask.component)} for ask in asks}
    others = {method for named in methods.values() for method in named} - {"wheel"}
    return [] if others else [ask for ask, named in methods.items() if named]


def _methods_named(index: Index, component: str) -> Iterator[str]:
    scale = index.scale("from")
    for group in index.component(component).binding_groups:
        named = group.conditions.get("from", 0) if group.evidence != UNKNOWN else 0
        yield from (method for method in ("wheel", "source") if named == scale.bit(method))


def bounded(index: Index, package: str, framework: str) -> bool:
    """Whether facts about a package name releases of a framework."""
    return any(group.component == framework for group in index.component(package).binding_groups)


def _stands_alone(index: Index, package: str) -> bool:
    """Whether a package is Python alone and requires no component but a Python."""
    return index.header["components"][package]["code"] == PURE and all(
        group.component == "python" for group in index.requirements(package)
    )


def _of_its_time(
    facts: ComponentFacts, days: Mapping[str, int], *, nearest: bool
) -> Iterator[tuple[int, int, int]]:
    """The weights of releases of a component, and the days for which releases weigh that, both as masks."""
    for weight, years in (_BY_THEN, 0), (_A_YEAR_LATER, 1):
        outs: dict[int, int] = {}
        for day, mask in days.items():
            out = _out_by(facts, _years_later(day, years))
            # A series that another one had followed a year before was old by then: the next may be nearer.
            if weight == _BY_THEN and nearest:
                out &= ~_out_by(facts, _years_later(day, -1), followed=True)
            if out:
                outs[out] = outs.get(out, 0) | mask
        for out, anchor_mask in outs.items():
            yield weight, out, anchor_mask


def _out_by(facts: ComponentFacts, day: str, followed: bool = False) -> int:
    """The releases of a component whose series was out by a day, or followed by another one."""
    position = bisect_right(facts.since_days, day) - 1 - followed
    return facts.since_masks[position] if position >= 0 else 0


def requires_framework(index: Index, component: str) -> bool:
    """True if installing a component installs a framework with it."""
    components, facts = index.header["components"], index.component(component)
    # An image carries its framework, which is not installed.
    carried = {name for group in facts.row_groups if group.carried for name in group.components[1:]}
    return any(
        group.kind == "requires"
        and group.component not in carried
        and components[group.component]["framework"]
        for group in facts.binding_groups
    )


def leading(assembly: Assembly) -> str:
    """What others are chosen for: the requested framework, else what requires one."""
    components, wanted = assembly.header["components"], assembly.request.wanted
    frameworks = (name for name in wanted if components[name]["framework"])
    standing = (name for name in wanted if requires_framework(assembly.index, name))
    return next(frameworks, "") or next(standing, "")


def _years_later(day: str, years: int) -> str:
    # Days are compared as text: that the 29th of February may not exist in that year does not matter.
    return f"{int(day[:4]) + years}{day[4:]}"


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


_CONTEXT = (*SEVERAL, "distro")
"""Where the result runs: nothing older is wanted for it, and facts refuse what does not run there."""
MOST = 8
"""Most anchors that count: with all of them a release ranks below what any row says of chosen components."""


class Anchor(NamedTuple):
    """What is named beside a wanted component, in the words of the request, and which releases are joined to it."""

    component: str
    text: str
    joined: int


class Anchors:
    """What a request names on a target that anchors what it wants there."""

    def __init__(self, reachable: Reachable, target: str) -> None:
        self.reachable = reachable
        self.target = target
        components = reachable.header["components"]
        # A named release, or a range without the newest.
        self.named = [
            ask
            for ask in reachable.asks(target)
            if not components[ask.component]["given"]
            and ask.component not in _CONTEXT
            and not reachable.requested[target, ask.component]
            >> reachable.by_name[target, ask.component][0].count
        ]
        self._rows: dict[str, list[RowGroup]] | None = None

    def of(self, wanted: str) -> list[Anchor]:
        """The anchors of a wanted component, in the order of the request."""
        left = self.reachable.requested.get((self.target, wanted), -1) & ~1
        # A release that is named exactly needs no anchor.
        if self.reachable.request.prefer == "newest" or not left & left - 1:
            return []
        anchors = {}
        for ask in self.named:
            joined = self._joined(wanted, ask.component) if ask.component != wanted else 0
            if joined:
                anchors[ask.component] = Anchor(ask.component, ask.text, joined)
        return list(anchors.values())

    def ranked(self, wanted: str) -> Iterator[tuple[int, int]]:
        """The releases of a wanted component that are joined to so many anchors at least, and how many these are."""
        least = [-1]
        for anchor in self.of(wanted)[:MOST]:
            least = [
                before | (least[count - 1] & anchor.joined if count else 0)
                for count, before in enumerate([*least, 0])
            ]
        for count, mask in enumerate(least):
            if count and mask:
                yield mask, count

    def _joined(self, wanted: str, other: str) -> int:
        reachable, target = self.reachable, self.target
        requested = reachable.requested[target, other]
        both = [group for group in self._naming(wanted) if other in group.components]
        admitted, unread = _admitting(reachable, target, wanted, other)
        if not both:
            read = admitted & ~unread & ~1 if unread else 0
            return _pinned(reachable, target, wanted, other) or read
        joined = 0
        for group in both:
            positions = group.components.index(wanted), group.components.index(other)
            for mask, others in zip(*map(group.columns.__getitem__, positions), strict=True):
                if others & requested:
                    joined |= mask
        for binding in _limiting(reachable, other, wanted, requested):
            joined |= binding.allowed if _could_hold(reachable, target, binding.conditions) else 0
        joined |= _built(reachable, target, wanted, other)
        return (joined | admitted) & ~unread & ~1

    def _naming(self, component: str) -> Sequence[RowGroup]:
        """The known rows that name a component, read when a pair is first looked at: most requests hold none."""
        reachable, target = self.reachable, self.target
        if self._rows is None:
            self._rows = {}
            for owner, name in reachable.by_name:
                for group in reachable.component(name).row_groups if owner == target else ():
                    if group.evidence != UNKNOWN and _could_hold(
                        reachable, target, group.conditions
                    ):
                        for member in group.components:
                            self._rows.setdefault(member, []).append(group)
        return self._rows.get(component, ())


def _pinned(reachable: Reachable, target: str, wanted: str, other: str) -> int:
    """What the release preferred of what is named requires under some condition; what always holds needs no anchor."""
    requested = reachable.requested[target, other]
    oldest = reachable.by_name[target, other][0].oldest
    preferred = requested & -requested if oldest else 1 << requested.bit_length() - 1
    required = -1
    for binding in _limiting(reachable, other, wanted, preferred):
        if binding.conditions and reachable.possible(target, binding.conditions):
            required &= binding.allowed
    return 0 if required == -1 else required


def _limiting(reachable: Reachable, subject: str, about: str, releases: int) -> Iterator[Binding]:
    """The known bindings of some releases that limit a component to some of its own."""
    whole = (2 << len(reachable.scale(about).versions)) - 2
    for binding in reachable.component(subject).about(about, releases):
        # What admits every release, or none but its absence, says nothing of the two.
        if binding.evidence != UNKNOWN and not binding.allowed & 1 and binding.allowed != whole:
            yield binding


def _could_hold(reachable: Reachable, target: str, conditions: Mapping[str, int]) -> bool:
    # What the wheels of a release ask for joins a build of it as well.
    rest = {name: mask for name, mask in conditions.items() if name != "from"}
    return reachable.possible(target, rest)


def _admitting(reachable: Reachable, target: str, subject: str, other: str) -> tuple[int, int]:
    """The releases of a subject whose facts admit what is named, and those for which that was not read."""
    requested = reachable.requested[target, other]
    admitted = in_part = refused = unread = 0
    for binding in reachable.component(subject).about(other, -1):
        if binding.kind not in JOINS_NONE and _could_hold(reachable, target, binding.conditions):
            if binding.evidence == UNKNOWN:
                # What was read in part admits what is known of it, where nothing that was read refuses that.
                in_part |= binding.mask if binding.allowed & requested else 0
                unread |= 0 if binding.allowed & requested else binding.mask
            else:
                admitted |= binding.mask if binding.allowed & requested else 0
                refused |= 0 if binding.allowed & requested else binding.mask
    return admitted | in_part & ~refused, unread


def _built(reachable: Reachable, target: str, wanted: str, other: str) -> int:
    """The releases with a build for what is named."""
    name = reachable.index.builds_of(wanted)
    if (target, name) not in reachable.by_name:
        return 0
    builds, _ = _admitting(reachable, target, name, other)
    return union(binding.allowed for binding in reachable.component(name).about(wanted, builds))
