"""Findings about releases without an answer: those with the same reason are one finding."""

from __future__ import annotations

from toolmatrix.codes.matrix import ExplainedRefusal, Undecided, UnexplainedRefusal, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.finding import BuildVariant, Finding, Incompatibility
    from toolmatrix.judge.sweep import ReleaseOutcome, Unanswered

    Code = type[ExplainedRefusal | UnexplainedRefusal | Undecided]

LONGEST = 7
"""Lines of a reason beyond which it explains nothing to anybody."""


def findings(
    outcomes: Iterable[ReleaseOutcome], promised: BuildVariant, framework: str
) -> Iterator[Finding]:
    """Every way in which a release has no answer, merged, and every release that nobody can reach.

    `promised` is the way in which every release of `framework`, the first one of the matrix, must have an answer.
    """
    held = list(outcomes)
    tried: dict[str, dict[BuildVariant, None]] = {}
    for outcome in held:
        tried.setdefault(outcome.component, {}).update(dict.fromkeys(_tried(outcome)))
    for found in _merged_ways(_merged_releases(held)):
        # The first framework of the matrix, built from source on the first target, is what the project promises.
        broken = promised in found.ways and found.component == framework
        usual = "warning" if isinstance(found, UnexplainedRefusal) else "info"
        yield found.replace(
            severity="error" if broken else usual,
            ways=whole(found.ways, tried[found.component]),
            facts=_facts(found.grounds),
        )
    yield from _lost(held)


def _facts(grounds: Iterable[Incompatibility]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact for ground in grounds for fact in ground.facts))


def _tried(outcome: ReleaseOutcome) -> Iterator[BuildVariant]:
    yield from outcome.answered
    for refused in (*outcome.refused, *outcome.unread):
        yield refused.way


def whole(ways: Iterable[BuildVariant], tried: Iterable[BuildVariant]) -> tuple[BuildVariant, ...]:
    """Ways with every accelerator that was tried there as one without any."""
    held = dict.fromkeys(ways)
    # All that were tried on a target fall together: then the accelerator is not what matters.
    left = {(way.target, way.from_) for way in tried if way not in held}
    return tuple(
        dict.fromkeys(
            way if (way.target, way.from_) in left else way.replace(accelerator="") for way in held
        )
    )


def explained(refused: Unanswered) -> bool:
    """True where a refusal has a recorded reason: few lines, hard, and more of them than mere needs."""
    kinds = {ground.kind for ground in refused.grounds}
    return (
        refused.size <= LONGEST and bool(kinds & {"requires", "limits"}) and "evidence" not in kinds
    )


def _merged_releases(outcomes: Sequence[ReleaseOutcome]) -> list[Finding]:
    """A finding for the releases without an answer in one way by facts about the same pairs of components."""
    same: dict[tuple[str, BuildVariant, Code, object], list[tuple[str, Unanswered]]] = {}
    for outcome in outcomes:
        for held in (*outcome.refused, *outcome.unread):
            shapes = tuple(shape(ground) for ground in held.grounds)
            key = (outcome.component, held.way, _code(held), shapes)
            same.setdefault(key, []).append((outcome.version, held))
    return [
        code(
            severity="",
            component=component,
            releases=tuple(version for version, _ in alike),
            ways=(way,),
            grounds=joined([held.grounds for _, held in alike]),
        )
        for (component, way, code, _), alike in same.items()
    ]


def _code(held: Unanswered) -> Code:
    if not held.size:
        return Undecided
    return ExplainedRefusal if explained(held) else UnexplainedRefusal


def _merged_ways(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of which none differs from another in the way alone."""
    same: dict[Finding, tuple[BuildVariant, ...]] = {}
    for found in findings:
        alike = found.replace(ways=())
        same[alike] = same.get(alike, ()) + found.ways
    return [alike.replace(ways=ways) for alike, ways in same.items()]


def shape(ground: Incompatibility) -> tuple[object, ...]:
    """The part that grounds must share to be reported as one: everything but releases, values and facts."""
    conditions = tuple(name for name, _ in ground.conditions)
    return ground.kind, ground.subject, ground.component, ground.alternatives, conditions


def joined(several: Sequence[Sequence[Incompatibility]]) -> tuple[Incompatibility, ...]:
    """Reasons of the same shape as one: line by line the union of what they name."""
    return tuple(_union(lines) for lines in zip(*several, strict=True))


def _union(lines: Sequence[Incompatibility]) -> Incompatibility:
    def union(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for line in lines for one in getattr(line, field)))

    conditions: Mapping[str, dict[str, None]] = {name: {} for name, _ in lines[0].conditions}
    for line in lines:
        for name, releases in line.conditions:
            conditions[name].update(dict.fromkeys(releases))
    return lines[0].replace(
        releases=union("releases"),
        values=union("values"),
        clashing=union("clashing") if all(line.clashing for line in lines) else (),
        facts=union("facts"),
        conditions=tuple((name, tuple(held)) for name, held in conditions.items()),
    )


def _lost(outcomes: Sequence[ReleaseOutcome]) -> Iterator[Finding]:
    same: dict[tuple[object, ...], list[ReleaseOutcome]] = {}
    for outcome in outcomes:
        if outcome.lost is not None:
            key = (outcome.component, tuple(shape(ground) for ground in outcome.lost))
            same.setdefault(key, []).append(outcome)
    for held in same.values():
        grounds = joined([outcome.lost for outcome in held if outcome.lost is not None])
        yield Unreachable(
            severity="warning",
            component=held[0].component,
            releases=tuple(outcome.version for outcome in held),
            grounds=grounds,
            facts=_facts(grounds),
        )
