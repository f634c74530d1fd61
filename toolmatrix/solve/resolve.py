"""Solves a request and rates how well each chosen version is known, with the facts that support it.

Pure computation: results are values and record numbers of the index; `report` writes the sentences.
"""

from __future__ import annotations

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import BOUNDS, JOINS_NONE, MINIMUM
from toolmatrix.solve.assemble import Assembly, assembled
from toolmatrix.solve.engine import Conflict, settle, solve
from toolmatrix.solve.known import BOUND, UNJOINED, Relations, closure, joined_variables, roots
from toolmatrix.solve.parts import EVIDENCE, SEVERAL, Pin, Statement, expand_rows, only_excludes
from toolmatrix.solve.request import with_default_accelerators
from toolmatrix.solve.revised import TRIES, revised
from toolmatrix.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding, Dispute
    from toolmatrix.finding import Incompatibility
    from toolmatrix.solve.engine import Solution
    from toolmatrix.solve.grounds import Core
    from toolmatrix.solve.known import Claim, Touching
    from toolmatrix.solve.parts import TestedRow, Variable
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.worlds import Outside

    _Solved = tuple[Assembly, tuple[int, ...]]
    """A problem, and the candidates of its solution."""


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


class Resolution(Value):
    """The answer: choices per target in order of preference.

    `hidden` are releases of components that an answer does not show, `values` the candidates as the engine has them.
    `unread` is what no fact decides and the answer rests on, `touching` are pairs of parts that no fact joins, though
    their code or their makers do: with any of these, it is no yes. `set_apart` is what the search gave up on its way
    to this answer, as too little is known of it.
    """

    index: Index
    request: Request
    targets: Mapping[str, tuple[Choice, ...]]
    hidden: tuple[Pin, ...]
    evidence: str
    values: tuple[int, ...]
    unread: tuple[Incompatibility, ...] = ()
    touching: tuple[Touching, ...] = ()
    set_apart: tuple[Statement, ...] = ()

    @property
    def known(self) -> bool:
        """True where the answer is a yes: facts support it, and not only none forbids it."""
        return not self.unread and not any(pair.decides for pair in self.touching)

    def chosen(self, target: str) -> dict[str, str]:
        """Component to version of one target (the first instance of codegen archs and devices)."""
        releases: dict[str, str] = {}
        for choice in self.targets[target]:
            releases.setdefault(choice.component, choice.version)
        return releases


class Unsatisfiable(Value):
    """No answer, for the reasons of independent cores.

    Where releases before the known ones may get round each of the cores, `outside` are their components: that is no no.
    """

    index: Index
    request: Request
    cores: tuple[Core, ...]
    outside: tuple[Outside, ...] = ()


def resolve(
    index: Index, request: Request, *, enforced: bool = False
) -> Resolution | Unsatisfiable:
    """The best answer, or why there is none.

    With `enforced`, by what an installation enforces where that is enough: that the builds of two packages have the
    same line, no installer checks.
    """
    outcome = attempt(index, request)
    return outcome if isinstance(outcome, Resolution) else unsatisfiable(outcome, request, enforced)


def unsatisfiable(outcome: Assembly, request: Request, enforced: bool = False) -> Unsatisfiable:
    """Why a problem that `attempt` made of a request has no answer; `enforced` as for `resolve`."""
    index = outcome.index
    if enforced:
        left = outcome.without(_matching_lines(outcome))
        if isinstance(solve(left.problem()), Conflict):
            outcome = left
    from toolmatrix.solve import grounds, worlds
    from toolmatrix.solve.engine import conflict

    cores = conflict.cores(outcome.problem(), outcome.request_nogoods)
    return Unsatisfiable(
        index=index,
        request=request,
        cores=grounds.independent(index, [grounds.core(outcome, core) for core in cores]),
        outside=worlds.outside(outcome, cores),
    )


def _matching_lines(assembly: Assembly) -> list[int]:
    """The statements about builds of one package beside builds of another."""
    packages = {name: head["variant_of"] for name, head in assembly.header["components"].items()}
    return [
        number
        for number, statement in enumerate(assembly.statements)
        if (first := packages.get(statement.subject))
        and (second := packages.get(statement.component))
        and first != second
    ]


def attempt(index: Index, request: Request) -> Resolution | Assembly:
    """The best answer, or the problem that has none; without an accelerator where the default gives an answer.

    An unread fact never moves what was asked for to another release. Of the rest every unread fact binds that can, so
    that an answer rests on what is known; one that cannot is `unread` in the answer: neither yes nor no.
    """
    first, *others = with_default_accelerators(index, request)
    refused = _attempt(index, first)
    # Where no accelerator helps, explain the default: the others would blame accelerators that the request never named.
    for other in others if isinstance(refused, Assembly) else ():
        answer = _attempt(index, other)
        if isinstance(answer, Resolution):
            return answer
    return refused


