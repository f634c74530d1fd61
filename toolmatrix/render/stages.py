"""The stages that the driver of an image runs by the facts, which its check compares with a dry run of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from toolmatrix.errors import CannotSay, ToolMissing
from toolmatrix.facts.index import Index
from toolmatrix.request import compiles, driver_facts

if TYPE_CHECKING:
    from toolmatrix.lock.model import LockedTarget
    from toolmatrix.recipes.model import Probe
    from toolmatrix.stages.model import Stage

_SOURCES = {"nvcc": "probe.cu", "hipcc": "probe.hip"}
# What makes device code is compared whatever the order is, and what joins it only where that is sure.
_MAKING = ("cicc", "ptxas", "device-compile")
_JOINING = ("fatbinary", "device-link", "bundle")


def plan_stages(locked: LockedTarget, probes: Iterable[tuple[str, Probe]], index: Index) -> str:
    """What the check of an image finds in a dry run of its driver, comma between; empty without a driver or facts."""
    expected = compiles.expected("", locked)
    # An image for ROCm shows its release by a file, and has hipcc where the lock has flags for it.
    runs = any(probe.run[0] == "nvcc" for _, probe in probes) or bool(locked.flags.hipcc)
    if not (expected.family and runs):
        return ""
    try:
        plan, order = driver_facts.plan_from_facts(
            index, expected, ["-c", *expected.words], [_SOURCES[expected.family]]
        )
    except (CannotSay, ToolMissing):
        return ""
    found = {word for stage in plan.stages if (word := _compared(stage, sure=order.sure))} | set(
        _compiler(*expected.compiler, expected.family)
    )
    return ",".join(sorted(found))


def _compared(stage: Stage, *, sure: bool) -> str:
    if stage.kind in _MAKING or (sure and stage.kind in _JOINING):
        # Features of a target are no part of its name there.
        return f"{stage.tool} {(stage.arch or '').partition(':')[0]}".rstrip()
    return stage.tool if sure and stage.tool == "cudafe++" else ""


def _compiler(name: str, version: str, family: str) -> Iterator[str]:
    # nvcc takes the gcc of PATH, which is that of the lock; which the check knows by its major version.
    if name == "gcc" and family == "nvcc" and (found := re.match(r"\d+", version)):
        yield f"gcc {found[0]}"
