"""`toolmatrix env`: from the files of a repository to an environment."""

from __future__ import annotations

import os
from functools import partial

from toolmatrix.api import PLAIN, Outcome, Report, as_json, split_words
from toolmatrix.api.caller import caller
from toolmatrix.api.machines import on_machine
from toolmatrix.api.requests import fields, request_context
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.manifests.model import NotRead
from toolmatrix.outputs import replace_files
from toolmatrix.report.environments import GUARD, CaseReport
from toolmatrix.request.cases import CaseLine, RepositoryCase, read_case
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import read
from toolmatrix.request.relaxing import CaseAnswer, answer
from toolmatrix.solve.resolve import Unsatisfiable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Unpack

    from toolmatrix.api import Matrix, Path
    from toolmatrix.api.answers import NoAnswer
    from toolmatrix.api.proofs import ProofDocument
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.factbase.index import Index
    from toolmatrix.report.environments import EnvironmentDocument, EnvironmentPlan
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.request import Ask, Request

FORMS = ("uv", "pip", "conda", "pixi", "docker", "pylock")
"""The files that create an environment, by the tool that reads them."""
_KEEPING = (
    f"`export PIP_CONSTRAINT=$PWD/{GUARD} UV_CONSTRAINT=$PWD/{GUARD}` keeps these releases, in a Dockerfile "
    f"behind its COPY `ENV PIP_CONSTRAINT=/{GUARD} UV_CONSTRAINT=/{GUARD}`"
)
_UNJOINED = "no fact joins it with what the files that decide ask for"
_TRIES = 3
_EXIT_CODES = {"yes": 0, "no": 1, "unknown": 4}


