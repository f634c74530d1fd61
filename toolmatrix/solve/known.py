"""How two parts of an answer are known to go together: the one place that decides between yes and cannot say.

Two parts are **refused** or **joined** by a fact; or **independent**, as the requirements of both have been read,
neither names the other and no binary tie is between them; or **touching**, as one names the other or is bound to it and
no fact joins these releases; or one of them is **outside** the matrix. Joined and independent are a yes, refused is a
no, and the rest is neither. A search leaves nothing refused or outside in an answer.

What facts tie to the request leads from a choice to what was asked for, by claims that hold and rows that speak. A
claim that a component must be there, at whatever release, ties none of them. What the request fixes (target, machine,
accelerator, from) is where facts hold and not what they are about.
"""

from __future__ import annotations

from itertools import combinations

from toolmatrix.factbase.evidence import REPORTED, UNKNOWN
from toolmatrix.factbase.records import FAILS, JOINS_NONE, PURE, RUN_TIME, UNOPENED_CODE
from toolmatrix.solve.parts import SEVERAL, union
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import TestedRow, Variable

    Claim = tuple[Variable, Binding]
    """The variable that speaks, and the binding."""
    Claims = Mapping[int, Sequence[Claim]]
    """By the variable that is spoken about."""

JOINED, INDEPENDENT, TOUCHING = ("joined", "independent", "touching")
PYTHON = "python"
BOUND, UNJOINED, INCOMPLETE, UNTIED, UNOPENED = (
    *("bound", "unjoined", "incomplete", "untied", "unopened"),
)
"""Why two parts touch: compiled code of `one` is bound to `other`; facts name both, but not these releases together;
not all requirements of `one` have been read; no fact ties `one` to any part of the answer; or the devices
that the code of `one` is for are unknown."""


class Touching(NamedTuple):
    """Two parts of an answer on a target that touch, without a fact that joins their releases, and why.

    `tested` are the releases of the other that rows name with the one, and its wheels go with, as a mask.
    """

    target: str
    component: str
    other: str
    reason: str
    tested: int


