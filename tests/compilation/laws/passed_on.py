"""Logs of nvcc as CMake passes them on: wrapped as a message, and in a file of its own."""

from __future__ import annotations

from tests.compilation import corpus
from tests.compilation.laws import LAWS
from toolmatrix.compilation import Plan, parse_log

every = LAWS.of(lambda case: case.tool == "nvcc")


def wrapped(lines: list[str]) -> list[str]:
    """Lines as CMake's `message()` shows them: each a paragraph, of words that fill 77 columns behind an indent."""
    shown = []
    for line in lines:
        shown.append("")
        for word in line.split():
            if shown[-1] and len(shown[-1]) + 1 + len(word) <= 77:
                shown[-1] += f" {word}"
            else:
                shown.append(f"  {word}")
        shown.append("")
    return shown


def graph(plan: Plan) -> object:
    """What a plan tells of files."""
    files = [(one.tool, one.arch, one.inputs, one.outputs, one.argv) for one in plan.stages]
    return plan.version, files, plan.edges


@every
def any_log_that_cmake_wraps_is_the_same_plan(case: corpus.Case) -> None:
    lines = [line for line in case.text.split("\n") if line.startswith("#$ ")]
    plans = parse_log([" ".join(line.split()) for line in lines]).plans
    again = parse_log(wrapped(lines)).plans
    assert [graph(plan) for plan in again] == [graph(plan) for plan in plans]


@every
def any_log_in_cmakes_own_is_the_same_plan(case: corpus.Case) -> None:
    lines = [line for line in case.text.split("\n") if line.startswith("#$ ")]
    head = ["---", "events:", "  -", '    kind: "message-v1"', "    message: |"]
    logged = [*head, *("      " + line.replace("\\", "\\\\") for line in lines), "..."]
    assert [graph(plan) for plan in parse_log(logged).plans] == [
        graph(plan) for plan in parse_log(lines).plans
    ]
