"""Hooks for pre-commit: each is a command, and pre-commit itself installs and runs them on a repository."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Cli
from tests.engine import docker
from toolmatrix.cli.parser import parse

ROOT = Path(__file__).parents[2]
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
# What pre-commit ends with where an environment cannot be installed.
NO_ENVIRONMENT = 3
SETTINGS = """\
request = ["gcc==12", "python==3.11"]
target = ["x86"]
distro = "debian12"
accelerator = "none"
recipe = "toolchain"
"""


def files(hook: str) -> re.Pattern[str]:
    """The files that a hook is run for."""
    return re.compile(next(one["files"] for one in HOOKS if one["id"] == hook))


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: str(hook["id"]))
def test_a_hook_is_a_line_of_the_command(hook: dict[str, Any]) -> None:
    line, _, behind = re.sub(r"^sh -c '", "", hook["entry"]).partition(' "$@" || ')
    assert bool(behind) is hook["entry"].startswith("sh ")
    words = [*shlex.split(line), *hook.get("args", [])]
    given = ["ours.toolmatrix.yaml"] if hook.get("pass_filenames", True) else []
    parsed = parse([*words[1:], *given])
    assert words[0] == "toolmatrix"
    assert parsed.command
    assert hook["id"] == f"toolmatrix-{parsed.command.name}"
    assert hook["name"] == line
    assert hook["language"] == "python"


@pytest.mark.parametrize(
    ("hook", "path", "run"),
    [
        ("toolmatrix-lock", "toolmatrix.lock", True),
        ("toolmatrix-lock", "images/toolmatrix.toml", True),
        ("toolmatrix-lock", "uv.lock", False),
        ("toolmatrix-render", "images/x86.Dockerfile", True),
        ("toolmatrix-render", "x86.check.sh", True),
        ("toolmatrix-render", "Dockerfile.old", False),
        ("toolmatrix-check", "facts/ours.toolmatrix.yml", True),
        ("toolmatrix-check", "ours.toolmatrix.yaml", True),
        ("toolmatrix-check", ".github/workflows/toolmatrix.yml", False),
        ("toolmatrix-judge", "docker/Dockerfile.gpu", True),
        ("toolmatrix-judge", "x86.Dockerfile", True),
        ("toolmatrix-judge", "requirements/dev-requirements.txt", False),
        ("toolmatrix-judge", "requirements-dev.txt", True),
        ("toolmatrix-judge", ".devcontainer/devcontainer.json", True),
        ("toolmatrix-judge", "docs/Dockerfiles.md", False),
    ],
)
def test_a_hook_is_run_for_its_files(hook: str, path: str, run: bool) -> None:
    assert bool(files(hook).search(path)) is run


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "code"),
    [("FROM alpine\n", 0), ("RUN pip install tensorflow==2.6.5 numpy==2.0.0\n", 1), (None, 2)],
)
def test_only_what_facts_refuse_keeps_from_a_commit(
    here: Path, cache: str, text: str | None, code: int
) -> None:
    if text is not None:
        (here / "Dockerfile").write_text(f"FROM python:3.9\n{text}")
    entry = next(hook["entry"] for hook in HOOKS if hook["id"] == "toolmatrix-judge")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [*shlex.split(entry), "Dockerfile"],
        cwd=here,
        env=os.environ | {"PATH": path, "XDG_CACHE_HOME": cache},
        check=False,
        capture_output=True,
    )
    assert ended.returncode == code, ended


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.long
def test_pre_commit_installs_and_runs_them(real: Cli, here: Path, cache: str, ours: str) -> None:
    if not (ROOT / ".git").exists():
        docker.unable("pre-commit clones this repository, and this is no clone")
    (here / "toolmatrix.toml").write_text(SETTINGS)
    sound = Path(ours).read_text()
    (here / "ours.toolmatrix.yaml").write_text(sound)
    for hook in ("lock", "render --output .", "lock --check", "render --check --output ."):
        asked = real(*hook.split())
        assert asked.code == 0, asked.err
    # What was edited by hand, and what is wrong, is found by the hook that it concerns.
    with (here / "x86.Dockerfile").open("a") as file:
        file.write("RUN true\n")
    (here / "ours.toolmatrix.yaml").write_text(sound.replace("2026-11-20}", "some day}"))
    ran("git", "init", "--quiet", ".", cwd=here, cache=cache)
    ran("git", "add", "--all", cwd=here, cache=cache)
    # It installs the package for each run, which takes ten seconds of processor.
    found = tried(here, cache)
    if found.returncode == NO_ENVIRONMENT and "pip" in found.stdout:
        docker.unable(f"pre-commit cannot install this package here:\n{found.stdout[-1000:]}")
    assert outcomes(found) == {
        "toolmatrix lock --check": "Passed",
        "toolmatrix render --check": "Failed",
        "toolmatrix check": "Failed",
        "toolmatrix judge": "Passed",
    }, found.stdout
    assert "\n+RUN true\n" in found.stdout or "\n-RUN true\n" in found.stdout
    assert "\n  --> ours.toolmatrix.yaml:3:" in found.stdout


def outcomes(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What pre-commit says of each hook."""
    return dict(
        re.findall(r"^(toolmatrix [^.]+)\.+(Passed|Failed|\(.*)$", ended.stdout, re.MULTILINE)
    )


def tried(folder: Path, cache: str) -> subprocess.CompletedProcess[str]:
    """A run of all hooks of this repository on another."""
    program = str(Path(sys.executable).with_name("pre-commit"))
    return ran(program, "try-repo", str(ROOT), "--all-files", cwd=folder, cache=cache, check=False)


def ran(*words: str, cwd: Path, cache: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A run of a program that has no settings of git but that this checkout may belong to somebody else."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        words,
        cwd=cwd,
        env=environment
        | {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PIP_NO_COMPILE": "1",  # most of what it installs is never imported here
            "PRE_COMMIT_HOME": str(cwd.parent / "hooks"),
            "XDG_CACHE_HOME": cache,
            "PYTHONPATH": "",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=check,
    )
