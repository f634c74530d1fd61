"""What facts say of pairs of releases by themselves, without solving for the rest: grids of components, and partners.

A grid gives for CI every consistent combination of some components, and every excluded one with the reason. A cell is
`yes`, `no` or `unknown` (no fact speaks), with the evidence and the records that say so. Conditions on further
components must hold for all of their releases that the request admits, or the fact is left out. What a build runs on
follows from the codegen archs that it holds and those that a device runs. Where no fact joins a component that is
installed and another, those about its builds do: a release goes with what one of its builds goes with, and not with
what every one of them refuses.

Partners are what goes with some releases of a component, by one pass over the claims about the two. Of every other
component each release is tested with them, allowed or refused by a hard fact, or unknown. A fact counts
where its conditions hold whatever else is chosen; what was asked under several requests (such as from source, and as a
wheel) goes where it goes under one of them, and is refused where all that could have it refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from itertools import product
from math import prod

from toolmatrix.errors import UsageError
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import FAILS, Binding, ComponentFacts, RowGroup
from toolmatrix.solve.assemble import Assembly, Reachable
from toolmatrix.solve.engine import Problem
from toolmatrix.solve.engine.conflict import combinations, excludes, excluding, explain
from toolmatrix.solve.grounds import Core, core
from toolmatrix.solve.parts import Closed, Pin, Variable, bits_of, only_excludes, union
from toolmatrix.solve.preferences import limits
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Resolution, attempt
from toolmatrix.value import NamedTuple, Value


class GridCell(Value):
    """One pair: the word, its evidence, and the numbers of the records that say so."""

    verdict: str
    evidence: str
    records: tuple[int, ...]


class Grid(Value):
    """Rows and columns by release; `spoken`: whether any release of the rows ever goes with a column."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GridCell, ...], ...]
    spoken: tuple[bool, ...]


def grid(assembly: Assembly, target: str, rows: str, columns: str) -> Grid:
    """The grid of two components over the releases that the request admits."""
    maker = _Grid(assembly, target, rows, columns)
    down, across = maker.admitted(rows), maker.admitted(columns)
    return Grid(
        rows=tuple(assembly.component(rows).versions[position] for position in down),
        columns=tuple(assembly.component(columns).versions[position] for position in across),
        cells=tuple(tuple(maker.cell(row, column) for column in across) for row in down),
        spoken=tuple(bool(maker.ever >> column + 1 & 1) for column in across),
    )


def joins(index: Index, binding: Binding) -> bool:
    """True if a hard fact is about releases: that a component has to be there, whichever, joins no two."""
    everything = (2 << len(index.component(binding.component).versions)) - 2
    if binding.kind == "limits" or binding.allowed & everything != everything:
        return True
    cited = index.cites(binding.cites)
    return any(index.claim(cite.record).selector != "*" for cite in cited)


def _certain(left: Mapping[str, int], conditions: Mapping[str, int]) -> bool:
    """True if conditions hold whatever else is chosen, as only the given context can ensure."""
    # What is not reached is absent.
    return all(not left.get(name, 1) & ~mask for name, mask in conditions.items())


class _Statement(NamedTuple):
    """Facts or a row about the pair, as masks of their subject and the other; `turned`: columns are the subject.

    `records` are those that say so, where the `cites` of builds were read before.
    """

    mask: int
    allowed: int
    evidence: str
    cites: tuple[int, ...]
    turned: bool
    records: tuple[int, ...]
    excludes: bool

    def speaks(self, row: int, column: int) -> bool:
        """True if its subject is at the release of the pair."""
        return bool(self.mask >> (column if self.turned else row) + 1 & 1)

    def admits(self, row: int, column: int) -> bool:
        """True if it lets the other be at the release of the pair."""
        return bool(self.allowed >> (row if self.turned else column) + 1 & 1)


