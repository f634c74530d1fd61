"""`toolmatrix lock`: write an answer down, or verify one."""

from __future__ import annotations

import os.path

from toolmatrix.api import files, locks, packages
from toolmatrix.cli import ask
from toolmatrix.cli.progress import ProgressLine
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK, ONLINE
from toolmatrix.errors import LockError, UsageError
from toolmatrix.lock import compare, lock_file
from toolmatrix.lock.model import DEFAULT
from toolmatrix.opener import opened
from toolmatrix.outputs import replace_file, replace_files
from toolmatrix.report import differences
from toolmatrix.report.terminal import plural
from toolmatrix.request import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock, LockedEnvironment
    from toolmatrix.solve.request import Kept

    Environments = dict[str, locks.LockRequest]


@command(
    group="Lock and build",
    order=1,
    usage="[REQUEST...]",
    completer="release",
    requests=True,
    does="locking",
    request=True,
    examples=(
        "toolmatrix lock tensorflow==2.6.5 --target x86,arm",
        "toolmatrix lock onnxruntime==1.18.1 --from wheel --packages",
        "toolmatrix lock --check",
        "toolmatrix lock --upgrade numpy",
    ),
    own={
        "check": CHECK,
        "upgrade": option(
            "--upgrade",
            kind="list",
            metavar="NAME",
            completer="component",
            excludes=("check",),
            help="Allow this component to change; repeatable",
        ),
        "online": ONLINE,
        "packages": option(
            "--packages",
            kind="flag",
            configurable=False,
            help="Lock every Python package with its files and hashes, using uv and the package index",
        ),
    },
)
def run(context: Context) -> int:
    """Write a lock, or verify one.

    Write the lock and return 0, or 1 if there is no answer; with `--check` 0 if it is fresh and 1 if it is stale.
    """
    if context.options.lock == "-" and (context.options.format == "json" or context.options.check):
        raise UsageError(
            "`--lock -` writes the lock to stdout, and excludes `--json` and `--check`"
        )
    given = context.options.matrix
    context = ask.with_online_packages(context, _named(context))
    index = context.index()
    # Those that are not the user's own were harvested for this lock.
    harvested = context.options.matrix[len(given) :]
    try:
        return (
            _check(context, index) if context.options.check else _write(context, index, harvested)
        )
    # Each environment is one request: the first that has no answer is worded as `resolve` would.
    except locks.Unsolved as refused:
        standing_for = f"environment `{refused.environment}`: " if refused.environment else ""
        told = "the lock is stale" if context.options.check else "nothing was written"
        context.say(f"{standing_for}no answer, {told}")
        return ask.refuse(context, index, refused.refusal)


def _named(context: Context) -> list[str]:
    """The words for components in the requests of a run: the one given, else those configured, else those of a lock."""
    if not context.options.online:
        return []
    named = [*context.arguments]
    for name in context.environments:
        inside = context.for_environment(name)
        named += [*inside.arguments, *inside.options.with_]
    return named or named_in(_lock_to_renew(context))


def named_in(lock: Lock | None) -> list[str]:
    """The words for components in the requests that a lock answers."""
    said = [
        fields.given(environment.request)
        for environment in (lock.environments.values() if lock else ())
    ]
    return [word for one in said for word in (*one["wanted"], *one.get("with_", ()))]


