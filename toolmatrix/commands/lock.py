"""`toolmatrix lock`: write an answer down, or verify one."""

from __future__ import annotations

import os.path
from functools import partial

from toolmatrix.api import Report, arguments, files, locks, split_words
from toolmatrix.api import packages as closures
from toolmatrix.api.answers import NoAnswer
from toolmatrix.api.caller import caller
from toolmatrix.api.machines import on_machine
from toolmatrix.api.requests import fields, request_context, with_online_packages
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK, ONLINE
from toolmatrix.errors import UsageError
from toolmatrix.lockfile import lock_file, model
from toolmatrix.lockfile.model import DEFAULT
from toolmatrix.report import differences
from toolmatrix.report.terminal import plural
from toolmatrix.request.fields import parse_arguments
from toolmatrix.request.read import read as read_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Unpack

    from toolmatrix.api import Path, Wanted, Words
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.cli.context import Context
    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import Lock
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.request import PreferredReleases


class LockCheck(Report):
    """Whether a lock is up to date, with notes on one that is."""

    notes: tuple[str, ...] = ()

    def deliver(self, *, format: str, **_: object) -> LockCheck:
        """The check itself; prints its notes below a text."""
        for note in self.notes if format == "text" else ():
            caller().note(note)
        return self


def _before(context: Context) -> None:
    options = context.options
    if options.lock == "-" and (options.format == "json" or options.check):
        raise UsageError(
            "`--lock -` writes the lock to stdout, and excludes `--json` and `--check`"
        )


@command(
    group="Lock and build",
    order=1,
    usage="[REQUEST...]",
    completer="release",
    requests=True,
    does="locking",
    before=_before,
    delivery_options=("lock", "output", "format", "upgrade", "packages"),
    examples=(
        "toolmatrix lock tensorflow==2.6.5 --target x86,arm",
        "toolmatrix lock onnxruntime==1.18.1 --from wheel --packages",
        "toolmatrix lock --check",
        "toolmatrix lock --upgrade numpy",
    ),
)
def lock(
    *wanted: Wanted,
    lock: Path = "",
    check: bool = CHECK,
    upgrade: Words = option(
        "--upgrade",
        metavar="NAME",
        completer="component",
        excludes=("check",),
        help="Allow this component to change; repeatable",
    ),
    online: bool = ONLINE,
    packages: bool = option(
        "--packages",
        configurable=False,
        help="Lock every Python package with its files and hashes, using uv and the package index",
    ),
    **options: Unpack[RequestOptions],
) -> locks.Locked | LockCheck | NoAnswer:
    """Write a lock, or verify one.

    The answer to the request as a lock, or that to the requests of the lock at the path `lock`. With `keep`, or of that
    lock, only the components of `upgrade` move. With `packages` uv is asked for every Python package and its files, on
    the user's index. With `check` it is whether the lock at the path is what would be written. Raises ToolmatrixError.
    """
    path, keep = os.fspath(lock), os.fspath(options.get("keep", ""))
    named = tuple(filter(None, map(str.strip, arguments.words(*wanted))))
    # The words that may name packages, by environment.
    inside = caller().environments(
        lambda _, words, own: (*words, *arguments.words(own.get("with_", ())))
    )
    # Without a request, renew the requests of the lock.
    existing = lock_file.read(path) if check else None if named or inside else _lock_to_renew(path)
    requested = [*named, *(word for words in inside.values() for word in words)]
    opened = with_online_packages(requested or component_words(existing), options, online=online)
    index, note = opened.index, caller().note
    try:
        by_environment = requests(index, named, options, existing)
        if check and existing is not None:
            return _checked(index, path, existing, by_environment, packages=packages)
        # Keep the releases of the lock, except those that may change.
        keep = keep or (path if upgrade else "")
        preferred = (
            locks.preferred_releases(index, keep, split_words(upgrade)) if keep else lambda _: ()
        )
        new = _answered(index, by_environment, preferred, note)
    # Each environment is one request; the first without an answer is reported as by `resolve`.
    except locks.Unsolved as refused:
        where = f"environment `{refused.environment}`: " if refused.environment else ""
        what = "the lock is stale" if check else "nothing was written"
        caller().say(f"{where}no answer, {what}")
        context = request_context(options.get("matrix"), options.get("keep", ""))
        return NoAnswer(context, refused.refusal)
    if packages:
        new = _filled(index, new, lock_file.read(keep) if keep else None)
    elif keep and not path:
        new = closures.carry_packages(index, new, lock_file.read(keep)).lock
    return locks.Locked(index, new, opened.harvested, existing)


def component_words(lock: Lock | None) -> list[str]:
    """The components, as words, in the requests of a lock."""
    environments = lock.environments.values() if lock else ()
    settings = [parse_arguments(environment.request) for environment in environments]
    return [word for fields in settings for word in (*fields["wanted"], *fields.get("with_", ()))]


