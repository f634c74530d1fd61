"""Findings about a plan beside what a lock says about the same compile."""

from __future__ import annotations

from toolmatrix.codes import answers as codes
from toolmatrix.judge import stage_flags
from toolmatrix.judge.stage_facts import PTX
from toolmatrix.request import driver_facts
from toolmatrix.stages import expected as expecting
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.finding import Finding
    from toolmatrix.judge.stages import PlanContext
    from toolmatrix.request.driver_facts import KnownOrder
    from toolmatrix.stages.expected import Expected


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


def findings(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    """Every difference between a plan and the answer; none for a plan of another driver than the answer's."""
    expected = answered.expected
    if context.plan.tool != expected.family:
        return
    yield from _driver(context, answered)
    yield from _host_compiler(context, answered)
    yield from _archs(context, expected)
    yield from _words(context, answered)
    if answered.platform and not answered.known and expected.platform != answered.platform:
        finding = codes.PlatformDiffers(
            severity="warning",
            target=expected.target,
            expected=expected.platform,
            actual=answered.platform,
        )
        yield context.placed(finding, None)


def no_driver(expected: Expected) -> Finding:
    """The finding that an answer has no compiler of device code."""
    with_ = f"accelerator {expected.accelerator}"
    return codes.NoDriver(
        severity="error", target=expected.target, expected="cuda or rocm", actual=with_
    )


def _driver(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    expected, known = answered.expected, answered.known
    named = f"{expected.component} {expected.release}"
    if known is not None:
        captured = known.captured == expected.release
        planned = codes.PlannedByCaptures(
            severity="info" if captured else "warning",
            target=expected.target,
            driver=expected.family,
            captured=known.captured,
            differs=known.differs,
            fetched=answered.fetched,
            expected=named,
            facts=(known.fact,),
        )
        yield context.placed(planned, None)
        return
    version = answered.version or context.plan.version
    if expected.family == "hipcc" and not answered.version:
        version = context.plan.hip
    own = driver_facts.driver_version(context.index, expected.component, expected.release)
    wanted = own or expected.release
    if not version or version == own:
        return
    series = [one.split(".")[:2] for one in (version, wanted)]
    if not own and series[0] == series[1]:
        return
    differs = codes.DriverDiffers(
        severity="warning" if series[0] == series[1] else "error",
        target=expected.target,
        expected=f"{named}{f' ({expected.family} {own})' if own else ''}",
        actual=f"{expected.family} {version}",
    )
    yield context.placed(differs, None)


def _host_compiler(context: PlanContext, answered: Answered) -> Iterator[Finding]:
    found, (compiler, version) = stage_flags.host_of(context.plan), answered.expected.compiler
    if found is None or not compiler:
        return
    kind, release, stage = found
    if kind == compiler and expecting.same_series(compiler, version, release):
        return
    finding = codes.HostCompilerDiffers(
        severity="error",
        target=answered.expected.target,
        expected=f"{compiler} {version}",
        actual=f"{kind} {release}",
    )
    yield context.placed(finding, stage.id)


def _archs(context: PlanContext, expected: Expected) -> Iterator[Finding]:
    if not expected.archs or not context.archs:
        return
    made = [arch for arch in context.archs if not arch.startswith(PTX)]
    missing = tuple(arch for arch in expected.archs if arch not in context.archs)
    further = tuple(arch for arch in made if arch not in expected.archs)
    for severity, absent, beside in (("error", missing, ()), ("warning", (), further)):
        if absent or beside:
            finding = codes.ArchsDiffer(
                severity=severity,
                target=expected.target,
                missing=absent,
                further=beside,
                expected=" ".join(expected.archs),
                actual=" ".join(made),
            )
            stage = context.archs[beside[0]].id if beside else None
            yield context.placed(finding, stage)


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
        finding = codes.WordLeftOut(
            severity="warning",
            target=expected.target,
            word=f"`{word}`",
            why=reason,
            expected=word,
        )
        yield context.placed(finding, None)
