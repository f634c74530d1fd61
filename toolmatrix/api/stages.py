"""Plans of compiler drivers: out of a log or asked of a driver, judged, compared, replayed and costed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from toolmatrix.api import PLAIN, Printed
from toolmatrix.api.caller import caller
from toolmatrix.compilation import replay as replaying
from toolmatrix.compilation.model import SCHEMA
from toolmatrix.documents import Annotated, Any, MatrixHead, NotRequired, TypedDict
from toolmatrix.errors import NothingMatched, ToolMissing, UsageError
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolmatrix.api.stage_answers import MadeFor
    from toolmatrix.compilation.compare import LogComparison
    from toolmatrix.compilation.cost import Cost
    from toolmatrix.compilation.drivers.dry_run import DryRun
    from toolmatrix.compilation.execute import Run
    from toolmatrix.compilation.model import Diagnostic, Log, Plan, PlanOfStages
    from toolmatrix.compilation.replay import Replay
    from toolmatrix.compilation.verify import Reproduction
    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Finding
    from toolmatrix.judging.stages import Answered
    from toolmatrix.report import stage_diff
    from toolmatrix.report.findings import PlanFindingEntry
    from toolmatrix.report.terminal import Terminal


class StagesDocument(TypedDict):
    """What `toolmatrix stages --json` prints: one plan for each invocation of a driver; docs/stages.md describes it."""

    schema: Annotated[str, SCHEMA]
    plans: list[PlanOfStages]
    diagnostics: list[Annotated[dict[str, Any], Diagnostic]]
    matrix: NotRequired[MatrixHead]
    answer: NotRequired[MadeFor]
    findings: NotRequired[list[PlanFindingEntry]]


# Findings that say what a run cannot do without.
_MISSING = {"TM211": ToolMissing, "TM212": UsageError}
# Seconds that the graph program may take.
_PATIENCE = 60


class Wanted(Value):
    """Options about plans: devices that shall run them, a part of them, and where their files lie."""

    device: tuple[str, ...] = ()
    # As in `replay.select`.
    only: tuple[str, ...] = ()
    until: str = ""
    since: str = ""
    directory: str = ""
    # Temp files stay there.
    keep_dir: str = ""

    @property
    def work(self) -> str:
        """The directory of temp files as commands see it, empty where none was named."""
        return os.path.relpath(self.keep_dir, self.directory or None) if self.keep_dir else ""

    def select(self, plan: Plan) -> Plan:
        """The stages of a plan that are wanted, with the ids that they have in the whole."""
        if not (self.only or self.since or self.until):
            return plan
        chosen = replaying.select(
            plan, only=self.only, until=self.until or None, since=self.since or None
        )
        return plan.replace(
            stages=tuple(stage for stage in plan.stages if stage.id in chosen),
            edges=tuple(edge for edge in plan.edges if chosen.issuperset(edge)),
        )


class DriverCall(Value):
    """What a driver is asked: for sources, with flags and codegen archs, and in how many seconds it has to answer."""

    sources: tuple[str, ...]
    flags: tuple[str, ...]
    # Its name or path; empty for the one that compiles such sources.
    driver: str
    archs: tuple[str, ...]
    timeout: int | None
    env: Mapping[str, str]


class Stages(Printed):
    """The plans of a log, or of a driver that was asked (`dry`), and how it failed if it did (`failure`)."""

    def __init__(
        self,
        log: Log,
        index: Callable[[], Index],
        *,
        where: str = "",
        dry: DryRun | None = None,
        failure: ToolMissing | None = None,
        wanted: Wanted | None = None,
        answered: Answered | None = None,
    ) -> None:
        self.log = log
        # Graphs and scripts need no matrix, so it is opened by what does.
        self.index = index
        self.where = where
        self.dry = dry
        self.failure = failure
        self.wanted = wanted or Wanted()
        # The answer that the plans are for, and how they came about.
        self.answered = answered
        self._cached_findings: list[Finding] | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The part of each plan that is wanted."""
        return tuple(self.wanted.select(plan) for plan in self.log.plans)

    @property
    def has_stages(self) -> bool:
        """True if a driver came as far as its first command."""
        return any(plan.stages for plan in self.log.plans)

    @property
    def is_planned(self) -> bool:
        """True if no driver was asked: the plans follow from what is known of its release."""
        return self.answered is not None and self.answered.known is not None

    @property
    def findings(self) -> list[Finding]:
        """Findings of the matrix about the plans, and the devices that are wanted."""
        # Text, document and exit code all need them, and a long log has many.
        if self._cached_findings is None:
            self._cached_findings = self._findings(runs=self.dry is not None)
        return self._cached_findings

    @property
    def exit_code(self) -> int:
        """0; 1 when a driver failed in the log or a finding is an error; 5 when the driver that was asked failed."""
        if self.failure:
            return self.failure.exit_code
        has_errors = any(finding.severity == "error" for finding in self.findings)
        return int(has_errors or self.failed)

    @property
    def failed(self) -> bool:
        """True if a driver failed in the log."""
        return any(
            diagnostic.severity == "error"
            for plan in self.log.plans
            for diagnostic in plan.diagnostics
        )

    def _findings(self, *, runs: bool) -> list[Finding]:
        from toolmatrix.judging import stages
        from toolmatrix.judging.stages import LocalMachine

        answered = self.answered
        if answered and not answered.expected.family:
            return [stages.no_driver(answered.expected)]
        # The words of a driver's command line; a log does not have them.
        words = self.dry.command_line if self.dry else None
        if words is None and answered and self.is_planned:
            words = (*answered.typed, *answered.expected.words)
        index, folder = self.index(), self.wanted.directory
        here = LocalMachine(
            # A driver that is not here has its programs elsewhere.
            has_program=(lambda *_: True) if self.is_planned else _is_on_path,
            has_file=lambda path: os.path.exists(os.path.join(folder, path)),
        )
        return stages.findings(
            self.log.plans,
            index,
            tuple(_device(index, device) for device in self.wanted.device),
            path=self.where,
            command=words,
            here=here if runs or self.is_planned else None,
            answered=answered,
        )

    def text(self, screen: Terminal = PLAIN, *, full: bool = False, explain: bool = False) -> str:
        """The plans as tables, with what the matrix says; `full` leaves nothing out, `explain` says what stages do."""
        from toolmatrix.report import findings, stages

        findings_text = findings.plan_text(self.index(), self.findings, screen)
        if not self.log.plans or (self.failure and not self.has_stages):
            return findings_text
        log = self.log.replace(plans=self.plans)
        origin = "planned from captures, without a driver" if self.is_planned else ""
        plans_text = stages.text(log, self.where, screen, full=full, explain=explain, source=origin)
        return f"{plans_text}\n{findings_text}" if findings_text else plans_text

    def to_json(self) -> StagesDocument:
        """The document `toolmatrix.stages/1`."""
        from toolmatrix.api import stage_answers
        from toolmatrix.report import answer, findings

        index = self.index()
        document: StagesDocument = {
            "schema": SCHEMA,
            "plans": [plan.to_json() for plan in self.plans],
            "diagnostics": [diagnostic.to_json() for diagnostic in self.log.diagnostics],
            "matrix": answer.head(index),
            "findings": findings.plan_document(index, self.findings),
        }
        if self.answered:
            document["answer"] = stage_answers.document(self.answered)
        return document

    def draw(self, form: str) -> str:
        """The plans as `raw` commands, or as a graph: `dot`, `mermaid` or `svg`. Raises ToolMissing, KeyError."""
        from toolmatrix.report import stage_graphs, stages

        if form == "raw":
            self._refuse_what_is_planned()
        forms: Mapping[str, Callable[[Log], str]] = {
            "raw": stages.raw,
            "dot": stage_graphs.dot,
            "mermaid": stage_graphs.mermaid,
            "svg": lambda log: _as_svg(stage_graphs.dot(log)),
        }
        return forms[form](self.log.replace(plans=self.plans))

    def compare(self, new: Stages) -> Compared:
        """The differences between these plans and newer ones."""
        return Compared(self, new)

    def plan(self) -> Plan:
        """The only plan, whole. Raises UsageError for several, and the failure of the driver."""
        count = len(self.log.plans)
        if count != 1:
            raise UsageError(
                f"the log has {count} runs of a driver",
                expected="one run, to replay it or to compute its cost",
                help="save the log of one run",
            )
        if self.failure:
            raise self.failure
        self._refuse_what_is_planned()
        return self.log.plans[0]

    def _refuse_what_is_planned(self) -> None:
        if self.answered and self.answered.known:
            expected = self.answered.expected
            raise ToolMissing(
                f"no {expected.family} of {expected.component} {expected.release} is on this machine",
                expected="a driver, because only a driver prints its commands word for word",
                help="install it, or name one with `--driver`",
            )

    def replay(self) -> Replay:
        """The only plan, or the part that is wanted, made ready to run. Raises UsageError, NothingMatched."""
        from toolmatrix.compilation.drivers import dry_run
        from toolmatrix.report.stages import sources

        plan, wanted = self.plan(), self.wanted
        work = self.dry.work if self.dry else wanted.work or dry_run.work_name(sources(plan))
        return replaying.replay(
            plan,
            work=work,
            only=wanted.only,
            until=wanted.until or None,
            since=wanted.since or None,
            asked=self.dry.command_line if self.dry else (),
        )

    def script(self) -> str:
        """A POSIX shell script that replays the plan."""
        return replaying.script(self.replay())

    def ninja(self, jobs: int = 0) -> str:
        """A Ninja file that replays the plan, with at most `jobs` of the stages that need much memory at once."""
        return replaying.ninja(self.replay(), depth=jobs)

    def cost(self, path: str, note: Callable[[str], None] = lambda _: None) -> Costed:
        """The cost of the plan by the CSV of `nvcc -time`, or the JSON of a run. Raises LogError, UsageError."""
        from toolmatrix.compilation import cost

        replay = self.replay()
        seconds, peaks, basis = cost.seconds_of(path, replay.steps, note)
        return Costed(self.plan(), replay, cost.cost(replay.steps, seconds, peaks, basis=basis))

    def run(self, jobs: int = 0, *, verify: bool = False, timeout: float | None = None) -> Ran:
        """Run the plan and measure it; `verify` compares what it makes with what the driver makes, in `timeout` s.

        Raises ToolMissing, UsageError.
        """
        from toolmatrix.compilation import cost, execute
        from toolmatrix.compilation import verify as verifying

        if verify and self.dry is None:
            raise UsageError(
                "`--verify` runs the driver again",
                expected="a source, not a log",
                help="`toolmatrix stages FILE --verify -- FLAGS`",
            )
        replay = self.replay()
        # Before anything runs: a plan may take minutes until it reaches the stage that cannot run.
        self._refuse_what_is_missing()
        directory = Path(self.wanted.directory or os.curdir)
        # A directory that was there, or that shall be kept, is not ours to remove.
        ours = not self.wanted.keep_dir and not (directory / replay.work).exists()
        reproductions: tuple[Reproduction, ...] = ()
        try:
            measured = execute.run(replay, jobs=jobs, cwd=directory)
            if verify and self.dry:
                limit = timeout or verifying.LIMIT
                reproductions = verifying.verify(self.dry, replay, cwd=directory, limit=limit)
        finally:
            if ours:
                shutil.rmtree(directory / replay.work, ignore_errors=True)
        costs = cost.from_run(replay, measured)
        return Ran(self.plan(), replay, costs, measured, reproductions if verify else None)

    def _refuse_what_is_missing(self) -> None:
        from toolmatrix.report.findings import IndexWords

        for finding in self._findings(runs=True):
            if finding.code in _MISSING and finding.severity == "error":
                raise _MISSING[finding.code](
                    f"nothing was run: {finding.sentence(IndexWords(self.index()))}",
                    help=finding.help(),
                )


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
        return int(not all(reproduction.identical for reproduction in self.reproductions or ()))

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
            plan["verdicts"] = [reproduction.to_json() for reproduction in self.reproductions]
        return document


