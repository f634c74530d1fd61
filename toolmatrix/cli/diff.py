"""`toolmatrix diff`: what moved between two locks, what is not the same on two targets, or in two environments."""

from __future__ import annotations

import os

from toolmatrix.cli.validate import targets
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.judge import locked
from toolmatrix.judge.validator import Baseline
from toolmatrix.lock import compare, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.lock.model import Lock

    Named = tuple[str, Lock]
    """A lock and its path."""


def run(context: Context) -> int:
    """Print the differences and return 0, or 1 with `--exit-code` when a value moved or is suspicious."""
    if any(locked.is_subject(word, context.path(word)) for word in context.arguments):
        return _environments(context)
    held = [(path, _read(context, path)) for path in context.arguments]
    index = context.index()
    targets = _two_targets(context, index, [lock for _, lock in held])
    if targets:
        return _port(context, index, held, targets)
    if len(held) == 1:
        raise UsageError(
            "`diff` needs two locks, or two targets of one",
            expected="another lock, or `--target ONE,OTHER`",
            found=f"`{held[0][0]}`, which holds {_listed(held[0][1]) or 'no target'}",
        )
    (_, old), (_, new) = held
    found = compare.locks(old, new)
    from toolmatrix.report import differences

    if context.options.format == "json":
        context.write_json(differences.document(index, held[0], held[1], found))
    else:
        context.write(differences.text(index, old, new, found, context.terminal))
    return int(context.options.exit_code and found.any)


def _two_targets(context: Context, index: Index, locks: Sequence[Lock]) -> tuple[str, ...]:
    """The two targets to hold side by side: those said, else those of locks that have nothing else to compare."""
    said = _said(context)
    if said:
        return said
    order = {name: place for place, name in enumerate(index.header["targets"])}
    names = [
        tuple(sorted(lock.held, key=lambda name: (order.get(name, len(order)), name)))
        for lock in locks
    ]
    if len(locks) == 1:
        return names[0] if len(names[0]) == 2 else ()
    alone = all(len(part) == 1 for part in names)
    return (names[0][0], names[1][0]) if alone and names[0] != names[1] else ()


def _said(context: Context) -> tuple[str, ...]:
    """The two targets of `--target`; a setting says where things run, not what to compare."""
    said = tuple(dict.fromkeys(targets(context)))
    if said and len(said) != 2:
        raise UsageError(
            "two targets are compared",
            expected="`--target ONE,OTHER`",
            found=f"`--target {','.join(said)}`",
        )
    return said


def _listed(lock: Lock) -> str:
    return ", ".join(lock.held)


def _port(context: Context, index: Index, held: Sequence[Named], targets: Sequence[str]) -> int:
    from toolmatrix.report import claims, port

    sides = []
    for name, (path, lock) in zip(targets, (held[0], held[-1]), strict=True):
        known = lock.held
        if name not in known:
            raise NothingMatched(
                f"{path} holds no target `{name}`", expected=_listed(lock), found=f"`{name}`"
            )
        sides.append(port.Side(name=name, path=path, lock=lock, target=known[name]))
    document = port.document(index, *sides)
    if context.options.format == "json":
        context.write_json(document)
    else:
        context.write(port.text(document, claims.Notes(index), context.terminal))
    return int(context.options.exit_code and port.differs(document))


def _environments(context: Context) -> int:
    """Compare two subjects, whatever each of them is."""
    from toolmatrix.inventory import readings
    from toolmatrix.inventory.model import SUSPICIOUS
    from toolmatrix.judge import comparison, porting
    from toolmatrix.report import comparison as report

    options = context.options
    words = list(context.arguments)
    platforms = options.platform.split(",")
    if len(platforms) == 2:
        words *= 3 - len(words)
    elif len(platforms) == 1:
        platforms *= 2
    if len(words) != 2 or len(platforms) != 2:
        raise UsageError(
            "`diff` needs two subjects",
            expected="another, or `--platform ONE,OTHER` for two images of one index",
            found=" ".join(f"`{word}`" for word in (*words, options.platform) if word),
        )
    stdin = getattr(context.stdin, "buffer", None)
    one, other = (
        locked.observe(_named(context, word), platform, options.directory, stdin).replace(
            subject=word
        )
        for word, platform in zip(words, platforms, strict=True)
    )
    lock, targets = _explaining(context, (one, other))
    says = [locked.inventory(lock.held[name], name) for name in targets] if lock else []
    found = comparison.compare(
        one, other, porting.load(), readings.load().why, (says[0], says[1]) if says else None
    )
    if options.format == "json":
        context.write_json(report.document(found, options.lock if lock else "", targets))
    else:
        context.write(report.text(found, context.terminal, everything=options.all))
    return int(options.exit_code and found.count(SUSPICIOUS) > 0)


def _named(context: Context, word: str) -> str:
    """A subject with its scheme, where the word is the path of a lock."""
    path = context.path(word)
    is_lock = os.path.isfile(path) and not locked.is_subject(word, path)
    return f"lock:{word}" if is_lock else word


def _explaining(
    context: Context, sides: tuple[Inventory, Inventory]
) -> tuple[Lock | None, tuple[str, ...]]:
    """The lock of `--lock`, and the target in it of either side: those of `--target`, else as validate finds them."""
    if context.origins["lock"].kind != "flag":
        return None, ()
    path = context.options.lock
    lock = read.read(context.path(path))
    said = _said(context) or (None, None)
    return lock, tuple(
        Baseline(lock=lock, path=path, targets=(name,) if name else ()).target(side)
        for name, side in zip(said, sides, strict=True)
    )


def _read(context: Context, argument: str) -> Lock:
    """The lock at a path, or on stdin."""
    if argument == "-":
        return read.parse(context.piped.read("a lock", read.LARGEST + 1), "stdin")
    return read.read(context.path(argument))
