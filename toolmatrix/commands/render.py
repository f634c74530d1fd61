"""`toolmatrix render`: Dockerfiles, and what builds and schedules them, from a lock."""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Callable, Mapping

from toolmatrix.api import files, locks, packages, this_day
from toolmatrix.api.files import Rendered
from toolmatrix.cli import ask
from toolmatrix.cli.context import Context
from toolmatrix.command import command
from toolmatrix.command.option import Option, option
from toolmatrix.command.options import CHECK, ONLINE
from toolmatrix.commands import lock as locking
from toolmatrix.errors import CannotSay, LockError, UsageError
from toolmatrix.facts.index import Index
from toolmatrix.lock import lock_file
from toolmatrix.lock.model import Lock
from toolmatrix.outputs import replace_files
from toolmatrix.recipes import read as recipes
from toolmatrix.report.terminal import columns, plural
from toolmatrix.request import recipes as requests
from toolmatrix.request.fields import BadValue

# What `--format` says where nothing is said: here that means every format.
_EVERY = "text"


@command(
    group="Lock and build",
    order=3,
    usage="[REQUEST...]",
    completer="release",
    fills=True,
    does="rendering",
    formats=("text",),
    request=True,
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
            only_flag=True,
            help="Overwrite files that were edited by hand or that toolmatrix did not write",
        ),
        "list_formats": option(
            "--list-formats", kind="flag", only_flag=True, help="List the output formats"
        ),
        "online": ONLINE,
        "base": option(
            "--base",
            kind="list",
            metavar="IMAGE=STAND-IN",
            split=False,
            help="Replace a base image with another one; repeatable",
        ),
        "mirror": option(
            "--mirror",
            kind="list",
            metavar="OLD=NEW",
            split=False,
            help="Fetch files below one URL from another one; repeatable",
        ),
        "fetched": option(
            "--fetched",
            kind="text",
            metavar="DIR",
            help="Take downloads and Python packages from a folder that `toolmatrix fetch` filled",
        ),
        "snapshot": option(
            "--snapshot",
            kind="text",
            metavar="DATE",
            help="Use the Debian and Ubuntu archives as of a day, or of a time such as 20261120T030400Z",
        ),
        "stdout": option("--stdout", kind="flag", help="Print the files instead of writing them"),
        "dialect": option(
            "--dialect",
            kind="text",
            words=("modern", "classic"),
            default="modern",
            help="Dockerfile dialect: modern (BuildKit) or classic (Docker 20.10, buildah)",
        ),
        "syntax_line": option(
            "--syntax-line",
            kind="text",
            metavar="WHICH",
            help="Syntax line of Dockerfiles: on, off, or the frontend image",
        ),
        "strict": option(
            "--strict", kind="flag", help="Refuse unpinned images, packages and files"
        ),
        "option_": option(
            "--option",
            kind="list",
            metavar="NAME",
            configurable=False,
            help="Enable an option of the recipe; repeatable",
        ),
    },
)
def run(context: Context) -> int:
    """Render Dockerfiles and build files from a lock.

    Write the files and return 0; 1 or 4 if a target has no image, and with `--check` 1 where a file differs.
    """
    if context.options.list_formats:
        return _list(context)
    context = _placed(context)
    given = context.options.matrix
    context = ask.with_online_packages(context, _named(context))
    # Those that are not the user's own were harvested for these files.
    harvested = context.options.matrix[len(given) :]
    index = context.index()
    made = _remembering(context)
    made = _with(made, target=ask.settled(made, index).target)
    try:
        found, code = _rendered(made, index)
    except locks.Unsolved as unsolved:
        context.say("no answer, nothing was written")
        # `--format` names files, of which there are none.
        return ask.refuse(_with(context, format=_EVERY), index, unsolved.refusal)
    for name, reason in found.excluded:
        context.say_after(f"excluded {name}: {reason}")
    if context.options.check:
        return _check(context, found) or code
    if context.options.stdout:
        context.write(str(found))
        return code
    _write(context, found)
    facts = locks.beside(os.path.join(context.options.output, files.LOCK), harvested)
    replace_files(facts)
    for path in facts:
        context.write(f"wrote {path}: the harvested facts, for `--matrix`\n")
    return code


