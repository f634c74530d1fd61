"""Why not: a core read line by line, and the releases that were not taken with what forbids each or ranked above it.

Facts about the same pair of components are joined. Of a claim about hundreds of releases only those are named that the
other lines of the core leave.
"""

from __future__ import annotations

from toolmatrix.finding import Incompatibility
from toolmatrix.solve.assemble import assembled
from toolmatrix.solve.engine.conflict import combinations, excludes, excluding
from toolmatrix.solve.parts import Closed
from toolmatrix.solve.preferences import RULE, Anchors, leading
from toolmatrix.solve.request import Ask, Stipulation
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding, ClaimRecord
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.engine import Problem
    from toolmatrix.solve.parts import Pin, Statement, TestedRow, Variable
    from toolmatrix.solve.preferences import Anchor
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice


class CoreLine(Value):
    """One line of a core: a line of the request, a stipulation, or facts about one pair of components."""

    target: str
    ask: Ask | None = None
    ground: Incompatibility | None = None
    stipulation: Stipulation | None = None


class Core(Value):
    """A reason why there is no answer: lines that cannot hold together.

    `asks` are all lines of the request behind them, also defaults and what an option brings; `subjects` the components
    that its facts are about. It is `soft` where nothing but the evidence asked for refuses.
    """

    lines: tuple[CoreLine, ...]
    asks: tuple[Ask, ...]
    subjects: tuple[str, ...]
    soft: bool


def core(assembly: Assembly, numbers: Sequence[int], pins: Sequence[Pin] = ()) -> Core:
    """A core as the engine numbers it, read."""
    statements = [assembly.statements[number] for number in numbers]
    return Core(
        lines=tuple(lines(assembly, numbers, pins)),
        asks=tuple(s.origin for s in statements if isinstance(s.origin, Ask)),
        subjects=tuple(s.subject for s in statements if s.subject),
        soft=any(isinstance(s.origin, str) for s in statements),
    )


def independent(index: Index, cores: Sequence[Core]) -> tuple[Core, ...]:
    """The cores that are reasons of their own, in their order.

    A stipulation is several nogoods, each of which may make a core: of those that rest on one the shortest is kept. So
    is the shortest of those that set the same components against each other, be it by releases or by their builds.
    """
    chosen: set[int] = set()
    explained: set[object] = set()
    for position in sorted(range(len(cores)), key=lambda position: len(cores[position].lines)):
        stipulated = {line.stipulation for line in cores[position].lines if line.stipulation}
        clash = _clash(index, cores[position])
        if not stipulated & explained and (stipulated or clash not in explained):
            chosen.add(position)
            explained |= {*stipulated, clash}
    return tuple(core for position, core in enumerate(cores) if position in chosen)


def _clash(index: Index, core: Core) -> object:
    """The pairs of components of a core and the lines of the request behind it; a build is what it is a build of."""
    components = index.header["components"]
    pairs = set()
    for line in core.lines:
        if line.ground is not None:
            named = (line.ground.subject, line.ground.component)
            first, second = (components[name]["variant_of"] or name for name in named)
            if first != second:
                pairs.add((line.target, first, second))
    return frozenset(pairs), frozenset(ask.text for ask in core.asks if not ask.implied)


def lines(assembly: Assembly, core: Sequence[int], pins: Sequence[Pin] = ()) -> list[CoreLine]:
    """The lines of a core: facts in the order of its nogoods, then what was asked.

    `pins` are releases beside the request: those of one cell of a CI matrix.
    """
    statements = [assembly.statements[number] for number in core]
    left = _Remaining(assembly, statements, pins)
    facts: dict[tuple[str, str, str, str], list[Binding]] = {}
    separated: dict[tuple[str, str, str], list[Statement]] = {}
    requested: dict[tuple[str, str], CoreLine] = {}
    stipulated: dict[tuple[str, Stipulation], CoreLine] = {}
    closed: dict[tuple[str, str, str], int] = {}
    for statement in statements:
        target, origin = statement.target, statement.origin
        if isinstance(origin, Stipulation):
            stipulated[target, origin] = CoreLine(target=target, stipulation=origin)
        elif isinstance(origin, Closed):
            key = (target, origin.kind, statement.subject)
            number = assembly.by_name[target, statement.subject][0].number
            closed[key] = closed.get(key, 0) | dict(statement.terms)[number]
        elif (fact := statement.binding) is not None:
            same = facts.setdefault((target, fact.kind, statement.subject, statement.component), [])
            same.append(fact)
        elif not isinstance(origin, Ask):
            both = (target, statement.subject, statement.component)
            separated.setdefault(both, []).append(statement)
        elif origin.text:
            requested[target, origin.text] = CoreLine(target=target, ask=origin)
    grounds = []
    for (target, _, subject, _), same in facts.items():
        grounds.append((target, _ground(assembly, target, subject, same, left)))
    for (target, *pair), given_up in separated.items():
        grounds.append((target, _separation(assembly, pair, given_up, left)))
    for (target, kind, name), mask in closed.items():
        grounds.append((target, _closed(assembly, kind, name, mask & left.of(target, name))))
    core_lines = (CoreLine(target=target, ground=ground) for target, ground in grounds)
    return [*core_lines, *stipulated.values(), *requested.values()]


