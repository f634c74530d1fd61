"""`toolmatrix lock`: write an answer down, or verify one."""

from __future__ import annotations

import os.path

from toolmatrix.cli import ask, standing
from toolmatrix.cli.context import replace_file
from toolmatrix.cli.resolve import refuse
from toolmatrix.errors import CannotSay, LockError, NothingMatched, UsageError
from toolmatrix.facts.records import ClaimRecord
from toolmatrix.lock import compare, make, read, write
from toolmatrix.lock.model import Lock, LockedEnvironment, LockedTarget
from toolmatrix.report import answer, caveats, differences
from toolmatrix.report.terminal import plural
from toolmatrix.request.names import Names
from toolmatrix.solve.resolve import Unsatisfiable, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Resolution

    Keep = tuple[tuple[str, str, str], ...]

SCHEMA = "toolmatrix.locked/1"


class Refused(Exception):
    """A request that has no answer, of the environment it is in."""

    def __init__(self, environment: str, refusal: Unsatisfiable) -> None:
        super().__init__(environment)
        self.environment = environment
        self.refusal = refusal


def run(context: Context) -> int:
    """Write the lock and return 0, or 1 if there is no answer; with `--check` 0 if it is fresh and 1 if it is stale."""
    if context.options.lock == "-" and (context.options.format == "json" or context.options.check):
        raise UsageError("`--lock -` is the lock on stdout, and neither a document nor a check")
    index = context.index()
    try:
        return _check(context, index) if context.options.check else _write(context, index)
    except Refused as refused:
        standing_for = f"environment `{refused.environment}`: " if refused.environment else ""
        told = "the lock is stale" if context.options.check else "nothing was written"
        context.say(f"{standing_for}no answer, {told}")
        return refuse(context, index, refused.refusal)


def _write(context: Context, index: Index) -> int:
    options = context.options
    held = _held(context)
    wanted = standing.environments(context, held)
    keep = _keeping(context, index)
    lock = solved(index, wanted, {name: _kept(index, keep, name) for name in wanted})
    if options.format == "text" and (_output_is_said(context) or options.lock == "-"):
        return _elsewhere(context, lock)
    path = options.lock
    before = held or _previous(path)
    lock = lock.replace(render=before.render if before else {})
    text = write.text(lock)
    same = _is_there(path, text)
    old = None if same else before
    found = compare.locks(old, lock) if old is not None else None
    if options.format == "json":
        status = "unchanged" if same else "written"
        context.write_json(_document(index, path, lock, status, old, found, []))
    else:
        if old is not None and found is not None and options.upgrade:
            context.write(differences.text(index, old, lock, found, context.terminal) + "\n")
        context.write(f"{'unchanged' if same else 'wrote'} {path}: {_counted(lock)}\n")
    if not same:
        replace_file(path, text)
    return 0


def _output_is_said(context: Context) -> bool:
    """`--output -` is the default and can be said all the same."""
    return context.origins["output"].kind != "default"


def _elsewhere(context: Context, lock: Lock) -> int:
    """Give the lock itself as the result, for stdout or the file of `--output`."""
    context.write(write.text(lock))
    output = context.options.output
    context.say_after(_counted(lock) if output == "-" else f"wrote {output}: {_counted(lock)}")
    return 0


def _check(context: Context, index: Index) -> int:
    held = read.read(context.options.lock)
    wanted = standing.environments(context, held)
    reasons = _requests_that_moved(held, wanted)
    fresh = solved(index, wanted, {name: _marked(held, name) for name in wanted})
    found = compare.locks(held, fresh)
    stale = bool(reasons) or found.any
    notes = _notes(index, held, found)
    if context.options.format == "json":
        status = "stale" if stale else "fresh"
        context.write_json(
            _document(index, context.options.lock, held, status, held, found, reasons, new=fresh)
        )
        return int(stale)
    if not stale:
        context.write(f"{context.options.lock} is up to date: {_counted(held)}\n")
        for note in notes:
            context.say_after(note)
        return 0
    told = [f"{context.options.lock} is stale", *reasons, ""]
    context.write("\n".join(told) + differences.text(index, held, fresh, found, context.terminal))
    context.say_after(
        "hint: `toolmatrix lock` writes it anew; `--upgrade NAME` lets only NAME move"
    )
    return 1


def _notes(index: Index, held: Lock, found: compare.Differences) -> list[str]:
    notes = []
    if index.header["digest"] != held.matrix_digest:
        notes.append(
            f"the matrix is another one ({index.header['date']}, the lock has {held.matrix_date}); "
            "the answer is the same"
        )
    if found.count("moved"):
        notes.append(
            f"the facts behind {plural(found.count('moved'), 'component')} moved; `toolmatrix lock` notes them"
        )
    kept = sum(
        part.kept
        for environment in held.environments.values()
        for target in environment.targets.values()
        for part in target.components.values()
    )
    if kept:
        notes.append(
            f"{plural(kept, 'component')} kept from an earlier lock; the request alone gives others"
        )
    return notes


def _requests_that_moved(held: Lock, wanted: standing.Environments) -> list[str]:
    """In what the requests of the lock and of this run differ."""
    told = []
    for name in sorted({*held.environments, *wanted}):
        named = f"environment `{name}`: " if len({*held.environments, *wanted}) > 1 else ""
        if name not in wanted:
            told.append(f"{named}nothing asks for it")
        elif name not in held.environments:
            told.append(f"{named}the lock lacks it")
        else:
            before, after = held.environments[name].request, wanted[name].words
            if before != after:
                told.append(
                    f"{named}the request is `{' '.join(after)}`, the lock answers `{' '.join(before)}`"
                )
    return told


