"""`toolmatrix upgrade`."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import request_context
from toolmatrix.command import PRINTED, command
from toolmatrix.documents import Annotated, Any, Evidence, MatrixHead, TypedDict
from toolmatrix.errors import LockError
from toolmatrix.factbase import evidence as words
from toolmatrix.report import answer, claims, cores, remarks, terminal
from toolmatrix.request import upgrades as asking
from toolmatrix.request.fields import Fields, parse_arguments
from toolmatrix.request.read import read as reading
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.api import Matrix, Path
    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import LockedEnvironment
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.request.upgrades import Moved, Newer, Upgrade, Upgrades

    Commands = Mapping[tuple[str, str], str]
    """The command that writes a move, by component and version."""


@command(
    group="Lock and build",
    order=2,
    usage="[LOCK]",
    completer="file",
    formats=PRINTED,
    does="solving",
    examples=("toolmatrix upgrade", "toolmatrix upgrade old.lock --json"),
)
def upgrade(lock: Path = "toolmatrix.lock", *, matrix: Matrix = None) -> Report:
    """Show possible upgrades of a lock, and what prevents others.

    Each is shown with what would move with it and with the command that writes it; nothing is written. `update` renews
    the matrix. Raises LockError, and NothingMatched or UsageError where what the lock answers cannot be asked of this
    matrix.
    """
    from toolmatrix.lockfile.lock_file import read

    path, context = os.fspath(lock), request_context(matrix)
    index = context.index
    try:
        locked = read(path)
    except LockError as error:
        hint = "`toolmatrix update` renews the matrix"
        error.help = "; ".join(filter(None, (error.help, hint)))
        raise
    # A command with one request can only write a lock with one environment.
    single = len(locked.environments) == 1
    environments: dict[str, UpgradedEnvironment] = {}
    refused = False
    for name, environment in sorted(locked.environments.items()):
        with caller().progress("solving", "components") as progress:
            upgrades = asking.upgrades(index, environment, progress.at)
        commands = _commands(index, path, context.carried, environment, upgrades) if single else {}
        environments[name] = _environment(index, environment, upgrades, commands)
        refused = refused or not isinstance(upgrades.answer, Resolution)
    document: UpgradesDocument = {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "lock": {
            "path": path,
            "matrix": {"digest": locked.matrix_digest, "date": locked.matrix_date},
        },
        "environments": environments,
    }
    return Report(
        words=partial(_text, index, document),
        document=lambda: document,
        exit_code=int(refused),
    )


def _moved(environment: LockedEnvironment, upgrades: Upgrades) -> list[Moved]:
    """What the answer changes today although the locked releases are preferred."""
    if not isinstance(upgrades.answer, Resolution):
        return []
    known = {entry[:2] for entry in upgrades.unknown}
    return [
        asking.Moved(target, name, component.version, new)
        for target, locked in environment.targets.items()
        for name, component in locked.components.items()
        # A minimum, such as that of a driver, follows from the rest; unknown releases are reported separately.
        if not component.floor
        and (target, name) not in known
        and (new := upgrades.answer.chosen(target).get(name, "")) != component.version
    ]


def _commands(
    index: Index,
    path: str,
    carried: Sequence[str],
    environment: LockedEnvironment,
    upgrades: Upgrades,
) -> Commands:
    import shlex

    commands = {}
    for candidate in upgrades.components:
        for move in (candidate.move, candidate.further):
            if move is None:
                continue
            words = ["toolmatrix", "lock", *move.words, "--keep", path]
            # `--keep` would also keep what depends on the request; `--upgrade` does not.
            if candidate.asked:
                words = ["toolmatrix", "lock", *move.words, "--upgrade", candidate.component]
            # The shortest command that writes the move, and the one that leaves the request as it is.
            elif _upgrades_to(index, environment, candidate.component, move):
                words = ["toolmatrix", "lock", "--upgrade", candidate.component]
            words += ["--lock", path] if path != "toolmatrix.lock" else []
            commands[candidate.component, move.version] = shlex.join([*words, *carried])
    return commands


def _upgrades_to(index: Index, environment: LockedEnvironment, component: str, move: Newer) -> bool:
    """True if `--upgrade COMPONENT` gives the same answer as a move."""
    fields = Fields(**parse_arguments(environment.request))
    keep = asking.releases_without(index, environment, {component})
    alone = possible(index, reading(index, fields, keep=keep))
    if alone is None:
        return False
    # Compare whole answers: the same release with other changes is another move.
    wanted = move.resolution
    return all(alone.chosen(target) == wanted.chosen(target) for target in wanted.targets)


SCHEMA = "toolmatrix.upgrades/1"
# How many changes of a move are printed.
_CHANGES = 6
_HEADS = (
    "could move",
    "could change according to hard facts, but is untested",
    "unchanged",
    "requested, and would otherwise change",
)


class UpgradedLock(TypedDict):
    """The lock whose components could move."""

    path: str
    matrix: MatrixHead


class ReasonEntry(TypedDict):
    """What stands in the way."""

    text: str
    facts: list[str]


class MoveEntry(TypedDict):
    """A release that a component could move to."""

    version: str
    evidence: Evidence
    untested: list[str]
    request: list[str]
    command: str
    changes: list[Annotated[dict[str, Any], Moved]]


class UpgradedComponent(TypedDict):
    """A component, and where it could move."""

    component: str
    held: dict[str, str]
    newest: str
    asked: str
    moves: list[MoveEntry]
    reasons: list[ReasonEntry]


class UpgradedEnvironment(TypedDict):
    """What could move in an environment."""

    request: list[str]
    answered: bool
    reasons: list[ReasonEntry]
    moved: list[Annotated[dict[str, Any], Moved]]
    unknown: list[Annotated[dict[str, Any], Moved]]
    components: list[UpgradedComponent]


class UpgradesDocument(TypedDict):
    """What `toolmatrix upgrade --json` prints: to which newer releases what a lock holds could move, what would move
    with it, and what stands in the way.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    lock: UpgradedLock
    environments: dict[str, UpgradedEnvironment]


