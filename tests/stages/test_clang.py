"""Graphs of clang and hipcc: shapes checked by hand, and laws that hold for every log of the corpus."""

from __future__ import annotations

import re

import pytest

from tests.stages.corpus import Case, case, cases, sources
from toolmatrix.stages import Plan, Stage, parse, parse_log
from toolmatrix.stages.model import KINDS

# hipcc for NVIDIA calls nvcc, which another reader reads.
LOGS = [one for one in cases("hipcc", "clang") if not re.search("nvidia|nvcc", one.case)]
# The driver fails before it says who it is.
NAMELESS = {
    "clang-11.0.1__hip-print-bindings",
    "clang-11.0.1__hip-print-phases",
}
PLANS = [one for one in LOGS if one.name not in NAMELESS]
STAGED = [one for one in PLANS if parse(one.text).stages]
MADE_BY_DRIVER = re.compile(r"\.mcin$|\.image\.wrapper-")


def names(logs: list[Case]) -> list[str]:
    return [one.name for one in logs]


def shape(plan: Plan) -> list[str]:
    """Each stage as its kind, its arch and the stages it waits for."""
    waits: dict[int, list[str]] = {stage.id: [] for stage in plan.stages}
    for before, after in plan.edges:
        waits[after].append(str(before))
    return [
        " ".join(
            filter(None, (stage.kind, stage.arch, "<" * bool(waits[stage.id]), *waits[stage.id]))
        )
        for stage in plan.stages
    ]


def before(plan: Plan, stage: Stage) -> set[int]:
    """Every stage that one waits for, also through others."""
    found = {stage.id}
    for one, other in sorted(plan.edges, reverse=True):
        if other in found:
            found.add(one)
    return found - {stage.id}


