"""Reports for Python: those of the commands, in words and as documents."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import toolmatrix
from toolmatrix.api import Report
from toolmatrix.api.locks import Locked
from toolmatrix.cli.main import main
from toolmatrix.errors import LogError, NothingMatched, UsageError

LOGS = Path(__file__).parents[2] / "docs" / "logs"


pytestmark = pytest.mark.usefixtures("_opened_once", "_loaded_once")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a lock of two targets, on one day."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795219200")
    held = toolmatrix.lock("gcc==12", target="x86,arm")
    assert isinstance(held, Locked)
    held.write("two.lock")
    return tmp_path


def command(cache: str, *words: str) -> tuple[int, str]:
    """The exit code of a command and what it prints into a pipe."""
    stdout = io.StringIO()
    env = {"XDG_CACHE_HOME": cache, "SOURCE_DATE_EPOCH": "1795219200"}
    return main(list(words), env, io.StringIO(), stdout, io.StringIO()), stdout.getvalue()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: toolmatrix.components(everything=True), ("list", "--all")),
        (lambda: toolmatrix.search("4090", limit=2), ("search", "4090", "--limit", "2")),
        (lambda: toolmatrix.show("torch==2.7.1"), ("show", "torch==2.7.1")),
        (
            lambda: toolmatrix.show("cuda", everything=True, at="2024-01-01"),
            ("show", "cuda", "--all", "--at", "2024-01-01"),
        ),
        (
            lambda: toolmatrix.what("gcc==12", target="arm", with_="python==3.11"),
            ("what", "gcc==12", "--target", "arm", "--with", "python==3.11"),
        ),
        (
            lambda: toolmatrix.plan("torch", device=["A100", "MI300X"]),
            ("plan", "torch", "--device", "A100,MI300X"),
        ),
        (lambda: toolmatrix.upgrade("two.lock"), ("upgrade", "two.lock")),
        pytest.param(toolmatrix.facts, ("facts",), marks=pytest.mark.long),
        pytest.param(
            lambda: toolmatrix.facts("bazel==3.7.2", "gcc"),
            ("facts", "bazel==3.7.2", "gcc"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda: toolmatrix.facts(source="bazel-spack"),
            ("facts", "--source", "bazel-spack"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            lambda: toolmatrix.facts(stale=1), ("facts", "--stale", "1"), marks=pytest.mark.long
        ),
        pytest.param(
            lambda: toolmatrix.export("bazel"), ("export", "bazel"), marks=pytest.mark.long
        ),
        pytest.param(
            lambda: toolmatrix.check(only="bazel.yaml"),
            ("check", "--only", "bazel.yaml"),
            marks=pytest.mark.long,
        ),
        (lambda: toolmatrix.diagnose(LOGS / "build.log"), ("diagnose", f"{LOGS}/build.log")),
        (
            lambda: toolmatrix.diff(LOGS / "xeon.json", LOGS / "altra.json"),
            ("diff", f"{LOGS}/xeon.json", f"{LOGS}/altra.json", "--exit-code"),
        ),
        (lambda: toolmatrix.diff("two.lock"), ("diff", "two.lock", "--exit-code")),
    ],
)
def test_a_report_is_that_of_the_command(
    cache: str, ask: Callable[[], Report], words: tuple[str, ...]
) -> None:
    found = ask()
    assert command(cache, *words) == (found.exit_code, f"{found}\n")
    assert found.ok is bool(found) is (found.exit_code == 0)
    code, document = command(cache, *words, "--json")
    assert (code, json.loads(document)) == (found.exit_code, found.to_json())


def test_a_log_is_a_path_a_text_or_lines() -> None:
    text = "x\nnvcc fatal   : Unsupported gpu architecture 'compute_86'\n"
    found = toolmatrix.diagnose(text)
    assert found.to_json()["subject"] == "log"
    assert toolmatrix.diagnose(text.splitlines()).to_json() == found.to_json()
    with pytest.raises(LogError):
        toolmatrix.diagnose("no-such.log")


@pytest.mark.process
def test_the_machine_is_checked() -> None:
    found = toolmatrix.doctor(only=["disk"])
    assert {one.name for one in found.verdicts} == {"disk"}
    assert found.to_json()["subject"] == "this machine"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: toolmatrix.facts("no-such"), NothingMatched),
        (lambda: toolmatrix.export("no-such"), NothingMatched),
        (lambda: toolmatrix.doctor(only=["no-such"]), NothingMatched),
        (lambda: toolmatrix.check(only="no-such"), UsageError),
        (lambda: toolmatrix.diff(LOGS / "xeon.json"), UsageError),
        (lambda: toolmatrix.diff("two.lock", target="x86"), UsageError),
    ],
)
def test_bad_input_raises(ask: Callable[[], Report], error: type[Exception]) -> None:
    with pytest.raises(error):
        ask()