def _list(context: Context) -> int:
    from toolmatrix.render import formats

    rows = [(name, form.SUMMARY) for name, form in formats.known().items()]
    context.write("\n".join(columns(rows)) + "\n")
    return 0


def _placed(context: Context) -> Context:
    options = context.options
    # Both write nothing, and print different things.
    if options.stdout and options.check:
        raise UsageError("`--stdout` and `--check` contradict each other")
    if options.output != "-" or options.stdout:
        return context
    if context.arguments:
        raise UsageError(
            "no output directory",
            expected="`--output DIR`, or `--stdout`",
            help="`--output out`",
        )
    # A lock is rendered beside itself, where `build` looks for it.
    return _with(context, output=os.path.dirname(options.lock) or ".")


def _remembering(context: Context) -> Context:
    # A directory is rendered again as it was: by the options in its lock, else those in the lock of `--lock`.
    if context.arguments:
        return context
    for path in dict.fromkeys((_beside(context), _answered_by(context))):
        lock = _kept_lock(context, path)
        if lock is not None and lock.render:
            by_key = {one.key: one for one in context.command.options.values()}
            changes = {
                option.name: _recalled(path, option, words)
                for key, words in lock.render.items()
                if context.origins[(option := by_key[key]).name].kind == "default"
            }
            return _with(context, **changes)
    return context


def _kept_lock(context: Context, path: str) -> Lock | None:
    # One that is to be replaced may be broken.
    if not os.path.exists(path):
        return None
    try:
        return lock_file.read(path)
    except LockError:
        if context.options.force and path != _answered_by(context):
            return None
        raise


def _recalled(path: str, option: Option, words: str | tuple[str, ...]) -> object:
    try:
        value = option.accept(words if isinstance(words, str) else list(words))
    except BadValue as bad:
        raise lock_file.odd(path, ("render", option.key), bad.expected, bad.found) from None
    # The path of a recipe is relative to the lock.
    moved = option.name == "recipe" and recipes.is_path(value)
    return os.path.join(os.path.dirname(path), value) if moved else value


def _rendered(context: Context, index: Index) -> tuple[Rendered, int]:
    options = context.options
    # The targets of a request are those of its lock: of one that has no answer there is nothing to write.
    targets = () if context.arguments else options.target
    path = _answered_by(context)
    held = None if context.arguments else lock_file.read(path)
    context = context if options.recipe else _with_recipe(context, index, held)
    wanted = files.RenderOptions(
        recipe=context.options.recipe,
        target=targets,
        format="" if options.format == _EVERY else options.format,
        dialect=options.dialect,
        syntax_line=options.syntax_line,
        base=options.base,
        mirror=options.mirror,
        fetched=options.fetched,
        snapshot=_past(context),
        option=options.option_,
    )
    rules = files.rules(index, wanted)
    if held is None:
        # By its own name, however it was called: a lock says its request in the same words.
        named = wanted.recipe if recipes.is_path(wanted.recipe) else rules.recipe.name
        lock, refused = _solved(context, index, named)
        lock = _with_packages(context, index, lock)
    else:
        lock, refused = held, {}
        for note in files.moved(lock, path, index):
            context.say_after(note)
    excluded = [(target, why) for target, (why, _) in refused.items()]
    found = files.rendered(
        lock, wanted, rules, targets=targets, refused=excluded, strict=options.strict
    )
    # What has no image although this run names it is refused; of a lock there may be targets that no recipe is for.
    said = bool(context.arguments) or context.origins["target"].kind != "default"
    codes = [refused[name][1] if name in refused else 1 for name, _ in found.excluded]
    return found, min(codes) if said and codes else 0


def _past(context: Context) -> str:
    # A service gives the newest packages for a day that has not come, and others later.
    from toolmatrix.render import pinning

    said, today = context.options.snapshot, this_day(context.env)
    if said and pinning.parsed_time(said).date() > today:
        raise UsageError(
            f"`--snapshot {said}` is later than today",
            expected=f"{today} at the latest: the clock, or SOURCE_DATE_EPOCH where that is set",
            found=f"`{said}`",
        )
    return str(said)


