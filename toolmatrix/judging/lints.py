"""Lints of the files of a matrix: names that lead nowhere, unused names, dates, disputes, and gaps in the facts.

The loader has already refused what cannot be used; what is found here can be used and is still wrong or worth knowing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from toolmatrix import resources
from toolmatrix.errors import Position
from toolmatrix.factbase.compiled import union
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.minimums import LATER
from toolmatrix.factbase.model import Component, Matrix, Release
from toolmatrix.factbase.records import ClaimRecord, Dispute
from toolmatrix.finding import Finding, merge
from toolmatrix.judging import stage_facts
from toolmatrix.solve.preferences import RULE as SERIES
from toolmatrix.wording import plural

SET_ASIDE = "decides: false"
"""The mark of a row that is kept, shown and never decides; its note says why."""


def findings(matrix: Matrix, index: Index, today: date, stale: int | None) -> Iterator[Finding]:
    """Everything but what solving finds."""
    yield from dangling(matrix)
    yield from unused(matrix)
    yield from dates(matrix, today)
    if stale is not None:
        yield from aged(matrix, today, stale)
    yield from disputes(matrix, index)


def dangling(matrix: Matrix) -> Iterator[Finding]:
    """Releases that targets, rules and components of the front page name and that do not exist."""
    versions: dict[str, set[str]] = {name: {"*"} for name in matrix.components}
    for component, version in matrix.releases:
        versions[component].add(version)
    # Whatever names a release and is no claim: the loader has looked at those.
    named: list[tuple[str, str, str]] = []
    for name, target in matrix.targets.items():
        for pairs in (target.context, target.policies, {"accelerator": target.accelerator}):
            named += [(f"target {name}", *pair) for pair in pairs.items()]
    for name, rule in matrix.rules.items():
        named += [(f"rule {name}", *pair) for pair in rule.context.items()]
    for name, definition in matrix.components.items():
        named += [(f"component {name}", "accelerator", value) for value in definition.accelerators]
    for owner, component, selector in named:
        for version in selector.split():
            if version not in versions.get(component, {"*"}):
                yield Finding.of(
                    "TM305",
                    owner=owner,
                    name=f"{component} {version}",
                    expected=f"a release of {component}",
                    actual=version,
                )


def unused(matrix: Matrix) -> Iterator[Finding]:
    """Sources that no fact cites and rules that none is widened by."""
    cited = {claim.source for claim in matrix.claims.values()}
    cited |= {release.source for release in matrix.releases.values()}
    cited |= {row.source for row in matrix.rows.values()}
    cited |= {channel.source for channel in matrix.channels.values()}
    applied = {rule for claim in matrix.claims.values() for rule in (claim.rule, *claim.stands_for)}
    known = (("source", matrix.sources, cited), ("rule", matrix.rules, applied))
    for kind, names, used in known:
        for name in names:
            if name not in used and name not in _BUILT_IN:
                yield Finding.of("TM304", kind=kind, name=name)


# Rules that no fact names because they hold everywhere.
_BUILT_IN = ("same-series", LATER, SERIES)


def unlisted(files: Sequence[str]) -> Iterator[Finding]:
    """Fact files that lie beside those a front page lists and are not read; `files` begins with the front page."""
    known = {os.path.normpath(path) for path in files}
    home = os.path.dirname(os.path.normpath(files[0]))
    # Beside the front page lie files of anybody, such as those of a project.
    for folder in sorted({os.path.dirname(path) for path in known} - {home}):
        for name in sorted(os.listdir(folder or os.curdir)):
            path = os.path.join(folder, name)
            # A file beside those that are listed was most likely forgotten.
            if name.endswith((".yaml", ".yml")) and os.path.normpath(path) not in known:
                yield Finding.of("TM304", kind="file", name=name, where=Position(path))


def dates(matrix: Matrix, today: date) -> Iterator[Finding]:
    """Sources that were read after today; the loader has refused a day that is in no calendar."""
    for name, source in matrix.sources.items():
        if date.fromisoformat(source.read) > today:
            yield Finding.of(
                "TM307",
                source=name,
                expected=f"read by {today}",
                actual=source.read,
            )


def aged(matrix: Matrix, today: date, stale: int) -> Iterator[Finding]:
    """The matrix and the sources that were last read more than `stale` days ago."""
    age = (today - date.fromisoformat(matrix.date)).days
    if age > stale:
        yield Finding.of(
            "TM302",
            days=age,
            expected=f"reviewed in the last {stale} days",
            actual=matrix.date,
        )
    read = cited(matrix)
    for name, source in sorted(matrix.sources.items()):
        age = (today - date.fromisoformat(source.read)).days
        if age > stale and name in read:
            yield Finding.of(
                "TM310",
                source=name,
                days=age,
                phrases={"count": plural(len(read[name]), "fact")},
                expected=f"read in the last {stale} days",
                actual=source.read,
                facts=tuple(read[name]),
            )


def cited(matrix: Matrix) -> dict[str, list[str]]:
    """The ids of the claims and releases that were read in each source that has any."""
    facts: dict[str, list[str]] = {}
    for claim in matrix.claims.values():
        facts.setdefault(claim.source, []).append(claim.id)
    for (component, version), release in matrix.releases.items():
        facts.setdefault(release.source, []).append(f"{component}=={version}")
    return facts


def disputes(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Find what two sources say differently: one finding for two tables and one component."""
    groups: dict[tuple[str, str, str, str], list[Dispute]] = {}
    for subject in matrix.components:
        for dispute in index.component(subject).disputes:
            rival = _table(matrix, index.claim(dispute.rival))
            deciding = _table(matrix, index.claim(dispute.deciding))
            key = subject, dispute.component, rival, deciding
            groups.setdefault(key, []).append(dispute)
    for (subject, about, rival, deciding), group in groups.items():
        mask = union(dispute.mask for dispute in group)
        claims = [(index.claim(dispute.rival), index.claim(dispute.deciding)) for dispute in group]
        decides = any(matrix.claims[rival.id].decides for rival, _ in claims)
        yield Finding.of(
            "TM301",
            severity="info",
            component=subject,
            releases=tuple(index.scale(subject).named(mask)),
            about=about,
            rival=rival,
            deciding=deciding,
            weaker=", ".join(dict.fromkeys(dispute.evidence for dispute in group)),
            better=", ".join(dict.fromkeys(other.evidence for _, other in claims)),
            phrases={"aside": "" if decides else ", which is set aside"},
            actual="" if decides else SET_ASIDE,
            facts=tuple(dict.fromkeys(claim.id for pair in claims for claim in pair)),
            where=matrix.claims[claims[0][0].id].node.where,
        )


