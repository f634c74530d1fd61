"""`toolmatrix render`: Dockerfiles, and what builds and schedules them, from a lock."""

from __future__ import annotations

import os
import os.path
import shlex

from toolmatrix.api import Report, arguments, files, locks, packages, split_words, this_day
from toolmatrix.api.answers import NoAnswer
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import fields, request_context, with_online_packages
from toolmatrix.command import COMMANDS, command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK, ONLINE
from toolmatrix.commands.lock import component_words, requests
from toolmatrix.errors import CannotSay, LockError, NoImage, UsageError
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock
from toolmatrix.recipes import read as recipes
from toolmatrix.report.terminal import columns
from toolmatrix.request.fields import BadValue, settled
from toolmatrix.request.recipes import DefaultRecipe, common_recipe, of_request
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Unpack

    from toolmatrix.api import Path, Printed, Wanted, Words
    from toolmatrix.api.files import Rendered
    from toolmatrix.api.locks import Locked
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.cli.context import Context
    from toolmatrix.command.option import Option
    from toolmatrix.factbase.index import Index

    Refused = dict[str, tuple[str, int]]
    """Targets without an answer, each with the reason and its exit code."""


_BASE = option(
    "--base",
    metavar="IMAGE=STAND-IN",
    split=False,
    help="Replace a base image with another one; repeatable",
)
_MIRROR = option(
    "--mirror",
    metavar="OLD=NEW",
    split=False,
    help="Fetch files below one URL from another one; repeatable",
)
_FETCHED = option(
    "--fetched",
    metavar="DIR",
    help="Take downloads and Python packages from a folder that `toolmatrix fetch` filled",
)
_SNAPSHOT = option(
    "--snapshot",
    metavar="DATE",
    help="Use the Debian and Ubuntu archives as of a day, or of a time such as 20261120T030400Z",
)
_SYNTAX_LINE = option(
    "--syntax-line",
    metavar="WHICH",
    help="Syntax line of Dockerfiles: on, off, or the frontend image",
)
_STRICT = option("--strict", help="Refuse unpinned images, packages and files")
_OPTION = option(
    "--option",
    metavar="NAME",
    configurable=False,
    help="Enable an option of the recipe; repeatable",
)


def _before(context: Context) -> Printed | None:
    options = context.options
    if options.list_formats:
        from toolmatrix.rendering import formats

        rows = [(name, form.SUMMARY) for name, form in formats.known().items()]
        return Report(words=lambda _: "\n".join(columns(rows)) + "\n", document=dict)
    # Both write nothing, and print different things.
    if options.stdout and options.check:
        raise UsageError("`--stdout` and `--check` contradict each other")
    if options.output == "-" and not options.stdout and context.arguments:
        raise UsageError(
            "no output directory",
            expected="`--output DIR`, or `--stdout`",
            help="`--output out`",
        )
    return None


@command(
    group="Lock and build",
    order=3,
    usage="[REQUEST...]",
    completer="release",
    writes_files=True,
    does="rendering",
    formats=("text",),
    before=_before,
    delivery_options=("format", "check", "force", "stdout"),
    examples=(
        "toolmatrix render gcc python --target x86,arm --distro debian12 --output out",
        "toolmatrix render --lock toolmatrix.lock --recipe toolchain --output out",
        "toolmatrix render",
        "toolmatrix render --check --output out",
    ),
    own={
        "check": CHECK,
        "force": option(
            "--force",
            kind="flag",
            cli_only=True,
            help="Overwrite files that were edited by hand or that toolmatrix did not write",
        ),
        "list_formats": option(
            "--list-formats", kind="flag", cli_only=True, help="List the output formats"
        ),
        "stdout": option("--stdout", kind="flag", help="Print the files instead of writing them"),
        # From Python it may also be empty.
        "dialect": option(
            "--dialect",
            kind="text",
            allowed=("modern", "classic"),
            default="modern",
            help="Dockerfile dialect: modern (BuildKit) or classic (Docker 20.10, buildah)",
        ),
    },
)
def render(
    lock: Locked | Lock | Path = "toolmatrix.lock",
    *,
    wanted: Wanted = (),
    output: Path = "",
    force: bool = False,
    online: bool = ONLINE,
    format: str = "",
    dialect: str = "",
    base: Words = _BASE,
    mirror: Words = _MIRROR,
    fetched: str = _FETCHED,
    snapshot: str = _SNAPSHOT,
    syntax_line: str = _SYNTAX_LINE,
    strict: bool = _STRICT,
    option: Words = _OPTION,
    **options: Unpack[RequestOptions],
) -> Rendered:
    """Render Dockerfiles and build files from a lock.

    The files are for all its targets in every format, or for the answer to a request, `wanted`. What is not said is as
    it was when the directory of the lock, or of `output`, was rendered. Raises ToolmatrixError, and NoImage where a
    request has no answer.
    """
    requested = arguments.words(wanted)
    job = _job(lock, "" if output == "-" else os.fspath(output), requested, options, online=online)
    # A named target without an image is an error; a lock may have targets without a recipe.
    by_name = bool(requested) or "target" in options
    settings = {
        "recipe": options.get("recipe", ""),
        "target": split_words(options.get("target", ())),
        "format": format,
        "dialect": dialect,
        "syntax_line": syntax_line,
        "base": split_words(base),
        "mirror": split_words(mirror),
        "fetched": fetched,
        "snapshot": snapshot,
        "option": split_words(option),
    }
    chosen = _chosen(job, settings, options, force=force)
    final_lock, chosen, refused = _lock_to_render(job, requested, options, chosen)
    rendered = files.render_lock(
        final_lock,
        chosen,
        files.rules(job.index, chosen),
        targets=chosen.target,
        refused=[(target, why) for target, (why, _) in refused.items()],
        strict=strict,
    )
    for name, reason in rendered.excluded:
        caller().note(f"excluded {name}: {reason}")
    codes = [refused[name][1] if name in refused else 1 for name, _ in rendered.excluded]
    rendered.exit_code = min(codes) if by_name and codes else 0
    rendered.notes, rendered.folder, rendered.harvested = job.notes, job.folder, job.harvested
    return rendered


