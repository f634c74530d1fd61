"""nvcc's own table of times."""

from __future__ import annotations

import pytest

from tests.compilation.corpus import case
from toolmatrix.compilation import parse_log
from toolmatrix.compilation.cost import HEADER, match_times, read_times
from toolmatrix.compilation.replay import replay
from toolmatrix.errors import UsageError

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
