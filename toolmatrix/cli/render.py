"""`toolmatrix render`: Dockerfiles, and what builds and schedules them, from a lock."""

from __future__ import annotations

import os.path

from toolmatrix import __version__
from toolmatrix.api import locks
from toolmatrix.cli import ask, standing
from toolmatrix.cli import lock as locking
from toolmatrix.cli.options import BY_KEY, OPTIONS
from toolmatrix.cli.resolve import refuse
from toolmatrix.errors import LockError, OutputError, Position, Unpinned, UsageError
from toolmatrix.lock import read, write
from toolmatrix.outputs import replace_files
from toolmatrix.render import ours
from toolmatrix.report.terminal import columns, plural
from toolmatrix.request.fields import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.option import Option
    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock
    from toolmatrix.render.make import Rules
    from toolmatrix.render.model import Choices, Job

LOCK = "toolmatrix.lock"
"""What the lock is called beside the files made from it."""

# What `--format` says where nothing else is said: every format.
_EVERY = "text"

# How files end that are called after an image.
_PER_IMAGE = (".Dockerfile", ".check.sh", ".def", ".constraints.txt", ".environment.yml", ".env.sh")

_FOREIGN = "a file there was not written by toolmatrix"
_EDITED = "a file there was edited by hand since toolmatrix wrote it"
# Why a file is kept, and what its owner can do.
_WAYS_ON = {
    _FOREIGN: "`--output` names another directory, `--force` replaces the file; nothing was written",
    _EDITED: "`--check` shows the edit, `--force` drops it, a recipe of your own keeps it; nothing was written",
}

# Options that decide what is written; the lock that is written beside the files keeps them.
_REMEMBERED = ("recipe", "target", "format", "dialect", "syntax_line", "base", "option_")


def run(context: Context) -> int:
    """Write the files and return 0, or 1 if there is no answer; with `--check` 1 where a file differs."""
    if context.options.list_formats:
        return _list(context)
    _place(context)
    index = context.index()
    made = _remembering(context)
    made = _with(made, target=ask.settled(made, index).target)
    try:
        job = _job(made, index)
    except locks.Unsolved as refused:
        context.say("no answer, nothing was written")
        return refuse(context, index, refused.refusal)
    files = {**_files(made, job), LOCK: job.lock_text}
    for name, reason in job.excluded:
        context.say_after(f"excluded {name}: {reason}")
    if context.options.check:
        return _check(context, files)
    if context.options.stdout:
        _print(context, files)
        return 0
    _write(context, files)
    if context.options.format == _EVERY:
        _tell_left(context, files)
    _tell_unpinned(context, job)
    return 0


def _list(context: Context) -> int:
    from toolmatrix.render import formats

    rows = [(name, form.SUMMARY) for name, form in formats.known().items()]
    context.write("\n".join(columns(rows)) + "\n")
    return 0


def _place(context: Context) -> None:
    options = context.options
    if options.output == "-" and not options.stdout:
        raise UsageError(
            "nothing says where to write",
            expected="`--output DIR`, or `--stdout`",
            help="`toolmatrix render --output out`",
        )
    if options.stdout and options.check:
        raise UsageError("`--stdout` and `--check` contradict each other")


def _remembering(context: Context) -> Context:
    """The run with the options by which its directory was rendered, else its lock, where it says nothing else."""
    if context.arguments:
        return context
    for path in dict.fromkeys((_beside(context), _answered_by(context))):
        lock = _kept_lock(context, path)
        if lock is not None and lock.render:
            changes = {
                option.name: _recalled(path, option, words)
                for key, words in lock.render.items()
                if context.origins[(option := BY_KEY[key]).name].kind == "default"
            }
            return _with(context, **changes)
    return context


def _kept_lock(context: Context, path: str) -> Lock | None:
    """The lock at a path, if one is there; one that is to be replaced may be broken."""
    if not os.path.exists(path):
        return None
    try:
        return read.read(path)
    except LockError:
        if context.options.force and path != _answered_by(context):
            return None
        raise


def _recalled(path: str, option: Option, words: str | tuple[str, ...]) -> object:
    """The value of an option that a lock holds; the path of a recipe is relative to the lock."""
    from toolmatrix.recipes import read as recipes

    try:
        value = option.accept(words if isinstance(words, str) else list(words))
    except BadValue as bad:
        raise read.odd(path, ("render", option.key), bad.expected, bad.found) from None
    moved = option.name == "recipe" and recipes.is_path(value)
    return os.path.join(os.path.dirname(path), value) if moved else value


def _remembered(context: Context) -> dict[str, str | tuple[str, ...]]:
    """The options of this run as the lock keeps them; targets of a request are those of its lock."""
    from toolmatrix.recipes import read as recipes

    found: dict[str, str | tuple[str, ...]] = {}
    for name in _REMEMBERED:
        option, value = OPTIONS[name], context.options[name]
        if name == "recipe" or value != option.default:
            found[option.key] = value
    if context.arguments:
        found.pop("target", None)
    recipe = context.options.recipe
    if recipes.is_path(recipe):
        found["recipe"] = os.path.join(".", os.path.relpath(recipe, context.options.output))
    return found


