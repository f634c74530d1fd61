"""A minimum of evidence: an answer that rests on less is refused, with the reason why its weak choices are weak.

An answer shows how well each choice is known. A choice that is not known well enough becomes a nogood: the release with
whatever keeps every sufficient fact from supporting it. The search goes on with it, until an answer is
known well enough or there is none. So `--min-evidence WORD` takes the best answer whose weakest evidence is that or
better, and no other rule says what is enough.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, product

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import JOINS_NONE, MINIMUM
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.known import closure, names_releases
from toolmatrix.solve.parts import EVIDENCE, Statement, TestedRow, Variable, expand_rows
from toolmatrix.solve.preferences import tested_partners
from toolmatrix.solve.support import TargetAnswer
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.assemble import Reachable
    from toolmatrix.solve.request import Stipulation

    Terms = Mapping[int, int]
    """The masks of some variables, all of which hold."""
    Literal = tuple[Terms, ...]
    """Terms of which one holds: empty where nothing can hold, and with empty terms where it always does."""


def statements(reachable: Reachable) -> Iterator[Statement]:
    """The nogoods of the stipulations of a request, for each of its targets."""
    for target in reachable.request.targets:
        builds = _builds(reachable, target)
        for rule in reachable.request.stipulations:
            for terms in _nogoods(reachable, target, rule, builds):
                yield Statement(tuple(sorted(terms.items())), target, rule.subject, rule, 0)


def inside(index: Index, variant: str, wanted: int = -1) -> dict[str, int]:
    """By component of the toolkit: the builds among the wanted that bring it, inside them or as packages."""
    components = index.header["components"]
    builds: dict[str, int] = {}
    for binding in index.component(variant).bindings:
        about = components[binding.component] if binding.component else None
        if binding.kind != "requires" or not about or not binding.mask & wanted:
            continue
        # A framework beside it, or what has builds, is one of its own, whichever build it came with.
        if not about["accelerators"] or about["framework"] or about["variants"]:
            continue
        for cite in index.cites(binding.cites):
            if not index.claim(cite.record).beside:
                covered = builds.get(binding.component, 0) | cite.mask & binding.mask
                builds[binding.component] = covered
    return builds


def _nogoods(
    reachable: Reachable, target: str, rule: Stipulation, builds: Mapping[str, Sequence[Terms]]
) -> Iterable[Terms]:
    # Most are about a component that the question does not come to: it is absent, and nothing is asked of it.
    for component, selector in rule.when:
        if not reachable.possible(target, {component: reachable.mask(component, selector)}):
            return ()
    nogoods = _conjunctions(_meeting(reachable, target, condition) for condition in rule.when)
    for conditions in rule.one_of:
        broken = (_breaking(reachable, target, condition) for condition in conditions)
        nogoods = _extended(nogoods, chain.from_iterable(broken))
    for terms in builds.get(rule.subject, ()) if rule.or_in_build else ():
        nogoods = _extended(nogoods, [terms])
    return nogoods


def _extended(nogoods: Iterable[Terms], broken: Iterable[Terms]) -> list[Terms]:
    # Each nogood so far, and one of the ways to break the next alternative; what is within another says nothing new.
    minimal: list[Terms] = []
    for terms in sorted(_conjunctions((nogoods, broken)), key=len):
        if not any(_within(terms, other) for other in minimal):
            minimal = [other for other in minimal if not _within(other, terms)] + [terms]
    return minimal


def _within(terms: Terms, other: Terms) -> bool:
    return all(not terms.get(number, -1) & ~mask for number, mask in other.items())


def _conjunctions(alternatives: Iterable[Iterable[Terms]]) -> list[Terms]:
    """Each combination of one of each alternative whose terms can all hold."""
    return [terms for each in product(*alternatives) if (terms := _conjunction(each)) is not None]


def _conjunction(combination: Iterable[Terms]) -> Terms | None:
    # None where they cannot all hold.
    masks: dict[int, int] = {}
    for terms in combination:
        for number, mask in terms.items():
            masks[number] = masks.get(number, -1) & mask
            if not masks[number]:
                return None
    return masks


def _meeting(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition holds: one for each of several archs or devices."""
    mask, variables = _terms(reachable, target, condition)
    if not variables:
        return ({},) if mask & 1 else ()
    return tuple({v.number: mask & (2 << v.count) - 1} for v in variables)


def _breaking(reachable: Reachable, target: str, condition: tuple[str, str]) -> Literal:
    """The ways in which a condition does not hold."""
    mask, variables = _terms(reachable, target, condition)
    if not variables:
        return () if mask & 1 else ({},)
    return ({v.number: (2 << v.count) - 1 & ~mask for v in variables},)


