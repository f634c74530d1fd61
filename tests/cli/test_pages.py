"""Help, rule pages and completion scripts: what is printed is derived, whole and valid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests import matrix
from tests.cli.conftest import SMALL
from tests.stages.real import program
from toolmatrix import errors
from toolmatrix.cli.commands import COMMANDS
from toolmatrix.cli.options import OPTIONS
from toolmatrix.report.rules import load_rules
from toolmatrix.resources import schema_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_its_help_option(cli: Cli, name: str) -> None:
    asked = cli("help", name)
    assert asked.code == 0
    assert cli(name, "--help") == asked == cli("-h", name, "--no-such")
    assert asked.out.startswith(f"toolmatrix {name}: {COMMANDS[name].summary}\n\nExamples:\n")
    for option in COMMANDS[name].options:
        assert OPTIONS[option].flags[-1] in asked.out


def test_help_alone_lists_every_command(cli: Cli) -> None:
    outcome = cli("help")
    assert cli("--help") == outcome
    for command in COMMANDS.values():
        assert f"  {command.name.ljust(10)}  {command.summary}\n" in outcome.out


def test_help_of_what_is_no_command_names_the_nearest(cli: Cli) -> None:
    assert cli("help", "reslove").err == (
        "error[TM901]: unknown command `reslove`\nhelp: did you mean `resolve`?\n"
    )


def test_help_fits_its_width(cli: Cli) -> None:
    for width in (40, 80, 200):
        text = cli("help", "resolve", COLUMNS=str(width)).out.partition("Request:")[2]
        assert max(len(line) for line in text.splitlines()) <= width


def test_every_failure_has_a_page() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    codes = {one.code for one in kinds if issubclass(one, errors.ToolmatrixError)}
    asked = {"TM101", "TM102", "TM103", "TM110", "TM120", "TM301", "TM302", "TM303", "TM310"}
    assert codes | asked <= set(load_rules())


def test_every_page_is_whole() -> None:
    for rule in load_rules().values():
        assert rule.severity in ("error", "warning", "info")
        assert all(getattr(rule, name) for name in rule._fields)
        assert rule.name == rule.name.lower()
        for text in (rule.what, rule.why, rule.remedy):
            assert text.endswith(".")


def test_rule_prints_pages_and_lists(cli: Cli) -> None:
    page = cli("rule", "tm120")
    assert page.out.startswith("TM120 cannot say (error, since 0.1.0)\n\nwhat:\n  No fact decides")
    assert len(cli("rule", "-q").out.splitlines()) == len(load_rules())
    assert cli("rule", "TM101", "TM102").out.count("remedy:") == 2


def test_rule_as_json_follows_its_schema(cli: Cli) -> None:
    with open(schema_path("rules"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.validate(cli("rule", "--json").json(), schema)
    document = cli("rule", "TM101", "--json").json()
    assert [one["code"] for one in document["rules"]] == ["TM101"]


def test_a_code_that_is_none_is_not_matched(cli: Cli) -> None:
    outcome = cli("rule", "TM1011")
    assert outcome.code == 3
    assert outcome.err == ("error[TM110]: there is no code `TM1011`\nhelp: did you mean `TM101`?\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_names_every_command_and_option(cli: Cli, shell: str) -> None:
    script = cli("completion", shell).out
    for command in COMMANDS.values():
        assert command.name in script
    for option in OPTIONS.values():
        flag = option.flags[-1]
        assert (f"-l {flag[2:]}" if shell == "fish" else flag) in script


@pytest.mark.process
@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_a_valid_script(cli: Cli, tmp_path: Path, shell: str) -> None:
    program(shell)
    script = tmp_path / "script"
    script.write_text(cli("completion", shell).out)
    subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["res"], "resolve"),
        (["resolve", "--tar"], "--target"),
        (["resolve", "--target", "x86,a"], "x86,arm x86,amd"),
        (["resolve", "--target", "=", "x"], "x86"),
        (["resolve", "--accelerator", "r"], "rocm"),
        (["resolve", "--from", ""], "source wheel"),
        (["render", "--format", "conda"], "conda"),
        (["--format", "js"], "json jsonl"),
        (["rule", "TM10"], "TM101 TM102 TM103 TM104 TM105"),
        (["completion", ""], "bash zsh fish"),
    ],
)
def test_bash_completes(cli: Cli, tmp_path: Path, words: list[str], expected: str) -> None:
    script = tmp_path / "script"
    script.write_text(cli("completion", "bash").out)
    program = tmp_path / "toolmatrix"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m toolmatrix "$@"\n')
    program.chmod(0o755)
    line = "toolmatrix " + " ".join(words).replace(" = ", "=")
    ask = (
        'source "$1"; shift; COMP_LINE="$1"; shift; COMP_POINT=${#COMP_LINE}; '
        'COMP_WORDS=(toolmatrix "$@"); COMP_CWORD=$#; _toolmatrix; echo "${COMPREPLY[*]}"'
    )
    ended = subprocess.run(
        ["bash", "-c", ask, "bash", str(script), line, *words],
        env={
            "PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_CACHE_HOME": matrix.folder(),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == expected + "\n"


def test_names_come_from_the_facts(small: Cli) -> None:
    assert small("_complete", "arch", "sm_8").out == "sm_86\nsm_80\n"
    assert small("_complete", "arch", "sm_80,sm_8").out == "sm_80,sm_86\nsm_80,sm_80\n"
    assert small("_complete", "release", "app==2.1").out == "app==2.1.3\napp==2.1.0\n"
    assert small("_complete", "release", "numpy>=1,<").out == ""


def test_names_are_those_of_the_matrix_in_force(real: Cli, here: Path) -> None:
    """A front page of one's own is asked where the settings name it."""
    assert real("_complete", "target", "").out == "x86\narm\namd\n"
    (here / "toolmatrix.toml").write_text(f'matrix = "{SMALL / "matrix.yaml"}"')
    assert real("_complete", "target", "").out == "x86\narm\n"
    assert real("_complete", "accelerator", "").out == "none\ncuda\n"


@pytest.mark.parametrize("words", [[], ["arch"], ["nothing", "x"], ["code", "--"]])
@pytest.mark.parametrize("matrix", ["nowhere.yaml", "broken.yaml"])
def test_a_shell_is_never_shown_an_error(
    cli: Cli, here: Path, words: list[str], matrix: str
) -> None:
    (here / "broken.yaml").write_text("{")
    (here / "toolmatrix.toml").write_text(f'matrix = "{matrix}"')
    assert cli("_complete", *words) == (0, "", "")