def _environment(
    index: Index, environment: LockedEnvironment, upgrades: Upgrades, commands: Commands
) -> UpgradedEnvironment:
    refused = isinstance(upgrades.answer, Unsatisfiable)
    return {
        "request": list(upgrades.words),
        "answered": not refused,
        "reasons": _reasons(index, "", upgrades.answer) if refused else [],
        "moved": [entry._asdict() for entry in _moved(environment, upgrades)],
        "unknown": [entry._asdict() for entry in upgrades.unknown],
        "components": [
            _component(index, commands, component, _untested(upgrades.answer))
            for component in upgrades.components
        ],
    }


def _component(
    index: Index, commands: Commands, upgrade: Upgrade, before: Collection[str]
) -> UpgradedComponent:
    return {
        "component": upgrade.component,
        "held": dict(upgrade.held),
        "newest": upgrade.newest,
        "asked": upgrade.asked,
        "moves": [
            _move(index, commands, upgrade.component, move, before)
            for move in (upgrade.move, upgrade.further)
            if move
        ],
        "reasons": _reasons(index, upgrade.component, upgrade.refusal),
    }


def _move(
    index: Index, commands: Commands, component: str, move: Newer, before: Collection[str]
) -> MoveEntry:
    choices = [
        choice
        for chosen in move.resolution.targets.values()
        for choice in chosen
        if choice.component == component
    ]
    return {
        "version": move.version,
        "evidence": words.weakest(choice.evidence for choice in choices),
        "untested": [
            # Pairs that are untested today are no reason against the move.
            *(text for text in _untested(move.resolution) if text not in before),
            *_later(index, component, move.resolution),
        ],
        "request": list(move.words),
        "command": commands.get((component, move.version), ""),
        "changes": [change._asdict() for change in move.changes],
    }


def _untested(resolution: Resolution | Unsatisfiable) -> list[str]:
    """The untested pairs of an answer, as text."""
    if isinstance(resolution, Unsatisfiable):
        return []
    texts = [
        caveat["text"] for caveat in remarks.caveats(resolution) if caveat["kind"] == "untested"
    ]
    return list(dict.fromkeys(texts))


def _later(index: Index, component: str, resolution: Resolution) -> list[str]:
    """Notes on releases that came out after their framework, and that no row tested with it."""
    heads = index.header["components"]
    frameworks = [name for name in resolution.request.wanted if heads[name]["framework"]]
    notes: dict[str, None] = {}
    for choices in resolution.targets.values():
        chosen = {choice.component: choice for choice in choices}
        choice = chosen.get(component)
        if choice is None or component in frameworks:
            continue
        # A tested row includes all of its components.
        if any(index.statement(cite.record).kind == "tested" for cite in choice.cites):
            continue
        # METADATA of a framework also allows later packages, which cannot have been tested at its release.
        for name in frameworks:
            day = _date(index, name, chosen[name].version) if name in chosen else ""
            if day and _date(index, component, choice.version) > day:
                text = f"{component} {choice.version} came out after {name} {chosen[name].version}"
                notes[f"{text}, so it cannot have been tested with it (rule released-later)"] = None
    return list(notes)


def _date(index: Index, component: str, version: str) -> str:
    facts = index.component(component)
    return facts.dates[facts.versions.index(version)]


