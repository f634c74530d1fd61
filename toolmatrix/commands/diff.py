"""`toolmatrix diff`."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import layer_store, piped_archive, targets_of
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import (
    ALL,
    EXIT_CODE,
    NO_STORE,
    PLATFORM,
    STORE,
    STORE_SIZE,
    targets,
)
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.inventory import host
from toolmatrix.inventory.model import SUSPICIOUS
from toolmatrix.judge import comparison, validation
from toolmatrix.judge.validation import Baseline
from toolmatrix.lock import compare, lock_file
from toolmatrix.report import claims, differences, port
from toolmatrix.report import comparison as report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.api import Matrix, Path, Words
    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.layers import LayerStore
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.lock.model import Lock

    Named = tuple[str, Lock]
    """A lock and its path."""


@command(
    group="Inspect files, images and machines",
    order=2,
    usage="OLD [NEW]",
    completer="file",
    does="comparing",
    formats=PRINTED,
    examples=(
        "toolmatrix diff old.lock toolmatrix.lock --exit-code",
        "toolmatrix diff toolmatrix.lock --target x86,arm",
        "toolmatrix diff archive:x86.tar archive:arm.tar --lock toolmatrix.lock",
        "toolmatrix diff host inventory:arm.json --json",
    ),
    own={"exit_code": EXIT_CODE, "no_store": NO_STORE},
)
def diff(
    old: Path,
    new: Path = "",
    *,
    target: Words = targets("Targets of the lock to compare, such as x86,arm"),
    platform: str = PLATFORM,
    lock: Path = "",
    everything: bool = ALL,
    directory: Path = "",
    store: Path | None = STORE,
    store_size: int = STORE_SIZE,
    matrix: Matrix = None,
) -> Report:
    """Compare locks, targets, images or machines.

    Of subjects `platform` names those of two images of one index, and a `lock` tells which differences are expected;
    `everything` lists these too. The answer is yes where nothing moved or is suspicious. Raises UsageError, LockError,
    SubjectError, NothingMatched.
    """
    words, folder = [os.fspath(one) for one in (old, new) if one], os.fspath(directory)
    if not any(validation.is_subject(word, _path(word, folder)) for word in words):
        locks = [(word, _lock(word, folder)) for word in words]
        opened = open_matrix(matrix)
        return _locks(opened.index, locks, targets_of(target, opened))
    # A lock that lies here by chance explains no difference: it counts where it was named.
    path = os.fspath(lock) if caller().is_flag("lock") else ""
    said = targets_of(target, matrix) if path else ()
    kept = layer_store(store, store_size)
    return _subjects(words, platform, path, said, folder, kept, everything=everything)


def _path(word: str, directory: str) -> str:
    return word if word == "-" else os.path.join(directory, word)


def _lock(word: str, directory: str) -> Lock:
    if word == "-":
        return lock_file.parse(caller().piped("a lock", lock_file.LARGEST + 1), "stdin")
    return lock_file.read(_path(word, directory))


def _locks(index: Index, held: Sequence[Named], said: Sequence[str]) -> Report:
    """The differences between locks, or between the two targets that are said or that they alone hold."""
    targets = _two(said) or _alone(index, [lock for _, lock in held])
    if targets:
        return _port(index, held, targets)
    if len(held) == 1:
        raise UsageError(
            "`diff` needs two locks, or two targets of one",
            expected="another lock, or `--target ONE,OTHER`",
            found=f"`{held[0][0]}`, which has {', '.join(held[0][1].held) or 'no target'}",
        )
    old, new = held
    found = compare.locks(old[1], new[1])
    return Report(
        words=partial(differences.text, index, old[1], new[1], found),
        document=partial(differences.document, index, old, new, found),
        exit_code=int(found.any),
    )


def _alone(index: Index, locks: Sequence[Lock]) -> tuple[str, ...]:
    """The targets of locks that have nothing else to compare: one lock with two, or two locks with one each."""
    order = {name: place for place, name in enumerate(index.header["targets"])}
    names = [
        tuple(sorted(lock.held, key=lambda name: (order.get(name, len(order)), name)))
        for lock in locks
    ]
    if len(locks) == 1:
        return names[0] if len(names[0]) == 2 else ()
    alone = all(len(part) == 1 for part in names)
    return (names[0][0], names[1][0]) if alone and names[0] != names[1] else ()


def _two(said: Sequence[str]) -> tuple[str, ...]:
    """The two targets that are said, none where none is."""
    named = tuple(dict.fromkeys(said))
    if named and len(named) != 2:
        raise UsageError(
            "two targets are compared",
            expected="`--target ONE,OTHER`",
            found=f"`--target {','.join(named)}`",
        )
    return named


def _port(index: Index, held: Sequence[Named], targets: Sequence[str]) -> Report:
    sides = []
    # The first and the last lock are the same where there is one.
    for name, (path, lock) in zip(targets, (held[0], held[-1]), strict=True):
        known = lock.held
        if name not in known:
            raise NothingMatched(
                f"{path} has no target `{name}`", expected=", ".join(known), found=f"`{name}`"
            )
        sides.append(port.Side(name=name, path=path, lock=lock, target=known[name]))
    document = port.document(index, *sides)
    return Report(
        words=partial(port.text, document, claims.Notes(index)),
        document=lambda: document,
        exit_code=int(port.differs(document)),
    )


def _subjects(
    words: Sequence[str],
    platform: str,
    lock: str,
    said: Sequence[str],
    directory: str,
    store: LayerStore | None,
    *,
    everything: bool,
) -> Report:
    subjects, platforms = list(words), platform.split(",")
    # Two platforms of one subject, or two subjects of one platform.
    if len(platforms) == 2:
        subjects *= 3 - len(subjects)
    elif len(platforms) == 1:
        platforms *= 2
    if len(subjects) != 2 or len(platforms) != 2:
        raise UsageError(
            "`diff` needs two subjects",
            expected="another, or `--platform ONE,OTHER` for two images of one index",
            found=" ".join(f"`{word}`" for word in (*subjects, platform) if word),
        )
    # They are called as they were named: a scheme that was only inferred would be news to the reader.
    one, other = (
        validation.observe(
            _named(word, directory), place, directory, piped_archive(), store=store
        ).replace(subject=word)
        for word, place in zip(subjects, platforms, strict=True)
    )
    targets, says = _explaining(lock, said, (one, other)) if lock else ((), None)
    found = comparison.compare(one, other, comparison.load(), host.load_readings().why, says)
    return Report(
        words=partial(report.text, found, everything=everything),
        document=partial(report.document, found, lock, targets),
        exit_code=int(found.count(SUSPICIOUS) > 0),
    )


def _named(word: str, directory: str) -> str:
    """A subject with its scheme, where the word is the path of a lock."""
    path = _path(word, directory)
    is_lock = os.path.isfile(path) and not validation.is_subject(word, path)
    return f"lock:{word}" if is_lock else word


def _explaining(
    path: str, said: Sequence[str], sides: tuple[Inventory, Inventory]
) -> tuple[tuple[str, str], tuple[Inventory, Inventory]]:
    """The target of a lock for either side, and what it says: those said, else as validate finds them."""
    baseline = Baseline().with_lock(path)
    one, other = (
        baseline.replace(targets=(name,) if name else ()).target(side)
        for name, side in zip(_two(said) or ("", ""), sides, strict=True)
    )
    held = baseline.held
    return (one, other), (
        validation.inventory(held[one], one),
        validation.inventory(held[other], other),
    )
