"""Judges plans of nvcc, hipcc and clang against the matrix: one finding for each thing worth saying, at its stage.

The code for a device is judged by its worst part; of a part one image is enough. Beside a lock a plan is compared with
what that says about the same compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from toolmatrix.codes.plans import (
    ANSWERS,
    CANNOT_TELL,
    RUNS_BY_CODE,
    RUNS_BY_PTX,
    RUNS_NOT,
    AnswerFinding,
    DeviceFinding,
)
from toolmatrix.compilation import expected as expecting
from toolmatrix.compilation.expected import Expected
from toolmatrix.compilation.model import Plan, Stage
from toolmatrix.errors import Position
from toolmatrix.factbase import lookups
from toolmatrix.factbase.index import Index
from toolmatrix.finding import Finding, union_of_fields
from toolmatrix.judging import stage_archs, stage_flags
from toolmatrix.judging import stage_facts as facts
from toolmatrix.judging.stage_archs import (
    CUBIN,
    LTO,
    OBJECT,
    OPTIX,
    PTX_TEXT,
    TILE,
    DeviceCode,
    DeviceImage,
    DevicePart,
)
from toolmatrix.judging.stage_facts import PTX, SASS, Toolkit
from toolmatrix.judging.stage_flags import ADDED
from toolmatrix.request import compiles
from toolmatrix.request.compiles import KnownOrder
from toolmatrix.value import Value

FindingT = TypeVar("FindingT", bound=Finding)


class LocalMachine(Value):
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
        command: Sequence[str] | None = None,
        here: LocalMachine | None = None,
    ) -> None:
        self.plan = plan
        self.index = index
        self.number = number
        self.path = path
        added = [word for name in ADDED for word in plan.env.get(name, "").split()]
        self.command = None if command is None else (*command, *(word.strip('"') for word in added))
        self.here = here
        self.toolkit = Toolkit(index, *toolkit_of(plan))
        self.lines: dict[int | None, int] = {stage.id: stage.line for stage in plan.stages}
        # Each arch with the first stage that makes code for it, which is where a finding about it is shown.
        self.archs: dict[str, Stage] = {}
        for stage in plan.stages:
            if stage.arch:
                self.archs.setdefault(stage.arch, stage)

    def locate(self, finding: FindingT, stage: int | None, line: int = 0) -> FindingT:
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
    # clang passes the version of CUDA to its cc1 (`-target-sdk-version`); for AMD it makes the code itself.
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
    command: Sequence[str] | None = None,
    here: LocalMachine | None = None,
    answered: Answered | None = None,
) -> list[Finding]:
    """The findings about the plans of a log, in their order, then for each device whether it runs all of them.

    `devices` are devices of the matrix (`8.6`, `gfx90a`, `gfx90a:xnack+`). `path` names the log, for places. `asked`
    are the words of the driver's command line where they are known, `here` is the machine of plans that run here,
    `answered` the answer that they are for. A finding about one plan has its number; one about all has none.
    """
    reported: list[Finding] = []
    answers: dict[str, list[DeviceFinding]] = {device: [] for device in dict.fromkeys(devices)}
    for number, (plan, code) in enumerate(zip(plans, stage_archs.device_codes(plans), strict=True)):
        context = PlanContext(plan, index, number=number, path=path, command=command, here=here)
        reported += lock_findings(context, answered) if answered else ()
        reported += stage_archs.findings(context, code.parts)
        reported += stage_flags.findings(context, code)
        for device, known in answers.items():
            answer = device_answer(index, device, code)
            if answer is not None:
                known.append(answer)
                reported.append(_locate_answer(context, answer))
    return [*reported, *_summarize(answers)]


def _locate_answer(context: PlanContext, answer: DeviceFinding) -> Finding:
    if answer.code == RUNS_BY_PTX:
        driver, row = driver_of_ptx(context.index, context.toolkit.releases)
        facts = (*answer.facts, row) if row else answer.facts
        answer = answer.replace(driver=driver, facts=facts)
    # The part that decides may be of an earlier plan, whose stages have other numbers.
    return context.locate(answer, answer.stage if answer.plan == context.number else None)


def _summarize(answers: dict[str, list[DeviceFinding]]) -> Iterator[Finding]:
    # One answer is its plan's own finding; none at all is a finding, too.
    for device, device_findings in answers.items():
        decides = worst_finding(device_findings)
        code = decides.code if decides else CANNOT_TELL
        if len(device_findings) != 1:
            yield DeviceFinding.of(
                code,
                device=device,
                holding=len(device_findings),
                running=sum(finding.answer == "yes" for finding in device_findings),
                facts=union_of_fields(device_findings, "facts"),
            )


_ORDER = (CUBIN, OBJECT, PTX_TEXT)
# Why code of a kind is not loaded as it is.
_UNLOADED = {LTO: "link", TILE: "tile", OPTIX: "optix"}
# Why no other device takes a cubin of a kind.
_TIED = {"specific-cubin": "own", "family-cubin": "family"}


def device_answer(index: Index, device: str, code: DeviceCode) -> DeviceFinding | None:
    """The finding about the code of one plan: that about its worst part; None where there is no code at all."""
    # Nobody can say what a device runs that is in no table.
    if device.partition(":")[0] not in index.component("device").versions:
        return _finding(CANNOT_TELL, device, why=((device, "device"),))
    findings = [best_image_finding(index, device, part) for part in code.parts]
    # Objects that no plan here makes may hold code for it.
    if not findings and code.outside:
        return _finding(CANNOT_TELL, device, why=[(path, "outside") for path in code.outside])
    return worst_finding(findings)


def worst_finding(findings: Sequence[DeviceFinding]) -> DeviceFinding | None:
    """The finding that decides for several that must all hold."""
    # All parts are loaded, so that the worst of them decides.
    return min(findings, key=finding_rank, default=None)


def finding_rank(finding: DeviceFinding) -> int:
    """The place of a finding, 0 for the worst."""
    return list(ANSWERS).index(finding.code)


def best_image_finding(index: Index, device: str, part: DevicePart) -> DeviceFinding:
    """The finding about code that runs if any one of its images does."""
    name, _, features = device.partition(":")
    # A loader prefers code that needs no compiling, and of it the newest that fits.
    images = sorted(
        dict.fromkeys(part.images),
        key=lambda image: (
            image.kind in _ORDER and -_ORDER.index(image.kind),
            facts.arch_number(image.arch),
        ),
        reverse=True,
    )
    why: list[tuple[str, str]] = []
    unsure = False
    for image in images:
        rows = facts.runs(index, name, image.arch) if image.kind in _ORDER else ()
        if rows and not _features_clash(image.arch, features):
            runs = RUNS_BY_PTX if image.kind == PTX_TEXT else RUNS_BY_CODE
            return _finding(runs, device, part, image=image.arch, facts=rows)
        why.append((image.arch, image_refusal(index, name, image)))
        unsure = unsure or why[-1][1] in ("tile", "unknown")
    known = facts.about_device(index, name)
    return _finding(CANNOT_TELL if unsure else RUNS_NOT, device, part, why=why, facts=known)


def _finding(
    code: str,
    device: str,
    part: DevicePart | None = None,
    *,
    image: str = "",
    why: Sequence[tuple[str, str]] = (),
    facts: tuple[str, ...] = (),
) -> DeviceFinding:
    return DeviceFinding.of(
        code,
        device=device,
        image=image,
        why=tuple(why),
        plan=part.plan if part else None,
        stage=part.stage if part else None,
        expected="relocatable" if part and part.relocatable else "",
        actual=image or " ".join(name for name, _ in why),
        facts=facts,
    )


def _features_clash(arch: str, features: str) -> bool:
    # A target ID runs where each feature that it names has the same sign or none (Clang, target IDs).
    signs = {feature[:-1]: feature[-1:] for feature in features.split(":") if feature}
    own = filter(None, arch.split(":")[1:])
    return any(signs.get(feature[:-1], feature[-1:]) != feature[-1:] for feature in own)


def image_refusal(index: Index, device: str, image: DeviceImage) -> str:
    """The reason why a device does not take an image, as a word."""
    if image.kind in _UNLOADED:
        return _UNLOADED[image.kind]
    name = facts.twin(index, image.arch)
    if name not in index.component("arch").versions:
        return "unknown"
    attributes = lookups.attributes(index, "arch", name)
    if facts.runs(index, device, image.arch):
        return "features"
    kind, capability = attributes.get("kind", ""), attributes.get("capability", "")
    if not capability or "." not in device:
        return "other"
    # Before versions are compared: an `a` target is for one device, an `f` target for one family, whatever the minor.
    if kind in _TIED:
        return _TIED[kind]
    if image.kind == PTX_TEXT:
        return "newer"
    if _pair(capability)[0] != _pair(device)[0]:
        return "major"
    return "minor" if _pair(capability) > _pair(device) else "tegra"


def _pair(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


def driver_of_ptx(index: Index, releases: Sequence[str]) -> tuple[str, str]:
    """The oldest driver that came with the minor series of a toolkit, and the fact: it reads the PTX of that series."""
    series = {".".join(name.split(".")[:2]) for name in releases}
    for row, cells in sorted(lookups.rows(index, "cuda-drivers")):
        if ".".join(cells["cuda"].split(".")[:2]) in series and cells.get("toolkit-driver"):
            return cells["toolkit-driver"], row
    return "", ""


class Answered(Value):
    """What a plan is compared with: the answer, and how the plan came about.

    `version` is what the driver prints as its own, `known` the order that a plan without a driver was made by. `typed`
    are the sources and the user's own words, `env` the variables that a driver ran with, `platform` that of this
    machine; all three are empty for a log.
    """

    expected: Expected
    version: str = ""
    known: KnownOrder | None = None
    typed: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    platform: str = ""
    fetched: str = ""


def lock_findings(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    """Every difference between a plan and the answer; none for a plan of another driver than the answer's."""
    expected = answered.expected
    if context.plan.tool != expected.family:
        return
    yield from _driver(context, answered)
    yield from _host_compiler(context, answered)
    yield from _archs(context, expected)
    yield from _words(context, answered)
    if answered.platform and not answered.known and expected.platform != answered.platform:
        finding = AnswerFinding.of(
            "TM229",
            target=expected.target,
            expected=expected.platform,
            actual=answered.platform,
        )
        yield context.locate(finding, None)


