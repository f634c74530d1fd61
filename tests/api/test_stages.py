"""`toolmatrix.stages` prints what the command prints, and is the document that it writes."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import toolmatrix
from tests.compilation.corpus import case
from toolmatrix.cli.main import main
from toolmatrix.commands.stages import stages
from toolmatrix.errors import LogError, NothingMatched, UsageError

# The package of that name is called as the function, which type checkers do not see.
FRONT: Any = toolmatrix


def command(*words: str) -> tuple[int, str]:
    """Exit code and stdout of the command."""
    out = io.StringIO()
    code = main(list(words), {**os.environ}, io.StringIO(), out, io.StringIO())
    return code, out.getvalue()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log of two archs in the directory of the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dry.log").write_text(CAPTURE, "utf-8", "surrogateescape")
    return "dry.log"


CAPTURE = case("nvcc-13.0.88__c-one-arch").text


def test_a_path_prints_as_the_command_does(log: str) -> None:
    found = stages(log, device="8.6")
    code, out = command("stages", "--from-log", log, "--device", "8.6")
    assert f"{found}\n" == out == f"{FRONT.stages(log, device='8.6')}\n"
    assert found.exit_code == code
    code, out = command("stages", "--from-log", log, "--device", "8.6", "--json")
    assert json.loads(json.dumps(found.to_json())) == json.loads(out)


@pytest.mark.parametrize("form", ["raw", "dot", "mermaid"])
def test_drawings_are_those_of_the_command(log: str, form: str) -> None:
    flag = ["--format", form]
    assert stages(log).draw(form) == command("stages", "--from-log", log, *flag)[1]


@pytest.mark.parametrize("form", ["script", "ninja"])
def test_scripts_are_those_of_the_command(log: str, form: str) -> None:
    found: Any = stages(log, until="cicc")
    made = getattr(found, form)()
    assert made == command("stages", "--from-log", log, "--until", "cicc", "--format", form)[1]


def test_a_text_is_the_same_log_by_another_name(log: str) -> None:
    text = stages(CAPTURE)
    assert [plan.stages for plan in text.plans] == [plan.stages for plan in stages(log).plans]
    assert text.where == "log"
    lines = stages(CAPTURE.split("\n"))
    assert str(lines) == str(text)


def test_a_part_keeps_its_numbers(log: str) -> None:
    (plan,) = stages(log, until="cicc").plans
    (whole,) = stages(log).plans
    assert set(plan.stages) < set(whole.stages)
    with pytest.raises(NothingMatched):
        str(stages(log, until="nothing"))


def test_two_logs_are_compared_as_the_command_does(log: str, tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text(case("nvcc-11.8.89__c-one-arch").text)
    found = stages(log).compare(stages("other.log"))
    assert f"{found}\n" == command("stages", "diff", log, "other.log")[1]
    document = json.loads(json.dumps(found.to_json()))
    assert document == json.loads(command("stages", "diff", log, "other.log", "--json")[1])
    assert not stages(log).compare(stages(log))


def test_a_cost_prints_as_the_command_does(log: str, tmp_path: Path) -> None:
    header = "source file name , phase name , phase input files , phase output file , arch , tool, metric , unit"
    row = "a.cu , cicc , a.cpp1.ii , a.ptx , compute_52 , cicc, 12.5 , ms"
    (tmp_path / "times.csv").write_text(f"{header}\n{row}\n")
    found = stages(log).cost("times.csv")
    assert f"{found}\n" == command("stages", "--from-log", log, "--cost", "times.csv")[1]


def test_what_cannot_be_read_is_refused(log: str) -> None:
    with pytest.raises(LogError, match="no output of a driver in this log"):
        stages("not\na log\n")
    with pytest.raises(LogError, match="cannot read the log"):
        stages("missing.log")
    with pytest.raises(UsageError, match="takes a log or sources"):
        stages()
    with pytest.raises(UsageError, match="takes a log or sources"):
        stages(log, sources="a.cu")
