"""`toolmatrix doctor`."""

from __future__ import annotations

import os

from toolmatrix.api import PLAIN, split_words, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import Validation, targets_of
from toolmatrix.command import PRINTED, command
from toolmatrix.command import options as shared
from toolmatrix.command.option import option
from toolmatrix.errors import NothingMatched
from toolmatrix.inventory import host
from toolmatrix.judge import machine
from toolmatrix.judge.validation import Baseline
from toolmatrix.report import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.api import Matrix, Path, Words
    from toolmatrix.report.terminal import Terminal

_SUBJECT = "this machine"


class ListedChecks(Validation):
    """The checks of this machine, none of which was made."""

    @property
    def exit_code(self) -> int:
        """0: nothing is wrong."""
        return 0

    def text(self, screen: Terminal = PLAIN) -> str:
        """A line for each check."""
        del screen
        lines = terminal.columns((name, about) for name, (about, _) in machine.CHECKS.items())
        return "".join(f"{line}\n" for line in lines)

    def to_json(self) -> dict[str, Any]:
        """The document `toolmatrix.checks/1`."""
        checks = {name: about for name, (about, _) in machine.CHECKS.items()}
        return {"schema": "toolmatrix.checks/1", "checks": checks}


@command(
    group="Inspect files, images and machines",
    order=6,
    does="checking this machine",
    formats=("text", "json", "junit", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix doctor",
        "toolmatrix doctor --lock toolmatrix.lock --target x86",
        "toolmatrix doctor --only engine,driver",
    ),
)
def doctor(
    *,
    lock: Path = "",
    target: Words = shared.targets("Target of the lock to check this machine for"),
    only: Words = shared.only("Run only these checks; repeatable"),
    list_checks: bool = option("--list-checks", configurable=False, help="List the checks"),
    directory: Path = "",
    matrix: Matrix = None,
) -> Validation:
    """Check whether this machine is ready.

    It is judged by the facts, or for a target of a lock; `only` names some of the checks, which `list_checks` lists
    instead. `directory` is where caches and builds would lie. Raises NothingMatched, LockError.
    """
    if list_checks:
        return ListedChecks(subject=_SUBJECT, verdicts=())
    calling, checks = caller(), split_words(only)
    # A setting or a variable may name a lock that is not written yet.
    path = os.fspath(lock) if calling.is_flag("lock") or os.path.exists(lock) else ""
    opened = open_matrix(matrix)
    targets = targets_of(target, opened) if path else ()
    odd = next((name for name in checks if name not in machine.CHECKS), "")
    if odd:
        raise NothingMatched(
            f"unknown check `{odd}`",
            expected="one of " + ", ".join(machine.CHECKS),
            found=f"`--only {odd}`",
            help="`toolmatrix doctor --list-checks` describes each check",
        )
    inventory = host.observe(host.HERE, os.path.abspath(os.fspath(directory) or "."))
    baseline = Baseline().with_lock(path)
    chosen = baseline.replace(targets=targets).target(inventory) if path else ""
    here = machine.MachineContext(
        inventory=inventory,
        index=opened.index,
        today=this_day(calling.env),
        target=baseline.held.get(chosen),
    )
    return Validation(
        subject=_SUBJECT,
        platform=inventory.platform,
        lock=baseline.path,
        lock_digest=baseline.digest,
        target=chosen,
        verdicts=tuple(machine.judge(here, checks)),
    )
