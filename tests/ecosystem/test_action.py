"""The action for GitHub: its script is run by bash as a runner would, with this checkout as what was installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.cli.conftest import Cli
from tests.rendering.test_consumers import missing
from toolmatrix.command import COMMANDS

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
SCRIPT = ROOT / ".github" / "action.sh"
LOGS = ROOT / "docs" / "logs"


class Step(NamedTuple):
    """What a run of the script left: its code, its log without the token, the summary and the outputs."""

    code: int
    log: str
    summary: str
    outputs: str


@pytest.fixture
def step(tmp_path: Path, cache: str) -> Path:
    """The folder of a runner where toolmatrix is installed already: this checkout of it."""
    program = tmp_path / "toolmatrix-own" / "bin" / "toolmatrix"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} XDG_CACHE_HOME={cache} exec {sys.executable} -m toolmatrix "$@"\n'
    )
    program.chmod(0o755)
    return tmp_path


def ran(folder: Path, command: str, *arguments: str, version: str = "") -> Step:
    """The script, as a runner starts it."""
    summary, output = folder / "summary.md", folder / "output"
    summary.touch()
    output.touch()
    ended = subprocess.run(
        [str(SCRIPT)],
        env={
            "PATH": os.environ["PATH"],
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "RUNNER_TEMP": str(folder),
            "INPUT_COMMAND": command,
            "INPUT_ARGUMENTS": "\n".join(arguments),
            "INPUT_VERSION": version,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    log = re.sub(
        r"^::(stop-commands::)?[0-9a-f]{32}(::)?$", r"::\1-\2", ended.stdout, flags=re.MULTILINE
    )
    return Step(ended.returncode, log, summary.read_text(), output.read_text())


def test_each_command_is_asked_for_the_best_form_it_has() -> None:
    found = dict(
        re.findall(r"^([a-z| -]+)\) form=(github|md) ;;$", SCRIPT.read_text(), re.MULTILINE)
    )
    shown = {form: set(names.split(" | ")) for names, form in found.items()}
    github = {one.name for one in COMMANDS.values() if "github" in one.formats}
    assert shown["github"] == github
    md = {one.name for one in COMMANDS.values() if "md" in one.formats}
    assert shown["md"] == md - github


def test_inputs_are_variables_and_no_part_of_a_script() -> None:
    action = yaml.safe_load(ACTION.read_text())
    [only] = action["runs"]["steps"]
    assert "${{" not in only["run"]
    assert only["env"] == {
        f"INPUT_{name.upper()}": f"${{{{ inputs.{name} }}}}" for name in action["inputs"]
    }
    assert (ROOT / only["run"].strip('"').removeprefix("$GITHUB_ACTION_PATH/")) == SCRIPT
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_an_answer_is_shown_and_kept_as_the_summary(step: Path) -> None:
    found = ran(step, "resolve", "cuda", "--device", "RTX 3090")
    assert (found.code, found.outputs) == (0, "exit-code=0\n")
    assert found.summary.startswith("```console\n$ toolmatrix resolve cuda --device 'RTX 3090'\n")
    assert found.log.startswith(f"::stop-commands::-\n{found.summary}")
    assert "::error" not in found.log


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_a_refusal_is_an_annotation(step: Path) -> None:
    found = ran(step, "why-not", "numpy==1.19.5", "python==3.12")
    assert (found.code, found.outputs) == (1, "exit-code=1\n")
    assert found.log.endswith("::error title=toolmatrix why-not::the answer is no\n")
    assert "to allow it" in found.summary


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_findings_are_annotations_of_their_own(step: Path) -> None:
    found = ran(step, "validate", f"inventory:{LOGS}/image.json", "--expect", "numpy==1.19.5")
    assert found.code == 1
    assert found.log.startswith("::error title=TM401::inventory:")
    assert found.log.count("::error") == 1
    assert found.summary.count("| FAIL | TM401 |") == 1
    log = ran(step, "diagnose", str(LOGS / "build.log"))
    assert log.log.startswith(f"::error file={LOGS}/build.log,line=5,title=TM201::")
    assert "error[TM201]: this toolkit does not know the GPU architecture" in log.summary


@pytest.mark.process
def test_a_machine_and_a_log_fill_the_summary_too(real: Cli, here: Path) -> None:
    summary = here / "summary.md"
    form = ("--format", "github")
    assert real("doctor", "--only", "cpu", *form, GITHUB_STEP_SUMMARY=str(summary)).code == 0
    assert summary.read_text() == "\n1 subject, 1 passed\n"
    log = str(LOGS / "build.log")
    assert real("diagnose", log, *form, GITHUB_STEP_SUMMARY=str(summary)).code == 1
    assert f"```console\n$ toolmatrix diagnose {log}\nerror[TM201]: " in summary.read_text()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_an_error_is_told_whole_and_strangers_command_nothing(step: Path) -> None:
    found = ran(step, "lock", "--check", "--lock", "::error::no%such")
    assert found.code == 2
    before, after = found.log.split("::-::\n")
    assert before.startswith("::stop-commands::-\nerror[TM904]: ")
    assert after.startswith("::error title=toolmatrix lock::error[TM904]: ")
    assert "no%25such" in after
    assert after.count("\n") == 1
    assert found.summary.startswith("~~~~~~text\n$ toolmatrix lock --format text --check --lock ")


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "version", "said"),
    [
        ("resolve; id", "", "`command` is not the name of a command: resolve; id"),
        ("resolve", "1 --index-url x", "`version` is not a release such as 0.3.0: 1 --index-url x"),
        ("a\n::error::b", "", "`command` is not the name of a command: a%0A::error::b"),
    ],
)
def test_what_is_no_name_is_refused(step: Path, command: str, version: str, said: str) -> None:
    found = ran(step, command, version=version)
    assert (found.code, found.log, found.summary) == (2, f"::error title=toolmatrix::{said}\n", "")


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_linters_find_nothing(tmp_path: Path) -> None:
    beside = Path(sys.executable).parent
    checked(
        str(beside / "check-jsonschema"), "--builtin-schema", "vendor.github-actions", str(ACTION)
    )
    # actionlint reads an action where a workflow uses it.
    shutil.copy(ACTION, tmp_path)
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "use.yml").write_text(
        "on: push\njobs:\n  use:\n    runs-on: ubuntu-24.04\n    steps:\n"
        "      - uses: ./\n        id: asked\n        with: {command: resolve, arguments: cuda}\n"
        '      - run: echo "${{ steps.asked.outputs.exit-code }}"\n'
    )
    (tmp_path / ".git").mkdir()
    checked(str(beside / "actionlint"), "-no-color", str(workflows / "use.yml"))
    if not (shellcheck := shutil.which("shellcheck")):
        missing("needs shellcheck: apt-get install shellcheck")
    checked(shellcheck, "-x", *(str(ROOT / path) for path in (SCRIPT, "run", "tests/run")))


def checked(*words: str) -> None:
    """Run a linter, which must find nothing."""
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