def _terms(
    reachable: Reachable, target: str, condition: tuple[str, str]
) -> tuple[int, list[Variable]]:
    """What a condition admits, and the variables that it is about, none where they are absent."""
    component, selector = condition
    mask = reachable.mask(component, selector)
    # Codegen archs and devices that are asked for are never absent, and a condition holds where one of them meets it.
    if numbers := reachable.multi_instance[target].get(component):
        return mask & ~1, [reachable.instance(target, component, n) for n in sorted(numbers)]
    variable = reachable.pick(target, component)
    return mask, [] if variable is None else [variable]


def _builds(reachable: Reachable, target: str) -> dict[str, list[Terms]]:
    """By component: for each framework that may bring it the builds, or the lack of one, that do not."""
    lacking: dict[str, list[Terms]] = {}
    for owner, name in reachable.by_name:
        if owner == target and reachable.header["components"][name]["variant_of"]:
            variable = reachable.variable(target, name)
            whole = (2 << variable.count) - 1
            for about, mask in inside(reachable.index, name).items():
                lacking.setdefault(about, []).append({variable.number: whole & ~mask})
    return lacking


_BUILT, _REQUIRED, _TESTED, _LIMITED, _OWN, _RELEASED = range(6)
"""How something supports a release; except for the second and third, an earlier kind is used alone."""


class _Speaker(NamedTuple):
    """What may support the releases in `mask` of a component, where all `terms` hold; for a row its first one."""

    kind: int
    mask: int
    terms: Mapping[int, int]
    enough: bool
    row: TestedRow | None

    def clash(self, values: Sequence[int]) -> list[int]:
        """The variables at which its terms do not hold."""
        return [v for v, mask in self.terms.items() if not mask >> values[v] & 1]


class _Reason:
    """Terms under which sufficient support does not apply; they hold in the answer at hand."""

    def __init__(self, sizes: Sequence[int], values: Sequence[int]) -> None:
        self.sizes = sizes
        self.values = values
        self.terms: dict[int, int] = {}

    def add(self, variable: int, mask: int) -> None:
        """A term that the answer meets."""
        self.terms[variable] = self.terms.get(variable, self.sizes[variable]) & mask

    def refute(self, speaker: _Speaker) -> bool:
        """Exclude a supporter by a term at which it does not hold; False if there is none."""
        if self.refuted(speaker):
            return True
        # Each of these alone excludes it; the choice decides how much the reason refuses.
        clash = speaker.clash(self.values)
        if clash:
            # What is among the terms already makes it no longer.
            variable = next((variable for variable in clash if variable in self.terms), clash[0])
            self.add(variable, ~speaker.terms[variable])
        return bool(clash)

    def refuted(self, speaker: _Speaker) -> bool:
        """True if the terms exclude it."""
        return any(
            v in self.terms and not self.terms[v] & mask for v, mask in speaker.terms.items()
        )


