"""Turns the model into what solving needs: masks over releases, rivals decided, rows widened by their rules.

The result does not depend on the order in which files and rows were read. Raises MatrixError, at the cell, for a
selector that admits no known release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NoReturn

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import versions
from toolmatrix.factbase.compiled import (
    Compiled,
    CompiledBinding,
    CompiledClaim,
    CompiledDispute,
    Terms,
    bits,
    union,
)
from toolmatrix.factbase.minimums import Minimums, soft_constraints
from toolmatrix.factbase.model import (
    Channel,
    Claim,
    Component,
    FactSource,
    InheritanceRule,
    Matrix,
    ReadRequirements,
    Release,
    TableRow,
    Target,
)
from toolmatrix.factbase.pieces import LocatedStr
from toolmatrix.factbase.records import FAILS
from toolmatrix.factbase.versions import Scale
from toolmatrix.value import Value


def compile_matrix(matrix: Matrix, only: Collection[str] | None = None) -> Compiled:
    """Compile a loaded matrix, or `only` what is said of some components. Raises MatrixError."""
    maker = _Compiler(matrix)
    subjects = frozenset(matrix.components if only is None else only)
    hard: list[CompiledClaim] = []
    soft: list[CompiledClaim] = []
    for _, claim in sorted(matrix.claims.items()):
        if claim.when[0][0] in subjects:
            (soft if claim.kind == "tested" else hard).extend(maker.readings(claim))
    bindings, disputes = _decide(hard, matrix)
    minimums = Minimums(matrix, maker.scales, maker.dates)
    ranking = [reading for reading in soft if reading.claim.decides]
    unread = minimums.statements(bindings, ranking)
    return Compiled(
        matrix=matrix,
        subjects=subjects,
        digest=digest(matrix),
        scales=maker.scales,
        bindings=(*bindings, *unread),
        soft_constraints=tuple(
            soft_constraints(minimums.narrowed(ranking), [*matrix.components], maker.dates)
        ),
        disputes=(*disputes, *_overruled(soft, bindings), *_rivals(soft)),
    )


def digest(matrix: Matrix) -> str:
    """The digest of what a matrix says: equal for equal facts, whatever their order, files and spacing."""
    text = hashlib.sha256()
    encoder = json.JSONEncoder(sort_keys=True, check_circular=False)
    groups: Sequence[tuple[type[Value], Mapping[Any, Value]]] = (
        (Component, matrix.components),
        (Target, matrix.targets),
        (InheritanceRule, matrix.rules),
        (FactSource, matrix.sources),
        (Channel, matrix.channels),
        (Release, matrix.releases),
        (Claim, matrix.claims),
        (TableRow, matrix.rows),
        (ReadRequirements, matrix.requirements),
    )
    for kind, group in groups:
        # A node is the place in a file, which says nothing about versions.
        values_of = attrgetter(*(field for field in kind._fields if field != "node"))
        entries = [(name, values_of(group[name])) for name in sorted(group)]
        text.update(encoder.encode(entries).encode())
    # Sorted above; the order of preference is added, as answers depend on it.
    text.update(matrix.date.encode())
    text.update(encoder.encode([list(matrix.components), list(matrix.targets)]).encode())
    text.update(encoder.encode([dict(matrix.aliases), matrix.packages]).encode())
    return "sha256:" + text.hexdigest()


# The limits of these two say which code runs where.
_RUNS = ("device", "arch")


class _Compiler:
    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        ranks: dict[str, dict[str, int]] = {name: {} for name in matrix.components}
        for (component, version), release in matrix.releases.items():
            ranks[component][version] = release.rank
        self.scales = {
            name: Scale(
                matrix.components[name].scheme,
                versions.sort(matrix.components[name].scheme, ranked),
            )
            for name, ranked in ranks.items()
        }
        self.dates = {
            name: [matrix.releases[name, version].date for version in scale.versions]
            for name, scale in self.scales.items()
        }
        self._masks: dict[tuple[str, str], tuple[int, bool]] = {}
        self._runs: dict[str, int] = {}
        self._limits: dict[str, list[tuple[int, int]]] = {}

    def masked(self, component: str, selector: str) -> tuple[int, bool]:
        """The mask of a selector, and whether a point release was taken as its series."""
        # Thousands of cells share a few selectors.
        cached = self._masks.get((component, selector))
        if cached is None:
            scale = self.scales[component]
            parsed = scale.parse(selector)
            coarse = scale.scheme == "series" and any(
                clause.operator in ("==", ">=", "<=", "upto") and _is_finer(clause, scale)
                for alternative in parsed
                for clause in alternative
            )
            cached = self._masks[component, selector] = scale.mask(parsed), coarse
        return cached

    def readings(self, claim: Claim) -> Iterator[CompiledClaim]:
        """The claim as it stands, then as widened by each of its rules."""
        terms = []
        for component, selector in claim.when:
            mask, _ = self.masked(component, selector)
            # Mostly a slip: a row about no release would have no effect.
            if not mask and not claim.unreleased:
                self.unreleased(claim, component, selector)
            terms.append((component, mask))
        # A selector `11.2` also admits 11.2.1, which a row of releases does not mean.
        if claim.exact:
            subject, release = claim.when[0]
            terms.append((subject, self.scales[subject].bit(release)))
        if claim.by_device:
            devices = self.running(self.masked("arch", claim.selector)[0])
            says = "holds code that runs on {value}" if devices else ""
            claim = claim.replace(
                component="device", selector=" ".join(devices) or versions.ABSENT, says=says
            )
        if claim.by_toolkit:
            devices = self.named(claim.component, self.masked(claim.component, claim.selector)[0])
            claim = claim.replace(component="device", selector=" ".join(devices) or versions.ABSENT)
        allowed, coarse = self.masked(claim.component, claim.selector)
        if not allowed and not claim.unreleased:
            self.unreleased(claim, claim.component, claim.selector)
        # Neither requires the component: it may be absent.
        if claim.kind in ("limits", "offers"):
            allowed |= 1
        elif claim.kind == FAILS:
            allowed = (self.scales[claim.component].everything | 1) & ~allowed
        evidence = (
            words.weaker(claim.evidence, "derived") if coarse or claim.rule else claim.evidence
        )
        rules = tuple(filter(None, (claim.rule, "same-series" if coarse else "")))
        first = CompiledClaim(
            claim=claim, when=_merge(terms), allowed=allowed, evidence=evidence, rules=rules
        )
        if all(mask for _, mask in first.when) and (allowed or claim.kind != "tested"):
            yield from self.widened(first, claim.stands_for)

    def named(self, toolkit: str, releases: int) -> list[str]:
        """The devices for which some release of a toolkit makes code by name."""
        # By toolkit, as all claims are gone through for each.
        if toolkit not in self._limits:
            self._limits[toolkit] = [
                (self.masked(toolkit, claim.when[0][1])[0], self.masked("arch", claim.selector)[0])
                for claim in self.matrix.claims.values()
                if (claim.kind, claim.component) == ("limits", "arch")
                and claim.when[0][0] == toolkit
            ]
        built_archs = union(archs for mask, archs in self._limits[toolkit] if mask & releases)
        # `sm_121` and `compute_121` are called after the device 12.1, `gfx90a` is one.
        called = {name.rpartition("_")[2] for name in self.scales["arch"].named(built_archs)}
        return [name for name in self.scales["device"].versions if name.replace(".", "") in called]

    def running(self, archs: int) -> list[str]:
        """The devices that run code for one of some archs."""
        # As limits of devices on archs say; several of one device all have to allow an arch.
        if not self._runs:
            for claim in self.matrix.claims.values():
                if claim.kind == "limits" and (claim.when[0][0], claim.component) == _RUNS:
                    for name in self.scales["device"].named(
                        self.masked("device", claim.when[0][1])[0]
                    ):
                        mask, _ = self.masked("arch", claim.selector)
                        self._runs[name] = self._runs.get(name, -1) & mask
        return sorted(name for name, mask in self._runs.items() if mask & archs & ~1)

    def widened(self, reading: CompiledClaim, rules: tuple[str, ...]) -> list[CompiledClaim]:
        readings = [reading]
        # A rule also widens the results of the rules before it: a row for x86 and a minor covers arm and that minor.
        for name in rules:
            readings += [wider for base in readings for wider in self.widen(base, name)]
        return readings

    def widen(self, reading: CompiledClaim, name: str) -> Iterator[CompiledClaim]:
        rule = self.matrix.rules[name]
        subject, mask = reading.when[0]
        when = reading.when
        if rule.widens == "minor":
            # Names have no minor series.
            if self.scales[subject].scheme == "names":
                reading.claim.node.fail(
                    f"`{reading.claim.id}` cannot be widened by `{name}`",
                    expected="a subject whose releases are versions",
                    found=f"{subject}, whose releases are names",
                    help="remove the rule from `stands-for:`",
                )
            wider = _minor(self.scales[subject], mask) & ~mask
            when = ((subject, wider), *when[1:])
        elif rule.context:
            changed = dict(when)
            for component, selector in rule.context.items():
                if component not in changed:
                    return
                wider = self.masked(component, selector)[0] & ~changed[component]
                changed[component] = wider
            when = tuple(changed.items())
        if when != reading.when and all(mask for _, mask in when):
            yield reading.replace(
                when=when,
                written_for=reading.written_for or mask,
                evidence=words.weaker(reading.evidence, rule.evidence),
                rules=(*reading.rules, name),
            )

    def unreleased(self, claim: Claim, component: str, selector: str) -> NoReturn:
        import difflib

        near = difflib.get_close_matches(
            selector.partition(",")[0].lstrip("=<>!~"), self.scales[component].versions, 1, 0.0
        )
        node = selector.node if isinstance(selector, LocatedStr) else claim.node
        node.fail(
            f"`{claim.id}` names a version of {component} that was never released",
            expected=f"a known release of {component}" + (f", such as {near[0]}" if near else ""),
            found=f"`{selector}`",
            help="correct it, add the release with its source, or say `unreleased: true`",
        )


def _is_finer(clause: versions.Clause, scale: Scale) -> bool:
    # A point release of which the scale knows the series: GCC 7.3.1, where releases of GCC are 7, 8, 9.
    if clause.version is None or clause.text.endswith(".*"):
        return False
    numbers = clause.version[0]
    return any(
        len(numbers) > len(series := versions.key(name)[0]) and numbers[: len(series)] == series
        for name in scale.versions
    )


def _merge(terms: Iterable[tuple[str, int]]) -> Terms:
    masks: dict[str, int] = {}
    for component, mask in terms:
        # A component that is named twice has to satisfy both.
        masks[component] = masks.get(component, mask) & mask
    return tuple(masks.items())


def _minor(scale: Scale, mask: int) -> int:
    minors = {versions.key(name)[0][:2] for name in scale.named(mask)}
    return union(scale.bit(name) for name in scale.versions if versions.key(name)[0][:2] in minors)


def _decide(
    hard: list[CompiledClaim], matrix: Matrix
) -> tuple[list[CompiledBinding], list[CompiledDispute]]:
    rivals: dict[tuple[object, ...], list[CompiledClaim]] = {}
    for reading in hard:
        claim = reading.claim
        conditions = tuple(sorted(reading.when[1:]))
        # Offers of several places add up, where limits would cut each other down.
        pooled = claim.kind == "offers"
        rivals.setdefault(
            (reading.when[0][0], claim.component, claim.topic, conditions, pooled), []
        ).append(reading)
    bindings: list[CompiledBinding] = []
    disputes: list[CompiledDispute] = []
    # By `repr`, as a key holds tuples, texts and flags, which do not compare.
    for name in sorted(rivals, key=repr):
        group = sorted(rivals[name], key=lambda reading: _precedence(reading, matrix))
        if group[0].claim.kind == "offers":
            bindings += _pool(group)
            continue
        settled, disputed = _settle(group)
        disputes += disputed
        bindings += _bind(settled)
    return bindings, disputes


def _pool(group: list[CompiledClaim]) -> Iterator[CompiledBinding]:
    # Releases with the same offers share a binding.
    speakers: dict[int, list[int]] = {}
    for index, reading in enumerate(group):
        for bit in bits(reading.when[0][1]):
            speakers.setdefault(bit, []).append(index)
    masks: dict[tuple[int, ...], int] = {}
    for bit, indices in sorted(speakers.items()):
        masks[tuple(indices)] = masks.get(tuple(indices), 0) | bit
    for speaking, mask in masks.items():
        offers = [group[index] for index in speaking if group[index].claim.decides]
        if offers:
            allowed = union(reading.allowed for reading in offers)
            yield _binding("limits", [(mask, reading) for reading in offers], allowed)


def _precedence(reading: CompiledClaim, matrix: Matrix) -> tuple[object, ...]:
    # Best evidence first, then the claim about fewer releases, then the one read later, then the smaller id.
    read = matrix.sources[reading.claim.source].read
    return (
        not reading.claim.decides,
        -words.rank(reading.evidence),
        reading.when[0][1].bit_count(),
        tuple(-ord(letter) for letter in read),
        reading.claim.id,
    )


def _settle(
    group: list[CompiledClaim],
) -> tuple[list[tuple[int, CompiledClaim]], list[CompiledDispute]]:
    # Every subject release goes to its best reading; contradicting readings are disputes.
    settled: list[tuple[int, CompiledClaim]] = []
    disputes = []
    covered = 0
    for reading in group:
        mask = reading.when[0][1]
        disputes += [
            CompiledDispute(mask=mask & settled_mask, rival=reading, deciding=deciding)
            for settled_mask, deciding in settled
            # An unknown is no rival of a known fact.
            if mask & settled_mask and _statement(deciding) != _statement(reading)
            if reading.evidence != words.UNKNOWN
        ]
        # Claims that do not decide count for disputes alone: they bind nothing.
        mine = mask & ~covered
        if mine and reading.claim.decides:
            settled.append((mine, reading))
            covered |= mine
    return settled, disputes


def _statement(reading: CompiledClaim) -> tuple[object, ...]:
    return reading.allowed, reading.claim.alternatives


def _bind(settled: list[tuple[int, CompiledClaim]]) -> Iterator[CompiledBinding]:
    # Readings of one group that say the same become one binding: an answer has fewer to look at, and cites them all.
    same: dict[tuple[object, ...], list[tuple[int, CompiledClaim]]] = {}
    for mask, reading in settled:
        claim = reading.claim
        same.setdefault(
            (claim.kind, reading.allowed, claim.alternatives, reading.evidence, claim.least), []
        ).append((mask, reading))
    for cites in same.values():
        _, first = cites[0]
        yield _binding(first.claim.kind, cites, first.allowed)


def _binding(
    kind: str, cites: Sequence[tuple[int, CompiledClaim]], allowed: int
) -> CompiledBinding:
    _, first = cites[0]
    return CompiledBinding(
        kind=kind,
        when=((first.when[0][0], union(mask for mask, _ in cites)), *first.when[1:]),
        allowed=allowed,
        # What it admits is as well known as the claims; that it admits nothing else is unknown.
        evidence=words.UNKNOWN if first.claim.least else first.evidence,
        cites=tuple(cites),
        **first.claim.as_dict("component", "alternatives"),
    )


def _overruled(
    soft: list[CompiledClaim], bindings: list[CompiledBinding]
) -> Iterator[CompiledDispute]:
    # Tested rows against what a deciding claim excludes.
    deciding: dict[tuple[str, str], list[tuple[int, CompiledClaim]]] = {}
    for binding in bindings:
        for mask, reading in binding.cites:
            pair = reading.when[0][0], reading.claim.component
            deciding.setdefault(pair, []).append((mask, reading))
    for rival in soft:
        subject, mask = rival.when[0]
        for deciding_mask, reading in deciding.get((subject, rival.claim.component), ()):
            excluded = mask & deciding_mask and rival.allowed & ~reading.allowed
            if excluded and _compatible(rival.when, reading.when):
                yield CompiledDispute(mask=mask & deciding_mask, rival=rival, deciding=reading)


def _rivals(soft: list[CompiledClaim]) -> Iterator[CompiledDispute]:
    # Rows rank, and may differ; those of a column marked `rival` answer one question, and dispute what shares nothing.
    topics: dict[tuple[str, str, str], list[CompiledClaim]] = {}
    for reading in soft:
        if reading.claim.rival:
            topic = reading.when[0][0], reading.claim.component, reading.claim.topic
            topics.setdefault(topic, []).append(reading)
    for group in topics.values():
        group.sort(key=_reading_order)
        for index, rival in enumerate(group):
            for better in group[:index]:
                overlap = rival.when[0][1] & better.when[0][1]
                apart = not rival.allowed & better.allowed
                if overlap and apart and _compatible(rival.when, better.when):
                    yield CompiledDispute(mask=overlap, rival=rival, deciding=better)


def _reading_order(reading: CompiledClaim) -> tuple[bool, int, str]:
    return not reading.claim.decides, -words.rank(reading.evidence), reading.claim.id


def _compatible(first: Terms, second: Terms) -> bool:
    # Claims under conditions that never hold together cannot contradict each other.
    shared = dict(first[1:])
    return all(shared.get(component, mask) & mask for component, mask in second[1:])