def _write(context: Context, index: Index, harvested: Sequence[str]) -> int:
    options = context.options
    held = _lock_to_renew(context)
    wanted = environments(context, index, held)
    lock = files.for_images(
        index, wanted, solved(index, wanted, _keeping(context, index)), context.say_after
    )
    if options.packages:
        keeping = options.upgrade or options.keep
        earlier = lock_file.read(options.keep or options.lock) if keeping else None
        lock = _packaged(context, index, lock, earlier)
    # `--output -` is the default, and can be said all the same: then the lock itself is the result.
    if options.format == "text" and (
        context.origins["output"].kind != "default" or options.lock == "-"
    ):
        context.write(lock_file.text(lock))
        said = "" if options.output == "-" else f"wrote {options.output}: "
        context.say_after(said + _counted(lock))
        return 0
    path = options.lock
    # `render` keeps its options in the lock beside its files, and finds them there again.
    before = held or _previous(path)
    lock = lock.replace(render=before.render if before else {})
    note = ""
    if not options.packages:
        kept = packages.keep_packages(index, lock, before)
        lock, note = kept.lock, kept.note
    text = lock_file.text(lock)
    same = _is_there(path, text)
    facts = locks.beside(path, harvested)
    old = None if same else before
    found = compare.locks(old, lock) if old is not None else None
    if options.format == "json":
        status = "unchanged" if same else "written"
        context.write_json(
            locks.document(
                index, path, lock, status, old, found, harvested=locks.places(path, harvested)
            )
        )
    else:
        if old is not None and found is not None and options.upgrade:
            context.write(differences.text(index, old, lock, found, context.terminal) + "\n")
        context.write(f"{'unchanged' if same else 'wrote'} {path}: {_counted(lock)}\n")
        for name in facts:
            context.write(f"wrote {name}: the harvested facts, for `--matrix`\n")
    if note:
        context.say_after(note)
    replace_files(facts)
    # A file that is as it was keeps its time, by which make and others go.
    if not same:
        replace_file(path, text)
    return 0


def _check(context: Context, index: Index) -> int:
    held = lock_file.read(context.options.lock)
    # What the lock says it was made to keep is kept again: without, an answer that is as it was would be called stale.
    wanted = environments(context, index, held)
    fresh = solved(index, wanted, lambda name: locks.marked(held, name))
    fresh = files.for_images(index, wanted, fresh, lambda _: None)
    reasons = _requests_that_moved(held, fresh)
    # What came out since it was written is no difference: it is whether the same packages still go, and are the same.
    fresh = (
        _packaged(context, index, fresh, held)
        if context.options.packages
        else packages.keep_packages(index, fresh, held).lock
    )
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
    context.say_after("hint: `toolmatrix lock` updates it; `--upgrade NAME` changes only NAME")
    return 1


def _packaged(context: Context, index: Index, lock: Lock, held: Lock | None) -> Lock:
    progress = ProgressLine(context, "resolving", "targets")
    try:
        return packages.filled(index, lock, context.env, held, progress.at)
    finally:
        progress.end()


def _notes(index: Index, held: Lock, found: compare.Differences) -> list[str]:
    notes = []
    if index.header["digest"] != held.matrix_digest:
        notes.append(
            f"the matrix changed ({index.header['date']}, the lock has {held.matrix_date}); "
            "the answer is the same"
        )
    if found.count("moved"):
        notes.append(
            f"the facts behind {plural(found.count('moved'), 'component')} changed; `toolmatrix lock` records them"
        )
    kept = sum(
        part.kept
        for environment in held.environments.values()
        for target in environment.targets.values()
        for part in target.components.values()
    )
    if kept:
        notes.append(
            f"{plural(kept, 'component')} kept from an earlier lock; the request alone gives other releases"
        )
    return notes


def _requests_that_moved(held: Lock, fresh: Lock) -> list[str]:
    told = []
    names = sorted({*held.environments, *fresh.environments})
    for name in names:
        named = f"environment `{name}`: " if len(names) > 1 else ""
        if name not in fresh.environments:
            told.append(f"{named}no longer requested")
        elif name not in held.environments:
            told.append(f"{named}missing from the lock")
        else:
            before, after = held.environments[name].request, fresh.environments[name].request
            if before != after:
                told.append(
                    f"{named}the request is `{' '.join(after)}`, but the lock is for `{' '.join(before)}`"
                )
    return told


def solved(
    index: Index,
    wanted: Environments,
    keep: Callable[[str], Kept] = lambda _: (),
    say: Callable[[str], object] = lambda _: None,
) -> Lock:
    """The answers of all environments; `keep` has the releases that each prefers, `say` hears what nobody tested.

    Raises locks.Unsolved.
    """
    return locks.solved(
        index,
        {
            name: part.replace(request=part.request.replace(keep=keep(name)))
            for name, part in wanted.items()
        },
        say,
    )