class _Grid:
    def __init__(self, assembly: Assembly, target: str, rows: str, columns: str) -> None:
        self.assembly = assembly
        self.target = target
        self.left = assembly.remaining[target]
        self.hard: list[_Statement] = []
        self.soft: list[_Statement] = []
        for subject, other, turned in ((rows, columns, False), (columns, rows, True)):
            self.gather(subject, other, turned=turned)
        self.built: list[_Statement] = []
        self.closed: list[_Statement] = []
        if self.of(rows) == self.of(columns) == "" and self.installed():
            for subject, other, turned in ((rows, columns, False), (columns, rows, True)):
                self.through_builds(subject, other, turned=turned)
        self.ever = 0
        for fact in (*self.hard, *self.soft, *self.built):
            # Of a fact about a column it is enough that it admits any row: bit 0 is no release.
            admitting = (fact.mask if fact.allowed > 1 else 0) if fact.turned else fact.allowed
            self.ever |= 0 if fact.excludes else admitting

    def gather(self, subject: str, other: str, *, turned: bool) -> None:
        """The hard facts about the pair, and the rows that name both."""
        component = self.assembly.component(subject)
        for fact in component.bindings:
            binds = fact.component == other and fact.kind != "needs"
            if binds and _certain(self.left, fact.conditions) and joins(self.assembly.index, fact):
                about = fact.mask, fact.allowed, fact.evidence
                excludes = fact.kind == FAILS
                self.hard.append(_Statement(*about, (fact.cites,), turned, (), excludes=excludes))
        if other == "device" and self.of(subject):
            self.hard += self.running(subject, turned=turned)
        for group in component.row_groups:
            if other in group.components[1:] and _certain(self.left, group.conditions):
                position = group.components.index(other, 1)
                known = words.weaker(group.evidence, group.evidences[position])
                for mask, allowed, cites in zip(
                    group.subjects, group.columns[position], group.cites, strict=True
                ):
                    self.soft.append(
                        _Statement(mask, allowed, known, (cites,), turned, (), excludes=False)
                    )

    def of(self, component: str) -> str:
        """The component that the releases of another are builds of."""
        return self.assembly.header["components"][component]["variant_of"]

    def running(self, builds: str, *, turned: bool) -> Iterator[_Statement]:
        """What facts say of builds and devices by way of the archs that the one holds and the other runs."""
        index, devices = self.assembly.index, self.assembly.component("device")
        runs = [limits(index, "device", "arch", 2 << rank) for rank in range(len(devices.versions))]
        known = [
            fact for fact in devices.bindings if (fact.component, fact.kind) == ("arch", "limits")
        ]
        worst = words.weakest(fact.evidence for fact in known)
        for fact in self.assembly.component(builds).bindings:
            if (
                fact.component == "arch"
                and fact.kind == "limits"
                and _certain(self.left, fact.conditions)
            ):
                # Bit 0 is no arch, and a device without facts about its archs runs nothing that is known.
                archs = fact.allowed & ~1
                fits = sum(2 << at for at, mask in enumerate(runs) if mask > 0 and mask & archs)
                cites = fact.cites, *(limit.cites for limit in known)
                evidence = words.weaker(fact.evidence, worst)
                yield _Statement(fact.mask, fits, evidence, cites, turned, (), excludes=False)

    def installed(self) -> bool:
        """True if the request admits nothing but what was built before."""
        return self.left.get("from", -1) == self.assembly.scale("from").bit("wheel")

    def through_builds(self, subject: str, other: str, *, turned: bool) -> None:
        """What follows for the releases of a component from what facts say of its builds and another one."""
        builds = self.assembly.index.builds_of(subject)
        if not builds:
            return
        facts = _Grid(self.assembly, self.target, builds, other).hard
        can = self.possible(builds)
        releases: dict[int, int] = {}
        for binding in self.assembly.component(builds).bindings:
            if binding.component == subject and not binding.allowed & binding.allowed - 1:
                known = releases.get(binding.allowed, 0)
                releases[binding.allowed] = known | binding.mask & can
        for release, build_mask in releases.items():
            fits, known, evidences = 0, 0, []
            cites: list[int] = []
            for build in bits_of(build_mask):
                # What was not read, or in part, refuses nothing.
                about = [s for s in facts if s.mask & build and s.evidence != words.UNKNOWN]
                if not about:
                    continue
                allowed = ~1
                for statement in about:
                    allowed &= statement.allowed
                evidence = words.weakest(s.evidence for s in about)
                cited = self.touching((cite for s in about for cite in s.cites), build)
                self.built.append(
                    _Statement(release, allowed, evidence, (), turned, cited, excludes=False)
                )
                fits, known = fits | allowed, known | build
                evidences.append(evidence)
                cites += cited
            if build_mask and known == build_mask:
                records = tuple(dict.fromkeys(cites))
                weakest = words.weakest(evidences)
                self.closed.append(
                    _Statement(release, fits, weakest, (), turned, records, excludes=False)
                )

    def possible(self, builds: str) -> int:
        """The builds of the releases asked for that are for the machine and accelerator of the target."""
        heads, of, mask = self.assembly.header["components"], self.of(builds), -1
        requested = self.assembly.requested.get((self.target, of), -1)
        left = {**self.left, of: requested}
        for fact in self.assembly.component(builds).bindings:
            about = fact.component
            # What else a build requires is a question of the cells.
            is_given = fact.kind != "needs" and (about == of or heads[about]["given"])
            if is_given and _certain(self.left, fact.conditions) and not fact.allowed & left[about]:
                mask &= ~fact.mask
        return mask

    def admitted(self, component: str) -> list[int]:
        facts = self.assembly.component(component)
        requested = self.assembly.requested.get((self.target, component), -1)
        if self.of(component):
            requested &= self.possible(component)
        # As in an answer: nothing withdrawn, and nothing that was not yet released on the day of `--at`.
        usable = requested & ~facts.yanked
        at = self.assembly.request.at
        return [
            position
            for position, date in enumerate(facts.dates)
            if usable >> position + 1 & 1 and not (at and date > at)
        ]

    def cell(self, row: int, column: int) -> GridCell:
        """Hard facts decide; a tested row says yes with its own evidence where no hard fact does."""
        both = 2 << row | 2 << column
        allowing = [statement for statement in self.hard if statement.speaks(row, column)]
        refusing = [statement for statement in allowing if not statement.admits(row, column)]
        soft = [statement for statement in self.soft if statement.speaks(row, column)]
        # What facts say of a release by itself is no question of its builds.
        if not allowing and not soft:
            refusing = [
                statement
                for statement in self.closed
                if statement.speaks(row, column) and not statement.admits(row, column)
            ]
        if refusing:
            # That something was not read refuses nothing: it only leaves open what others allow.
            best = max(refusing, key=lambda statement: words.rank(statement.evidence))
            # What follows from facts about both is cited for both.
            subjects = both if len(best.cites) > 1 else 2 << (column if best.turned else row)
            records = best.records or self.touching(best.cites, subjects)
            verdict = "unknown" if best.evidence == words.UNKNOWN else "no"
            return GridCell(verdict=verdict, evidence=best.evidence, records=records)
        allowing = [
            statement
            for statement in allowing
            if statement.evidence != words.UNKNOWN and not statement.excludes
        ]
        admitting = allowing or [
            statement
            for statement in (*self.soft, *self.built)
            if statement.speaks(row, column) and statement.admits(row, column)
        ]
        if not admitting:
            return GridCell(verdict="unknown", evidence=words.UNKNOWN, records=())
        best = max(admitting, key=lambda statement: words.rank(statement.evidence))
        records = best.records or self.touching(best.cites, both)
        return GridCell(verdict="yes", evidence=best.evidence, records=records)

    def touching(self, numbers: Iterable[int], bits: int) -> tuple[int, ...]:
        """The records of some cites that are about any of some releases of their subjects."""
        cites = [cite for number in numbers for cite in self.assembly.index.cites(number)]
        return tuple(cite.record for cite in cites if cite.touches(bits))