class _Job(Value):
    """The output directory, the matrix, and the lock; None if a request is answered."""

    folder: str
    index: Index
    harvested: tuple[str, ...]
    lock: Lock | None = None
    path: str = ""
    # Notes about the lock.
    notes: tuple[str, ...] = ()


def _job(
    lock: Locked | Lock | Path,
    folder: str,
    requested: tuple[str, ...],
    options: RequestOptions,
    *,
    online: bool,
) -> _Job:
    if isinstance(lock, locks.Locked):
        return _Job(folder=folder, index=lock.index, harvested=lock.harvested, lock=lock.lock)
    source_lock, path = None, ""
    if isinstance(lock, Lock):
        source_lock = lock
    elif not requested:
        # Render beside the lock, where `build` looks for it.
        path = os.fspath(lock)
        folder = folder or os.path.dirname(path) or "."
        beside = os.path.join(folder, files.LOCK)
        # The lock beside the files replaces the default of `--lock`.
        path = beside if caller().is_default("lock") and os.path.exists(beside) else path
        source_lock = lock_file.read(path)
    opened = with_online_packages(requested or component_words(source_lock), options, online=online)
    notes = files.matrix_notes(source_lock, path, opened.index) if source_lock else ()
    for note in notes:
        caller().note(note)
    return _Job(
        folder=folder,
        index=opened.index,
        harvested=opened.harvested,
        lock=source_lock,
        path=path,
        notes=tuple(notes),
    )


def _chosen(
    job: _Job, settings: dict[str, Any], options: RequestOptions, *, force: bool
) -> files.RenderOptions:
    """The options of this call, then those in the lock; also settles the targets of the request."""
    explicit = {
        name: value for name, value in settings.items() if value and not caller().is_default(name)
    }
    chosen = files.RenderOptions(**{"recipe": "", **_recalled(job, force=force), **explicit})
    options["target"] = settled(fields((), {**options, "target": chosen.target}), job.index).target
    return chosen.replace(
        # For a request, the targets of its lock count: one without an answer has no files.
        target=options["target"] if job.lock else (),
        format="" if chosen.format == "text" else chosen.format,
        snapshot=_past(chosen.snapshot),
    )


def _recalled(job: _Job, *, force: bool) -> dict[str, Any]:
    # Render a directory as before: with the options in its lock, else in the lock that is rendered.
    if job.lock is None:
        return {}
    beside, candidates = os.path.join(job.folder, files.LOCK), {job.path: job.lock}
    if job.folder and beside != job.path and (previous := _beside(beside, force=force)):
        candidates = {beside: previous, **candidates}
    for path, lock in candidates.items():
        if lock.render:
            by_key = {option.key: option for option in COMMANDS["render"].options.values()}
            return {
                by_key[key].name: _accepted(path, by_key[key], value)
                for key, value in lock.render.items()
            }
    return {}


def _beside(path: str, *, force: bool = False) -> Lock | None:
    # With `force` a broken lock counts as none.
    try:
        return lock_file.read(path) if os.path.exists(path) else None
    except LockError:
        if force:
            return None
        raise


