"""What a plan costs: schedules that no machine could beat or better, archs, and saved runs."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compilation.corpus import case
from tests.compilation.plans import plan, random_plans, stage
from toolmatrix.compilation import Plan, parse_log
from toolmatrix.compilation.cost import HEADER, cost, from_run, match_times, read_times, schedule
from toolmatrix.compilation.execute import Run, Timing
from toolmatrix.compilation.replay import replay
from toolmatrix.errors import UsageError

TWO = replay(
    plan(
        stage(0, ["k.cu"], ["i"], kind="preprocess"),
        stage(1, ["i"], ["8.ptx", "id"], kind="cicc", arch="compute_80"),
        stage(2, ["i", "id"], ["9.ptx"], kind="cicc", arch="compute_90"),
        stage(3, ["8.ptx"], ["80"], kind="ptxas", arch="sm_80"),
        stage(4, ["8.ptx"], ["86"], kind="ptxas", arch="sm_86"),
        stage(5, ["9.ptx"], ["90"], kind="ptxas", arch="sm_90"),
        stage(6, ["80", "86", "90"], ["k.o"], kind="fatbinary"),
    ),
    work="w",
)
SECONDS = {0: 1.0, 1: 4.0, 2: 5.0, 3: 1.0, 4: 2.0, 5: 1.0, 6: 0.5}


@given(random_plans(), st.data(), st.integers(1, 5))
def test_a_schedule_lies_between_what_is_possible_and_what_is_certain(
    any_plan: Plan, data: st.DataObject, cores: int
) -> None:
    steps = replay(any_plan, work="w").steps
    seconds = {step.id: data.draw(st.floats(0, 9)) for step in steps}
    peaks = {step.id: data.draw(st.integers(0, 9)) for step in steps}
    found = schedule(steps, seconds, cores, peaks)
    total = sum(seconds.values())
    longest = sum(seconds[one] for one in cost(steps, seconds).critical)
    assert found.seconds >= max(longest, total / cores) - 1e-9
    # Graham's bound on any schedule that leaves no core idle while a step is ready.
    assert found.seconds <= total / cores + longest * (1 - 1 / cores) + 1e-9
    assert max(peaks.values()) <= found.memory <= sum(sorted(peaks.values())[-cores:])


@given(random_plans(), st.data())
def test_the_critical_path_is_the_longest_chain(any_plan: Plan, data: st.DataObject) -> None:
    steps = replay(any_plan, work="w").steps
    seconds = {step.id: data.draw(st.integers(0, 9)) for step in steps}
    path = cost(steps, seconds).critical
    for before, after in pairwise(path):
        assert before in steps[after].after
    ends: dict[int, float] = {}
    for step in steps:
        ends[step.id] = seconds[step.id] + max((ends[one] for one in step.after), default=0)
    assert sum(seconds[one] for one in path) == max(ends.values())


def test_one_core_takes_the_sum_and_many_the_critical_path() -> None:
    found = cost(TWO.steps, SECONDS)
    assert found.total == 14.5
    assert found.critical == (0, 1, 2, 5, 6)
    assert [one.seconds for one in found.schedules] == [14.5, 11.5, 11.5, 11.5, 11.5]


def test_archs_are_grouped_by_the_code_they_share() -> None:
    found = cost(TWO.steps, SECONDS).archs
    assert [(one.archs, one.stages, one.seconds) for one in found] == [
        (("compute_80", "sm_80", "sm_86"), (1, 3, 4), 7.0),
        (("compute_90", "sm_90"), (2, 5), 6.0),
    ]
    assert math.isclose(found[0].share, 7 / 14.5)


def test_nothing_costs_nothing() -> None:
    found = cost((), {})
    assert found.total == 0
    assert found.critical == ()
    assert [one.seconds for one in found.schedules] == [0, 0, 0, 0, 0]


def a_run() -> Run:
    timings = [
        Timing(stage=id, start=0.0, wall=2 * value, cpu=value, peak=1 << 20, size=0)
        for id, value in SECONDS.items()
    ]
    return Run(timings=tuple(timings), wall=30.0, jobs=2, cores=2, load=(0.0, 1.0))


def test_a_run_counts_by_its_cpu_seconds() -> None:
    found = from_run(TWO, a_run())
    assert found.basis == "cpu"
    assert found.seconds == SECONDS
    assert found.schedules[1].memory == 2 << 20
    assert found.to_json()["critical_seconds"] == 11.5


# nvcc's own table of times.


HEAD = " , ".join([*HEADER, "tool", "metric", "unit"])


def test_a_real_table_is_read() -> None:
    phases = read_times(case("nvcc-13.0.88__time-stdout-real").text.splitlines(), "t.csv")
    assert [(one.kind, one.arch, one.output) for one in phases] == [
        ("preprocess", "", "saxpy.cpp4.ii"),
        ("cudafe", "compute_90", "saxpy.compute_90.cudafe1.cpp"),
        ("preprocess", "compute_80", "saxpy.compute_80.cpp1.ii"),
        ("cicc", "compute_80", "saxpy.compute_80.ptx"),
        ("ptxas", "sm_80", "saxpy.compute_80.cubin"),
        ("preprocess", "compute_90", "saxpy.compute_90.cpp1.ii"),
        ("cicc", "compute_90", "saxpy.compute_90.ptx"),
        ("ptxas", "sm_90", "saxpy.compute_90.sm_90.cubin"),
        ("fatbinary", "", "saxpy.fatbin"),
        ("host-compile", "compute_90", "saxpy.o"),
        ("nvcc (driver)", "", ""),
    ]
    assert phases[3].seconds == pytest.approx(0.613109)


def test_a_table_of_the_same_compile_goes_to_its_stages() -> None:
    # A dry run of one arch, and the table that the same command wrote: all of its times are near nothing.
    log = case("nvcc-13.0.88__time-stdout-dryrun").text.splitlines()
    (plan,) = parse_log(log).plans
    made = replay(plan, work="w")
    seconds, unknown = match_times(read_times(log, "log"), made.steps)
    assert set(seconds) == {step.id for step in made.steps}
    assert [one.name for one in unknown] == ["nvcc (driver)"]


def test_a_phase_without_its_file_goes_by_kind_and_arch() -> None:
    (plan,) = parse_log(case("nvcc-13.0.88__c-many-gencode-ptx").text.splitlines()).plans
    made = replay(plan, work="w")
    step = next(one for one in made.steps if one.kind == "ptxas")
    rows = [HEAD, f"k.cu , ptxas , , other.cubin , {step.arch} , nvcc , 2 , s"]
    assert match_times(read_times(rows, "t.csv"), made.steps) == ({step.id: 2.0}, ())


def test_the_kind_of_time_is_read() -> None:
    rows = [HEAD, *(f"k , cicc , , , , nvcc , 5 , {unit}" for unit in ("s", "ms", "us", "ns"))]
    assert [one.seconds for one in read_times(rows, "t")] == pytest.approx([5, 5e-3, 5e-6, 5e-9])


@pytest.mark.parametrize(
    ("rows", "what", "where"),
    [
        ([], "this is not a table of `nvcc -time`", "t.csv"),
        (["\0"], "this is not a table of `nvcc -time`", "t.csv"),
        (
            [HEAD, "k , cicc , , , , nvcc , fast , ms"],
            "a row of nvcc's times cannot be read",
            "t.csv:2",
        ),
        (
            [HEAD, "k , cicc , , , , nvcc , 1 , days"],
            "a row of nvcc's times cannot be read",
            "t.csv:2",
        ),
    ],
)
def test_what_is_no_table_is_refused(rows: list[str], what: str, where: str) -> None:
    with pytest.raises(UsageError) as error:
        read_times(rows, "t.csv")
    assert error.value.what == what
    assert str(error.value.where) == where