LIMIT = 20_000
"""Combinations looked at; more is a mistake in the request rather than a CI matrix."""


class Cells(Value):
    """Combinations of releases of the varied components on one target, the excluded ones each with a core."""

    target: str
    consistent: tuple[tuple[str, ...], ...]
    excluded: tuple[tuple[tuple[str, ...], Core], ...]


def grid_cells(assembly: Assembly, target: str, varied: Sequence[str]) -> Cells:
    """All combinations of the releases that the request admits. Raises UsageError when there are too many."""
    variables = [
        variable for name in varied if (variable := assembly.pick(target, name)) is not None
    ]
    numbers = [variable.number for variable in variables]
    problem = assembly.problem()
    sides = [_admitted(assembly, target, variable, problem) for variable in variables]
    # Counted before anything is made: the product may be of millions.
    count = prod(map(len, sides))
    if count > LIMIT:
        raise UsageError(
            "too many combinations",
            expected=f"at most {LIMIT}",
            found=str(count),
            help="narrow them with `--where`, as in --where 'tensorflow>=2.6,<2.9'",
        )
    good = set(combinations(problem, numbers))
    consistent, excluded = [], []
    cores: list[tuple[int, ...]] = []
    for combination in product(*sides):
        names = tuple(
            assembly.version(variable, candidate) or ""
            for variable, candidate in zip(variables, combination, strict=True)
        )
        pins = [
            Pin(target, variable.component, name)
            for variable, name in zip(variables, names, strict=True)
        ]
        weak = _weak(assembly, pins) if combination in good else None
        if weak:
            excluded.append((names, weak))
        elif combination in good:
            consistent.append(names)
        else:
            values = dict(zip(numbers, combination, strict=True))
            # A core that was found before excludes most further combinations too, and is the reason of all of these.
            known = next((known for known in cores if excludes(problem, known, values)), None)
            if known is None:
                known = excluding(problem, values, assembly.request_nogoods)
                cores.append(known)
            excluded.append((names, core(assembly, known, pins)))
    return Cells(target=target, consistent=tuple(consistent), excluded=tuple(excluded))