def _with_recipe(context: Context, index: Index, held: Lock | None) -> Context:
    # Where no recipe is named, the one that makes what each environment requests, if it is one for all.
    if held is not None:
        return _with(context, recipe=files.recipe_of(held, index))
    wanted = locking.environments(context, index, None).values()
    found = [requests.of_request(part.request, index) for part in wanted]
    for note in dict.fromkeys(one.note for one in found if one.note):
        context.say_after(f"note: {note}")
    default = requests.one(found)
    return _with(context, recipe=default.recipe, from_=default.from_ or context.options.from_)


def _named(context: Context) -> list[str]:
    # Without arguments a lock is rendered, of which the matrix has to have what was harvested for it.
    if not context.options.online or context.arguments:
        return [*context.arguments]
    return locking.named_in(lock_file.read(_answered_by(context)))


def _with_packages(context: Context, index: Index, lock: Lock) -> Lock:
    path = _beside(context)
    try:
        held = lock_file.read(path) if os.path.exists(path) else None
    # Where files are written it is refused, or replaced.
    except LockError:
        return lock
    kept = packages.keep_packages(index, lock, held)
    if kept.note:
        context.say_after(kept.note)
    return kept.lock


def _beside(context: Context) -> str:
    return os.path.join(context.options.output, files.LOCK)


def _answered_by(context: Context) -> str:
    # The default of `--lock` gives way to the lock that lies beside the files.
    said = context.origins["lock"].kind != "default"
    beside = _beside(context)
    return context.options.lock if said or not os.path.exists(beside) else beside


def _solved(
    context: Context, index: Index, recipe: str
) -> tuple[Lock, Mapping[str, tuple[str, int]]]:
    # A target without an answer is left out, with the reason, unless the targets must agree or none has one.
    asking = _with(context, recipe=recipe)
    # All at once first: with what must agree only the whole has an answer.
    try:
        return _locked(asking, index, context.say_after), {}
    except (locks.Unsolved, CannotSay):
        targets = asking.options.target
        if len(targets) < 2 or asking.options.align:
            raise
    found = ((target, _why_not(_with(asking, target=(target,)), index)) for target in targets)
    refused = {target: why for target, why in found if why}
    asking = _with(asking, target=tuple(one for one in targets if one not in refused) or targets)
    return _locked(asking, index, context.say_after), refused


def _why_not(context: Context, index: Index) -> tuple[str, int] | None:
    # Why there is nothing to render, and the exit code that says so.
    try:
        _locked(context, index)
    except locks.Unsolved:
        why, code = "it has no answer", 1
    except CannotSay as error:
        why, code = error.found or str(error), error.exit_code
    else:
        return None
    words = ask.written(context.options, context.arguments).words()
    return f"{why}; `{shlex.join(('toolmatrix', 'resolve', *words))}` shows more", code


def _locked(context: Context, index: Index, say: Callable[[str], object] = lambda _: None) -> Lock:
    return locking.solved(index, locking.environments(context, index, None), say=say)


def _with(context: Context, **changes: object) -> Context:
    return context.replace(options=context.options.replace(**changes))


def _check(context: Context, found: Rendered) -> int:
    output = context.options.output
    changed, kept = found.differences(output)
    for text in changed.values():
        context.write(text)
    if changed:
        context.say_after(
            f"{len(changed)} of {plural(len(found), 'file')} would change; "
            f"`toolmatrix render{' --force' if kept else ''}` updates them"
        )
        return 1
    context.write(f"{output} is up to date: {plural(len(found), 'file')}\n")
    return 0


def _write(context: Context, found: Rendered) -> None:
    options = context.options
    for path, written in sorted(found.write(options.output, force=options.force).items()):
        context.write(f"{'wrote' if written else 'unchanged'} {path}\n")
    left = found.left(options.output) if options.format == _EVERY else []
    if left:
        context.say_after(
            f"left unchanged: {', '.join(left)}; they are not part of this lock or recipe"
        )
    if found.unpinned:
        context.say_after(f"unpinned: {', '.join(found.unpinned)}; `--strict` refuses these")
    context.say_after(f"hint: `toolmatrix build {options.output}` builds them")