class EnvironmentAnswer(Outcome):
    """The environment of a repository, or why there is none."""

    def __init__(
        self,
        context: RequestContext,
        case: RepositoryCase,
        answer: CaseAnswer,
        words: Fields,
        matrix: Matrix,
        path: str,
    ) -> None:
        self.context = context
        self.case = case
        # The file of constraints that its commands use.
        self.guard = ""
        self.report = CaseReport(context.index, case, answer, words.at)
        self.words = words
        self.path = path
        self.matrix = matrix

    @property
    def exit_code(self) -> int:
        """0 where facts support the environment, 1 where there is none, 4 where facts do not decide."""
        return _EXIT_CODES[self.report.outcome]

    @property
    def versions(self) -> dict[str, str]:
        """The versions by component on the first target; empty without an answer."""
        return next((entry.versions for entry in self.report.environments()), {})

    def text(self, screen: Terminal = PLAIN) -> str:
        """The environment, its commands, and what had to change."""
        refusal = self._refusal()
        why = refusal.text(screen) if refusal is not None else ""
        return self.report.text(screen, why, self._further(), self.guard)

    def to_json(self) -> EnvironmentDocument:
        """The document `toolmatrix.environment/1`."""
        refusal = self._refusal()
        return self.report.document(refusal.to_json(answers=False) if refusal is not None else None)

    @property
    def plans(self) -> dict[str, EnvironmentPlan]:
        """The environment of each target, for files that create it; nothing without an answer."""
        return {plan.target: plan for plan in self.report.environments()}

    def file(self, form: str) -> str:
        """The text of a file that creates the environment: `uv`, `pip`, `conda`, `pixi`, `docker` or `pylock`.

        Raises RenderError for a form that has one target, ToolMissing without uv for `pylock`, NoImage for `docker`.
        """
        from toolmatrix.api import environments

        if form in environments.FORMS:
            beside = self._without_accelerator() if form == "uv" and len(self.plans) > 1 else {}
            return environments.FORMS[form](self.plans | beside)
        plan = environments.only(self.plans, form)
        return _pylock(plan) if form == "pylock" else self._dockerfile(plan)

    def _without_accelerator(self) -> dict[str, EnvironmentPlan]:
        """The environment on the CPU of the first target, with the Python of the others."""
        target, plan = next(iter(self.plans.items()))
        words = self.words.replace(
            accelerator="none",
            target=(target,),
            align=(),
            device=(),
            arch=(),
            with_=(*self.words.with_, f"python=={plan.python}"),
        )
        solved = _solve(self.context, words, self.case)
        plans = CaseReport(self.context.index, self.case, solved, words.at).environments()
        return {"cpu": plans[0]} if plans else {}

    def constraints(self) -> str:
        """The pins that later installations are to keep."""
        from toolmatrix.api import environments

        return environments.constraints(environments.only(self.plans, "constraints"))

    def prove(self, into: Path = "") -> ProofDocument:
        """Create the environment, in a folder that is removed unless it is named, and import what the code imports.

        It installs and imports packages of others. Raises ToolMissing without uv, UsageError for another machine.
        """
        import tempfile

        from toolmatrix.api import environments, proofs

        plan, path = environments.only(self.plans, "a proof"), os.fspath(into)
        packages = self.context.index.packages()
        prove = partial(proofs.prove, plan, self.path, self.case, packages, env=caller().env)
        if path:
            return prove(os.path.abspath(path))
        with tempfile.TemporaryDirectory(prefix="toolmatrix-env-") as folder:
            return prove(os.path.join(folder, "env"))

    def deliver(
        self, *, write: str, guard: bool, prove: bool, yes: bool, into: str
    ) -> EnvironmentAnswer | Report:
        """Print the file of a form, write the constraints and print what keeps them, or write a proof."""
        if prove and not yes:
            raise UsageError(
                "`--prove` installs and imports packages of others",
                expected="`--yes` beside it",
                help="prove it in a container, or add `--yes`",
            )
        if not self.plans:
            return self
        if prove:
            return self._proof(into)
        if guard:
            path = caller().path(GUARD)
            replace_files({path: self.constraints()})
            caller().note(f"wrote {GUARD}: {_KEEPING}")
            self.guard = GUARD
        if not write:
            return self
        text = self.file(write)
        return Report(words=lambda _: text, document=self.to_json, exit_code=self.exit_code)

    def _proof(self, into: str) -> Report:
        from toolmatrix.api.proofs import FILE, proof_text

        proof = self.prove(into)
        replace_files({caller().path(FILE): as_json(proof)})
        caller().note(f"wrote {FILE}")
        return Report(
            words=lambda _: proof_text(proof),
            document=lambda: proof,
            exit_code=0 if proof["passed"] else 1,
        )

    def _dockerfile(self, plan: EnvironmentPlan) -> str:
        from toolmatrix.commands.render import render

        request = self.report.answer.outcome.request
        rendered = render(
            wanted=[
                f"{line.component}=={plan.versions[line.component]}"
                for line in self.case.lines
                if line.component in plan.versions and not line.asks[0].option
            ],
            format="dockerfile",
            from_="wheel",
            target=plan.target,
            device=[request.named(device) for device in request.devices],
            with_=[f"python=={plan.python}"],
            matrix=self.matrix,
        )
        return next(text for path, text in rendered.items() if path.endswith(".Dockerfile"))

    def _further(self) -> list[str]:
        """The nearest request whose answer facts support in all parts, where those of this one do not."""
        from toolmatrix.report import remarks

        resolution = self.report.resolution
        if resolution is None or resolution.known:
            return self.report.newer()
        further = remarks.document(self.context, resolution)
        return [further["fully_known"]["text"]] if "fully_known" in further else []

    def _refusal(self) -> NoAnswer | None:
        from toolmatrix.api.answers import NoAnswer

        outcome = self.report.answer.outcome
        return NoAnswer(self.context, outcome) if isinstance(outcome, Unsatisfiable) else None