def grounds(
    assembly: Assembly, core: Sequence[int], pins: Sequence[Pin] = ()
) -> tuple[Incompatibility, ...]:
    """The facts of a core; the lines of the request are left out."""
    return tuple(line.ground for line in lines(assembly, core, pins) if line.ground is not None)


class _Remaining:
    """The releases left of each component when the request and then every fact that it triggers are applied."""

    def __init__(
        self, assembly: Assembly, statements: Sequence[Statement], pins: Sequence[Pin]
    ) -> None:
        self.align = assembly.request.align
        self.remaining: dict[tuple[str, str], int] = {}
        for target, component, release in pins:
            self.narrow(target, component, assembly.scale(component).bit(release))
        for statement in statements:
            if isinstance(statement.origin, Ask):
                mask = assembly.mask(statement.origin.component, statement.origin.selector)
                self.narrow(statement.target, statement.origin.component, mask)
        named = {(s.target, name) for s in statements for name in (s.subject, s.component) if name}
        for target, name in named:
            self.builds(assembly, target, name)
        firing = [
            (statement.target, statement.subject, statement.binding)
            for statement in statements
            if statement.binding and statement.binding.kind != "needs"
        ]
        # A fact may be triggered by any other one.
        before: Mapping[tuple[str, str], int] = {}
        while before != self.remaining:
            before = {**self.remaining}
            for fact in firing:
                self.fire(*fact)

    def builds(self, assembly: Assembly, target: str, name: str) -> None:
        """Of the builds of a component, those of the releases that are left of it."""
        of = assembly.header["components"][name]["variant_of"]
        for binding in assembly.component(name).about(of, -1) if of else ():
            if not binding.allowed & self.of(target, of):
                self.narrow(target, name, ~binding.mask)

    def fire(self, target: str, subject: str, fact: Binding) -> None:
        """Narrow the component a fact speaks about, if its conditions hold and something remains."""
        terms = {subject: fact.mask, **fact.conditions}
        met = all(not self.of(target, name) & ~mask for name, mask in terms.items())
        if met and self.of(target, fact.component) & fact.allowed:
            self.narrow(target, fact.component, fact.allowed)

    def of(self, target: str, component: str) -> int:
        """The releases left of a component; an aligned one is the same on every target."""
        return self.remaining.get(self.key(target, component), -1)

    def narrow(self, target: str, component: str, mask: int) -> None:
        self.remaining[self.key(target, component)] = self.of(target, component) & mask

    def key(self, target: str, component: str) -> tuple[str, str]:
        return ("" if component in self.align else target), component


def _ground(
    assembly: Assembly, target: str, subject: str, facts: Sequence[Binding], left: _Remaining
) -> Incompatibility:
    first = facts[0]
    mask = 0
    allowed = 0
    records: dict[str, ClaimRecord] = {}
    for fact in facts:
        allowed |= fact.allowed
        wanted = left.of(target, subject) & fact.mask
        mask |= wanted
        for cite in assembly.index.cites(fact.cites):
            if cite.touches(wanted):
                # A rule may have made it less well known here than where it was read.
                record = assembly.index.claim(cite.record)
                records.setdefault(record.id, record._replace(evidence=cite.evidence))
    whole = (2 << len(assembly.component(first.component).versions)) - 2
    rest = left.of(target, first.component) & whole
    cited = next(iter(records.values()), None)
    return Incompatibility(
        kind=first.kind,
        subject=subject,
        releases=_named(assembly, subject, mask),
        component=first.component,
        values=tuple(dict.fromkeys(record.selector for record in records.values())),
        # A clash is named where it is one: not what this fact allows as well, nor all releases there are.
        clashing=() if rest & allowed or rest == whole else _named(assembly, first.component, rest),
        alternatives=tuple(first.alternatives),
        conditions=tuple(
            (name, _named(assembly, name, bits))
            for name, bits in first.conditions.items()
            if not assembly.header["components"][name]["given"]
        ),
        facts=tuple(records),
        evidence=cited.evidence if cited else "",
        source=cited.source if cited else "",
    )