def _attempt(index: Index, request: Request) -> Resolution | Assembly:
    # What the context leaves absent has no part in an answer, and may be among the reasons why there is none.
    for whole in (False, True):
        assembly = assembled(index, request, whole=whole)
        if request.min_evidence:
            known = _known(assembly)
            if not isinstance(known, Assembly):
                return attach_evidence(*known)
            if whole:
                return known
            continue
        unread, solution = without_unread(assembly)
        if not isinstance(solution, Conflict):
            break
    else:
        return assembly.without(unread)
    if unread:
        solution = settle(assembly.problem(), unread, _anchors(assembly), solution)
    return _joined(assembly, attach_evidence(assembly, solution.values))


def without_unread(assembly: Assembly) -> tuple[list[int], Solution | Conflict]:
    """The unread statements that give way at first, and the best solution without them."""
    # A release without a known build, or what no known archive has, is taken where no other will do.
    last = assembly.last
    unread = [number for number in assembly.unread if number not in last]
    while isinstance(solution := solve((left := assembly.without(unread)).problem()), Conflict):
        core = [left.statements[number] for number in solution.core]
        # Targets are independent: what has to be dropped on one may stay on the others.
        clashing = {statement.target for statement in core}
        more = {
            number
            for number in last.difference(unread)
            if assembly.statements[number].target in clashing
        }
        unread = [number for number in assembly.unread if number in more.union(unread)]
        # A conflict without any of them stays one when they are dropped.
        if not any(assembly.statements[number] in core for number in more):
            break
    return unread, solution


def _joined(assembly: Assembly, answer: Resolution) -> Resolution:
    """An answer that facts support with the same releases of what was asked for, where pairs of another one touch.

    Each target has its own, as if it were asked for alone.
    """
    if answer.known:
        return answer
    broken = assembly.broken(answer.values)
    for target in assembly.request.targets:
        # Where something unread is in the way, no other release of the rest makes it known.
        if any(assembly.statements[number].target == target for number in broken):
            continue
        anchored = [
            Statement(((number, ~(1 << answer.values[number])),), "", "", "", 0)
            for number in _anchors(assembly)
        ]
        known = _supported(assembly.stating(anchored), answer.values, broken, target)
        answer = attach_evidence(*known) if known else answer
    return answer


def _known(assembly: Assembly, rounds: int = -1) -> _Solved | Assembly:
    """The best answer whose weakest evidence is the one asked for or better, or the problem that has none."""
    from toolmatrix.solve.demand import Demand

    # Each answer that is known too little becomes reasons, which also refuse others: mostly a few rounds are enough.
    demand = Demand(assembly)
    while not isinstance(solution := solve(assembly.problem()), Conflict):
        answers = targets_of(assembly, solution.values).values()
        weak = [statement for answer in answers for statement in demand.refused(answer)]
        touching = (pair for answer in answers for pair in answer.touching() if pair.decides)
        weak += _touching_nogoods(assembly, solution.values, touching)
        if not weak:
            return assembly, solution.values
        # A trial of a change gives up early: only a change that is quickly confirmed is offered.
        rounds -= 1
        if not rounds:
            break
        assembly = assembly.stating(weak)
    return assembly


def _anchors(assembly: Assembly) -> list[int]:
    """The variables that nothing unread moves: what is wanted first, and of the rest what is no series and no tool."""
    request, components = assembly.request, assembly.header["components"]
    leading = request.leading
    # Of a series, as in `torch triton==3.5`, a release that is known will do, and any of a toolkit, its libraries, a
    # compiler or Python that the request admits.
    loose = {ask.component for ask in request.asks if ask.selector.startswith("==")}
    for name in leading:
        head = components[name]
        if not head["code"] and (head["major"] or head["under"] or head["scheme"] == "series"):
            loose.add(name)
    named = [variable for variable in assembly.variables if variable.component in leading]
    return [
        variable.number
        for variable in named
        if variable.component == named[0].component or variable.component not in loose
    ]


def possible(index: Index, request: Request) -> Resolution | None:
    """The best answer of those that rest on nothing unread, without looking for a reason where there is none."""
    return next((attach_evidence(*solved) for solved in _solved(index, request)), None)


def supported(index: Index, request: Request) -> Resolution | None:
    """The best answer that facts support, or that of `possible` where the first few pairs that touch lead to none."""
    solved = _best_supported(index, request)
    return None if solved is None else attach_evidence(*solved)


def supported_release(index: Index, request: Request, component: str) -> str:
    """The release of a component in the answer of `supported`; nothing where there is none, or none in it."""
    solved = _best_supported(index, request)
    if solved is None:
        return ""
    assembly, values = solved
    picked = (assembly.pick(target, component) for target in request.targets)
    releases = (assembly.version(v, values[v.number]) for v in picked if v)
    return next(filter(None, releases), "")


def _best_supported(index: Index, request: Request) -> _Solved | None:
    best: _Solved | None = None
    for assembly, values in _solved(index, request):
        if known := _supported(assembly, values):
            return known
        best = best or (assembly, values)
    return best