def _reasons(
    index: Index, component: str, resolution: Resolution | Unsatisfiable | None
) -> list[ReasonEntry]:
    """The facts that refuse, or what is unknown: each line once, those about the component first."""
    lines: dict[str, list[str]] = {}
    if isinstance(resolution, Unsatisfiable):
        for core in resolution.cores:
            for line in cores.core_document(index, core)["lines"]:
                if line["facts"]:
                    lines.setdefault(line["text"], line["facts"])
            # If only lines of the request contradict each other, there are no facts.
            if not lines:
                texts = [line["text"] for line in cores.core_document(index, core)["lines"]]
                lines.setdefault(terminal.listing(texts), [])
    elif isinstance(resolution, Resolution) and resolution.unread:
        for remark in remarks.unread(resolution):
            lines.setdefault(remark["text"], remark["facts"])
    reasons: list[ReasonEntry] = [{"text": text, "facts": facts} for text, facts in lines.items()]
    # First the reasons that name the component, last those that hold for any version.
    return sorted(
        reasons,
        key=lambda line: (f"{component} " not in f"{line['text']} ", " needs " in line["text"]),
    )


def _text(index: Index, document: UpgradesDocument, screen: Terminal) -> str:
    """The upgrades as text: what could move, what only with another request, what cannot and why."""
    notes = claims.Notes(index)
    blocks: list[Iterable[str]] = []
    several = len(document["environments"]) > 1
    for name, environment in document["environments"].items():
        title = f"environment `{name}`: " if several else ""
        title += f"{document['lock']['path']} answers {' '.join(environment['request'])}"
        blocks.append(screen.wrap(title))
        if not environment["answered"]:
            head = [f"no longer has an answer with the matrix of {document['matrix']['date']}"]
            blocks.append([*head, *_because(environment["reasons"], notes, screen)])
        if environment["moved"] or environment["unknown"]:
            blocks.append(_stale(document, environment))
        by_head: dict[str, list[str]] = {}
        for component in environment["components"]:
            if component["newest"]:
                by_head.setdefault(_head(component), []).extend(_lines(component, notes, screen))
        blocks += [[head, *by_head[head]] for head in _HEADS if head in by_head]
        newest = [
            component["component"]
            for component in environment["components"]
            if not component["newest"]
        ]
        if newest:
            blocks.append(screen.wrap(f"already newest: {', '.join(newest)}"))
    return terminal.blocks([*blocks, notes.lines(screen.width)])


def _head(component: UpgradedComponent) -> str:
    tested, untested, stays, requested = _HEADS
    if component["asked"]:
        return requested
    if not component["moves"]:
        return stays
    return untested if component["moves"][0]["untested"] else tested


def _stale(document: UpgradesDocument, environment: UpgradedEnvironment) -> list[str]:
    before, now = document["lock"]["matrix"]["date"], document["matrix"]["date"]
    lines = [
        f"no longer the answer (the lock has the matrix of {before}, this is the one of {now})"
    ]
    lines += [f"  {_change(entry)}" for entry in environment["moved"]]
    lines += [
        f"  {entry['component']} {entry['old']} is not known" for entry in environment["unknown"]
    ]
    return lines


def _change(change: Mapping[str, str]) -> str:
    return f"{change['component']} {change['old'] or 'absent'} -> {change['new'] or 'absent'}"


def _lines(component: UpgradedComponent, notes: claims.Notes, screen: Terminal) -> list[str]:
    current = ", ".join(dict.fromkeys(component["held"].values()))
    lines = []
    for move in component["moves"]:
        sign = screen.style("~", "~")
        lines.append(
            f"  {sign} {component['component']} {current} -> {move['version']}  {move['evidence']}"
        )
        changes = list(dict.fromkeys(map(_change, move["changes"])))
        if changes:
            lines += screen.wrap(terminal.some(changes, _CHANGES), "      with ", " " * 11)
        # One pair is enough to say that a move is untested; the document has all of them.
        for caveat in move["untested"][:1]:
            lines += screen.wrap(caveat, " " * 6, " " * 8)
        if move["command"]:
            lines.append(f"      $ {move['command']}")
    if not component["moves"]:
        sign = screen.style("-", "no")
        lines.append(f"  {sign} {component['component']} {current}, newest {component['newest']}")
    if component["reasons"]:
        versions = [move["version"] for move in component["moves"]]
        until = component["newest"] if versions and component["newest"] not in versions else ""
        lines += _because(component["reasons"], notes, screen, until, beside=len(versions) > 1)
    return lines


def _because(
    reasons: Sequence[ReasonEntry],
    notes: claims.Notes,
    screen: Terminal,
    until: str = "",
    *,
    beside: bool = False,
) -> list[str]:
    """The first of some reasons, against a release or against leaving the rest unchanged."""
    first, *rest = reasons
    more = f" and {terminal.plural(len(rest), 'fact')} more" if rest else ""
    head = f"not {until}: " if until else "the others must change too: " if beside else ""
    text = f"{head}{first['text']} {notes.cite(first['facts'])}".rstrip()
    return screen.wrap(text + more, " " * 6, " " * 8)
