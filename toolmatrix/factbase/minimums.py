"""The rule by which a minimum without an upper bound covers what its writers could know, and nothing later.

A component that counts majors (the key `major`) is known up to the newest one of the day on which the minimum was
written, and one that binds binaries up to its newest minor release, where compiled code says so; any other up to the
first release that a table of breaks lists, of those that came later. What lies beyond is unread: a statement of
evidence `unknown` says so beside the minimum, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import versions
from toolmatrix.factbase.compiled import (
    CompiledBinding,
    CompiledClaim,
    SoftConstraint,
    Terms,
    bits,
    union,
)
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.model import BREAKS, Matrix
from toolmatrix.factbase.records import (
    MINIMUM,
    OPENED_CODE,
    UNOPENED_CODE,
    BreakRecord,
    ClaimRecord,
)
from toolmatrix.factbase.versions import Scale, Selector
from toolmatrix.value import NamedTuple

# What a row covers: subject, context, terms with their evidence, evidence of the row, may the subject be absent.
_RowKey = tuple[str, Terms, tuple[tuple[str, int, str], ...], str, bool]


def soft_constraints(
    soft: Iterable[CompiledClaim], order: list[str], dates: Mapping[str, Sequence[str]]
) -> Iterator[SoftConstraint]:
    """Gather the cells of a row, then the rows that differ in their subject alone."""
    rows: dict[tuple[str, Terms, str], list[CompiledClaim]] = {}
    for reading in soft:
        row = reading.claim.row, reading.when, _row_evidence(reading)
        rows.setdefault(row, []).append(reading)
    same: dict[_RowKey, list[tuple[int, tuple[CompiledClaim, ...]]]] = {}
    for when, evidence, cells in _split_by_day(rows, dates):
        first = min((when[0][0], *(cell.claim.component for cell in cells)), key=order.index)
        terms = tuple(sorted(_term(cell, first) for cell in cells))
        key = when[0][0], tuple(sorted(when[1:])), terms, evidence, when[0][0] != first
        same.setdefault(key, []).append((when[0][1], tuple(cells)))
    for key in sorted(same):
        subject, context, terms, evidence, optional = key
        cites = sorted(same[key], key=lambda cite: cite[1][0].claim.id)
        mask = union(mask for mask, _ in cites)
        yield SoftConstraint(
            context=context,
            # A row about what is chosen later is no reason to have it: none is as good.
            terms=((subject, mask | optional, evidence), *terms),
            evidence=evidence,
            cites=tuple(cites),
        )


LATER = "released-later"
"""The rule by which a row covers releases after its subject, which it cannot have tested."""


def _split_by_day(
    rows: Mapping[tuple[str, Terms, str], list[CompiledClaim]], dates: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Terms, str, list[CompiledClaim]]]:
    # Each row covers what was released when it was written, and, by a rule, what came later.
    for (_, when, evidence), cells in rows.items():
        subject, whole = when[0]
        # Releases of the subject by which the same versions were out stay together, or each would be a row of its own.
        groups: dict[tuple[int, ...], int] = {}
        for bit in bits(whole):
            by_then = tuple(_by_then(cell, bit, dates) for cell in cells)
            groups[by_then] = groups.get(by_then, 0) | bit
        for by_then, mask in groups.items():
            mine = ((subject, mask), *when[1:])
            timely = [*zip(cells, by_then, strict=True)]
            released = [cell.replace(when=mine, allowed=then) for cell, then in timely if then]
            if released:
                yield mine, evidence, released
            if any(cell.allowed != then for cell, then in timely):
                later = [
                    cell.replace(
                        when=mine,
                        evidence=words.weaker(cell.evidence, "derived"),
                        rules=(*cell.rules, LATER),
                    )
                    for cell in cells
                ]
                yield mine, words.weaker(evidence, "derived"), later


def _by_then(cell: CompiledClaim, subject: int, dates: Mapping[str, Sequence[str]]) -> int:
    # The releases that a cell names and that were out when its row was written; one without a date counts as out.
    # What was run was there when it was run.
    if cell.claim.carried or cell.evidence == "ran":
        return cell.allowed
    day = written(cell, subject, dates[cell.when[0][0]])
    if not day:
        return cell.allowed
    released = dates[cell.claim.component]
    named = cell.allowed & ~1
    return cell.allowed & ~union(b for b in bits(named) if released[b.bit_length() - 2] > day)


def written(reading: CompiledClaim, subject: int, dates: Sequence[str]) -> str:
    """The day on which what is said of a release was written, by the dates of its subject; empty if one is unknown."""
    named = reading.written_for or subject
    # A row about a release was written with it; widened to another release, it was written with the one it names.
    days = [dates[bit.bit_length() - 2] for bit in bits(subject if subject & named else named)]
    return max(days) if all(days) else ""


def _term(cell: CompiledClaim, first: str) -> tuple[str, int, str]:
    # What is carried is no reason to have it: beside the component that is chosen first, none is as good.
    name = cell.claim.component
    return name, cell.allowed | (cell.claim.carried and name != first), cell.evidence


def _row_evidence(reading: CompiledClaim) -> str:
    # That a cell was taken as its series (same-series) does not weaken its neighbours.
    inherited = [name for name in reading.rules if name != "same-series"]
    return words.weaker(reading.claim.evidence, "derived") if inherited else reading.claim.evidence


_LOWER = {">=", ">"}
_COMPILED = (OPENED_CODE, UNOPENED_CODE)
# A minor release of what binds the binaries that are compiled against it.
_MINOR = 2
_UPPER = {"<", "<=", "upto", "==", "===", "~=", "name", "absent"}


class Later(NamedTuple):
    """What came after a minimum: releases that it admits but does not cover, the first of them, and what that broke."""

    mask: int
    release: str
    breaks: str


def find_later(counterpart: Counterpart, selector: str, day: str) -> Later | None:
    """What came after the day on which a minimum was written, if the selector is one and anything did."""
    scale = counterpart.scale
    latest = Later(0, "", "")
    for clause in scale.parse(selector):
        mask = scale.mask((clause,)) & ~1
        if mask and _is_open((clause,), minimum=counterpart.major > 0):
            index, release, broke = _first_later(counterpart, (mask & -mask).bit_length() - 2, day)
            beyond = mask & -(2 << index)
            latest = Later(latest.mask | beyond, release, broke) if beyond else latest
    return latest if latest.mask else None


def _first_later(counterpart: Counterpart, least: int, day: str) -> tuple[int, str, str]:
    """The index of the first release after a day and behind the one at `least`, its name, and what it broke."""
    names = counterpart.scale.versions
    # A release without a date may have been there.
    if counterpart.major:
        own = [versions.key(name)[0][: counterpart.major] for name in names]
        for index in range(least + 1, len(names)):
            if own[index] != own[index - 1] and counterpart.dates[index] > day:
                return index, ".".join(map(str, own[index])), ""
    for record in counterpart.breaks:
        mask = counterpart.scale.select(f">={record.release}")
        index = (mask & -mask).bit_length() - 2
        if least < index and record.known > day:
            return index, record.release, record.breaks
    return len(names), "", ""


class Counterpart(NamedTuple):
    """A component as minimums of it are read: its releases, their days, what counts as a major, and what broke."""

    scale: Scale
    dates: Sequence[str]
    major: int
    breaks: Sequence[BreakRecord]


def of_index(index: Index, component: str, subject: str) -> Counterpart:
    """A component of an index as minimums of it are read where a subject states them."""
    heads = index.header["components"]
    head, own = heads[component], heads[heads[subject]["variant_of"] or subject]
    bound = head["binds"] and is_compiled_against(own["code"], own["against"], component)
    dates, broke = index.component(component).dates, index.breaks(component)
    return Counterpart(index.scale(component), dates, _MINOR if bound else head["major"], broke)


def is_compiled_against(code: str, against: Sequence[str], component: str) -> bool:
    """Whether code of a kind is compiled, and a component is among what it is compiled against."""
    return code in _COMPILED and component in against


def day(index: Index, record: ClaimRecord, releases: Sequence[str]) -> str:
    """The last day on which what a claim says of some releases of its subject was written."""
    name = record.subject
    scale, facts = index.scale(name), index.component(name)
    dates, head = facts.dates, index.header["components"][name]
    if head["variant_of"]:
        own = index.component(head["variant_of"])
        dates = [
            own.dates[own.versions.index(index.release(number).attributes["release"])]
            for number in facts.releases
        ]
    elif head["scheme"] == "names":
        dates = ()
    named = scale.select(record.releases)
    days = [
        dates[bit.bit_length() - 2] if dates else ""
        for release in releases
        for bit in bits(scale.bit(release) if scale.bit(release) & named else named)
    ]
    return max(days) if days and all(days) else index.source(record.source).read


def breaks(matrix: Matrix) -> dict[str, list[BreakRecord]]:
    """By component the releases that are known to have broken their users, the oldest first."""
    by_component: dict[str, list[BreakRecord]] = {}
    for row in matrix.rows_of(BREAKS):
        component, _, release = row.subject.partition(" ")
        cells = dict(row.cells)
        record = BreakRecord(row.id, release, cells["known"], cells["breaks"])
        by_component.setdefault(component, []).append(record)
    for rows in by_component.values():
        rows.sort(key=lambda row: versions.order(versions.key(row.release)))
    return by_component


class Minimums:
    """The minimums of a matrix: what each leaves unread, release by release of its subject."""

    def __init__(
        self, matrix: Matrix, scales: Mapping[str, Scale], dates: Mapping[str, Sequence[str]]
    ) -> None:
        self.matrix = matrix
        self.scales = scales
        self.dates = dates
        self.breaks = breaks(matrix)
        self._later_masks: dict[tuple[str, int, str, str], int] = {}
        self._counterparts: dict[tuple[str, int], Counterpart] = {}
        self.code = matrix.code()
        self._days: dict[str, Sequence[str]] = {}

    def statements(
        self, bindings: Sequence[CompiledBinding], tested: Sequence[CompiledClaim]
    ) -> Iterator[CompiledBinding]:
        """The unknowns that minimums of bindings and tested rows leave."""
        if MINIMUM not in self.matrix.rules:
            return
        binding_claims = [
            (mask, reading)
            for binding in bindings
            if binding.kind in ("requires", "limits") and binding.evidence != words.UNKNOWN
            for mask, reading in binding.cites
        ]
        speaking = [*binding_claims, *((reading.when[0][1], reading) for reading in tested)]
        bounds = self._bounds(speaking)
        gaps: dict[tuple[Terms, str, int], list[tuple[int, CompiledClaim]]] = {}
        for mask, reading in speaking:
            for beyond, subject_mask in self.beyond(reading, mask).items():
                for left, left_mask in self._left(reading, beyond, subject_mask, bounds).items():
                    head = (
                        ((reading.when[0][0], 0), *reading.when[1:]),
                        reading.claim.component,
                        left,
                    )
                    gaps.setdefault(head, []).append((left_mask, reading))
        for (when, component, left), cites in sorted(gaps.items(), key=repr):
            yield CompiledBinding(
                kind="limits",
                when=((when[0][0], union(mask for mask, _ in cites)), *when[1:]),
                component=component,
                allowed=(self.scales[component].everything | 1) & ~left,
                alternatives=(),
                evidence=words.UNKNOWN,
                cites=tuple(
                    (mask, reading.replace(evidence=words.UNKNOWN, rules=(*reading.rules, MINIMUM)))
                    for mask, reading in cites
                ),
            )

    def narrowed(self, tested: Iterable[CompiledClaim]) -> Iterator[CompiledClaim]:
        """The readings of tested rows without the releases that their minimums do not cover."""
        for reading in tested:
            subject, whole = reading.when[0]
            rest = whole
            for beyond, mask in self.beyond(reading, whole).items():
                rest &= ~mask
                mine = ((subject, mask), *reading.when[1:])
                yield reading.replace(when=mine, allowed=reading.allowed & ~beyond)
            if rest:
                yield reading.replace(when=((subject, rest), *reading.when[1:]))

    def beyond(self, reading: CompiledClaim, mask: int) -> dict[int, int]:
        """What a reading leaves unread of what it admits, each with the releases of the subject that it does so for."""
        name = reading.claim.component
        gaps: dict[int, int] = {}
        subject = reading.when[0][0]
        major = self.major(subject, name)
        counted = major or name in self.breaks
        if MINIMUM not in self.matrix.rules or not counted or reading.claim.kind == "needs":
            return gaps
        for bit in bits(mask):
            day = written(reading, bit, self.days(subject))
            day = day or self.matrix.sources[reading.claim.source].read
            beyond = self.after(name, major, reading.claim.selector, day)
            if beyond:
                gaps[beyond] = gaps.get(beyond, 0) | bit
        return gaps

    def major(self, subject: str, name: str) -> int:
        """How many numbers of a component's version are its major in claims of a subject, 0 for none."""
        own, component = self.matrix.components[subject], self.matrix.components[name]
        code = self.code.get(own.variant_of or subject)
        compiled = code is not None and is_compiled_against(code.code, code.against, name)
        return _MINOR if component.binds and compiled else component.major

    def after(self, name: str, major: int, selector: str, day: str) -> int:
        """The releases of a component that a minimum of a day admits but does not cover."""
        key = name, major, selector, day
        if key not in self._later_masks:
            latest = find_later(self.counterpart(name, major), selector, day)
            self._later_masks[key] = latest.mask if latest else 0
        return self._later_masks[key]

    def counterpart(self, name: str, major: int) -> Counterpart:
        """A component as read by minimums with this major."""
        if (name, major) not in self._counterparts:
            broke = self.breaks.get(name, ())
            self._counterparts[name, major] = Counterpart(
                self.scales[name], self.dates[name], major, broke
            )
        return self._counterparts[name, major]

    def days(self, subject: str) -> Sequence[str]:
        """By release of a subject the day on which what it says was written; a build was written with its release."""
        if subject not in self._days:
            component, own = self.matrix.components[subject], self.dates[subject]
            if component.variant_of:
                releases, of = self.matrix.releases, component.variant_of
                builds = (releases[subject, name] for name in self.scales[subject].versions)
                own = [releases[of, build.attributes["release"]].date for build in builds]
            # The day of a name, such as a device or a distribution, is not the day of a statement.
            elif component.scheme == "names":
                own = [""] * len(own)
            self._days[subject] = own
        return self._days[subject]

    def _bounds(
        self, speaking: Iterable[tuple[int, CompiledClaim]]
    ) -> dict[tuple[str, str], list[tuple[int, CompiledClaim]]]:
        """By subject and component the readings with an upper bound, which need no narrowing."""
        bounds: dict[tuple[str, str], list[tuple[int, CompiledClaim]]] = {}
        for mask, reading in speaking:
            claim = reading.claim
            scale = self.scales[claim.component]
            if scale.scheme != "names" and not _is_open(scale.parse(claim.selector), minimum=False):
                bounds.setdefault((reading.when[0][0], claim.component), []).append((mask, reading))
        return bounds

    def _left(
        self,
        reading: CompiledClaim,
        beyond: int,
        mask: int,
        bounds: Mapping[tuple[str, str], Sequence[tuple[int, CompiledClaim]]],
    ) -> dict[int, int]:
        """What other claims about the same pair leave uncovered: releases of the subject by uncovered releases."""
        beside = bounds.get((reading.when[0][0], reading.claim.component), ())
        here = [(other_mask, other) for other_mask, other in beside if other_mask & mask]
        gaps: dict[int, int] = {}
        for bit in bits(mask):
            left = beyond
            for other_mask, other in here:
                if other_mask & bit:
                    # What bounds it wherever it holds leaves nothing open.
                    left &= 0 if _always_binds(other, reading) else ~other.allowed
            if left:
                gaps[left] = gaps.get(left, 0) | bit
        return gaps


def _is_open(selector: Selector, *, minimum: bool) -> bool:
    """True if an alternative has no end; with `minimum` one that has a beginning."""
    for clauses in selector:
        operators = {clause.operator for clause in clauses}
        if not operators & _UPPER and (operators & _LOWER or not minimum):
            return True
    return False


def _always_binds(bound: CompiledClaim, reading: CompiledClaim) -> bool:
    """True if what bounds holds wherever a reading does, and binds."""
    terms = dict(reading.when[1:])
    return bound.claim.kind != "tested" and all(
        not terms.get(component, -1) & ~mask for component, mask in bound.when[1:]
    )
