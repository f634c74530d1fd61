"""Every real log of nvcc: what must hold of its plans, from what was asked and from how its version works."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.compilation import corpus
from tests.compilation.laws import LAWS
from toolmatrix.compilation import Plan, Stage

FRONT_ENDS = {"cudafe++"}

# Files that were there before a command of the log ran and that are neither its arguments nor a source of the corpus:
# those of the page that the oldest log is from, and those that an earlier command of a shell made.
THERE = {"backprop_cuda.cu", "backprop.o", "facetrain.o", "imagenet.o", "nosuch.cu"}

# Captures that hold another number of invocations than one.
INVOCATIONS = {
    "nvcc-13.0.88__list-gpu-arch": 0,
    "nvcc-13.0.88__make-log": 4,
    "nvcc-13.0.88__shell-set-x": 2,
    "nvcc-13.0.88__time-stdout-real": 0,
}


def answered_by_nvcc(case: corpus.Case) -> bool:
    """Whether a capture is of an nvcc that did what it was asked for."""
    return case.tool == "nvcc" and case.sidecar["exit_code"] == 0


every = LAWS.of(lambda case: case.tool == "nvcc")
answered = LAWS.of(answered_by_nvcc)


def having(
    what: Callable[[corpus.Case], object],
) -> Callable[[Callable[[corpus.Case], None]], Callable[[corpus.Case], None]]:
    """A law of those answered captures of which something is true."""
    return LAWS.of(lambda case: answered_by_nvcc(case) and what(case))


def plans(case: corpus.Case) -> tuple[Plan, ...]:
    """The plans of a case that have stages."""
    return tuple(plan for plan in corpus.log(case.name).plans if plan.stages)


def before(plan: Plan, stage: Stage) -> list[Stage]:
    """The stages that a stage waits for."""
    return [plan.stages[first] for first, then in plan.edges if then == stage.id]


def after(plan: Plan, stage: Stage) -> set[int]:
    """The ids of all stages that wait for a stage, also by way of others."""
    found = {stage.id}
    for first, then in plan.edges:
        if first in found:
            found.add(then)
    return found


def commands(case: corpus.Case) -> list[tuple[int, str]]:
    """Number and text of the lines of a log that are commands, found in the plainest way."""
    lines = enumerate(case.text.split("\n"), 1)
    marked = [(number, line[3:].rstrip()) for number, line in lines if line.startswith("#$ ")]
    return [(number, line) for number, line in marked if not re.match(r"\w+=|rm\b|-- Filter", line)]


def asked(case: corpus.Case, pattern: str) -> set[str]:
    """What the command's own words say of archs."""
    words = " ".join(case.sidecar["argv"])
    return {
        found
        for code in re.findall(r"(?:arch|code)=(\S+)", words)
        for found in re.findall(pattern, code)
    }


@every
def stages_are_the_commands_of_the_log(case: corpus.Case) -> None:
    found = [(stage.line, stage.text) for plan in plans(case) for stage in plan.stages]
    if case.name == "nvcc-4.2__seed":
        assert found.pop()[1].startswith("gcc -g  -O2 backprop.o")
    assert found == commands(case)


@every
def stages_are_numbered_in_order(case: corpus.Case) -> None:
    for plan in plans(case):
        assert [stage.id for stage in plan.stages] == list(range(len(plan.stages)))
        assert plan.line <= plan.stages[0].line
        assert all(stage.tool and stage.argv for stage in plan.stages)
        assert all(first < then for first, then in plan.edges)


@every
def the_version_is_that_of_the_tool(case: corpus.Case) -> None:
    for plan in plans(case):
        assert (plan.tool, plan.version) == ("nvcc", case.version)


@every
def no_use_of_a_tool_is_unknown(case: corpus.Case) -> None:
    for plan in plans(case):
        known = {"nvprune", "app"}
        assert {stage.tool for stage in plan.stages if stage.kind == "other"} <= known


@every
def what_is_read_was_written_or_there(case: corpus.Case) -> None:
    there = THERE | corpus.sources() | set(case.sidecar["argv"])
    if "link-existing" in case.name:
        there |= {"a.o", "b.o"}
    for plan in plans(case):
        for stage in plan.stages:
            for path in stage.inputs:
                assert path in there, (stage.line, path)
            there |= set(stage.outputs)


@every
def edges_are_files(case: corpus.Case) -> None:
    for plan in plans(case):
        pairs = {
            (first.id, then.id)
            for then in plan.stages
            for first in plan.stages[: then.id]
            if set(first.outputs) & set(then.inputs)
        }
        assert set(plan.edges) == pairs
        assert len(plan.edges) == len(pairs)


@every
def an_assembly_has_one_compile_before_it(case: corpus.Case) -> None:
    for plan in plans(case):
        for stage in plan.stages:
            if stage.kind in ("ptxas", "tileiras"):
                assert [one.kind for one in before(plan, stage)] == ["cicc"]


