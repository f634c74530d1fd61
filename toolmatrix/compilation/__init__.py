"""Look inside nvcc, hipcc and clang without running what they run.

    from toolmatrix.compilation import parse
    plan = parse(open("dryrun.log").read())
    for stage in plan.stages:
        print(stage.kind, stage.arch, stage.inputs, stage.outputs)
    plan.edges, plan.critical_path(), plan.to_json()

`parse` takes the text of one invocation, `parse_log` a log of any number of them.
"""

from __future__ import annotations

from toolmatrix.compilation.log_file import parse_log
from toolmatrix.compilation.model import Diagnostic, Log, Plan, Stage

__all__ = ["Diagnostic", "Log", "Plan", "Stage", "parse", "parse_log"]


def parse(text: str) -> Plan:
    """The plan of the only invocation in a text; raises ValueError if that is none or several, TypeError for bytes."""
    if not isinstance(text, str):
        raise TypeError(f"the text of a log is str, not {type(text).__name__}")
    log = parse_log(text.split("\n"))
    if len(log.plans) != 1:
        raise ValueError(f"the text contains {len(log.plans)} invocations, not one; use parse_log")
    return log.plans[0]
