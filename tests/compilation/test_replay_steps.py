"""Replays of small plans, whole: every field of every step, the assembly letter by letter, and whole messages."""

from __future__ import annotations

import shlex

import pytest

from tests.compilation.plans import plan, stage
from toolmatrix.compilation.model import Depfile
from toolmatrix.compilation.replay import Replay, ReplayStep, find, order, replay, select
from toolmatrix.errors import NothingMatched, ToolmatrixError, UsageError

SMALL = plan(
    stage(0, ["k.cu"], ["/t/d/tmpxft_1.ii"], kind="preprocess", text='gcc -E "k.cu"'),
    stage(
        1, ["/t/d/tmpxft_1.ii"], ["/t/d/tmpxft_1.ptx"], kind="cicc", arch="compute_80",
        text="cicc /t/d/tmpxft_1.ii  ",
    ),
    stage(
        2, ["/t/d/tmpxft_1.ptx"], ["out/k.o"], kind="ptxas", arch="sm_80",
        text="ptxas /t/d/tmpxft_1.ptx -o out/k.o",
    ),
    env={"PATH": "/bin", "NVCC_APPEND_FLAGS": "-G", "NVCC_PREPEND_FLAGS": "-G", "1a": "x", "A": "b"},
).replace(version="13.0")  # fmt: skip


def test_a_replay_is_made_whole() -> None:
    assert replay(SMALL, work="w/t") == Replay(
        title="nvcc 13.0",
        work="w/t",
        env={"A": "b", "PATH": "/bin"},
        steps=(
            ReplayStep(
                id=0,
                kind="preprocess",
                tool="preprocess",
                arch=None,
                commands=('gcc -E "k.cu"',),
                inputs=("k.cu",),
                outputs=("w/t/tmpxft_1.ii",),
                after=(),
                depfile="w/t/stage-1.d",
            ),
            ReplayStep(
                id=1,
                kind="cicc",
                tool="cicc",
                arch="compute_80",
                commands=("cicc w/t/tmpxft_1.ii",),
                inputs=("w/t/tmpxft_1.ii",),
                outputs=("w/t/tmpxft_1.ptx",),
                after=(0,),
            ),
            ReplayStep(
                id=2,
                kind="ptxas",
                tool="ptxas",
                arch="sm_80",
                commands=("ptxas w/t/tmpxft_1.ptx -o out/k.o",),
                inputs=("w/t/tmpxft_1.ptx",),
                outputs=("out/k.o",),
                after=(1,),
            ),
        ),
        directories=("out", "w/t"),
        results=("out/k.o",),
    )
    assert list(replay(SMALL, work="w").env) == ["A", "PATH"]


def test_a_part_names_what_it_leaves_out_and_what_has_to_be_there() -> None:
    made = replay(SMALL, work="w", since="cicc", until="2")
    assert [(step.id, step.after) for step in made.steps] == [(1, ())]
    assert made.left_out == (0, 2)
    assert made.needed == ("w/tmpxft_1.ii",)
    assert made.results == ()
    assert replay(SMALL, work="w", only=["sm_80"]).left_out == ()


def test_what_a_part_needs_is_what_stages_before_it_write() -> None:
    # Stage 2 writes the file that stage 1 reads once more, which is no reason to have it there before.
    again = plan(stage(0, [], ["a"]), stage(1, ["a"], ["b"]), stage(2, ["b"], ["a"]))
    assert replay(again, work="w", until="2").needed == ()
    assert replay(again, work="w", since="3").needed == ("b",)


def test_a_plan_without_a_version_is_called_by_its_tool() -> None:
    made = replay(plan(stage(0, kind="link")), work="w")
    assert made.title == "nvcc"
    assert [step.name for step in made.steps] == ["stage 1 (link)"]
    assert replay(SMALL, work="w").steps[2].name == "stage 3 (ptxas sm_80)"