def _job(context: Context, index: Index) -> Job:
    from toolmatrix.recipes import read as recipes
    from toolmatrix.render import make

    options = context.options
    recipe = recipes.recipe(options.recipe, index)
    rules = make.Rules(recipe, recipes.provisions(index), index, _choices(context))
    lock, refused = _lock(context, index, rules)
    if not context.arguments:
        _same_matrix(context, lock, index)
    lock = lock.replace(render=_remembered(context))
    job = make.job(
        lock,
        write.text(lock),
        write.digest(lock),
        rules,
        targets=() if context.arguments else options.target,
        version=__version__,
    )
    job = job.replace(excluded=(*job.excluded, *refused))
    _check_bases(job)
    if options.strict:
        _refuse_unpinned(job)
    return job


def _same_matrix(context: Context, lock: Lock, index: Index) -> None:
    """What is looked up for a lock is looked up in the matrix that it was made from, and is there."""
    if lock.matrix_digest != index.header["digest"]:
        raise LockError(
            "the lock was made from another matrix",
            expected=f"the matrix {index.header['digest']} of {index.header['date']}",
            found=f"{lock.matrix_digest} of {lock.matrix_date}",
            help="`--matrix FILE` names the one it came from; `toolmatrix lock` writes it anew",
        )
    read.check_known(lock, _answered_by(context), index)


def _choices(context: Context) -> Choices:
    from toolmatrix.render import dockerfile, quote
    from toolmatrix.render.model import Choices

    options = context.options
    stand_ins = {}
    for text in options.base:
        image, equals, other = text.partition("=")
        if not (image and equals and other):
            raise UsageError(
                f"`--base {text}` cannot be read",
                expected="`--base IMAGE=STAND-IN`",
                found=f"`{text}`",
            )
        if other == dockerfile.EMPTY:
            raise UsageError(
                f"`--base {text}`: nothing can be installed in an image without a shell",
                expected="`--base IMAGE=STAND-IN`, the stand-in with the distribution of the image",
                found=f"`{other}`",
            )
        stand_ins[image] = str(quote.plain("reference", other))
    line = options.syntax_line or ("on" if options.dialect == dockerfile.DIALECTS[0] else "off")
    words = {"on": dockerfile.SYNTAX, "off": ""}
    return Choices(
        dialect=options.dialect,
        syntax_line=words[line] if line in words else str(quote.plain("reference", line)),
        stand_ins=stand_ins,
        options=options.option_,
    )


def _check_bases(job: Job) -> None:
    """A stand-in for an image that nothing starts from is a mistake in its name."""
    used = {base for image in job.images for base in (image.base, image.runtime.base)}
    for image in job.choices.stand_ins:
        if image not in used:
            raise UsageError(
                f"no file starts from `{image}`",
                expected="one of " + ", ".join(sorted(used)),
                found=f"`--base {image}=...`",
            )


def _lock(context: Context, index: Index, rules: Rules) -> tuple[Lock, tuple[tuple[str, str], ...]]:
    """The lock of the request, of `--lock`, or of the directory; with targets that have no answer."""
    if context.arguments:
        return _solved(context, index, rules)
    return read.read(_answered_by(context)), ()


def _beside(context: Context) -> str:
    return os.path.join(context.options.output, LOCK)


def _answered_by(context: Context) -> str:
    """The lock that is rendered: that of `--lock`, else that of the directory."""
    said = context.origins["lock"].kind != "default"
    beside = _beside(context)
    return context.options.lock if said or not os.path.exists(beside) else beside


def _solved(
    context: Context, index: Index, rules: Rules
) -> tuple[Lock, tuple[tuple[str, str], ...]]:
    """The answers of the targets that have one; raises Refused where none has, or where they must agree."""
    asking = _needing(context, rules)
    try:
        return _locked(asking, index), ()
    except locks.Unsolved:
        targets = asking.options.target
        if len(targets) < 2 or asking.options.align:
            raise
    answered = tuple(target for target in targets if _has_answer(asking, index, target))
    refused = tuple(
        (target, "it has no answer; `toolmatrix resolve` with this target alone says why")
        for target in targets
        if target not in answered
    )
    return _locked(_with(asking, target=answered or targets), index), refused


def _has_answer(context: Context, index: Index, target: str) -> bool:
    try:
        _locked(_with(context, target=(target,)), index)
    except locks.Unsolved:
        return False
    return True


def _locked(context: Context, index: Index) -> Lock:
    wanted = standing.environments(context, None)
    return locking.solved(index, wanted)


