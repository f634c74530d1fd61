"""Files made from a lock: Dockerfiles, what builds and schedules them, and the lock beside them."""

from __future__ import annotations

import os
import os.path

from toolmatrix import __version__
from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.api.locks import LockRequest, Unsolved, solve, texts_beside
from toolmatrix.errors import OutputError, Position, ToolmatrixError, Unpinned, UsageError
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import DEFAULT, Lock
from toolmatrix.opener import open_file
from toolmatrix.outputs import os_errors_as, replace_files
from toolmatrix.rendering import common
from toolmatrix.report.terminal import listing, plural
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import LockedEnvironment
    from toolmatrix.rendering.make import Rules
    from toolmatrix.rendering.model import Choices, Job
    from toolmatrix.rendering.pinning import FloatingVersion

# The name of the lock beside the files made from it.
LOCK = "toolmatrix.lock"

# How files end that are called after an image.
_PER_IMAGE = (
    *(".Dockerfile", ".check.sh", ".def", ".constraints.txt", ".environment.yml", ".env.sh"),
    *(".cdx.json", ".spack.yaml", ".requirements.txt"),
)

_FOREIGN = "an existing file was not written by toolmatrix"
_EDITED = "an existing file was edited by hand since toolmatrix wrote it"
# Why a file is kept, and what its owner can do.
_REMEDIES = {
    _FOREIGN: "name another directory with `--output`, or replace the file with `--force`; nothing was written",
    _EDITED: "`--check` shows the edit, `--force` drops it, a recipe of your own keeps it; nothing was written",
}


class RenderOptions(Value):
    """Options that decide what is written beside the lock; the help of `toolmatrix render` describes each."""

    recipe: str = "toolchain"
    target: tuple[str, ...] = ()
    # Names with commas between; every format where it is empty.
    format: str = ""
    dialect: str = "modern"
    syntax_line: str = ""
    # Each is `IMAGE=STAND-IN`.
    base: tuple[str, ...] = ()
    # Each is `OLD=NEW`.
    mirror: tuple[str, ...] = ()
    fetched: str = ""
    snapshot: str = ""
    option: tuple[str, ...] = ()

    def lock_fields(self, folder: str) -> dict[str, str | tuple[str, ...]]:
        """The options as the lock in a directory keeps them: those said, a recipe's path relative to the lock."""
        from toolmatrix.recipes import read as recipes

        changed = {
            name.replace("_", "-"): value
            for name in self._fields
            if (value := getattr(self, name)) != self._defaults[name]
        }
        changed["recipe"] = self.recipe
        if recipes.is_path(self.recipe):
            changed["recipe"] = os.path.join(".", os.path.relpath(self.recipe, folder))
        return changed

    def choices(self) -> Choices:
        """The choices that no fact decides, checked. Raises UsageError, RenderError."""
        from toolmatrix.rendering import dockerfile, mirrors, pinning, quote
        from toolmatrix.rendering.model import Choices

        _check_choice("dialect", self.dialect, dockerfile.DIALECTS)
        stand_ins = {}
        for text in self.base:
            image, equals, other = text.partition("=")
            if not (image and equals and other):
                raise UsageError(
                    f"`--base {text}` cannot be read",
                    expected="`--base IMAGE=STAND-IN`",
                    found=f"`{text}`",
                )
            # A stand-in is built upon, and an empty image has no shell that could run a line.
            if other == dockerfile.EMPTY:
                raise UsageError(
                    f"`--base {text}`: nothing can be installed in an image without a shell",
                    expected="`--base IMAGE=STAND-IN`, the stand-in with the distribution of the image",
                    found=f"`{other}`",
                )
            stand_ins[image] = str(quote.plain("reference", other))
        line = self.syntax_line or ("on" if self.dialect == dockerfile.DIALECTS[0] else "off")
        words = {"on": dockerfile.SYNTAX, "off": ""}
        return Choices(
            dialect=self.dialect,
            syntax_line=words[line] if line in words else str(quote.plain("reference", line)),
            stand_ins=stand_ins,
            options=self.option,
            mirrors=mirrors.parsed(self.mirror),
            fetched=mirrors.check_folder(self.fetched),
            snapshot=pinning.stamp(self.snapshot),
        )