class Compared(Printed):
    """The differences of two logs; true where there are any."""

    def __init__(self, old: Stages, new: Stages, names: tuple[str, str] = ("", "")) -> None:
        from toolmatrix.compilation.compare import compare

        self.old = names[0] or old.where, old.log
        self.new = names[1] or new.where, new.log
        self.index = new.index
        self.comparison: LogComparison = compare(old.log, new.log)

    def __bool__(self) -> bool:
        return bool(self.comparison)

    def text(self, screen: Terminal = PLAIN) -> str:
        """The text that `toolmatrix stages diff` prints."""
        from toolmatrix.judging import stage_archs
        from toolmatrix.judging.stages import PlanContext
        from toolmatrix.report import stage_diff

        index = self.index()

        def by_default(plan: Plan) -> bool:
            return bool(stage_archs.defaults(PlanContext(plan, index)))

        return stage_diff.text(self.old, self.new, self.comparison, screen, by_default)

    def to_json(self) -> stage_diff.StageDifferencesDocument:
        """The document `toolmatrix.stage-differences/1`."""
        from toolmatrix.report import stage_diff

        return stage_diff.document(self.old, self.new, self.comparison)


def ask(call: DriverCall, index: Callable[[], Index], wanted: Wanted) -> Stages:
    """Ask a driver, and say what was chosen or left out for it. Raises ToolMissing, UsageError."""
    from toolmatrix.compilation.drivers import dry_run, installed
    from toolmatrix.compilation.log_file import parse_log

    dry = dry_run.dry_run(
        call.sources,
        call.flags,
        call.driver or None,
        archs=call.archs,
        work=wanted.work,
        limit=call.timeout or dry_run.LIMIT,
        environ=call.env,
        cwd=Path(wanted.directory or os.curdir),
    )
    for text in dry.notes:
        caller().say(f"note: {text}")
    # A driver that fails after its first words gives them, with its failure.
    failure = dry.failure()
    log = parse_log(dry.text.split("\n"))
    stages = Stages(log, index, dry=dry, failure=failure, wanted=wanted)
    if failure and log.plans:
        # Runs that ended before they printed their version have that of the driver.
        version = installed.version(dry.family, dry.program, {**os.environ, **dry.env})
        plans = tuple(plan.replace(version=plan.version or version) for plan in log.plans)
        stages.log = log.replace(plans=plans)
    elif not stages.has_stages:
        raise failure or ToolMissing(
            f"`{dry.program}` printed no command",
            found=dry.text.strip(),
            help="remove flags that make the driver do anything but compile",
        )
    return stages