@every
def a_compile_has_the_arch_of_its_preprocessing(case: corpus.Case) -> None:
    for plan in plans(case):
        for stage in plan.stages:
            if stage.kind == "cicc":
                assert stage.arch is not None
                assert re.fullmatch(r"compute_\d+[af]?", stage.arch)
                sources = [one for one in before(plan, stage) if one.kind == "preprocess"]
                assert [one.arch for one in sources] == [stage.arch]


@every
def host_work_has_no_arch(case: corpus.Case) -> None:
    joins = {"fatbinary", "link", "hash", "host-compile", "other"}
    for plan in plans(case):
        for stage in plan.stages:
            assert not (stage.arch and (stage.kind in joins or stage.tool in FRONT_ENDS))


@every
def the_host_compile_waits_for_every_image(case: corpus.Case) -> None:
    for plan in plans(case):
        for stage in plan.stages:
            if stage.kind != "fatbinary" or not any(
                path.endswith(".fatbin.c") for path in stage.outputs
            ):
                continue
            ends = {plan.stages[number].kind for number in after(plan, stage)}
            assert ends & {"host-compile", "preprocess"}


@every
def the_host_compile_reads_one_stub_of_a_compile_for_the_device(case: corpus.Case) -> None:
    for plan in plans(case):
        for stage in plan.stages:
            if any(path.endswith(".cudafe1.cpp") for path in stage.inputs):
                stubs = [path for path in stage.inputs if path.endswith(".stub.c")]
                writers = [one for one in before(plan, stage) if set(stubs) & set(one.outputs)]
                assert len(stubs) == len(writers) == 1
                assert writers[0].kind in ("cicc", "cudafe")
                assert writers[0].tool not in FRONT_ENDS


@every
def who_writes_the_module_id(case: corpus.Case) -> None:
    major = int(case.version.split(".")[0])
    for plan in plans(case):
        for stage in plan.stages:
            if not any(path.endswith(".module_id") for path in stage.outputs):
                continue
            if major < 9:
                assert stage.tool == "cudafe"
            elif major < 12 or not any(one.tool in FRONT_ENDS for one in plan.stages):
                assert stage.tool == "cicc"
            else:
                assert stage.tool == "cudafe++"


def virtual_archs(case: corpus.Case) -> set[str]:
    """The archs that a command asks to compile for, if by number."""
    return asked(case, r"compute_\d+[af]?") or {
        f"compute_{number}" for number in asked(case, r"sm_(\d+[af]?)")
    }


@having(virtual_archs)
def the_archs_are_those_asked_for(case: corpus.Case) -> None:
    virtual = virtual_archs(case)
    # Of a family's compute_ nvcc makes a family's sm_, whether asked for or not.
    real = asked(case, r"sm_\d+")
    for plan in plans(case):
        kinds = {stage.kind for stage in plan.stages}
        if "cicc" in kinds:
            assert {stage.arch for stage in plan.stages if stage.kind == "cicc"} == virtual
        made = {
            (stage.arch or "").rstrip("af")
            for stage in plan.stages
            if stage.kind in ("ptxas", "tileiras", "nvlink") and stage.outputs
        }
        if "fatbinary" in kinds and "-dlto" not in case.sidecar["argv"]:
            assert made == real


@having(lambda case: "-o" in case.sidecar["argv"] and "missing" not in case.name)
def what_was_asked_for_is_written(case: corpus.Case) -> None:
    words = case.sidecar["argv"]
    assert words[words.index("-o") + 1] in {
        path for plan in plans(case) for stage in plan.stages for path in stage.outputs
    }


@every
def what_the_driver_says_is_kept(case: corpus.Case) -> None:
    said = [
        (number, line.split(":", 1)[1].strip())
        for number, line in enumerate(case.text.split("\n"), 1)
        if re.match(r"(nvcc )?(fatal|warning|error) +:", line)
    ]
    kept = {
        (one.line, one.text) for plan in corpus.log(case.name).plans for one in plan.diagnostics
    }
    assert {(number, f"nvcc: {text}") for number, text in said} <= kept


@every
def a_failure_is_an_error(case: corpus.Case) -> None:
    found = {one.severity for plan in corpus.log(case.name).plans for one in plan.diagnostics}
    if case.sidecar["exit_code"]:
        assert "error" in found
    elif case.sidecar["exit_code"] == 0:
        assert "error" not in found


@every
def no_word_is_one_that_a_shell_changes(case: corpus.Case) -> None:
    """The programs and their redirections are what the shell is there for."""
    for plan in plans(case):
        assert not [one for one in plan.diagnostics if "shell" in one.text]
        assert not [word for stage in plan.stages for word in stage.argv if word in (">", "<")]


@every
def one_invocation_is_one_plan(case: corpus.Case) -> None:
    assert len(corpus.log(case.name).plans) == INVOCATIONS.get(case.name, 1)


@answered
def a_whole_log_is_not_taken_for_a_part_of_one(case: corpus.Case) -> None:
    for plan in corpus.log(case.name).plans:
        assert not [one for one in plan.diagnostics if "missing" in one.text]