@command(
    group="Resolve and explain",
    order=2,
    usage="[REPO]",
    delivery_options=("write", "guard", "prove", "yes", "into"),
    own={
        "write": option(
            "--write",
            kind="text",
            metavar="FORM",
            allowed=FORMS,
            cli_only=True,
            help="Print a file that creates the environment",
        ),
        "guard": option(
            "--guard",
            kind="flag",
            cli_only=True,
            help="Write constraints that keep the pins in later installations",
        ),
        "prove": option(
            "--prove",
            kind="flag",
            cli_only=True,
            excludes=("write",),
            help="Create the environment, and import what the code of the repository imports; needs `--yes`",
        ),
        "yes": option(
            "--yes",
            kind="flag",
            cli_only=True,
            help="Allow `--prove` to install and import packages of others",
        ),
        "into": option(
            "--into",
            kind="text",
            shape="path",
            metavar="DIR",
            cli_only=True,
            help="Keep the environment of `--prove` in this folder",
        ),
    },
    completer="file",
    does="solving",
    formats=PRINTED,
    examples=(
        "toolmatrix env . --device 'RTX 5090'",
        "toolmatrix env requirements.txt --with driver==535 --with python==3.10",
        "toolmatrix env . --target x86,amd,arm --write uv --output pyproject.toml",
    ),
)
def env(repo: Path = "", **options: Unpack[RequestOptions]) -> EnvironmentAnswer:
    """Find an environment for a repository.

    Its files are read, never run, and solved as one request with wheels; where there is no answer, as few of their
    lines as it takes are widened. Without a path it is the current folder. Raises ManifestError for a file that cannot
    be read, NothingMatched for a folder whose files ask for nothing.
    """
    options = options.copy()
    options["from_"] = options.get("from_") or "wheel"
    # One file for several targets has one Python.
    if len(split_words(options.get("target", ()))) > 1:
        options["align"] = options.get("align") or "python"
    context = request_context(options.get("matrix"), options.get("keep", ""))
    words = on_machine(context.index, fields((), {**options}))
    path = os.fspath(repo) or caller().path(".")
    case = read_case(context.index, path, _accelerator(context, words))
    solved = _solve(context, words, case)
    if not isinstance(solved.outcome, Unsatisfiable) and not _python(solved):
        # Packages of Python alone may ask for none; an environment has one.
        words = words.replace(with_=(*words.with_, "python"))
        solved = _solve(context, words, case)
    if case.depends_on_python and (python := _python(solved)):
        before = [line.asks for line in case.lines]
        case = read_case(context.index, path, _accelerator(context, words), python, case.modules)
        # Most markers are on packages that the matrix does not know.
        if [line.asks for line in case.lines] != before:
            solved = _solve(context, words, case)
    # One that is left out may have hidden another.
    for _ in range(_TRIES):
        left = _without_unjoined(case, solved)
        if left is case:
            break
        case, solved = left, _solve(context, words, left)
    return EnvironmentAnswer(context, case, solved, words, options.get("matrix"), path)


def _accelerator(context: RequestContext, words: Fields) -> str:
    """The accelerator that files are for: the one of the options, else CUDA."""
    alone = read(context.index, words)
    named = [ask.selector for ask in alone.asks if ask.component == "accelerator"]
    return words.accelerator or next((name for name in named if name != "none"), "cuda")


def _solve(context: RequestContext, words: Fields, case: RepositoryCase) -> CaseAnswer:
    # A Python alone, or a toolkit of conda, is no environment.
    if all(line.asks[0].option for line in case.lines):
        raise NothingMatched(
            "the files ask for nothing that the matrix knows",
            expected="a framework, or a package that goes with one",
            found=", ".join(case.files),
        )

    best = _answer(context, words, case)
    for other in _alternatives(context, words, case, best):
        if _rank(other) > _rank(best):
            best = other
    return best.explained()


def _without_unjoined(case: RepositoryCase, solved: CaseAnswer) -> RepositoryCase:
    """A case without the lines that give way to others, and that no fact joins with the rest."""
    if isinstance(solved.outcome, Unsatisfiable) or solved.outcome.known:
        return case
    touching = solved.outcome.touching
    named = {name for pair in touching for name in (pair.component, pair.other)}
    named |= {
        name for ground in solved.outcome.unread for name in (ground.subject, ground.component)
    }
    left = [line for line in case.lines if line.weak and line.component in named]
    if not case.files or not left:
        return case
    unread = (NotRead(text=line.part.item.text, why=_UNJOINED) for line in left)
    return case.replace(
        lines=tuple(line for line in case.lines if line not in left),
        unread=(*case.unread, *unread),
    )


def _answer(
    context: RequestContext,
    words: Fields,
    case: RepositoryCase,
    keep: Mapping[str, str] | None = None,
    levels: Sequence[int] = (),
) -> CaseAnswer:
    preferred = [*case.keep, *(keep or {}).items()]

    def request(lines: Sequence[Ask]) -> Request:
        whole = read(context.index, words, keep=context.keep, first=lines)
        kept = tuple((target, *pin) for target in whole.targets for pin in preferred)
        return whole.replace(keep=(*whole.keep, *kept))

    return answer(context.index, case.lines, request, levels).supported()