def test_a_compiler_that_can_is_asked_for_the_headers_it_read() -> None:
    made = stage(0, ["/src/k.cu"], ["/src/k.o"], kind="host-compile", text="gcc -c /src/k.cu")
    step = replay(plan(made.replace(tool="gcc")), work="w").steps[0]
    assert step.depfile == "w/stage-1.d"
    assert step.tracked == ("gcc -c /src/k.cu -MD -MF w/stage-1.d",)


def test_paths_in_what_is_tracked_move_with_the_temp_files() -> None:
    made = stage(0, ["k.cu"], ["/t/tmpxft_1.ii"], kind="preprocess", text="gcc -o /t/tmpxft_1.ii")
    step = replay(plan(made.replace(tool="gcc")), work="w").steps[0]
    assert step.tracked == ("gcc -o w/tmpxft_1.ii -MD -MF w/stage-1.d",)


def test_the_file_of_headers_that_nvcc_writes_is_one_command_more_and_a_note() -> None:
    one = plan(stage(0, ["k.cu"], ["k.ii"], kind="preprocess", text="gcc -E k.cu"))
    listed = one.replace(depfiles=(Depfile(path="k.d", stages=(0,)),))
    made = replay(listed, work="w")
    assert [len(step.commands) for step in made.steps] == [2]
    assert made.steps[0].commands[1].endswith(" k.ii > k.d")
    assert made.steps[0].outputs == ("k.ii", "k.d")
    assert made.notes == (
        "the log does not show -MT, -MMD and -MP: k.d lists all headers, for k.o",
    )
    asked = replay(listed, work="w", asked=["-MD", "-MT", "x.o"])
    assert asked.steps[0].commands[1].startswith("target=x.o awk ")
    assert asked.notes == ()


def test_a_step_that_reads_no_headers_has_no_file_of_them() -> None:
    step = replay(plan(stage(0, ["k.ii"], ["k.s"], kind="host-compile")), work="w").steps[0]
    assert (step.depfile, step.tracked) == ("", ())


@pytest.mark.parametrize(
    ("work", "refused"), [("my work", True), ("a$b", True), ("", True), ("a_b/c.d+e-1", False)]
)
def test_the_directory_for_temp_files_is_one_that_a_shell_takes_literally(
    work: str, refused: bool
) -> None:
    if not refused:
        assert replay(SMALL, work=work).work == work
        return
    with pytest.raises(UsageError) as caught:
        replay(SMALL, work=work)
    assert message(caught.value) == (
        "the directory for temp files needs quoting in a shell",
        "letters, digits and `_/.+-`",
        work,
        "",
    )


@pytest.mark.parametrize("program", ["cl.exe", "CL.EXE", "C:\\bin\\nvcc", "d:/bin/cicc", "cl"])
def test_programs_of_windows_are_refused(program: str) -> None:
    with pytest.raises(UsageError) as caught:
        replay(plan(stage(0), stage(1).replace(argv=(program, "/c"))), work="w")
    assert message(caught.value) == (
        "a plan made on Windows cannot be replayed: its programs and paths are not of this system",
        "",
        program,
        "make the dry run on Linux",
    )


def test_a_stage_without_words_is_of_any_system() -> None:
    made = replay(plan(stage(0).replace(argv=()), stage(1).replace(argv=("clang", "cl"))), work="w")
    assert [step.id for step in made.steps] == [0, 1]


def test_a_stage_that_the_plan_has_not_is_named_with_those_it_has() -> None:
    with pytest.raises(NothingMatched) as caught:
        find(SMALL, "cicc:sm_80")
    assert message(caught.value) == (
        "the plan has no stage cicc:sm_80",
        "a number from 1 to 3, or one of: preprocess, cicc, ptxas",
        "",
        "`cicc:ARCH` selects that stage for one arch",
    )
    assert find(SMALL.replace(stages=SMALL.stages[:2]), "preprocess:") == {0}


def test_an_arch_that_no_stage_is_for_is_named_with_what_the_plan_has() -> None:
    for stages, expected in (
        (SMALL.stages, "one of: compute_80, sm_80"),
        (SMALL.stages[:1], "a plan with device stages"),
    ):
        with pytest.raises(NothingMatched) as caught:
            select(SMALL.replace(stages=stages), only=["sm_75"])
        assert message(caught.value) == ("the plan makes no code for sm_75", expected, "", "")