def _table(matrix: Matrix, claim: ClaimRecord) -> str:
    # A statement is a table of its own.
    table = matrix.rows[claim.row].table
    return claim.row if table == "statements" else table


def located(findings: Iterable[Finding], matrix: Matrix, files: Sequence[str]) -> Iterator[Finding]:
    """The findings, each with the best place known: its own, its first fact's, or that of a name it is about."""
    keys: dict[str, Position] | None = None
    for finding in findings:
        where = finding.where or _fact(finding, matrix)
        if where is None:
            keys = _keys(files) if keys is None else keys
            # A name may hold a key: `target arm` is about the key `arm`.
            candidates = [key for name in finding.names for key in (name, *name.split())]
            where = next((keys[key] for key in candidates if key in keys), None)
        yield finding.replace(where=shortened(where or Position(files[0])))


def shortened(where: Position) -> Position:
    """A place in the built-in matrix as people know it, `matrix/...`; another as it is."""
    # With a separator at its end, so that a folder beside it whose name it begins is not cut.
    root = os.path.join(resources.matrix_root(), "")
    return Position(os.path.normpath(where.path).removeprefix(root), where.line, where.column)


def _fact(finding: Finding, matrix: Matrix) -> Position | None:
    # Of a dispute the first is the fact that does not decide, which is the one to look at.
    for fact in finding.facts[:1]:
        if fact in matrix.claims:
            return matrix.claims[fact].node.where
        component, _, version = fact.partition("==")
        if (component, version) in matrix.releases:
            return matrix.releases[component, version].node.where
    return None


def _keys(files: Sequence[str]) -> dict[str, Position]:
    from toolmatrix.factbase import yamlfile

    positions: dict[str, Position] = {}
    for path in files:
        fields = yamlfile.read(path).fields or {}
        for name in ("sources", "rules", "targets", "components"):
            if name in fields:
                positions = fields[name].keys | positions
    return positions


