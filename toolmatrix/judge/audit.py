"""The matrix beside its sources, as far as it can be judged without them.

It says what is covered, missing, old, or said in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from os.path import basename, dirname

from toolmatrix.codes import audit as codes
from toolmatrix.errors import MatrixError
from toolmatrix.facts import evidence as words
from toolmatrix.facts import yamlfile
from toolmatrix.facts.index import Index
from toolmatrix.facts.model import Matrix
from toolmatrix.finding import Finding, united
from toolmatrix.judge import contradictions
from toolmatrix.judge.lints import cited, disputes
from toolmatrix.judge.sweep import ReleaseOutcome
from toolmatrix.resources import audit_path
from toolmatrix.value import Document, Value

SCHEMA = "toolmatrix.audit/1"
HARVESTED = "harvested"
"""The directory of the files that harvesters write."""

AUDIT = yamlfile.NodeKind(
    noun="the rules of the audit",
    error=MatrixError,
    help="docs/audit.md describes matrix/audit.yaml",
    missing="check the path",
)


class AgeLimit(Value):
    """The days after which a kind of source counts as old, 0 for never; a source is of the kind that fits its `at`."""

    kind: str
    at: re.Pattern[str]
    days: int


class AuditRules(Value):
    """The rules of matrix/audit.yaml: how old readings may be, glibc of platforms, floors of families in percent."""

    ages: tuple[AgeLimit, ...]
    glibc: tuple[str, ...]
    floors: Mapping[str, int]

    def floor(self, component: str) -> int:
        """The share of the published releases of a component that has to be known, in percent."""
        return self.floors.get(component, self.floors["default"])

    def platform(self, machine: str, glibc: str) -> str:
        """The platform as uv names it: the newest whose glibc is not younger, the oldest where none is."""
        # Wheels for an older glibc run on a newer one and not the other way round: a name above that of the answer
        # would let uv take wheels that do not start there.
        fits = [one for one in self.glibc if not glibc or _numbers(one) <= _numbers(glibc)]
        return f"{machine}-manylinux_{(fits or self.glibc)[-1 if fits else 0].replace('.', '_')}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def rules(path: str = "") -> AuditRules:
    """Read the rules. Raises MatrixError."""
    root = yamlfile.read(path or audit_path(), of=AUDIT)
    keys = ("schema", "ages", "glibc", "floors")
    fields = root.only("the rules of the audit", keys, keys)
    fields["schema"].choice("schema", (SCHEMA,))
    ages = []
    for node in fields["ages"].sequence("ages"):
        own = node.only("an age", ("kind", "at", "days"), ("kind", "at", "days"))
        try:
            # Not `string`, which refuses an empty text: that is the pattern of any other source.
            pattern = re.compile(own["at"].text or "")
        except re.error as error:
            own["at"].fail(
                "a pattern cannot be read", expected="a regular expression", found=str(error)
            )
        ages.append(
            AgeLimit(kind=own["kind"].string("kind"), at=pattern, days=own["days"].integer("days"))
        )
    floors = {
        name: node.integer("a floor") for name, node in fields["floors"].mapping("floors").items()
    }
    if "default" not in floors:
        fields["floors"].fail("there is no default floor", expected="`default:`")
    glibc = tuple(one.string("glibc") for one in fields["glibc"].sequence("glibc"))
    return AuditRules(ages=tuple(ages), glibc=glibc, floors=floors)


def findings(
    matrix: Matrix,
    index: Index,
    families: Iterable[FamilyCoverage],
    held: AuditRules,
    today: date,
    packages: Mapping[str, str],
) -> Iterator[Finding]:
    """Everything that can be found wrong without asking a source; `packages` are the components of packages."""
    yield from uncovered(families, held)
    yield from aged(matrix, held, today)
    yield from otherwise(matrix, index)
    yield from contradictions.findings(matrix, index, packages)


def uncovered(families: Iterable[FamilyCoverage], held: AuditRules) -> Iterator[Finding]:
    """Components of which fewer releases are known than their floor asks for."""
    for family in families:
        floor = held.floor(family.component)
        if family.published and family.share < floor:
            yield codes.BelowFloor(
                severity="warning",
                component=family.component,
                known=family.known,
                published=family.published,
                share=family.share,
                expected=f"at least {floor} %",
                actual=f"{family.share} %",
            )


def aged(matrix: Matrix, held: AuditRules, today: date) -> Iterator[Finding]:
    """Sources that were read longer ago than their kind may be."""
    read = cited(matrix)
    for name, source in sorted(matrix.sources.items()):
        limit = next((one for one in held.ages if one.at.search(source.at)), None)
        days = (today - date.fromisoformat(source.read)).days
        # That nothing is read in a source is a finding of `check`.
        if limit and limit.days and days > limit.days and name in read:
            yield codes.AgedReading(
                severity="warning",
                source=name,
                kind=limit.kind,
                days=days,
                expected=f"read in the last {limit.days} days",
                actual=source.read,
                facts=tuple(read[name]),
            )


def otherwise(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Disputes between a table that a harvester wrote and one that somebody reviewed."""
    files = {
        row.table: claim.node.where.path
        for claim in matrix.claims.values()
        for row in (matrix.rows[claim.row],)
    }
    for found in disputes(matrix, index):
        tables = found.rival, found.deciding
        harvested = [name for name in tables if _is_harvested(files.get(name, ""))]
        # Two that were harvested, or two that were reviewed, are disputes like any other, which `check` tells.
        if len(harvested) == 1:
            curated = next(name for name in tables if name not in harvested)
            yield codes.HarvestedOtherwise(
                severity="info",
                component=found.component,
                releases=found.releases,
                about=found.about,
                harvested=harvested[0],
                curated=curated,
                facts=found.facts,
                where=found.where,
            )


def _is_harvested(path: str) -> bool:
    return basename(dirname(path)) == HARVESTED


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


def family_coverage(
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


def harvested_releases(matrix: Matrix) -> dict[str, tuple[int, str]]:
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