def test_until_one_and_since_another_is_what_lies_between() -> None:
    made = plan(*(stage(place, [str(place)], [str(place + 1)]) for place in range(5)))
    assert select(made, since="2", until="4") == {1, 2, 3}
    assert select(made) == {0, 1, 2, 3, 4}


def test_a_program_with_outputs_or_of_a_known_kind_writes_these_alone() -> None:
    known = (stage(0, ["f"], kind="ptxas"), stage(1, ["f"], kind="ptxas"))
    assert order(known) == ()
    assert order((stage(0, ["f"]), stage(1, ["f"], kind="ptxas"))) == ((0, 1),)
    assert order((stage(0, ["f"], ["g"]), stage(1, ["f"], ["h"]))) == ()


def test_all_that_writes_a_file_is_in_order_and_nothing_waits_for_itself() -> None:
    assert order((stage(0, ["f"], ["f"]), stage(1, ["g"], ["f"]), stage(2, [], ["g"]))) == (
        (0, 1),
        (1, 2),
    )


def test_temp_files_keep_their_places_below_what_they_have_in_common() -> None:
    made = replay(
        plan(
            stage(0, [], ["/t/a/x", "/t/a/seen"], text="x /t/a/x /t/a/x.y a/t/a/x /t/a/x-z /t/a/x"),
            stage(1, ["/t/a/x"], ["/t/b/tmpxft_9", "/t/b/own"]),
            stage(2, [], ["/else/k.o"]),
            stage(3, ["local"], ["local"]),
        ),
        work="w",
    )
    # What comes with a file that is read on is a temp file as well; what is neither stays where it is.
    assert [step.outputs for step in made.steps] == [
        ("w/a/x", "w/a/seen"),
        ("w/b/tmpxft_9", "/t/b/own"),
        ("/else/k.o",),
        ("local",),
    ]
    assert made.steps[0].commands == ("x w/a/x /t/a/x.y a/t/a/x /t/a/x-z w/a/x",)
    assert made.directories == ("w", "w/a", "w/b")
    assert made.results == ("/t/b/own", "/else/k.o")


def test_of_two_temp_files_the_longer_name_is_replaced_whole() -> None:
    made = replay(
        plan(stage(0, [], ["/t/tmpxft_1", "/t/tmpxft_1 b"], text='x "/t/tmpxft_1 b" /t/tmpxft_1')),
        work="w",
    )
    assert made.steps[0].commands == ('x "w/tmpxft_1 b" w/tmpxft_1',)


def test_a_plan_without_temp_files_is_run_as_it_is() -> None:
    made = replay(plan(stage(0, ["tmpxft_0"], ["k.o", "tmpxft_1"], text="x /t/k.o")), work="w")
    assert made.steps[0].commands == ("x /t/k.o",)
    assert made.results == ("k.o", "tmpxft_1")
    assert made.directories == ("w",)


def test_messages_that_nvcc_sends_to_its_own_files_are_left_out() -> None:
    text = "ptxas k.ptx 2> /tmp/tmpxft_1_stderr "
    assert replay(plan(stage(0, text=text)), work="w").steps[0].commands == ("ptxas k.ptx",)


def test_words_that_a_shell_expands_are_noted_for_all_stages_that_are_run() -> None:
    env = {"A": "1", "AB": "2"}
    texts = ["$A/x $AB/y", "$A", "x `y`", "$(z)", "${w}", "a$1 $ b", "$_"]
    stages = [stage(place, text=text) for place, text in enumerate(texts)]
    note = "the shell expands words of stage {}, as it does under nvcc itself"
    assert replay(plan(*stages, env=env), work="w").notes == (note.format("2, 3, 4, 5, 7"),)
    assert replay(plan(*stages, env=env), work="w", until="3").notes == (note.format("3"),)
    assert replay(plan(*stages, env=env, tool="clang"), work="w").notes == ()


