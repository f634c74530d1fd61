"""Replays as shell scripts and Ninja files: read as text here, and run on tools that any machine has."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.compilation.plans import EXTERNAL, plan, random_plans, stage
from tests.compilation.real import program
from toolmatrix.compilation import Plan, Stage
from toolmatrix.compilation.execute import run
from toolmatrix.compilation.replay import ninja, order, replay, script
from toolmatrix.errors import UsageError

PAIR = plan(
    stage(0, ["k.cu"], ["w/k.ptx"], kind="cicc", arch="compute_80", text='cicc "k.cu"'),
    stage(1, ["w/k.ptx"], ["k.o"], kind="ptxas", text='ptxas "$HOME" w/k.ptx'),
    env={"PATH": "/a b:/bin", "NVCC_APPEND_FLAGS": "-G", "not a name": "1"},
)

NODE = re.compile(r'^"(0x[0-9a-f]+)" \[label="(.*?)"(, shape=ellipse)?\]$')
LINE = re.compile(r'^"(0x[0-9a-f]+)" -> "(0x[0-9a-f]+)"')


def test_a_script_sets_the_environment_and_names_each_stage() -> None:
    assert (
        script(replay(PAIR, work="w"))
        == """\
#!/bin/sh
# nvcc: 2 stages replayed; made by `toolmatrix stages`.
# Temp files stay in w.
# The shell expands words of stage 2, as it does under nvcc itself.
set -e
export PATH='/a b:/bin'
step='before the first stage'
trap 'code=$?; [ "$code" = 0 ] || echo "$step failed with exit code $code" >&2' EXIT
mkdir -p w

step='stage 1 (cicc compute_80)'
cicc "k.cu"

step='stage 2 (ptxas)'
ptxas "$HOME" w/k.ptx
"""
    )


def test_a_ninja_file_holds_the_true_edges_and_a_pool_for_what_needs_memory() -> None:
    assert (
        ninja(replay(PAIR, work="w"), depth=2)
        == """\
# nvcc: 2 stages replayed; made by `toolmatrix stages`.
# Temp files stay in w.
# The shell expands words of stage 2, as it does under nvcc itself.
builddir = w
begin = mkdir -p w && export PATH='/a b:/bin'

pool memory
  depth = 2
rule stage
  command = $begin && $run
  description = $what
rule keep
  command = $begin && (for f in $made; do test ! -e "$$f" || cp -p "$$f" "$$f.was"; done) && $run && \
(for f in $made; do if cmp -s "$$f.was" "$$f"; then mv "$$f.was" "$$f"; else rm -f "$$f.was"; fi; done)
  description = $what
  restat = 1

build w/k.ptx: keep k.cu
  run = cicc "k.cu"
  what = stage 1 (cicc compute_80)
  made = w/k.ptx
  pool = memory

build k.o: stage w/k.ptx
  run = ptxas "$$HOME" w/k.ptx
  what = stage 2 (ptxas)