def no_driver(expected: Expected) -> Finding:
    """The finding that an answer has no compiler of device code."""
    return AnswerFinding.of(
        "TM230",
        target=expected.target,
        expected="cuda or rocm",
        actual=f"accelerator {expected.accelerator}",
    )


def _driver(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    expected, known = answered.expected, answered.known
    named = f"{expected.component} {expected.release}"
    if known is not None:
        captured = known.captured == expected.release
        other = f"; captures of {known.differs} show other stages" if known.differs else ""
        fetch = f"fetch it with `{answered.fetched}`, or " if answered.fetched else ""
        planned = AnswerFinding.of(
            "TM225",
            "same" if captured else "",
            severity="info" if captured else "warning",
            target=expected.target,
            driver=expected.family,
            captured=known.captured,
            phrases={"other": other, "fetch": fetch},
            expected=named,
            facts=(known.fact,),
        )
        yield context.locate(planned, None)
        return
    version = answered.version or context.plan.version
    if expected.family == "hipcc" and not answered.version:
        version = context.plan.hip
    own = compiles.driver_version(context.index, expected.component, expected.release)
    wanted = own or expected.release
    if not version or version == own:
        return
    series = [release.split(".")[:2] for release in (version, wanted)]
    if not own and series[0] == series[1]:
        return
    differs = AnswerFinding.of(
        "TM224",
        severity="warning" if series[0] == series[1] else "error",
        target=expected.target,
        expected=f"{named}{f' ({expected.family} {own})' if own else ''}",
        actual=f"{expected.family} {version}",
    )
    yield context.locate(differs, None)


def _host_compiler(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    host, (compiler, version) = stage_flags.host_of(context.plan), answered.expected.compiler
    if host is None or not compiler:
        return
    kind, release, stage = host
    if kind == compiler and expecting.same_series(compiler, version, release):
        return
    finding = AnswerFinding.of(
        "TM226",
        target=answered.expected.target,
        expected=f"{compiler} {version}",
        actual=f"{kind} {release}",
    )
    yield context.locate(finding, stage.id)


def _archs(context: PlanContext, expected: Expected) -> Iterator[Finding]:
    if not expected.archs or not context.archs:
        return
    compiled = [arch for arch in context.archs if not arch.startswith(PTX)]
    missing = tuple(arch for arch in expected.archs if arch not in context.archs)
    further = tuple(arch for arch in compiled if arch not in expected.archs)
    for severity, absent, beside in (("error", missing, ()), ("warning", (), further)):
        if absent or beside:
            finding = AnswerFinding.of(
                "TM227",
                "missing" if absent else "further",
                severity=severity,
                target=expected.target,
                missing=absent,
                further=beside,
                expected=" ".join(expected.archs),
                actual=" ".join(compiled),
            )
            stage = context.archs[beside[0]].id if beside else None
            yield context.locate(finding, stage)


def _words(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    expected = answered.expected
    left = dict(expecting.contradicted(expected, answered.typed))
    why = {word: f"`{typed}` takes precedence" for word, typed in left.items()}
    if answered.platform and answered.platform != expected.platform:
        why |= dict.fromkeys(expected.host_words, f"it is for {expected.platform}")
    why |= {
        f"{name}={value}": f"`{name}={answered.env[name]}` takes precedence"
        for name, value in expected.env.items()
        if answered.env.get(name, value) != value
    }
    for word, reason in why.items():
        finding = AnswerFinding.of(
            "TM228",
            target=expected.target,
            word=f"`{word}`",
            why=reason,
            expected=word,
        )
        yield context.locate(finding, None)