def _alternatives(
    context: RequestContext, words: Fields, case: RepositoryCase, first: CaseAnswer
) -> Iterator[CaseAnswer]:
    """Answers on an accelerator that only packages behind the lines compute on, and from the day of the pins."""
    outcome = first.outcome
    if isinstance(outcome, Unsatisfiable):
        return
    header, target = context.index.header, outcome.request.targets[0]
    own = header["targets"][target]["accelerator"]
    chosen = outcome.chosen(target)
    computing = any(own in header["components"][name]["accelerators"] for name in chosen)
    accelerators = [ask for ask in outcome.request.asks if ask.component == "accelerator"]
    if computing and [ask.selector for ask in accelerators if ask.implied] == ["none"]:
        words = words.replace(accelerator=own)
        yield _answer(context, words, case)
    # What is unpinned may be newer than all that knows the pins.
    day = max(filter(None, map(partial(_released, context.index), case.lines)), default="")
    if outcome.known or not day or words.at:
        return
    # A bound or a machine may be of a later day than all pins.
    begins = partial(_first_released, context.index)
    day = max((day, *(begins(ask) for line in case.lines for ask in line.asks)))
    later = max((day, *map(begins, read(context.index, words).asks)))
    yield _answer(context, words.replace(at=later), case)
    # On a machine that they were not written for they keep what they had.
    if not (words.device or words.with_):
        return
    written = _answer(context, Fields(from_=words.from_, target=words.target, at=day), case)
    if not isinstance(written.outcome, Unsatisfiable):
        releases = written.outcome.chosen(written.outcome.request.targets[0])
        yield _answer(context, words, case, releases, first.levels)


def _released(index: Index, line: CaseLine) -> str:
    """The day of the release that a line pins, "" for a range."""
    facts, own = index.component(line.component), line.asks[0]
    releases = index.scale(line.component).select(own.selector)
    if own.option or not own.selector.startswith("==") or not releases:
        return ""
    return facts.dates[releases.bit_length() - 2]


def _first_released(index: Index, ask: Ask) -> str:
    """The day of the first release that a word of the request allows, "" if that is unknown."""
    mask = index.scale(ask.component).select(ask.selector)
    days = enumerate(index.component(ask.component).dates)
    return min((day for position, day in days if mask >> position + 1 & 1), default="")


def _rank(solved: CaseAnswer) -> tuple[bool, int, bool, int, bool]:
    """How good an answer is: that there is one, with few changes, supported, with little that no fact joins."""
    outcome = solved.outcome
    if isinstance(outcome, Unsatisfiable):
        return False, 0, False, 0, False
    computes = any(
        ask.component == "accelerator" and ask.selector != "none" for ask in outcome.request.asks
    )
    unread = len(outcome.unread) + len(outcome.touching)
    return True, -len(solved.relaxed), outcome.known, -unread, computes


def _python(solved: CaseAnswer) -> str:
    """The Python of an answer."""
    outcome = solved.outcome
    if isinstance(outcome, Unsatisfiable):
        return ""
    return outcome.chosen(outcome.request.targets[0]).get("python", "")


def _pylock(plan: EnvironmentPlan) -> str:
    """All packages with their files and hashes as uv locks them (PEP 751). Raises Unresolved, ToolMissing."""
    import tempfile

    from toolmatrix.api import environments
    from toolmatrix.errors import Unresolved
    from toolmatrix.harvest.resolver import Uv

    entries = [*environments.requirements(plan)]
    where = [
        "--python-version",
        plan.python,
        "--python-platform",
        f"{plan.machine}-unknown-linux-gnu",
    ]
    for entry in entries:
        if entry.url:
            where += ["--find-links" if entry.flat else "--index", entry.url]
    where += ["--index-strategy", "unsafe-best-match"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pylock.toml")
        uv = Uv(caller().env, "--write pylock")
        refusal = uv.lock([entry.text for entry in entries], path, where)
        if refusal:
            raise Unresolved("uv finds no set of packages", found=refusal)
        with open(path, encoding="utf-8") as file:
            return file.read()
