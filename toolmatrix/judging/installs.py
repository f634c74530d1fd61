"""What pip installs command by command, what a later one replaces of an earlier one, and what does not fit in the end.

Each command is solved as pip does: an installed release stays if it satisfies what the command requires, and the newest
is taken of everything else, as its own file declares it (METADATA). What nothing of the command requires is not looked
at, so that it may be left behind. A release that cannot be known, as in an image or on an index that was not read, is
none: nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import JOINS_NONE, REFUSE, REQUIREMENT, Binding, BindingGroup
from toolmatrix.finding import Incompatibility
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import ALL, CONDA, IMAGE, NAMED, PIP, REMOVED, Item
from toolmatrix.request.judgement import (
    ARCH,
    RequestedPart,
    RequestedParts,
    all_releases,
    wheel_accelerators,
)
from toolmatrix.request.manifests import TOOLKIT, indexed, plain
from toolmatrix.solve.engine import Problem, Solution, solve
from toolmatrix.solve.parts import union
from toolmatrix.solve.request import Ask
from toolmatrix.value import NamedTuple

# So many commands of an environment are followed.
_MOST = 40
_REQUIRED, _DECLARED = ("requires", "needs"), "artifact"
# A recipe may state less than what works.
_CAUTIOUS = frozenset(("tested", "stated"))
# What is built by conda or a distribution keeps to other requirements than a wheel.
_WHEELS = (PIP, IMAGE)


class Installed(NamedTuple):
    """A package that is there: its release as a mask, 0 if that is unknown, and the line that brought it.

    `named`: the line is about it, and not about what requires it; `builds` are those that it may be.
    """

    release: int
    part: RequestedPart
    named: bool
    builds: int


class PipCommand(NamedTuple):
    """What one command of pip installs and bounds, and what was there before; `unknown` may bound it as well."""

    parts: Sequence[RequestedPart]
    bounds: Sequence[RequestedPart]
    unknown: Sequence[Item]
    before: Mapping[str, Installed]

    @property
    def item(self) -> Item:
        """A line with the options of the command alone: another may have an address of its own."""
        return min((part.item for part in self.parts), key=lambda item: len(item.indexes))


class Change(NamedTuple):
    """A package that a command replaces, what requires that, and by which fact; nothing where a line asks for it.

    `removed`: another command has taken the old one away before.
    """

    component: str
    old: Installed
    new: Installed
    command: PipCommand
    cause: Incompatibility | None
    removed: bool


class Mismatch(NamedTuple):
    """Two packages that are there in the end, and do not go together."""

    subject: str
    binding: Binding
    ground: Incompatibility


class Installation:
    """One environment on a target, command by command."""

    def __init__(self, index: Index, parts: RequestedParts, target: str) -> None:
        self.index = index
        self.heads = index.header["components"]
        self.environment = parts.name
        self.machine = index.header["targets"][target]["context"]["machine"]
        self.installed: dict[str, Installed] = {}
        self.commands: dict[str, PipCommand] = {}
        # What commands have taken away, and what was there when each package was installed.
        self.removed: dict[str, Installed] = {}
        self.beside: dict[str, Mapping[str, Installed]] = {}
        self.changes: list[Change] = []
        self.unknown: list[Item] = []
        self.followed = 0
        # True where other packages may be there than those that are known.
        self.opaque = False
        self.by_item: dict[int, list[RequestedPart]] = {}
        for part in parts.written:
            if part.component != ARCH:
                self.by_item.setdefault(id(part.item), []).append(part)
        self.python = self._python(parts)
        # The releases for an unknown Python are unknown.
        for _, same in groupby(
            parts.items if self.python else (), lambda item: (item.kind, item.command)
        ):
            self.run([*same])

    @cached_property
    def packages(self) -> frozenset[str]:
        """The components that pip installs."""
        packages = frozenset(self.index.packages().values())
        return frozenset(packages.intersection(self.heads).difference(TOOLKIT))

    @cached_property
    def wheels(self) -> Mapping[str, int]:
        """What conditions of facts are compared with, but for the Python."""
        scale = self.index.scale
        return {"from": scale("from").bit("wheel"), "machine": scale("machine").bit(self.machine)}

    def _python(self, parts: RequestedParts) -> int:
        """The Python: that of the lines or the distribution, else the newest that all pinned releases have.

        Nothing for a distribution whose own is unknown.
        """
        scale = self.index.scale("python")
        left = all_releases(len(scale.versions))
        distros = []
        for part in parts.parts:
            if part.component == "python":
                left &= scale.select(part.asks[0].selector)
            elif part.component == "distro":
                distros.append(part.asks[0].selector)
        self.names_python = any(part.component == "python" for part in parts.parts)
        # The first line comes first: that is there with its Python.
        for part in parts.written:
            if part.component in self.packages and (part.item.specifier or part.carried):
                release = newest_of(self.index.scale(part.component).select(part.asks[0].selector))
                left = left & self.pythons(part.component, release, part) or left
        if not distros or self.names_python:
            return newest_of(left)
        # Where its own is too old, another was built or added.
        own = scale.bit(called.python_of(distros[0]))
        return own & left or (own and newest_of(left))

    def pythons(self, component: str, release: int, part: RequestedPart | None = None) -> int:
        """The Pythons that a release has wheels for, of those that a part may take."""
        left, variants = -1, self.index.builds_of(component)
        for binding in self.about_python(component):
            if binding.mask & release:
                left &= binding.allowed
        if variants:
            facts = self.index.component(variants)
            of = facts.about(component, -1)
            builds = union(binding.mask for binding in of if binding.allowed == release)
            if part is not None and part.item.alone:
                own = indexed(self.index, part.item, variants)[1]
                builds &= self.index.scale(variants).select(own) if own else -1
            known = [*facts.about("python", builds)]
            if not builds & ~union(binding.mask for binding in known):
                left &= union(binding.allowed for binding in known)
        return left

    def about_python(self, component: str) -> Iterator[Binding]:
        """What wheels of a package require of the Python."""
        for group in self.index.component(component).binding_groups:
            if (
                group.component == "python"
                and group.kind not in JOINS_NONE
                and group.evidence != words.UNKNOWN
                and _holds(group.conditions, self.wheels)
            ):
                yield from group.of(-1)

    def single(self, part: RequestedPart) -> int:
        """The release that a part pins, as a mask; 0 if it leaves several."""
        mask = self.index.scale(part.component).select(part.asks[0].selector)
        return mask if mask & ~1 and not mask & (mask - 1) else 0

    def run(self, items: Sequence[Item]) -> None:
        """Follow one command, or take over what an image or conda brings."""
        parts = [
            part
            for item in items
            for part in self.by_item.get(id(item), ())
            if part.component in self.packages
        ]
        kind = items[0].kind
        if kind == IMAGE:
            self.image(items[0], parts)
        elif kind == CONDA:
            self.opaque = True
            for part in parts:
                self.installed[part.component] = Installed(
                    self.single(part), part, named=True, builds=0
                )
        elif kind == REMOVED:
            for component in map(self.component, items):
                if component in self.installed:
                    self.removed[component] = self.installed.pop(component)
        elif kind == PIP:
            for item in items:
                if id(item) not in self.by_item:
                    self.lose(item)
            wanted = [part for part in parts if not part.item.bounds]
            bounds = [part for part in parts if part.item.bounds]
            if wanted and not self.satisfied(wanted):
                if self.followed == _MOST:
                    # A file of use has a few.
                    self.opaque = True
                    self.installed.clear()
                    return
                self.followed += 1
                self.pip(PipCommand(wanted, bounds, [*self.unknown], dict(self.installed)))

    def satisfied(self, parts: Sequence[RequestedPart]) -> bool:
        """True if all that a command asks for is there."""
        return all(
            not part.item.upgrade
            and part.component in self.installed
            and self.installed[part.component].release
            & self.index.scale(part.component).select(part.asks[0].selector)
            for part in parts
        )

    def lose(self, item: Item) -> None:
        """Remember an item of which nothing is known; of a package that facts are about, no release is."""
        self.unknown.append(item)
        component = self.component(item)
        if component in self.packages:
            self.installed[component] = _unknown(component, item)

    def component(self, item: Item) -> str:
        """The component of a package by its name on the index, empty where it is none."""
        return self.index.packages().get(called.package_name(item.name), "")

    def image(self, item: Item, parts: Sequence[RequestedPart]) -> None:
        """Take over the packages of an image: those of its tag, and those that follow from them."""
        holds = called.packages_in(plain(item.name))
        self.opaque = self.opaque or holds is None
        for part in parts:
            self.installed[part.component] = Installed(
                self.single(part), part, named=True, builds=0
            )
        for component in holds or ():
            companion = Installed(0, _part(component, item), named=False, builds=0)
            for part in parts:
                release = self.companion(component, part.component)
                companion = Installed(release, part, named=False, builds=0)
            self.installed.setdefault(component, companion)

    def companion(self, component: str, framework: str) -> int:
        """The release of a package that requires exactly that of a framework that is there; 0 without one alone."""
        at = self.installed[framework].release
        bindings = self.index.component(component).about(framework, -1)
        mask = union(b.mask for b in bindings if b.kind == "requires" and b.allowed == at)
        return mask if not mask & (mask - 1) else 0

    def pip(self, command: PipCommand) -> None:
        """Install what a command asks for."""
        solved = Solved(self, command)
        chosen = solved.chosen()
        if chosen is None:
            # It stops, or takes an unknown release.
            for component in solved.reachable:
                self.installed[component] = _unknown(component, command.item)
            return
        there = {**self.installed, **chosen}
        for component, new in chosen.items():
            removed = self.removed.pop(component, None)
            old = self.installed.get(component) or removed
            same = old and old.release == new.release and not self.rebuilt(old, new, command)
            if old and same and not removed:
                if command.item.upgrade == ALL:
                    self.beside[component] = there
                continue
            self.installed[component] = new
            self.commands[component] = command
            self.beside[component] = there
            if old and old.release and new.release and not same:
                cause = solved.cause(component, old.release, chosen)
                was_removed = removed is not None
                self.changes.append(Change(component, old, new, command, cause, was_removed))

    def rebuilt(self, old: Installed, new: Installed, command: PipCommand) -> bool:
        """True if the same release is installed again, from a build that the old one is not."""
        return bool(
            command.item.upgrade == ALL
            and old.builds
            and new.builds
            and not old.builds & new.builds
        )

    def is_pinned(self, component: str) -> bool:
        """True if a line names the release of a package, or has taken it away."""
        own = self.installed.get(component)
        return own is None or (own.named and "==" in own.part.item.specifier)

    def mismatches(self) -> Iterator[Mismatch]:
        """The packages that do not go together in the end; those without their requirements count for none."""
        for subject, own in self.installed.items():
            if not own.release or own.part.item.kind not in _WHEELS:
                continue
            bare = own.named and own.part.item.bare
            for group in self.index.component(subject).binding_groups:
                other = self.installed.get(group.component)
                if (
                    other is None
                    or not other.release
                    or not self.counts(subject, group)
                    or (bare and group.kind == "requires")
                    or not self.holds(group, subject, own.part)
                ):
                    continue
                for binding in group.of(own.release):
                    # Absence alone is about two packages with the same folder.
                    if binding.allowed & ~1 and not binding.allowed & other.release:
                        ground = self.ground(subject, binding, own.release, other.release)
                        yield Mismatch(subject, binding, ground)
            yield from self.stale(subject, own)

    def stale(self, subject: str, own: Installed) -> Iterator[Mismatch]:
        """What the build of a package went with as it was installed, and does not go with any more."""
        variants = self.index.builds_of(subject)
        beside = self.beside.get(subject, {})
        # An index that was not read may have been for what comes later.
        for component in self.heads[subject]["against"] if variants and not own.part.open else ():
            other, first = self.installed.get(component), beside.get(component)
            if not other or not first or not first.release or not other.release:
                continue
            facts = self.index.component(variants)
            of_release = own.builds or union(
                binding.mask
                for binding in facts.about(subject, -1)
                if binding.allowed == own.release
            )
            about = [*facts.about(component, of_release)]
            built = [binding for binding in about if binding.allowed & first.release]
            builds = union(binding.mask for binding in built) & of_release
            goes = union(binding.mask for binding in about if binding.allowed & other.release)
            if builds and not builds & goes:
                ground = self.ground(subject, built[0], own.release, other.release, builds)
                yield Mismatch(subject, built[0], ground)

    def counts(self, subject: str, group: BindingGroup) -> bool:
        """True for a fact by which two packages fail together: a file declares it, it was seen, or code is bound."""
        if group.kind == "limits" and group.evidence in _CAUTIOUS:
            return group.component in self.heads[subject]["against"]
        return group.kind in REFUSE and group.evidence != words.UNKNOWN

    def resolves(self, parts: Sequence[RequestedPart]) -> bool:
        """True if of some packages that do not go together a later command replaces one, and the rest fits."""
        names = {part.component for part in parts}
        commands = {part.item.command for part in parts}
        there = [self.installed.get(part.component) for part in parts]
        if len(commands) < 2 or not all(own and own.release for own in there):
            return False
        replaced = any(
            own and not self.index.scale(part.component).select(part.asks[0].selector) & own.release
            for part, own in zip(parts, there, strict=True)
        )
        mismatches = self.mismatches() if replaced else ()
        return replaced and not any({m.subject, m.binding.component} & names for m in mismatches)

    def holds(self, group: BindingGroup, subject: str, part: RequestedPart) -> bool:
        """True if the conditions of facts hold, whatever is left open."""
        conditions = dict(group.conditions)
        accelerators = conditions.pop("accelerator", None)
        if not _holds(conditions, {**self.wheels, "python": self.python}):
            return False
        if accelerators is None:
            return True
        # What a dependency is built for, it is on the indexes of the command.
        own = part if part.component == subject else self.dependency(subject, part.item)
        built_for = wheel_accelerators(self.index, own, self.machine) if own else ()
        scale = self.index.scale("accelerator")
        return bool(built_for) and all(scale.bit(name) & accelerators for name in built_for)

    def dependency(self, component: str, item: Item) -> RequestedPart | None:
        """A package as a command takes it that does not name it; None where its indexes were not read."""
        variants = self.index.builds_of(component)
        asks = [Ask(component=component, selector="*", text=component)]
        if variants:
            known, selector = indexed(self.index, item, variants)
            if not known or not self.index.scale(variants).select(selector):
                return None
            asks.append(Ask(component=variants, selector=selector, text=component))
        elif item.alone:
            return None
        return _part(component, item, asks)

    def ground(
        self, subject: str, binding: Binding, own: int, other: int, builds: int = 0
    ) -> Incompatibility:
        """A fact that two releases do not go by; that is about some builds where they are given."""
        claims = [
            self.index.claim(cite.record)
            for cite in self.index.cites(binding.cites)
            if cite.touches(builds or own)
        ]
        scale = self.index.scale(binding.component)
        return Incompatibility(
            kind=binding.kind,
            subject=subject,
            releases=tuple(self.index.scale(subject).named(own)),
            component=binding.component,
            values=tuple(scale.named(binding.allowed)),
            clashing=tuple(scale.named(other)),
            facts=tuple(claim.id for claim in claims),
            evidence=binding.evidence,
            source=claims[0].source if claims else "",
        )

    @cached_property
    def today(self) -> str:
        """The day of the newest releases, and the Python where no line says which."""
        date = self.index.header["date"]
        if self.names_python:
            return date
        return f"{date}, Python {self.name('python', self.python)}"

    def name(self, component: str, release: int) -> str:
        """A release as people write it."""
        return self.index.scale(component).named(release)[0]


def newest_of(mask: int) -> int:
    return 1 << mask.bit_length() >> 1


def _part(component: str, item: Item, asks: Sequence[Ask] = ()) -> RequestedPart:
    """A package that no line of a request is about."""
    return RequestedPart(component=component, asks=tuple(asks), text=component, item=item)


def _unknown(component: str, item: Item) -> Installed:
    return Installed(0, _part(component, item), named=False, builds=0)


def _holds(conditions: Mapping[str, int], context: Mapping[str, int]) -> bool:
    return all(context.get(name) and not context[name] & ~mask for name, mask in conditions.items())


class Solved:
    """One command as a problem: its packages and all that these may require, each with the releases it can have.

    The last candidate of a package that is there is to keep it: in `order="index"` it comes first.
    """

    def __init__(
        self, run: Installation, command: PipCommand, within: Mapping[str, int] | None = None
    ) -> None:
        self.run = run
        self.index = run.index
        self.command = command
        self.within = within or {}
        self.roots = dict.fromkeys(part.component for part in command.parts)
        self.blind: set[str] = set()
        self.parts: dict[str, RequestedPart] = {}
        self.domains: dict[str, int] = {}
        self.groups: dict[str, list[BindingGroup]] = {}
        for component in self.roots:
            self.open(component)
        self.reachable = reachable = [*self.roots]
        # It grows on the way.
        for component in reachable:
            for name in self.partners(component):
                if name not in reachable:
                    reachable.append(name)
                    self.open(name)
        # pip takes the newest of what requires before it decides again on what is required.
        self.order: list[str] = []
        visited = set[str]()
        for component in reversed(reachable):
            self.sort(component, visited)
        self.order.reverse()

    def sort(self, component: str, visited: set[str]) -> None:
        """Add a package to the order, behind all that it requires today; the order is turned in the end."""
        if component not in visited and component in self.domains:
            visited.add(component)
            newest = newest_of(self.domains[component])
            for name in self.partners(component, newest):
                self.sort(name, visited)
            self.order.append(component)

    def partners(self, component: str, releases: int = -1) -> list[str]:
        """What some releases of a package may require."""
        return [
            name
            for group in self.required(component)
            if group.releases & releases
            for name in group.named
        ]

    def open(self, component: str) -> None:
        """Read the releases that a package can have, unless they are unknown."""
        parts = [part for part in self.command.parts if part.component == component]
        pinned = any(self.run.single(part) for part in parts)
        old = self.command.before.get(component)
        computes = bool(self.run.heads[component]["accelerators"])
        unsure = old.release == 0 if old else self.run.opaque and not (parts and computes)
        part = parts[-1] if parts else self.run.dependency(component, self.command.item)
        overridden = any(
            bound.component == component and bound.item.overrides for bound in self.command.bounds
        )
        if part is None or overridden or (not pinned and (unsure or self.unread(part))):
            self.blind.add(component)
            return
        self.parts[component] = part
        self.domains[component] = self.domain(component, part, parts)

    def unread(self, part: RequestedPart) -> bool:
        """True if another index may have a newer release: one beside the default index has builds at most."""
        return part.open if self.index.builds_of(part.component) else part.item.alone

    def kept(self, component: str) -> int:
        """The release of a package that stays if it can."""
        old = self.command.before.get(component)
        upgrade = self.command.item.upgrade
        anew = upgrade == ALL or (upgrade == NAMED and component in self.roots)
        return 0 if old is None or anew else old.release

    def domain(self, component: str, part: RequestedPart, parts: Sequence[RequestedPart]) -> int:
        """The releases that the lines and the Python leave; what is there already may be any."""
        facts, scale = self.index.component(component), self.index.scale(component)
        mask = all_releases(len(facts.versions)) & ~facts.yanked
        for binding in self.run.about_python(component):
            if not binding.allowed & self.run.python:
                mask &= ~binding.mask
        variants = self.index.builds_of(component)
        # Of the default index a source distribution may be taken.
        if variants and (part.item.alone or component in called.wheels_alone()):
            mask &= self.built(component, self.builds(component, part))
        mask |= self.kept(component)
        for line in parts:
            mask &= scale.select(line.asks[0].selector)
        for bound in self.command.bounds:
            if bound.component == component:
                mask &= scale.select(bound.asks[0].selector)
        mask &= self.within.get(component, -1)
        return mask if component in self.roots or self.kept(component) else mask | 1

    def builds(self, component: str, part: RequestedPart) -> int:
        """The builds of a package on the indexes of the command, for the machine."""
        name = self.index.builds_of(component)
        if not name:
            return 0
        facts = self.index.component(name)
        context = {"machine": self.run.wheels["machine"], "python": self.run.python}
        selectors = [ask.selector for ask in part.asks if ask.component == name]
        if not selectors:
            selectors = [indexed(self.index, part.item, name)[1]]
        mask = self.index.scale(name).select(selectors[0]) if selectors[0] else 0
        for about, wanted in context.items():
            for binding in facts.about(about, mask):
                if not binding.conditions and not binding.allowed & wanted:
                    mask &= ~binding.mask
        return mask

    def built(self, component: str, builds: int) -> int:
        """The releases that some builds are of."""
        facts = self.index.component(self.index.builds_of(component))
        return union(binding.allowed for binding in facts.about(component, builds))

    def required(self, component: str) -> list[BindingGroup]:
        """The facts by which a package requires others, of those that pip installs."""
        if component not in self.groups:
            self.groups[component] = []
            if component in self.domains and not self.command.item.bare:
                part, left = self.parts[component], self.domains[component]
                self.groups[component] = [
                    group
                    for group in self.index.component(component).binding_groups
                    if (group.kind in _REQUIRED or self.is_asked_for(group))
                    and group.releases & left
                    and group.evidence != words.UNKNOWN
                    and self.run.packages.issuperset(group.named)
                    and self.run.holds(group, component, part)
                ]
        return self.groups[component]

    def is_asked_for(self, group: BindingGroup) -> bool:
        """True for limits of a package that is there or asked for: metadata may require it, and no answer has to."""
        there = {*self.roots, *self.command.before}
        return group.kind == "limits" and group.evidence == _DECLARED and group.component in there

    def is_declared(self, binding: Binding) -> bool:
        """True for what pip keeps to: of limits those that metadata declares."""
        if binding.kind in _REQUIRED:
            return True
        claims = (self.index.claim(cite.record) for cite in self.index.cites(binding.cites))
        return any(claim.says == REQUIREMENT for claim in claims)

    def solution(self) -> dict[str, int] | None:
        """The release of each package as a mask, 0 if it is not there; None without an answer."""
        numbers = {component: number for number, component in enumerate(self.order)}
        sizes = [len(self.index.component(name).versions) + 2 for name in self.order]
        stays = {name: self.kept(name) for name in self.order}

        def known(component: str, mask: int) -> int:
            size = sizes[numbers[component]]
            mask &= (1 << size - 1) - 1
            return mask | 1 << size - 1 if mask & stays[component] else mask

        nogoods = []
        for component in self.order:
            for group in self.required(component):
                if not self.blind.isdisjoint(group.named):
                    continue
                for binding in filter(self.is_declared, group.of(self.domains[component])):
                    terms = [(numbers[component], known(component, binding.mask))]
                    for name in binding.named:
                        excluded = 1 if binding.kind == "needs" else ~binding.allowed
                        terms.append((numbers[name], known(name, excluded)))
                    nogoods.append(tuple(sorted(terms)))
        optional = sum(1 << numbers[name] for name in self.order if name not in self.roots)
        domains = [known(name, self.domains[name]) for name in self.order]
        outcome = solve(Problem(sizes, nogoods, (), domains, 0, optional), order="index")
        if not isinstance(outcome, Solution):
            return None
        values = zip(self.order, outcome.values, sizes, strict=True)
        return {
            name: stays[name] if value == size - 1 else 1 << value & ~1
            for name, value, size in values
        }

    def chosen(self) -> dict[str, Installed] | None:
        """What is there of all that the command reaches, with the lines that bring it; None without an answer."""
        solution = self.solution()
        if solution is None:
            return None
        origins = {part.component: part for part in self.command.parts}
        present = [name for name in self.order if solution[name]]
        for component in present:
            requiring = (name for name in present if self.requires(name, solution[name], component))
            parent = next((name for name in requiring if name in origins), "")
            origins.setdefault(component, origins[parent] if parent else self.command.parts[0])
        chosen = {}
        for component in present:
            part = self.parts[component]
            builds = self.builds(component, part)
            if builds:
                facts = self.index.component(self.index.builds_of(component))
                builds = union(
                    binding.mask & builds
                    for binding in facts.about(component, builds)
                    if binding.allowed == solution[component]
                )
            named = component in self.roots
            chosen[component] = Installed(
                solution[component], origins[component], named=named, builds=builds
            )
        for component in self.blind:
            # Whatever requires it may have installed any release.
            if component not in self.command.before or component in self.roots:
                chosen[component] = _unknown(component, self.command.item)
        return chosen

    def requires(self, subject: str, release: int, component: str) -> bool:
        """True if a release of a package requires another package."""
        return any(
            component in group.named and group.releases & release
            for group in self.required(subject)
        )

    def cause(
        self, component: str, old: int, chosen: Mapping[str, Installed]
    ) -> Incompatibility | None:
        """The fact by which a release had to go."""
        for subject, installed in chosen.items():
            for group in self.required(subject) if subject in self.domains else ():
                if group.component == component and group.kind == "requires":
                    for binding in group.of(installed.release):
                        if not binding.allowed & old:
                            return self.run.ground(subject, binding, installed.release, old)
        return None
