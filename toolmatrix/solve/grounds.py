"""A core read line by line: facts about the same pair of components joined, and of each only what matters here.

Of a claim about hundreds of releases only those are named that the other lines of the core leave.
"""

from __future__ import annotations

from toolmatrix.finding import Incompatibility
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.facts.records import ClaimRecord
    from toolmatrix.solve.assemble import Assembly
    from toolmatrix.solve.parts import Pin, Reason
    from toolmatrix.solve.request import Ask


class CoreLine(Value):
    """One line of a core: a line of the request, or facts about one pair of components."""

    target: str
    ask: Ask | None = None
    ground: Incompatibility | None = None


class Core(Value):
    """A reason why there is no answer: lines that cannot hold together.

    `asks` are all lines of the request behind them, also defaults and what an option brings; `subjects` the components
    that its facts are about. It is `soft` where nothing but the evidence asked for refuses.
    """

    lines: tuple[CoreLine, ...]
    asks: tuple[Ask, ...]
    subjects: tuple[str, ...]
    soft: bool


def core(assembly: Assembly, numbers: Sequence[int], held: Sequence[Pin] = ()) -> Core:
    """A core as the engine numbers it, read."""
    reasons = [assembly.reason(number) for number in numbers]
    return Core(
        lines=tuple(lines(assembly, numbers, held)),
        asks=tuple(reason.ask for reason in reasons if reason.ask is not None),
        subjects=tuple(reason.subject for reason in reasons if reason.subject),
        soft=any(reason.kind == "evidence" for reason in reasons),
    )


def lines(assembly: Assembly, core: Sequence[int], held: Sequence[Pin] = ()) -> list[CoreLine]:
    """The lines of a core: facts in the order of its nogoods, then what was asked.

    `held` are releases that stand beside the request: those of one cell of a CI matrix.
    """
    reasons = [assembly.reason(number) for number in core]
    left = _Remaining(assembly, reasons, held)
    facts: dict[tuple[str, str, str, str], list[Reason]] = {}
    asked: dict[tuple[str, str], CoreLine] = {}
    for reason in reasons:
        if reason.ask is None:
            key = (reason.target, reason.kind, reason.subject, reason.component)
            facts.setdefault(key, []).append(reason)
        elif reason.ask.text:
            asked[reason.target, reason.ask.text] = CoreLine(target=reason.target, ask=reason.ask)
    told = [
        CoreLine(target=same[0].target, ground=_ground(assembly, same, left))
        for same in facts.values()
    ]
    return [*told, *asked.values()]


def grounds(
    assembly: Assembly, core: Sequence[int], held: Sequence[Pin] = ()
) -> tuple[Incompatibility, ...]:
    """The facts of a core; the lines of the request are left out."""
    return tuple(line.ground for line in lines(assembly, core, held) if line.ground is not None)


class _Remaining:
    """The releases left of each component when the request and then every fact that it triggers are heard."""

    def __init__(self, assembly: Assembly, reasons: Sequence[Reason], held: Sequence[Pin]) -> None:
        self.align = assembly.request.align
        self.remaining: dict[tuple[str, str], int] = {}
        for target, component, release in held:
            self.narrow(target, component, assembly.scale(component).bit(release))
        for reason in reasons:
            if reason.ask is not None:
                mask = assembly.mask(reason.ask.component, reason.ask.selector)
                self.narrow(reason.target, reason.ask.component, mask)
        for reason in reasons:
            self.builds(assembly, reason)
        for _ in reasons:
            for reason in reasons:
                if reason.ask is None and reason.kind in ("requires", "limits"):
                    self.fire(reason)

    def builds(self, assembly: Assembly, reason: Reason) -> None:
        """Of the builds of a component, those of the releases that are left of it."""
        for name in (reason.subject, reason.component):
            of = assembly.header["components"][name]["variant_of"] if name else ""
            for binding in assembly.component(name).bindings if of else ():
                if binding.component == of and not binding.allowed & self.of(reason.target, of):
                    self.narrow(reason.target, name, ~binding.mask)

    def fire(self, reason: Reason) -> None:
        """Narrow the component a fact speaks about, if its conditions hold and something remains."""
        terms = {reason.subject: reason.mask, **reason.conditions}
        held = all(not self.of(reason.target, name) & ~mask for name, mask in terms.items())
        if held and self.of(reason.target, reason.component) & reason.allowed:
            self.narrow(reason.target, reason.component, reason.allowed)

    def of(self, target: str, component: str) -> int:
        """The releases left of a component; an aligned one is the same on every target."""
        return self.remaining.get(self.place(target, component), -1)

    def narrow(self, target: str, component: str, mask: int) -> None:
        self.remaining[self.place(target, component)] = self.of(target, component) & mask

    def place(self, target: str, component: str) -> tuple[str, str]:
        return ("" if component in self.align else target), component


def _ground(assembly: Assembly, reasons: Sequence[Reason], left: _Remaining) -> Incompatibility:
    first = reasons[0]
    if first.kind == "evidence":
        return Incompatibility(
            kind=first.kind,
            subject=first.subject,
            releases=(),
            component=first.component,
            values=(first.rule,),
        )
    mask = 0
    allowed = 0
    records: dict[str, ClaimRecord] = {}
    for reason in reasons:
        allowed |= reason.allowed
        wanted = left.of(reason.target, first.subject) & reason.mask
        mask |= wanted
        for cite in assembly.index.cites(reason.cites):
            if cite.touches(wanted):
                record = assembly.index.claim(cite.record)
                records.setdefault(record.id, record._replace(evidence=cite.evidence))
    whole = (2 << len(assembly.component(first.component).versions)) - 2
    rest = left.of(first.target, first.component) & whole
    cited = next(iter(records.values()), None)
    return Incompatibility(
        kind=first.kind,
        subject=first.subject,
        releases=_named(assembly, first.subject, mask),
        component=first.component,
        values=tuple(dict.fromkeys(record.selector for record in records.values())),
        clashing=() if rest & allowed or rest == whole else _named(assembly, first.component, rest),
        alternatives=first.alternatives,
        conditions=tuple(
            (name, _named(assembly, name, bits))
            for name, bits in first.conditions.items()
            if not assembly.header["components"][name]["given"]
        ),
        facts=tuple(records),
        evidence=cited.evidence if cited else "",
        source=cited.source if cited else "",
    )


def _named(assembly: Assembly, component: str, mask: int) -> tuple[str, ...]:
    return tuple(assembly.scale(component).named(mask))
