"""Facts + request -> a problem for the engine: only the components the request can reach, as masks.

A variable is a component of a target (`x86/cuda`), a component shared by aligned targets (`/python`), or one of several
codegen archs or devices of a target (`x86/arch@1`). Its masks are those of the facts: bit 0 means "absent", which the
engine prefers among equals, as an unneeded component is best absent.
"""

from __future__ import annotations

from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.records import BOUNDS, BindingGroup
from toolmatrix.solve import preferences
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.parts import (
    SEVERAL,
    Closed,
    Statement,
    TestedRowGroup,
    Variable,
    candidate_domains,
    expand_rows,
    withdrawal_statements,
)
from toolmatrix.solve.request import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.parts import TestedRow
    from toolmatrix.solve.request import Request


class Reachable:
    """The part of the matrix that a request can reach: its variables, in the order in which the engine decides them.

    What the given context leaves absent is not reached, except in a `whole` one, which shows the fact that excludes it.
    `remaining` is, by target, what the request leaves of each component reached, `asked` the same of those it names,
    `multi_instance` the numbers of the codegen archs and devices that a target has several of.
    """

    def __init__(self, index: Index, request: Request, *, whole: bool = False) -> None:
        self.index = index
        self.request = request
        self.whole = whole
        self.header = index.header
        self.component = index.component
        self.scale = index.scale
        self.requested: dict[tuple[str, str], int] = {}
        for target in request.targets:
            for ask in self.asks(target):
                # What was asked for is not absent: bit 0 is out.
                admitted = self.requested.get((target, ask.component), ~1)
                self.requested[target, ask.component] = admitted & self.mask(
                    ask.component, ask.selector
                )
        self.remaining: dict[str, dict[str, int]] = {target: {} for target in request.targets}
        self.by_name: dict[tuple[str, str], list[Variable]] = {}
        self.excluded: dict[str, set[str]] = {}
        for target in request.targets:
            _reach(self, target)
        self.variables = _arranged(self)
        self.multi_instance = {
            target: {
                name: instances
                for name in SEVERAL
                if (instances := {v.instance for v in self.by_name.get((target, name), ())} - {0})
            }
            for target in request.targets
        }
        # `by_component` is asked for every fact.
        self._by_component: dict[tuple[str, int], dict[str, Variable]] = {}

    def mask(self, component: str, selector: str) -> int:
        """The releases that a selector admits."""
        return self.index.scale(component).select(selector)

    def asks(self, target: str) -> Iterator[Ask]:
        """The lines of the request that hold for a target."""
        return (ask for ask in self.request.asks if ask.target in ("", target))

    def named(self, target: str, component: str) -> Iterator[tuple[int, str]]:
        """The instance numbers and names of the codegen archs or of the devices asked for on a target."""
        archs = self.request.archs
        # A device has an arch of its own beside those that are named, so that its numbers begin behind theirs.
        first, names = (1, archs) if component == "arch" else (1 + len(archs), self.request.devices)
        for instance, name in enumerate(names, first):
            if (target, name) not in self.request.unavailable:
                yield instance, name

    def version(self, variable: Variable, candidate: int) -> str | None:
        """The release of a candidate of the engine, None for absent."""
        if not candidate:
            return None
        return self.component(variable.component).versions[candidate - 1]

    def possible(self, target: str, conditions: Mapping[str, int]) -> bool:
        """True if the conditions could hold under the request: a component not reached is absent."""
        left = self.remaining[target]
        for component, mask in conditions.items():  # noqa: SIM110 - asked thousands of times, and `all` takes twice as long
            if not left.get(component, 1) & mask:
                return False
        return True

    def certain(self, left: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """The components that the given context limits by itself, and what it leaves of each."""
        components = self.header["components"]
        for name in [name for name in left if components[name]["given"]]:
            for group in self.component(name).binding_groups:
                if not group.alternatives and all(
                    not left.get(other, 1) & ~mask for other, mask in group.conditions.items()
                ):
                    for mask, allowed in zip(group.masks, group.alloweds, strict=True):
                        if not left[name] & ~mask:
                            yield group.component, allowed

    def instances(self, target: str, names: Sequence[str]) -> Sequence[int]:
        """The instance numbers over which a statement is repeated: each codegen arch or device in turn, else just 0."""
        shared = [numbers for name, numbers in self.multi_instance[target].items() if name in names]
        return sorted(set.intersection(*shared)) if shared else (0,)

    def by_component(self, target: str, instance: int = 0) -> dict[str, Variable]:
        """The variables of a target by component, of the given instance where there are several."""
        if (target, instance) not in self._by_component:
            self._by_component[target, instance] = {
                name: variable
                for (owner, name), variables in self.by_name.items()
                if owner == target
                for variable in reversed(variables)
                if variable.instance in (0, instance)
            }
        return self._by_component[target, instance]

    def pick(self, target: str, component: str, instance: int = 0) -> Variable | None:
        """The variable of a component, if it is reached."""
        return self.by_component(target, instance).get(component)

    def variable(self, target: str, component: str, instance: int = 0) -> Variable:
        """`pick` of a component that is known to be there. Raises KeyError if it is not."""
        return self.by_component(target, instance)[component]

    def instance(self, target: str, component: str, number: int) -> Variable:
        """The variable of one of several codegen archs or devices."""
        return next(v for v in self.by_name[target, component] if v.instance == number)


def _reach(reachable: Reachable, target: str) -> None:
    for owner, name in reachable.requested:
        if owner == target:
            _add(reachable, target, name)
            reachable.remaining[target][name] = reachable.requested[owner, name]
    for name, head in reachable.header["components"].items():
        if head["given"]:
            _add(reachable, target, name)
    for owner, component, _ in reachable.request.policies:
        if owner == target:
            _add(reachable, target, component)
    for instance, _ in reachable.named(target, "arch"):
        _add(reachable, target, "arch", instance)
    for instance, _ in reachable.named(target, "device"):
        # A device runs code that is made for some arch, be it named or not.
        _add(reachable, target, "device", instance)
        _add(reachable, target, "arch", instance)
    _spread(reachable, target)


def _add(reachable: Reachable, target: str, component: str, instance: int = 0) -> bool:
    request = reachable.request
    variables = reachable.by_name.setdefault((target, component), [])
    if any(variable.instance == instance for variable in variables):
        return False
    reachable.remaining[target].setdefault(component, -1)
    # An aligned component is one variable, which stands under each of its targets.
    shared = component in request.align and not instance
    for other in request.targets if shared else ():
        for variable in reachable.by_name.get((other, component), ()):
            if variable.target == "":
                variables.append(variable)
                return True
    head = reachable.header["components"][component]
    # Names have no age: that they come in some order is no reason to turn it round.
    rising = request.prefer == "oldest" and head["scheme"] != "names"
    oldest = rising or head["prefer"] == "oldest" or component in request.oldest
    count = len(reachable.component(component).versions)
    variables.append(Variable("" if shared else target, component, instance, count, oldest))
    return True


def _spread(reachable: Reachable, target: str) -> None:
    """Follow `requires`, `carries` and `needs` whose conditions could hold, until nothing is added."""
    # A condition that cannot hold yet may do so when more is reached: it waits, and is looked at in each round.
    queue = [name for owner, name in reachable.by_name if owner == target]
    left = reachable.remaining[target]
    certain = () if reachable.whole else reachable.certain(left)
    excluded = {name for name, allowed in certain if not allowed & ~1 and name not in left}
    reachable.excluded[target] = excluded
    unknown = excluded.union(SEVERAL)
    waiting: list[tuple[Mapping[str, int], Sequence[str]]] = []
    while queue:
        for name in queue:
            can = left[name]
            waiting += [
                (group.conditions, group.named)
                for group in reachable.index.requirements(name)
                if (group.alternatives or group.component not in left) and can & group.releases
            ]
        queue = []
        still = []
        for conditions, needed in waiting:
            if conditions and not reachable.possible(target, conditions):
                still.append((conditions, needed))
                continue
            for name in needed:
                if name not in left and name not in unknown and _add(reachable, target, name):
                    queue.append(name)
        waiting = still


def _arranged(reachable: Reachable) -> list[Variable]:
    # Given context comes first, then what was asked for, then the order of the front page.
    components = reachable.header["components"]
    # What is found by its name alone, and listed nowhere, comes behind all others.
    further = (*reachable.request.leading, *(name for _, name in reachable.by_name))
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys((*components, *further)))}
    # Of what was asked for, frameworks come first: their rows name all else, and speak from the first component on.
    leading = sorted(reachable.request.leading, key=lambda name: not components[name]["framework"])
    # A device that was asked for comes before what the front page has behind it: it chooses its toolkit. So do hidden
    # components before what needs them, as its sources; before others they would be best absent.
    needing: dict[str, set[str]] = {}
    for other in leading:
        for group in reachable.index.requirements(other):
            for name in group.named:
                needing.setdefault(name, set()).add(other)
    sooner = [name for name, head in components.items() if head["hidden"] and name in needing]
    sooner += ["device"] * bool(reachable.request.devices)
    for name in sooner:
        behind = [
            ranks[other] > ranks[name]
            and not components[other]["framework"]
            and (name == "device" or other in needing[name])
            for other in leading
        ]
        if True in behind or name == "device":
            leading.insert([*behind, True].index(True), name)
    wanted = {name: rank for rank, name in enumerate(leading)}
    targets = {name: rank for rank, name in enumerate(("", *reachable.request.targets))}

    def order(variable: Variable) -> tuple[int, int, int, int]:
        name = variable.component
        if components[name]["given"]:
            group, inner = 0, ranks[name]
        elif name == reachable.request.first:
            group, inner = 1, -1
        elif name in wanted:
            group, inner = 1, wanted[name]
        else:
            group, inner = 2, ranks[name]
        return group, inner, targets[variable.target], variable.instance

    # An aligned variable stands under each of its targets.
    distinct = dict.fromkeys(v for instances in reachable.by_name.values() for v in instances)
    for number, variable in enumerate(arranged := sorted(distinct, key=order)):
        variable.number = number
    return arranged


