"""`toolmatrix doctor`."""

from __future__ import annotations

import os

from toolmatrix.api import Matrix, Path, Report, Words, split_words, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import Validation, targets_of
from toolmatrix.cli.context import Context
from toolmatrix.command import PRINTED, command
from toolmatrix.command import options as shared
from toolmatrix.command.option import option
from toolmatrix.documents import Literal, TypedDict
from toolmatrix.errors import NothingMatched
from toolmatrix.finding import Judged
from toolmatrix.inspection import host, system
from toolmatrix.judging import machine
from toolmatrix.judging.validation import Baseline
from toolmatrix.report import terminal


class ChecksDocument(TypedDict):
    """What `toolmatrix doctor --list-checks --json` prints: each check by name, with what it looks at."""

    schema: Literal["toolmatrix.checks/1"]
    checks: dict[str, str]


def _list_checks(context: Context) -> Report | None:
    if not context.options.list_checks:
        return None
    checks = {name: about for name, (about, _) in machine.CHECKS.items()}
    document: ChecksDocument = {"schema": "toolmatrix.checks/1", "checks": checks}
    text = "".join(f"{line}\n" for line in terminal.columns(checks.items()))
    return Report(
        words=lambda _: text,
        document=lambda: document,
        forms=dict.fromkeys(("junit", "github"), lambda: text),
    )


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
    own={
        "list_checks": option(
            "--list-checks", kind="flag", configurable=False, help="List the checks"
        )
    },
    before=_list_checks,
)
def doctor(
    *,
    lock: Path = "",
    target: Words = shared.targets("Target of the lock to check this machine for"),
    only: Words = shared.only("Run only these checks; repeatable"),
    directory: Path = "",
    matrix: Matrix = None,
) -> Validation:
    """Check whether this machine is ready.

    It is judged by the facts, or for a target of a lock; `only` names some of the checks, `directory` is where caches
    and builds would lie. Raises NothingMatched, LockError.
    """
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
    inventory = system.observe(host.HERE, os.path.abspath(os.fspath(directory) or "."))
    baseline = Baseline().with_lock(path)
    chosen = baseline.replace(targets=targets).target(inventory) if path else ""
    here = machine.MachineContext(
        inventory=inventory,
        index=opened.index,
        today=this_day(calling.env),
        target=baseline.locked_targets.get(chosen),
    )
    subject = Judged(
        subject="this machine",
        platform=inventory.platform,
        lock=baseline.path,
        lock_digest=baseline.digest,
        target=chosen,
        verdicts=tuple(machine.judge(here, checks)),
    )
    return Validation(subjects=(subject,))
