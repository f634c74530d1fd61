"""Help, rule pages and completion scripts: what is printed is derived, whole and valid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests import matrix
from tests.cli.conftest import SMALL, Cli
from tests.compilation.real import program
from tests.schemas import shipped
from toolmatrix import errors
from toolmatrix.cli import topics
from toolmatrix.command import COMMANDS, GROUPS, all_options
from toolmatrix.command.options import COMMON
from toolmatrix.commands import _man
from toolmatrix.commands.help import flags
from toolmatrix.report.rules import load_rules

OPTIONS = all_options()
SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_its_help_option(cli: Cli, name: str) -> None:
    asked = cli("help", name)
    assert asked.code == 0
    assert cli(name, "--help") == asked == cli("--help", name, "--no-such")
    assert asked.out.startswith(f"toolmatrix {name}: {COMMANDS[name].summary}\n\nExamples:\n")
    for option in COMMANDS[name].options.values():
        assert option.flags[-1] in asked.out
        assert (f"[{option.variable}]" in asked.out) != option.cli_only


@pytest.mark.parametrize("name", COMMANDS)
def test_short_help_explains_what_is_the_command_s_own(cli: Cli, name: str) -> None:
    short, command = cli(name, "-h"), COMMANDS[name]
    assert short == cli("-h", name, "--no-such")
    assert short.code == 0
    told, _, others = short.out.partition(f"`toolmatrix {name} --help` also explains: ")
    assert all(f"  {example}\n" in told for example in command.examples)
    for name, option in command.options.items():
        # By whole words: `--format` stands in the title of the forms as well.
        where = told if name in command.own else others
        assert option.flags[-1] in re.findall(r"--[\w-]+", where)
    for other in {*OPTIONS} - {*command.own, "format", "help"}:
        assert not re.search(rf"\n  {OPTIONS[other].flags[-1]}[ ,\n]", told)
    assert f"\n  {', '.join(command.all_formats)}\n" in told


def test_help_alone_lists_every_command_in_a_group(cli: Cli) -> None:
    long, short = cli("help"), cli("-h")
    assert cli("--help") == long
    commands = long.out.partition("Usage:")[2].partition("Common options:")[0]
    assert commands in short.out
    assert {one.group for one in COMMANDS.values()} == {*GROUPS}
    for command in COMMANDS.values():
        assert f"  {command.name.ljust(10)}  {command.summary}\n" in commands
    # The forms of all commands together are those of none.
    assert "bazelrc" not in long.out


@pytest.mark.parametrize("name", [*topics.load(), "topics"])
def test_a_topic_has_its_text_and_its_table(cli: Cli, name: str) -> None:
    outcome = cli("help", name)
    assert outcome.code == 0
    words = " ".join(outcome.out.split())
    if name == "topics":
        assert all(
            f"{one} {told.title}" in words.replace("  ", " ") for one, told in topics.load().items()
        )
        return
    told = topics.load()[name]
    for text in (*told.says, *told.then):
        assert text in words
    for left, right in told.rows:
        plain = words.replace("`", "")
        assert f"{left} {right}".replace("`", "") in plain
    assert outcome.out.endswith(f"\n\nMore: docs/{told.page}\n")


def test_topics_and_commands_have_no_name_in_common() -> None:
    assert not {*topics.load(), "topics"} & {*COMMANDS}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_a_manual_page_has_every_option_and_example(name: str) -> None:
    page = _man.page(COMMANDS.get(name), "2026-11-20")
    plain = (
        page.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\(ti", "~")
    )
    command = COMMANDS.get(name)
    assert page.isascii()
    assert plain.startswith(f".TH TOOLMATRIX{name and '-'}{name.upper()} 1 20")
    for option in (command.options if command else COMMON).values():
        assert f"\n.B {flags(option, command)}\n" in plain
        assert option.cli_only or option.variable in plain
    for example in command.examples if command else ():
        assert f"\n{example}\n" in plain.partition(".SH EXAMPLES")[2]
    for other in {*COMMANDS} - {name}:
        assert f".BR toolmatrix-{other} (1)" in plain


def test_the_manual_of_the_program_has_groups_topics_and_exit_codes(cli: Cli) -> None:
    page = cli("help", "--man").out.replace("\\-", "-")
    for title in (*GROUPS, "exit status", "environment", "evidence", "requests"):
        assert f"\n.SH {title.upper()}\n" in page
    for code, says in topics.EXIT_CODES.items():
        assert f"\n\\fB{code}\\fR\n{says}\n" in page


def test_there_is_no_manual_page_of_a_topic(cli: Cli) -> None:
    assert cli("help", "evidence", "--man").err == (
        "error[TM901]: no manual page for `evidence`\n"
        "  expected: a command, or nothing for the program\n"
        "help: `toolmatrix help` lists the commands\n"
    )


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    "reader", [("groff", "-man", "-ww", "-Tutf8"), ("mandoc", "-T", "lint", "-W", "warning")]
)
def test_readers_of_manual_pages_have_no_complaint(tmp_path: Path, reader: tuple[str, ...]) -> None:
    """As with what a wheel carries: those of the program and of every command."""
    tool = program(reader[0])
    pages = _man.pages("2026-11-20")
    assert len(pages) == len(COMMANDS) + 1
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
        ended = subprocess.run(
            [tool, *reader[1:], name], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert ended.stderr == ""
        if reader[0] == "mandoc":
            assert ended.stdout == ""
        else:
            assert "toolmatrix" in ended.stdout


def test_help_of_what_is_no_command_names_the_nearest(cli: Cli) -> None:
    assert cli("help", "reslove").err == (
        "error[TM901]: unknown command or topic `reslove`\nhelp: did you mean `resolve`?\n"
    )


def test_help_fits_its_width(cli: Cli) -> None:
    for width in (40, 80, 200):
        text = cli("help", "resolve", COLUMNS=str(width)).out.partition("Request:")[2]
        assert max(len(line) for line in text.splitlines()) <= width


def test_every_failure_has_a_page() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
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
    jsonschema.validate(cli("rule", "--json").json(), shipped("rules"))
    document = cli("rule", "TM101", "--json").json()
    assert [one["code"] for one in document["rules"]] == ["TM101"]


def test_a_code_that_is_none_is_not_matched(cli: Cli) -> None:
    outcome = cli("rule", "TM1011")
    assert outcome.code == 3
    assert outcome.err == ("error[TM110]: unknown code `TM1011`\nhelp: did you mean `TM101`?\n")


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
        (["rule", "TM10"], "TM101 TM102 TM103 TM104 TM105 TM106 TM107 TM108 TM109"),
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