def solved(index: Index, wanted: standing.Environments, keeps: dict[str, Keep]) -> Lock:
    """The answers of all environments; raises Refused for the first that has none."""
    environments = {}
    for name, part in wanted.items():
        request = ask.build(part.context, index, part.arguments).replace(keep=keeps[name])
        found = resolve(index, request)
        if isinstance(found, Unsatisfiable):
            raise Refused(name if len(wanted) > 1 else "", found)
        if found.unread:
            told = caveats.unread(found)
            raise CannotSay(
                "the request has no answer that could be written down",
                expected="an answer that rests on facts",
                found="; ".join(part["text"] for part in told),
                help="`toolmatrix resolve` prints it with what nobody knows; a fact of your own decides it",
            )
        kept = [place[:2] for place in _decisive(index, request, found)]
        environments[name] = make.environment(answer.document(index, found), part.words, kept)
    return Lock(
        matrix_digest=index.header["digest"],
        matrix_date=index.header["date"],
        environments=environments,
    )


def _decisive(index: Index, request: Request, found: Resolution) -> Keep:
    """What of `keep` this answer rests on: what the request alone gives otherwise, or all if that is not enough."""
    alone = resolve(index, request.replace(keep=())) if request.keep else found
    if alone is found or isinstance(alone, Unsatisfiable):
        return ()
    followed = tuple(place for place in request.keep if _chosen(found, place) == place[2])
    different = tuple(place for place in followed if _chosen(alone, place) != place[2])
    again = resolve(index, request.replace(keep=different))
    same = not isinstance(again, Unsatisfiable) and again.targets == found.targets
    return different if same else followed


def _chosen(found: Resolution, place: tuple[str, str, str]) -> str:
    return found.chosen(place[0]).get(place[1], "") if place[0] in found.targets else ""


def _keeping(context: Context, index: Index) -> tuple[Lock | None, set[str]]:
    """The lock whose releases are ranked first, and the components that may move all the same."""
    upgrade = context.options.upgrade
    if not (upgrade or context.options.keep):
        return None, set()
    names = Names(index)
    moving = {names.component(name.lower()) for name in upgrade}
    path = context.options.keep or context.options.lock
    kept = read.read(path)
    held = {
        name
        for environment in kept.environments.values()
        for target in environment.targets.values()
        for name in target.components
    }
    for name in sorted(moving - held):
        raise NothingMatched(
            f"{path} holds no {name}",
            expected="one of " + ", ".join(sorted(held)),
            found=f"`--upgrade {name}`",
        )
    return kept, moving


def _kept(index: Index, keep: tuple[Lock | None, set[str]], environment: str) -> Keep:
    lock, moving = keep
    found = lock.environment(environment) if lock is not None else None
    if found is None:
        return ()
    return tuple(
        (target, component, version)
        for target, part in found.targets.items()
        for component, version in part.chosen.items()
        if component not in _moved(index, part, moving)
    )


def _moved(index: Index, held: LockedTarget, moving: set[str]) -> set[str]:
    """What moves with some components: all that was chosen because of what they say, and so on."""
    ids = index.ids
    said_by = {
        name: {
            record.subject
            for fact in part.facts
            if fact in ids and isinstance(record := index.record(ids[fact]), ClaimRecord)
        }
        for name, part in held.components.items()
    }
    found = set(moving)
    while more := {name for name in said_by if name not in found and said_by[name] & found}:
        found |= more
    return found


def _marked(held: Lock, environment: str) -> Keep:
    """What a lock says it was made to keep."""
    if environment not in held.environments:
        return ()
    return tuple(
        (target, component, part.version)
        for target, held_target in held.environments[environment].targets.items()
        for component, part in held_target.components.items()
        if part.kept
    )


def _held(context: Context) -> Lock | None:
    """The lock whose requests are asked again where this run has none."""
    if context.arguments or context.environments:
        return None
    if not os.path.exists(context.options.lock):
        raise standing.no_request()
    return read.read(context.options.lock)


def _previous(path: str) -> Lock | None:
    """The lock that is about to be replaced, if it can be read; raises LockError for what never was one."""
    try:
        return read.read(path)
    except LockError:
        if read.may_be_replaced(path):
            return None
        raise


def _is_there(path: str, text: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == text.encode()
    except OSError:
        return False


def _counted(lock: Lock) -> str:
    environments: Iterable[LockedEnvironment] = lock.environments.values()
    targets = [target for environment in environments for target in environment.targets.values()]
    components = sum(len(target.components) for target in targets)
    told = [plural(len(targets), "target"), plural(components, "component")]
    if len(lock.environments) > 1:
        told.insert(0, plural(len(lock.environments), "environment"))
    return ", ".join(told)


def _document(
    index: Index,
    path: str,
    lock: Lock,
    status: str,
    old: Lock | None,
    found: compare.Differences | None,
    reasons: list[str],
    new: Lock | None = None,
) -> dict[str, Any]:
    listed = (
        differences.listed(index, old, new or lock, found)
        if old is not None and found is not None
        else []
    )
    return {
        "schema": SCHEMA,
        "path": path,
        "status": status,
        "digest": write.digest(lock),
        "matrix": {"digest": lock.matrix_digest, "date": lock.matrix_date},
        "present_matrix": answer.head(index),
        "environments": {
            name: {
                "request": list(environment.request),
                "targets": {
                    target: {"components": len(part.components), "evidence": part.evidence}
                    for target, part in environment.targets.items()
                },
            }
            for name, environment in lock.environments.items()
        },
        "reasons": reasons,
        "differences": listed,
    }