def _separation(
    assembly: Assembly, pair: Sequence[str], statements: Sequence[Statement], left: _Remaining
) -> Incompatibility:
    """What the search gave up, as less is known of it than was asked for, or as no fact joins the two."""
    subject, component = pair
    least = assembly.request.min_evidence
    masks = dict.fromkeys(pair, 0)
    for statement in statements if not least else ():
        for number, mask in statement.terms:
            name = assembly.variables[number].component
            masks[name] |= mask & left.of(statement.target, name) & ~1
    return Incompatibility(
        kind="evidence" if least else "touching",
        subject=subject,
        releases=_named(assembly, subject, masks[subject]),
        component=component,
        values=(least,) if least else (),
        clashing=_named(assembly, component, masks[component]),
    )


def _closed(assembly: Assembly, kind: str, name: str, mask: int) -> Incompatibility:
    """The releases of a component that were withdrawn, were not out on the day of `--at`, or are not needed."""
    return Incompatibility(
        kind=kind,
        subject=name,
        releases=_named(assembly, name, mask),
        component=name,
        values=(assembly.request.at,),
    )


def _named(assembly: Assembly, component: str, mask: int) -> tuple[str, ...]:
    return tuple(assembly.scale(component).named(mask))


# So many facts of a core a reader can still follow in one line.
_SHORT = 3


class Alternative(Value):
    """Releases not taken for one reason.

    `kind`: `forbidden` (by the nogoods of `core`, given the request), `entangled` (no combination has them, for a
    reason that takes many facts; `core` is what refuses them in the answer as it is), `later` (they go with other
    choices than those made before; `core` is what refuses them then), `outranked` (a row supports what was taken),
    `apart` (no source joins them with these `anchors`, as one does what was taken), `after` (they came out when the
    framework in `anchors` had, and do not declare it), `older` (otherwise equal).
    """

    kind: str
    releases: tuple[str, ...]
    core: tuple[CoreLine, ...] = ()
    anchors: tuple[str, ...] = ()


def alternatives(resolution: Resolution, choice: Choice, within: int = -1) -> list[Alternative]:
    """Group the releases of a component but the chosen one by why each was not taken; of all, or of a mask."""
    assembly, values = assembled(resolution.index, resolution.request), resolution.values
    # Facts that the answer breaks do not bind it, and unread facts do not bind what was asked for.
    let_go: Sequence[int] = assembly.broken(values)
    if resolution.request.min_evidence:
        # Unread facts bind then.
        let_go = ()
    elif choice.component in resolution.request.wanted:
        last = assembly.last.difference(let_go)
        let_go = [number for number in assembly.unread if number not in last]
    assembly = assembly.without(let_go).stating(resolution.set_apart)
    variable = assembly.variable(choice.target, choice.component, choice.instance)
    number = variable.number
    problem = assembly.problem()
    narrowed = problem.forbidding(problem.nogoods)
    narrowed.domains = [*problem.domains]
    narrowed.domains[number] &= within
    rows = assembly.tested_rows
    # Two questions: with which releases is there an answer at all, and with which beside all that was chosen before?
    possible = {first for first, *_ in combinations(narrowed, [number])}
    decided = narrowed.fixing(dict(enumerate(values[:number])), problem.nogoods)
    near = {first for first, *_ in combinations(decided, [number])}
    anchored = _anchored(assembly, choice, values[number])
    best = _level(rows, values, number, values[number])
    framework = "" if variable.oldest else _framework(assembly, values, variable)
    lower: dict[tuple[str, tuple[str, ...]], list[str]] = {("outranked", ()): [], ("older", ()): []}
    later: dict[tuple[int, ...], list[str]] = {}
    refused = []
    for candidate in range(1, variable.count + 1):
        if not within >> candidate & 1:
            continue
        release = assembly.version(variable, candidate) or ""
        if candidate not in possible:
            refused.append(candidate)
        elif candidate not in near:
            # Against what was chosen later it may stand as well, but that had no say in it.
            broken = _broken(problem, values, number, candidate, last=number)
            later.setdefault(broken, []).append(release)
        elif candidate != values[number]:
            kind = "outranked" if _level(rows, values, number, candidate) < best else "older"
            lacking = tuple(a.text for a in anchored if not a.joined >> candidate & 1)
            reason = ("apart", lacking) if kind == "older" and lacking else (kind, ())
            if reason[0] == "older" and candidate > values[number] and framework:
                reason = ("after", (framework,))
            lower.setdefault(reason, []).append(release)
    groups = [
        Alternative(kind=kind, releases=tuple(releases), anchors=lacking)
        for (kind, lacking), releases in lower.items()
        if releases
    ]
    groups += _grouped(assembly, "later", later)
    return groups + _refused(assembly, problem, values, variable, refused)


