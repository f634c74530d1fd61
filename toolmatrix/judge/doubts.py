"""Answers as people would get them, looked at once more: what is better known than it can be, and toolkits of wheels
that nobody named.
"""

from __future__ import annotations

from toolmatrix.codes.matrix import Anachronism, UnnamedToolkit
from toolmatrix.facts import evidence as words
from toolmatrix.facts.records import ClaimRecord
from toolmatrix.finding import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.model import Matrix
    from toolmatrix.facts.records import ReleaseRecord
    from toolmatrix.finding import Finding, InstallMethod
    from toolmatrix.judge.sweep import ReleaseOutcome
    from toolmatrix.solve.resolve import Choice, Resolution

    Statement = Callable[[int], ClaimRecord | ReleaseRecord]
    """What a choice cites, by the number of its record."""

    Day = Callable[[str, str], str]
    """The day on which a release of a component came out, empty where nobody knows."""

VOUCHED = "tested"
"""The least evidence of a row that somebody tested, ran or read out of a file."""


def of_answer(
    release: tuple[str, str], way: InstallMethod, answer: Resolution
) -> Iterator[Finding]:
    """The doubts about the answer for a release, asked for in one way."""
    index = answer.index

    def day(component: str, version: str) -> str:
        bit = index.scale(component).bit(version)
        return index.component(component).dates[bit.bit_length() - 2] if bit else ""

    choices = answer.targets[way.target]
    yield from younger(choices, way, index.statement, day)
    # What is built from source takes the toolkit that is there; a wheel was built with one, which somebody knows.
    if way.from_ == "wheel":
        yield from unnamed(release, choices, way, index.statement, index.header["components"])


def younger(
    choices: Sequence[Choice], way: InstallMethod, record: Statement, day: Day
) -> Iterator[Anachronism]:
    """Choices that a row is said to have been tested with, although its subject came out before them."""
    # Of several instances the first, as everywhere.
    chosen = {choice.component: choice.version for choice in reversed(choices)}
    for choice in choices:
        out = day(choice.component, choice.version)
        for cite in choice.cites if out else ():
            claim = record(cite.record)
            if not isinstance(claim, ClaimRecord) or claim.kind != "tested":
                continue
            # What was run was there when it was run.
            if words.rank(cite.evidence) < words.rank(VOUCHED) or cite.evidence == "ran":
                continue
            release = chosen.get(claim.subject, "")
            written = day(claim.subject, release) if release else ""
            # Days are ISO 8601, whose order is that of their letters.
            if written and written < out:
                yield Anachronism(
                    severity="warning",
                    component=claim.subject,
                    releases=(release,),
                    ways=(way,),
                    tested=choice.component,
                    version=choice.version,
                    actual=out,
                    facts=(claim.id,),
                )


def unnamed(
    release: tuple[str, str],
    choices: Sequence[Choice],
    way: InstallMethod,
    record: Statement,
    components: Mapping[str, Mapping[str, Any]],
) -> Iterator[UnnamedToolkit]:
    """Toolkits that no fact names: none of what was asked for, none of its builds, none of what these require."""
    claims = {
        choice.component: [
            claim
            for claim in (record(cite.record) for cite in choice.cites)
            if isinstance(claim, ClaimRecord)
        ]
        for choice in choices
    }
    speaking = _speaking(release[0], choices, claims, components)
    for choice in choices:
        part = components[choice.component]
        # Only toolkits are named by others: frameworks are asked for, and builds follow from their releases.
        if part["framework"] or part["variant_of"] or not part["accelerators"]:
            continue
        owners = dict.fromkeys(claim.subject for claim in claims[choice.component])
        unknown = choice.evidence == words.UNKNOWN
        if unknown or speaking.isdisjoint(owners):
            yield UnnamedToolkit(
                severity="warning",
                component=release[0],
                releases=(release[1],),
                ways=(way,),
                toolkit=choice.component,
                versions=(choice.version,),
                expected=release[0],
                actual="" if unknown else ", ".join(owners),
                facts=tuple(claim.id for claim in claims[choice.component]),
            )


def _speaking(
    asked: str,
    choices: Sequence[Choice],
    claims: Mapping[str, Sequence[ClaimRecord]],
    components: Mapping[str, Mapping[str, Any]],
) -> set[str]:
    """The component asked for, those that it requires in a certain release, and so on, with the builds of each."""
    found: set[str] = set()
    more = {asked}
    while more:
        found |= more
        found |= {name for name, part in components.items() if part["variant_of"] in more}
        more = {
            choice.component
            for choice in choices
            if any(
                claim.subject in found and claim.kind == "requires"
                for claim in claims[choice.component]
            )
            # A framework that another needs speaks for itself, in whatever release it is there.
            or (choice.parent in found and components[choice.component]["framework"])
        } - found
    return found


def findings(outcomes: Iterable[ReleaseOutcome], matrix: Matrix) -> Iterator[Finding]:
    """The doubts of all answers: releases and ways for which the same is doubted are one finding."""
    young: list[Anachronism] = []
    nameless: list[Finding] = []
    for doubt in (doubt for outcome in outcomes for doubt in outcome.doubts):
        if not isinstance(doubt, Anachronism):
            nameless.append(doubt)
        # What is inside is a fact about a file, whenever the file was made.
        elif not matrix.claims[doubt.facts[0]].carried:
            young.append(doubt)
    for found in merged(young, "releases", "ways", "facts"):
        days = [matrix.releases[found.component, name].date for name in found.releases]
        yield found.replace(expected=max(days))
    yield from merged(nameless, "releases", "ways", "versions", "facts")
