"""Facts + request -> a problem for the engine: only the components the request can reach, as masks.

A variable is a component of a target (`x86/cuda`), a component shared by aligned targets (`/python`), or one of several
codegen archs or devices of a target (`x86/arch@1`). Its masks are those of the facts: bit 0 means "absent", which the
engine prefers among equals, as a component nobody needs is best absent.
"""

from __future__ import annotations

from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve import preferences
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.parts import SEVERAL, Reason, RowHead, Variable, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import Binding
    from toolmatrix.facts.versions import Scale
    from toolmatrix.solve.parts import TestedRow, TestedRows
    from toolmatrix.solve.request import Ask, Request


class Assembly:
    """A problem with what its variables, nogoods and supports mean."""

    def __init__(self, index: Index, request: Request, *, silent: bool = False) -> None:
        """`silent` leaves out what only says that nobody knows."""
        self.index = index
        self.request = request
        self.silent = silent
        self.header = index.header
        self.component = index.component
        self.places = {name: place for place, name in enumerate(self.header["components"])}
        self.variables: list[Variable] = []
        self.remaining: dict[str, dict[str, int]] = {target: {} for target in request.targets}
        """By target, what the request leaves of each component reached."""
        self.by_name: dict[tuple[str, str], list[Variable]] = {}
        self.nogoods: list[tuple[tuple[int, int], ...]] = []
        self.unread: list[int] = []
        """The nogoods that only say that nobody knows."""
        self._reasons: list[tuple[Any, ...]] = []
        self._parts: dict[tuple[str, int], dict[str, Variable]] = {}
        self.reach()
        self.multi_instance = {
            target: {
                name: numbers
                for name in SEVERAL
                if (
                    numbers := {part.instance for part in self.by_name.get((target, name), ())}
                    - {0}
                )
            }
            for target in request.targets
        }
        self.arrange()
        self.restrict()
        self.bind()
        self._sheaves: dict[str, list[TestedRows]] = {}
        if request.min_evidence:
            from toolmatrix.solve import demand

            for terms, one, other, target in demand.nogoods(self):
                self.nogoods.append(terms)
                self._reasons.append(("evidence", target, one, other))

    def silenced(self) -> Assembly:
        """The same without what only says that nobody knows."""
        if self.request.min_evidence:
            return Assembly(self.index, self.request, silent=True)
        other = object.__new__(Assembly)
        other.__dict__.update(self.__dict__)
        unread = set(self.unread)
        other.nogoods, other._reasons = (
            [part for number, part in enumerate(parts) if number not in unread]
            for parts in (self.nogoods, self._reasons)
        )
        other.unread = []
        return other

    # components and scales

    def scale(self, name: str) -> Scale:
        """The releases of a component, for reading selectors."""
        return self.index.scale(name)

    def mask(self, component: str, selector: str) -> int:
        return self.scale(component).select(selector)

    # reach

    def reach(self) -> None:
        """Instantiate every component that some satisfiable condition makes necessary, until nothing is added."""
        self.asked: dict[tuple[str, str], int] = {}
        for target in self.request.targets:
            for ask in self.asks(target):
                key = (target, ask.component)
                whole = (2 << len(self.component(ask.component).versions)) - 2
                self.asked[key] = self.asked.get(key, whole) & self.mask(
                    ask.component, ask.selector
                )
                self.add(target, ask.component)
                self.remaining[target][ask.component] = self.asked[key]
            for name, part in self.header["components"].items():
                if part["given"]:
                    self.add(target, name)
            for owner, component, _ in self.request.policies:
                if owner == target:
                    self.add(target, component)
            for number, _ in self.archs(target):
                self.add(target, "arch", number)
            for number, _ in self.devices(target):
                self.add(target, "device", number)
                self.add(target, "arch", number)
            self.spread(target)

    def asks(self, target: str) -> Iterator[Ask]:
        """The lines of the request that hold for a target."""
        return (ask for ask in self.request.asks if ask.target in ("", target))

    def archs(self, target: str) -> Iterator[tuple[int, str]]:
        """The instance numbers and names of the codegen archs asked for on a target."""
        for place, name in enumerate(self.request.archs):
            if (target, name) not in self.request.apart:
                yield place + 1, name

    def devices(self, target: str) -> Iterator[tuple[int, str]]:
        """The instance numbers, behind those of the archs, and names of the devices of a target."""
        for place, name in enumerate(self.request.devices):
            if (target, name) not in self.request.apart:
                yield len(self.request.archs) + place + 1, name

    def add(self, target: str, component: str, instance: int = 0) -> bool:
        held = self.by_name.setdefault((target, component), [])
        if any(part.instance == instance for part in held):
            return False
        self.remaining[target].setdefault(component, -1)
        shared = component in self.request.align and not instance
        if shared:
            for other in self.request.targets:
                twin = next(
                    (
                        part
                        for part in self.by_name.get((other, component), ())
                        if part.target == ""
                    ),
                    None,
                )
                if twin is not None:
                    held.append(twin)
                    return True
        part = self.header["components"][component]
        rising = self.request.prefer == "oldest" and part["scheme"] != "names"
        oldest = rising or part["prefer"] == "oldest" or component in self.request.oldest
        count = len(self.component(component).versions)
        variable = Variable("" if shared else target, component, instance, count, oldest)
        held.append(variable)
        self.variables.append(variable)
        return True

    def spread(self, target: str) -> None:
        """Follow `requires`, `carries` and `needs` whose conditions could hold, until nothing is added."""
        queue = [name for owner, name in self.by_name if owner == target]
        left = self.remaining[target]
        waiting: list[tuple[Mapping[str, int], Sequence[str]]] = []
        while queue:
            for name in queue:
                can = left[name]
                waiting += [
                    (binding.conditions, binding.named)
                    for binding in self.component(name).bindings
                    if binding.kind != "limits"
                    and (binding.alternatives or binding.component not in left)
                    and can & binding.mask
                ]
            queue = []
            still = []
            for conditions, needed in waiting:
                if conditions and not self.possible(target, conditions):
                    still.append((conditions, needed))
                    continue
                for name in needed:
                    if name not in left and name not in SEVERAL and self.add(target, name):
                        queue.append(name)
            waiting = still

    def possible(self, target: str, conditions: Mapping[str, int]) -> bool:
        """Whether the conditions could hold under the request: a component not reached is absent."""
        left = self.remaining[target]
        for component, mask in conditions.items():  # noqa: SIM110 - asked thousands of times, and `all` takes twice as long
            if not left.get(component, 1) & mask:
                return False
        return True

    # the engine's view

    def arrange(self) -> None:
        """Number the variables: given context, then what was asked for, then the order of the front page.

        Of what was asked for, frameworks come first: their rows name all else, and speak from the first component on.
        A device that was asked for comes before what the front page has behind it: it chooses its toolkit. So do
        hidden components, which tell where something comes from.
        """
        components = self.header["components"]
        asked = sorted(self.request.wanted, key=lambda name: not components[name]["framework"])
        sooner = [name for name, part in components.items() if part["hidden"]]
        sooner += ["device"] * bool(self.request.devices)
        for name in sooner:
            behind = [
                self.places[other] > self.places[name] and not components[other]["framework"]
                for other in asked
            ]
            if True in behind or name == "device":
                asked.insert([*behind, True].index(True), name)
        wanted = {name: place for place, name in enumerate(asked)}
        targets = {name: place for place, name in enumerate(("", *self.request.targets))}

        def place(variable: Variable) -> tuple[int, int, int, int]:
            name = variable.component
            if components[name]["given"]:
                group, inner = 0, self.places[name]
            elif name in wanted:
                group, inner = 1, wanted[name]
            else:
                group, inner = 2, self.places[name]
            return group, inner, targets[variable.target], variable.instance

        self.variables.sort(key=place)
        for number, variable in enumerate(self.variables):
            variable.number = number

    def version(self, variable: Variable, candidate: int) -> str | None:
        """The release of a candidate of the engine, None for absent."""
        if not candidate:
            return None
        return self.component(variable.component).versions[candidate - 1]

    def forbid(self, terms: Sequence[tuple[Variable, int]], *reason: Any) -> None:
        """Add a nogood: all terms (masks of the facts) at once cannot be. `reason` becomes a Reason when asked for."""
        self.nogoods.append(tuple([(variable.number, mask) for variable, mask in terms]))
        self._reasons.append(reason)

    def reason(self, number: int) -> Reason:
        """Why a nogood is there."""
        kind, target, *rest = self._reasons[number]
        if kind == "ask":
            return Reason(kind=kind, target=target, ask=rest[0])
        if kind == "evidence":
            return Reason(
                kind=kind,
                target=target,
                subject=rest[0],
                component=rest[1],
                rule=self.request.min_evidence,
            )
        subject, binding = rest
        return Reason(
            kind=binding.kind,
            target=target,
            subject=subject,
            component=binding.component,
            mask=binding.mask,
            conditions=binding.conditions,
            allowed=binding.allowed,
            alternatives=tuple(binding.alternatives),
            evidence=binding.evidence,
            cites=binding.cites,
        )

    def restrict(self) -> None:
        """Turn the request into unary nogoods, and drop what is withdrawn or not yet known at `--at`."""
        for target in self.request.targets:
            for ask in self.asks(target):
                variable = self.by_name[target, ask.component][0]
                allowed = self.mask(ask.component, ask.selector)
                whole = (2 << variable.count) - 1
                self.forbid([(variable, whole & ~allowed)], "ask", target, ask)
            self.restrict_codegen(target)
            for owner, component, releases in self.request.policies:
                if owner == target:
                    self.by_name[target, component][0].domain = 1 | self.mask(
                        component, " ".join(releases)
                    )
        named: dict[str, set[str]] = {}
        for ask in self.request.asks:
            named.setdefault(ask.component, set()).add(ask.selector.lstrip("="))
        brought = self.brought()
        for variable in self.variables:
            part = self.component(variable.component)
            dropped, kept = part.yanked, 0
            if self.request.at:
                for place, date in enumerate(part.dates):
                    if date > self.request.at:
                        dropped |= 2 << place
            for allowed in brought.get(variable.component, ()) if dropped else ():
                # Nobody has to find what a build brings: where only withdrawn releases will do, they are taken.
                kept |= allowed if not allowed & ~dropped & ~1 else 0
            dropped &= ~kept
            exactly = named.get(variable.component)
            if dropped and (
                not exactly or exactly.isdisjoint(self.scale(variable.component).named(dropped))
            ):
                variable.domain &= ~dropped

    def brought(self) -> dict[str, list[int]]:
        """What builds bring with them, by component, each time as the releases that will do."""
        found: dict[str, list[int]] = {}
        for name in {name: None for _, name in self.by_name}:
            part = self.component(name)
            for binding in part.bindings if part.brings else ():
                if binding.kind == "requires" and binding.mask & part.brings:
                    found.setdefault(binding.component, []).append(binding.allowed)
        return found

    def restrict_codegen(self, target: str) -> None:
        from toolmatrix.solve.request import Ask

        whole = 0
        named = list(self.archs(target))
        for number, name in named:
            variable = self.instance(target, "arch", number)
            mask = self.mask("arch", name)
            whole |= mask
            ask = Ask(component="arch", selector=name, text=f"--arch {name}", option="arch")
            self.forbid([(variable, (2 << variable.count) - 1 & ~mask)], "ask", target, ask)
        listed = ",".join(name for _, name in named)
        for number, name in self.devices(target):
            variable = self.instance(target, "device", number)
            mask = self.mask("device", name)
            ask = Ask(component="device", selector=name, text=f"--device {name}", option="device")
            self.forbid([(variable, (2 << variable.count) - 1 & ~mask)], "ask", target, ask)
            code = self.instance(target, "arch", number)
            allowed = whole or (2 << code.count) - 2
            only = Ask(
                component="arch",
                selector=listed or "*",
                text=f"--arch {listed}" if listed else "",
                option="arch",
            )
            self.forbid([(code, (2 << code.count) - 1 & ~allowed)], "ask", target, only)

    def instance(self, target: str, component: str, number: int) -> Variable:
        return next(part for part in self.by_name[target, component] if part.instance == number)

    # facts

    def bind(self) -> None:
        """Turn every binding of a reached subject into nogoods."""
        for target, name in self.by_name:
            left, several, parts = (
                self.remaining[target][name],
                self.multi_instance[target],
                self.parts(target),
            )
            for binding in self.component(name).bindings:
                conditions = binding.conditions
                if not left & binding.mask or (
                    conditions and not self.possible(target, conditions)
                ):
                    continue
                if binding.evidence == UNKNOWN and self.silent:
                    continue
                if several:
                    for number in self.instances(target, [name, *conditions, binding.component]):
                        self.state(target, name, binding, self.parts(target, number))
                else:
                    self.state(target, name, binding, parts)

    def state(
        self, target: str, subject: str, binding: Binding, parts: Mapping[str, Variable]
    ) -> None:
        """Add the nogood of a binding: its conditions hold and it does not. There is none if it always holds."""
        # What is not reached is absent and, being possible, holds.
        variable = parts[subject]
        terms = [(variable.number, binding.mask)]
        for other, mask in binding.conditions.items():
            if other in parts:
                terms.append((parts[other].number, mask))
        if binding.alternatives:
            terms += [(parts[name].number, 1) for name in binding.alternatives if name in parts]
        elif binding.component in parts:
            variable = parts[binding.component]
            broken = (2 << variable.count) - 1 & ~binding.allowed
            if not broken:
                return
            terms.append((variable.number, broken))
        elif binding.allowed & 1:
            return
        if binding.evidence == UNKNOWN:
            self.unread.append(len(self.nogoods))
        self.nogoods.append(tuple(terms))
        self._reasons.append(("fact", target, subject, binding))

    def instances(self, target: str, names: Sequence[str]) -> Sequence[int]:
        """The instance numbers over which a statement is repeated: each codegen arch or device in turn, else just 0."""
        found = [held for name, held in self.multi_instance[target].items() if name in names]
        return sorted(set.intersection(*found)) if found else (0,)

    def parts(self, target: str, number: int = 0) -> dict[str, Variable]:
        """The variables of a target by component, of the given instance where there are several."""
        if (target, number) not in self._parts:
            self._parts[target, number] = {
                name: part
                for (owner, name), held in self.by_name.items()
                if owner == target
                for part in reversed(held)
                if part.instance in (0, number)
            }
        return self._parts[target, number]

    def pick(self, target: str, component: str, number: int = 0) -> Variable | None:
        """The variable of a component, if it is reached."""
        return self.parts(target, number).get(component)

    def variable(self, target: str, component: str, number: int = 0) -> Variable:
        """`pick` of a component that is known to be there. Raises KeyError if it is not."""
        return self.parts(target, number)[component]

    def narrowed(self, target: str) -> dict[str, int]:
        """`left`, less what the given context alone excludes."""
        left = dict(self.remaining[target])
        components = self.header["components"]
        for name in [name for name in left if components[name]["given"]]:
            for binding in self.component(name).bindings:
                certain = not left[name] & ~binding.mask and all(
                    not left.get(other, 1) & ~mask for other, mask in binding.conditions.items()
                )
                if certain and binding.component in left and not binding.alternatives:
                    left[binding.component] &= binding.allowed
        return left

    def rows(self, target: str, left: Mapping[str, int]) -> Iterator[TestedRows]:
        """The tested rows, as supports, in sheaves.

        A row that joins a component chosen earlier outweighs one that joins later components alone
        (what the framework was tested with, before what the toolkit is said to go with), then
        evidence decides: both are in the weight. A row can never speak if `left` rules out its
        first component.
        """
        start, count = 0, len(self.variables)
        for owner, name in self.by_name:
            asked = self.remaining[owner][name]
            for group in self.component(name).row_groups if owner == target else ():
                if asked != -1 and not any(map(asked.__and__, group.subjects)):
                    continue
                if not group.conditions or self.possible(target, group.conditions):
                    for number in self.instances(target, group.components):
                        parts = self.parts(target, number)
                        if name in parts:
                            head = RowHead(target, name, group, parts, count, start)
                            yield from head.sheaves(asked, left)
                        start += len(group.cites)

    def sheaves(self, target: str) -> list[TestedRows]:
        """The rows that may speak on a target, made when first asked for: a refusal does without."""
        if target not in self._sheaves:
            self._sheaves[target] = list(self.rows(target, self.narrowed(target)))
        return self._sheaves[target]

    @property
    def tested_rows(self) -> list[TestedRow]:
        """The rows that may speak, one by one."""
        return [row for target in self.request.targets for row in told(self.sheaves(target))]

    def every_row(self) -> list[TestedRow]:
        """All rows, also those that can never speak here: they tell what is known of other releases."""
        return [row for target in self.request.targets for row in told(self.rows(target, {}))]

    def problem(self) -> Problem:
        """The engine's problem."""
        sizes = [variable.count + 1 for variable in self.variables]
        domains = [variable.domain for variable in self.variables]
        oldest = sum(1 << variable.number for variable in self.variables if variable.oldest)
        return Problem(sizes, self.nogoods, preferences.Supports(self), domains, oldest, -1)

    @property
    def asked_nogoods(self) -> tuple[int, ...]:
        """The numbers of the nogoods that come from the request."""
        return tuple(number for number, reason in enumerate(self._reasons) if reason[0] == "ask")
