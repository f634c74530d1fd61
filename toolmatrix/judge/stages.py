"""Judges plans of nvcc, hipcc and clang against the matrix: one finding for each thing worth saying, at its stage."""

from __future__ import annotations

from toolmatrix.codes import plans as codes
from toolmatrix.errors import Position
from toolmatrix.finding import united
from toolmatrix.judge import (
    stage_answer,
    stage_archs,
    stage_devices,
    stage_flags,
    stage_images,
)
from toolmatrix.judge.stage_facts import SASS, Toolkit
from toolmatrix.judge.stage_flags import ADDED
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeVar

    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Finding
    from toolmatrix.judge.stage_answer import Answered
    from toolmatrix.stages.model import Plan, Stage

    Found = TypeVar("Found", bound=Finding)


class Here(Value):
    """The machine that a plan will run on; `has_program(program, PATH)` takes an empty PATH where none is known."""

    has_program: Callable[[str, str], bool]
    has_file: Callable[[str], bool]


class PlanContext:
    """A plan with its toolkit, and what else its judges share.

    `asked` are the words of the driver's command line, None where they are not known. `here` is given only for a plan
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
        added = [word for name in ADDED for word in plan.env.get(name, "").split()]
        self.asked = None if asked is None else (*asked, *(word.strip('"') for word in added))
        self.here = here
        self.toolkit = Toolkit(index, *toolkit_of(plan))
        self.lines: dict[int | None, int] = {one.id: one.line for one in plan.stages}
        # Each arch with the first stage that makes code for it, which is where a finding about it is shown.
        self.archs: dict[str, Stage] = {}
        for stage in plan.stages:
            if stage.arch:
                self.archs.setdefault(stage.arch, stage)

    def placed(self, finding: Found, stage: int | None, line: int = 0) -> Found:
        """A finding of this plan, at the line given, at that of its stage, or where the plan begins."""
        line = line or self.lines.get(stage, self.plan.line)
        return finding.replace(
            component=self.toolkit.component,
            releases=self.toolkit.releases,
            plan=self.number,
            stage=stage,
            where=Position(self.path, line) if self.path else None,
        )


def toolkit_of(plan: Plan) -> tuple[str, str]:
    """The component of the matrix that makes the code of a plan, and its version."""
    if plan.tool == "nvcc":
        return "cuda", plan.version
    # clang tells its cc1 which CUDA it was given (`-target-sdk-version`); for AMD it makes the code itself.
    for stage in plan.stages:
        if (stage.arch or "").startswith(SASS):
            versions = [word for word in stage.argv if word.startswith("-target-sdk-version=")]
            return "cuda", versions[0].partition("=")[2] if versions else ""
    return "clang", plan.version


def findings(
    plans: Sequence[Plan],
    index: Index,
    devices: Sequence[str] = (),
    *,
    path: str = "",
    asked: Sequence[str] | None = None,
    here: Here | None = None,
    answered: Answered | None = None,
) -> list[Finding]:
    """The findings about the plans of a log, in their order, then for each device whether it runs all of them.

    `devices` are devices of the matrix (`8.6`, `gfx90a`, `gfx90a:xnack+`). `path` names the log, for places. `asked`
    are the words of the driver's command line where they are known, `here` is the machine of plans that run here,
    `answered` the answer that they are for. A finding about one plan has its number; one about all has none.
    """
    held: list[Finding] = []
    answers: dict[str, list[codes.DeviceFinding]] = {
        device: [] for device in dict.fromkeys(devices)
    }
    for number, (plan, code) in enumerate(zip(plans, stage_images.codes(plans), strict=True)):
        context = PlanContext(plan, index, number=number, path=path, asked=asked, here=here)
        held += stage_answer.findings(context, answered) if answered else ()
        held += stage_archs.findings(context, code.parts)
        held += stage_flags.findings(context, code)
        for device, known in answers.items():
            answer = stage_devices.answer(index, device, code)
            if answer is not None:
                known.append(answer)
                held.append(_placed(context, answer))
    return [*held, *_total(answers)]


def _placed(context: PlanContext, answer: codes.DeviceFinding) -> Finding:
    if isinstance(answer, codes.RunsByPtx):
        driver, row = stage_devices.driver(context.index, context.toolkit.releases)
        facts = (*answer.facts, row) if row else answer.facts
        answer = answer.replace(driver=driver, facts=facts)
    # The part that decides may be of an earlier plan, whose stages have other numbers.
    return context.placed(answer, answer.stage if answer.plan == context.number else None)


def _total(answers: dict[str, list[codes.DeviceFinding]]) -> Iterator[Finding]:
    # One answer is its plan's own finding; none at all is a finding, too.
    for device, held in answers.items():
        decides = stage_devices.worst(held)
        code = type(decides) if decides else codes.CannotTell
        if len(held) != 1:
            yield code(
                severity=stage_devices.SEVERITIES[code],
                device=device,
                holding=len(held),
                running=sum(one.answer == "yes" for one in held),
                facts=united(held, "facts"),
            )
