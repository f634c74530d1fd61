"""A refusal as a document (the contract `toolmatrix.conflict/1`) and in words: cores, then repairs.

Each core is unsatisfiable by itself and irreducible. The wording of a derivation is PubGrub's:
"Because A and B, C."
"""

from __future__ import annotations

import shlex

from toolmatrix.report import answer, caveats, claims, cores, terminal
from toolmatrix.solve.repair import device_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Resolution, Unsatisfiable

SCHEMA = "toolmatrix.conflict/1"
LIMIT = 12
"""Lines of derivation printed for one core; the rest behind --depth."""


def allowed_text(
    index: Index,
    found: Resolution,
    soft: Sequence[dict[str, Any]],
    screen: terminal.Terminal,
    *,
    known: bool,
) -> str:
    """What `why-not` says when nothing forbids the request."""
    asked = " ".join(ask.text for ask in found.request.asks if ask.option in ("", "with"))
    notes = claims.Notes(index)
    parts = [f"{screen.style('yes', 'yes')}: nothing forbids `{asked}`"]
    if not known:
        unknown = screen.style("unknown", "unknown")
        parts = [f"{unknown}: no fact forbids `{asked}`, and none vouches for it  TM120"]
        parts += [part["text"] for part in caveats.unread(found)]
    for number, reason in enumerate(soft, 1):
        parts.append("\n".join(_reason(index, number, reason, notes, screen)))
    parts.append("\n".join(notes.lines(screen.width)))
    return "\n\n".join(part for part in parts if part) + "\n"


def command(request: Request, carried: Sequence[str] = ()) -> str:
    """The command line that makes a request; pasting it into a shell repeats it. `carried` are further options."""
    return shlex.join(("toolmatrix", "resolve", *request.words(), *carried))


def change_text(index: Index, repair: Repair) -> str:
    """What a repair changes, in words."""
    told = []
    for old, new in repair.changes:
        if old.option == "align":
            told.append(f"let {old.selector} differ between targets")
        elif new is None:
            told.append(f"drop {old.text}")
        elif old.option == "arch":
            device = device_of(index, old.selector)
            why = f": {new.selector} code also runs on {device} devices" if device else ""
            told.append(f"make code for {new.selector} instead of {old.selector}{why}")
        else:
            told.append(f"{new.text} instead of {old.text}")
    return " and ".join(told)


def document(
    index: Index,
    refusal: Unsatisfiable,
    repairs: Sequence[Repair],
    soft: Sequence[dict[str, Any]] = (),
    *,
    carried: Sequence[str] = (),
) -> dict[str, Any]:
    """A refusal as JSON values."""
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "request": answer.request_document(refusal.assembly.request),
        "cores": [*(cores.core_document(refusal.assembly, core) for core in refusal.cores), *soft],
        "repairs": [
            {
                "change": [
                    {"from": old.text, "to": new.text if new else None}
                    for old, new in repair.changes
                ],
                "text": change_text(index, repair),
                "command": command(repair.request, carried),
                "cost": repair.cost,
                "evidence": repair.resolution.evidence,
                "resolution": answer.document(index, repair.resolution),
            }
            for repair in repairs
        ],
    }


def text(
    index: Index,
    refusal: Unsatisfiable,
    repairs: Sequence[Repair],
    screen: terminal.Terminal,
    soft: Sequence[dict[str, Any]] = (),
    *,
    depth: int | None = None,
    carried: Sequence[str] = (),
) -> str:
    """A refusal in words: reasons, then what would allow it."""
    notes = claims.Notes(index)
    assembly = refusal.assembly
    reasons = [*(cores.core_document(assembly, core) for core in refusal.cores), *soft]
    counted = (
        f", for {terminal.plural(len(reasons), 'independent reason')}" if len(reasons) > 1 else ""
    )
    parts = [screen.style("no", "no") + counted]
    several = len(assembly.request.targets) > 1
    for number, reason in enumerate(reasons, 1):
        parts.append("\n".join(_reason(index, number, reason, notes, screen, several, depth)))
    parts.append("\n".join(_ways_out(index, repairs, screen, carried)))
    parts.append("\n".join(notes.lines(screen.width)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _reason(
    index: Index,
    number: int,
    reason: dict[str, Any],
    notes: claims.Notes,
    screen: terminal.Terminal,
    several: bool = False,
    depth: int | None = None,
) -> list[str]:
    """One core as prose; defaults are not told where there is one target and something else to tell."""
    told = [
        _told(index, line, notes, several)
        for line in reason["lines"]
        if several or not line["default"] or len(reason["lines"]) <= 2
    ]
    shown = told if depth is not None else told[:LIMIT]
    body = [f"{'and ' if place else 'Because '}{part}" for place, part in enumerate(shown)]
    body[-1] += ","
    if len(shown) < len(told):
        body.append(f"... and {terminal.plural(len(told) - len(shown), 'more line')} (--depth)")
    code = "TM101" if reason["kind"] == "hard" else "TM102"
    body.append(reason.get("conclusion", "there is no answer."))
    prefix = f"{number}. {reason['kind']}  "
    indent = " " * len(prefix)
    told = []
    for place, part in enumerate(body):
        first = indent if place else prefix
        told += terminal.wrap(part, screen.width, indent=indent + "  ", first=first)
    told[-1] += f"  {code}"
    return told


def _told(index: Index, line: dict[str, Any], notes: claims.Notes, several: bool) -> str:
    if not line["facts"]:
        return str(line["text"])
    mark = notes.mark(index.record(index.number(fact)).source for fact in line["facts"])
    target = f" on {line['target']}" if several else ""
    return f"{line['text']}{target} ({line['evidence']}) {mark}"


def _ways_out(
    index: Index, repairs: Sequence[Repair], screen: terminal.Terminal, carried: Sequence[str]
) -> list[str]:
    if not repairs:
        return ["no single change, nor two, makes it possible"]
    found = ["to allow it (each of these was solved)"]
    for repair in repairs:
        told = f"{change_text(index, repair)} (weakest evidence: {repair.resolution.evidence})"
        found += terminal.wrap(told, screen.width, indent="  ")
        found.append(f"    {command(repair.request, carried)}")
    return found
