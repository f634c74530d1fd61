"""How much of each family the matrix knows: releases, builds, answers by target, and how well its facts are known."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.finding import united
from toolmatrix.value import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Matrix
    from toolmatrix.judge.sweep import ReleaseOutcome


WAYS = ("answered", "refused", "unknown")
"""What came of asking for a release in one way."""
PUBLISHED = "published"
"""The data table of published releases: how many of each `component`, in how many `series`, and the `newest`."""


class FamilyCoverage(Document):
    """One component; `published` is None where nobody asked how many there are, and only a framework has targets."""

    component: str
    title: str
    known: int
    newest: str | None
    published: int | None
    newest_published: str | None
    variants: int
    # Ways by target and by what came of asking.
    targets: Mapping[str, Mapping[str, int]]
    # Facts and answers by evidence, the best first.
    facts: Mapping[str, int]
    answers: Mapping[str, int]

    @property
    def share(self) -> int:
        """The share of the published releases that is known, in percent; 100 where nobody knows how many there are."""
        # More may be known than the index lists now, as of releases that are gone. Rounded down, so that 100 is all.
        return 100 * min(self.known, self.published) // self.published if self.published else 100


def coverage(
    matrix: Matrix,
    index: Index,
    outcomes: Iterable[ReleaseOutcome],
    published: Mapping[str, tuple[int, str]],
    names: Sequence[str] = (),
) -> Iterator[FamilyCoverage]:
    """Each component that people ask for, in the order of the matrix; `published` says how many and the newest."""
    by_component: dict[str, list[ReleaseOutcome]] = {}
    for outcome in outcomes:
        by_component.setdefault(outcome.component, []).append(outcome)
    facts: dict[str, list[str]] = {}
    for claim in matrix.claims.values():
        subject = matrix.components[claim.when[0][0]]
        facts.setdefault(subject.variant_of or subject.name, []).append(claim.evidence)
    for component in matrix.components.values():
        name = component.name
        if component.given or component.hidden or component.flag or component.variant_of:
            continue
        if names and name not in names:
            continue
        versions = index.component(name).versions
        count, latest = published.get(name, (None, None))
        own = by_component.get(name, ())
        yield FamilyCoverage(
            component=name,
            title=component.title,
            known=len(versions),
            newest=versions[-1] if versions else None,
            published=count,
            newest_published=latest,
            variants=_builds(matrix, index, name),
            targets=_by_target(own),
            facts=_counted(facts.get(name, ())),
            answers=_counted(one for outcome in own for one in outcome.evidence),
        )


def harvested(matrix: Matrix) -> dict[str, tuple[int, str]]:
    """How many releases of a component the index listed when it was harvested, and the newest of them.

    Of a component with a release for each series so many series.
    """
    found: dict[str, tuple[int, str]] = {}
    for row in matrix.rows.values():
        if row.table == PUBLISHED:
            cells = dict(row.cells)
            # Of several packages of one component the one with most releases stands for it.
            name = cells["component"]
            kind = "series" if matrix.components[name].scheme == "series" else "releases"
            found[name] = max((int(cells[kind]), cells["newest"]), found.get(name, (0, "")))
    return found


def _builds(matrix: Matrix, index: Index, name: str) -> int:
    return sum(
        len(index.component(other.name).versions)
        for other in matrix.components.values()
        if other.variant_of == name
    )


def _by_target(outcomes: Iterable[ReleaseOutcome]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        held = (outcome.answered, united(outcome.refused, "ways"), united(outcome.unread, "ways"))
        for word, ways in zip(WAYS, held, strict=True):
            for way in ways:
                counts.setdefault(way.target, dict.fromkeys(WAYS, 0))[word] += 1
    return counts


def _counted(evidence: Iterable[str]) -> dict[str, int]:
    found = list(evidence)
    return {word: found.count(word) for word in words.WORDS if word in found}