def _of_request(reachable: Reachable) -> Iterator[Statement]:
    # Each line forbids, as a nogood of one term, everything that it does not admit.
    def only(variable: Variable, allowed: int, target: str, ask: Ask) -> Statement:
        terms = ((variable.number, (2 << variable.count) - 1 & ~allowed),)
        return Statement(terms, target, "", ask, 0)

    for target in reachable.request.targets:
        for ask in reachable.asks(target):
            allowed = reachable.mask(ask.component, ask.selector)
            yield only(reachable.by_name[target, ask.component][0], allowed, target, ask)
        whole = 0
        named = list(reachable.named(target, "arch"))
        for instance, name in named:
            mask = reachable.mask("arch", name)
            whole |= mask
            ask = Ask(component="arch", selector=name, text=f"--arch {name}", option="arch")
            yield only(reachable.instance(target, "arch", instance), mask, target, ask)
        names = ",".join(name for _, name in named)
        text = f"--arch {names}" if names else ""
        code = Ask(component="arch", selector=names or "*", text=text, option="arch")
        for instance, name in reachable.named(target, "device"):
            mask = reachable.mask("device", name)
            written = reachable.request.named(name)
            text = f"--device '{written}'" if " " in written else f"--device {written}"
            implied = bool(reachable.request.boards)
            ask = Ask(
                component="device", selector=name, text=text, option="device", implied=implied
            )
            yield only(reachable.instance(target, "device", instance), mask, target, ask)
            # Its code is one of what is made at all, or any where nothing is said.
            yield only(reachable.instance(target, "arch", instance), whole or ~1, target, code)


