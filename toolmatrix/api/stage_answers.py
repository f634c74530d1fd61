"""Plans for the answer of a lock: by the driver of its release where one is on this machine, else by what is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from toolmatrix.api import driver_wheels, stages
from toolmatrix.api.caller import caller
from toolmatrix.compilation.drivers.installed import Driver
from toolmatrix.compilation.expected import Expected
from toolmatrix.compilation.model import Log
from toolmatrix.documents import Annotated, TypedDict
from toolmatrix.errors import UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.judging.stages import Answered
from toolmatrix.lockfile.model import Lock

_CCBIN = re.compile(r"(?:-ccbin|--compiler-bindir)(?:=.*)?")


class PlannedBy(TypedDict):
    """Of a plan without a driver: the release whose captures show the order of stages."""

    captured: str
    evidence: Annotated[str, "ran", "derived"]
    facts: list[str]


class MadeFor(TypedDict):
    """What a lock or a request says of the compile: with --lock and --for."""

    target: str
    accelerator: str
    platform: str
    driver: str | None
    component: str | None
    release: str | None
    archs: list[str]
    host_compiler: str | None
    words: list[str]
    planned_by: PlannedBy | None
    """Of a plan without a driver: the release whose captures show the order of stages."""


def of_log(log: stages.Stages, lock: Lock, targets: Sequence[str] = ()) -> stages.Stages:
    """The plans of a log, compared with the answer for the one target of a lock. Raises UsageError."""
    from toolmatrix.judging.stages import Answered
    from toolmatrix.processors import this_platform
    from toolmatrix.report.stages import sources
    from toolmatrix.request import compiles

    read = [path for plan in log.log.plans for path in sources(plan)]
    log.answered = Answered(expected=compiles.chosen(lock, targets, read, this_platform()))
    return log


def ask(
    lock: Lock,
    targets: Sequence[str],
    call: stages.DriverCall,
    index: Callable[[], Index],
    wanted: stages.Wanted,
) -> stages.Stages:
    """The plan for the answer of a lock, with its archs, host compiler and words where nothing else was typed.

    Raises CannotSay where nothing is known of such a driver, and what `stages.ask` raises.
    """
    from toolmatrix.compilation import expected as expecting
    from toolmatrix.compilation.drivers import dry_run
    from toolmatrix.judging.stages import Answered
    from toolmatrix.processors import this_platform
    from toolmatrix.request import compiles

    platform = this_platform()
    expected = compiles.chosen(lock, targets, call.sources, platform)
    if not expected.family:
        return stages.Stages(
            Log(plans=()), index, wanted=wanted, answered=Answered(expected=expected)
        )
    env = {**expected.env, **call.env}
    named = dry_run.arch_flags(call.archs, expected.family)
    typed = (*call.sources, *call.flags, *named)
    here = expected.platform == platform
    words = [*call.flags, *expecting.lock_words(expected, typed, here=here)]
    answered = Answered(expected=expected, typed=typed, env=env, platform=platform)
    driver = _find_driver(index(), expected, env, call.driver)
    if driver is None:
        return _plan_without_driver(index, answered, call.sources, [*words, *named], wanted)
    words += _host_compiler(expected, typed, env, here=here)
    caller().say(f"note: `{driver.program}` was run: {expected.family} {driver.version}".rstrip())
    # What the caller says of archs goes with the words, and the lock's own only where nothing is typed.
    driver_call = call.replace(flags=tuple(words), driver=driver.program, env=env)
    plans = stages.ask(driver_call, index, wanted)
    plans.answered = answered.replace(version=driver.version)
    return plans


def document(answered: Answered) -> MadeFor:
    """What a document says of the answer that its plans are for."""
    expected, order = answered.expected, answered.known
    return {
        "target": expected.target,
        "accelerator": expected.accelerator,
        "platform": expected.platform,
        "driver": expected.family or None,
        "component": expected.component or None,
        "release": expected.release or None,
        "archs": list(expected.archs),
        "host_compiler": " ".join(filter(None, expected.compiler)) or None,
        "words": [*expected.words, *expected.host_words],
        # A plan without a driver is derived, unless captures of that release show it.
        "planned_by": {
            "captured": order.captured,
            "evidence": "ran" if order.captured == expected.release else "derived",
            "facts": [order.fact],
        }
        if order
        else None,
    }


def _find_driver(
    index: Index, expected: Expected, env: Mapping[str, str], named: str
) -> Driver | None:
    from toolmatrix.compilation.drivers import dry_run, installed
    from toolmatrix.factbase.store import cache_folder
    from toolmatrix.request import compiles

    family = expected.family
    if named:
        kind, program = dry_run.find((), (), named, env.get("PATH"))
        if kind.name != family:
            raise UsageError(
                f"`{named}` is no {family}",
                expected=f"the driver of {expected.component} {expected.release}",
                help="leave `--driver` out, or name another target with `--target`",
            )
        version = installed.version(family, program, env)
        return installed.Driver(program=program, version=version)
    own = compiles.driver_version(index, expected.component, expected.release)
    here = list(installed.drivers(family, env, cache_folder(env)))
    exact = (driver for driver in here if own and driver.version == own)
    wanted = (own or expected.release).split(".")[:2]
    alike = (driver for driver in here if driver.version.split(".")[:2] == wanted)
    return next(exact, None) or next(alike, None)


def _host_compiler(
    expected: Expected, typed: Iterable[str], env: Mapping[str, str], *, here: bool
) -> list[str]:
    from toolmatrix.compilation.drivers import installed

    if expected.family != "nvcc" or not here or any(map(_CCBIN.fullmatch, typed)):
        return []
    program = installed.host_compiler(*expected.compiler, env)
    return ["-ccbin", program] if program else []


def _plan_without_driver(
    index: Callable[[], Index],
    answered: Answered,
    sources: Sequence[str],
    words: Sequence[str],
    wanted: stages.Wanted,
) -> stages.Stages:
    from toolmatrix.request import compiles

    expected = answered.expected
    plan, order = compiles.plan_from_facts(index(), expected, words, sources)
    fetched = driver_wheels.command(index(), expected.component, expected.release)
    return stages.Stages(
        Log(plans=(plan,)),
        index,
        wanted=wanted,
        answered=answered.replace(known=order, fetched=fetched),
    )