class Relations:
    """The relations between the parts of an answer on one target.

    `claims` are those that hold in the answer, by the variable that they speak about, and `rows` the tested rows.
    """

    def __init__(
        self,
        assembly: Assembly,
        target: str,
        values: Sequence[int],
        claims: Claims,
        rows: Iterable[TestedRow],
    ) -> None:
        self.assembly = assembly
        self.target = target
        self.values = values
        self.heads = assembly.header["components"]
        self.variables = assembly.by_component(target)
        # By component what facts about it name, where the answer is, and what those of its release do, known or not.
        self._named: dict[str, set[str]] = {}
        self._named_here: dict[tuple[str, bool], set[str]] = {}
        # By component the releases of others to which its wheels are limited.
        self._limited_to: dict[str, dict[str, int]] = {}
        # By pair of components the claims that may join them, with the component that these are about.
        self._claims: dict[frozenset[str], list[tuple[str, Binding]]] = {}
        # Whether a fact that joins a pair limits its releases, or admits any; None where no fact joins it.
        self._limits: dict[frozenset[str], bool | None] = {}
        # By component those that some fact may join with it.
        self._neighbours: dict[str, set[str]] = {}
        # Read when a pair is first looked at, claims where rows do not join it: most answers hold none of either kind.
        self._unread_rows: Iterable[TestedRow] = rows
        self._unread_claims: Claims = claims

    def between(self, name: str, other: str) -> tuple[str, str]:
        """The relation of two components that the answer holds, and for `touching` the reason."""
        limited = self._limited(frozenset((name, other)))
        # That any release will do is no statement about binaries that go with no other than that of their build.
        if limited or (limited is not None and not self._is_release_bound(name, other)):
            return JOINED, ""
        if self._is_bound(name, other) or self._is_bound(other, name):
            return TOUCHING, BOUND
        if self.declares(name, other) and self.declares(other, name):
            return INDEPENDENT, ""
        # A floor, such as that of a driver, promises all that is newer.
        forward = self.heads[name]["floor"] or self.heads[other]["floor"]
        if not forward and (other in self._mentioned(name) or name in self._mentioned(other)):
            return TOUCHING, UNJOINED
        # Packages require packages: what a tool goes with is in facts about it.
        tool = self._is_tool(name) or self._is_tool(other)
        return (INDEPENDENT, "") if tool else (TOUCHING, INCOMPLETE)

    def touching(self) -> Iterator[Touching]:
        """The pairs that are not known to go together.

        Of what was asked for or given each pair counts, and what its compiled code is bound to, chosen or not.
        """
        requested = self._requested()
        for component, other in self._suspects(requested):
            relation, reason = self.between(component, other)
            # What code that was read is bound to may be that of the framework that it is joined with.
            codes = {self.heads[name]["code"] for name in (component, other)}
            read = self._is_built() or UNOPENED_CODE not in codes
            if relation == TOUCHING and not (
                reason == BOUND and read and self._reaches(component, other)
            ):
                # What depends on the other is not reported once more.
                self._join((component, other))
                yield self._ordered(component, other, reason)
        needing = [name for name in requested if self._may_use_tools(name)]
        for component in requested:
            # What no fact ties to anything was chosen because nothing spoke against it.
            user = next((name for name in needing if name != component), "")
            if user and self._is_tool(component) and not self._is_tied(component):
                self._join((component, user))
                yield Touching(self.target, component, user, UNTIED, tested=0)
            if self.assembly.request.devices and self._is_unopened(component):
                yield Touching(self.target, component, "device", UNOPENED, tested=0)
            for other, reason in self._dependencies(component):
                if other in requested or self._bit(other) == 1:
                    continue
                # Whether other code leads to it is dearer to ask, and mostly need not be.
                relation, _ = self.between(component, other)
                if relation != JOINED and not self._reaches(component, other):
                    self._join((component, other))
                    tested = self._tested_with(component, other)
                    yield Touching(self.target, component, other, reason, tested)

    def built(self) -> str:
        """The first requested framework that is built; nothing where all are installed, or none was requested."""
        frameworks = (name for name in self._requested() if self.heads[name]["framework"])
        return next(frameworks, "") if self._is_built() else ""

    def _suspects(self, requested: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The pairs of requested components that `between` may not call independent, in their order."""
        # Facts are about few pairs: checking each pair of hundreds of components takes longer than the search.
        packages = {name for name in requested if not self._is_tool(name)}
        unread = {name for name in packages if not self._is_read(name)}
        positions = {name: position for position, name in enumerate(requested)}
        pairs: set[tuple[int, int]] = set()
        if len(requested) > 1:
            self._read_facts()
        for name, position in positions.items() if len(requested) > 1 else ():
            near = {*self._against(name), *self._mentioned(name), *self._mentioned_here(name)}
            near |= self._neighbours.get(name, set())
            near.update(self.assembly.component(name).unbounded)
            near.update(self._limits_of_wheels(name) if self._is_built() else ())
            # Packages require packages: one that was not read whole may name any.
            if name in packages:
                near |= packages if name in unread else unread
            for other in near.intersection(requested) - {name}:
                pairs.add((min(position, positions[other]), max(position, positions[other])))
        for first, second in sorted(pairs):
            yield requested[first], requested[second]

    def joinable(self, first: str, second: str) -> dict[int, int]:
        """Releases of a component by those of another that some fact joins with them in some context, as masks."""
        component = self.assembly.component
        single = self._is_release_bound(first, second)
        joined = dict.fromkeys(range(1, len(component(first).versions) + 1), 0)

        def join(releases: int, others: int) -> None:
            for release in joined:
                if releases >> release & 1:
                    joined[release] |= others

        for subject, about in ((first, second), (second, first)):
            whole = (2 << len(component(about).versions)) - 2
            for name in self.assembly.index.with_builds(subject):
                for group in component(name).binding_groups:
                    if group.component != about or group.kind in JOINS_NONE:
                        continue
                    for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                        if single and allowed & whole == whole:
                            continue
                        own = mask if name == subject else self._built_from(name, subject, mask)
                        join(*((own, allowed) if subject == first else (allowed, own)))
        # Whether these rows hold here does not matter: what is forbidden for good must never be joined.
        for name in self.variables:
            for rows in component(name).row_groups:
                if first in rows.components and second in rows.components:
                    positions = rows.components.index(first), rows.components.index(second)
                    for pair in zip(*map(rows.columns.__getitem__, positions), strict=True):
                        join(*pair)
        alike: dict[int, int] = {}
        for release, others in joined.items():
            alike[others & ~1] = alike.get(others & ~1, 0) | 1 << release
        return alike

    def between_them(self, component: str, other: str) -> list[Variable]:
        """The parts by which a component may have what it is bound to."""
        return [
            variable
            for name, variable in self.variables.items()
            if name not in (component, other) and self._is_bound(name, other)
        ]

    def _dependencies(self, name: str) -> Iterator[tuple[str, str]]:
        """The unrequested parts that a part needs at certain releases, and why."""
        # What is compiled here is compiled against what is there; but not with any toolkit.
        if not self._is_built():
            if self.heads[name]["code"] != RUN_TIME:
                yield from ((other, BOUND) for other in self._against(name))
        elif self.heads[name]["framework"]:
            for other in self.variables:
                head = self.heads[other]
                if head["accelerators"] and not head["code"] and not head["under"]:
                    yield other, UNJOINED

    def _tested_with(self, name: str, other: str) -> int:
        """The releases of a second component that rows about this one of the first name, as a mask."""
        bit, releases = self._bit(name), 0
        for group in self.assembly.component(name).row_groups:
            if other in group.components and not group.carried and self._meets(group.conditions):
                column = group.columns[group.components.index(other)]
                for subject, mask in zip(group.subjects, column, strict=True):
                    releases |= mask if subject & bit else 0
        return releases & ~1

    def _is_unopened(self, component: str) -> bool:
        """Whether a part holds device code without any fact that names its devices."""
        head = self.heads[component]
        computes = head["code"] == UNOPENED_CODE and head["accelerators"]
        named = self._mentioned_here(component, known=False)
        return bool(computes) and named.isdisjoint(SEVERAL)

    def _may_use_tools(self, name: str) -> bool:
        """Whether a part may need a tool that no fact names: another tool, what is built, or what was not read."""
        head = self.heads[name]
        built = head["code"] != PURE and (head["framework"] or head["accelerators"])
        return (built and self._is_built()) or self._is_tool(name) or not self._is_read(name)

    def _is_tied(self, name: str) -> bool:
        self._read_facts()
        return self.heads[name]["floor"] or any(
            self._limited(frozenset((name, other))) is not None
            for other in self._neighbours.get(name, ())
        )

    def _is_built(self) -> bool:
        variable = self.variables["from"]
        return self.assembly.version(variable, self.values[variable.number]) == "source"

    def _ordered(self, name: str, other: str, reason: str) -> Touching:
        turned = (
            not self._is_bound(name, other)
            if reason == BOUND
            else other not in self._mentioned(name)
            if reason == UNJOINED
            else self.declares(name, other)
        )
        first, second = (other, name) if turned else (name, other)
        tested = self._tested_with(first, second)
        tested |= self._admitted(first, second) if self._is_built() else 0
        return Touching(self.target, first, second, reason, tested=tested)

    def _requested(self) -> list[str]:
        """The components that the request names or says are there, but for the places where an answer runs."""
        names = dict.fromkeys(
            ask.component
            for ask in self.assembly.asks(self.target)
            # What a recipe needs was not requested.
            if ask.option in ("", "with") and self.heads[ask.component]["scheme"] != "names"
        )
        return [name for name in names if self._bit(name) > 1]

    def _is_bound(self, name: str, other: str) -> bool:
        return other in self._against(name)

    def _against(self, name: str) -> Sequence[str]:
        """What the code of a component is bound to; the tags of wheels and what they declare decide on a Python."""
        return [other for other in self.heads[name]["against"] if other != PYTHON]

    def _bit(self, name: str) -> int:
        """The chosen release of a component as a mask: 1 where it is absent."""
        variable = self.variables.get(name)
        return 1 if variable is None else 1 << self.values[variable.number]

    def _is_tool(self, name: str) -> bool:
        # Every package says what code it holds.
        return not self.heads[name]["code"]

    def _is_release_bound(self, first: str, second: str) -> bool:
        """Whether binaries of one of two components go with a single minor release of the other."""
        return any(
            self.heads[base]["binds"]
            and self._is_bound(owner, base)
            and self.heads[owner]["code"] != RUN_TIME
            for owner, base in ((first, second), (second, first))
        )

    def declares(self, name: str, other: str) -> bool:
        """Whether what one component requires was read whole, and would name the other, which no fact about it does."""
        if name == PYTHON:
            return True
        if not self._is_read(name) or self._is_unbounded(name, other):
            return False
        return other == PYTHON or not (self._is_tool(other) or other in self._mentioned_here(name))

    def _is_unbounded(self, name: str, other: str) -> bool:
        """Whether a component may require another, at releases that were not read."""
        return bool(self.assembly.component(name).unbounded.get(other, 0) & self._bit(name))

    def _is_read(self, name: str) -> bool:
        return bool(self.assembly.component(name).complete & self._bit(name))

    def _mentioned(self, subject: str) -> set[str]:
        """The components that facts about any release of a component or its builds name, where the answer is."""
        if subject not in self._named:
            names = self._named[subject] = set()
            for name in self.assembly.index.with_builds(subject):
                component = self.assembly.component(name)
                for rows in component.row_groups:
                    names.update(() if rows.carried else rows.components)
                for group in component.binding_groups:
                    # Of what a fact has as a condition it speaks whether that holds or not, if all others do.
                    missed = [
                        about
                        for about, mask in group.conditions.items()
                        if about != subject and not self._bit(about) & mask
                    ]
                    if group.evidence != UNKNOWN and group.kind != FAILS and len(missed) < 2:
                        names.update(missed or (*group.named, *group.conditions))
        return self._named[subject]

    def _mentioned_here(self, subject: str, *, known: bool = True) -> set[str]:
        """The components that facts about this release or its builds name, also where only what is absent decides."""
        if (subject, known) not in self._named_here:
            self._named_here[subject, known] = {
                about
                for name in self.assembly.index.with_builds(subject)
                if (releases := self._releases(name, subject))
                for group in self.assembly.component(name).binding_groups
                if group.releases & releases
                and group.kind != FAILS
                and not (known and (group.evidence == UNKNOWN or self._excluded(group.conditions)))
                # A condition on another part requires nothing of it.
                for about in (*group.named, *(() if known else group.conditions))
            }
        return self._named_here[subject, known]

    def _excluded(self, conditions: Mapping[str, int]) -> bool:
        """Whether a part that the answer holds is not what a fact has as a condition, as a marker about a Python."""
        bits = ((self._bit(name), mask) for name, mask in conditions.items())
        return any(bit > 1 and not bit & mask for bit, mask in bits)

    def _releases(self, builds: str, name: str) -> int:
        """The chosen release of a component, or the builds of it, as a mask."""
        bit = self._bit(name)
        if builds == name:
            return bit
        bindings = self.assembly.component(builds).about(name, -1)
        return union(binding.mask for binding in bindings if binding.allowed & bit)

    def _built_from(self, builds: str, name: str, mask: int) -> int:
        """The releases of a component that some builds belong to, as a mask."""
        return union(fact.allowed for fact in self.assembly.component(builds).about(name, mask))

    def _meets(self, conditions: Mapping[str, int]) -> bool:
        # What the answer does not hold is absent.
        return all(self._bit(name) & mask for name, mask in conditions.items())

    def _read_facts(self) -> None:
        self._read_rows()
        self._read_claims()

    def _read_rows(self) -> None:
        rows, self._unread_rows = self._unread_rows, ()
        variables = self.assembly.variables
        for row in rows:
            masks = {variables[n].component: mask for n, mask, _ in row.terms if self.values[n]}
            # What a vendor ships in one image goes together as well. A cuDNN for one toolkit says nothing of another.
            self._join(
                name
                for name, mask in masks.items()
                if mask & self._bit(name) and self._is_for_toolkit(name, masks)
            )

    def _is_for_toolkit(self, name: str, masks: Mapping[str, int]) -> bool:
        toolkit = self.heads[name]["under"]
        if toolkit not in masks or masks[toolkit] & self._bit(toolkit):
            return True
        # Libraries are built for all releases of a major.
        scale = self.assembly.scale(toolkit)
        (chosen,) = scale.named(self._bit(toolkit))
        return bool(masks[toolkit] & scale.select(f"=={chosen.partition('.')[0]}.*"))

    def _read_claims(self) -> None:
        claims, self._unread_claims = self._unread_claims, {}
        for about, spoken in claims.items():
            name = self.assembly.variables[about].component
            # What runs where is asked of the facts that say so.
            for owner, binding in spoken if self.heads[name]["scheme"] != "names" else ():
                # That something must be there, at whatever release, joins none; nor does a reported failure.
                silent = binding.kind == "limits" and binding.evidence == REPORTED
                if (
                    binding.kind not in JOINS_NONE
                    and not silent
                    and binding.allowed >> self.values[about] & 1
                ):
                    for pair in self._pairs((owner.component, name)):
                        self._claims.setdefault(pair, []).append((name, binding))
                        self._add_neighbours(pair)

    def _limited(self, pair: frozenset[str]) -> bool | None:
        """Whether a fact that joins two components limits their releases, or admits any; None where none joins them."""
        self._read_rows()
        if pair not in self._limits:
            self._read_claims()
            claims = self._claims.get(pair, ())
            limiting = [self._limits_releases(name, binding) for name, binding in claims]
            joining = [limits for limits in limiting if limits is not None]
            # What the wheels of a release go with its build goes with as well.
            if not any(joining) and self._is_built():
                for component in pair:
                    (other,) = pair - {component}
                    joining += [True] if self._admitted(component, other) & self._bit(other) else []
            # Most pairs have no fact: they are not cached, which keeps the rest small.
            if not joining and pair not in self._claims:
                return None
            self._limits[pair] = any(joining) if joining else None
            self._add_neighbours(pair)
        return self._limits[pair]

    def _admitted(self, name: str, other: str) -> int:
        """The releases of another component to which the wheels of one release are limited, as a mask, or nothing."""
        return self._limits_of_wheels(name).get(other, 0)

    def _limits_of_wheels(self, name: str) -> dict[str, int]:
        if name not in self._limited_to:
            self._limited_to[name] = self._read_limits_of_wheels(name)
        return self._limited_to[name]

    def _read_limits_of_wheels(self, subject: str) -> dict[str, int]:
        wheel = self.assembly.scale("from").bit("wheel")
        limits: dict[str, int] = {}
        unread: dict[str, int] = {}
        for name in self.assembly.index.with_builds(subject):
            releases = self._releases(name, subject)
            for group in self.assembly.component(name).binding_groups if releases else ():
                other, conditions = group.component, dict(group.conditions)
                of_wheels = conditions.pop("from", 0 if name == subject else wheel) & wheel
                if not of_wheels or group.kind in JOINS_NONE or not self._meets(conditions):
                    continue
                whole = (2 << len(self.assembly.scale(other).versions)) - 2
                for binding in group.of(releases):
                    if group.evidence != UNKNOWN and binding.allowed & whole != whole:
                        limits[other] = limits.get(other, 0) | binding.allowed
                    elif group.evidence == UNKNOWN and name == subject:
                        unread[other] = unread.get(other, 0) | ~binding.allowed
        return {name: mask & ~unread.get(name, 0) & ~1 for name, mask in limits.items()}

    def _limits_releases(self, name: str, binding: Binding) -> bool | None:
        index = self.assembly.index
        whole = (2 << len(self.assembly.scale(name).versions)) - 2
        if binding.evidence != UNKNOWN and binding.allowed & whole != whole:
            return True
        cites = index.cites(binding.cites)
        known = binding.evidence != UNKNOWN or any(cite.evidence != UNKNOWN for cite in cites)
        if not known:
            return None
        return not all(index.claim(cite.record).selector == "*" for cite in cites)

    def _join(self, names: Iterable[str]) -> None:
        for pair in self._pairs(names):
            self._limits[pair] = True
            self._add_neighbours(pair)

    def _add_neighbours(self, pair: frozenset[str]) -> None:
        for name in pair:
            self._neighbours.setdefault(name, set()).update(pair - {name})

    def _pairs(self, names: Iterable[str]) -> Iterator[frozenset[str]]:
        # A build counts as the component that it is a build of.
        return map(
            frozenset, combinations({self.heads[name]["variant_of"] or name for name in names}, 2)
        )

    def _reaches(self, start: str, goal: str) -> bool:
        """Whether other code leads by facts from bound code to its base: what goes with torch has its toolkit.

        That both go with some NumPy or toolkit says nothing of the two: what is on the way says itself where it leads.
        """
        if not self._is_bound(start, goal):
            start, goal = goal, start
        visited, queue = {start}, [start]
        while queue:
            near = queue.pop()
            for name in self._neighbours.get(near, set()) - visited:
                if not self._limited(frozenset((near, name))):
                    continue
                if near != start and not self._leads(near, name):
                    continue
                if name == goal and near != start and self._is_bound(near, goal):
                    return True
                if self._is_bound(name, goal) or self._is_bound(near, name):
                    visited.add(name)
                    queue.append(name)
        return False

    def _leads(self, component: str, other: str) -> bool:
        """Whether a fact of a part, or a row of both, names another, and not only the other way round."""
        spoken = self._claims.get(frozenset((component, other)), ())
        about = self.assembly.index.with_builds(other)
        return not spoken or any(name in about for name, _ in spoken)


def joined_variables(
    assembly: Assembly,
    target: str,
    claims: Claims,
    rows: Iterable[TestedRow],
    values: Sequence[int],
) -> dict[int, set[int]]:
    """By variable, those that a fact joins its chosen release with."""
    joined: dict[int, set[int]] = {}
    for edge in (*_claimed(assembly, target, claims, values), *_tested(rows, values)):
        for number in edge:
            joined.setdefault(number, set()).update(other for other in edge if other != number)
    return joined


def closure(roots: Iterable[int], edges: Mapping[int, set[int]]) -> set[int]:
    """The variables that lead back to the roots."""
    visited = set(roots)
    queue = list(visited)
    while queue:
        for other in edges.get(queue.pop(), ()):
            if other not in visited:
                visited.add(other)
                queue.append(other)
    return visited


def roots(assembly: Assembly, target: str) -> set[int]:
    """The components that were asked for, and all else whose release the request names."""
    numbers: set[int] = set()
    variables = assembly.by_component(target)
    for name in assembly.request.wanted:
        if name in variables:
            numbers.add(variables[name].number)
    for (owner, name), mask in assembly.requested.items():
        # One bit: the request names a release and not a range.
        if owner == target and mask & (mask - 1) == 0:
            numbers.add(variables[name].number)
    for name in SEVERAL:
        for instance, _ in assembly.named(target, name):
            numbers.add(assembly.instance(target, name, instance).number)
    return numbers


def _claimed(
    assembly: Assembly, target: str, claims: Claims, values: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    index, components = assembly.index, assembly.header["components"]
    for about, bindings in claims.items():
        variable = assembly.variables[about]
        if components[variable.component]["given"] or not values[about]:
            continue
        whole = (2 << variable.count) - 2
        for owner, binding in bindings:
            # That something must be there ties no release of it.
            if binding.kind in JOINS_NONE or not names_releases(index, binding, whole):
                continue
            # What is unknown ties nothing.
            if binding.evidence == UNKNOWN and not binding.allowed >> values[about] & 1:
                continue
            variables = assembly.by_component(target, owner.instance or variable.instance)
            named = {about}
            for name in (owner.component, *binding.conditions):
                other = variables.get(name)
                if other is not None and not components[name]["given"]:
                    named.add(other.number)
            yield tuple(sorted(named))


def names_releases(index: Index, binding: Binding, whole: int) -> bool:
    """Whether a binding names releases of a component, where `whole` is all of them, and is not unknown."""
    cites = index.cites(binding.cites)
    if binding.evidence == UNKNOWN and all(cite.evidence == UNKNOWN for cite in cites):
        return False
    # A claim that admits every release there is joins the two only if it names them: "any" ties nothing.
    return binding.allowed & whole != whole or any(
        index.claim(cite.record).selector != "*" for cite in cites
    )


def _tested(rows: Iterable[TestedRow], values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for row in rows:
        if all(mask >> values[number] & 1 for number, mask, _ in row.terms):
            yield tuple(number for number, _, _ in row.terms)
