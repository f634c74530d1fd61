"""Plans made ready to run: their order, their parts, where temp files go, and what clang writes by itself."""

from __future__ import annotations

import shlex
from itertools import pairwise

import pytest
from hypothesis import given

from tests.compilation.corpus import case
from tests.compilation.plans import plan, random_plans, stage
from toolmatrix.compilation import Plan, model, parse_log
from toolmatrix.compilation.replay import Replay, find, order, replay, select
from toolmatrix.errors import NothingMatched, UsageError

TWO = plan(
    stage(0, ["k.cu"], ["/t/k.ii"], kind="preprocess"),
    stage(1, ["/t/k.ii"], ["/t/k.cpp", "/t/id"], kind="cudafe"),
    stage(2, ["k.cu", "/t/id"], ["/t/8.ptx"], kind="cicc", arch="compute_80"),
    stage(3, ["/t/8.ptx"], ["/t/8.cubin"], kind="ptxas", arch="sm_80"),
    stage(4, ["k.cu", "/t/id"], ["/t/9.ptx", "/t/9.stub.c"], kind="cicc", arch="compute_90"),
    stage(5, ["/t/9.ptx"], ["/t/9.cubin"], kind="ptxas", arch="sm_90"),
    stage(6, ["/t/8.cubin", "/t/9.cubin"], ["/t/k.fatbin.c"], kind="fatbinary"),
    stage(7, ["/t/k.cpp", "/t/k.fatbin.c"], ["k.o"], kind="host-compile"),
)


def ids(made: Replay) -> list[int]:
    return [step.id for step in made.steps]


def test_a_file_is_read_between_its_writers() -> None:
    written = (stage(0, [], ["f"]), stage(1, ["f"], ["g"]), stage(2, [], ["f"]))
    assert order((*written, stage(3, ["f"], [], kind="ptxas"))) == (
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (2, 3),
    )


def test_a_program_that_nobody_knows_keeps_its_place_between_those_who_use_its_files() -> None:
    stages = (stage(0, ["f"], ["g"]), stage(1, ["f", "x"]), stage(2, ["f"], ["h"]), stage(3, ["y"]))
    assert order(stages) == ((0, 1), (1, 2))


@given(random_plans())
def test_the_order_holds_every_edge_and_only_goes_forward(any_plan: Plan) -> None:
    pairs = order(any_plan.stages)
    assert set(any_plan.edges) <= set(pairs)
    assert all(before < after for before, after in pairs)


@given(random_plans())
def test_whoever_writes_a_file_is_in_order_with_whoever_uses_it(any_plan: Plan) -> None:
    pairs = set(order(any_plan.stages))
    for one in any_plan.stages:
        for other in any_plan.stages[one.id + 1 :]:
            used = set(other.inputs) | set(other.outputs)
            met = not used.isdisjoint(one.outputs) or not set(one.inputs).isdisjoint(other.outputs)
            assert ((one.id, other.id) in pairs) == met


