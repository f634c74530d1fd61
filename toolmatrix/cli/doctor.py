"""`toolmatrix doctor`: whether this machine is ready, by the facts or for a lock."""

from __future__ import annotations

import os

from toolmatrix.cli import clock
from toolmatrix.cli.validate import show, targets
from toolmatrix.errors import NothingMatched
from toolmatrix.finding import Judged
from toolmatrix.inventory import host
from toolmatrix.judge import machine
from toolmatrix.judge.validator import Baseline
from toolmatrix.report import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context

SCHEMA = "toolmatrix.checks/1"


def run(context: Context) -> int:
    """Print the verdicts and return 0 when the machine is ready, 1 when something is wrong, 4 when nobody can say."""
    options = context.options
    if options.list_checks:
        return _list(context)
    odd = next((name for name in options.only if name not in machine.CHECKS), "")
    if odd:
        raise NothingMatched(
            f"no check is called `{odd}`",
            expected="one of " + ", ".join(machine.CHECKS),
            found=f"`--only {odd}`",
            help="`toolmatrix doctor --list-checks` says what each looks at",
        )
    inventory = host.observe(host.HERE, os.path.abspath(options.directory or "."))
    path = options.lock
    if context.origins["lock"].kind != "flag" and not os.path.exists(path):
        path = ""
    baseline = Baseline().with_lock(path)
    if path:
        baseline = baseline.replace(targets=targets(context))
    target = baseline.target(inventory) if path else ""
    machine_context = machine.MachineContext(
        inventory=inventory,
        index=context.index(),
        today=clock.today(context.env),
        target=baseline.held.get(target),
    )
    judged = Judged(
        subject="this machine",
        platform=inventory.platform,
        lock=baseline.path,
        lock_digest=baseline.digest,
        target=target,
        verdicts=tuple(machine.judge(machine_context, options.only)),
    )
    show(context, [judged])
    return judged.exit_code


def _list(context: Context) -> int:
    if context.options.format == "json":
        checks = {name: about for name, (about, _) in machine.CHECKS.items()}
        context.write_json({"schema": SCHEMA, "checks": checks})
        return 0
    rows = [(name, about) for name, (about, _) in machine.CHECKS.items()]
    context.write("".join(line + "\n" for line in terminal.columns(rows)))
    return 0