def _solved(index: Index, request: Request) -> Iterator[_Solved]:
    """The best answer that rests on nothing unread, by default accelerator, each with its problem."""
    for variant in with_default_accelerators(index, request):
        assembly = Assembly(index, variant)
        if variant.min_evidence:
            known = _known(assembly, TRIES)
            if not isinstance(known, Assembly):
                yield known
        elif not isinstance(solution := solve(assembly.problem()), Conflict):
            yield assembly, solution.values


def _supported(
    assembly: Assembly, values: tuple[int, ...], unread: Sequence[int] = (), target: str = ""
) -> _Solved | None:
    """The best answer that facts support, on one target or on all, if few pairs that touch are before it.

    The statements that are `unread` do not bind.
    """

    def objections(assembly: Assembly, values: tuple[int, ...]) -> list[Statement]:
        touching = (
            pair
            for answer in targets_of(assembly, values).values()
            for pair in answer.touching()
            if pair.decides and target in ("", pair.target)
        )
        return _touching_nogoods(assembly, values, touching)

    return revised(assembly, values, objections, unread)


def _touching_nogoods(
    assembly: Assembly, values: tuple[int, ...], touching: Iterable[Touching]
) -> list[Statement]:
    """Nogoods for the pairs of releases that are not known to work together."""
    stated = []
    of_target: dict[str, Relations] = {}
    for pair in touching:
        first = assembly.variable(pair.target, pair.component)
        about = pair.target, pair.component, pair.other, 0
        terms = [(first.number, 1 << values[first.number])]
        # Devices are given, each by itself.
        if other := assembly.pick(pair.target, pair.other):
            if pair.target not in of_target:
                of_target[pair.target] = Relations(assembly, pair.target, values, {}, ())
            relations = of_target[pair.target]
            # Where rows name others, none but these will do.
            excluded = ~pair.tested & ~1 if pair.tested else 1 << values[other.number]
            if pair.reason == BOUND:
                # An extension of a framework may be joined with the toolkit by another release of that.
                between = [
                    (variable.number, 1 << values[variable.number])
                    for variable in relations.between_them(pair.component, pair.other)
                ]
                terms += between
                if all(mask == 1 for _, mask in between):
                    # Then facts of the two alone join them, whichever their releases.
                    for joined, releases in relations.joinable(pair.component, pair.other).items():
                        unjoined = [(first.number, releases), (other.number, ~joined & ~1)]
                        stated.append(Statement(tuple(sorted([*unjoined, *between])), *about))
            elif pair.reason == UNJOINED and not relations.declares(pair.component, pair.other):
                # Then no other release of that is independent of this one: none will do but what some fact joins.
                for joined, releases in relations.joinable(pair.component, pair.other).items():
                    if releases >> values[first.number] & 1:
                        excluded |= ~joined & ~1
            terms.append((other.number, excluded))
        stated.append(Statement(tuple(sorted(terms)), *about))
    return stated


def attach_evidence(assembly: Assembly, values: tuple[int, ...]) -> Resolution:
    """Attach evidence, facts and disputes to a solution."""
    answers = targets_of(assembly, values)
    targets = {target: answer.choices() for target, answer in answers.items()}
    touching = [pair for answer in answers.values() for pair in answer.touching()]
    weakest = words.weakest(choice.evidence for choices in targets.values() for choice in choices)
    unread = assembly.broken(values)
    hidden = tuple(_hidden(assembly, values))
    grounds: tuple[Incompatibility, ...] = ()
    if unread:
        from toolmatrix.solve import grounds as reading

        pins = [
            Pin(target, choice.component, choice.version)
            for target, choices in targets.items()
            for choice in choices
        ]
        grounds = reading.grounds(assembly, unread, [*pins, *hidden])
    return Resolution(
        index=assembly.index,
        request=assembly.request,
        targets=targets,
        hidden=hidden,
        # An answer is no better known than the least known of its choices.
        evidence=words.UNKNOWN if unread or any(pair.decides for pair in touching) else weakest,
        values=values,
        unread=grounds,
        touching=tuple(touching),
        set_apart=assembly.set_apart,
    )


def targets_of(assembly: Assembly, values: tuple[int, ...]) -> dict[str, TargetAnswer]:
    """A solution, target by target."""
    return {target: TargetAnswer(assembly, target, values) for target in assembly.request.targets}


def _hidden(assembly: Assembly, values: tuple[int, ...]) -> Iterator[Pin]:
    for (target, name), variables in assembly.by_name.items():
        release = assembly.version(variables[0], values[variables[0].number])
        if release is not None and assembly.header["components"][name]["hidden"]:
            yield Pin(target, name, release)


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
        # What is not reached is absent.
        return all(bits.get(component, 1) & mask for component, mask in conditions.items())

    def touching(self) -> Iterator[Touching]:
        """The pairs of parts that touch, without a fact that joins them."""
        relations = Relations(self.assembly, self.target, self.values, self.claims, self.rows)
        return relations.touching()

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