@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        (["sm_90"], [0, 1, 4, 5]),
        (["compute_80"], [0, 1, 2]),
        (["sm_80", "sm_90"], [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_one_arch_comes_with_what_it_needs_and_without_what_needs_others(
    only: list[str], chosen: list[int]
) -> None:
    assert sorted(select(TWO, only=only)) == chosen


def test_a_target_is_named_with_or_without_its_features() -> None:
    one = plan(stage(0, arch="gfx1:xnack+"), stage(1, arch="gfx2"))
    assert select(one, only=["gfx1"]) == select(one, only=["gfx1:xnack+"]) == {0}


def test_up_to_a_stage_comes_with_what_it_needs() -> None:
    assert ids(replay(TWO, work="w", until="ptxas:sm_80")) == [0, 1, 2, 3]
    assert ids(replay(TWO, work="w", until="2")) == [0, 1]


def test_from_a_stage_on_says_what_has_to_be_there() -> None:
    made = replay(TWO, work="w", since="ptxas:sm_90")
    assert ids(made) == [5, 6, 7]
    assert made.left_out == (0, 1, 2, 3, 4)
    assert made.needed == ("w/9.ptx", "w/8.cubin", "w/k.cpp")


@pytest.mark.parametrize(
    ("words", "found"), [("cicc", {2, 4}), ("cicc:compute_90", {4}), ("8", {7}), ("link", None)]
)
def test_a_stage_is_named_by_number_kind_or_kind_and_arch(
    words: str, found: set[int] | None
) -> None:
    if found is None:
        with pytest.raises(NothingMatched) as error:
            find(TWO, words)
        assert error.value.what == "the plan has no stage link"
        assert error.value.expected == (
            "a number from 1 to 8, or one of: preprocess, cudafe, cicc, ptxas, fatbinary, host-compile"
        )
    else:
        assert find(TWO, words) == found


def test_an_arch_that_the_plan_has_not_is_named_with_those_it_has() -> None:
    with pytest.raises(NothingMatched) as error:
        select(TWO, only=["sm_75"])
    assert error.value.what == "the plan makes no code for sm_75"
    assert error.value.expected == "one of: compute_80, sm_80, compute_90, sm_90"


@given(random_plans())
def test_a_part_of_a_plan_is_complete(any_plan: Plan) -> None:
    made = replay(any_plan, work="w", until=str(len(any_plan.stages)))
    chosen = set(ids(made))
    assert {before for before, after in any_plan.edges if after in chosen} <= chosen
    assert not made.needed


def test_temp_files_move_into_one_directory_and_results_stay() -> None:
    text = 'cat "/t/a b.ii" /t/a.iix > /t/a.ii --file=/t/a.ii -o"/home/k.o"'
    made = replay(
        plan(
            stage(0, ["k.cu"], ["/t/a.ii", "/t/a b.ii"]),
            stage(1, ["/t/a.ii"], ["/home/k.o"], text=text),
        ),
        work="w",
    )
    assert made.steps[1].commands == (
        'cat "w/a b.ii" /t/a.iix > w/a.ii --file=w/a.ii -o"/home/k.o"',
    )
    assert made.steps[0].outputs == ("w/a.ii", "w/a b.ii")
    assert made.directories == ("w",)
    assert made.results == ("/home/k.o",)


def test_a_stage_that_only_checks_a_file_does_not_use_it_up() -> None:
    assert replay(plan(stage(0, [], ["k.ptx"]), stage(1, ["k.ptx"])), work="w").results == (
        "k.ptx",
    )


def test_a_directory_that_a_shell_would_split_is_refused() -> None:
    with pytest.raises(UsageError, match="needs quoting"):
        replay(TWO, work="my work")


def test_a_plan_made_on_windows_is_refused() -> None:
    made = stage(0).replace(argv=("cl.exe", "/c"))
    with pytest.raises(UsageError) as error:
        replay(plan(made), work="w")
    assert error.value.found == "cl.exe"


def test_words_that_the_shell_expands_are_noted_and_the_drivers_own_are_not() -> None:
    env = {"CICC_PATH": "/opt/bin"}
    own = stage(0, text='"$CICC_PATH/cicc" "k.ii"')
    odd = stage(1, text='gcc -D "HOME=$HOME" -D "X=`x`"')
    assert not replay(plan(own, env=env), work="w").notes
    assert replay(plan(own, odd, env=env), work="w").notes == (
        "the shell expands words of stage 2, as it does under nvcc itself",
    )


def test_what_clang_starts_without_a_shell_is_quoted() -> None:
    made = stage(0).replace(argv=("clang", "a b", "$HOME"))
    assert replay(plan(made, tool="clang"), work="w").steps[0].commands == ("clang 'a b' '$HOME'",)


def test_the_assembly_that_clang_writes_itself_is_made() -> None:
    log = case("hipcc-7.0.2__rdc-dump-linker-script")
    only = parse_log(log.text.splitlines()).plans[0]
    made = replay(only, work="w")
    step = next(
        step
        for step in made.steps
        if step.kind in ("assemble", "host-compile") and len(step.commands) > 1
    )
    assert not any(path.endswith(".mcin") for path in step.inputs)
    assert step.commands[0].endswith(".mcin")
    # The lines that clang itself prints into this log, bound to the same file.
    printed = [line.strip() for line in log.text.splitlines() if line.startswith(("  .", "__hip_"))]
    bundle = next(path for path in step.inputs if path.endswith(".hipfb"))
    words = shlex.split(step.commands[0].partition("; else ")[0])
    assert sorted(line.partition('"/')[0] for line in printed) == sorted(
        word.partition('"w/')[0] for word in words[words.index("%s\\n") + 1 :]
    )
    assert bundle.startswith("w/")
    assert f'.incbin "{bundle}"' in step.commands[0]


def test_chains_run_in_the_order_of_the_log() -> None:
    waits = model.predecessors(order(TWO.stages))
    for one, other in pairwise((0, 1, 4, 5, 6, 7)):
        assert one in waits[other]
