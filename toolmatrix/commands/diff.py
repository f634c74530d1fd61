"""`toolmatrix diff`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from toolmatrix.api import Matrix, Path, Report, Words
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import layer_store, piped_archive, targets_of
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import (
    ALL,
    EXIT_CODE,
    NO_STORE,
    PLATFORM,
    STORE,
    STORE_SIZE,
    targets,
)
from toolmatrix.documents import Annotated, Any, Count, NonEmpty, Pair, TypedDict
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.inspection import host
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.model import (
    EXPECTED,
    SUSPICIOUS,
    Comparison,
    Difference,
    Held,
    Inventory,
)
from toolmatrix.judging import comparison, validation
from toolmatrix.judging.validation import Baseline
from toolmatrix.lockfile import lock_file, model
from toolmatrix.lockfile.model import Lock
from toolmatrix.report import claims, differences, port
from toolmatrix.report.terminal import SIGNS, Terminal, blocks, columns, cut, printable, some

Named = tuple[str, Lock]
"""A lock and its path."""


@command(
    group="Inspect files, images and machines",
    order=2,
    usage="OLD [NEW]",
    completer="file",
    does="comparing",
    formats=PRINTED,
    examples=(
        "toolmatrix diff old.lock toolmatrix.lock --exit-code",
        "toolmatrix diff toolmatrix.lock --target x86,arm",
        "toolmatrix diff archive:x86.tar archive:arm.tar --lock toolmatrix.lock",
        "toolmatrix diff host inventory:arm.json --json",
    ),
    own={"exit_code": EXIT_CODE, "no_store": NO_STORE},
)
def diff(
    old: Path,
    new: Path = "",
    *,
    target: Words = targets("Targets of the lock to compare, such as x86,arm"),
    platform: str = PLATFORM,
    lock: Path = "",
    everything: bool = ALL,
    directory: Path = "",
    store: Path | None = STORE,
    store_size: int = STORE_SIZE,
    matrix: Matrix = None,
) -> Report:
    """Compare locks, targets, images or machines.

    Of subjects `platform` names those of two images of one index, and a `lock` tells which differences are expected;
    `everything` lists these too. The answer is yes where nothing moved or is suspicious. Raises UsageError, LockError,
    SubjectError, NothingMatched.
    """
    names, folder = [os.fspath(path) for path in (old, new) if path], os.fspath(directory)
    if not any(validation.is_subject(name, _path(name, folder)) for name in names):
        locks = [(name, _lock(name, folder)) for name in names]
        opened = open_matrix(matrix)
        return _locks(opened.index, locks, targets_of(target, opened))
    # The default lock explains no differences: it counts only when it is named.
    path = os.fspath(lock) if caller().is_flag("lock") else ""
    wanted = targets_of(target, matrix) if path else ()
    cache = layer_store(store, store_size)
    return _subjects(names, platform, path, wanted, folder, cache, everything=everything)


def _path(name: str, directory: str) -> str:
    return name if name == "-" else os.path.join(directory, name)


def _lock(name: str, directory: str) -> Lock:
    if name == "-":
        return lock_file.parse(caller().piped("a lock", lock_file.LARGEST + 1), "stdin")
    return lock_file.read(_path(name, directory))


def _locks(index: Index, locks: Sequence[Named], wanted: Sequence[str]) -> Report:
    """The differences between locks, or between two targets: those named, or the only ones there are."""
    targets = _two(wanted) or _alone(index, [lock for _, lock in locks])
    if targets:
        return _port(index, locks, targets)
    if len(locks) == 1:
        raise UsageError(
            "`diff` needs two locks, or two targets of one",
            expected="another lock, or `--target ONE,OTHER`",
            found=f"`{locks[0][0]}`, which has {', '.join(locks[0][1].all_targets) or 'no target'}",
        )
    old, new = locks
    changes = model.locks(old[1], new[1])
    return Report(
        words=partial(differences.text, index, old[1], new[1], changes),
        document=partial(differences.document, index, old, new, changes),
        exit_code=int(changes.any),
    )


def _alone(index: Index, locks: Sequence[Lock]) -> tuple[str, ...]:
    """The targets of locks that have nothing else to compare: one lock with two, or two locks with one each."""
    order = {name: position for position, name in enumerate(index.header["targets"])}
    names = [
        tuple(sorted(lock.all_targets, key=lambda name: (order.get(name, len(order)), name)))
        for lock in locks
    ]
    if len(locks) == 1:
        return names[0] if len(names[0]) == 2 else ()
    alone = all(len(targets) == 1 for targets in names)
    return (names[0][0], names[1][0]) if alone and names[0] != names[1] else ()


def _two(targets: Sequence[str]) -> tuple[str, ...]:
    """The two targets that are named, or none."""
    named = tuple(dict.fromkeys(targets))
    if named and len(named) != 2:
        raise UsageError(
            "`diff` compares two targets",
            expected="`--target ONE,OTHER`",
            found=f"`--target {','.join(named)}`",
        )
    return named


def _port(index: Index, locks: Sequence[Named], targets: Sequence[str]) -> Report:
    sides = []
    # With one lock, it is both sides.
    for name, (path, lock) in zip(targets, (locks[0], locks[-1]), strict=True):
        known = lock.all_targets
        if name not in known:
            raise NothingMatched(
                f"{path} has no target `{name}`", expected=", ".join(known), found=f"`{name}`"
            )
        sides.append(port.Side(name=name, path=path, lock=lock, target=known[name]))
    document = port.document(index, *sides)
    return Report(
        words=partial(port.text, document, claims.Notes(index)),
        document=lambda: document,
        exit_code=int(port.differs(document)),
    )


def _subjects(
    names: Sequence[str],
    platform: str,
    lock: str,
    wanted: Sequence[str],
    directory: str,
    store: LayerStore | None,
    *,
    everything: bool,
) -> Report:
    subjects, platforms = list(names), platform.split(",")
    # Two platforms of one subject, or two subjects of one platform.
    if len(platforms) == 2:
        subjects *= 3 - len(subjects)
    elif len(platforms) == 1:
        platforms *= 2
    if len(subjects) != 2 or len(platforms) != 2:
        raise UsageError(
            "`diff` needs two subjects",
            expected="another, or `--platform ONE,OTHER` for two images of one index",
            found=" ".join(f"`{name}`" for name in (*subjects, platform) if name),
        )
    # Report subjects by the names that the user typed, without an inferred scheme.
    first, other = (
        validation.observe(
            _named(name, directory), image_platform, directory, piped_archive(), store=store
        ).replace(subject=name)
        for name, image_platform in zip(subjects, platforms, strict=True)
    )
    targets, says = _explaining(lock, wanted, (first, other)) if lock else ((), None)
    outcome = comparison.compare(first, other, comparison.load(), host.load_readings().why, says)
    return Report(
        words=partial(_text, outcome, everything=everything),
        document=partial(_document, outcome, lock, targets),
        exit_code=int(outcome.count(SUSPICIOUS) > 0),
    )


def _named(name: str, directory: str) -> str:
    """A subject; the path of a lock gets its scheme."""
    path = _path(name, directory)
    is_lock = os.path.isfile(path) and not validation.is_subject(name, path)
    return f"lock:{name}" if is_lock else name


def _explaining(
    path: str, wanted: Sequence[str], sides: tuple[Inventory, Inventory]
) -> tuple[tuple[str, str], tuple[Inventory, Inventory]]:
    """The target of a lock for each side, with its inventory: those named, else as validate finds them."""
    baseline = Baseline().with_lock(path)
    first, other = (
        baseline.replace(targets=(name,) if name else ()).target(side)
        for name, side in zip(_two(wanted) or ("", ""), sides, strict=True)
    )
    by_target = baseline.locked_targets
    return (first, other), (
        validation.inventory(by_target[first], first),
        validation.inventory(by_target[other], other),
    )


SCHEMA = "toolmatrix.comparison/1"
_UNITS = {
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")),
    "hertz": ((10**9, "GHz"), (10**6, "MHz")),
}
# Characters of a value that are shown.
_LONGEST = 60
# How many suspicious differences of one kind are listed.
_MOST = 20
# How many expected differences with one reason are named.
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


def _document(
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
                "group": difference.group,
                "kind": difference.kind,
                "name": difference.name,
                "change": difference.change,
                "old": difference.old.to_json() if difference.old else None,
                "new": difference.new.to_json() if difference.new else None,
                "verdict": difference.verdict,
                "why": difference.why,
                "source": difference.source or None,
            }
            for difference in comparison.differences
        ],
        "same": [
            {"group": group, "name": name, "value": value} for group, name, value in comparison.same
        ],
        "not_compared": [
            {
                "group": gap.group,
                "kind": gap.kind,
                "names": list(gap.names),
                "subject": comparison.sides[gap.side].subject,
                "reason": gap.reason,
            }
            for gap in comparison.unseen
        ],
        "summary": _summary(comparison),
    }


def _summary(comparison: Comparison) -> ComparisonCounts:
    return {
        "suspicious": comparison.count(SUSPICIOUS),
        "expected": comparison.count(EXPECTED),
        "same": len(comparison.same),
        "not_compared": sum(len(gap.names) for gap in comparison.unseen),
    }


def _text(comparison: Comparison, screen: Terminal, *, everything: bool = False) -> str:
    """The comparison for people; nothing that a subject names reaches a terminal raw."""
    sides = [
        [sign, printable(side.subject), side.platform, side.digest[:19]]
        for sign, side in zip("-+", comparison.sides, strict=True)
    ]
    sections = [columns(sides)]
    groups = dict.fromkeys(difference.group for difference in comparison.differences)
    # Groups in which nothing differs come last.
    if everything:
        groups |= dict.fromkeys(group for group, _, _ in comparison.same)
    for group in groups:
        lines = _group(comparison, group, screen, everything=everything)
        same = _same(comparison, group) if everything else []
        sections.append([screen.style(group, "bold"), *lines, *same])
    unseen = [*_unseen(comparison, screen)]
    if unseen:
        sections.append([screen.style("not compared", "bold"), *unseen])
    counts = _summary(comparison)
    closing = (
        f"{counts['suspicious']} suspicious, {counts['expected']} expected, "
        f"{counts['same']} the same, {counts['not_compared']} not compared"
    )
    return blocks([*sections, [closing]])


def _group(
    comparison: Comparison, group: str, screen: Terminal, *, everything: bool
) -> Iterator[str]:
    for verdict, colour in ((SUSPICIOUS, "no"), (EXPECTED, "unknown")):
        label = screen.style(verdict, colour)
        reasons: dict[str, list[Difference]] = {}
        for difference in comparison.differences:
            if (difference.group, difference.verdict) == (group, verdict):
                reasons.setdefault(difference.why, []).append(difference)
        for why, several in reasons.items():
            reason = f"{label}: {printable(why)}"
            # Expected differences are only named: the others matter.
            if verdict == EXPECTED and not everything:
                yield from screen.wrap(f"{reason}: {_names_of(several)}", "  ", "    ")
                continue
            yield from screen.wrap(reason, "  ", "    ")
            visible = several if everything else several[:_MOST]
            yield from (
                f"    {line}"
                for line in columns(_row(difference, screen) for difference in visible)
            )
            if len(visible) < len(several):
                yield f"    and {len(several) - len(visible)} more, which `--all` lists"


def _same(comparison: Comparison, group: str) -> list[str]:
    same = [(name, value) for at, name, value in comparison.same if at == group]
    rows = ((printable(name), cut(value, _LONGEST)) for name, value in same)
    return [f"  = {line}" for line in columns(rows)]


def _row(difference: Difference, screen: Terminal) -> tuple[str, ...]:
    sign = SIGNS[difference.change]
    return screen.style(sign, sign), printable(difference.shown), _values(difference)


def _names_of(several: Sequence[Difference]) -> str:
    # A single one has room for its values.
    if len(several) == 1:
        (difference,) = several
        return f"{SIGNS[difference.change]} {printable(difference.shown)} {_values(difference)}".rstrip()
    return some(
        [f"{SIGNS[difference.change]}{printable(difference.shown)}" for difference in several],
        _NAMED,
    )


def _values(difference: Difference) -> str:
    values = [
        cut(_amount(side.value, difference.unit), _LONGEST)
        for side in (difference.old, difference.new)
        if side
    ]
    # `yes` is the value of what is merely there, and a name may hold its value already.
    return " -> ".join(value for value in values if value not in ("yes", difference.shown))


def _amount(value: str, unit: str) -> str:
    """A number in the largest unit that it fills."""
    if value.isdecimal():
        for size, unit_name in _UNITS.get(unit, ()):
            if int(value) >= size:
                return f"{int(value) / size:.3g} {unit_name}"
    return value


def _unseen(comparison: Comparison, screen: Terminal) -> Iterator[str]:
    # A side that was not read at all has one reason for hundreds of names.
    reasons: dict[tuple[int, str], list[str]] = {}
    for gap in comparison.unseen:
        count = len(gap.names)
        name = f"{count} of {gap.kind}" if count > 1 else printable(gap.names[0])
        reasons.setdefault((gap.side, gap.reason), []).append(name)
    for (side, reason), kinds in reasons.items():
        subject = comparison.sides[side].subject
        line = f"{', '.join(kinds)}: {printable(subject)}: {printable(reason)}"
        yield from screen.wrap(line, "  ", "    ")
