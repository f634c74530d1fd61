"""`toolmatrix lock`: write an answer down, or verify one."""

from __future__ import annotations

import os.path

from toolmatrix.api import locks
from toolmatrix.cli import ask, standing
from toolmatrix.cli.resolve import refuse
from toolmatrix.errors import LockError, UsageError
from toolmatrix.lock import compare, read, write
from toolmatrix.outputs import replace_file
from toolmatrix.report import differences
from toolmatrix.report.terminal import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock, LockedEnvironment
    from toolmatrix.solve.request import Kept


def run(context: Context) -> int:
    """Write the lock and return 0, or 1 if there is no answer; with `--check` 0 if it is fresh and 1 if it is stale."""
    if context.options.lock == "-" and (context.options.format == "json" or context.options.check):
        raise UsageError("`--lock -` is the lock on stdout, and neither a document nor a check")
    index = context.index()
    try:
        return _check(context, index) if context.options.check else _write(context, index)
    except locks.Unsolved as refused:
        standing_for = f"environment `{refused.environment}`: " if refused.environment else ""
        told = "the lock is stale" if context.options.check else "nothing was written"
        context.say(f"{standing_for}no answer, {told}")
        return refuse(context, index, refused.refusal)


def _write(context: Context, index: Index) -> int:
    options = context.options
    held = _held(context)
    wanted = standing.environments(context, held)
    keep = _keeping(context, index)
    lock = solved(index, wanted, lambda name: keep.of(index, name) if keep else ())
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
        context.write_json(locks.document(index, path, lock, status, old, found))
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
    fresh = solved(index, wanted, lambda name: locks.marked(held, name))
    found = compare.locks(held, fresh)
    stale = bool(reasons) or found.any
    notes = _notes(index, held, found)
    if context.options.format == "json":
        status = "stale" if stale else "fresh"
        context.write_json(
            locks.document(
                index, context.options.lock, held, status, held, found, reasons, new=fresh
            )
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


def _keeping(context: Context, index: Index) -> locks.Keeping | None:
    """The lock whose releases are preferred, and the components that may move all the same."""
    options = context.options
    if not (options.upgrade or options.keep):
        return None
    return locks.keeping(index, options.keep or options.lock, options.upgrade)


def solved(
    index: Index, wanted: standing.Environments, keep: Callable[[str], Kept] = lambda _: ()
) -> Lock:
    """The answers of all environments; `keep` has the releases that each prefers. Raises locks.Unsolved."""
    return locks.solved(
        index,
        {
            name: locks.LockRequest(
                request=ask.build(part.context, index, part.arguments).replace(keep=keep(name)),
                words=part.words,
            )
            for name, part in wanted.items()
        },
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
