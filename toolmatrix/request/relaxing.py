"""An answer to a case: as it is written, or with as few of its lines widened as it takes.

A line of the smallest conflict is widened a step at a time: its index, then an upper bound, then a pin to its minor
series, then to all later releases, then to any; a Python last. What turns out to be needless is restored. A widened
line gets the nearest release that works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from toolmatrix.factbase.index import Index
from toolmatrix.request.cases import CaseLine, word
from toolmatrix.solve.contemporary import contemporary
from toolmatrix.solve.grounds import Core
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import (
    Resolution,
    Unsatisfiable,
    attempt,
    resolve,
    supported,
    supported_release,
)
from toolmatrix.solve.worlds import begins_later, earlier
from toolmatrix.value import NamedTuple, Value

# How binding a step is: the least first.
_INDEX, _BOUND, _SERIES, _LATER, _ANY = range(5)
_FRAMEWORK, _PYTHON, _WEAK = 0.5, 10, 20


class _Step(NamedTuple):
    """One way to ask for a line, and how binding what it gives up is."""

    cost: float
    asks: tuple[Ask, ...]


class Relaxation(Value):
    """A line, what was asked for in its place (nothing where it was dropped), and the conflict behind it, if any.

    It is `outside` where a release before those that are known may do, and nothing has to change.
    """

    line: CaseLine
    asks: tuple[Ask, ...]
    core: Core | None = None
    outside: bool = False

    @property
    def text(self) -> str:
        """What was asked for in its place, in a word."""
        return word(self.asks[0]) if self.asks else ""


class CaseAnswer(Value):
    """The outcome of a case, and how wide each of its lines had to be made."""

    outcome: Resolution | Unsatisfiable
    levels: tuple[int, ...]
    relaxed: tuple[Relaxation, ...]
    search: _Relaxing
    newer: Resolution | None = None

    def supported(self) -> CaseAnswer:
        """The best answer that facts support in all parts, else one without what is newer than the code bound to it.

        The `newer` answer is the one that it replaces.
        """
        if isinstance(self.outcome, Unsatisfiable) or self.outcome.known:
            return self
        index, request = self.search.index, self.outcome.request
        known = supported(index, request)
        if known is None or not known.known:
            known = contemporary(index, request)
        if known is None or known.values == self.outcome.values:
            return self
        return self.replace(outcome=known, newer=self.outcome)

    def explained(self) -> CaseAnswer:
        """The same with the reason of each relaxed line, which takes a search each."""
        return self.replace(relaxed=tuple(map(self.search.explained, self.relaxed)))


def answer(
    index: Index,
    lines: Sequence[CaseLine],
    request: Callable[[Sequence[Ask]], Request],
    levels: Sequence[int] = (),
) -> CaseAnswer:
    """The best answer to lines, which `request` makes a request of; `levels` are those of a similar answer."""
    search = _Relaxing(index, lines, request)
    search.levels = [*levels] or search.levels
    outcome: Resolution | Unsatisfiable | None = search.widen()
    if outcome is None:
        search.restore()
        search.nearest()
        # Unread facts and evidence are those of the final request.
        outcome = resolve(index, search.request())
    return CaseAnswer(
        outcome=outcome,
        levels=tuple(search.levels),
        relaxed=tuple(search.relaxed()),
        search=search,
    )


def smallest(refused: Unsatisfiable) -> Core:
    """The reason of a refusal with the fewest lines."""
    return min(refused.cores, key=lambda core: len(core.lines))


class _Relaxing:
    def __init__(
        self,
        index: Index,
        lines: Sequence[CaseLine],
        request: Callable[[Sequence[Ask]], Request],
    ) -> None:
        self.index = index
        self.components = index.header["components"]
        self.lines = lines
        # The order of a file says nothing: what requires others is chosen before them, behind the frameworks.
        places = {name: place for place, name in enumerate(self.components)}
        self.in_order = sorted(
            range(len(lines)),
            key=lambda n: (
                not self.components[lines[n].component]["framework"],
                places.get(lines[n].component, len(places)),
            ),
        )
        self.make = request
        self.steps = [[_Step(0, line.asks), *self.weaker(line)] for line in lines]
        # A release that cannot be had is never asked for.
        self.levels = [int(bool(line.refusal)) for line in lines]
        self.cores: dict[int, Core] = {}
        self.chosen: dict[int, tuple[Ask, ...]] = {}

    def asks(self, number: int) -> tuple[Ask, ...]:
        """What is asked for of a line now."""
        return self.chosen.get(number) or self.steps[number][self.levels[number]].asks

    def request(self) -> Request:
        """The request of all lines as they are now."""
        return self.make([ask for number in self.in_order for ask in self.asks(number)])

    def widen(self) -> Unsatisfiable | None:
        """Widen lines until there is an answer; the refusal where no line is left that could be."""
        while isinstance(refused := resolve(self.index, self.request()), Unsatisfiable):
            core = smallest(refused)
            behind = {(ask.component, ask.selector) for ask in core.asks}
            candidates = [
                number
                for number, steps in enumerate(self.steps)
                if self.levels[number] + 1 < len(steps)
                and any((ask.component, ask.selector) in behind for ask in self.asks(number))
            ]
            # What earlier releases may satisfy needs nothing else to change.
            opening = {outside.component for outside in refused.outside}
            dropped = [
                number
                for number in candidates
                if self.lines[number].component in opening and not self.steps[number][-1].asks
            ]
            # A named build also decides what a target computes on, which no line of its own says.
            candidates = candidates or [
                number
                for number, line in enumerate(self.lines)
                if self.levels[number] == 0 and line.asks != line.free
            ]
            if not candidates:
                return refused
            number = min(candidates, key=lambda n: (self.steps[n][self.levels[n] + 1].cost, -n))
            step = self.levels[number] + 1
            if dropped:
                number, step = dropped[0], len(self.steps[dropped[0]]) - 1
            self.levels[number] = step
            # The first conflict is that of the line as it is written.
            self.cores.setdefault(number, core)
        return None

    def restore(self) -> None:
        """Undo what was widened needlessly, the most binding line first."""
        for number in self.binding():
            widened = self.levels[number]
            for level in range(int(bool(self.lines[number].refusal)), widened):
                self.levels[number] = level
                if isinstance(attempt(self.index, self.request()), Resolution):
                    break
                self.levels[number] = widened

    def nearest(self) -> None:
        """Ask for the nearest later release where a pin or a bound was widened to all of them."""
        for number in sorted(self.binding(), key=lambda n: self.lines[n].component == "python"):
            asks = self.asks(number)
            if not asks or not asks[0].selector.startswith(">="):
                continue
            component, request = asks[0].component, self.request()
            oldest = request.replace(oldest=(*request.oldest, component), prefer="newest")
            version = supported_release(self.index, oldest, component)
            if not version:
                # Where no fact supports any, the nearest that none forbids.
                near = attempt(self.index, oldest)
                chosen = (
                    near.chosen(near.request.targets[0]) if isinstance(near, Resolution) else {}
                )
                version = chosen.get(component, "")
            own = asks[0].replace(selector=f"=={version}")
            pinned = tuple(ask.replace(text=word(own)) for ask in (own, *asks[1:]))
            self.chosen[number] = pinned
            if not version or not isinstance(attempt(self.index, self.request()), Resolution):
                del self.chosen[number]

    def binding(self) -> list[int]:
        """The lines that were widened, the most binding first."""
        widened = (number for number, level in enumerate(self.levels) if level)
        return sorted(widened, key=lambda n: (-self.weight(self.lines[n].component), n))

    def weight(self, component: str) -> float:
        """How binding lines about a component are beside others."""
        if component == "python":
            return _PYTHON
        return _FRAMEWORK if self.components[component]["framework"] else 0

    def relaxed(self) -> Iterator[Relaxation]:
        """The lines that were widened, in the order of the case."""
        for number, level in enumerate(self.levels):
            if level:
                line, asks = self.lines[number], self.asks(number)
                outside = not asks and self.is_cut(line)
                yield Relaxation(line=line, asks=asks, core=self.cores.get(number), outside=outside)

    def explained(self, relaxation: Relaxation) -> Relaxation:
        """A relaxation with the conflict of its line as it is written beside the others, as wide as they are."""
        number = self.lines.index(relaxation.line)
        if relaxation.line.refusal:
            return relaxation
        (chosen, self.chosen), level = (self.chosen, {}), self.levels[number]
        self.levels[number] = 0
        refused = resolve(self.index, self.request())
        self.chosen, self.levels[number] = chosen, level
        if isinstance(refused, Unsatisfiable):
            return relaxation.replace(core=smallest(refused))
        return relaxation

    def weaker(self, line: CaseLine) -> Iterator[_Step]:
        """The steps by which a line is widened."""
        # What is of no file that decides gives way before all that is.
        weight = self.weight(line.component) - _WEAK * line.weak
        own, *builds = line.free
        if line.weak and any(o.component == line.component and not o.weak for o in self.lines):
            # The other line says what is wanted.
            yield _Step(_INDEX + weight, (own.replace(selector="*", text=line.component),))
            return
        if line.free != line.asks:
            yield _Step(_INDEX + weight, line.free)
        known = self.index.scale(line.component).select(own.selector)
        for cost, selector in self.selectors(own, known):
            admitted = self.index.scale(line.component).select(selector)
            wide = own.replace(selector=selector)
            asks = tuple(ask.replace(text=word(wide)) for ask in (wide, *builds))
            if admitted & ~known:
                known |= admitted
                yield _Step(cost + weight, asks)
            # Later releases may have other extras.
            if builds and line.part.item.extras and cost > _SERIES:
                yield _Step(cost + weight, asks[:1])
        head = self.components[line.component]
        # A toolkit of conda need not be present; what is for the CPU alone is independent of the rest.
        if own.option:
            yield _Step((_ANY if line.component == "python" else _INDEX) + weight, ())
        elif line.weak or (head["framework"] and not head["accelerators"]) or self.is_cut(line):
            yield _Step(_ANY + weight + 1, ())

    def is_cut(self, line: CaseLine) -> bool:
        """True if a package of Python alone has releases before the known ones, one of which may do."""
        name, selectors = line.component, [ask.selector for ask in line.asks[:1]]
        return (
            self.index.is_independent(name)
            and earlier(self.index, name, selectors)
            and begins_later(self.index, name)
        )

    def selectors(self, ask: Ask, known: int) -> Iterator[tuple[int, str]]:
        """Wider and wider selectors of a component, each with how binding what it gives up is."""
        scale = self.index.scale(ask.component)
        clause = scale.parse(ask.selector)[0][0]
        if clause.version is None:
            return
        lowest = scale.named(known)[0] if known else clause.text.removesuffix(".*")
        if ask.selector.startswith("=="):
            yield _SERIES, f">={lowest},=={'.'.join(lowest.split('.')[:2])}.*"
            yield _LATER, f">={lowest}"
        else:
            yield _BOUND, f">={lowest}"
        yield _ANY, "*"
