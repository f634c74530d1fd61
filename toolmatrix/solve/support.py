"""How well each choice of an answer is known: the facts that support it, and those that contradict it."""

from __future__ import annotations

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import records
from toolmatrix.factbase.records import BOUNDS, JOINS_NONE, MINIMUM
from toolmatrix.solve.known import UNTIED, Relations, Touching, closure, joined_variables, roots
from toolmatrix.solve.parts import EVIDENCE, SEVERAL, expand_rows, only_excludes
from toolmatrix.solve.request import REQUIREMENT, Ask
from toolmatrix.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.records import Binding, Dispute
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.known import Claim
    from toolmatrix.solve.parts import TestedRow, Variable


class Cite(NamedTuple):
    """One fact behind a choice: the record of the claim, its evidence as used here, the rules it was widened by."""

    record: int
    evidence: str
    rules: tuple[str, ...]


class Rival(NamedTuple):
    """A contradicting claim, its evidence, and the claim that decided: both by their records."""

    rival: int
    evidence: str
    deciding: int


class Choice(Value):
    """One component of an answer; `disputed` are claims that contradict it."""

    target: str
    component: str
    instance: int
    version: str
    evidence: str
    cites: tuple[Cite, ...]
    disputed: tuple[Rival, ...]
    parent: str


def targets_of(assembly: Assembly, values: tuple[int, ...]) -> dict[str, TargetAnswer]:
    """A solution, target by target."""
    return {target: TargetAnswer(assembly, target, values) for target in assembly.request.targets}