class Demand:
    """The evidence that a request demands, and all that may support a component of it."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.components = assembly.header["components"]
        self.least = words.rank(assembly.request.min_evidence)
        self.sizes = [(2 << variable.count) - 1 for variable in assembly.variables]
        self.given_components = {
            variable.number
            for variable in assembly.variables
            if self.components[variable.component]["given"]
        }
        self._speakers: dict[tuple[str, int], list[_Speaker]] = {}
        self._rows: dict[str, list[TestedRow]] = {}
        # Policies prefer the presence of what nothing else needs, as locks do.
        request = assembly.request
        self._partners = tested_partners(assembly).union(
            [name for _, name, _ in (*request.policies, *request.keep)]
        )

    def refused(self, answer: TargetAnswer) -> Iterator[Statement]:
        """A nogood for each choice on a target that is not known well enough, and one for what nothing needs."""
        yield from self.weak(answer)
        yield from self.unneeded(answer)

    def weak(self, answer: TargetAnswer) -> Iterator[Statement]:
        """A nogood for each choice on a target that is not known well enough."""
        for variable in answer.visible():
            _, evidence = answer.known(variable, answer.claims_of_others(variable))
            if words.rank(evidence) >= self.least:
                continue
            terms = self.reason(answer, variable)
            names = (self.assembly.variables[number].component for number in sorted(terms))
            # A reason names what stands first beside it: the rest follows from that, mostly.
            others = (
                name
                for name in names
                if name != variable.component and not self.components[name]["given"]
            )
            about = next(others, variable.component)
            nogood = tuple(sorted(terms.items()))
            yield Statement(nogood, answer.target, variable.component, about, 0)

    def unneeded(self, answer: TargetAnswer) -> Iterator[Statement]:
        """A nogood for what is there though nothing chosen needs it, such as a distribution whose Python is well known.

        Whether it could be chosen at all is up to what else the request reaches, so that it would come and go with
        releases that are not taken. The nogood is the loop formula of answer set programming: those that are not needed
        by the rest, and all that could need one of them without doing so.
        """
        needs = list(self.needs(answer.target))
        needed = {
            v.number
            for v in answer.variables
            if v.number in self.given_components or v.component in self._partners
        }
        absent = {v.number for v in answer.variables if not answer.values[v.number]}
        size = -1
        while size != len(needed):
            size = len(needed)
            for by, terms, about in needs:
                holds = all(mask >> answer.values[variable] & 1 for variable, mask in terms.items())
                if by in needed and by not in absent and holds:
                    needed |= about
        loose = {v.number for v in answer.variables} - needed - absent
        if not loose:
            return
        why = _Reason(self.sizes, answer.values)
        for by, terms, about in needs:
            if by not in loose and not loose.isdisjoint(about):
                why.refute(_Speaker(_REQUIRED, 0, terms, enough=True, row=None))
        for number in loose:
            why.add(number, ~1)
        first = self.assembly.variables[min(loose)].component
        yield Statement(tuple(sorted(why.terms.items())), answer.target, first, first, 0)

    def needs(self, target: str) -> Iterator[tuple[int, dict[int, int], set[int]]]:
        """What may need others on a target, the terms under which it does, and which it needs then."""
        for (owner, name), variables in self.assembly.by_name.items():
            for variable in variables if owner == target else ():
                named = self.assembly.by_component(target, variable.instance)
                for group in self.assembly.index.requirements(name):
                    terms = self.terms(group.conditions, named)
                    about = {named[other].number for other in group.named if other in named}
                    if terms is not None and about:
                        mask = group.releases & terms.pop(variable.number, -1)
                        yield variable.number, {variable.number: mask, **terms}, about

    def reason(self, answer: TargetAnswer, variable: Variable) -> dict[int, int]:
        """The terms under which a release is not known well enough, and all releases for which that holds."""
        number, head = variable.number, self.components[variable.component]
        # Builds, and what is wanted first, are known by their releases alone.
        if head["variant_of"] or variable.component in self.assembly.request.wanted[:1]:
            return {number: self.sizes[number] & ~1 & ~self.released(variable)}
        why = _Reason(self.sizes, answer.values)
        if number not in answer.tied and not head["flag"]:
            return self.untied(answer, variable, why)
        speakers = self.speakers(answer.target, variable)
        here = [speaker for speaker in speakers if speaker.mask >> answer.values[number] & 1]
        left = [speaker for speaker in here if speaker.enough and not why.refute(speaker)]
        mask = why.terms.get(number, self.sizes[number]) & ~1
        if left:
            mask &= self.shadow(answer, variable, here, left, why)
            if not mask:
                return self.whole(answer, {number, *_variables(speakers)})
        # The same reason holds for all releases without other sufficient support.
        unrefuted = {id(speaker) for speaker in left}
        for speaker in speakers:
            if speaker.enough and id(speaker) not in unrefuted and not why.refuted(speaker):
                mask &= ~speaker.mask
        return {**why.terms, number: mask}

    def shadow(
        self,
        answer: TargetAnswer,
        variable: Variable,
        here: Sequence[_Speaker],
        left: Sequence[_Speaker],
        why: _Reason,
    ) -> int:
        """The releases for which weaker support overrides what is left, and adds why; 0 if none does."""
        cover = self.cover(answer, variable, here, {speaker.kind for speaker in left})
        if cover is None:
            return 0
        for number, mask in cover.terms.items():
            why.add(number, mask)
        for row in filter(None, (speaker.row for speaker in left)):
            # One that agrees in part would count if it agreed in full.
            for number, mask, _ in row.terms:
                if number < variable.number and not mask >> answer.values[number] & 1:
                    why.add(number, ~mask)
                    break
        return cover.mask

    def cover(
        self, answer: TargetAnswer, variable: Variable, here: Sequence[_Speaker], kinds: set[int]
    ) -> _Speaker | None:
        """What supports a choice before other kinds do: a row, else a requirement, else a limit."""
        values, number = answer.values, variable.number
        holding = [s for s in here if not s.enough and s.row is None and not s.clash(values)]
        built = [s for s in holding if s.kind == _BUILT]
        if built or _BUILT in kinds:
            return None if _BUILT in kinds else built[0]
        top = self.top(answer, variable, here)
        if _REQUIRED in kinds or (_TESTED in kinds and top is None):
            return None
        if top is not None:
            terms = {v: mask for v, mask, _ in top.terms if mask >> values[v] & 1}
            # As long as it agrees as it does, no row that agrees less counts.
            mask = terms.pop(number)
            # What is chosen later has no say in how a row ranks, but for the release that the row is about.
            terms = {v: part for v, part in terms.items() if v < number or v == top.owner}
            return _Speaker(_TESTED, mask, terms, enough=False, row=top)
        limited = [s for s in holding if s.kind == _LIMITED]
        if _LIMITED in kinds:
            # Of several floors the one at the release counts.
            bit = 1 << values[number]
            limited = [s._replace(mask=bit) for s in limited if not s.mask & bit - 1]
        return next(iter([*(s for s in holding if s.kind == _REQUIRED), *limited]), None)

    def top(
        self, answer: TargetAnswer, variable: Variable, here: Sequence[_Speaker]
    ) -> TestedRow | None:
        """The row that ranks a choice."""
        number, values = variable.number, answer.values
        best: tuple[int, int] = (-1, 0)
        best_row = None
        for speaker in here:
            row = speaker.row
            level = row.level(number, values[number], values) if row is not None else None
            if (
                row is not None
                and level is not None
                and level > best
                and answer.cites(row.cites, 1 << values[row.owner])
            ):
                best, best_row = level, row
        return best_row

    def untied(self, answer: TargetAnswer, variable: Variable, why: _Reason) -> dict[int, int]:
        """The terms under which nothing ties a choice, and what is tied to it, to the request."""
        detached = closure([variable.number], answer.edges)
        for edge in self.joining(answer.target):
            # What lies inside or outside alone builds no bridge; the context is on no side.
            inside = detached.intersection(edge)
            if not inside or len(inside) == sum(
                number not in self.given_components for number in edge
            ):
                continue
            if not why.refute(_Speaker(_TESTED, 0, edge, enough=True, row=None)):
                return self.whole(answer)
        why.add(variable.number, ~1)
        return why.terms

    def whole(self, answer: TargetAnswer, among: Container[int] | None = None) -> dict[int, int]:
        """The answer as it is on a target, or some variables of it, where no fewer terms are a reason."""
        return {
            variable.number: 1 << answer.values[variable.number]
            for variable in answer.variables
            if variable.number not in self.given_components
            and (among is None or variable.number in among)
        }

    def speakers(self, target: str, variable: Variable) -> list[_Speaker]:
        """What may support a component on a target, whatever is chosen."""
        key = target, variable.number
        if key not in self._speakers:
            self._speakers[key] = [
                *self._claimed(target, variable),
                *self._tested(target, variable),
                *self._own(target, variable),
                _Speaker(_RELEASED, self.released(variable), {}, enough=True, row=None),
            ]
        return self._speakers[key]

    def _claimed(self, target: str, variable: Variable) -> Iterator[_Speaker]:
        """The facts about a component, of what is chosen before it."""
        assembly = self.assembly
        for (owner, name), variables in assembly.by_name.items():
            head = self.components[name]
            if owner != target or head["given"] or head["variant_of"] == variable.component:
                continue
            # What a build holds is what it is, whenever it is chosen.
            built = variable.component == "arch" and head["variant_of"]
            for other in variables:
                elsewhere = variable.instance and other.instance not in (0, variable.instance)
                if elsewhere or not (built or other.number < variable.number):
                    continue
                named = assembly.by_component(target, other.instance or variable.instance)
                for group in assembly.component(name).binding_groups:
                    if group.component != variable.component or group.kind in JOINS_NONE:
                        continue
                    terms = self.terms(group.conditions, named)
                    if terms is None:
                        continue
                    kind = _LIMITED if group.kind == "limits" else _REQUIRED
                    kind = _BUILT if built else kind
                    for mask, allowed, cites in zip(
                        group.masks, group.alloweds, group.cites, strict=True
                    ):
                        good, weak = self.cited(cites)
                        for known, enough in ((good, True), (weak, False)):
                            if known & mask and allowed & ~1:
                                meet = {**terms, other.number: known & mask}
                                yield _Speaker(kind, allowed & ~1, meet, enough=enough, row=None)

    def _tested(self, target: str, variable: Variable) -> Iterator[_Speaker]:
        """The rows that name a component behind another one."""
        # A row ranks, and supports, only what is chosen after the first component that it joins.
        for row in self.rows(target):
            first, anchor_mask, _ = row.terms[0]
            for number, mask, worth in row.terms[1:]:
                if number == variable.number:
                    enough = min(worth, row.weight) % EVIDENCE >= self.least
                    # It speaks where a claim behind it is about the release that it is of.
                    good, weak = self.cited(row.cites)
                    meet = {first: anchor_mask}
                    meet[row.owner] = meet.get(row.owner, -1) & (good if enough else good | weak)
                    yield _Speaker(_TESTED, mask, meet, enough=enough, row=row)

    def _own(self, target: str, variable: Variable) -> Iterator[_Speaker]:
        """What releases of a component say themselves of others."""
        named = self.assembly.by_component(target, variable.instance)
        flag = self.components[variable.component]["flag"]
        for group in self.assembly.component(variable.component).binding_groups:
            about = named.get(group.component)
            terms = self.terms(group.conditions, named)
            if about is None or terms is None or group.kind in JOINS_NONE:
                continue
            head = self.components[group.component]
            if head["hidden"] or (head["given"] and not flag):
                continue
            for mask, cites in zip(group.masks, group.cites, strict=True):
                good, _ = self.cited(cites)
                # Its release may be any: what it is tied to is asked elsewhere.
                if good & mask:
                    meet = {**terms, about.number: self.sizes[about.number] & ~1}
                    yield _Speaker(_OWN, good & mask, meet, enough=True, row=None)

    def joining(self, target: str) -> Iterator[dict[int, int]]:
        """The terms of each fact and row that may tie the components that it names to each other."""
        assembly = self.assembly
        for row in self.rows(target):
            yield {number: mask for number, mask, _ in row.terms}
        for (owner, name), variables in assembly.by_name.items():
            for variable in variables if owner == target else ():
                for instance in assembly.instances(target, [name]):
                    named = assembly.by_component(target, variable.instance or instance)
                    for group in assembly.component(name).binding_groups:
                        about = named.get(group.component)
                        terms = self.terms(group.conditions, named)
                        if about is None or terms is None or about.number in self.given_components:
                            continue
                        for binding in group.of(-1) if group.kind not in JOINS_NONE else ():
                            if names_releases(assembly.index, binding, (2 << about.count) - 2):
                                meet = {
                                    variable.number: binding.mask,
                                    about.number: binding.allowed & ~1,
                                }
                                yield {**terms, **meet}

    def terms(
        self, conditions: Mapping[str, int], named: Mapping[str, Variable]
    ) -> dict[int, int] | None:
        """Conditions as terms; None if they cannot hold, as what is not reached is absent."""
        if any(name not in named and not mask & 1 for name, mask in conditions.items()):
            return None
        return {named[name].number: mask for name, mask in conditions.items() if name in named}

    def cited(self, record: int) -> tuple[int, int]:
        """The releases for which a claim behind a fact is good enough, and those with weaker claims."""
        good = weak = 0
        for cite in self.assembly.index.cites(record):
            # What a minimum leaves unread says nothing of what it admits.
            if MINIMUM in cite.rules:
                continue
            if words.rank(cite.evidence) >= self.least:
                good |= cite.mask
            # Offers are no evidence beyond themselves.
            elif self.assembly.index.record(cite.record).kind != "offers":
                weak |= cite.mask
        return good, weak

    def rows(self, target: str) -> list[TestedRow]:
        """All rows that may speak on a target."""
        # To make them takes longest, and the search has made most of them.
        if target not in self._rows:
            self._rows[target] = expand_rows(self.assembly.support_groups(target))
        return self._rows[target]

    def released(self, variable: Variable) -> int:
        """The releases that are known well enough by themselves, if nothing has to join them to the rest."""
        component, index = self.assembly.component(variable.component), self.assembly.index
        requested = (
            variable.component in self.assembly.request.wanted
            or any(name == variable.component for _, name in self.assembly.requested)
            or self.components[variable.component]["flag"]
            or self.components[variable.component]["variant_of"]
        )
        return sum(
            2 << position
            for position, record in enumerate(component.releases if requested else ())
            if words.rank(index.record(record).evidence) >= self.least
        )


def _variables(speakers: Sequence[_Speaker]) -> Iterator[int]:
    """The variables whose values decide which of them speak, and how well."""
    for speaker in speakers:
        yield from speaker.terms
        yield from (number for number, _, _ in (speaker.row.terms if speaker.row else ()))
