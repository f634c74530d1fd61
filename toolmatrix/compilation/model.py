"""Plans of dry runs: their stages, the edges between these, and diagnostics of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from toolmatrix.documents import Annotated, Any, Count, NotRequired, Ordinal, Pair, TypedDict
from toolmatrix.value import Document, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.compilation.cost import CostEntry
    from toolmatrix.compilation.execute import Run
    from toolmatrix.compilation.verify import Reproduction

    Edges = Iterable[tuple[int, int]]

SCHEMA = "toolmatrix.stages/1"

# Kinds of stages; `other` is a program or a use of one that is not known.
KINDS = (
    # What nvcc and clang both do.
    *("preprocess", "host-compile", "ptxas", "nvlink", "fatbinary", "link", "other"),
    # What only nvcc does.
    *("cudafe", "cicc", "tileiras", "hash"),
    # What only clang does, and hipcc, which calls it.
    *("device-compile", "device-link", "bundle", "unbundle", "package", "linker-wrapper"),
    "assemble",
)


class Stage(Document):
    """One program that the driver would run.

    `id` counts from 0 in the order of the log, `line` from 1. `tool` is the base name of the program. `arch` is
    `compute_NN`, `sm_NN` or `gfxNNN...`, None for host work and for what joins several. `inputs` and `outputs` are
    paths as printed, without what comes with the toolkit or the system, and with what is read without being named.
    `argv` are the words as the tool meant them, `text` the command as printed.
    """

    id: Count
    line: Ordinal
    kind: Annotated[str, KINDS]
    tool: str
    arch: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    argv: tuple[str, ...]
    text: str


class Diagnostic(Document):
    """A remark on a log: a message of the driver, or a line that could not be understood.

    `severity` is error, warning or note; `line` counts from 1, 0 for the log as a whole.
    """

    line: Count
    severity: Annotated[str, "error", "warning", "note"]
    text: str
    stage: Count | None = None


class PlanOfStages(TypedDict):
    """A plan, with what is known of a run of it."""

    tool: Annotated[str, "nvcc", "hipcc", "clang"]
    version: str | None
    hip: NotRequired[str | None]
    env: dict[str, str]
    stages: list[Annotated[dict[str, Any], Stage]]
    edges: list[Pair[Count]]
    diagnostics: list[Annotated[dict[str, Any], Diagnostic]]
    run: NotRequired[Annotated[dict[str, Any], Run]]
    cost: NotRequired[CostEntry]
    verdicts: NotRequired[list[Annotated[dict[str, Any], Reproduction]]]


class Depfile(Value):
    """Dependencies that nvcc itself writes, to its standard output where `path` is empty.

    `stages` are the ids of those that preprocess what they are read from.
    """

    path: str
    stages: tuple[int, ...]


class Plan(Value):
    """Stages that one invocation of a driver would run.

    `tool` is nvcc, hipcc or clang; `version` its release, empty if the log does not show it. `env` are the variables
    that the driver printed, the last of a name. `edges` are pairs of stage ids: the second reads a file that the
    first, earlier, wrote. `removed` are the files that the driver deletes at the end. `hip` is the release of HIP, for
    its compilers' own version says nothing of it. `depfiles` are what the driver writes itself, by no stage.
    """

    tool: str
    version: str
    line: int
    env: Mapping[str, str]
    stages: tuple[Stage, ...]
    edges: tuple[tuple[int, int], ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    removed: tuple[str, ...] = ()
    hip: str = ""
    depfiles: tuple[Depfile, ...] = ()

    @property
    def unread(self) -> str:
        """The reason why a plan is empty: without a command, a removed file or a message; else empty."""
        if self.stages or self.diagnostics or self.removed or self.depfiles:
            return ""
        return f"the log names {self.tool}, but none of the commands that it runs"

    def critical_path(self, cost: Mapping[int, float] | None = None) -> tuple[int, ...]:
        """Ids of the dearest chain of stages, each waiting for the one before.

        `cost` is per stage id, in any unit; without it each stage counts alike.
        """
        waiting = predecessors(self.edges)
        return critical_path({stage.id: waiting[stage.id] for stage in self.stages}, cost)

    def to_json(self) -> PlanOfStages:
        """The plan as `toolmatrix.stages/1` holds it."""
        return {
            "tool": self.tool,
            "version": self.version or None,
            "hip": self.hip or None,
            "env": dict(self.env),
            "stages": [stage.to_json() for stage in self.stages],
            "edges": [list(edge) for edge in self.edges],
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
        }


class Log(Value):
    """Everything read from one text: a plan for each invocation, in the order in which they begin."""

    plans: tuple[Plan, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


def stage_edges(stages: Sequence[Stage]) -> tuple[tuple[int, int], ...]:
    """Pairs of stage ids: the second reads a file that the first, earlier, wrote; every writer counts."""
    writers: dict[str, list[int]] = {}
    edges: list[tuple[int, int]] = []
    for stage in stages:
        before = {writer for path in stage.inputs for writer in writers.get(path, ())}
        edges += [(writer, stage.id) for writer in sorted(before)]
        for path in stage.outputs:
            writers.setdefault(path, []).append(stage.id)
    return tuple(edges)


def neighbours(pairs: Edges) -> Mapping[int, Sequence[int]]:
    """For each id the ids that pairs lead to from it, in order; none for an id that no pair leads from."""
    by_id: defaultdict[int, list[int]] = defaultdict(list)
    for start, end in pairs:
        by_id[start].append(end)
    return by_id


def predecessors(pairs: Edges) -> Mapping[int, Sequence[int]]:
    """For each id the ids that it waits for."""
    return neighbours((after, before) for before, after in pairs)


def reachable_ids(start: Iterable[int], pairs: Edges) -> frozenset[int]:
    """All ids reachable from some ids along pairs, these included."""
    onward = neighbours(pairs)
    reachable: set[int] = set()
    waiting = list(start)
    while waiting:
        stage = waiting.pop()
        if stage not in reachable:
            reachable.add(stage)
            waiting += onward[stage]
    return frozenset(reachable)


def critical_path(
    waits: Mapping[int, Sequence[int]], cost: Mapping[int, float] | None = None
) -> tuple[int, ...]:
    """Ids of the dearest chain; of equals the one whose stages come first.

    `waits` has for each id those that it waits for, in an order in which they can run.
    """
    total: dict[int, float] = {}
    chosen: dict[int, int | None] = {}
    for stage, before in waits.items():
        # Lower ids first: which of two equal chains is shown must not depend on the order of the edges.
        best = max(before, key=lambda predecessor: (total[predecessor], -predecessor), default=None)
        own: float = 1 if cost is None else cost.get(stage, 0.0)
        total[stage] = own + (0.0 if best is None else total[best])
        chosen[stage] = best
    path: list[int] = []
    last = max(total, key=lambda stage: (total[stage], -stage), default=None)
    while last is not None:
        path.append(last)
        last = chosen[last]
    return tuple(reversed(path))