def _of_facts(reachable: Reachable, *, silent: bool) -> list[Statement]:
    stated: list[Statement] = []
    for target, name in reachable.by_name:
        remaining = reachable.remaining[target]
        left = remaining[name]
        several = reachable.multi_instance[target]
        for group in reachable.component(name).binding_groups:
            # Most limits are about what is not reached, and bind nothing.
            if group.component not in remaining and group.kind in BOUNDS:
                continue
            if not left & group.releases or (silent and group.evidence == UNKNOWN):
                continue
            conditions = group.conditions
            if conditions and not reachable.possible(target, conditions):
                continue
            # With several archs or devices a fact is stated of each of those that it speaks about.
            components = [name, *conditions, group.component] if several else ()
            for instance in reachable.instances(target, components):
                named = reachable.by_component(target, instance)
                stated += _nogoods(target, name, left, group, named)
    return stated


def _nogoods(
    target: str, name: str, left: int, group: BindingGroup, named: Mapping[str, Variable]
) -> list[Statement]:
    """The bindings of a group that say something of the releases left of their subject, each as a nogood.

    A binding is broken where its conditions hold and it does not; one that always holds has no nogood.
    """
    terms = [(named[name].number, mask) for name, mask in group.conditions.items() if name in named]
    about, subject, make = named.get(group.component), named[name].number, Statement._make
    rows = enumerate(zip(group.masks, group.alloweds, strict=True))
    if group.alternatives or about is None:
        # All alternatives are absent at once; what is not reached is absent.
        terms += [(named[name].number, 1) for name in group.alternatives if name in named]
        return [
            make((((subject, mask), *terms), target, name, group, position))
            for position, (mask, allowed) in rows
            if mask & left and not allowed & 1
        ]
    whole, number = (2 << about.count) - 1, about.number
    return [
        make((((subject, mask), *terms, (number, excluded)), target, name, group, position))
        for position, (mask, allowed) in rows
        if mask & left and (excluded := whole & ~allowed)
    ]


