"""`toolmatrix doctor`: whether this machine is ready, by the facts or for a lock."""

from __future__ import annotations

import os

from toolmatrix.api import subjects
from toolmatrix.cli.validate import targets
from toolmatrix.judge import machine
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
    path = options.lock
    if context.origins["lock"].kind != "flag" and not os.path.exists(path):
        path = ""
    judged = subjects.ready(
        context.index(),
        path,
        targets(context) if path else (),
        options.only,
        options.directory,
        context.env,
    )
    return context.give(subjects.report([judged]))


def _list(context: Context) -> int:
    if context.options.format == "json":
        checks = {name: about for name, (about, _) in machine.CHECKS.items()}
        context.write_json({"schema": SCHEMA, "checks": checks})
        return 0
    rows = [(name, about) for name, (about, _) in machine.CHECKS.items()]
    context.write("".join(line + "\n" for line in terminal.columns(rows)))
    return 0