def _weak(assembly: Assembly, pins: Sequence[Pin]) -> Core | None:
    """Why a combination is known less well than the request asks, if it is."""
    request = assembly.request
    if not request.min_evidence:
        return None
    asks = [
        Ask(
            component=pin.component,
            selector=assembly.scale(pin.component).exact(pin.release),
            text="",
            target=pin.target,
        )
        for pin in pins
    ]
    # How well a choice is known shows in a whole answer only: solve the cell as a request that pins it.
    answer = attempt(assembly.index, request.replace(asks=(*request.asks, *asks)))
    if isinstance(answer, Resolution):
        return None
    return core(answer, explain(answer.problem(), answer.request_nogoods), pins)


def _admitted(assembly: Assembly, target: str, variable: Variable, problem: Problem) -> list[int]:
    requested = assembly.requested.get((target, variable.component), -2) & (2 << variable.count) - 2
    usable = requested & problem.domains[variable.number]
    # Withdrawn releases, and those after the day of `--at`, are left out without a reason.
    for statement in assembly.statements:
        if isinstance(statement.origin, Closed) and statement.terms[0][0] == variable.number:
            usable &= ~statement.terms[0][1] if len(statement.terms) == 1 else -1
    # Cells come in the order in which an answer would prefer them.
    candidates = range(1, variable.count + 1)
    return [
        candidate
        for candidate in (candidates if variable.oldest else reversed(candidates))
        if usable >> candidate & 1
    ]


TESTED, ALLOWED, REFUSED = "tested", "allowed", "refused"
SAYS = (TESTED, ALLOWED, REFUSED)
"""What facts say of a release beside others, the best first."""
_UNREAD = "unread"
"""A fact that records that something was not read: with it a pair is unknown, whatever others allow."""


class PairFact(NamedTuple):
    """A fact about a pair: what it says of the releases in `mask` of the partner, for the subjects in `of`.

    `touching` are the releases of the fact's own subject that it says it of, by which its claims are cited.
    """

    says: str
    mask: int
    of: int
    evidence: str
    cites: int
    touching: int


class Partner(Value):
    """Another component: its releases by what is said of them, as masks without a release in two of them.

    `usable` are those that can be there at all, `facts` all that was said.
    """

    component: str
    usable: int
    tested: int = 0
    allowed: int = 0
    refused: int = 0
    facts: tuple[PairFact, ...] = ()

    @property
    def unknown(self) -> int:
        """The releases that no fact covers."""
        return self.usable & ~(self.tested | self.allowed | self.refused)

    def by_evidence(self, says: str) -> Iterator[tuple[str, int, list[PairFact]]]:
        """The releases with one verdict, by the best evidence for it, with its facts."""
        left = getattr(self, says)
        for evidence in words.WORDS:
            # A release belongs to the first word that has it: worse evidence for the same adds nothing.
            facts = [fact for fact in self.facts if fact.says == says and fact.evidence == evidence]
            mask = union(fact.mask for fact in facts) & left
            if mask:
                yield evidence, mask, [fact for fact in facts if fact.mask & mask]
                left &= ~mask