class Assembly(Reachable):
    """The problem of a request: what it can reach, and what is stated of that, each statement a nogood."""

    def __init__(
        self, index: Index, request: Request, *, silent: bool = False, whole: bool = False
    ) -> None:
        """`silent` leaves out facts that only record that something is unknown."""
        super().__init__(index, request, whole=whole)
        self.domains = candidate_domains(self)
        stated = [*_of_request(self), *withdrawal_statements(self), *_of_facts(self, silent=silent)]
        if request.stipulations:
            from toolmatrix.solve import demand

            stated += demand.statements(self)
        self._set_statements(stated)
        self.set_apart: tuple[Statement, ...] = ()
        self._row_groups: dict[str, list[TestedRowGroup]] = {}

    def _set_statements(self, statements: list[Statement]) -> None:
        self.statements = statements
        self.nogoods = [statement.terms for statement in statements]
        self._unread: list[int] | None = None

    @property
    def unread(self) -> list[int]:
        """The numbers of the statements that only record something unknown, in the order of the components chosen."""
        if self._unread is None:
            unread = [
                number
                for number, statement in enumerate(self.statements)
                if isinstance(fact := statement.origin, BindingGroup) and fact.evidence == UNKNOWN
            ]
            # Whatever the order of files.
            self._unread = sorted(unread, key=lambda number: sorted(self.nogoods[number]))
        return self._unread

    @property
    def last(self) -> set[int]:
        """The unread statements that are dropped last: where dropping all others is not enough."""
        # Of releases without a known build the matrix says what they compute on. What a hidden component says of
        # another is where that comes from: all that is packaged comes before what was not read. Where a distribution is
        # not named, one whose packages were read comes before others.
        return {number for number in self.unread if self._is_last(self.statements[number])}

    def _is_last(self, statement: Statement) -> bool:
        subject, about = statement.subject, statement.component
        head = self.header["components"][subject]
        return (
            (subject == "distro" and (statement.target, subject) not in self.requested)
            or (about == "accelerator" and bool(self.index.builds_of(subject)))
            or (head["hidden"] and head["under"] == about)
        )

    def without(self, numbers: Sequence[int]) -> Assembly:
        """The same without some statements."""
        out = set(numbers)
        left = [statement for number, statement in enumerate(self.statements) if number not in out]
        return self._with(left) if out else self

    def stating(self, further: Sequence[Statement]) -> Assembly:
        """The same with further statements."""
        other = self._with([*self.statements, *further])
        other.set_apart += tuple(statement for statement in further if statement.subject)
        return other

    def _with(self, statements: list[Statement]) -> Assembly:
        # All but the statements stays as it is; assembling again would read every fact once more.
        other = object.__new__(Assembly)
        other.__dict__.update(self.__dict__)
        other._set_statements(statements)
        return other

    def broken(self, values: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the unread statements that an answer breaks."""
        return tuple(
            number
            for number in self.unread
            if all(mask >> values[variable] & 1 for variable, mask in self.nogoods[number])
        )

    @property
    def request_nogoods(self) -> tuple[int, ...]:
        """The numbers of the nogoods that come from the request."""
        return tuple(
            number
            for number, statement in enumerate(self.statements)
            if isinstance(statement.origin, Ask)
            or (isinstance(statement.origin, Closed) and statement.origin.day)
        )

    def problem(self) -> Problem:
        """The engine's problem."""
        sizes = [variable.count + 1 for variable in self.variables]
        oldest = sum(1 << variable.number for variable in self.variables if variable.oldest)
        # -1: each component is best absent where nothing needs it.
        return Problem(sizes, self.nogoods, preferences.Supports(self), self.domains, oldest, -1)

    def narrowed(self, target: str) -> dict[str, int]:
        """`left`, less what the given context alone excludes."""
        left = dict(self.remaining[target])
        for name, allowed in self.certain(left):
            if name in left:
                left[name] &= allowed
        return left

    def rows(self, target: str, left: Mapping[str, int]) -> Iterator[TestedRowGroup]:
        """The tested rows, as supports, in groups.

        A row that joins a component chosen earlier outweighs one that joins later components alone (what the framework
        was tested with, before what the toolkit is said to go with), then evidence decides: both are in the weight. A
        row can never speak if `left` rules out its first component.
        """
        start, count = 0, len(self.variables)
        for owner, name in self.by_name:
            remaining = self.remaining[owner][name]
            for group in self.component(name).row_groups if owner == target else ():
                # Most groups of a framework are about other releases: these need not be looked at row by row.
                if remaining != -1 and not any(map(remaining.__and__, group.subjects)):
                    continue
                if not self.excluded[owner].isdisjoint(group.components):
                    continue
                if not group.conditions or self.possible(target, group.conditions):
                    for instance in self.instances(target, group.components):
                        named = self.by_component(target, instance)
                        # Nothing is said of one component alone.
                        if name in named and sum(map(named.__contains__, group.components)) > 1:
                            yield TestedRowGroup(
                                target, name, group, named, count, start, remaining, left
                            )
                        # Rows keep their places in the index, whichever of them are made.
                        start += len(group.cites)

    def support_groups(self, target: str) -> list[TestedRowGroup]:
        """The rows that may speak on a target, made when first asked for: a refusal does without."""
        if target not in self._row_groups:
            self._row_groups[target] = list(self.rows(target, self.narrowed(target)))
        return self._row_groups[target]

    @property
    def tested_rows(self) -> list[TestedRow]:
        """The rows that may speak, one by one."""
        return [
            row
            for target in self.request.targets
            for row in expand_rows(self.support_groups(target))
        ]

    def every_row(self) -> list[TestedRow]:
        """All rows, also those that can never speak here: they show what is known of other releases."""
        return [
            row for target in self.request.targets for row in expand_rows(self.rows(target, {}))
        ]


_last: Assembly | None = None
"""The problem that was put together last. It has its index, which has not it: a circle would keep files open."""


def assembled(index: Index, request: Request, *, whole: bool = False) -> Assembly:
    """The problem of a request; the last one is cached, since explaining its answer needs it again."""
    global _last  # noqa: PLW0603 - one cache for all callers
    last = _last
    if (
        last is None
        or last.index is not index
        or last.request is not request
        or last.whole != whole
    ):
        # The one before goes first: two take twice the memory.
        last = _last = None
        last = _last = Assembly(index, request, whole=whole)
    return last
