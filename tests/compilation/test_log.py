"""Logs of any shape: several invocations at once, half a log, no log at all."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compilation import corpus
from toolmatrix.compilation import Log, Plan, log_file, parse, parse_log

# All but the one that ends with a command of a person, which counts only where it is the only run.
NVCC = [one for one in corpus.cases("nvcc") if one.name != "nvcc-4.2__seed"]
ONE = "nvcc-13.0.88__c-one-arch"


def read(name: str) -> list[str]:
    """The lines of a case."""
    return corpus.case(name).text.split("\n")


def graph(plan: Plan) -> tuple[object, ...]:
    """A plan without the numbers of its lines."""
    stages = tuple(stage.replace(line=0) for stage in plan.stages)
    return plan.version, stages, plan.edges, plan.removed


def with_pid(lines: Sequence[str], pid: int) -> list[str]:
    """A log as a run with another process id prints it."""
    return [log_line.replace("tmpxft_0000402f_", f"tmpxft_{pid:08x}_") for log_line in lines]


def interleaved(logs: Sequence[list[str]], seed: int) -> list[str]:
    """Lines of several logs mixed, each in its own order."""
    turns = [number for number, lines in enumerate(logs) for _ in lines]
    random.Random(seed).shuffle(turns)
    rest = [iter(lines) for lines in logs]
    return [next(rest[turn]) for turn in turns]


def said(found: Log) -> list[str]:
    """What is said of a log as a whole."""
    return [one.text for one in found.diagnostics]


@settings(deadline=None)
@given(st.integers(1, 1 << 22), st.integers(1, 1 << 22), st.integers())
def test_runs_at_once_are_told_apart_by_pid(first: int, second: int, seed: int) -> None:
    logs = [with_pid(read(ONE), first), with_pid(read(ONE), second + (first == second))]
    plans = parse_log(interleaved(logs, seed)).plans
    alone = [graph(parse("\n".join(lines))) for lines in logs]
    assert sorted(map(repr, map(graph, plans))) == sorted(map(repr, alone))
    env = parse("\n".join(logs[0])).env
    assert [plan.env for plan in plans] == [env, env]


@settings(deadline=None)
@given(st.lists(st.sampled_from(NVCC), min_size=2, max_size=3), st.integers())
def test_different_runs_at_once_are_told_apart(cases: list[corpus.Case], seed: int) -> None:
    logs = [
        [line for line in one.text.split("\n") if "tmpxft_" in line and line.startswith("#$ ")]
        for one in {one.name: one for one in cases}.values()
    ]
    plans = parse_log(interleaved(logs, seed)).plans
    alone = [plan for lines in logs for plan in parse_log(lines).plans]
    assert sorted(str(graph(plan)) for plan in plans) == sorted(str(graph(plan)) for plan in alone)


@settings(deadline=None)
@given(st.lists(st.sampled_from(NVCC), max_size=4))
def test_runs_one_after_the_other_are_the_same_plans(cases: list[corpus.Case]) -> None:
    logs = [one.text.split("\n") for one in cases]
    plans = parse_log([line for lines in logs for line in lines]).plans
    alone = [plan for lines in logs for plan in parse_log(lines).plans]
    assert [graph(plan) for plan in plans] == [graph(plan) for plan in alone]


def test_cleaning_what_an_earlier_run_made_is_a_run_of_its_own() -> None:
    logs = [read(f"nvcc-13.0.88__{case}") for case in ("c-default-arch", "clean-targets")]
    plans = parse_log([line for lines in logs for line in lines]).plans
    assert ["saxpy.o" in plan.removed for plan in plans] == [False, True]


def test_a_pid_may_come_again_as_it_does_in_containers() -> None:
    lines = with_pid(read(ONE), 7)
    other = [line.replace("saxpy", "reduce") for line in lines]
    for second in (lines, other):
        plans = parse_log(lines + second).plans
        assert [len(plan.stages) for plan in plans] == [7, 7]
        assert plans[0].edges == plans[1].edges


def test_kept_files_have_no_pid_and_the_variables_begin_a_run() -> None:
    lines = read("nvcc-13.0.88__keep-keepdir")
    plans = parse_log(lines + lines).plans
    assert [graph(plan) for plan in plans] == [graph(parse("\n".join(lines)))] * 2


def test_versions_may_mix() -> None:
    names = ["nvcc-7.5.17__c-one-arch", "nvcc-13.4.92__c-default-arch", "nvcc-11.2.152__dlink"]
    plans = parse_log([line for name in names for line in read(name)]).plans
    assert [plan.version for plan in plans] == ["7.5.17", "13.4.92", "11.2.152"]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(corpus.cases()), st.data())
def test_a_cut_log_keeps_what_it_has(case: corpus.Case, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(case.text)))
    for text in (case.text[:cut], case.text[cut:]):
        found = parse_log(text.split("\n"))
        for plan in found.plans:
            for stage in plan.stages:
                assert stage.text in text
            plan.to_json()


def test_the_lines_before_a_cut_are_the_same_stages() -> None:
    lines = read(ONE)
    whole = parse("\n".join(lines))
    for count in range(len(lines)):
        plans = parse_log(lines[:count]).plans
        kept = [stage.text for plan in plans for stage in plan.stages]
        assert kept == [stage.text for stage in whole.stages[: len(kept)]]


def test_a_log_that_begins_in_the_middle_says_so() -> None:
    lines = read(ONE)
    begin = next(number for number, line in enumerate(lines) if line.startswith("#$ ptxas"))
    plan = parse("\n".join(lines[begin:]))
    assert [stage.kind for stage in plan.stages] == ["ptxas", "fatbinary", "host-compile"]
    assert "a part of the log is missing" in plan.diagnostics[0].text
    assert plan.diagnostics[0].stage == 0


def test_a_line_cut_within_a_word_says_so() -> None:
    plan = parse('#$ gcc -E "a.cu" -o "a.i')
    assert [one.text for one in plan.diagnostics] == ['a `"` is not closed: the command is cut off']


@pytest.mark.parametrize("lines", [[], [""], ["", "\n", "\r\n"], ["\ufeff"], ["\x1b[0m"]])
def test_an_empty_text_says_so(lines: list[str]) -> None:
    assert parse_log(lines).plans == ()
    assert said(parse_log(lines)) == ["the text is empty"]


@pytest.mark.parametrize("line", ["\0\1\2", "\x7fELF\ufffd\ufffd", "\udcff\udcfe\0"])
def test_binary_data_says_so(line: str) -> None:
    assert said(parse_log([line])) == ["this is binary data, not the log of a driver"]


def test_another_text_says_so() -> None:
    found = parse_log(["Dear Sir,", "#$ "])
    assert said(found) == ["no line comes from a dry run of nvcc, hipcc or clang"]
    assert {one.severity for one in found.diagnostics} == {"error"}


# A verbose hipcc, a dry run of nvcc that was edited into a script, and a driver that was asked for its version.
ALONE = {
    "hipcc": [
        "HIP_PATH=/opt/rocm-6.0.0",
        "HIP_PLATFORM=amd",
        "hipcc-args: -c k.hip -o k.o",
        'hipcc-cmd: "/opt/rocm-6.0.0/lib/llvm/bin/clang++" -x hip -c k.hip -o k.o',
    ],
    "nvcc": [
        "#$ _NVVM_BRANCH_=nvvm",
        "#$ _HERE_=/usr/local/cuda-11.6/bin",
        "export PATH=/usr/local/cuda-11.6/bin:$PATH",
        "cicc --c++14 k.cpp1.ii -o k.ptx",
    ],
    "clang": ["Debian clang version 15.0.6", "Target: x86_64-pc-linux-gnu"],
}


@pytest.mark.parametrize("tool", ALONE)
def test_a_driver_without_its_commands_is_no_plan(tool: str) -> None:
    text = f"the log names {tool}, but none of the commands that it runs"
    found = parse_log(ALONE[tool])
    assert found.plans == ()
    assert [(one.line, one.severity, one.text) for one in found.diagnostics] == [(1, "error", text)]


def test_a_driver_without_its_commands_stays_beside_a_run_with_a_warning() -> None:
    first, second = parse_log([*ALONE["nvcc"], *read("hipcc-5.7.1__c-one-gfx")]).plans
    assert [one.text for one in first.diagnostics] == [
        "the log names nvcc, but none of the commands that it runs"
    ]
    assert (first.stages, bool(second.stages)) == ((), True)


def test_no_line_is_longer_than_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LONGEST", 100)
    monkeypatch.setattr(log_file, "_BLOCK", 60)
    text = "#$ gcc " + "x" * 500 + '\n#$ gcc -E "a.cu"\n' + "y" * 102 + "\n" + "z" * 300
    lines = list(log_file.lines_of(io.StringIO(text)))
    assert [line[:6] for line in lines] == ["#$ gcc", "#$ gcc", "yyyyyy", "zzzzzz"]
    assert max(map(len, lines)) <= 160
    found = parse_log(lines)
    assert [stage.inputs for plan in found.plans for stage in plan.stages] == [("a.cu",)]
    assert [one.line for one in found.diagnostics] == [1, 3, 4]


@settings(deadline=None)
@given(st.text(st.sampled_from("ab\n")), st.integers(1, 9))
def test_lines_of_a_file_are_all_of_it(text: str, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_file, "_BLOCK", block)
        lines = list(log_file.lines_of(io.StringIO(text)))
    assert lines == text.split("\n")[: -1 if text.endswith("\n") or not text else None]


@settings(deadline=None)
@given(st.lists(st.text(), max_size=8))
def test_any_text_is_an_answer(lines: list[str]) -> None:
    for plan in parse_log(lines).plans:
        plan.to_json()


PIECES = st.sampled_from(
    [
        "#$ ", "gcc", "cicc", "ptxas", "fatbinary", "nvlink", "cl.exe", "rm", "erase", "-o", "-E", "-c", ">", "2>", "<",
        '"', '\\"', "\\", " ", "=", ",", "a.ii", "a.ptx", "tmpxft_00000001_00000000-1_a.ptx", "--image3=kind=elf,file=",
        "-arch", "compute_90", "--stub_file_name", "--gen_c_file_name", "--module_id_file_name", "$CICC_PATH", "%A%",
        "_SPACE_=", "resource file a.res: [", "@a.res", "]", "-- Filter Dependencies --", "# --error 0x2 --",
        "nvcc fatal   : x", "`", "--options", "\t", "\r", "\0", "\x1b[1m", '""',
    ]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.lists(PIECES, max_size=9).map("".join), max_size=8))
def test_any_mixture_of_what_logs_are_made_of_is_an_answer(lines: list[str]) -> None:
    found = parse_log(lines)
    for plan in found.plans:
        plan.to_json()
        assert all(first < then for first, then in plan.edges)


def test_parse_takes_one_invocation() -> None:
    assert len(parse(corpus.case(ONE).text).stages) == 7
    for text in ("", "nothing"):
        with pytest.raises(ValueError, match="0 invocations"):
            parse(text)
    with pytest.raises(ValueError, match="4 invocations"):
        parse(corpus.case("nvcc-13.0.88__make-log").text)


def test_reasons_before_the_first_line_of_a_driver_are_kept() -> None:
    plan = parse(
        "g++-99: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties."
    )
    assert [one.line for one in plan.diagnostics] == [1, 2]


def test_words_that_the_shell_will_change_are_told_with_their_stage() -> None:
    plan = parse(
        '#$ _SPACE_=\n#$ gcc -E "a.cu" -o "a.ii"\n#$ gcc -E "we\'ird $na me.cu" > "`b`.ii"'
    )
    assert [(one.stage, one.severity, one.text) for one in plan.diagnostics] == [
        (1, "warning", f"the shell that nvcc calls will expand `{word}`")
        for word in ('"we\'ird $na me.cu"', '"`b`.ii"')
    ]


def test_the_race_of_threads_is_told() -> None:
    (plan,) = parse_log(read("nvcc-11.8.89__threads4-many")).plans
    assert [one.severity for one in plan.diagnostics] == ["error", "note"]
    assert "race" in plan.diagnostics[1].text


def test_a_link_by_hand_is_the_last_step_of_the_only_run() -> None:
    lines = read(ONE)
    link = "g++ -O2 main.o saxpy.o -o app -lcudart"
    plan = parse("\n".join([*lines, "make: nothing", link]))
    assert plan.stages[-1].kind == "link"
    assert plan.edges[-1] == (6, 7)
    assert "not a command of nvcc" in plan.diagnostics[-1].text
    for other in ("g++ -O2 main.o other.o -o app", "g++ -c -o x.o saxpy.o", "echo saxpy.o -o app"):
        assert len(parse("\n".join([*lines, other])).stages) == 7
    two = parse_log([*lines, *read("nvcc-13.0.88__dlink"), link])
    assert [len(plan.stages) for plan in two.plans] == [7, 3]


def test_other_marked_text_is_no_run_of_nvcc() -> None:
    """Batch systems mark their options as nvcc does its commands."""
    assert parse_log(["#!/bin/sh", "#$ -N job", "#$ -cwd", "#$ project: x"]).plans == ()


def test_a_log_that_ends_in_the_middle_says_so() -> None:
    lines = read(ONE)
    end = next(number for number, line in enumerate(lines) if line.startswith("#$ fatbinary"))
    plan = parse("\n".join(lines[:end]))
    assert ["the end of the log may be missing" in one.text for one in plan.diagnostics] == [True]