OLD = [
    "device-compile gfx1030",
    "device-link gfx1030 < 0",
    "device-compile gfx906",
    "device-link gfx906 < 2",
    "device-compile gfx90a",
    "device-link gfx90a < 4",
    "bundle < 1 3 5",
    "host-compile < 6",
]
SHAPES = {
    **{
        f"clang-{version}__hip-c-many": OLD
        for version in ("13.0.1", "15.0.6", "16.0.6", "17.0.6", "19.1.7", "21.1.8")
    },
    "clang-23.1.4__hip-c-many": [
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 0 1 2",
        "linker-wrapper < 3",
        "host-compile < 4",
    ],
    "hipcc-7.0.2__new-driver-link": [
        "device-compile gfx1100",
        "device-compile gfx90a",
        "package < 0 1",
        "host-compile < 2",
        "linker-wrapper < 3",
        "device-compile gfx1100",
        "device-compile gfx90a",
        "package < 5 6",
        "host-compile < 7",
        "linker-wrapper < 8",
        "link < 4 9",
    ],
    "clang-13.0.1__hip-rdc-link": [
        "host-compile",
        "host-compile",
        "device-compile gfx1030",
        "device-compile gfx1030",
        "device-link gfx1030 < 2 3",
        "device-compile gfx906",
        "device-compile gfx906",
        "device-link gfx906 < 5 6",
        "device-compile gfx90a",
        "device-compile gfx90a",
        "device-link gfx90a < 8 9",
        "bundle < 4 7 10",
        "assemble < 11",
        "link < 0 1 12",
    ],
    "hipcc-7.0.2__rdc-link-sources": [
        "host-compile",
        "host-compile",
        "device-compile gfx1030",
        "device-compile gfx1030",
        "device-link gfx1030 < 2 3",
        "device-compile gfx90a",
        "device-compile gfx90a",
        "device-link gfx90a < 5 6",
        "bundle < 4 7",
        "assemble < 8",
        "link < 0 1 9",
    ],
    "clang-23.1.4__hip-rdc-link": [
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 0 1 2",
        "host-compile < 3",
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 5 6 7",
        "host-compile < 8",
        "linker-wrapper < 4 9",
    ],
    "hipcc-5.2.3__rdc-c": ["device-compile gfx90a", "host-compile", "bundle < 0 1"],
    "hipcc-5.2.3__link-two-sources": [
        "device-compile gfx90a",
        "unbundle gfx90a",
        "device-link gfx90a < 0 1",
        "bundle < 2",
        "host-compile < 3",
        "device-compile gfx90a",
        "unbundle gfx90a",
        "device-link gfx90a < 5 6",
        "bundle < 7",
        "host-compile < 8",
        "link < 4 9",
    ],
    "hipcc-5.7.1__c-xnack-features": [
        "device-compile gfx908:sramecc+:xnack-",
        "device-link gfx908:sramecc+:xnack- < 0",
        "device-compile gfx90a:xnack+",
        "device-link gfx90a:xnack+ < 2",
        "device-compile gfx90a:xnack-",
        "device-link gfx90a:xnack- < 4",
        "bundle < 1 3 5",
        "host-compile < 6",
    ],
    # llvm-spirv writes over the file that it reads, so both who wrote it count
    "hipcc-7.0.2__generic-and-spirv": [
        "device-compile amdgcnspirv",
        "device-link amdgcnspirv < 0",
        "device-compile amdgcnspirv < 1",
        "device-compile gfx11-generic",
        "device-link gfx11-generic < 3",
        "device-compile gfx9-generic",
        "device-link gfx9-generic < 5",
        "bundle < 1 2 4 6",
        "host-compile < 7",
    ],
    "hipcc-7.0.2__save-temps": [
        "preprocess gfx1030",
        "device-compile gfx1030 < 0",
        "device-compile gfx1030 < 1",
        "assemble gfx1030 < 2",
        "device-link gfx1030 < 3",
        "preprocess gfx90a",
        "device-compile gfx90a < 5",
        "device-compile gfx90a < 6",
        "assemble gfx90a < 7",
        "device-link gfx90a < 8",
        "bundle < 4 9",
        "preprocess",
        "host-compile < 10 11",
        "host-compile < 12",
        "assemble < 13",
    ],
    "hipcc-5.7.1__preprocess-E": ["preprocess gfx90a", "preprocess", "bundle < 0 1"],
    "hipcc-7.0.2__host-only": ["host-compile"],
    "hipcc-7.0.2__S-device-only": ["device-compile gfx90a"],
    "hipcc-7.0.2__link-objects": ["link"],
    # PTX and cubin go in the fat binary, from 21 on only the cubin
    "clang-11.0.1__cuda-c-two-archs": [
        "device-compile sm_70",
        "ptxas sm_70 < 0",
        "device-compile sm_75",
        "ptxas sm_75 < 2",
        "fatbinary < 0 1 2 3",
        "host-compile < 4",
    ],
    "clang-23.1.4__cuda-c-two-archs": [
        "device-compile sm_70",
        "ptxas sm_70 < 0",
        "device-compile sm_80",
        "ptxas sm_80 < 2",
        "fatbinary < 1 3",
        "host-compile < 4",
    ],
    # what clang-linker-wrapper hides; the object that holds the bundle is written by itself
    "clang-21.1.8__linker-wrapper-dry-run": [
        "device-link gfx1030",
        "device-link gfx90a",
        "bundle < 0 1",
        "link < 2",
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_graph_is_the_one_checked_by_hand(name: str) -> None:
    assert shape(parse(case(name).text)) == SHAPES[name]


@pytest.mark.parametrize("name", names(PLANS))
def test_every_log_is_one_plan_of_known_stages(name: str) -> None:
    one = case(name)
    plan = parse(one.text)
    assert {stage.kind for stage in plan.stages} <= set(KINDS) - {"other"}
    assert [stage.id for stage in plan.stages] == list(range(len(plan.stages)))
    lines = one.text.splitlines()
    for stage in plan.stages:
        assert lines[stage.line - 1].strip() == stage.text
        assert stage.argv[0].rpartition("/")[2] == stage.tool
    commands = [line for line in lines if re.match(r' "[^"]+"( |$)', line)]
    assert [stage.text for stage in plan.stages] == [line.strip() for line in commands]


@pytest.mark.parametrize("name", sorted(NAMELESS))
def test_a_driver_that_does_not_say_who_it_is_has_no_plan(name: str) -> None:
    assert parse_log(case(name).text.splitlines()).plans == ()


@pytest.mark.parametrize("name", names(STAGED))
def test_every_input_is_written_before_or_was_there_before_the_run(name: str) -> None:
    one = case(name)
    there = sources() | set(one.sidecar["argv"])
    written: set[str] = set()
    if one.case == "linker-wrapper-dry-run":
        there = frozenset({"a.o", "b.o"})
        # it takes these out of the objects by itself
        written = {path for stage in parse(one.text).stages[:2] for path in stage.inputs}
    for stage in parse(one.text).stages:
        unknown = {path for path in stage.inputs if not MADE_BY_DRIVER.search(path)}
        assert unknown <= written | there
        written |= set(stage.outputs)


@pytest.mark.parametrize("name", names(STAGED))
def test_every_stage_but_the_last_is_waited_for(name: str) -> None:
    plan = parse(case(name).text)
    waited_for = {one for one, _ in plan.edges}
    ends = [stage for stage in plan.stages if stage.id not in waited_for]
    assert ends[-1:] == [plan.stages[-1]]
    assert len(ends) == 1


@pytest.mark.parametrize("name", names(STAGED))
def test_a_device_link_waits_for_the_compile_of_its_arch(name: str) -> None:
    plan = parse(case(name).text)
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


@pytest.mark.parametrize("name", names(STAGED))
def test_what_is_joined_is_of_every_arch_that_was_asked_for(name: str) -> None:
    one = case(name)
    words = one.sidecar["argv"]
    asked = {
        word.partition("=")[2] for word in words if re.match("--(offload|cuda-gpu)-arch=", word)
    }
    plan = parse(one.text)
    for stage in plan.stages:
        if asked and stage.kind in ("bundle", "package", "fatbinary"):
            archs = {plan.stages[at].arch for at in before(plan, stage)}
            assert archs - {None} == asked


@pytest.mark.parametrize("name", names(STAGED))
def test_device_code_gets_into_the_object_of_the_host(name: str) -> None:
    """Where device and host code are made of one source, the last stage has both."""
    plan = parse(case(name).text)
    last = before(plan, plan.stages[-1]) | {plan.stages[-1].id}
    assert {plan.stages[at].kind for at in last} >= {stage.kind for stage in plan.stages}


@pytest.mark.parametrize("name", names(STAGED))
def test_a_plan_is_of_the_driver_and_the_version_that_printed_it(name: str) -> None:
    one = case(name)
    plan = parse(one.text)
    assert plan.tool == one.tool
    told = re.search(r"clang version ([\d.]*\d)", one.sidecar["version_text"])
    assert told is not None
    if one.case != "linker-wrapper-dry-run":
        assert plan.version == told[1]
