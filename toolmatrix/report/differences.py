"""Differences between two locks: as a document (`toolmatrix.differences/1`) and as lines of `+`, `-` and `~`."""

from __future__ import annotations

from toolmatrix.report import claims, terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.lock.compare import Differences, ValueChange
    from toolmatrix.lock.model import Lock
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.differences/1"
KINDS = ("added", "changed", "removed")
_SIGNS = {"added": ("+", "yes"), "removed": ("-", "no"), "changed": ("~", "partial")}
# As many unchanged components are named in the total.
_NAMED = 4
# A value of more letters does not widen the column of the others.
_WIDE = 28


class _Explained(Value):
    """A change with why the new value is what it is, and the name of the source behind it, which only text cites."""

    change: ValueChange
    why: str
    source: str = ""


def document(
    index: Index, old: tuple[str, Lock], new: tuple[str, Lock], found: Differences
) -> dict[str, Any]:
    """The differences of two locks, each given with its path."""
    return {
        "schema": SCHEMA,
        "old": _side(*old),
        "new": _side(*new),
        "differences": listed(index, old[1], new[1], found),
        "summary": {kind: found.count(kind) for kind in (*KINDS, "moved")}
        | {"same": len(found.same)},
    }


def _side(path: str, lock: Lock) -> dict[str, Any]:
    return {"path": path, "matrix": {"digest": lock.matrix_digest, "date": lock.matrix_date}}


def listed(index: Index, old: Lock, new: Lock, found: Differences) -> list[dict[str, Any]]:
    """Each difference as JSON values."""
    return [
        {
            "environment": part.change.environment,
            "target": part.change.target,
            "component": part.change.component,
            "kind": part.change.kind,
            "old": part.change.old and part.change.old.to_json(),
            "new": part.change.new and part.change.new.to_json(),
            "why": part.why,
        }
        for part in _explained(index, old, new, found)
    ]


def _explained(index: Index, old: Lock, new: Lock, found: Differences) -> list[_Explained]:
    """The changes by environment and target, components in the order of the matrix."""
    components = {name: place for place, name in enumerate(index.header["components"])}
    targets = {name: place for place, name in enumerate(index.header["targets"])}

    def order(change: ValueChange) -> tuple[str, int, str, int, str]:
        target = targets.get(change.target, len(targets))
        component = components.get(change.component, len(components))
        return change.environment, target, change.target, component, change.component

    return [_explain(index, old, new, change) for change in sorted(found.changes, key=order)]


def _explain(index: Index, old: Lock, new: Lock, change: ValueChange) -> _Explained:
    """The reason of one change: the request, or a fact if the matrix still has it."""
    before, after = _asked(old, change), _asked(new, change)
    if after and after != before:
        return _Explained(change=change, why="you asked")
    if change.new is None:
        return _Explained(change=change, why="you no longer ask for it" if before else "")
    record = claims.carrier(index, change.new.facts, change.new.evidence)
    if record is None:
        return _Explained(change=change, why="")
    target = new.environments[change.environment].targets[change.target]
    record = record._replace(evidence=change.new.evidence)
    why = claims.locked_reason(record, target, change.component, change.new.value)
    return _Explained(change=change, why=why, source=record.source)


def _asked(lock: Lock, change: ValueChange) -> str:
    environment = lock.environments.get(change.environment)
    return environment.asked.get(change.component, "") if environment is not None else ""


def text(index: Index, old: Lock, new: Lock, found: Differences, screen: Terminal) -> str:
    """Lines for people: what changed in each target, facts that moved, notes, and the total."""
    notes = claims.Notes(index)
    several = _several(old, new)
    parts = _explained(index, old, new, found)
    blocks = [_changed(parts, several, notes, screen), _moved(parts, several)]
    closing = [*notes.lines(), _total(found)]
    return "\n\n".join("\n".join(block) for block in [*blocks, closing] if block) + "\n"


def _several(*locks: Lock) -> tuple[bool, bool]:
    """Return whether the locks have more than one environment, and more than one target."""
    environments = {name for lock in locks for name in lock.environments}
    targets = {
        target
        for lock in locks
        for environment in lock.environments.values()
        for target in environment.targets
    }
    return len(environments) > 1, len(targets) > 1 or len(environments) > 1


def _heading(change: ValueChange, several: tuple[bool, bool]) -> str:
    """The environment and target of a change, as far as there is more than one of them."""
    words = zip((change.environment, change.target), several, strict=True)
    return " ".join(word for word, shown in words if shown)


def _changed(
    parts: Iterable[_Explained], several: tuple[bool, bool], notes: claims.Notes, screen: Terminal
) -> list[str]:
    """One line for each value that differs, below a heading for each target."""
    shown = [part for part in parts if part.change.kind != "moved"]
    rows = []
    for part in shown:
        change = part.change
        sign, colour = _SIGNS[change.kind]
        before = change.old.value if change.old else ""
        after = change.new.value if change.new else ""
        mark = notes.mark([part.source]) if part.source else ""
        rows.append((screen.style(sign, colour), change.component, before, after, part.why, mark))
    lines: list[str] = []
    last = ""
    for part, line in zip(shown, _aligned(rows), strict=True):
        heading = _heading(part.change, several)
        if heading != last:
            lines += ["", heading] if lines else [heading]
            last = heading
        lines.append(line)
    return lines


def _moved(parts: Iterable[_Explained], several: tuple[bool, bool]) -> list[str]:
    """The same value on other facts."""
    rows = []
    for change in (part.change for part in parts):
        if change.kind != "moved" or change.old is None or change.new is None:
            continue
        old, new = change.old, change.new
        evidence = new.evidence
        if old.evidence != evidence:
            evidence = f"{old.evidence} -> {evidence}"
        facts = _swapped(old.facts, new.facts) + _swapped(
            old.disputed, new.disputed, "disputed by "
        )
        name = f"  {change.component} {new.value}"
        rows.append((name, _heading(change, several), evidence, ", ".join(facts)))
    return ["facts that moved below the same version", *terminal.columns(rows)] if rows else []


def _swapped(old: Sequence[str], new: Sequence[str], word: str = "") -> list[str]:
    return [f"- {word}{fact}" for fact in old if fact not in new] + [
        f"+ {word}{fact}" for fact in new if fact not in old
    ]


def _total(found: Differences) -> str:
    counts = [f"{found.count(kind)} {kind}" for kind in KINDS]
    same = f"{len(found.same)} the same"
    if 0 < len(found.same) <= _NAMED:
        same += f" ({', '.join(f'{name} {value}' for _, _, name, value in found.same)})"
    return ", ".join([*counts, same])


def _aligned(rows: Sequence[tuple[str, str, str, str, str, str]]) -> list[str]:
    """Columns for name, values and reason; a value longer than most widens only its own line."""
    name_width = max((len(row[1]) for row in rows), default=0)
    old_width = _width(row[2] for row in rows if row[2] and row[3])
    shown = [
        (sign, name, f"{old.ljust(old_width)} -> {new}" if old and new else old or new, why, mark)
        for sign, name, old, new, why, mark in rows
    ]
    value_width = _width(row[2] for row in shown)
    return [
        f"{sign} {name.ljust(name_width)}  {value.ljust(value_width)}  {why}{'  ' * bool(mark)}{mark}".rstrip()
        for sign, name, value, why, mark in shown
    ]


def _width(values: Iterable[str]) -> int:
    return max((len(value) for value in values if len(value) <= _WIDE), default=0)