def _needing(context: Context, rules: Rules) -> Context:
    """The request with what the recipe needs beside it, on a distribution in which packages can be installed."""
    named = " ".join((*context.arguments, *context.options.with_))
    needs = [name for name in rules.recipe.needs if name not in named]
    if not (context.options.distro or "distro" in named or "base-image==" in named):
        known = dict.fromkeys(text for part in rules.distros for _, text in part.when)
        needs = [*(name for name in needs if name != "distro"), "distro==" + "||".join(known)]
    return _with(context, with_=(*context.options.with_, *needs))


def _with(context: Context, **changes: object) -> Context:
    return context.replace(options=context.options.replace(**changes))


def _refuse_unpinned(job: Job) -> None:
    loose = [f"{image.name}: {what}" for image in job.images for what in image.unpinned]
    if loose:
        raise Unpinned(
            "something would be taken as it comes",
            expected="a checksum for every download, and base images by digest",
            found="; ".join(loose),
            help="`--base IMAGE=IMAGE@sha256:...` pins an image; a recipe may name checksums",
        )


def _files(context: Context, job: Job) -> dict[str, str]:
    from toolmatrix.render import formats

    wanted = context.options.format
    return formats.files(job, formats.known() if wanted == _EVERY else wanted.split(","))


def _check(context: Context, files: Mapping[str, str]) -> int:
    """Print what differs between the files and what would be written."""
    paths = {os.path.join(context.options.output, name): text for name, text in files.items()}
    held = {path: _held(path) for path in paths}
    changed = sorted(path for path, text in paths.items() if held[path] != text)
    for path in changed:
        context.write("".join(_difference(path, held[path], paths[path])))
    if changed:
        force = " --force" if _kept(held, changed) else ""
        context.say_after(
            f"of {plural(len(files), 'file')} {len(changed)} would change; "
            f"`toolmatrix render{force}` writes them anew"
        )
        return 1
    context.write(f"{context.options.output} is up to date: {plural(len(files), 'file')}\n")
    return 0


def _held(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(
            "cannot read what was rendered", where=Position(path), found=error.strerror or ""
        ) from None


def _difference(path: str, held: str | None, text: str) -> Iterator[str]:
    import difflib

    before = [] if held is None else held.splitlines(keepends=True)
    old = "/dev/null" if held is None else path
    for line in difflib.unified_diff(before, text.splitlines(keepends=True), old, path):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _print(context: Context, files: Mapping[str, str]) -> None:
    shown = {name: text for name, text in files.items() if name != LOCK}
    for name, text in sorted(shown.items()):
        context.write(text if len(shown) == 1 else f"==> {name} <==\n{text}\n")


def _write(context: Context, files: Mapping[str, str]) -> None:
    """Write what differs from what is there, all of it or nothing."""
    paths = {os.path.join(context.options.output, name): text for name, text in files.items()}
    held = {path: _held(path) for path in paths}
    changed = {path: text for path, text in paths.items() if held[path] != text}
    if not context.options.force:
        _refuse_kept(_kept(held, changed))
    for folder in dict.fromkeys(os.path.dirname(path) or "." for path in changed):
        _make(folder)
    replace_files(changed)
    for path in sorted(paths):
        context.write(f"{'wrote' if path in changed else 'unchanged'} {path}\n")


def _kept(held: Mapping[str, str | None], changed: Iterable[str]) -> dict[str, str]:
    """Of files that would change those that are kept, with the reason: what is not ours, or not as we wrote it."""
    found = {}
    for path in changed:
        text = held[path]
        if text is not None and not _is_unchanged(path, text):
            found[path] = _EDITED if _is_ours(path, text) else _FOREIGN
    return found


def _refuse_kept(kept: Mapping[str, str]) -> None:
    for reason, help in _WAYS_ON.items():
        paths = [path for path in sorted(kept) if kept[path] == reason]
        if paths:
            raise OutputError(
                reason, where=Position(paths[0]), found=", ".join(paths[1:]), help=help
            )


def _is_unchanged(path: str, text: str) -> bool:
    return read.is_intact(text) if os.path.basename(path) == LOCK else ours.is_unchanged(text)


def _is_ours(path: str, text: str) -> bool:
    return read.may_be_replaced(path) if os.path.basename(path) == LOCK else ours.is_ours(text)


def _tell_left(context: Context, files: Mapping[str, str]) -> None:
    """Files of an earlier render that this one does not write, which are of another lock or recipe."""
    folder = context.options.output
    left = [
        name
        for name in sorted(os.listdir(folder))
        if name.endswith(_PER_IMAGE)
        and name not in files
        and ours.is_ours(_held(os.path.join(folder, name)) or "")
    ]
    if left:
        context.say_after(f"left as they were: {', '.join(left)}; this lock or recipe has none")


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(
            "cannot make the directory",
            where=Position(folder),
            found=error.strerror or "",
            help="nothing was written",
        ) from None


def _tell_unpinned(context: Context, job: Job) -> None:
    loose = {what for image in job.images for what in image.unpinned}
    if loose:
        context.say_after(f"unpinned: {', '.join(sorted(loose))}; `--strict` refuses these")
    context.say_after(f"hint: `toolmatrix build {context.options.output}` builds them")
