"""A plan as its judges see it: the toolkit it belongs to, what was asked for, and how a finding about it is made."""

from __future__ import annotations

from toolmatrix.errors import Position
from toolmatrix.finding import Finding
from toolmatrix.judge.stage_facts import SASS, Toolkit
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.stages.model import Plan, Stage

_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


class Here(Value):
    """Where a plan will run: `has_program(program, PATH)`, with an empty PATH where none is known, and `has_file`."""

    has_program: Callable[[str, str], bool]
    has_file: Callable[[str], bool]


class Setting:
    """What the judges of one plan share.

    `asked` are the words of the driver's command line, None where nobody knows them. `here` is given only for a plan
    that belongs to this machine.
    """

    def __init__(
        self,
        plan: Plan,
        index: Index,
        *,
        number: int = 0,
        path: str = "",
        asked: Sequence[str] | None = None,
        here: Here | None = None,
    ) -> None:
        self.plan = plan
        self.index = index
        self.number = number
        self.path = path
        self.asked = None if asked is None else (*asked, *_more(plan))
        self.here = here
        self.toolkit = Toolkit(index, *toolkit_of(plan))
        self.lines: dict[int | None, int] = {one.id: one.line for one in plan.stages}
        self.archs: dict[str, Stage] = {}
        for stage in plan.stages:
            if stage.arch:
                self.archs.setdefault(stage.arch, stage)

    def finding(
        self, code: str, severity: str, stage: int | None, line: int = 0, **fields: Any
    ) -> Finding:
        """A finding about this plan, at the line given, at that of its stage, or where the plan begins."""
        if not line:
            line = self.lines.get(stage, self.plan.line)
        held: dict[str, Any] = {"component": self.toolkit.component}
        held["releases"] = self.toolkit.releases
        where = Position(self.path, line) if self.path else None
        return Finding(
            code=code,
            severity=severity,
            plan=self.number,
            stage=stage,
            where=where,
            **(held | fields),
        )


def toolkit_of(plan: Plan) -> tuple[str, str]:
    """The component of the matrix that makes the code of a plan, and its version.

    CUDA for nvcc, and for clang the CUDA that it was given (`-target-sdk-version`, a word of cc1 for NVIDIA); clang
    itself for what it makes for AMD.
    """
    if plan.tool == "nvcc":
        return "cuda", plan.version
    for stage in plan.stages:
        if (stage.arch or "").startswith(SASS):
            versions = [word for word in stage.argv if word.startswith("-target-sdk-version=")]
            return "cuda", versions[0].partition("=")[2] if versions else ""
    return "clang", plan.version


def _more(plan: Plan) -> list[str]:
    """The words that nvcc adds to its command line from its environment."""
    return [word.strip('"') for name in _FLAGS for word in plan.env.get(name, "").split()]