HANDLES = [
    ".protected __hip_gpubin_handle_{0}",
    ".type __hip_gpubin_handle_{0},@object",
    '.section .hip_gpubin_handle,"aw"',
    ".globl __hip_gpubin_handle_{0}",
    ".p2align 3",
    ".globl __hip_gpubin_handle_{1}",
    ".set __hip_gpubin_handle_{1},__hip_gpubin_handle_{0}",
    "__hip_gpubin_handle_{0}:",
    ".zero 8",
]
CODES = [
    ".protected __hip_fatbin{0}",
    ".type __hip_fatbin{0},@object",
    '.section .hip_fatbin,"a",@progbits',
    ".globl __hip_fatbin{0}",
    ".p2align 12",
]
ALIAS = [".globl __hip_fatbin_{1}", ".set __hip_fatbin_{1},__hip_fatbin_{0}"]
BUNDLE = ["__hip_fatbin{0}:", '.incbin "w/k.hipfb"']
END = ['.section .note.GNU-stack, "", @progbits']
# The first eight bytes that `md5sum` prints for `u2` and `u1`, the last of them first; in order.
UNITS = ("6e143f4f081b0c27", "863f79a0dd4c77e4")


def assembled(version: str, *ids: str) -> Replay:
    """A plan of clang in which a stage reads an .mcin file that nothing writes, and another links its object."""
    made = stage(2, ["/t/other", "/t/k.hipfb"], ["/t/k.o"], kind="assemble")
    return replay(
        plan(
            stage(0, [], ["/t/h o.o"]),
            stage(1, [], ["/t/k.hipfb"]).replace(argv=("clang", *(f"-cuid={one}" for one in ids))),
            made.replace(argv=("clang", "/t/k o.mcin"), inputs=(*made.inputs, "/t/k o.mcin")),
            stage(3, ["/t/h o.o", "of the user.o", "/t/k.o"], ["k"], kind="link"),
            tool="clang",
        ).replace(version=version),
        work="w",
    )


def filled(lines: list[str], *names: str) -> str:
    return rf"printf '%s\n' {shlex.join(line.format(*names) for line in lines)}"


@pytest.mark.parametrize(("version", "end"), [("17.0.6", []), ("18.1.8", END), ("", END)])
def test_the_mcin_file_is_this_assembly(version: str, end: list[str]) -> None:
    plain = filled([*CODES, *BUNDLE, *end], "")
    made = assembled(version)
    first, second = made.steps[2].commands
    assert first == f"{plain} > 'w/k o.mcin'"
    assert second == "clang 'w/k o.mcin'"
    assert made.notes == (
        "the driver writes the .mcin file by itself; its text here is derived from the plan",
    )
    # What it defines for the units of a plan is what their objects ask for, which are read before.
    made = assembled(version, "u1", "u2")
    handles = filled(HANDLES, *UNITS)
    codes = filled([*CODES, *ALIAS, *BUNDLE, *END], *UNITS).replace(
        "__hip_fatbin6", "__hip_fatbin_6"
    )
    newer = f"{handles} {codes.partition(' ')[2].partition(' ')[2]}"
    asked = f"grep -q __hip_fatbin_{UNITS[0]} 'w/h o.o'"
    first, _ = made.steps[2].commands
    assert first == f"if {asked}; then {newer}; else {plain}; fi > 'w/k o.mcin'"
    assert made.steps[2].inputs == ("/t/other", "w/k.hipfb", "w/h o.o")
    assert made.steps[2].after == (0, 1)


def test_an_mcin_file_that_a_stage_writes_is_not_made() -> None:
    written = plan(
        stage(0, [], ["/t/k.mcin"], text="x"),
        stage(1, ["/t/k.mcin"], text="y").replace(argv=("as", "/t/k.mcin")),
    )
    made = replay(written, work="w")
    assert made.notes == ()
    assert made.steps[1].inputs == ("w/k.mcin",)
    assert len(made.steps[1].commands) == 1


def message(error: ToolmatrixError) -> tuple[str, str, str, str]:
    """What an error says."""
    return error.what, error.expected, error.found, error.help
