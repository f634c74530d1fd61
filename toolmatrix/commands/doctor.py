"""`toolmatrix doctor`."""

from __future__ import annotations

import os

from toolmatrix.api import subjects
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import only, targets
from toolmatrix.commands._subjects import give_verdicts, targets_of
from toolmatrix.documents import Literal, TypedDict
from toolmatrix.judge import machine
from toolmatrix.report import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


class ChecksDocument(TypedDict):
    """What `toolmatrix doctor --list-checks --json` prints: each check by name, with what it looks at."""

    schema: Literal["toolmatrix.checks/1"]
    checks: dict[str, str]


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
        "target": targets("Target of the lock to check this machine for"),
        "only": only("Run only these checks; repeatable"),
        "list_checks": option(
            "--list-checks", kind="flag", configurable=False, help="List the checks"
        ),
    },
)
def run(context: Context) -> int:
    """Check whether this machine is ready.

    Print the verdicts and return 0 when the machine is ready, 1 when something is wrong, 4 when nobody can say.
    """
    options = context.options
    if options.list_checks:
        return _checks(context)
    path = options.lock
    # Without a lock the machine is judged by the facts alone.
    if context.origins["lock"].kind != "flag" and not os.path.exists(path):
        path = ""
    judged = subjects.ready(
        context.index(),
        path,
        targets_of(context) if path else (),
        options.only,
        options.directory,
        context.env,
    )
    return give_verdicts(context, [judged], alone=True)


def _checks(context: Context) -> int:
    checks = {name: about for name, (about, _) in machine.CHECKS.items()}
    if context.options.format == "json":
        document: ChecksDocument = {"schema": "toolmatrix.checks/1", "checks": checks}
        context.write_json(document)
    else:
        context.write("".join(line + "\n" for line in terminal.columns(checks.items())))
    return 0