"""
    )


def test_a_part_says_what_it_leaves_out_and_looks_for_what_it_needs() -> None:
    text = script(replay(PAIR, work="w", since="ptxas"))
    assert "# Left out: stage 1.\n# Must exist already: w/k.ptx.\n" in text
    assert "step='looking for w/k.ptx'\ntest -e w/k.ptx\n" in text


def test_of_several_who_write_one_file_the_last_has_it_and_they_keep_their_order() -> None:
    links = plan(
        stage(0, ["a.o"], ["w/8.cubin", "w/reg.c"], kind="nvlink"),
        stage(1, ["a.o"], ["w/9.cubin", "w/reg.c"], kind="nvlink"),
        stage(2, ["w/reg.c"], ["stub.o"], kind="host-compile"),
        stage(3, ["w/8.cubin", "w/9.cubin"], ["w/fat.c"]),
        stage(4, ["w/fat.c"], ["fat.o"]),
    )
    built = [line for line in ninja(replay(links, work="w")).splitlines() if line[:6] == "build "]
    assert built == [
        "build w/8.cubin: stage a.o",
        "build w/9.cubin w/reg.c: keep a.o | w/8.cubin",
        "build stub.o: stage w/reg.c | w/8.cubin",
        "build w/fat.c: keep w/8.cubin w/9.cubin",
        "build fat.o: stage w/fat.c",
    ]


def test_one_who_writes_nothing_of_its_own_gets_a_stamp() -> None:
    pairs = plan(
        stage(0, ["k.cu"], ["w/k.ii"], text="one"),
        stage(1, ["k.cu"], ["w/k.ii"]),
        stage(2, ["w/k.ii"], ["k.o"]),
    )
    text = ninja(replay(pairs, work="w"))
    assert "build w/stage-1.done: stage k.cu\n  run = one && : > w/stage-1.done\n" in text
    assert "build w/k.ii: keep k.cu | w/stage-1.done\n" in text


def test_names_are_escaped_for_ninja() -> None:
    text = ninja(replay(plan(stage(0, ["a $b:c"], ["o p.o"])), work="w"))
    assert "build o$ p.o: stage a$ $$b$:c\n" in text


def test_a_name_with_a_line_break_is_refused_by_ninja_alone() -> None:
    made = replay(plan(stage(0, ["a\nb"], ["o.o"])), work="w")
    assert script(made)
    with pytest.raises(UsageError, match="line break"):
        ninja(made)


@pytest.mark.process
def test_a_script_stops_at_the_first_failure_and_names_it(tmp_path: Path) -> None:
    made = plan(
        stage(0, [], ["w/a"]),
        stage(1, ["w/a"], ["w/b"], kind="cicc", arch="sm_1", text="echo broken >&2; exit 3"),
        stage(2, ["w/b"], ["c"]),
    )
    (tmp_path / "run.sh").write_text(script(replay(made, work="w")))
    done = subprocess.run(
        ["sh", "run.sh"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == "broken\nstage 2 (cicc sm_1) failed with exit code 3\n"
    assert not (tmp_path / "c").exists()


def contents(place: Path, any_plan: Plan) -> dict[str, str]:
    """What every file of a plan holds."""
    names = {path for one in any_plan.stages for path in one.outputs}
    return {name: (place / name).read_text() for name in sorted(names)}


def fresh(parent: str, name: str) -> Path:
    """A directory with the files that random plans find there."""
    place = Path(parent, name)
    (place / "m").mkdir(parents=True)
    for path in EXTERNAL:
        (place / path).write_text(path)
    return place


@pytest.mark.long
@pytest.mark.process
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random_plans())
def test_script_ninja_and_parallel_run_make_the_same_files(any_plan: Plan) -> None:
    made = replay(any_plan, work="w")
    with tempfile.TemporaryDirectory() as parent:
        one, two, three = (fresh(parent, name) for name in ("one", "two", "three"))
        (one / "run.sh").write_text(script(made))
        subprocess.run(["sh", "run.sh"], cwd=one, check=True)
        expected = contents(one, any_plan)
        run(made, jobs=4, cwd=two)
        assert contents(two, any_plan) == expected
        if shutil.which("ninja"):
            (three / "build.ninja").write_text(ninja(made, depth=1))
            subprocess.run(["ninja", "-j4", "--quiet"], cwd=three, check=True)
            assert contents(three, any_plan) == expected


def coarse(id: int, reads: tuple[str, ...], writes: tuple[str, ...]) -> str:
    """A command whose outputs are 0 or 1, so that they often come out as they were; it starts no process."""
    names = [f"read{number}" for number, _ in enumerate(reads)]
    return "; ".join(
        [
            *(f"read -r {name} < {path}" for name, path in zip(names, reads, strict=True)),
            f"told=$((({id} + ({id} + {' + '.join(names)}) / 2) % 2))",
            *(f'echo "$told" > {path}' for path in writes),
        ]
    )


@st.composite
def plans_to_build_again(draw: st.DrawFn) -> Plan:
    """Plans in which each file has one writer, but for one file that several write before any reads it."""
    shared = draw(st.sampled_from((0, 2, 3)))
    stages: list[Stage] = []
    for id in range(draw(st.integers(1, 8))):
        there = [*EXTERNAL[:1], "other.cu", *(f"w/{one}" for one in range(id))]
        there += ["w/shared"] if shared and id >= shared else []
        reads = tuple(draw(st.lists(st.sampled_from(there), min_size=1, max_size=3, unique=True)))
        writes = (f"w/{id}", *(["w/shared"] if id < shared else []))
        stages.append(stage(id, reads, writes, text=coarse(id, reads, writes)))
    last = tuple(path for one in stages for path in one.outputs)
    stages.append(stage(len(stages), last, ["out"], text=coarse(len(stages), last, ("out",))))
    return plan(*stages)


@pytest.mark.long
@pytest.mark.process
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plans_to_build_again(),
    st.lists(
        st.tuples(st.sampled_from(["a.cu", "other.cu"]), st.integers(0, 99)), min_size=1, max_size=4
    ),
)
def test_building_again_after_an_edit_makes_what_building_anew_makes(
    any_plan: Plan, edits: list[tuple[str, int]]
) -> None:
    ninja_program = program("ninja")
    made = replay(any_plan, work="w")

    def built(place: Path, *command: str) -> dict[str, str]:
        subprocess.run(command, cwd=place, check=True)
        return contents(place, any_plan)

    with tempfile.TemporaryDirectory() as parent:
        again, anew = fresh(parent, "again"), fresh(parent, "anew")
        (again / "build.ninja").write_text(ninja(made))
        (anew / "build.sh").write_text(script(made))
        for place in (again, anew):
            (place / "a.cu").write_text("0\n")
            (place / "other.cu").write_text("0\n")
        built(again, ninja_program, "--quiet")
        for name, edit in edits:
            for place in (again, anew):
                (place / name).write_text(f"{edit}\n")
            assert built(again, ninja_program, "--quiet") == built(anew, "sh", "build.sh")


def parsed(text: str) -> set[tuple[str, str]]:
    """Pairs of files of `ninja -t graph`: the second is made with the first at hand."""
    labels: dict[str, str] = {}
    rules: set[str] = set()
    onward: dict[str, set[str]] = {}
    for line in text.splitlines():
        if (node := NODE.match(line)) is not None:
            labels[node[1]] = node[2]
            rules |= {node[1]} if node[3] else set()
        elif (edge := LINE.match(line)) is not None:
            onward.setdefault(edge[1], set()).add(edge[2])
    return {
        (labels[start], labels[end])
        for start, ends in onward.items()
        if start not in rules
        for middle in ends
        for end in (onward.get(middle, ()) if middle in rules else (middle,))
    }


@pytest.mark.process
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random_plans())
def test_ninja_reads_the_order_back(any_plan: Plan) -> None:
    ninja_program = program("ninja")
    made = replay(any_plan, work="w")
    with tempfile.TemporaryDirectory() as parent:
        place = fresh(parent, "one")
        (place / "build.ninja").write_text(ninja(made))
        done = subprocess.run(
            [ninja_program, "-t", "graph"], cwd=place, capture_output=True, text=True, check=True
        )
    statements = [line for line in ninja(made).splitlines() if line.startswith("build ")]
    maker = {}
    for step, line in zip(made.steps, statements, strict=True):
        named = re.split(r": (?:stage|keep)(?: |$)", line.removeprefix("build "))[0]
        outputs = re.split(r"(?<!\$) ", named)
        for output in outputs:
            maker[re.sub(r"\$(.)", r"\1", output)] = step.id
    pairs = {(maker[start], maker[end]) for start, end in parsed(done.stdout) if start in maker}
    assert pairs == set(order(any_plan.stages))
