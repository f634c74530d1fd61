"""Two targets side by side (`toolmatrix.port/1`): what is equal, what differs, what only one has, and which flags.

The question of a porting investigation is whether two environments are the same, and where not, why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolmatrix.documents import Annotated, Count, Evidence, HasFrom, NonEmpty, Pair, TypedDict
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.lockfile import model
from toolmatrix.lockfile.model import Lock, LockedTarget, LockedValue
from toolmatrix.report import claims, terminal
from toolmatrix.report.claims import Notes
from toolmatrix.report.differences import LockMatrix
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Value

Row = tuple[tuple[str, ...], str]
"""Cells, and the prose beside them."""

SCHEMA = "toolmatrix.port/1"
_KINDS = ("equal", "different", "only")
# A cell of more letters does not widen its column.
_WIDE = 28
# With fewer columns than these left, prose begins on the next line.
_READABLE = 24


class PortedTarget(HasFrom):
    """A target of a lock."""

    name: str
    path: str
    platform: str
    accelerator: str
    matrix: LockMatrix


class PortedValue(TypedDict):
    """The value of a component on a target."""

    target: str
    value: str
    evidence: Evidence
    facts: list[str]
    why: str
    source: str | None


class AbsentEntry(TypedDict):
    """A target that does not have a component."""

    target: str
    why: str


class PortedComponent(TypedDict):
    """A component with its value on each target."""

    component: str
    kind: Annotated[str, "equal", "different", "only"]
    held: NonEmpty[PortedValue]
    absent: list[AbsentEntry]


class PortedFlag(TypedDict):
    """A flag that one target alone has."""

    flag: str
    target: str
    lists: list[Annotated[str, "cflags", "cxxflags", "nvcc", "hipcc"]]
    evidence: Evidence | None
    facts: list[str]
    why: str
    source: str | None


class PortDocument(TypedDict):
    """What `toolmatrix diff --json` prints of two targets. `held` has the value of each, `absent` why one has none."""

    schema: Annotated[str, SCHEMA]
    targets: Pair[PortedTarget]
    components: list[PortedComponent]
    flags: list[PortedFlag]
    summary: Annotated[dict[str, Count], "equal", "different", "only", "flags"]


class Side(Value):
    """One of the two targets: its name, its lock, and its entry in the lock."""

    name: str
    path: str
    lock: Lock
    target: LockedTarget


def document(index: Index, first: Side, second: Side) -> PortDocument:
    """The comparison as JSON values."""
    sides = [(side, model.components(side.target)) for side in (first, second)]
    known = {name for _, values in sides for name in values}
    # A lock may hold components that the matrix no longer knows.
    order = [name for name in index.header["components"] if name in known]
    components = [
        _component(index, name, [(side, values.get(name)) for side, values in sides])
        for name in (*order, *sorted(known.difference(order)))
    ]
    flags = [*_own_flags(index, first, second), *_own_flags(index, second, first)]
    kinds = [component["kind"] for component in components]
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
            for side in (first, second)
        ],
        "components": components,
        "flags": flags,
        "summary": {**{kind: kinds.count(kind) for kind in _KINDS}, "flags": len(flags)},
    }


def differs(document: PortDocument) -> bool:
    """Return whether anything is not the same on both targets."""
    return any(document["summary"][kind] for kind in ("different", "only", "flags"))


def _component(
    index: Index, name: str, sides: list[tuple[Side, LockedValue | None]]
) -> PortedComponent:
    values = [locked.value for _, locked in sides if locked is not None]
    return {
        "component": name,
        "kind": "only" if len(values) == 1 else "equal" if values[0] == values[1] else "different",
        "held": [
            _side_document(index, side, name, value) for side, value in sides if value is not None
        ],
        "absent": [
            {"target": side.name, "why": _absence(index, side.target, name)}
            for side, locked in sides
            if locked is None
        ],
    }


def _side_document(index: Index, side: Side, name: str, locked: LockedValue) -> PortedValue:
    record = claims.carrier(index, locked.facts, locked.evidence)
    return {
        "target": side.name,
        "value": locked.value,
        "evidence": locked.evidence,
        "facts": list(locked.facts),
        "why": claims.locked_reason(record, side.target, name, locked.value) if record else "",
        "source": index.source(record.source).at if record else None,
    }


def _absence(index: Index, target: LockedTarget, name: str) -> str:
    head = index.header["components"].get(name)
    # A missing accelerator is the reason of all that lies under its toolkit, so it is named first.
    if head and head["accelerators"] and target.accelerator not in head["accelerators"]:
        return f"accelerator {target.accelerator}"
    if head and head["under"] and head["under"] not in target.components:
        return f"no {head['under']} there"
    return "not needed there"


def _own_flags(index: Index, side: Side, other: Side) -> Iterator[PortedFlag]:
    """The flags that only one side has, each with the lists it stands in and the fact behind it."""
    for flag, lists in model.own_flags(side.target.flags, other.target.flags).items():
        facts, evidence, name = _flag_grounds(index, side.target, flag)
        record = claims.carrier(index, facts, evidence)
        yield {
            "flag": flag,
            "target": side.name,
            "lists": lists,
            "evidence": evidence or (record.evidence if record else None),
            "facts": facts,
            "why": ""
            if record is None or isinstance(record, RowRecord)
            else claims.because(record, [], record.component, name),
            "source": index.source(record.source).at if record else None,
        }


def _flag_grounds(index: Index, target: LockedTarget, flag: str) -> tuple[list[str], str, str]:
    """The facts of a flag, its evidence and the release that it names: the flag itself, or a codegen arch."""
    # nvcc hands flags to the host compiler by -Xcompiler; facts name them without it.
    bare = flag.removeprefix("-Xcompiler=")
    facts = []
    for fact in target.flags.facts:
        # The matrix may no longer have the fact.
        record = index.find(fact)
        of_claim = isinstance(record, ClaimRecord) and record.releases == bare
        if of_claim or (isinstance(record, ReleaseRecord) and record.selector == bare):
            facts.append(fact)
    if not facts:
        for name, arch in target.archs.items():
            if bare.endswith(f"={name}"):
                return [*arch.facts], arch.evidence, name
    return facts, "", bare


def text(document: PortDocument, notes: Notes, screen: Terminal) -> str:
    """The comparison for people: grouped, each line with its evidence, why, and a note."""
    sides = document["targets"]
    equal, different, only = (
        [flag for flag in document["components"] if flag["kind"] == kind] for kind in _KINDS
    )
    mine = {
        side["name"]: [entry for entry in only if entry["held"][0]["target"] == side["name"]]
        for side in sides
    }
    flags = (
        (
            (flag["target"], flag["flag"], " ".join(flag["lists"]), flag["evidence"] or ""),
            _why(flag, notes),
        )
        for flag in document["flags"]
    )
    tables = {"different": _different(different, notes)}
    tables |= {f"only on {name}": _only(parts, notes) for name, parts in mine.items()}
    # Sources are numbered as they are cited, from the top, so that each table is made when its turn comes.
    groups = [("equal", _equal(equal, screen))]
    groups += [(title, _aligned(rows, screen)) for title, rows in tables.items()]
    groups.append(("flags that differ", _aligned(flags, screen)))
    counts = [f"{len(equal)} equal", f"{len(different)} different"]
    counts += [f"{len(parts)} only on {name}" for name, parts in mine.items()]
    counts.append(terminal.plural(len(document["flags"]), "flag"))
    return terminal.blocks(
        [
            screen.wrap(_heading(sides)),
            *([screen.style(title, "bold"), *lines] for title, lines in groups if lines),
            [*notes.lines(screen.width), ", ".join(counts)],
        ]
    )


def _heading(sides: list[PortedTarget]) -> str:
    first, second = sides
    parts = [f"{first['name']} -> {second['name']}"]
    for name in ("platform", "accelerator", "from"):
        changed = f" -> {second[name]}" if first[name] != second[name] else ""
        parts.append(f"{name} {first[name]}{changed}")
    return ", ".join(parts)


def _equal(parts: list[PortedComponent], screen: Terminal) -> list[str]:
    # One paragraph: equal components matter only to a reader who misses one below.
    names = []
    for component in parts:
        first, second = component["held"]
        name = f"{component['component']} {first['value']}"
        if first["evidence"] != second["evidence"]:
            name += f" ({first['evidence']}, on {second['target']} {second['evidence']})"
        names.append(name)
    return screen.wrap(", ".join(names), first="  ") if names else []


def _different(parts: list[PortedComponent], notes: Notes) -> Iterator[Row]:
    for component in parts:
        for position, entry in enumerate(component["held"]):
            # The component is named on the first of its two lines.
            name = "" if position else component["component"]
            yield (name, entry["target"], entry["value"], entry["evidence"]), _why(entry, notes)


def _only(parts: list[PortedComponent], notes: Notes) -> Iterator[Row]:
    for component in parts:
        (entry,), (absent,) = component["held"], component["absent"]
        why = f"{_why(entry, notes)}; {absent['target']}: {absent['why']}".removeprefix("; ")
        yield (component["component"], entry["value"], entry["evidence"]), why


def _why(entry: PortedValue | PortedFlag, notes: Notes) -> str:
    # The line begins with the name of the component or flag already.
    named = entry.get("value", entry.get("flag", ""))
    mark = notes.carrier(entry["facts"], entry["evidence"] or "")
    return f"{entry['why'].removeprefix(f'{named} ')} {mark}".strip()


def _aligned(rows: Iterable[Row], screen: Terminal) -> list[str]:
    table = list(rows)
    widths = [
        terminal.common_width(column, _WIDE)
        for column in zip(*(cells for cells, _ in table), strict=True)
    ]
    lines: list[str] = []
    for cells, prose in table:
        head = "  " + "  ".join(cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True))
        indent = " " * (len(head) + 2)
        if screen.width - len(indent) >= _READABLE:
            lines += screen.wrap(prose, f"{head}  ", indent)
        else:
            lines += [head, *(screen.wrap(prose, "      ", "      ") if prose else ())]
    return [line.rstrip() for line in lines]
