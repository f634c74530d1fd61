"""Two environments compared (`toolmatrix.comparison/1`): by group what differs, and whether that was to be expected.

What is suspicious has a line each; what is expected is one sentence for each reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolmatrix.documents import Annotated, Any, Count, NonEmpty, Pair, TypedDict
from toolmatrix.inventory.model import EXPECTED, SUSPICIOUS, Comparison, Difference, Held
from toolmatrix.report.terminal import SIGNS, Terminal, blocks, columns, cut, printable, some

SCHEMA = "toolmatrix.comparison/1"
_UNITS = {
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")),
    "hertz": ((10**9, "GHz"), (10**6, "MHz")),
}
# Letters of a value that are shown.
_LONGEST = 60
# As many suspicious differences of one kind are listed.
_MOST = 20
# As many expected differences of one reason are named.
_NAMED = 6


class ComparedSubject(TypedDict):
    """A subject that is compared."""

    subject: str
    platform: str | None
    digest: str | None


class ComparedLock(TypedDict):
    """The lock that says what is to be expected."""

    path: str
    targets: Pair[str]


class DifferenceEntry(TypedDict):
    """What is not the same, and whether that is to be expected."""

    group: str
    kind: str
    name: str
    change: Annotated[str, "added", "removed", "changed"]
    old: Annotated[dict[str, Any], Held] | None
    new: Annotated[dict[str, Any], Held] | None
    verdict: Annotated[str, "suspicious", "expected"]
    why: str
    source: str | None


class SameEntry(TypedDict):
    """What is the same."""

    group: str
    name: str
    value: str


class NotCompared(TypedDict):
    """What one of the subjects cannot tell."""

    group: str
    kind: str
    names: NonEmpty[str]
    subject: str
    reason: str


class ComparisonCounts(TypedDict):
    """How many there are of each."""

    suspicious: Count
    expected: Count
    same: Count
    not_compared: Count


class ComparisonDocument(TypedDict):
    """What `toolmatrix diff --json` prints of two subjects: what differs and whether that is to be expected, what is
    the same, and what one of them cannot tell. `lock` is what `--lock` named.
    """

    schema: Annotated[str, SCHEMA]
    subjects: Pair[ComparedSubject]
    lock: ComparedLock | None
    differences: list[DifferenceEntry]
    same: list[SameEntry]
    not_compared: list[NotCompared]
    summary: ComparisonCounts


def document(
    comparison: Comparison, lock: str = "", targets: Sequence[str] = ()
) -> ComparisonDocument:
    """The comparison as JSON values; `lock` and `targets` are what made differences expected, where a lock did."""
    return {
        "schema": SCHEMA,
        "subjects": [
            {
                "subject": side.subject,
                "platform": side.platform or None,
                "digest": side.digest or None,
            }
            for side in comparison.sides
        ],
        "lock": {"path": lock, "targets": list(targets)} if lock else None,
        "differences": [
            {
                "group": one.group,
                "kind": one.kind,
                "name": one.name,
                "change": one.change,
                "old": one.old.to_json() if one.old else None,
                "new": one.new.to_json() if one.new else None,
                "verdict": one.verdict,
                "why": one.why,
                "source": one.source or None,
            }
            for one in comparison.differences
        ],
        "same": [
            {"group": group, "name": name, "value": value} for group, name, value in comparison.same
        ],
        "not_compared": [
            {
                "group": one.group,
                "kind": one.kind,
                "names": list(one.names),
                "subject": comparison.sides[one.side].subject,
                "reason": one.reason,
            }
            for one in comparison.unseen
        ],
        "summary": _summary(comparison),
    }


def _summary(comparison: Comparison) -> ComparisonCounts:
    return {
        "suspicious": comparison.count(SUSPICIOUS),
        "expected": comparison.count(EXPECTED),
        "same": len(comparison.same),
        "not_compared": sum(len(one.names) for one in comparison.unseen),
    }


def text(comparison: Comparison, screen: Terminal, *, everything: bool = False) -> str:
    """The comparison for people; nothing that a subject names reaches a terminal raw."""
    sides = [
        [sign, printable(side.subject), side.platform, side.digest[:19]]
        for sign, side in zip("-+", comparison.sides, strict=True)
    ]
    parts = [columns(sides)]
    groups = dict.fromkeys(one.group for one in comparison.differences)
    # Groups in which nothing differs come last.
    if everything:
        groups |= dict.fromkeys(group for group, _, _ in comparison.same)
    for group in groups:
        lines = _group(comparison, group, screen, everything=everything)
        same = _same(comparison, group) if everything else []
        parts.append([screen.style(group, "bold"), *lines, *same])
    unseen = [*_unseen(comparison, screen)]
    if unseen:
        parts.append([screen.style("not compared", "bold"), *unseen])
    counts = _summary(comparison)
    closing = (
        f"{counts['suspicious']} suspicious, {counts['expected']} expected, "
        f"{counts['same']} the same, {counts['not_compared']} not compared"
    )
    return blocks([*parts, [closing]])


def _group(
    comparison: Comparison, group: str, screen: Terminal, *, everything: bool
) -> Iterator[str]:
    for verdict, colour in ((SUSPICIOUS, "no"), (EXPECTED, "unknown")):
        word = screen.style(verdict, colour)
        reasons: dict[str, list[Difference]] = {}
        for one in comparison.differences:
            if (one.group, one.verdict) == (group, verdict):
                reasons.setdefault(one.why, []).append(one)
        for why, several in reasons.items():
            reason = f"{word}: {printable(why)}"
            # What was to be expected is only named: a reader looks for what was not.
            if verdict == EXPECTED and not everything:
                yield from screen.wrap(f"{reason}: {_named(several)}", "  ", "    ")
                continue
            yield from screen.wrap(reason, "  ", "    ")
            shown = several if everything else several[:_MOST]
            yield from (f"    {line}" for line in columns(_row(one, screen) for one in shown))
            if len(shown) < len(several):
                yield f"    and {len(several) - len(shown)} more, which `--all` lists"


def _same(comparison: Comparison, group: str) -> list[str]:
    same = [(name, value) for at, name, value in comparison.same if at == group]
    rows = ((printable(name), cut(value, _LONGEST)) for name, value in same)
    return [f"  = {line}" for line in columns(rows)]


def _row(one: Difference, screen: Terminal) -> tuple[str, ...]:
    sign = SIGNS[one.change]
    return screen.style(sign, sign), printable(one.shown), _values(one)


def _named(several: Sequence[Difference]) -> str:
    # One alone has room for its values beside its name.
    if len(several) == 1:
        (one,) = several
        return f"{SIGNS[one.change]} {printable(one.shown)} {_values(one)}".rstrip()
    return some([f"{SIGNS[one.change]}{printable(one.shown)}" for one in several], _NAMED)


def _values(one: Difference) -> str:
    values = [cut(_amount(side.value, one.unit), _LONGEST) for side in (one.old, one.new) if side]
    # `yes` is the value of what is merely there, and a name may hold its value already.
    return " -> ".join(value for value in values if value not in ("yes", one.shown))


def _amount(value: str, unit: str) -> str:
    """A number in the largest unit that it fills."""
    if value.isdecimal():
        for size, word in _UNITS.get(unit, ()):
            if int(value) >= size:
                return f"{int(value) / size:.3g} {word}"
    return value


def _unseen(comparison: Comparison, screen: Terminal) -> Iterator[str]:
    # A side that was not asked at all has one reason for hundreds of names.
    reasons: dict[tuple[int, str], list[str]] = {}
    for one in comparison.unseen:
        count = len(one.names)
        name = f"{count} of {one.kind}" if count > 1 else printable(one.names[0])
        reasons.setdefault((one.side, one.reason), []).append(name)
    for (side, reason), kinds in reasons.items():
        subject = comparison.sides[side].subject
        line = f"{', '.join(kinds)}: {printable(subject)}: {printable(reason)}"
        yield from screen.wrap(line, "  ", "    ")
