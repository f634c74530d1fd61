"""Two targets side by side (`toolmatrix.port/1`): what is equal, what differs, what only one has, and which flags.

The question of a porting investigation is whether two environments are the same, and where not, why.
"""

from __future__ import annotations

from toolmatrix.facts.records import ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.lock import compare
from toolmatrix.report import claims, terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import FactRecord
    from toolmatrix.lock.compare import Held
    from toolmatrix.lock.model import Lock, LockedTarget
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.port/1"
_FLAGS = ("cflags", "cxxflags", "nvcc", "hipcc")
# A cell of more letters does not widen its column.
_WIDE = 28
# With fewer columns than these left, prose begins on the next line.
_READABLE = 24


class Side(Value):
    """One of the two targets: its name, its lock, and what the lock holds of it."""

    name: str
    path: str
    lock: Lock
    target: LockedTarget


class Port:
    """The comparison of two targets."""

    def __init__(self, index: Index, one: Side, other: Side) -> None:
        self.index = index
        self.sides = (one, other)
        self.ids = index.ids
        held = [compare.components(side.target) for side in self.sides]
        order = [name for name in index.header["components"] if any(name in part for part in held)]
        order += sorted({*held[0], *held[1]} - {*order})
        self.components = [
            self.component(name, [part.get(name) for part in held]) for name in order
        ]
        self.flags = [part for side in self.sides for part in self.flags_of(side)]

    def kind(self, kind: str) -> list[dict[str, Any]]:
        return [part for part in self.components if part["kind"] == kind]

    @property
    def differs(self) -> bool:
        """Whether anything is not the same on both."""
        return bool(self.flags) or len(self.kind("equal")) < len(self.components)

    def component(self, name: str, held: Sequence[Held | None]) -> dict[str, Any]:
        """What the two hold of a component, and why."""
        values = [part.value for part in held if part is not None]
        kind = "only" if len(values) == 1 else "equal" if values[0] == values[1] else "different"
        return {
            "component": name,
            "kind": kind,
            "held": [
                self.held(side, name, part)
                for side, part in zip(self.sides, held, strict=True)
                if part is not None
            ],
            "absent": [
                {"target": side.name, "why": self.lacking(side, name)}
                for side, part in zip(self.sides, held, strict=True)
                if part is None
            ],
        }

    def held(self, side: Side, name: str, held: Held) -> dict[str, Any]:
        record = self.record(held.facts, held.evidence)
        why = ""
        if record is not None and not isinstance(record, RowRecord):
            rules = ["same-minor"] if _widened(side.target, record) else []
            why = claims.because(record, rules, name, held.value.removeprefix(">="))
        return {
            "target": side.name,
            "value": held.value,
            "evidence": held.evidence,
            "facts": list(held.facts),
            "why": why,
            "source": record.source if record is not None else None,
        }

    def record(self, facts: Sequence[str], evidence: str) -> FactRecord | None:
        """The claim that carries the evidence, as far as a lock can tell."""
        records = [self.index.record(self.ids[fact]) for fact in facts if fact in self.ids]
        records.sort(key=lambda one: (isinstance(one, RowRecord), one.evidence != evidence))
        return records[0] if records else None

    def lacking(self, side: Side, name: str) -> str:
        """Why a target has none, where its accelerator is the reason."""
        part = self.index.header["components"].get(name)
        if part and part["accelerators"] and side.target.accelerator not in part["accelerators"]:
            return f"accelerator {side.target.accelerator}"
        if part and part["under"] and part["under"] not in side.target.components:
            return f"no {part['under']} there"
        return "nothing there needs it"

    def flags_of(self, side: Side) -> Iterator[dict[str, Any]]:
        """The flags that only this side has, each with the lists it stands in and the fact behind it."""
        other = self.sides[side is self.sides[0]].target.flags
        lists: dict[str, list[str]] = {}
        for kind in _FLAGS:
            for flag in getattr(side.target.flags, kind):
                if flag not in getattr(other, kind):
                    lists.setdefault(flag, []).append(kind)
        for flag, kinds in lists.items():
            facts, evidence, name = self.behind(side.target, flag)
            record = self.record(facts, evidence)
            claim = None if isinstance(record, RowRecord) else record
            yield {
                "flag": flag,
                "target": side.name,
                "lists": kinds,
                "evidence": evidence or (record.evidence if record is not None else None),
                "facts": facts,
                "why": claims.because(claim, [], claim.component, name) if claim else "",
                "source": record.source if record is not None else None,
            }

    def behind(self, target: LockedTarget, flag: str) -> tuple[list[str], str, str]:
        """The facts of a flag, its evidence and what it is called there: by itself, or as the codegen arch it names."""
        bare = flag.removeprefix("-Xcompiler=")
        facts = [fact for fact in target.flags.facts if self.about(fact) == bare]
        if facts:
            return facts, "", bare
        for name, part in target.archs.items():
            if bare.endswith(f"={name}"):
                return [*part.facts], part.evidence, name
        return [], "", bare

    def about(self, fact: str) -> str:
        """The release that a fact is about."""
        record = self.index.record(self.ids[fact]) if fact in self.ids else None
        if isinstance(record, ClaimRecord):
            return record.releases
        return record.selector if isinstance(record, ReleaseRecord) else ""


