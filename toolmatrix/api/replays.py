"""The cost of a plan, and of a run of it; each prints as `toolmatrix stages` prints it."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.api import PLAIN, Printed
from toolmatrix.report.terminal import Terminal
from toolmatrix.stages.cost import Cost
from toolmatrix.stages.execute import Run
from toolmatrix.stages.model import SCHEMA, Plan
from toolmatrix.stages.replay import Replay
from toolmatrix.stages.verify import Reproduction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.api.stages import StagesDocument


class Costed(Printed):
    """The cost of a plan: by arch, along its critical path, and on other numbers of cores."""

    def __init__(self, plan: Plan, replay: Replay, cost: Cost) -> None:
        self.plan = plan
        self.replay = replay
        self.cost = cost

    def lines(self, screen: Terminal) -> list[str]:
        """The lines that the command prints."""
        from toolmatrix.report.stage_cost import cost_lines

        return cost_lines(self.cost, self.replay.steps, screen)

    def text(self, screen: Terminal = PLAIN) -> str:
        """The text that the command prints."""
        return "\n".join(self.lines(screen)) + "\n"

    def to_json(self) -> StagesDocument:
        """The document `toolmatrix.stages/1` with the cost of its plan."""
        plan = self.plan.to_json()
        plan["cost"] = self.cost.to_json()
        return {"schema": SCHEMA, "plans": [plan], "diagnostics": []}


class Ran(Costed):
    """A plan that was run, what that took, and each result beside the driver's own where that was asked."""

    def __init__(
        self,
        plan: Plan,
        replay: Replay,
        cost: Cost,
        measured: Run,
        reproductions: Sequence[Reproduction] | None,
    ) -> None:
        super().__init__(plan, replay, cost)
        self.measured = measured
        self.reproductions = reproductions

    @property
    def exit_code(self) -> int:
        """0, or 1 when a result differs from the driver's own."""
        return int(not all(one.identical for one in self.reproductions or ()))

    def lines(self, screen: Terminal) -> list[str]:
        """The lines that the command prints."""
        from toolmatrix.report import stage_cost

        kinds = {stage.id: stage.kind for stage in self.plan.stages}
        return [
            *stage_cost.left_out_lines(self.replay, kinds, screen),
            *stage_cost.run_lines(self.replay, self.measured),
            "",
            *stage_cost.cost_lines(self.cost, self.replay.steps, screen, self.measured),
            *([""] if self.reproductions else []),
            *stage_cost.verdict_lines(self.reproductions or (), screen),
        ]

    def to_json(self) -> StagesDocument:
        """The document `toolmatrix.stages/1` with the run of its plan."""
        document = super().to_json()
        plan = document["plans"][0]
        plan["run"] = self.measured.to_json()
        if self.reproductions is not None:
            plan["verdicts"] = [one.to_json() for one in self.reproductions]
        return document
