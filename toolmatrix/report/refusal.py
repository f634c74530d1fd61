"""A refusal as a document (the contract `toolmatrix.conflict/1`) and in words: cores, then repairs.

Each core is unsatisfiable by itself and irreducible. The wording of a derivation is PubGrub's:
"Because A and B, C."
"""

from __future__ import annotations

import shlex
from itertools import chain

from toolmatrix.documents import (
    Annotated,
    Code,
    Evidence,
    HasFrom,
    Literal,
    MatrixHead,
    NonEmpty,
    NotRequired,
    Ordinal,
    TypedDict,
)
from toolmatrix.report import answer, cores, terminal
from toolmatrix.solve.repair import device_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.report.answer import RequestEntry, ResolutionDocument
    from toolmatrix.report.claims import Notes
    from toolmatrix.report.cores import CoreEntry, CoreLineEntry
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Unsatisfiable
    from toolmatrix.solve.worlds import Outside

SCHEMA = "toolmatrix.conflict/1"
NO_REPAIR = "changing one or two of the requirements is not enough"
# So many lines of the derivation of one core are printed; --depth shows the rest.
_LIMIT = 12


class DerivedLine(TypedDict):
    """A line of a reason, with the numbers of its sources."""

    text: str
    evidence: Evidence | Literal[""]
    facts: list[str]
    notes: list[Ordinal]


class DerivedReason(TypedDict):
    """A reason as it is printed."""

    kind: Annotated[str, "hard", "soft"]
    code: Code
    lines: list[DerivedLine]
    conclusion: str


class OutsideEntry(TypedDict):
    """A component whose unknown releases may satisfy the request."""

    component: str
    first: str
    text: str


class RequestChange(HasFrom):
    """A part of the request and its replacement."""

    to: str | None


class RepairEntry(TypedDict):
    """A change of the request that has an answer."""

    change: list[RequestChange]
    text: str
    command: str
    cost: int
    evidence: Evidence
    resolution: NotRequired[ResolutionDocument]
    """Left out where it is not asked for, which no command does."""