def requests(
    index: Index, named: tuple[str, ...], options: RequestOptions, existing: Lock | None = None
) -> dict[str, locks.LockRequest]:
    """The requests of a call by environment: the one given, else those of the settings, else those of a lock."""

    def inside(name: str, words: tuple[str, ...], own_options: RequestOptions) -> locks.LockRequest:
        if not words:
            raise UsageError(
                f"the environment `{name}` has no request",
                expected="`request` in its table, or above all tables",
            )
        return _lock_request(index, words, own_options)

    of_settings = caller().request
    from_settings = caller().environments(inside) if not named or named == of_settings else {}
    if from_settings and (DEFAULT in from_settings or not of_settings):
        return from_settings
    if named:
        return {DEFAULT: _lock_request(index, named, options), **from_settings}
    if existing is None or not existing.environments:
        raise _no_request()
    again = {}
    for name, environment in existing.environments.items():
        # An option of this call replaces that of the lock.
        merged: Any = {**parse_arguments(environment.request), **options}
        again[name] = _lock_request(index, merged.pop("wanted"), merged)
    return again


def _lock_request(
    index: Index, words: tuple[str, ...], options: RequestOptions
) -> locks.LockRequest:
    # `keep` is added later, for all environments. The words alone repeat the request: positional ones, then
    # `--option=value` for what is not at its default.
    settled = on_machine(index, fields(words, {**options}))
    return locks.LockRequest(request=read_request(index, settled), words=settled.arguments())


def _answered(
    index: Index,
    by_environment: dict[str, locks.LockRequest],
    keep: Callable[[str], PreferredReleases],
    note: Callable[[str], object],
) -> Lock:
    """The answers of all environments, each with the releases that it prefers. Raises locks.Unsolved."""
    keeping = {
        name: lock_request.replace(request=lock_request.request.replace(keep=keep(name)))
        for name, lock_request in by_environment.items()
    }
    return files.for_images(index, by_environment, locks.solve(index, keeping, note), note)


def _filled(index: Index, lock: Lock, existing: Lock | None) -> Lock:
    with caller().progress("resolving", "targets") as progress:
        return closures.resolve_packages(index, lock, caller().env, existing, progress.at)


def _lock_to_renew(path: str) -> Lock:
    if not path:
        arguments.request((), "lock")
    if not os.path.exists(path):
        raise _no_request()
    return lock_file.read(path)


def _no_request() -> UsageError:
    return UsageError(
        "no request to lock",
        expected="a request, `request` in toolmatrix.toml, or a lock to update",
        help="`toolmatrix lock tensorflow==2.6.5 --target x86,arm`",
    )


def _checked(
    index: Index,
    path: str,
    existing: Lock,
    by_environment: dict[str, locks.LockRequest],
    *,
    packages: bool,
) -> LockCheck:
    # Keep what the lock was made to keep, or an unchanged answer would be called stale.
    fresh = _answered(index, by_environment, partial(locks.kept_releases, existing), lambda _: None)
    reasons = _requests_that_moved(existing, fresh)
    # New releases are no difference: only whether the same packages still work and are the same.
    fresh = (
        _filled(index, fresh, existing)
        if packages
        else closures.carry_packages(index, fresh, existing).lock
    )
    changes = model.locks(existing, fresh)
    stale = bool(reasons) or changes.any

    def text(screen: Terminal) -> str:
        if not stale:
            return f"{path} is up to date: {locks.describe_counts(existing)}\n"
        lines = [f"{path} is stale", *reasons, ""]
        return "\n".join(lines) + differences.text(index, existing, fresh, changes, screen)

    status = "stale" if stale else "fresh"
    document = partial(
        locks.document, index, path, existing, status, existing, changes, reasons, new=fresh
    )
    hint = "`toolmatrix lock` updates it; `--upgrade NAME` changes only NAME" if stale else ""
    notes = () if stale else tuple(_notes(index, existing, changes))
    return LockCheck(words=text, document=document, exit_code=int(stale), hint=hint, notes=notes)


def _notes(index: Index, existing: Lock, changes: model.Differences) -> list[str]:
    notes = []
    if index.header["digest"] != existing.matrix_digest:
        notes.append(
            f"the matrix changed ({index.header['date']}, the lock has {existing.matrix_date}); "
            "the answer is the same"
        )
    if changes.count("moved"):
        notes.append(
            f"the facts behind {plural(changes.count('moved'), 'component')} changed; `toolmatrix lock` records them"
        )
    count = sum(
        component.kept for target in existing.answers for component in target.components.values()
    )
    if count:
        notes.append(
            f"{plural(count, 'component')} kept from an earlier lock; the request alone gives other releases"
        )
    return notes


def _requests_that_moved(existing: Lock, fresh: Lock) -> list[str]:
    reasons = []
    names = sorted({*existing.environments, *fresh.environments})
    for name in names:
        named = f"environment `{name}`: " if len(names) > 1 else ""
        if name not in fresh.environments:
            reasons.append(f"{named}no longer requested")
        elif name not in existing.environments:
            reasons.append(f"{named}missing from the lock")
        else:
            before, after = existing.environments[name].request, fresh.environments[name].request
            if before != after:
                reasons.append(
                    f"{named}the request is `{' '.join(after)}`, but the lock is for `{' '.join(before)}`"
                )
    return reasons
