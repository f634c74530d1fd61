"""Differences between two locks: as a document (`toolmatrix.differences/1`) and as lines of `+`, `-` and `~`."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.documents import Annotated, Any, Count, TypedDict
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile.model import Differences, Lock, LockedValue, ValueChange
from toolmatrix.report import claims, terminal
from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.differences/1"
KINDS = ("added", "changed", "removed")
# As many unchanged components are named in the total.
_NAMED = 4
# A value of more letters does not widen the column of the others.
_WIDE = 28
# Reasons without a source.
_REQUESTED, _DROPPED = "requested", "no longer requested"


class LockMatrix(TypedDict):
    """The matrix as a lock names it."""

    digest: str
    date: str


class LockHead(TypedDict):
    """A lock by its path, and the matrix that it was made with."""

    path: str
    matrix: LockMatrix


class ChangeEntry(TypedDict):
    """A component that differs between two locks."""

    environment: str
    target: str
    component: str
    kind: Annotated[str, "added", "removed", "changed", "moved"]
    old: Annotated[dict[str, Any], LockedValue] | None
    new: Annotated[dict[str, Any], LockedValue] | None
    why: str


class ChangeCounts(TypedDict):
    """How many changes there are of each kind."""

    added: Count
    changed: Count
    removed: Count
    moved: Count
    same: Count


class DifferencesDocument(TypedDict):
    """What `toolmatrix diff --json` prints. `moved`: the same value on other facts."""

    schema: Annotated[str, SCHEMA]
    old: LockHead
    new: LockHead
    differences: list[ChangeEntry]
    summary: ChangeCounts


def document(
    index: Index, old: tuple[str, Lock], new: tuple[str, Lock], differences: Differences
) -> DifferencesDocument:
    """The differences of two locks, each given with its path."""
    return {
        "schema": SCHEMA,
        "old": _side(*old),
        "new": _side(*new),
        "differences": change_documents(index, old[1], new[1], differences),
        "summary": {
            "added": differences.count("added"),
            "changed": differences.count("changed"),
            "removed": differences.count("removed"),
            "moved": differences.count("moved"),
            "same": len(differences.same),
        },
    }


def _side(path: str, lock: Lock) -> LockHead:
    return {"path": path, "matrix": {"digest": lock.matrix_digest, "date": lock.matrix_date}}


def change_documents(
    index: Index, old: Lock, new: Lock, differences: Differences
) -> list[ChangeEntry]:
    """Each difference as JSON values, by environment and target, components in the order of the matrix."""
    components = {name: position for position, name in enumerate(index.header["components"])}
    targets = {name: position for position, name in enumerate(index.header["targets"])}

    # A lock may hold what the matrix no longer knows: that comes last.
    def order(change: ValueChange) -> tuple[str, int, str, int, str]:
        target = targets.get(change.target, len(targets))
        component = components.get(change.component, len(components))
        return change.environment, target, change.target, component, change.component

    return [
        {
            "environment": change.environment,
            "target": change.target,
            "component": change.component,
            "kind": change.kind,
            "old": change.old.to_json() if change.old else None,
            "new": change.new.to_json() if change.new else None,
            "why": _why(index, old, new, change),
        }
        for change in sorted(differences.changes, key=order)
    ]


def _why(index: Index, old: Lock, new: Lock, change: ValueChange) -> str:
    """The reason of one change: the request, or a fact if the matrix still has it."""
    sides = [lock.environments.get(change.environment) for lock in (old, new)]
    before, after = (side.asked.get(change.component, "") if side else "" for side in sides)
    if after and after != before:
        return _REQUESTED
    if change.new is None:
        return _DROPPED if before else ""
    record = claims.carrier(index, change.new.facts, change.new.evidence)
    if record is None:
        return ""
    target = new.environments[change.environment].targets[change.target]
    record = record._replace(evidence=change.new.evidence)
    return claims.locked_reason(record, target, change.component, change.new.value)


def text(index: Index, old: Lock, new: Lock, differences: Differences, screen: Terminal) -> str:
    """Lines for people: what changed in each target, facts that moved, notes, and the total."""
    notes = claims.Notes(index)
    environments = {*old.environments, *new.environments}
    targets = {target for _, _, target in (*old.names(), *new.names())}
    several = len(environments) > 1, len(targets) > 1 or len(environments) > 1
    entries = change_documents(index, old, new, differences)
    changed = _changed(entries, several, notes, screen)
    same = f"{len(differences.same)} the same"
    if 0 < len(differences.same) <= _NAMED:
        same += f" ({', '.join(f'{name} {value}' for _, _, name, value in differences.same)})"
    total = ", ".join([*(f"{differences.count(kind)} {kind}" for kind in KINDS), same])
    return terminal.blocks([changed, _moved(entries, several), [*notes.lines(), total]])


def _heading(entry: ChangeEntry, several: tuple[bool, bool]) -> str:
    """The environment and target of a change, as far as there is more than one of them."""
    words = zip((entry["environment"], entry["target"]), several, strict=True)
    return " ".join(name for name, ambiguous in words if ambiguous)


def _changed(
    entries: Sequence[ChangeEntry],
    several: tuple[bool, bool],
    notes: claims.Notes,
    screen: Terminal,
) -> list[str]:
    changed = [entry for entry in entries if entry["kind"] != "moved"]
    rows = []
    for entry in changed:
        sign = terminal.SIGNS[entry["kind"]]
        before, after = ((side or {}).get("value", "") for side in (entry["old"], entry["new"]))
        why = entry["why"]
        mark = ""
        if entry["new"] and why not in (_REQUESTED, _DROPPED):
            mark = notes.carrier(entry["new"]["facts"], entry["new"]["evidence"])
        rows.append((screen.style(sign, sign), entry["component"], before, after, why, mark))
    lines: list[str] = []
    last = ""
    for entry, line in zip(changed, _aligned(rows), strict=True):
        heading = _heading(entry, several)
        if heading != last:
            lines += ["", heading] if lines else [heading]
            last = heading
        lines.append(line)
    return lines


def _moved(entries: Sequence[ChangeEntry], several: tuple[bool, bool]) -> list[str]:
    # The version is the same, so that these are no difference to `--exit-code`.
    rows = []
    for entry in entries:
        if entry["kind"] != "moved":
            continue
        old, new = entry["old"] or {}, entry["new"] or {}
        evidence = new["evidence"]
        if old["evidence"] != evidence:
            evidence = f"{old['evidence']} -> {evidence}"
        facts = _swapped(old["facts"], new["facts"])
        facts += _swapped(old["disputed"], new["disputed"], "disputed by ")
        name = f"  {entry['component']} {new['value']}"
        rows.append((name, _heading(entry, several), evidence, ", ".join(facts)))
    return ["facts that changed for the same version", *terminal.columns(rows)] if rows else []


def _swapped(old: Sequence[str], new: Sequence[str], prefix: str = "") -> list[str]:
    return [f"- {prefix}{fact}" for fact in old if fact not in new] + [
        f"+ {prefix}{fact}" for fact in new if fact not in old
    ]


def _aligned(rows: Sequence[tuple[str, str, str, str, str, str]]) -> list[str]:
    name_width = max((len(row[1]) for row in rows), default=0)
    # Where one side has no value the other one stands alone and needs no column for it.
    old_width = terminal.common_width((row[2] for row in rows if row[2] and row[3]), _WIDE)
    cells = [
        (sign, name, f"{old.ljust(old_width)} -> {new}" if old and new else old or new, why, mark)
        for sign, name, old, new, why, mark in rows
    ]
    value_width = terminal.common_width((row[2] for row in cells), _WIDE)
    return [
        f"{sign} {name.ljust(name_width)}  {value.ljust(value_width)}  {why}{'  ' * bool(mark)}{mark}".rstrip()
        for sign, name, value, why, mark in cells
    ]