def document(port: Port) -> dict[str, Any]:
    """The comparison as JSON values."""
    sources = port.index.sources()

    def cited(part: dict[str, Any]) -> dict[str, Any]:
        return part | {"source": sources[part["source"]].at if part["source"] else None}

    return {
        "schema": SCHEMA,
        "targets": [
            {
                "name": side.name,
                "path": side.path,
                "platform": side.target.platform,
                "accelerator": side.target.accelerator,
                "from": side.target.from_,
                "matrix": {"digest": side.lock.matrix_digest, "date": side.lock.matrix_date},
            }
            for side in port.sides
        ],
        "components": [
            part | {"held": [cited(held) for held in part["held"]]} for part in port.components
        ],
        "flags": [cited(part) for part in port.flags],
        "summary": {kind: len(port.kind(kind)) for kind in ("equal", "different", "only")}
        | {"flags": len(port.flags)},
    }


def text(port: Port, screen: Terminal) -> str:
    """The comparison for people: grouped, each line with its evidence, why, and a note."""
    notes = claims.Notes(port.index)
    groups = [
        ("equal", _equal(port, screen.width)),
        ("different", _rows(_different(port, notes), screen.width)),
    ]
    groups += [
        (f"only on {side.name}", _rows(_only(port, side, notes), screen.width))
        for side in port.sides
    ]
    groups.append(("flags that differ", _rows(_flags(port, notes), screen.width)))
    blocks = ["\n".join(terminal.wrap(_heading(port), screen.width, indent="  ", first=""))]
    for title, lines in groups:
        if lines:
            blocks.append("\n".join([screen.style(title, "bold"), *lines]))
    only = [part["held"][0]["target"] for part in port.kind("only")]
    counts = [f"{len(port.kind(kind))} {kind}" for kind in ("equal", "different")]
    counts += [f"{only.count(side.name)} only on {side.name}" for side in port.sides]
    counts.append(terminal.plural(len(port.flags), "flag"))
    blocks.append("\n".join([*notes.lines(screen.width), ", ".join(counts)]))
    return "\n\n".join(blocks) + "\n"


def _heading(port: Port) -> str:
    one, other = port.sides
    told = [f"{one.name} -> {other.name}"]
    for name, values in (
        ("platform", (one.target.platform, other.target.platform)),
        ("accelerator", (one.target.accelerator, other.target.accelerator)),
        ("from", (one.target.from_, other.target.from_)),
    ):
        same = values[0] == values[1]
        told.append(f"{name} {values[0]}" if same else f"{name} {values[0]} -> {values[1]}")
    return ", ".join(told)


def _equal(port: Port, width: int) -> list[str]:
    """All in one paragraph; what is known less well on one side says so."""
    told = []
    for part in port.kind("equal"):
        one, other = part["held"]
        name = f"{part['component']} {one['value']}"
        if one["evidence"] != other["evidence"]:
            name += f" ({one['evidence']}, on {other['target']} {other['evidence']})"
        told.append(name)
    return terminal.wrap(", ".join(told), width, indent="  ") if told else []


# Cells, and the prose behind them.
_Row = tuple[tuple[str, ...], str]


def _different(port: Port, notes: claims.Notes) -> Iterator[_Row]:
    for part in port.kind("different"):
        for place, held in enumerate(part["held"]):
            name = "" if place else part["component"]
            yield (name, held["target"], held["value"], held["evidence"]), _why(held, notes)


def _only(port: Port, side: Side, notes: claims.Notes) -> Iterator[_Row]:
    for part in port.kind("only"):
        held = part["held"][0]
        if held["target"] == side.name:
            absent = part["absent"][0]
            why = f"{_why(held, notes)}; {absent['target']}: {absent['why']}".removeprefix("; ")
            yield (part["component"], held["value"], held["evidence"]), why


def _flags(port: Port, notes: claims.Notes) -> Iterator[_Row]:
    for part in port.flags:
        cells = part["target"], part["flag"], " ".join(part["lists"]), part["evidence"] or ""
        yield cells, _why(part, notes)


def _why(part: dict[str, Any], notes: claims.Notes) -> str:
    """Why, without the name of what it is about, which stands before it."""
    mark = notes.mark([part["source"]]) if part["source"] else ""
    named = part.get("value", part.get("flag", ""))
    return f"{part['why'].removeprefix(f'{named} ')} {mark}".strip()


def _rows(rows: Iterator[_Row], width: int) -> list[str]:
    """Cells in columns, the prose wrapped beside them."""
    held = list(rows)
    widths = [
        max((len(cell) for cell in column if len(cell) <= _WIDE), default=0)
        for column in zip(*(cells for cells, _ in held), strict=True)
    ]
    lines: list[str] = []
    for cells, prose in held:
        head = "  " + "  ".join(cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True))
        indent = " " * (len(head) + 2)
        if width - len(indent) >= _READABLE:
            lines += terminal.wrap(prose, width, indent=indent, first=f"{head}  ")
        else:
            lines += [head, *(terminal.wrap(prose, width, indent="      ") if prose else ())]
    return [line.rstrip() for line in lines]


def _widened(target: LockedTarget, record: FactRecord) -> bool:
    """Whether a row speaks for another release than its own."""
    if not isinstance(record, ClaimRecord) or record.kind != "tested":
        return False
    held = target.components
    return record.subject in held and held[record.subject].version != record.releases
