"""Findings about releases without an answer: those with the same reason are one finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.finding import Finding, Incompatibility, InstallMethod, merged, united
from toolmatrix.judge.sweep import ReleaseOutcome


def findings(
    outcomes: Iterable[ReleaseOutcome], promised: InstallMethod, framework: str
) -> Iterator[Finding]:
    """Every way in which a release has no answer, merged, and every release that nobody can reach.

    `promised` is the way in which every release of `framework`, the first one of the matrix, must have an answer.
    """
    unanswered: list[Finding] = []
    lost: list[Finding] = []
    tried: dict[str, dict[InstallMethod, None]] = {}
    for outcome in outcomes:
        without = [*outcome.refused, *outcome.unread]
        ways = (*outcome.answered, *united(without, "ways"))
        tried.setdefault(outcome.component, {}).update(dict.fromkeys(ways))
        unanswered += without
        lost += [outcome.lost] if outcome.lost else []
    for found in merged(_merged_releases(unanswered), "ways"):
        # The first framework of the matrix, built from source on the first target, is what the project promises.
        broken = promised in found.ways and found.component == framework
        yield found.replace(
            severity="error" if broken else found.severity,
            ways=whole(found.ways, tried[found.component]),
        )
    yield from _merged_releases(lost)


def whole(
    ways: Iterable[InstallMethod], tried: Iterable[InstallMethod]
) -> tuple[InstallMethod, ...]:
    """Ways with every accelerator that was tried there as one without any."""
    held = dict.fromkeys(ways)
    # All that were tried on a target fall together: then the accelerator is not what matters.
    left = {(way.target, way.from_) for way in tried if way not in held}
    return tuple(
        dict.fromkeys(
            way if (way.target, way.from_) in left else way.replace(accelerator="") for way in held
        )
    )


def _merged_releases(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about several releases of one component by facts about the same pairs of components as one."""
    # Patch releases fail by the same rows of the same tables: a finding for each would say one thing a hundred times.
    same: dict[tuple[Finding, object], list[Finding]] = {}
    for found in findings:
        about = found.replace(releases=(), grounds=(), facts=())
        same.setdefault((about, tuple(map(_shape, found.grounds))), []).append(found)
    for alike in same.values():
        grounds = tuple(map(_union, zip(*(found.grounds for found in alike), strict=True)))
        facts = united(grounds, "facts")
        yield alike[0].replace(releases=united(alike, "releases"), grounds=grounds, facts=facts)


def _shape(ground: Incompatibility) -> tuple[object, ...]:
    """The part that grounds must share to be reported as one: everything but releases, values and facts."""
    conditions = tuple(name for name, _ in ground.conditions)
    return ground.kind, ground.subject, ground.component, ground.alternatives, conditions


def _union(lines: Sequence[Incompatibility]) -> Incompatibility:
    conditions: Mapping[str, dict[str, None]] = {name: {} for name, _ in lines[0].conditions}
    for line in lines:
        for name, releases in line.conditions:
            conditions[name].update(dict.fromkeys(releases))
    return lines[0].replace(
        releases=united(lines, "releases"),
        values=united(lines, "values"),
        # Where nothing clashes for one of the releases, what clashes for the others is no common reason.
        clashing=united(lines, "clashing") if all(line.clashing for line in lines) else (),
        facts=united(lines, "facts"),
        conditions=tuple((name, tuple(held)) for name, held in conditions.items()),
    )