def _check_choice(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(
            f"bad value for `{name}`", expected="one of " + ", ".join(known), found=f"`{value}`"
        )


def _report(text: str, exit_code: int, hint: str = "") -> Report:
    return Report(words=lambda _: text, document=dict, exit_code=exit_code, hint=hint)


class Rendered(dict[str, str]):
    """Texts by path below the directory that they are for, the lock among them; prints as `render --stdout`."""

    def __init__(self, job: Job, options: RenderOptions) -> None:
        from toolmatrix.rendering import formats

        self.job = job
        self.options = options
        # What is to be said of the lock.
        self.notes: tuple[str, ...] = ()
        # The directory that it is for, and files of facts that were read for it.
        self.folder = ""
        self.harvested: tuple[str, ...] = ()
        # 1 or 4 where a target that was named has no image.
        self.exit_code = 0
        wanted = options.format.split(",") if options.format else [*formats.known()]
        for name in wanted:
            _check_choice("format", name, formats.names())
        super().__init__({**formats.files(job, wanted), LOCK: self._lock(os.curdir)})

    def _lock(self, folder: str) -> str:
        return lock_file.text(self.job.lock.replace(render=self.options.lock_fields(folder)))

    @property
    def excluded(self) -> tuple[tuple[str, str], ...]:
        """Targets that have no image, each with the reason."""
        return self.job.excluded

    @property
    def unpinned(self) -> tuple[str, ...]:
        """What the images take as it comes, such as a base image without a digest: what `strict` refuses."""
        return tuple(sorted({unpinned.what for _, unpinned in _unpinned(self.job)}))

    def __str__(self) -> str:
        printed = {name: text for name, text in self.items() if name != LOCK}
        # One file alone can be piped on as it is.
        if len(printed) == 1:
            return "".join(printed.values())
        return "".join(f"==> {name} <==\n{text}\n" for name, text in sorted(printed.items()))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> dict[str, bool]:
        """Put the files in a directory, all or none; for each path whether it was written.

        Raises OutputError for a file of another origin or an edited one, unless `force` is set.
        """
        texts, existing, changed = self._compare(os.fspath(folder))
        protected = {} if force else _protected(existing, changed)
        for reason, help in _REMEDIES.items():
            paths = [path for path in sorted(protected) if protected[path] == reason]
            if paths:
                where, others = Position(paths[0]), ", ".join(paths[1:])
                raise OutputError(reason, where=where, found=others, help=help)
        for directory in dict.fromkeys(os.path.dirname(path) or "." for path in changed):
            with os_errors_as("cannot make the directory", directory, "nothing was written"):
                os.makedirs(directory, exist_ok=True)
        replace_files(changed)
        return {path: path in changed for path in texts}

    def deliver(self, *, format: str, check: bool, force: bool, stdout: bool) -> Report:
        """Write the files into their directory, or compare or print them, and say so."""
        if check:
            return self._check()
        if stdout:
            return _report(str(self), self.exit_code)
        written = self.write(self.folder, force=force)
        lines = [
            f"{'wrote' if new else 'unchanged'} {path}\n" for path, new in sorted(written.items())
        ]
        leftover = self.leftovers(self.folder) if format == "text" else []
        if leftover:
            caller().note(
                f"left unchanged: {', '.join(leftover)}; they are not part of this lock or recipe"
            )
        if self.unpinned:
            caller().note(f"unpinned: {', '.join(self.unpinned)}; `--strict` refuses these")
        facts = texts_beside(os.path.join(self.folder, LOCK), self.harvested)
        replace_files(facts)
        lines += [f"wrote {path}: the harvested facts, for `--matrix`\n" for path in facts]
        hint = f"`toolmatrix build {self.folder}` builds them"
        return _report("".join(lines), self.exit_code, hint)

    def _check(self) -> Report:
        changed, kept = self.differences(self.folder)
        text = "".join(changed.values())
        if changed:
            caller().note(
                f"{len(changed)} of {plural(len(self), 'file')} would change; "
                f"`toolmatrix render{' --force' if kept else ''}` updates them"
            )
        else:
            text = f"{self.folder} is up to date: {plural(len(self), 'file')}\n"
        return _report(text, 1 if changed else self.exit_code)

    def differences(self, folder: str) -> tuple[dict[str, str], bool]:
        """The changes that writing makes, as a diff for each path, and whether only `force` makes them."""
        _, existing, changed = self._compare(folder)
        diffs = {
            path: "".join(_difference(path, existing[path], text))
            for path, text in sorted(changed.items())
        }
        return diffs, bool(_protected(existing, changed))

    def leftovers(self, folder: str) -> list[str]:
        """Files of an earlier run that this one does not write, which are of another lock or recipe."""
        return [
            name
            for name in sorted(os.listdir(folder))
            if name.endswith(_PER_IMAGE)
            and name not in self
            and common.is_ours(_read_rendered(os.path.join(folder, name)) or "")
        ]

    def _compare(self, folder: str) -> tuple[dict[str, str], dict[str, str | None], dict[str, str]]:
        """By path in a directory: the texts, the existing texts, and the texts that change something."""
        # The lock has the path of its recipe relative to itself, so its text depends on the directory.
        files = {**self, LOCK: self._lock(folder)}
        texts = {os.path.join(folder, name): text for name, text in files.items()}
        existing = {path: _read_rendered(path) for path in texts}
        # An unchanged file keeps its time, and an edit is reported only where it would be lost.
        changed = {path: text for path, text in texts.items() if existing[path] != text}
        return texts, existing, changed


def options_of(lock: Lock, path: str, index: Index) -> RenderOptions:
    """The options that a lock at a path keeps. Without a recipe the default is taken."""
    from toolmatrix.recipes import read as recipes

    options: dict[str, Any] = {name.replace("-", "_"): value for name, value in lock.render.items()}
    if not options.get("recipe"):
        options["recipe"] = recipe_of(lock, index)
    elif recipes.is_path(options["recipe"]):
        options["recipe"] = os.path.join(os.path.dirname(path), options["recipe"])
    return RenderOptions(**options)


def recipe_of(lock: Lock, index: Index) -> str:
    """The default recipe of a lock: that of its request, or else that of its answer.

    Raises NoImage where no recipe builds what was requested from source.
    """
    from toolmatrix.recipes import read as built_in
    from toolmatrix.request import recipes

    words = {word for each in lock.environments.values() for word in each.request}
    requested = [word.partition("=")[2] for word in words if word.startswith("--recipe=")]
    # A path is of the folder in which it was written.
    if len(requested) == 1 and not built_in.is_path(requested[0]):
        return requested[0]
    return recipes.common_recipe(
        recipes.by_default(target.from_, wanted, target.components, index)
        for each in lock.environments.values()
        for wanted in [recipes.requested(each.request, index)]
        for target in each.targets.values()
    ).recipe


def rules(index: Index, options: RenderOptions) -> Rules:
    """The recipe with what holds beside it. Raises RecipeError, UsageError."""
    from toolmatrix.rendering.make import Rules
    from toolmatrix.request import recipes

    recipe = recipes.recipe(options.recipe, index)
    return Rules(recipe, recipes.provisions(index), index, options.choices())


def for_images(
    index: Index, wanted: Mapping[str, LockRequest], lock: Lock, say: Callable[[str], object]
) -> Lock:
    """A lock that `render` can use without a recipe option, where that moves nothing requested.

    `say` gets the reason where an environment has none.
    """
    environments = dict(lock.environments)
    for name, request in wanted.items():
        alone = lock.replace(environments={DEFAULT: lock.environments[name]})
        why = "" if request.request.recipe else _no_image(alone, index)
        with_recipe = _by_recipe(request, alone, index) if why else None
        if with_recipe is not None:
            environments[name], why = with_recipe
        if why:
            say(f"note: {why}")
    return lock.replace(environments=environments)


def _no_image(lock: Lock, index: Index) -> str:
    from toolmatrix.rendering import make

    try:
        options = RenderOptions(recipe=recipe_of(lock, index))
        job = make.job(lock, "", rules(index, options), version=__version__)
    except ToolmatrixError as error:
        why = error.found or f"{error}: {error.help}"
    else:
        why = "; ".join(f"{target}: {why}" for target, why in job.excluded)
    return why and f"`toolmatrix render` cannot make an image from this answer: {why}"


def _by_recipe(
    wanted: LockRequest, lock: Lock, index: Index
) -> tuple[LockedEnvironment, str] | None:
    # The answer for the recipe that is taken anyway, unless something requested would be another release for it.
    from toolmatrix.request import recipes
    from toolmatrix.request.fields import Fields, parse_arguments
    from toolmatrix.request.read import read as read_request

    before = lock.environments[DEFAULT]
    try:
        default = recipes.of_request(wanted.request, index)
        options = parse_arguments((*wanted.words, f"--recipe={default.recipe}"))
        fields = Fields(**({**options, "from_": default.from_} if default.from_ else options))
        pinned = tuple(
            (target, *choice)
            for target, locked in before.targets.items()
            for choice in locked.chosen.items()
        )
        request = LockRequest(
            request=read_request(index, fields, keep=wanted.request.keep or pinned),
            words=fields.arguments(),
        )
        environment = solve(index, {DEFAULT: request}).environments[DEFAULT]
        moved = any(
            environment.targets[target].components[component].version
            != locked.components[component].version
            for target, locked in before.targets.items()
            for component in recipes.requested(before.request, index)
        )
    except (Unsolved, ToolmatrixError):
        return None
    if moved or _no_image(lock.replace(environments={DEFAULT: environment}), index):
        return None
    return environment, default.note if default.from_ else ""


def render_lock(
    lock: Lock,
    options: RenderOptions,
    rules: Rules,
    *,
    targets: Iterable[str] = (),
    refused: Iterable[tuple[str, str]] = (),
    strict: bool = False,
) -> Rendered:
    """The files of some targets, all where none is named; `refused` are targets without an answer, with the reason.

    Raises NoImage, RenderError, RecipeError, UsageError, and Unpinned where it is `strict`.
    """
    from toolmatrix.rendering import make

    job = make.job(lock, lock_file.digest(lock), rules, targets=tuple(targets), version=__version__)
    job = job.replace(excluded=(*job.excluded, *refused))
    _check_used(job)
    if strict and (loose := _unpinned(job)):
        from toolmatrix.rendering import pinning

        raise Unpinned(
            "some inputs are not pinned",
            expected="images by digest, packages of a snapshot, files and Python packages by checksum, git by commit",
            each=tuple(f"{name}: {unpinned.what}" for name, unpinned in loose),
            help=pinning.pinning_advice(unpinned for _, unpinned in loose),
        )
    return Rendered(job, options)


def _check_used(job: Job) -> None:
    # A stand-in for an image that nothing starts from is a mistake in its name.
    used = {base for image in job.images for base in (image.base, image.runtime.base)}
    for name in job.choices.stand_ins:
        if name not in used:
            raise UsageError(
                f"no file uses the base image `{name}`",
                expected="one of " + ", ".join(sorted(used)),
                found=f"`--base {name}=...`",
            )
    # What tools fetch by themselves is not known.
    if any(image.mirrored for image in job.images):
        return
    from toolmatrix.rendering import mirrors

    fetched = {address for image in job.images for address in mirrors.addresses(image)}
    for old, new in job.choices.mirrors.items():
        if not any(address.startswith(new) for address in fetched):
            raise UsageError(
                f"no address of these files begins with `{old}`",
                expected="a prefix of "
                + (", ".join(sorted(fetched)) or "an address; the files have none"),
                found=f"`--mirror {old}=...`",
            )


def _unpinned(job: Job) -> list[tuple[str, FloatingVersion]]:
    # What is taken as it comes, each with the name of its image.
    from toolmatrix.rendering import pinning

    return [
        (image.name, unpinned)
        for image in job.images
        for unpinned in pinning.unpinned(image, job.choices)
    ]


def matrix_notes(lock: Lock, path: str, index: Index) -> list[str]:
    """Notes about a lock that another matrix made; it is rendered as it is. Raises LockError."""
    # A lock out of a solver holds what its matrix knows.
    own = lock.matrix_digest == index.header["digest"]
    unheard = lock_file.unknown_names(lock, path, index) if path or not own else []
    if own:
        return []
    days = f"{lock.matrix_date}, this is {index.header['date']}"
    notes = [
        f"the lock was made with another matrix ({days}); `toolmatrix lock --check` shows the changes"
    ]
    if unheard:
        notes.append(f"this matrix does not know {listing(unheard)}")
    return notes


def _read_rendered(path: str) -> str | None:
    with os_errors_as("cannot read a rendered file", path):
        try:
            with open_file(path) as file:
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return None


def _difference(path: str, existing: str | None, text: str) -> Iterator[str]:
    import difflib

    before = [] if existing is None else existing.splitlines(keepends=True)
    old = "/dev/null" if existing is None else path
    for line in difflib.unified_diff(before, text.splitlines(keepends=True), old, path):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _protected(existing: Mapping[str, str | None], changed: Iterable[str]) -> dict[str, str]:
    """The changed files that must not be replaced, with the reason: foreign or edited by hand."""
    reasons = {}
    for path in changed:
        text = existing[path]
        if text is None:
            continue
        # A lock has another seal than the files that are rendered from it.
        if os.path.basename(path) == LOCK:
            as_written, is_ours = lock_file.is_intact(text), lock_file.may_be_replaced(path)
        else:
            as_written, is_ours = common.is_unchanged(text), common.is_ours(text)
        if not as_written:
            reasons[path] = _EDITED if is_ours else _FOREIGN
    return reasons