def _grouped(
    assembly: Assembly, kind: str, by_core: Mapping[tuple[int, ...], Sequence[str]]
) -> list[Alternative]:
    return [
        Alternative(kind=kind, releases=tuple(releases), core=tuple(lines(assembly, core)))
        for core, releases in by_core.items()
    ]


def _refused(
    assembly: Assembly,
    problem: Problem,
    values: tuple[int, ...],
    variable: Variable,
    refused: list[int],
) -> list[Alternative]:
    """The refused releases, each group with one core that refuses all of it; newest first."""
    groups: list[Alternative] = []
    entangled: dict[tuple[int, ...], list[str]] = {}
    number, requested = variable.number, assembly.request_nogoods
    left = refused[::-1]
    while left:
        core = excluding(problem, {number: left[0]}, requested)
        same = [left[0]]
        # No nogood is needed against what a preference of the target leaves out.
        if core:
            same += [value for value in left[1:] if excludes(problem, core, {number: value})]
        left = [candidate for candidate in left if candidate not in same]
        releases = {candidate: assembly.version(variable, candidate) or "" for candidate in same}
        if len({*core} - {*requested}) <= _SHORT:
            groups += _grouped(assembly, "forbidden", {core: [*releases.values()]})
            continue
        ends = _ends(assembly, core, variable.component)
        for candidate, release in releases.items():
            broken = ends or _broken(problem, values, number, candidate, last=len(values))
            entangled.setdefault(broken, []).append(release)
    return groups + _grouped(assembly, "entangled", entangled)


def _ends(assembly: Assembly, core: Sequence[int], component: str) -> tuple[int, ...]:
    """Of a long core the facts about what else the request names: there its chain ends."""
    request = assembly.request
    named = {ask.component for ask in request.asks if not ask.implied} - {component}
    named |= {"device"} if request.devices else set()
    return tuple(
        number
        for number in core
        if assembly.statements[number].binding
        and not named.isdisjoint(
            (assembly.statements[number].subject, assembly.statements[number].component)
        )
    )


def _broken(
    problem: Problem, values: tuple[int, ...], variable: int, candidate: int, last: int
) -> tuple[int, ...]:
    """The first nogood up to a last variable that the answer would break if only this release were another."""
    changed = [*values]
    changed[variable] = candidate
    for number, nogood in enumerate(problem.nogoods):
        if all(other <= last and mask >> changed[other] & 1 for other, mask in nogood):
            return (number,)
    return ()


def _anchored(assembly: Assembly, choice: Choice, value: int) -> list[Anchor]:
    """The anchors that sources join with what was taken."""
    if choice.component not in assembly.request.wanted:
        return []
    anchors = Anchors(assembly, choice.target).of(choice.component)
    return [anchor for anchor in anchors if anchor.joined >> value & 1]


def _framework(assembly: Assembly, values: tuple[int, ...], variable: Variable) -> str:
    """The release of the framework whose time a component is chosen by; nothing where that is not the rule."""
    first = assembly.pick(variable.target, leading(assembly))
    if RULE not in assembly.header["rules"] or assembly.request.prefer == "newest":
        return ""
    if first is None or first.number >= variable.number:
        return ""
    return f"{first.component} {assembly.version(first, values[first.number])}"


def _level(
    rows: Sequence[TestedRow], values: tuple[int, ...], variable: int, candidate: int
) -> tuple[int, int]:
    """The rank of a candidate given what was chosen before it (see `engine`)."""
    return max((row.level(variable, candidate, values) or (0, 0) for row in rows), default=(0, 0))