class Partners(Value):
    """What goes with the releases in `mask` of a component, and what these need at any version.

    `requests` are those that can have one of these releases; of several components in `needs` together one is enough.
    """

    component: str
    mask: int
    requests: tuple[Request, ...]
    partners: tuple[Partner, ...]
    needs: tuple[tuple[str, ...], ...]


def partners_of(index: Index, component: str, requests: Sequence[Request]) -> Partners:
    """What goes with the releases of a component that some requests for it leave."""
    cases = [RequestFacts(index, request, component) for request in requests]
    # A way in which the releases asked about cannot be there says nothing of what goes with them.
    cases = [case for case in cases if case.mask]
    heads = index.header["components"]
    # What is given says where a result runs: it is a condition of the question, and no answer to it.
    names = [name for name, head in heads.items() if name != component and not head["given"]]
    partners = [_merged(name, [case.partner(name) for case in cases]) for name in names]
    needs = {tuple(names): None for case in cases for names in case.needs()}
    return Partners(
        component=component,
        mask=union(case.mask for case in cases),
        requests=tuple(case.request for case in cases),
        partners=tuple(partners),
        needs=tuple(needs),
    )


def _merged(name: str, partners: Sequence[Partner]) -> Partner:
    usable = tested = allowed = 0
    # Refused is what every way refuses: it begins with everything, and each way takes away from it.
    refused = -1
    for partner in partners:
        usable |= partner.usable
        tested |= partner.tested
        allowed |= partner.allowed
        # What cannot be there at all is refused by no fact about the pair.
        refused &= partner.refused | ~partner.usable
    allowed &= ~tested
    return Partner(
        component=name,
        usable=usable,
        tested=tested,
        allowed=allowed,
        refused=refused & usable & ~(tested | allowed),
        facts=tuple(dict.fromkeys(fact for partner in partners for fact in partner.facts)),
    )


