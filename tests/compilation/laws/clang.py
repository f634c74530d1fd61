"""Every real log of clang and hipcc: what must hold of its plan."""

from __future__ import annotations

import re

from tests.compilation.corpus import Case, log, sources
from tests.compilation.laws import LAWS
from toolmatrix.compilation import Plan, Stage
from toolmatrix.compilation.model import KINDS

# The driver fails before it says who it is.
NAMELESS = {
    "clang-11.0.1__hip-print-bindings",
    "clang-11.0.1__hip-print-phases",
}
MADE_BY_DRIVER = re.compile(r"\.mcin$|\.image\.wrapper-")


def has_a_plan(case: Case) -> bool:
    """Whether a capture is of clang's own driver; hipcc for NVIDIA calls nvcc, which another reader reads."""
    return (
        case.tool in ("hipcc", "clang")
        and not re.search("nvidia|nvcc", case.case)
        and case.name not in NAMELESS
    )


def plan_of(case: Case) -> Plan:
    """The only plan of a capture."""
    (plan,) = log(case.name).plans
    return plan


planned = LAWS.of(has_a_plan)
staged = LAWS.of(lambda case: has_a_plan(case) and plan_of(case).stages)


def before(plan: Plan, stage: Stage) -> set[int]:
    """Every stage that one waits for, also through others."""
    found = {stage.id}
    for one, other in sorted(plan.edges, reverse=True):
        if other in found:
            found.add(one)
    return found - {stage.id}


@planned
def every_log_is_one_plan_of_known_stages(case: Case) -> None:
    plan = plan_of(case)
    assert {stage.kind for stage in plan.stages} <= set(KINDS) - {"other"}
    assert [stage.id for stage in plan.stages] == list(range(len(plan.stages)))
    lines = case.text.splitlines()
    for stage in plan.stages:
        assert lines[stage.line - 1].strip() == stage.text
        assert stage.argv[0].rpartition("/")[2] == stage.tool
    commands = [line for line in lines if re.match(r' "[^"]+"( |$)', line)]
    assert [stage.text for stage in plan.stages] == [line.strip() for line in commands]


@staged
def every_input_is_written_before_or_was_there_before_the_run(case: Case) -> None:
    there = sources() | set(case.sidecar["argv"])
    written: set[str] = set()
    if case.case == "linker-wrapper-dry-run":
        there = frozenset({"a.o", "b.o"})
        # it takes these out of the objects by itself
        written = {path for stage in plan_of(case).stages[:2] for path in stage.inputs}
    for stage in plan_of(case).stages:
        unknown = {path for path in stage.inputs if not MADE_BY_DRIVER.search(path)}
        assert unknown <= written | there
        written |= set(stage.outputs)


@staged
def every_stage_but_the_last_is_waited_for(case: Case) -> None:
    plan = plan_of(case)
    waited_for = {one for one, _ in plan.edges}
    ends = [stage for stage in plan.stages if stage.id not in waited_for]
    assert ends[-1:] == [plan.stages[-1]]
    assert len(ends) == 1


@staged
def a_device_link_waits_for_the_compile_of_its_arch(case: Case) -> None:
    plan = plan_of(case)
    if plan.stages[0].kind == "device-link":
        return
    for stage in plan.stages:
        if stage.kind in ("device-link", "ptxas"):
            compiles = [
                one
                for one in before(plan, stage)
                if plan.stages[one].kind == "device-compile" and plan.stages[one].arch == stage.arch
            ]
            assert compiles


@staged
def what_is_joined_is_of_every_arch_that_was_asked_for(case: Case) -> None:
    words = case.sidecar["argv"]
    asked = {
        word.partition("=")[2] for word in words if re.match("--(offload|cuda-gpu)-arch=", word)
    }
    plan = plan_of(case)
    for stage in plan.stages:
        if asked and stage.kind in ("bundle", "package", "fatbinary"):
            archs = {plan.stages[at].arch for at in before(plan, stage)}
            assert archs - {None} == asked


@staged
def device_code_gets_into_the_object_of_the_host(case: Case) -> None:
    """Where device and host code are made of one source, the last stage has both."""
    plan = plan_of(case)
    last = before(plan, plan.stages[-1]) | {plan.stages[-1].id}
    assert {plan.stages[at].kind for at in last} >= {stage.kind for stage in plan.stages}


@staged
def a_plan_is_of_the_driver_and_the_version_that_printed_it(case: Case) -> None:
    plan = plan_of(case)
    assert plan.tool == case.tool
    told = re.search(r"clang version ([\d.]*\d)", case.sidecar["version_text"])
    assert told is not None
    if case.case != "linker-wrapper-dry-run":
        assert plan.version == told[1]