def _accepted(path: str, option: Option, text: str | tuple[str, ...]) -> object:
    try:
        value = option.accept(text if isinstance(text, str) else list(text))
    except BadValue as bad:
        raise lock_file.invalid_key(path, ("render", option.key), bad.expected, bad.found) from None
    # The path of a recipe is relative to the lock.
    moved = option.name == "recipe" and recipes.is_path(value)
    return os.path.join(os.path.dirname(path), value) if moved else value


def _past(snapshot: str) -> str:
    # For a future day a service returns the newest packages, and others later.
    from toolmatrix.rendering import pinning

    if snapshot and pinning.parsed_time(snapshot).date() > (today := this_day(caller().env)):
        raise UsageError(
            f"`--snapshot {snapshot}` is later than today",
            expected=f"{today} at the latest: the clock, or SOURCE_DATE_EPOCH where that is set",
            found=f"`{snapshot}`",
        )
    return snapshot


def _lock_to_render(
    job: _Job, requested: tuple[str, ...], options: RequestOptions, chosen: files.RenderOptions
) -> tuple[Lock, files.RenderOptions, Refused]:
    """The lock, or the answer with the recipe that it is for. Raises NoImage."""
    index = job.index
    if job.lock is not None:
        recipe = chosen.recipe or files.recipe_of(job.lock, index)
        return job.lock, chosen.replace(recipe=recipe), {}
    asking = options.copy()
    try:
        if not chosen.recipe:
            default = _default_recipe(index, requested, options)
            chosen = chosen.replace(recipe=default.recipe)
            if default.from_:
                asking["from_"] = default.from_
        # Use the recipe's own name: the lock records the request with it.
        is_path = recipes.is_path(chosen.recipe)
        asking["recipe"] = chosen.recipe if is_path else files.rules(index, chosen).recipe.name
        lock, refused = _solved(index, requested, asking)
    except locks.Unsolved as unsolved:
        caller().say("no answer, nothing was written")
        error = NoImage(
            "the request has no answer, so there is no image", found=" ".join(requested)
        )
        context = request_context(options.get("matrix"), options.get("keep", ""))
        error.answer = NoAnswer(context, unsolved.refusal)
        raise error from None
    # A broken lock beside the files counts as none here: writing refuses or replaces it.
    beside = os.path.join(job.folder, files.LOCK)
    updated = packages.carry_packages(
        index, lock, _beside(beside, force=True) if job.folder else None
    )
    if updated.note:
        caller().note(updated.note)
    return updated.lock, chosen, refused


def _solved(
    index: Index, requested: tuple[str, ...], options: RequestOptions
) -> tuple[Lock, Refused]:
    # Leave out targets without an answer, unless targets must agree or none has one.
    targets = split_words(options.get("target", ()))
    # Try all at once first: aligned targets only have a common answer.
    try:
        return _locked(index, requested, options, caller().note), {}
    except (locks.Unsolved, CannotSay):
        if len(targets) < 2 or options.get("align"):
            raise
    reasons = {
        target: _why_not(index, requested, {**options, "target": target}) for target in targets
    }
    refused = {target: why for target, why in reasons.items() if why}
    options["target"] = tuple(target for target in targets if target not in refused) or targets
    return _locked(index, requested, options, caller().note), refused


def _default_recipe(
    index: Index, requested: tuple[str, ...], options: RequestOptions
) -> DefaultRecipe:
    # The recipe that builds what each environment requests, if it is the same for all.
    defaults = [
        of_request(lock_request.request, index)
        for lock_request in requests(index, requested, options).values()
    ]
    for note in dict.fromkeys(default.note for default in defaults if default.note):
        caller().note(f"note: {note}")
    return common_recipe(defaults)


def _why_not(
    index: Index, requested: tuple[str, ...], options: RequestOptions
) -> tuple[str, int] | None:
    # Why there is nothing to render, and the exit code that says so.
    try:
        _locked(index, requested, options)
    except locks.Unsolved:
        why, code = "it has no answer", 1
    except CannotSay as error:
        why, code = error.found or str(error), error.exit_code
    else:
        return None
    words = fields(requested, {**options}).arguments()
    return f"{why}; `{shlex.join(('toolmatrix', 'resolve', *words))}` shows more", code


def _locked(
    index: Index,
    requested: tuple[str, ...],
    options: RequestOptions,
    note: Callable[[str], object] = lambda _: None,
) -> Lock:
    return locks.solve(index, requests(index, requested, options), note)
