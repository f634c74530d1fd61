"""`toolmatrix diff`: what moved between two locks, or what is not the same on two targets."""

from __future__ import annotations

from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.lock import compare, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock, LockedTarget

    Named = tuple[str, Lock]
    """A lock and its path."""


def run(context: Context) -> int:
    """Print the differences and return 0, or 1 with `--exit-code` when a value differs."""
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
    flag = (
        context.origins["target"].kind == "flag"
    )  # a setting says where things run, not what to compare
    said = tuple(dict.fromkeys(context.options.target)) if flag else ()
    if said:
        if len(said) != 2:
            raise UsageError(
                "two targets are compared",
                expected="`--target ONE,OTHER`",
                found=f"`--target {','.join(said)}`",
            )
        return said
    order = {name: place for place, name in enumerate(index.header["targets"])}
    names = [
        tuple(sorted(_targets(lock), key=lambda name: (order.get(name, len(order)), name)))
        for lock in locks
    ]
    if len(locks) == 1:
        return names[0] if len(names[0]) == 2 else ()
    alone = all(len(part) == 1 for part in names)
    return (names[0][0], names[1][0]) if alone and names[0] != names[1] else ()


def _targets(lock: Lock) -> dict[str, LockedTarget]:
    """The targets of a lock, whatever environment asks for them; of one name the last."""
    return {
        name: target
        for environment in lock.environments.values()
        for name, target in environment.targets.items()
    }


def _listed(lock: Lock) -> str:
    return ", ".join(_targets(lock))


def _port(context: Context, index: Index, held: Sequence[Named], targets: Sequence[str]) -> int:
    from toolmatrix.report import port

    sides = []
    for name, (path, lock) in zip(targets, (held[0], held[-1]), strict=True):
        known = _targets(lock)
        if name not in known:
            raise NothingMatched(
                f"{path} holds no target `{name}`", expected=_listed(lock), found=f"`{name}`"
            )
        sides.append(port.Side(name=name, path=path, lock=lock, target=known[name]))
    found = port.Port(index, sides[0], sides[1])
    if context.options.format == "json":
        context.write_json(port.document(found))
    else:
        context.write(port.text(found, context.terminal))
    return int(context.options.exit_code and found.differs)


def _read(context: Context, argument: str) -> Lock:
    """The lock at a path, or on stdin."""
    if argument == "-":
        return read.parse(context.piped.read("a lock", read.LARGEST + 1), "stdin")
    return read.read(context.path(argument))
