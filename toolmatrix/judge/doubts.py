"""Answers as people would get them, looked at once more: what is better known than it can be, and toolkits of wheels
that nobody named.
"""

from __future__ import annotations

from toolmatrix.codes.matrix import Anachronism, UnnamedToolkit
from toolmatrix.facts import evidence as words
from toolmatrix.facts.records import ClaimRecord
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.model import Matrix
    from toolmatrix.facts.records import ReleaseRecord
    from toolmatrix.finding import BuildVariant, Finding
    from toolmatrix.judge.sweep import ReleaseOutcome
    from toolmatrix.solve.resolve import Choice, Resolution

    Statement = Callable[[int], ClaimRecord | ReleaseRecord]
    """What a choice cites, by the number of its record."""

    Day = Callable[[str, str], str]
    """The day on which a release of a component came out, empty where nobody knows."""

VOUCHED = "tested"
"""The least evidence of a row that somebody tested, ran or read out of a file."""


class Doubt(Value):
    """One release chosen that should not have been, or not with this evidence.

    `subject` and `release` are what the doubted facts are about. `days` are when that came out and when the chosen one
    did, where the latter is too young for the former; None where no fact names the chosen one.
    """

    way: BuildVariant
    subject: str
    release: str
    component: str
    version: str
    evidence: str
    facts: tuple[str, ...]
    days: tuple[str, str] | None = None


def of_answer(release: tuple[str, str], way: BuildVariant, answer: Resolution) -> Iterator[Doubt]:
    """The doubts about the answer for a release, asked for in one way."""
    index = answer.index

    def day(component: str, version: str) -> str:
        bit = index.scale(component).bit(version)
        return index.component(component).dates[bit.bit_length() - 2] if bit else ""

    choices = answer.targets[way.target]
    yield from younger(choices, way, index.statement, day)
    if way.from_ == "wheel":
        yield from unnamed(release, choices, way, index.statement, index.header["components"])


def younger(
    choices: Sequence[Choice], way: BuildVariant, record: Statement, day: Day
) -> Iterator[Doubt]:
    """Choices that a row is said to have been tested with, although its subject came out before them."""
    chosen = {choice.component: choice.version for choice in reversed(choices)}
    for choice in choices:
        out = day(choice.component, choice.version)
        for cite in choice.cites if out else ():
            claim = record(cite.record)
            if not isinstance(claim, ClaimRecord) or claim.kind != "tested":
                continue
            if words.rank(cite.evidence) < words.rank(VOUCHED):
                continue
            subject = claim.subject
            release = chosen.get(subject, "")
            written = day(subject, release) if release else ""
            # Days are ISO 8601, whose order is that of their letters.
            if written and written < out:
                yield Doubt(
                    way=way,
                    subject=subject,
                    release=release,
                    component=choice.component,
                    version=choice.version,
                    evidence=cite.evidence,
                    facts=(claim.id,),
                    days=(written, out),
                )


def unnamed(
    release: tuple[str, str],
    choices: Sequence[Choice],
    way: BuildVariant,
    record: Statement,
    components: Mapping[str, Mapping[str, Any]],
) -> Iterator[Doubt]:
    """Toolkits that no fact names: none of what was asked for, none of its builds, none of what these require."""
    cites = {choice.component: [record(cite.record) for cite in choice.cites] for choice in choices}
    speaking = _speaking(release[0], choices, cites, components)
    for choice in choices:
        part = components[choice.component]
        # Only toolkits are named by others: frameworks are asked for, and builds follow from their releases.
        if part["framework"] or part["variant_of"] or not part["accelerators"]:
            continue
        owners = dict.fromkeys(owner for owner, _ in map(_says, cites[choice.component]) if owner)
        if choice.evidence == words.UNKNOWN or speaking.isdisjoint(owners):
            yield Doubt(
                way=way,
                subject=release[0],
                release=release[1],
                component=choice.component,
                version=choice.version,
                evidence=choice.evidence,
                facts=tuple(claim.id for claim in cites[choice.component] if _says(claim)[0]),
            )


def _says(claim: ClaimRecord | ReleaseRecord) -> tuple[str, str]:
    """The subject of a claim and its kind; empty for a release."""
    return (claim.subject, claim.kind) if isinstance(claim, ClaimRecord) else ("", "")


def _speaking(
    asked: str,
    choices: Sequence[Choice],
    cites: Mapping[str, Sequence[ClaimRecord | ReleaseRecord]],
    components: Mapping[str, Mapping[str, Any]],
) -> set[str]:
    """The component asked for, those that it requires in a certain release, and so on, with the builds of each.

    A framework that another needs speaks for itself, in whatever release it is there.
    """
    found: set[str] = set()
    more = {asked}
    while more:
        found |= more
        found |= {name for name, part in components.items() if part["variant_of"] in more}
        more = {
            choice.component
            for choice in choices
            if any(
                owner in found and kind == "requires"
                for owner, kind in map(_says, cites[choice.component])
            )
            or (choice.parent in found and components[choice.component]["framework"])
        } - found
    return found


def findings(outcomes: Iterable[ReleaseOutcome], matrix: Matrix) -> Iterator[Finding]:
    """The doubts of all answers: releases and ways for which the same is doubted are one finding."""
    same: dict[tuple[object, ...], list[Doubt]] = {}
    for outcome in outcomes:
        for doubt in outcome.doubts:
            # What is inside is a fact about a file, whenever the file was made.
            if doubt.days and matrix.claims[doubt.facts[0]].carried:
                continue
            about = doubt.version if doubt.days else _owners(doubt, matrix)
            key = (bool(doubt.days), doubt.subject, doubt.component, about)
            same.setdefault(key, []).append(doubt)
    for held in same.values():
        yield _finding(held, matrix)


def _finding(held: Sequence[Doubt], matrix: Matrix) -> Finding:
    first = held[0]
    facts = tuple(dict.fromkeys(fact for doubt in held for fact in doubt.facts))
    releases = tuple(dict.fromkeys(doubt.release for doubt in held))
    ways = tuple(dict.fromkeys(doubt.way for doubt in held))
    if first.days:
        return Anachronism(
            severity="warning",
            component=first.subject,
            releases=releases,
            ways=ways,
            tested=first.component,
            version=first.version,
            expected=max(doubt.days[0] for doubt in held if doubt.days),
            actual=first.days[1],
            facts=facts,
        )
    return UnnamedToolkit(
        severity="warning",
        component=first.subject,
        releases=releases,
        ways=ways,
        toolkit=first.component,
        versions=tuple(dict.fromkeys(doubt.version for doubt in held)),
        expected=first.subject,
        actual=_owners(first, matrix),
        facts=facts,
    )


def _owners(doubt: Doubt, matrix: Matrix) -> str:
    """The subjects of the facts that chose what nobody named; empty where none did."""
    if doubt.evidence == words.UNKNOWN:
        return ""
    return ", ".join(dict.fromkeys(matrix.claims[fact].when[0][0] for fact in doubt.facts))