def _device(index: Index, device: str) -> str:
    # A capability or gfx that the facts do not know stays, to be reported as unknown; any other word is a mistake.
    import re

    from toolmatrix.request.names import Names

    name, colon, features = device.partition(":") if device.startswith("gfx") else (device, "", "")
    try:
        return Names(index).device(name) + colon + features
    except NothingMatched:
        if re.fullmatch(r"\d+\.\d+|gfx\w+", name):
            return device
        raise


def _is_on_path(program: str, path: str) -> bool:
    # nvcc prints the PATH that its commands run with; of a driver that prints none it is that of this process.
    return shutil.which(program, path=path or None) is not None


def _as_svg(graph: str) -> str:
    import subprocess

    program = shutil.which("dot")
    if program is None:
        raise ToolMissing(
            "`dot` is not on PATH",
            help="install graphviz (Debian and Ubuntu: `apt-get install graphviz`), or use `--dot` or `--mermaid`",
        )
    try:
        completed = subprocess.run(  # noqa: S603 - a program from PATH, no shell, the graph on its stdin
            [program, "-Tsvg"],
            input=graph.encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(
            f"`dot` did not finish within {_PATIENCE} s and was ended",
            help="draw a part with `--only`, `--since` or `--until`, or use `--dot`",
        ) from None
    if completed.returncode:
        message = completed.stderr.decode("utf-8", "replace").strip()
        raise ToolMissing(f"`dot` failed with exit code {completed.returncode}", found=message)
    return completed.stdout.decode("utf-8")
