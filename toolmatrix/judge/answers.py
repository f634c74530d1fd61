"""From verdicts to findings: what has no answer and why, releases and ways with the same reason told once."""

from __future__ import annotations

from toolmatrix.finding import Finding, Ground
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.finding import Way
    from toolmatrix.judge.sweep import Refused, Verdict

LONGEST = 7
"""A reason with more lines than this explains nothing to anybody."""

EXPLAINED, UNEXPLAINED, UNKNOWN, UNREACHABLE = "TM104", "TM105", "TM120", "TM306"


class _Group(Value):
    """Releases of one component that have no answer for one reason, in some ways."""

    component: str
    code: str
    releases: tuple[str, ...]
    ways: tuple[Way, ...]
    grounds: tuple[Ground, ...]


def findings(verdicts: Iterable[Verdict], promised: Way, framework: str) -> Iterator[Finding]:
    """Every way in which a release has no answer, merged, and every release that nobody can reach.

    `promised` is the way in which every release of `framework`, the first one of the matrix, must have an answer.
    """
    held = list(verdicts)
    tried: dict[str, dict[Way, None]] = {}
    for verdict in held:
        tried.setdefault(verdict.component, {}).update(dict.fromkeys(_tried(verdict)))
    for group in _merged_ways(_merged_releases(held)):
        broken = promised in group.ways and group.component == framework
        yield Finding(
            code=group.code,
            severity="error" if broken else "warning" if group.code == UNEXPLAINED else "info",
            component=group.component,
            releases=group.releases,
            ways=whole(group.ways, tried[group.component]),
            grounds=group.grounds,
            facts=tuple(dict.fromkeys(fact for part in group.grounds for fact in part.facts)),
        )
    yield from _lost(held)


def _tried(verdict: Verdict) -> Iterator[Way]:
    yield from verdict.answered
    for refused in (*verdict.refused, *verdict.unread):
        yield refused.way


def whole(ways: Iterable[Way], tried: Iterable[Way]) -> tuple[Way, ...]:
    """Ways with every accelerator that was tried there as one without any."""
    held = dict.fromkeys(ways)
    left = {(way.target, way.from_) for way in tried if way not in held}
    return tuple(
        dict.fromkeys(
            way if (way.target, way.from_) in left else way.replace(accelerator="") for way in held
        )
    )


def explained(refused: Refused) -> bool:
    """Whether a refusal has a recorded reason: few lines, hard, and more of them than mere needs."""
    kinds = {ground.kind for ground in refused.grounds}
    return (
        refused.size <= LONGEST and bool(kinds & {"requires", "limits"}) and "evidence" not in kinds
    )


def _merged_releases(verdicts: Sequence[Verdict]) -> list[_Group]:
    """Releases without an answer in one way by facts about the same pairs of components."""
    same: dict[tuple[object, ...], list[tuple[str, Refused]]] = {}
    for verdict in verdicts:
        for held in (*verdict.refused, *verdict.unread):
            shapes = tuple(shape(ground) for ground in held.grounds)
            key = (verdict.component, held.way, _code(held), shapes)
            same.setdefault(key, []).append((verdict.version, held))
    return [
        _Group(
            component=str(key[0]),
            code=str(key[2]),
            releases=tuple(version for version, _ in alike),
            ways=(alike[0][1].way,),
            grounds=joined([held.grounds for _, held in alike]),
        )
        for key, alike in same.items()
    ]


def _code(held: Refused) -> str:
    if not held.size:
        return UNKNOWN
    return EXPLAINED if explained(held) else UNEXPLAINED


def _merged_ways(groups: Sequence[_Group]) -> list[_Group]:
    """Groups that differ in the way alone."""
    same: dict[tuple[object, ...], _Group] = {}
    for group in groups:
        key = (group.component, group.code, group.releases, group.grounds)
        known = same.get(key)
        same[key] = group if known is None else known.replace(ways=known.ways + group.ways)
    return list(same.values())


def shape(ground: Ground) -> tuple[object, ...]:
    """What grounds must share to be told as one: everything but releases, values and facts."""
    conditions = tuple(name for name, _ in ground.conditions)
    return ground.kind, ground.subject, ground.component, ground.alternatives, conditions


def joined(several: Sequence[Sequence[Ground]]) -> tuple[Ground, ...]:
    """Reasons of the same shape as one: line by line the union of what they name."""
    return tuple(_union(lines) for lines in zip(*several, strict=True))


def _union(lines: Sequence[Ground]) -> Ground:
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


def _lost(verdicts: Sequence[Verdict]) -> Iterator[Finding]:
    same: dict[tuple[object, ...], list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.lost is not None:
            key = (verdict.component, tuple(shape(ground) for ground in verdict.lost))
            same.setdefault(key, []).append(verdict)
    for held in same.values():
        grounds = joined([verdict.lost for verdict in held if verdict.lost is not None])
        yield Finding(
            code=UNREACHABLE,
            severity="warning",
            component=held[0].component,
            releases=tuple(verdict.version for verdict in held),
            grounds=grounds,
            facts=tuple(dict.fromkeys(fact for ground in grounds for fact in ground.facts)),
        )
