"""What a run took and a plan costs, as people read it."""

from __future__ import annotations

from tests.compilation.plans import plan, stage
from toolmatrix.compilation.cost import cost, from_run
from toolmatrix.compilation.execute import Run, Timing
from toolmatrix.compilation.replay import replay
from toolmatrix.compilation.verify import Reproduction
from toolmatrix.report.stage_cost import (
    cost_lines,
    left_out_lines,
    run_lines,
    size,
    verdict_lines,
)
from toolmatrix.report.terminal import Terminal

PLAN = plan(
    stage(0, ["k.cu"], ["w/i"], kind="preprocess"),
    stage(1, ["w/i"], ["w/8.ptx"], kind="cicc", arch="compute_80"),
    stage(2, ["w/i"], ["w/9.ptx"], kind="cicc", arch="compute_90"),
    stage(3, ["w/8.ptx", "w/9.ptx"], ["k.o"], kind="fatbinary"),
)
MADE = replay(PLAN, work="w")
SECONDS = (0.25, 2.0, 3.0, 0.5)


def a_run(load: tuple[float, float] = (0.5, 1.0), wall: float = 4.0) -> Run:
    timings = [
        Timing(stage=id, start=0.0, wall=cpu + 0.1, cpu=cpu, peak=id << 28, size=1 << (10 * id))
        for id, cpu in enumerate(SECONDS)
    ]
    return Run(timings=tuple(timings), wall=wall, jobs=2, cores=2, load=load, floor=20 << 20)


def test_a_run_is_a_table_with_what_each_stage_took() -> None:
    assert run_lines(MADE, a_run()) == [
        "#  stage       tool        arch        wall s  cpu s    peak  wrote",
        "1  preprocess  preprocess                0.35   0.25  <20 MB    1 B",
        "2  cicc        cicc        compute_80    2.10   2.00  256 MB   1 kB",
        "3  cicc        cicc        compute_90    3.10   3.00  512 MB   1 MB",
        "4  fatbinary   fatbinary                 0.60   0.50  768 MB   1 GB",
        "4 stages in 4.00 s with 2 jobs (load 0.5 before, 1.0 after, on 2 cores)",
        "wrote k.o",
    ]


def test_computed_figures_stand_beside_the_measured_one_and_the_load() -> None:
    run = a_run()
    assert cost_lines(from_run(MADE, run), MADE.steps, Terminal(), run) == [
        "made for    seconds  share  stages",
        "compute_90     3.00    52%       1",
        "compute_80     2.00    35%       1",
        "the rest       0.75    13%",
        "",
        "critical path, 3.75 of 5.75 s: 1 preprocess > 3 cicc compute_90 > 4 fatbinary",
        "",
        "cores  computed  faster  memory  measured",
        "    1    5.75 s   1.00x  768 MB",
        "    2    3.75 s   1.53x  768 MB  4.00 s, load 0.5 before, 1.0 after, on 2 cores",
        "    4    3.75 s   1.53x  768 MB",
        "    8    3.75 s   1.53x  768 MB",
        "   16    3.75 s   1.53x  768 MB",
        "computed from the CPU seconds of this run, assuming that each stage has a core",
        "to itself and nothing else runs: an estimate",
    ]


def test_a_crowded_machine_is_told() -> None:
    run = a_run(load=(5.0, 6.0))
    assert cost_lines(from_run(MADE, run), MADE.steps, Terminal(), run)[-3:] == [
        "note: other work took part of the cores (load 5.0 before, 6.0 after, on 2",
        "      cores): the measured time is longer for it, and more jobs would not",
        "      shorten it",
    ]


def test_nvccs_own_times_have_neither_memory_nor_a_measured_run() -> None:
    found = cost(MADE.steps, dict(enumerate(SECONDS)), cores=(1, 2))
    assert cost_lines(found, MADE.steps, Terminal(width=100))[-5:] == [
        "cores  computed  faster",
        "    1    5.75 s   1.00x",
        "    2    3.75 s   1.53x",
        "computed from nvcc's own seconds for each phase, assuming that each stage has a core to itself and",
        "nothing else runs: an estimate",
    ]


def test_a_plan_without_archs_has_no_table_of_them() -> None:
    host = replay(plan(stage(0, [], ["a"], kind="link")), work="w").steps
    assert (
        cost_lines(cost(host, {0: 1.0}), host, Terminal())[0]
        == "critical path, 1.00 of 1.00 s: 1 link"
    )


def test_verdicts_say_identical_or_where_the_difference_begins() -> None:
    verdicts = [
        Reproduction(path="a.o", identical=True),
        Reproduction(
            path="b.o",
            identical=False,
            sections=(".strtab", ".data"),
            offset=71,
            ours="tmpxft_1",
            theirs="tmpxft_2",
            why="it contains names of temp files",
            steady=True,
        ),
        Reproduction(path="d.o", identical=True, given="-cuid=1f"),
        Reproduction(path="c.o", identical=False, ours="1", theirs="2", steady=False),
    ]
    assert verdict_lines(verdicts, Terminal()) == [
        "a.o: identical, byte for byte, to the driver's own",
        "b.o: differs from the driver's own, first at byte 71; sections .strtab and .data",
        "  ours:   tmpxft_1",
        "  theirs: tmpxft_2",
        "  it contains names of temp files",
        "d.o: identical, byte for byte, to the driver's own, given -cuid=1f as in its dry run",
        "c.o: unknown, as the driver's own output differs from run to run, first at byte 0",
        "  ours:   1",
        "  theirs: 2",
    ]


def test_a_part_says_what_it_leaves_out_and_needs() -> None:
    part = replay(PLAN, work="w", since="fatbinary")
    kinds = {one.id: one.kind for one in PLAN.stages}
    assert left_out_lines(part, kinds, Terminal()) == [
        "left out: 1 preprocess, 2 cicc, 3 cicc",
        "must exist already: w/8.ptx, w/9.ptx",
        "note: the shell expands words of stage 4, as it does under nvcc itself",
    ]


def test_sizes_are_short() -> None:
    assert [size(count) for count in (0, 1023, 1024, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1 kB",
        "3 MB",
        "5 GB",
    ]