def gaps(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Find every gap."""
    builds: dict[str, list[Release]] = {}
    for release in matrix.releases.values():
        of = matrix.components[release.component].variant_of
        if of:
            builds.setdefault(of, []).append(release)
    named = _named_toolkits(matrix, index)
    for component in (entry for entry in matrix.components.values() if entry.variants):
        own = builds.get(component.name, ())
        yield from merge(machines(index, component.name, own), "releases", "facts")
        yield from merge(toolkits(index, component.name, own, named), "releases", "facts")
    yield from cells(matrix, index, [build for group in builds.values() for build in group])


def machines(index: Index, component: str, builds: Iterable[Release]) -> Iterator[Finding]:
    """Machines that releases are offered for, and for which no build of them is known."""
    known = {(build.attributes["release"], build.attributes["machine"]) for build in builds}
    for position, release in enumerate(index.component(component).versions):
        offered, facts = _offered(index, component, 2 << position)
        for machine in index.scale("machine").named(offered):
            if (release, machine) not in known:
                yield Finding.of(
                    "TM313",
                    "machine",
                    kind="machine",
                    component=component,
                    releases=(release,),
                    machine=machine,
                    facts=tuple(facts),
                )


def _offered(index: Index, component: str, release: int) -> tuple[int, list[str]]:
    # By the limits of its wheels where facts give any, else by the list of its files.
    wheel = index.scale("from").bit("wheel")
    limit_mask, list_mask = -1, 0
    by_limit: list[str] = []
    by_list: list[str] = []
    for binding in index.component(component).bindings:
        terms = dict(binding.conditions)
        spoken = binding.mask & release and binding.evidence != "unknown"
        if not spoken or terms.pop("from", 0) != wheel:
            continue
        named = [claim.id for claim in stage_facts.cited(index, binding, release)]
        # What the builds say together would say that none is missing.
        if any(fact.startswith(f"{component}-variants#") for fact in named):
            continue
        if binding.component == "machine" and not terms:
            limit_mask &= binding.allowed
            by_limit += named
        elif binding.kind == "requires" and set(terms) == {"machine"}:
            list_mask |= terms["machine"]
            by_list += named
    return (limit_mask, by_limit) if by_limit else (list_mask, by_list)


def toolkits(
    index: Index, component: str, builds: Sequence[Release], named: Mapping[tuple[str, str], int]
) -> Iterator[Finding]:
    """Builds for an accelerator whose toolkit no fact names."""
    for build in builds:
        accelerator = build.attributes["accelerator"]
        releases = named.get((build.component, accelerator), 0)
        known = releases & index.scale(build.component).bit(build.version)
        if accelerator != "none" and not known:
            yield Finding.of(
                "TM313",
                "toolkit",
                kind="toolkit",
                component=component,
                releases=(build.attributes["release"],),
                machine=build.attributes["machine"],
                channel=build.attributes["channel"],
                accelerator=accelerator,
                facts=(f"{build.component}=={build.version}",),
            )


def _named_toolkits(matrix: Matrix, index: Index) -> dict[tuple[str, str], int]:
    """The builds of which a fact names the toolkit, by component and accelerator."""
    named: dict[tuple[str, str], int] = {}
    for claim in matrix.claims.values():
        owner, selector = claim.when[0]
        if matrix.components[owner].variant_of and (
            toolkit := _toolkit_of(matrix.components[claim.component])
        ):
            pair = owner, toolkit
            named[pair] = named.get(pair, 0) | index.scale(owner).select(selector)
    return named


def _toolkit_of(component: Component) -> str:
    """The accelerator that a component is the toolkit of; empty for frameworks and the parts of a toolkit."""
    if component.framework or component.under or len(component.accelerators) != 1:
        return ""
    return component.accelerators[0]


def cells(matrix: Matrix, index: Index, builds: Iterable[Release]) -> Iterator[Finding]:
    """Columns about what computes on an accelerator, with cells in some rows for it and none in others."""
    accelerator_of = {build.id: build.attributes["accelerator"] for build in builds}
    groups: dict[tuple[str, str], list[str]] = {}
    for row in matrix.rows.values():
        if row.table not in ("statements", row.id):
            own = accelerator_of.get(row.id) or dict(row.cells).get("accelerator", "")
            for accelerator in own.split() or [""]:
                groups.setdefault((row.table, accelerator), []).append(row.id)
    named: dict[str, dict[str, str]] = {}
    inside = set()
    for claim in matrix.claims.values():
        named.setdefault(claim.row, {}).setdefault(claim.component, claim.id)
        if claim.carried or claim.complete:
            # What no cell names is not inside, or not wanted.
            inside.add((matrix.rows[claim.row].table, claim.component))
    # Rows for the CPU lack no toolkit, so that they are compared among themselves.
    for (table, accelerator), rows in groups.items():
        about = {name for row in rows for name in named.get(row, ())}
        for name in (name for name in matrix.components if name in about):
            usual = matrix.components[name].accelerators
            lacking = [row for row in rows if name not in named.get(row, ())]
            wanted = usual and accelerator in (*usual, "") and (table, name) not in inside
            if wanted and lacking:
                facts = [fact for row in lacking for fact in list(named.get(row, {}).values())[:1]]
                other = [named[row][name] for row in rows if row not in lacking]
                component, releases = _subject(matrix, index, lacking)
                yield Finding.of(
                    "TM313",
                    "cell",
                    kind="cell",
                    severity="info",
                    component=component,
                    releases=releases,
                    about=name,
                    table=table,
                    accelerator=accelerator,
                    phrases={"others": _OTHER_ROWS.get(accelerator, f" with {accelerator}")},
                    facts=tuple(facts or other[:1]),
                )


# Rows for the same accelerator, where the table has one: a row for the CPU lacks no toolkit.
_OTHER_ROWS = {"": "", "none": " without an accelerator"}


def _subject(matrix: Matrix, index: Index, rows: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    component = matrix.rows[rows[0]].cells[0][0]
    scale = index.scale(component)
    mask = union(scale.select(matrix.rows[row].cells[0][1]) for row in rows)
    return component, tuple(scale.named(mask))