def _keeping(context: Context, index: Index) -> Callable[[str], Kept]:
    """The releases that an environment prefers: those of the lock of `--keep`, but for what `--upgrade` lets move."""
    options = context.options
    if not (options.upgrade or options.keep):
        return lambda _: ()
    return locks.keeping(index, options.keep or options.lock, options.upgrade)


def environments(context: Context, index: Index, held: Lock | None) -> Environments:
    """The requests of a run by environment: the one given, else those configured, else those of a lock."""
    configured = context.arguments == context.configured_request
    if context.environments and (configured or not context.arguments):
        return _configured(context, index)
    if context.arguments:
        return {DEFAULT: _standing(context, index)}
    if held is None or not held.environments:
        raise _no_request()
    return {
        name: _again(context, index, environment.request)
        for name, environment in held.environments.items()
    }


def _no_request() -> UsageError:
    return UsageError(
        "no request to lock",
        expected="a request, `request` in toolmatrix.toml, or a lock to update",
        help="`toolmatrix lock tensorflow==2.6.5 --target x86,arm`",
    )


def _configured(context: Context, index: Index) -> Environments:
    found = {}
    if context.configured_request and DEFAULT not in context.environments:
        found[DEFAULT] = _standing(context, index)
    for name in sorted(context.environments):
        inside = context.for_environment(name)
        if not inside.arguments:
            raise UsageError(
                f"the environment `{name}` has no request",
                expected="`request` in its table, or above all tables",
            )
        found[name] = _standing(inside, index)
    return found


def _standing(context: Context, index: Index) -> locks.LockRequest:
    # What is kept is settled once for all environments.
    made = context.replace(options=context.options.replace(keep=""))
    # The words alone ask the same again: positional ones, then `--option=value` for what is not at its default.
    words = ask.written(made.options, made.arguments).words()
    return locks.LockRequest(request=ask.build(made, index), words=words)


def _again(context: Context, index: Index, words: tuple[str, ...]) -> locks.LockRequest:
    # An option that is said in this run replaces the same option of the lock.
    held = fields.given(words)
    wanted = held.pop("wanted")
    for name in fields.OPTIONS:
        if name in context.origins and context.origins[name].kind != "default":
            held[name] = context.options[name]
        else:
            held.setdefault(name, context.command.options[name].default)
    options = context.options.replace(**held)
    return _standing(context.replace(options=options, arguments=wanted), index)


def _lock_to_renew(context: Context) -> Lock | None:
    # Without a request in this run those of the lock are asked again.
    if context.arguments or context.environments:
        return None
    if not os.path.exists(context.options.lock):
        raise _no_request()
    return lock_file.read(context.options.lock)


def _previous(path: str) -> Lock | None:
    # A lock that is broken may be replaced; a file that never was one is somebody else's.
    try:
        return lock_file.read(path)
    except LockError:
        if lock_file.may_be_replaced(path):
            return None
        raise


def _is_there(path: str, text: str) -> bool:
    try:
        with opened(path) as file:
            return file.read() == text.encode()
    except OSError:
        return False


def _counted(lock: Lock) -> str:
    environments: Iterable[LockedEnvironment] = lock.environments.values()
    targets = [target for environment in environments for target in environment.targets.values()]
    components = sum(len(target.components) for target in targets)
    told = [plural(len(targets), "target"), plural(components, "component")]
    closures = [target.closure for target in targets if target.closure]
    if closures:
        told.append(plural(sum(len(one.packages) for one in closures), "package"))
        sources = dict.fromkeys(name for one in closures for name in one.sources)
        if sources:
            told.append(f"{len(sources)} of them from source archives ({' '.join(sources)})")
    if len(lock.environments) > 1:
        told.insert(0, plural(len(lock.environments), "environment"))
    return ", ".join(told)