class TargetAnswer:
    """One target of an answer with its evidence: one pass over the facts, then each choice by itself."""

    def __init__(self, assembly: Assembly, target: str, values: tuple[int, ...]) -> None:
        self.assembly = assembly
        self.index = assembly.index
        self.components = assembly.header["components"]
        self.target = target
        self.wanted = assembly.request.wanted
        self.values = values
        named = assembly.by_name
        self.variables = [
            v for v in assembly.variables if v in named.get((target, v.component), ())
        ]
        self.chosen = {v.number: assembly.version(v, values[v.number]) for v in self.variables}
        self.bits = {v.number: 1 << values[v.number] for v in self.variables}
        # By instance: most targets have the one of number 0 alone.
        self._bits_by_name: dict[int, dict[str, int]] = {}
        self.claims: dict[int, list[tuple[Variable, Binding]]] = {}
        self.disputes: dict[int, list[Dispute]] = {}
        self.rows = expand_rows(assembly.support_groups(target), values)
        # Each choice asks the rows that name it, which are few of all.
        self._naming: dict[int, list[TestedRow]] = {}
        for row in self.rows:
            for number, mask, _ in row.terms:
                if mask >> values[number] & 1:
                    self._naming.setdefault(number, []).append(row)
        for variable in self.variables:
            if self.chosen[variable.number] is not None:
                self.gather(variable)
        self.edges = joined_variables(assembly, target, self.claims, self.rows, values)
        # The variables whose releases facts tie to the request.
        self.tied = closure(roots(assembly, target), self.edges)

    def gather(self, owner: Variable) -> None:
        """The bindings and disputes of a chosen subject that hold here, by the variable they speak about."""
        bit = self.bits[owner.number]
        component = self.assembly.component(owner.component)
        variables = self.assembly.by_component(self.target, owner.instance)
        for group in component.binding_groups:
            if not group.releases & bit:
                continue
            if group.conditions and not self.holds(group.conditions, owner.instance):
                continue
            claims = [(owner, binding) for binding in group.of(bit)]
            for name in group.named:
                of_its_own = name not in SEVERAL or owner.component in SEVERAL
                if of_its_own and name in variables:
                    self.claims.setdefault(variables[name].number, []).extend(claims)
                # What a component says of codegen archs or devices it says of each of them.
                elif name in SEVERAL:
                    for several in self.assembly.by_name.get((self.target, name), ()):
                        self.claims.setdefault(several.number, []).extend(claims)
        for dispute in component.disputes:
            about = variables.get(dispute.component)
            if (
                dispute.mask & bit
                and about is not None
                and self.holds(dispute.conditions, owner.instance)
            ):
                self.disputes.setdefault(about.number, []).append(dispute)

    def holds(self, conditions: Mapping[str, int], instance: int) -> bool:
        """True if conditions hold of what was chosen, of several instances the given one."""
        if not conditions:
            return True
        if instance not in self._bits_by_name:
            named = self.assembly.by_component(self.target, instance)
            self._bits_by_name[instance] = {name: self.bits[v.number] for name, v in named.items()}
        bits = self._bits_by_name[instance]
        # A component outside the search is absent.
        return all(bits.get(component, 1) & mask for component, mask in conditions.items())

    def touching(self) -> Iterator[Touching]:
        """The pairs of parts that touch, without a fact that joins them."""
        relations = Relations(self.assembly, self.target, self.values, self.claims, self.rows)
        yield from relations.touching()
        built = relations.built()
        for tool in self.visible() if built else ():
            builds = self.components[tool.component]["way"] == "source"
            # Named in the request, the same tool would be no yes either.
            if builds and self.choice(tool).evidence == words.UNKNOWN:
                yield Touching(self.target, tool.component, built, UNTIED, tested=0)

    def contested(self) -> Iterator[Ask]:
        """Lines for the packages that the answer leaves out, and of which its parts together admit no release."""
        left: dict[str, int] = {}
        limits: dict[str, list[Binding]] = {}
        variables = self.assembly.by_component(self.target)
        present = {name for name, variable in variables.items() if self.chosen[variable.number]}
        for owner in self.variables:
            bit = self.bits[owner.number]
            if self.chosen[owner.number] is None or self.components[owner.component]["given"]:
                continue
            for group in self.assembly.component(owner.component).binding_groups:
                name = group.component
                if (
                    group.kind == "limits"
                    and name not in present
                    and group.releases & bit
                    and group.evidence != words.UNKNOWN
                    and self.holds(group.conditions, owner.instance)
                ):
                    for binding in group.of(bit):
                        # What none of the known releases satisfies may be satisfied by others.
                        if binding.allowed & ~1:
                            left[name] = left.get(name, -1) & binding.allowed
                            limits.setdefault(name, []).append(binding)
        bounded = self.bounded()
        for name, mask in left.items():
            admitted = self.unrefused(name, mask & ~1, bounded)
            # A limit alone, such as a known failure, is no reason for the package to be there.
            if not admitted and any(map(self.is_requirement, limits[name])):
                yield Ask(
                    component=name,
                    selector="*",
                    text=name,
                    option=REQUIREMENT,
                    target=self.target,
                    implied=True,
                )

    def bounded(self) -> dict[str, int]:
        """The chosen releases of packages that lines of the request bound; others give way to what is required."""
        limited = {
            ask.component
            for ask in self.assembly.request.asks
            if ask.selector != "*" and not ask.implied
        }
        variables = self.assembly.by_component(self.target)
        # What goes with a framework is chosen by its own facts, and most requests are about one.
        return {
            name: self.bits[variables[name].number]
            for name in limited & variables.keys()
            if self.components[name]["code"] and not self.components[name]["framework"]
        }

    def unrefused(self, name: str, mask: int, bounded: Mapping[str, int]) -> int:
        """The releases of a package, of some, that go with the bounded packages of the answer."""
        for group in self.index.component(name).binding_groups if bounded else ():
            bit = bounded.get(group.component, 1)
            if bit > 1 and group.kind in records.REFUSE and self.holds(group.conditions, 0):
                for binding in group.of(mask) if group.evidence != words.UNKNOWN else ():
                    mask &= -1 if binding.allowed & bit else ~binding.mask
        return mask

    def is_requirement(self, binding: Binding) -> bool:
        """True for a limit by METADATA, which does more than exclude: an installer brings the package."""
        cites = self.index.cites(binding.cites)
        return any(self.index.claim(cite.record).says == records.REQUIREMENT for cite in cites)

    def choices(self) -> tuple[Choice, ...]:
        """The choices that an answer shows."""
        return tuple(map(self.choice, self.visible()))

    def visible(self) -> list[Variable]:
        """The variables of these choices."""
        return [
            variable
            for variable in self.variables
            if self.chosen[variable.number] is not None
            and not self.components[variable.component]["given"]
            and not self.components[variable.component]["hidden"]
        ]

    def claims_of_others(self, variable: Variable) -> list[Claim]:
        """The claims of others about a choice."""
        return [
            (owner, binding)
            for owner, binding in self.claims.get(variable.number, ())
            if owner is not variable
            and not self.components[owner.component]["given"]
            # A build is of a release; it is no reason to have it.
            and self.components[owner.component]["variant_of"] != variable.component
        ]

    def choice(self, variable: Variable) -> Choice:
        claims = self.claims_of_others(variable)
        cites, evidence = self.known(variable, claims)
        return Choice(
            target=self.target,
            component=variable.component,
            instance=variable.instance,
            version=self.chosen[variable.number] or "",
            evidence=evidence,
            cites=tuple(dict.fromkeys([*cites, *self.offers(variable)])),
            disputed=self.disputed(variable),
            parent=next((owner.component for owner, fact in claims if fact.kind not in BOUNDS), ""),
        )

    def known(self, variable: Variable, claims: Sequence[Claim]) -> tuple[list[Cite], str]:
        """The facts that support a choice, and the evidence that they give it."""
        head = self.components[variable.component]
        if head["variant_of"]:
            return self.released(variable)
        if variable.number not in self.tied and not head["flag"]:
            # No fact ties it to the request: as far as is known, any other release would do as well.
            return [Cite(self.release(variable), words.UNKNOWN, ())], words.UNKNOWN
        # What was asked for first is there for that reason, and for no fact.
        if variable.component in self.wanted[:1]:
            return self.released(variable)
        if variable.component == "arch":
            # What a build holds is what it is: no row about other builds makes it better known.
            carried = [
                cite
                for owner, binding in claims
                if self.components[owner.component]["variant_of"]
                for cite in self.cites(binding.cites, self.bits[owner.number], variable)
            ]
            if carried:
                return carried, _best(carried)
        # A subject chosen later, such as an image that carries the toolkit, was chosen to fit: it is no evidence.
        before = [(owner, binding) for owner, binding in claims if owner.number < variable.number]
        required = [
            cite
            for owner, binding in before
            if binding.kind not in (*JOINS_NONE, "limits")
            for cite in self.cites(binding.cites, self.bits[owner.number], variable)
        ]
        tested, rank = self.tested(variable)
        if required or tested:
            return [*required, *tested], _best(required, rank)
        cites = self.limited(variable, before) or self.own(variable)
        return (cites, _best(cites)) if cites else self.released(variable)

    def limited(self, variable: Variable, before: Sequence[Claim]) -> list[Cite]:
        """Claims that limit this component, by subjects chosen before it."""
        limited: list[Cite] = []
        decisive: list[Cite] = []
        bit, floor = self.bits[variable.number], self.components[variable.component]["floor"]
        for owner, binding in before:
            # A limit that does not admit the release was dropped as unknown, and does not support it.
            if binding.kind == "limits" and binding.allowed & bit:
                if only_excludes(self.index, binding):
                    continue
                cites = self.cites(binding.cites, self.bits[owner.number], variable)
                limited += cites
                # Of several floors the one at the chosen release decides.
                if floor and not binding.allowed & (bit - 1) & ~1:
                    decisive += cites
        return decisive or limited

    def offers(self, variable: Variable) -> list[Cite]:
        """The offers that hold the chosen release, of what was chosen after it: they rank nothing."""
        cites = []
        for owner, binding in self.claims.get(variable.number, ()):
            if binding.kind == "limits" and owner.number > variable.number:
                cites += [
                    cite
                    for cite in self.cites(binding.cites, self.bits[owner.number], variable)
                    if self.index.record(cite.record).kind == "offers"
                ]
        return cites

    def own(self, variable: Variable) -> list[Cite]:
        """Claims of the chosen release about what was chosen before it."""
        cites = []
        bit = self.bits[variable.number]
        flag = self.components[variable.component]["flag"]
        variables = self.assembly.by_component(self.target, variable.instance)
        for group in self.assembly.component(variable.component).binding_groups:
            about = variables.get(group.component)
            if not group.releases & bit or about is None or self.chosen[about.number] is None:
                continue
            head = self.components[group.component]
            if head["hidden"] or group.kind in JOINS_NONE or (head["given"] and not flag):
                continue
            # What is tied to nothing was chosen for no reason, and is none itself.
            if about.number in self.tied and self.holds(group.conditions, variable.instance):
                for binding in group.of(bit):
                    cites += self.cites(binding.cites, bit, about)
        return cites

    def cites(self, record: int, bit: int, about: Variable | None = None) -> list[Cite]:
        """The claims behind a binding or row that cover a subject release; of offers those that admit `about`."""
        candidate = bit.bit_length() - 1
        return [
            Cite(cited.record, cited.evidence, tuple(cited.rules))
            for cited in self.index.cites(record)
            if cited.covers(candidate)
            # What a minimum leaves unread says nothing of what it admits.
            and MINIMUM not in cited.rules
            and (about is None or self.offered(cited.record, about))
        ]

    def offered(self, claim: int, about: Variable) -> bool:
        record = self.index.claim(claim)
        if record.kind != "offers":
            return True
        mask = self.assembly.mask(record.component, record.selector)
        return bool(mask & self.bits[about.number])

    def tested(self, variable: Variable) -> tuple[list[Cite], str]:
        """The tested rows of this choice together with what was chosen before it, at the best level."""
        best = (0, 0)
        rows: list[TestedRow] = []
        number = variable.number
        for row in self._naming.get(number, ()):
            level = row.level(number, self.values[number], self.values)
            if level is not None and level >= best:
                if level > best:
                    best, rows = level, []
                rows.append(row)
        cites = []
        for row in rows:
            # A row about this component is cited for all that it names, any other row here for this one alone.
            spoken = {variable.component}
            if row.subject == variable.component:
                spoken |= {self.assembly.variables[term[0]].component for term in row.terms}
            cites += [
                cite
                for cite in self.cites(row.cites, self.bits[row.owner])
                if self.index.claim(cite.record).component in spoken
            ]
        return cites, words.word(best[1] % EVIDENCE)

    def release(self, variable: Variable) -> int:
        """The record of the chosen release."""
        component = self.assembly.component(variable.component)
        return component.releases[self.bits[variable.number].bit_length() - 2]

    def released(self, variable: Variable) -> tuple[list[Cite], str]:
        """No fact joins it to the rest: its release is enough for a flag or what was asked for, else it is unknown."""
        record = self.release(variable)
        requested = (
            variable.component in self.wanted
            or (self.target, variable.component) in self.assembly.requested
            or self.components[variable.component]["flag"]
            or self.components[variable.component]["variant_of"]
        )
        evidence = self.index.record(record).evidence if requested else words.UNKNOWN
        return [Cite(record, evidence, ())], evidence

    def disputed(self, variable: Variable) -> tuple[Rival, ...]:
        """Rivals that matter here: tested rows with what was excluded, claims that exclude what was chosen."""
        bit = self.bits[variable.number]
        return tuple(
            dict.fromkeys(
                Rival(dispute.rival, dispute.evidence, dispute.deciding)
                for dispute in self.disputes.get(variable.number, ())
                if dispute.kind == "tested" or not dispute.allowed & bit
            )
        )


def _best(cites: Sequence[Cite], least: str = words.UNKNOWN) -> str:
    """The best evidence among facts, or the least that is known without them."""
    return max((least, *(cite.evidence for cite in cites)), key=words.rank)
