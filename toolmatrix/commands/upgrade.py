"""`toolmatrix upgrade`."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import request_context
from toolmatrix.command import PRINTED, command
from toolmatrix.request import upgrades as asking
from toolmatrix.request.fields import Fields, given
from toolmatrix.request.read import read as reading
from toolmatrix.solve.resolve import Resolution, possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.api import Matrix, Path
    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import LockedEnvironment
    from toolmatrix.request.upgrades import Moved, Newer, Upgrades


@command(
    group="Lock and build",
    order=2,
    usage="[LOCK]",
    completer="file",
    formats=PRINTED,
    does="solving",
    examples=("toolmatrix upgrade", "toolmatrix upgrade old.lock --json"),
)
def upgrade(lock: Path = "toolmatrix.lock", *, matrix: Matrix = None) -> Report:
    """Show possible upgrades of a lock, and what prevents others.

    Each is shown with what would move with it and with the command that writes it; nothing is written. Raises
    LockError, and NothingMatched or UsageError where what the lock answers cannot be asked of this matrix.
    """
    from toolmatrix.lock.lock_file import read
    from toolmatrix.report import upgrades as report

    path, place = os.fspath(lock), request_context(matrix)
    index, held = place.index, read(path)
    # Only what a request by itself answers can be written anew by one.
    single = len(held.environments) == 1
    examined = {}
    for name, environment in sorted(held.environments.items()):
        with caller().progress("solving", "components") as progress:
            upgrades = asking.upgrades(index, environment, progress.at)
        examined[name] = report.Examined(
            upgrades=upgrades,
            moved=tuple(_moved(environment, upgrades)),
            commands=_commands(index, path, place.carried, environment, upgrades) if single else {},
        )
    document = report.document(index, path, held, examined)
    refused = any(not isinstance(one.upgrades.answer, Resolution) for one in examined.values())
    return Report(
        words=partial(report.text, index, document),
        document=lambda: document,
        exit_code=int(refused),
    )


def _moved(held: LockedEnvironment, found: Upgrades) -> list[Moved]:
    """What is answered otherwise today although what is held is preferred."""
    if not isinstance(found.answer, Resolution):
        return []
    known = {one[:2] for one in found.unknown}
    return [
        asking.Moved(target, name, one.version, new)
        for target, part in held.targets.items()
        for name, one in part.components.items()
        # A floor, such as that of a driver, follows from the rest; what this matrix does not know is told by itself.
        if not one.floor
        and (target, name) not in known
        and (new := found.answer.chosen(target).get(name, "")) != one.version
    ]


def _commands(
    index: Index,
    path: str,
    carried: Sequence[str],
    held: LockedEnvironment,
    found: Upgrades,
) -> Mapping[tuple[str, str], str]:
    import shlex

    commands = {}
    for one in found.components:
        for move in (one.move, one.further):
            if move is None:
                continue
            words = ["toolmatrix", "lock", *move.words, "--keep", path]
            # `--keep` would hold what follows from what was asked for, too; `--upgrade` lets go of it.
            if one.asked:
                words = ["toolmatrix", "lock", *move.words, "--upgrade", one.component]
            # The shortest command that writes the move, and the one that leaves the request as it is.
            elif _upgrades_to(index, held, one.component, move):
                words = ["toolmatrix", "lock", "--upgrade", one.component]
            words += ["--lock", path] if path != "toolmatrix.lock" else []
            commands[one.component, move.version] = shlex.join([*words, *carried])
    return commands


def _upgrades_to(index: Index, held: LockedEnvironment, component: str, move: Newer) -> bool:
    """True if letting a component move gives what a move says."""
    fields = Fields(**given(held.request))
    keep = asking.letting(index, held, {component})
    alone = possible(index, reading(index, fields, keep=keep))
    if alone is None:
        return False
    # Of the answer as a whole: the same release with others beside it is another move.
    wanted = move.resolution
    return all(alone.chosen(target) == wanted.chosen(target) for target in wanted.targets)
