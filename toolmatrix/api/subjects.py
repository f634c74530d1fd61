"""Images, machines and saved file systems for Python: what they hold, and whether that is what was resolved."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix import document_store
from toolmatrix.api import PLAIN, Outcome, Printed, Report, as_json, split_words, this_day
from toolmatrix.api.arguments import words
from toolmatrix.api.requests import open_matrix
from toolmatrix.errors import NothingMatched
from toolmatrix.facts.store import cache_folder
from toolmatrix.finding import Judged
from toolmatrix.inventory import host
from toolmatrix.inventory.layers import LayerStore
from toolmatrix.inventory.model import Inventory
from toolmatrix.judge import machine, validation
from toolmatrix.judge.validation import Baseline, Validator, expectations_of
from toolmatrix.report import inventory as inventory_text
from toolmatrix.report import verdicts
from toolmatrix.report.annotations import sarif

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from toolmatrix.api import Matrix, Path, Wanted, Words
    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal

_IMAGES = "images"
"""The folder of the user's cache for what was read of images."""


class SubjectInventory(Inventory, Printed):
    """Everything observed of one subject; see `Inventory` for its fields."""

    def text(self, screen: Terminal = PLAIN, *, everything: bool = False) -> str:
        """The lines that the command prints; `everything` lists the features that are only counted otherwise."""
        return inventory_text.text(self, screen, everything=everything)


class Validation(Judged, Outcome):
    """The verdicts about one subject, true where all of them hold; see `Judged` for its fields."""

    def text(self, screen: Terminal = PLAIN) -> str:
        """The lines that the command prints."""
        return verdicts.text(self, screen)


def report(many: Sequence[Judged], *, alone: bool = True) -> Report:
    """The verdicts about one subject that is `alone`, or about several, in every form of the command."""
    codes = {judged.exit_code for judged in many}
    return Report(
        words=partial(verdicts.text_of_all, many),
        document=many[0].to_json if alone else partial(verdicts.document, many),
        # A failure is told before what nobody can say.
        exit_code=1 if 1 in codes else max(codes, default=0),
        forms={
            # The lines of JSON were printed as they came.
            "jsonl": str,
            "sarif": lambda: as_json(sarif(verdicts.annotated(many))),
            **{name: partial(form, many) for name, form in verdicts.FORMS.items()},
        },
    )


def layer_store(
    place: Path | None = "", size: int = document_store.SIZE, env: Mapping[str, str] = os.environ
) -> LayerStore | None:
    """The store of what was read of images, a folder of so many MiB or a URL of fsspec; None keeps nothing.

    Without a place it lies in the user's cache, as far as there is one. Raises UsageError.
    """
    if place is None:
        return None
    folder = cache_folder(env)
    where = os.fspath(place) or (os.path.join(folder, _IMAGES) if folder else "")
    return LayerStore(document_store.opened(where, size)) if where else None


def inventory(
    subject: str,
    *,
    platform: str = "",
    directory: Path = "",
    run: bool = True,
    store: Path | None = "",
    matrix: Matrix = None,
) -> SubjectInventory:
    """Observe a subject: `docker:NAME`, `registry://HOST/NAME:TAG`, `archive:FILE`, `oci:DIR`, `dir:ROOT`, `host`...

    `platform` picks an image from an index, such as `linux/arm64`; paths are relative to `directory`. With `run` the
    programs of an image of Docker's engine are asked for their versions, in a container without a network. `store` is
    where readings of layers are kept, a folder or a URL of fsspec, by default in the user's cache; None for nowhere.
    Raises SubjectError for what cannot be read, UsageError for what is not a subject, NothingMatched for another
    platform, ToolMissing without an engine.
    """
    return observed(
        subject,
        platform,
        os.fspath(directory),
        None,
        (lambda: open_matrix(matrix).index) if run else None,
        layer_store(store),
    )


def observed(
    subject: str,
    platform: str,
    directory: str,
    stdin: IO[bytes] | None,
    index: Callable[[], Index] | None,
    store: LayerStore | None,
) -> SubjectInventory:
    """Observe a subject, also an archive on `stdin`; `index` is called only to ask programs, which None forbids."""
    asked = (lambda _: validation.probes_of(index())) if index is not None else None
    found = validation.observe(subject, platform, directory, stdin, asked, store)
    return SubjectInventory(**{field: getattr(found, field) for field in found._fields})


def validate(
    subject: str,
    *,
    lock: Path = "",
    expect: Wanted = (),
    target: str = "",
    platform: str = "",
    directory: Path = "",
    only: Words = (),
    run: bool = True,
    strict: bool = False,
    store: Path | None = "",
    matrix: Matrix = None,
) -> Validation:
    """Check a subject against a lock, against expectations such as `python==3.11.*`, or else against the lock in it.

    `target` names the target of the lock, where neither a label nor the platform of the image tells it. `only` keeps
    the verdicts of some kinds or names, `strict` makes a warning a failure, and `store` is that of `inventory`. The
    subject is read in this process, within no bounds of time or memory but those of the caller. Raises LockError for a
    lock that cannot be used, and what `inventory` raises.
    """
    baseline = Baseline(
        # A string is one expectation, with whatever commas it has.
        expected=expectations_of((word, None) for word in words(expect)),
        targets=(target,) if target else (),
    )
    validator = Validator(
        index=open_matrix(matrix).index,
        baseline=baseline.with_lock(os.fspath(lock)),
        directory=os.fspath(directory),
        platform=platform,
        only=split_words(only),
        run=run,
        strict=strict,
        store=layer_store(store),
    )
    return _validation(validator.judge(subject))


def doctor(
    *,
    lock: Path = "",
    target: str = "",
    only: Words = (),
    directory: Path = "",
    matrix: Matrix = None,
) -> Validation:
    """Check this machine by the facts, or for a target of a lock; `only` names some of the checks.

    `directory` is where caches and builds would lie. Raises NothingMatched, LockError.
    """
    index, targets = open_matrix(matrix).index, (target,) if target else ()
    place = os.fspath(directory)
    return _validation(ready(index, os.fspath(lock), targets, split_words(only), place, os.environ))


def ready(
    index: Index,
    lock: str,
    targets: tuple[str, ...],
    only: Sequence[str],
    directory: str,
    env: Mapping[str, str],
) -> Judged:
    """The verdicts about this machine, on the day that variables may fix; `targets` are those of a lock that count."""
    odd = next((name for name in only if name not in machine.CHECKS), "")
    if odd:
        raise NothingMatched(
            f"unknown check `{odd}`",
            expected="one of " + ", ".join(machine.CHECKS),
            found=f"`--only {odd}`",
            help="`toolmatrix doctor --list-checks` describes each check",
        )
    inventory = host.observe(host.HERE, os.path.abspath(directory or "."))
    baseline = Baseline().with_lock(lock)
    target = baseline.replace(targets=targets).target(inventory) if lock else ""
    here = machine.MachineContext(
        inventory=inventory,
        index=index,
        today=this_day(env),
        target=baseline.held.get(target),
    )
    return Judged(
        subject="this machine",
        platform=inventory.platform,
        lock=baseline.path,
        lock_digest=baseline.digest,
        target=target,
        verdicts=tuple(machine.judge(here, tuple(only))),
    )


def _validation(found: Judged) -> Validation:
    return Validation(**{field: getattr(found, field) for field in found._fields})
