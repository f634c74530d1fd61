"""Logs in the forms in which they are passed on: CMake's three, and such as lost something on their way."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolmatrix.compilation import Plan, parse, parse_log

LOGS = Path(__file__).parent / "logs"
LOST = "commands without the mark `#$` are skipped, from this one on: a part of the log is missing"
ID = "CMakeCUDACompilerId"


def lines(name: str) -> list[str]:
    """The lines of a log."""
    return (LOGS / name).read_text(encoding="utf-8").split("\n")


def only(text: list[str]) -> Plan:
    """The only plan of a log."""
    (plan,) = parse_log(text).plans
    return plan


@pytest.mark.parametrize("indent", ["", "    "])
def test_the_wrapped_error_text_of_cmake_is_read_as_it_was(indent: str) -> None:
    plan = only([indent + line for line in lines("cmake-3.25-error.txt")])
    assert plan.version == "13.5.37"
    assert [(stage.tool, stage.outputs) for stage in plan.stages] == [
        ("gcc", (f"tmp/{ID}.cpp4.ii",)),
        ("cudafe++", (f"tmp/{ID}.cudafe1.cpp", f"tmp/{ID}.module_id")),
        ("gcc", (f"tmp/{ID}.cpp1.ii",)),
        (
            "cicc",
            tuple(
                f"tmp/{ID}.{end}" for end in ("cudafe1.c", "cudafe1.stub.c", "cudafe1.gpu", "ptx")
            ),
        ),
        ("ptxas", (f"tmp/{ID}.sm_75.cubin",)),
    ]
    assert plan.edges == ((0, 1), (1, 3), (2, 3), (3, 4))
    assert plan.env["TOP"].endswith("/demo/cuda-13.5/bin/..")
    assert plan.env["LIBRARIES"].strip() == (
        '"-L/tmp/demo/cuda-13.5/bin/../lib/stubs" "-L/tmp/demo/cuda-13.5/bin/../lib"'
    )
    assert [one.text for one in plan.diagnostics] == [
        "ptxas fatal : Unknown option '-no-such-option'",
        "the command failed with exit code 255",
    ]


def test_what_follows_a_short_or_a_whole_line_is_no_part_of_it() -> None:
    text = [
        "",
        "  #$ _SPACE_=",
        "  #$ rm k.fatbin",
        "  k.cu(1): error: a",
        "",
        '  #$ gcc -E "k.cu" -o "k.ii" ' + "-DA " * 40,
        "  k.cu(2): error: b",
        "",
        '  #$ gcc -E "k.cu" -o "k.ii"',
        "  k.cu(3): error: c",
    ]
    plan = only(text)
    assert [len(stage.argv) for stage in plan.stages] == [45, 5]
    assert [one.text[:7] for one in plan.diagnostics] == ["k.cu(1)", "k.cu(2)", "k.cu(3)"]


@pytest.mark.parametrize("name", ["CMakeConfigureLog-4.4.yaml", "CMakeOutput-3.25.log"])
def test_both_files_of_cmake_hold_the_plan_with_all_its_files(name: str) -> None:
    plan = only(lines(name))
    assert [stage.kind for stage in plan.stages][-3:] == ["fatbinary", "host-compile", "link"]
    stub = plan.stages[-2]
    assert stub.inputs == ("tmp/a_dlink.fatbin.c", "tmp/a_dlink.reg.c")
    assert 'FATBINFILE="tmp/a_dlink.fatbin.c"' in "".join(stub.argv).replace("\\", "")
    assert plan.edges[-5:] == ((7, 8), (7, 9), (8, 9), (6, 10), (9, 10))
    assert plan.diagnostics == ()


def test_an_excerpt_of_cmakes_log_is_read_without_its_head() -> None:
    marked = [line for line in lines("CMakeConfigureLog-4.4.yaml") if "#$" in line]
    assert only(marked).stages[-2].inputs == ("tmp/a_dlink.fatbin.c", "tmp/a_dlink.reg.c")


def test_backslashes_stay_where_no_log_of_cmake_doubled_them() -> None:
    plan = parse('#$ _SPACE_=\n#$ gcc -E "-DA=\\\\d" "k.cu" -o "k.ii"')
    assert plan.stages[0].text == 'gcc -E "-DA=\\\\d" "k.cu" -o "k.ii"'


def test_what_nvcc_marks_of_its_own_messages_is_no_stage() -> None:
    plan = only(lines("typed-nvcc-8.0-warning.log"))
    assert [stage.tool for stage in plan.stages] == ["gcc", "cicc", "ptxas"]
    assert [(one.severity, one.text[:30]) for one in plan.diagnostics] == [
        ("warning", "nvcc: The 'compute_20', 'sm_20"),
        ("warning", "nvcc: The 'compute_20', 'sm_20"),
    ]


def test_a_mark_that_was_lost_half_way_is_said_once() -> None:
    plan = only(lines("typed-nvcc-7.5-mark-lost.log"))
    assert [stage.tool for stage in plan.stages] == ["gcc", "cudafe"]
    assert [(one.line, one.severity, one.text) for one in plan.diagnostics] == [
        (9, "warning", LOST),
        (11, "warning", 'k.cu(3): warning: variable "x" was declared but never referenced'),
    ]


def test_a_command_that_names_no_file_is_said_to_be_cut() -> None:
    plan = parse("#$ _SPACE_=\n#$ cudafe++ --c++17 --static-host-stub")
    assert [(one.stage, one.severity, one.text) for one in plan.diagnostics] == [
        (0, "warning", "the command of `cudafe++` names no file: it may be cut off")
    ]


def test_what_threads_of_nvcc_collect_is_no_file_of_a_stage() -> None:
    said = "> /tmp/tmpxft_00000001_00000000-25_de7ca60_stdout 2>/tmp/tmpxft_00000001_00000000-25_de7ca60_stderr"
    plan = parse(f'#$ _SPACE_=\n#$ ptxas -arch=sm_80 "k.ptx" -o "k.cubin"  {said}')
    assert plan.stages[0].outputs == ("k.cubin",)
    assert plan.stages[0].argv == ("ptxas", "-arch=sm_80", "k.ptx", "-o", "k.cubin")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "build.log",
            (
                "parse_log takes the lines of a log, not a str: give it the open file, "
                '`open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
            ),
        ),
        (
            b"build.log",
            (
                "parse_log takes the lines of a log, not a bytes: give it the open file, "
                '`open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
            ),
        ),
        (
            [b"#$ _SPACE_="],
            (
                "the lines of a log are str, not bytes: give it the open file, "
                '`open(NAME, errors="surrogateescape")`, or `text.split("\\n")`'
            ),
        ),
    ],
    ids=["name", "bytes", "byte file"],
)
def test_a_name_or_bytes_given_as_lines_is_an_error_in_words(given: object, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        parse_log(given)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_bytes_given_as_a_text_are_an_error_in_words() -> None:
    with pytest.raises(TypeError, match="the text of a log is str, not bytes"):
        parse(b"#$ _SPACE_=")  # type: ignore[arg-type]