class RequestFacts:
    """One request, under which facts about the releases in `mask` of a component are looked at."""

    def __init__(self, index: Index, request: Request, component: str) -> None:
        reachable = Reachable(index, request)
        self.index = index
        self.request = request
        self.component = component
        self.heads = index.header["components"]
        self.left = reachable.remaining[request.targets[0]]
        self.requested = reachable.requested.get((request.targets[0], component), -1)
        self.floor = words.rank(request.min_evidence or words.UNKNOWN)
        givens = [name for name, head in self.heads.items() if head["given"]]
        # Some of what is given goes with nothing else that is, such as an accelerator with a target.
        possible = all(self.usable(name) & self.left[name] for name in givens)
        self.mask = self.usable(component) & self.requested if possible else 0

    def usable(self, component: str) -> int:
        """The releases that are out, not withdrawn, and possible where the result runs."""
        facts, at = self.index.component(component), self.request.at
        # Bit 0 of a mask means that the component is absent, and is no release.
        mask = ((2 << len(facts.versions)) - 2) & ~facts.yanked
        # An empty date comes before every day: a release without one counts as out.
        mask &= ~sum(2 << i for i, date in enumerate(facts.dates) if at and date > at)
        givens = {name for name, head in self.heads.items() if head["given"]}
        for binding in self.hard(facts, givens):
            if not binding.allowed & self.left[binding.component]:
                mask &= ~binding.mask
        for name in givens:
            for binding in self.hard(self.index.component(name), {component}):
                # It binds where it covers all that the request leaves of its subject.
                if not self.left[name] & ~1 & ~binding.mask:
                    mask &= binding.allowed
        return mask

    def hard(self, facts: ComponentFacts, about: AbstractSet[str]) -> Iterator[Binding]:
        """The hard facts of a component that name releases of some others."""
        for group in facts.binding_groups:
            wanted = group.component in about and group.kind != "needs"
            known = wanted and words.rank(group.evidence) >= self.floor
            if known and _certain(self.left, group.conditions):
                yield from group.of(-1)

    def needs(self) -> Iterator[Sequence[str]]:
        """The components that the subject needs at any version, alternatives together."""
        for binding in self.index.component(self.component).bindings:
            wanted = binding.kind == "needs" and binding.mask & self.mask
            if wanted and _certain(self.left, binding.conditions):
                yield binding.alternatives

    def at(self, mask: int) -> RequestFacts:
        """The same for some releases of the component."""
        narrowed = copy(self)
        narrowed.mask = self.mask & mask
        return narrowed

    def partner(self, name: str) -> Partner:
        """What is said of the releases of another component."""
        usable = self.usable(name)
        facts = [*self._own(name), *self._others(name), *self._rows(name)]
        tested = allowed = 0
        refused = usable
        left = self.mask
        while left:
            # Each release of the subject by itself: what one of them refuses another may allow.
            bit = left & -left
            left ^= bit
            masks = dict.fromkeys((*SAYS, _UNREAD), 0)
            for fact in facts:
                if fact.of & bit:
                    masks[fact.says] |= fact.mask
            # Whatever else allows a pair, a fact that refuses it, or a list that was not read, leaves no yes.
            free = ~masks[REFUSED] & ~masks[_UNREAD]
            tested |= masks[TESTED] & free
            allowed |= masks[ALLOWED] & free
            refused &= masks[REFUSED]
        return Partner(
            component=name,
            usable=usable,
            tested=tested & usable,
            allowed=allowed & usable & ~tested,
            refused=refused & ~(tested | allowed),
            facts=tuple(facts),
        )

    def _own(self, name: str) -> Iterator[PairFact]:
        """What hard facts about the subject say of a partner."""
        everything = (2 << len(self.index.component(name).versions)) - 2
        for binding in self.hard(self.index.component(self.component), {name}):
            of, inside = binding.mask & self.mask, binding.allowed & everything
            # That a toolkit has to be there, whichever, is no yes for each of its releases.
            if of and joins(self.index, binding):
                for says, mask in _sides(binding, inside, everything):
                    if says != ALLOWED or not only_excludes(self.index, binding):
                        yield PairFact(says, mask, of, binding.evidence, binding.cites, of)

    def _others(self, name: str) -> Iterator[PairFact]:
        """What hard facts about a partner say of the subject."""
        everything = (2 << len(self.index.component(self.component).versions)) - 2
        for binding in self.hard(self.index.component(name), {self.component}):
            mask, inside = binding.mask, binding.allowed & everything
            if joins(self.index, binding):
                for says, of in _sides(binding, inside, everything):
                    if of & self.mask and (says != ALLOWED or binding.kind != FAILS):
                        yield PairFact(says, mask, of, binding.evidence, binding.cites, mask)

    def _rows(self, name: str) -> Iterator[PairFact]:
        """What tested rows of one of the two say of the other."""
        for subject, other in ((self.component, name), (name, self.component)):
            for group in self.index.component(subject).row_groups:
                # That an image holds two things is no statement that they were tested together.
                if other in group.components[1:] and not group.carried:
                    yield from self._tested(group, group.components.index(other, 1), subject)

    def _tested(self, group: RowGroup, position: int, subject: str) -> Iterator[PairFact]:
        known = words.weaker(group.evidence, group.evidences[position])
        # Rank 0 is unknown: such a row is no evidence.
        if words.rank(known) < max(self.floor, 1) or not _certain(self.left, group.conditions):
            return
        for own, other, cites in zip(
            group.subjects, group.columns[position], group.cites, strict=True
        ):
            of, mask = (own, other) if subject == self.component else (other, own)
            if of & self.mask:
                # A row may record the absence of a component, which is no release.
                yield PairFact(TESTED, mask & ~1, of, known, cites, own)


def _sides(binding: Binding, inside: int, everything: int) -> tuple[tuple[str, int], ...]:
    """What a fact says of the releases it admits, and of all others."""
    outside = everything & ~inside
    if binding.evidence == words.UNKNOWN:
        # A list that was not read neither refuses what it leaves out nor promises what it admits.
        return ((_UNREAD, outside),)
    return (ALLOWED, inside), (REFUSED, outside)
