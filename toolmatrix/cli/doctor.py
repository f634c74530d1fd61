"""`toolmatrix doctor`: whether this machine is ready, by the facts or for a lock."""

from __future__ import annotations

import os

from toolmatrix.cli import ask, clock
from toolmatrix.cli.judging import Yardstick
from toolmatrix.cli.validate import EXIT, FORMS
from toolmatrix.errors import NothingMatched
from toolmatrix.finding import outcome
from toolmatrix.inventory import host
from toolmatrix.judge import machine
from toolmatrix.report import terminal
from toolmatrix.report.verdicts import Judged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.lock.model import LockedTarget

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
    stick = _yardstick(context)
    target = stick.target(inventory) if stick.lock else ""
    held = _held(context, inventory, stick.held.get(target))
    judged = Judged(
        subject="this machine",
        platform=inventory.platform,
        lock=stick.path,
        lock_digest=stick.digest,
        target=target,
        verdicts=tuple(machine.judge(held, options.only)),
    )
    context.write(FORMS[options.format](context, [judged]))
    return EXIT[outcome(judged.verdicts)]


def _held(context: Context, inventory: Inventory, target: LockedTarget | None) -> machine.Setting:
    return machine.Setting(
        inventory=inventory,
        index=context.index(),
        today=clock.today(context.env),
        target=target,
    )


def _yardstick(context: Context) -> Yardstick:
    """The lock that was named, or lies here; without one, facts alone."""
    path = context.options.lock
    if context.origins["lock"].kind != "flag" and not os.path.exists(path):
        return Yardstick()
    from toolmatrix.lock import read, write

    lock = read.read(path)
    flag = context.origins["target"].kind == "flag"
    named = ask.settled(context, context.index()).target if flag else ()
    return Yardstick(lock=lock, path=path, digest=write.digest(lock), targets=named)


def _list(context: Context) -> int:
    if context.options.format == "json":
        checks = {name: about for name, (about, _) in machine.CHECKS.items()}
        context.write_json({"schema": SCHEMA, "checks": checks})
        return 0
    rows = [(name, about) for name, (about, _) in machine.CHECKS.items()]
    context.write("".join(line + "\n" for line in terminal.columns(rows)))
    return 0
