"""Two targets side by side (`toolmatrix.port/1`): what is equal, what differs, what only one has, and which flags.

The question of a porting investigation is whether two environments are the same, and where not, why.
"""

from __future__ import annotations

from toolmatrix.documents import Annotated, Count, Evidence, HasFrom, NonEmpty, Pair, TypedDict
from toolmatrix.facts.records import ClaimRecord, ReleaseRecord, RowRecord
from toolmatrix.lock import compare
from toolmatrix.report import claims, terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.facts.index import Index
    from toolmatrix.lock.compare import LockedValue
    from toolmatrix.lock.model import Lock, LockedTarget
    from toolmatrix.report.claims import Notes
    from toolmatrix.report.differences import LockMatrix
    from toolmatrix.report.terminal import Terminal

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
    """What a target holds of a component."""

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
    """A component, and what each target holds of it."""

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
    """What `toolmatrix diff --json` prints of two targets. `held` has what each holds, `absent` why one has none."""

    schema: Annotated[str, SCHEMA]
    targets: Pair[PortedTarget]
    components: list[PortedComponent]
    flags: list[PortedFlag]
    summary: Annotated[dict[str, Count], "equal", "different", "only", "flags"]


class Side(Value):
    """One of the two targets: its name, its lock, and what the lock holds of it."""

    name: str
    path: str
    lock: Lock
    target: LockedTarget


def document(index: Index, one: Side, other: Side) -> PortDocument:
    """The comparison as JSON values."""
    held = [(side, compare.components(side.target)) for side in (one, other)]
    known = {name for _, part in held for name in part}
    # A lock may hold components that the matrix no longer knows.
    order = [name for name in index.header["components"] if name in known]
    components = [
        _component(index, name, [(side, part.get(name)) for side, part in held])
        for name in (*order, *sorted(known.difference(order)))
    ]
    flags = [*_own_flags(index, one, other), *_own_flags(index, other, one)]
    kinds = [part["kind"] for part in components]
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
            for side in (one, other)
        ],
        "components": components,
        "flags": flags,
        "summary": {**{kind: kinds.count(kind) for kind in _KINDS}, "flags": len(flags)},
    }


def differs(document: PortDocument) -> bool:
    """Return whether anything is not the same on both targets."""
    return any(document["summary"][kind] for kind in ("different", "only", "flags"))


def _component(
    index: Index, name: str, held: list[tuple[Side, LockedValue | None]]
) -> PortedComponent:
    values = [part.value for _, part in held if part is not None]
    return {
        "component": name,
        "kind": "only" if len(values) == 1 else "equal" if values[0] == values[1] else "different",
        "held": [
            _side_document(index, side, name, part) for side, part in held if part is not None
        ],
        "absent": [
            {"target": side.name, "why": _absence(index, side.target, name)}
            for side, part in held
            if part is None
        ],
    }


def _side_document(index: Index, side: Side, name: str, held: LockedValue) -> PortedValue:
    record = claims.carrier(index, held.facts, held.evidence)
    return {
        "target": side.name,
        "value": held.value,
        "evidence": held.evidence,
        "facts": list(held.facts),
        "why": claims.locked_reason(record, side.target, name, held.value) if record else "",
        "source": index.source(record.source).at if record else None,
    }


def _absence(index: Index, target: LockedTarget, name: str) -> str:
    part = index.header["components"].get(name)
    # A missing accelerator is the reason of all that lies under its toolkit, so it is named first.
    if part and part["accelerators"] and target.accelerator not in part["accelerators"]:
        return f"accelerator {target.accelerator}"
    if part and part["under"] and part["under"] not in target.components:
        return f"no {part['under']} there"
    return "nothing there needs it"


def _own_flags(index: Index, side: Side, other: Side) -> Iterator[PortedFlag]:
    """The flags that only one side has, each with the lists it stands in and the fact behind it."""
    for flag, lists in compare.own_flags(side.target.flags, other.target.flags).items():
        facts, evidence, name = _behind(index, side.target, flag)
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


def _behind(index: Index, target: LockedTarget, flag: str) -> tuple[list[str], str, str]:
    """The facts of a flag, its evidence and the release it stands for: the flag itself, or a codegen arch."""
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
        for name, part in target.archs.items():
            if bare.endswith(f"={name}"):
                return [*part.facts], part.evidence, name
    return facts, "", bare


def text(document: PortDocument, notes: Notes, screen: Terminal) -> str:
    """The comparison for people: grouped, each line with its evidence, why, and a note."""
    sides = document["targets"]
    equal, different, only = (
        [part for part in document["components"] if part["kind"] == kind] for kind in _KINDS
    )
    mine = {
        side["name"]: [part for part in only if part["held"][0]["target"] == side["name"]]
        for side in sides
    }
    flags = (
        (
            (part["target"], part["flag"], " ".join(part["lists"]), part["evidence"] or ""),
            _why(part, notes),
        )
        for part in document["flags"]
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
    one, other = sides
    parts = [f"{one['name']} -> {other['name']}"]
    for name in ("platform", "accelerator", "from"):
        changed = f" -> {other[name]}" if one[name] != other[name] else ""
        parts.append(f"{name} {one[name]}{changed}")
    return ", ".join(parts)


def _equal(parts: list[PortedComponent], screen: Terminal) -> list[str]:
    # All in one paragraph: what is equal is read only by who looks for something that is missing below.
    names = []
    for part in parts:
        one, other = part["held"]
        name = f"{part['component']} {one['value']}"
        if one["evidence"] != other["evidence"]:
            name += f" ({one['evidence']}, on {other['target']} {other['evidence']})"
        names.append(name)
    return screen.wrap(", ".join(names), first="  ") if names else []


def _different(parts: list[PortedComponent], notes: Notes) -> Iterator[Row]:
    for part in parts:
        for place, held in enumerate(part["held"]):
            # The component is named on the first of its two lines.
            name = "" if place else part["component"]
            yield (name, held["target"], held["value"], held["evidence"]), _why(held, notes)


def _only(parts: list[PortedComponent], notes: Notes) -> Iterator[Row]:
    for part in parts:
        (held,), (absent,) = part["held"], part["absent"]
        why = f"{_why(held, notes)}; {absent['target']}: {absent['why']}".removeprefix("; ")
        yield (part["component"], held["value"], held["evidence"]), why


def _why(part: PortedValue | PortedFlag, notes: Notes) -> str:
    # The name of the component or flag stands before its reason already.
    named = part.get("value", part.get("flag", ""))
    mark = notes.carrier(part["facts"], part["evidence"] or "")
    return f"{part['why'].removeprefix(f'{named} ')} {mark}".strip()


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
