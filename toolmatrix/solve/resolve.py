"""Solves a request: the best answer, or the problem that has none.

Pure computation: results are values and record numbers of the index; `report` writes the sentences.
"""

from __future__ import annotations

from toolmatrix.factbase import evidence as words
from toolmatrix.solve.assemble import Assembly, assembled
from toolmatrix.solve.engine import Conflict, settle, solve
from toolmatrix.solve.known import BOUND, UNJOINED, Relations
from toolmatrix.solve.parts import Pin, Statement
from toolmatrix.solve.request import REQUIREMENT, as_wheels, with_default_accelerators
from toolmatrix.solve.revised import TRIES, revised
from toolmatrix.solve.support import Choice, targets_of
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Incompatibility
    from toolmatrix.solve.engine import Solution
    from toolmatrix.solve.grounds import Core
    from toolmatrix.solve.known import Touching
    from toolmatrix.solve.request import Ask, Request
    from toolmatrix.solve.worlds import Outside

    _Solved = tuple[Assembly, tuple[int, ...]]
    """A problem, and the candidates of its solution."""
    _Outcome = TypeVar("_Outcome")


class Resolution(Value):
    """The answer: choices per target in order of preference.

    `hidden` are releases of components that an answer does not show, `values` the candidates as the engine has them.
    `unread` is what no fact decides and the answer rests on, `touching` are pairs of parts that no fact joins, though
    their code or their makers do: with any of these, it is no yes. `set_apart` is what the search gave up on its way
    to this answer, as too little is known of it. `contested` asks for packages that the answer leaves out: installers
    bring them, and no release is admitted by all that requires them.
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
    contested: tuple[Ask, ...] = ()

    @property
    def known(self) -> bool:
        """True where the answer is a yes: facts support it, and not only none forbids it."""
        return not self.unread and not self.touching

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
    required = [ask for ask in outcome.request.asks if ask.option == REQUIREMENT]
    return Unsatisfiable(
        index=index,
        # A change has to satisfy them as well.
        request=request.replace(asks=(*request.asks, *required)) if required else request,
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
    """The best answer, or the problem that has none; with the defaults where they give an answer that is known.

    An unread fact never moves what was asked for to another release. Of the rest every unread fact binds that can, so
    that an answer rests on what is known; one that cannot is `unread` in the answer: neither yes nor no.
    """
    built = _with_accelerators(index, request)
    if not request.or_wheels or (isinstance(built, Resolution) and built.known):
        return built
    installed = _with_accelerators(index, as_wheels(request))
    is_better = isinstance(installed, Resolution) and (
        installed.known or isinstance(built, Assembly)
    )
    return installed if is_better else built


def _with_accelerators(index: Index, request: Request) -> Resolution | Assembly:
    first, *others = with_default_accelerators(index, request)
    best = _uncontested(_attempt, index, first)
    # Where no accelerator helps, explain the default: the others would blame accelerators that the request never named.
    refused = isinstance(best, Assembly)
    unread = set() if isinstance(best, Assembly) else {line.component for line in best.unread}
    for other in others if refused or "accelerator" in unread else ():
        answer = _uncontested(_attempt, index, other)
        if isinstance(answer, Resolution) and (refused or answer.known):
            return answer
    return best


def _uncontested(
    find: Callable[[Index, Request], _Outcome], index: Index, request: Request
) -> _Outcome:
    """What `find` makes of a request, which also asks for the packages that an answer leaves out and none admits."""
    while isinstance(answer := find(index, request), Resolution) and answer.contested:
        request = request.replace(asks=(*request.asks, *answer.contested))
    return answer


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
        touching = (pair for answer in answers for pair in answer.touching())
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
    return _uncontested(_possible, index, request)


def _possible(index: Index, request: Request) -> Resolution | None:
    return next((attach_evidence(*solved) for solved in _solved(index, request)), None)


def supported(index: Index, request: Request) -> Resolution | None:
    """The best answer that facts support, or that of `possible` where the first few pairs that touch lead to none."""
    return _uncontested(_supported_answer, index, request)


def _supported_answer(index: Index, request: Request) -> Resolution | None:
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
            if target in ("", pair.target)
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
        evidence=words.UNKNOWN if unread or touching else weakest,
        values=values,
        unread=grounds,
        touching=tuple(touching),
        set_apart=assembly.set_apart,
        contested=tuple(ask for answer in answers.values() for ask in answer.contested()),
    )


def _hidden(assembly: Assembly, values: tuple[int, ...]) -> Iterator[Pin]:
    for (target, name), variables in assembly.by_name.items():
        release = assembly.version(variables[0], values[variables[0].number])
        if release is not None and assembly.header["components"][name]["hidden"]:
            yield Pin(target, name, release)
