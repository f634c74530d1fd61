"""Differences between two locks: as a document (`toolmatrix.differences/1`) and as lines of `+`, `-` and `~`."""

from __future__ import annotations

from toolmatrix.facts.records import ClaimRecord, RowRecord
from toolmatrix.report import claims, terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import FactRecord
    from toolmatrix.lock.compare import Change, Differences, Held
    from toolmatrix.lock.model import Lock
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.differences/1"
KINDS = ("added", "changed", "removed")
_SIGNS = {"added": ("+", "yes"), "removed": ("-", "no"), "changed": ("~", "partial")}
# As many unchanged components are named in the total.
_NAMED = 4
# A value of more letters does not widen the column of the others.
_WIDE = 28


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
    told = _Told(index, old, new)
    return [
        {
            "environment": change.environment,
            "target": change.target,
            "component": change.component,
            "kind": change.kind,
            "old": _held(change.old),
            "new": _held(change.new),
            "why": told.why(change),
        }
        for change in told.sorted(found.changes)
    ]


def _held(held: Held | None) -> dict[str, Any] | None:
    if held is None:
        return None
    return {
        "value": held.value,
        "evidence": held.evidence,
        "facts": list(held.facts),
        "disputed": list(held.disputed),
    }


def text(index: Index, old: Lock, new: Lock, found: Differences, screen: Terminal) -> str:
    """Lines for people: what changed in each target, facts that moved, notes, and the total."""
    told = _Told(index, old, new)
    changes = told.sorted(found.changes)
    blocks = [block for block in (told.changed(changes, screen), told.moved(changes)) if block]
    closing = [*told.notes.lines(), _total(found)]
    return "\n\n".join("\n".join(block) for block in [*blocks, closing]) + "\n"


def _total(found: Differences) -> str:
    counts = [f"{found.count(kind)} {kind}" for kind in KINDS]
    same = f"{len(found.same)} the same"
    if 0 < len(found.same) <= _NAMED:
        same += f" ({', '.join(f'{name} {value}' for _, _, name, value in found.same)})"
    return ", ".join([*counts, same])


class _Told:
    """The changes of two locks in words, with the notes they cite."""

    def __init__(self, index: Index, old: Lock, new: Lock) -> None:
        self.index = index
        self.old = old
        self.new = new
        self.notes = claims.Notes(index)
        self.order = {name: place for place, name in enumerate(index.header["components"])}
        self.targets = {name: place for place, name in enumerate(index.header["targets"])}
        self.ids: dict[str, int] = index.ids

    def sorted(self, changes: Sequence[Change]) -> list[Change]:
        """By environment and target, components in the order of the matrix."""
        last = len(self.order)
        return sorted(
            changes,
            key=lambda change: (
                change.environment,
                self.targets.get(change.target, len(self.targets)),
                change.target,
                self.order.get(change.component, last),
                change.component,
            ),
        )

    def heading(self, change: Change) -> str:
        """The environment and target of a change, as far as there is more than one of them."""
        environments = {*self.old.environments, *self.new.environments}
        targets = {
            target
            for lock in (self.old, self.new)
            for environment in lock.environments.values()
            for target in environment.targets
        }
        words = [change.environment] if len(environments) > 1 else []
        return " ".join([*words, change.target] if len(targets) > 1 or words else [])

    def changed(self, changes: Sequence[Change], screen: Terminal) -> list[str]:
        """One line for each value that differs, below a heading for each target."""
        rows: list[tuple[str, str, str, str, str, str]] = []
        shown = [change for change in changes if change.kind != "moved"]
        heads: list[tuple[int, str]] = []
        for change in shown:
            heading = self.heading(change)
            if heading and (not heads or heads[-1][1] != heading):
                heads.append((len(rows), heading))
            sign, colour = _SIGNS[change.kind]
            before = change.old.value if change.old else ""
            after = change.new.value if change.new else ""
            why, mark = self.why(change), self.mark(change)
            rows.append((screen.style(sign, colour), change.component, before, after, why, mark))
        lines = _aligned(rows)
        for place, heading in reversed(heads):
            lines[place:place] = ["", heading] if place else [heading]
        return lines

    def moved(self, changes: Sequence[Change]) -> list[str]:
        """The same value on other facts."""
        rows = []
        for change in changes:
            if change.kind != "moved" or change.old is None or change.new is None:
                continue
            before, after = change.old, change.new
            same = before.evidence == after.evidence
            evidence = after.evidence if same else f"{before.evidence} -> {after.evidence}"
            facts = [f"- {fact}" for fact in before.facts if fact not in after.facts]
            facts += [f"+ {fact}" for fact in after.facts if fact not in before.facts]
            facts += [
                f"- disputed by {fact}" for fact in before.disputed if fact not in after.disputed
            ]
            facts += [
                f"+ disputed by {fact}" for fact in after.disputed if fact not in before.disputed
            ]
            name = f"{change.component} {after.value}"
            heading = self.heading(change)
            rows.append((f"  {name}", heading, evidence, ", ".join(facts)))
        return ["facts that moved below the same version", *terminal.columns(rows)] if rows else []

    def why(self, change: Change) -> str:
        """Why the new value is what it is: the request, or a fact if the matrix still has it."""
        before = self.asked(self.old, change)
        after = self.asked(self.new, change)
        if after and after != before:
            return "you asked"
        if change.new is None:
            return "you no longer ask for it" if before else ""
        record = self.record(change.new)
        if record is None or isinstance(record, RowRecord):
            return ""
        rules = ["same-minor"] if self.widened(change, record) else []
        return claims.because(record, rules, change.component, change.new.value.removeprefix(">="))

    @staticmethod
    def asked(lock: Lock, change: Change) -> str:
        environment = lock.environments.get(change.environment)
        return environment.asked.get(change.component, "") if environment is not None else ""

    def mark(self, change: Change) -> str:
        if change.new is None or self.why(change) == "you asked":
            return ""
        record = self.record(change.new)
        return self.notes.mark([record.source]) if record is not None else ""

    def record(self, held: Held) -> FactRecord | None:
        """The claim that carries the evidence as far as a lock can tell: of the same word, else a row."""
        records = [self.index.record(self.ids[fact]) for fact in held.facts if fact in self.ids]
        if not records:
            return None
        claimed = [record for record in records if not isinstance(record, RowRecord)]
        by_rank = [
            *(record for record in claimed if record.evidence == held.evidence),
            *(record for record in claimed if record.kind == "tested"),
            *claimed,
            *records,
        ]
        return by_rank[0]._replace(evidence=held.evidence)

    def widened(self, change: Change, record: FactRecord) -> bool:
        """Whether a row speaks for another release than its own."""
        if not isinstance(record, ClaimRecord) or record.kind != "tested":
            return False
        held = self.new.environments[change.environment].targets[change.target].components
        return record.subject in held and held[record.subject].version != record.releases


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