class ConflictDocument(TypedDict):
    """What `toolmatrix resolve --json` and `toolmatrix why-not --json` print when no known release satisfies the
    request.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    request: RequestEntry
    cores: NonEmpty[CoreEntry]
    outside: list[OutsideEntry]
    """Components whose releases before the first known one may satisfy the request; with any, the answer is not no."""
    repairs: list[RepairEntry]


def command(request: Request, carried: Sequence[str] = ()) -> str:
    """The command line that makes a request; pasting it into a shell repeats it. `carried` are further options."""
    # Selectors have `<` and `>` in them, by which a shell would redirect.
    return shlex.join(("toolmatrix", "resolve", *request.arguments(), *carried))


def change_text(index: Index, repair: Repair) -> str:
    """The changes of a repair, in words."""
    parts = []
    for old, new in repair.changes:
        if old.option == "align":
            parts.append(f"let {old.selector} differ between targets")
        elif new is None:
            parts.append(f"drop {old.text}")
        # Other code than that asked for is a repair only because it runs on the same device.
        elif old.option == "arch":
            device = device_of(index, old.selector)
            why = f": {new.selector} code also runs on {device} devices" if device else ""
            parts.append(f"make code for {new.selector} instead of {old.selector}{why}")
        else:
            parts.append(f"{new.text} instead of {old.text}")
    return " and ".join(parts)


def document(
    index: Index,
    refusal: Unsatisfiable,
    repairs: Sequence[Repair],
    soft: Sequence[CoreEntry] = (),
    *,
    carried: Sequence[str] = (),
    answers: bool = True,
) -> ConflictDocument:
    """A refusal as JSON values; `carried` are options that each command needs besides its request.

    Without `answers` the resolutions of the repairs are left out.
    """
    return {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "request": answer.request_document(refusal.request),
        "cores": [*(cores.core_document(index, core) for core in refusal.cores), *soft],
        "outside": [
            {"component": outside.component, "first": outside.first, "text": _outside(outside)}
            for outside in refusal.outside
        ],
        "repairs": [_repair(index, repair, carried=carried, answers=answers) for repair in repairs],
    }


def _repair(index: Index, repair: Repair, *, carried: Sequence[str], answers: bool) -> RepairEntry:
    entry: RepairEntry = {
        "change": [
            {"from": old.text, "to": new.text if new else None} for old, new in repair.changes
        ],
        "text": change_text(index, repair),
        "command": command(repair.request, carried),
        "cost": repair.cost,
        "evidence": repair.resolution.evidence,
    }
    # Text does not show them, and they take a tenth of the time of a refusal.
    if answers:
        entry["resolution"] = answer.document(index, repair.resolution)
    return entry


def counted(document: ConflictDocument) -> str:
    """The rest of a sentence that begins with "no" or "unknown": for how many reasons, or of which releases."""
    if document["outside"]:
        return ": no known release fits"
    count = len(document["cores"])
    return f", for {terminal.plural(count, 'independent reason')}" if count > 1 else ""


def reasons(parts: Sequence[CoreEntry], notes: Notes, *, several: bool) -> list[DerivedReason]:
    """The cores of a refusal as printed: lines with evidence and the numbers of their sources, and a conclusion.

    `several` targets are named in each line.
    """
    return [
        {
            "kind": core["kind"],
            "code": _code(core),
            "lines": [
                {
                    "text": _placed(line, several=several),
                    "evidence": line["evidence"] or "" if line["facts"] else "",
                    "facts": line["facts"],
                    "notes": notes.numbered(notes.sources(line["facts"])),
                }
                for line in _visible_lines(core, several=several)
            ],
            "conclusion": _conclusion(core),
        }
        for core in parts
    ]


def text(
    document: ConflictDocument, notes: Notes, screen: Terminal, *, depth: int | None = None
) -> str:
    """A refusal in words, for which its document needs no answers: reasons, then what would allow it."""
    several = len(document["request"]["targets"]) > 1
    parts = [_headline(document, screen)]
    for number, core in enumerate(document["cores"], 1):
        parts.append(_derivation(number, core, notes, screen, several=several, depth=depth))
    repairs = ["to allow it (each of these was solved)"]
    for repair in document["repairs"]:
        change = f"{repair['text']} (weakest evidence: {repair['evidence']})"
        # A command is never broken: it is there to be copied.
        repairs += [*screen.wrap(change, first="  "), f"    {repair['command']}"]
    if not document["repairs"]:
        repairs = [NO_REPAIR]
    return terminal.blocks([*parts, repairs, notes.lines(screen.width)])


def _outside(outside: Outside) -> str:
    return f"releases of {outside.component} before {outside.first} may fit, but the matrix knows none of them"


def _headline(document: ConflictDocument, screen: Terminal) -> list[str]:
    verdict = "unknown" if document["outside"] else "no"
    lines = [screen.wrap(f"cannot say: {entry['text']}  TM120") for entry in document["outside"]]
    return [screen.style(verdict, verdict) + counted(document), *chain.from_iterable(lines)]


def allowed_text(document: ResolutionDocument, notes: Notes, screen: Terminal) -> str:
    """The answer of `why-not` when nothing forbids the request, from the resolution that it writes."""
    verdict = "yes" if document["allowed"] else "unknown"
    parts = [[screen.style(verdict, verdict) + allowed_headline(document)]]
    if not document["allowed"]:
        parts += [[unread["text"]] for unread in document["unread"]]
        parts += [[note["text"]] for note in document["caveats"] if note["kind"] == "to-bring"]
    for number, core in enumerate(document["untested"], 1):
        parts.append(_derivation(number, core, notes, screen))
    return terminal.blocks([*parts, notes.lines(screen.width)])


def allowed_headline(document: ResolutionDocument) -> str:
    """The rest of a sentence that begins with "yes" or "unknown": nothing forbids the request."""
    request = " ".join([*document["request"]["wanted"], *document["request"]["with"]])
    if document["allowed"]:
        return f": nothing forbids `{request}`"
    return f": `{request}` is not forbidden, but no source confirms it  TM120"


def _derivation(
    number: int,
    core: CoreEntry,
    notes: Notes,
    screen: Terminal,
    *,
    several: bool = False,
    depth: int | None = None,
) -> list[str]:
    """One core as prose; `several` targets are named in each line, and any `depth` shows all lines."""
    lines = [_line(line, notes, several=several) for line in _visible_lines(core, several=several)]
    visible = lines if depth is not None else lines[:_LIMIT]
    sentences = [f"{'and ' if above else 'Because '}{line}" for above, line in enumerate(visible)]
    # The conclusion ends the sentence that began with "Because".
    sentences[-1] += ","
    if len(visible) < len(lines):
        rest = terminal.plural(len(lines) - len(visible), "more line")
        sentences.append(f"... and {rest} (--depth)")
    sentences.append(_conclusion(core))
    prefix = f"{number}. {core['kind']}  "
    indent = " " * len(prefix)
    paragraph: list[str] = []
    for sentence in sentences:
        first = indent if paragraph else prefix
        paragraph += screen.wrap(sentence, first, indent + "  ")
    paragraph[-1] += f"  {_code(core)}"
    return paragraph


def _visible_lines(core: CoreEntry, *, several: bool) -> list[CoreLineEntry]:
    # A default says little where there is one target, unless hardly anything else is left to say.
    every = several or len(core["lines"]) <= 2
    return [line for line in core["lines"] if every or not line["default"]]


def _code(core: CoreEntry) -> str:
    return "TM101" if core["kind"] == "hard" else "TM102"


def _conclusion(core: CoreEntry) -> str:
    # A soft reason says what is untested; all hard ones come to the same.
    return core.get("conclusion", "there is no answer.")


def _placed(line: CoreLineEntry, *, several: bool) -> str:
    return f"{line['text']} on {line['target']}" if several and line["facts"] else line["text"]


def _line(line: CoreLineEntry, notes: Notes, *, several: bool) -> str:
    if not line["facts"]:
        return line["text"]
    return f"{_placed(line, several=several)} ({line['evidence']}) {notes.cite(line['facts'])}"
