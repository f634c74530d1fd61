"""The program as a process: standard streams that are closed or full, and Ctrl-C at any time."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.amount import sampled, some
from tests.cli.conftest import SMALL, heeding
from toolmatrix.cli.progress import PATIENCE
from toolmatrix.command import COMMANDS

ROOT = Path(__file__).parent.parent.parent
STDIN, STDOUT, STDERR = range(3)

LINES = {
    "resolve": ["resolve", "app"],
    "env": ["env", str(ROOT / "docs/files/requirements.txt")],
    "explain": ["explain", "python", "app"],
    "why-not": ["why-not", "app"],
    "matrix": ["matrix", "--rows", "app"],
    "list": ["list"],
    "search": ["search", "app"],
    "show": ["show", "app"],
    "what": ["what", "app==2.0.0"],
    "plan": ["plan", "--device", "8.6"],
    "facts": ["facts"],
    "export": ["export", "app"],
    "lock": ["lock", "app", "--lock", "written.lock"],
    "upgrade": ["upgrade", "one.lock"],
    "diff": ["diff", "one.lock", "other.lock"],
    "check": ["check"],
    "audit": ["audit", "app"],
    "update": ["update", "--help"],
    "news": ["news", "--since", "2025-01-01"],
    "add": ["add", "--help"],
    "harvest": ["harvest", "--help"],
    "render": ["render", "--list-formats"],
    "fetch": ["fetch", "--help"],
    "page": ["page", "--help"],
    "mcp": ["mcp", "--help"],
    "build": ["build"],
    "stages": ["stages", "--from-log", str(ROOT / "docs/logs/cuda-13.0.log")],
    "diagnose": ["diagnose", str(ROOT / "docs/logs/build.log")],
    "judge": ["judge", str(ROOT / "docs/files/requirements.txt")],
    "inventory": ["inventory", "folder"],
    "validate": ["validate", "folder", "--expect", "gcc==1"],
    "merge": ["merge", str(ROOT / "docs/logs/shard-1.jsonl")],
    "doctor": ["doctor", "--only", "cpu"],
    "rule": ["rule", "TM101"],
    "config": ["config"],
    "completion": ["completion", "bash"],
    "help": ["help"],
}
"""A line of each command that prints something."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cache: str) -> Path:
    """A directory with what the lines need."""
    made = tmp_path_factory.mktemp("folder")
    (made / "folder").mkdir()
    for name, ask in (("one", "app==2.1.3"), ("other", "app<2")):
        assert program(["lock", ask, "--lock", f"{name}.lock"], made, cache).returncode == 0
    return made


# Commands with an answer, a file and a report; each is run many times.
OFTEN = {"resolve", "check"}


def closing(*closed: int) -> Any:
    """What closes some of the standard streams of a process that starts."""

    def close() -> None:
        for number in {*closed}:
            os.close(number)

    return close


def program(
    line: Sequence[str], folder: Path, cache: str, *closed: int, **streams: Any
) -> subprocess.CompletedProcess[str]:
    """A run of the program on the small matrix."""
    return subprocess.run(
        [sys.executable, "-m", "toolmatrix", *line],
        cwd=folder,
        env=environment(cache, TOOLMATRIX_MATRIX=str(SMALL / "matrix.yaml")),
        stdin=streams.get("stdin", subprocess.DEVNULL),
        stdout=streams.get("stdout", subprocess.PIPE),
        stderr=streams.get("stderr", subprocess.PIPE),
        preexec_fn=closing(*closed),
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def environment(cache: str, **variables: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache, **variables}


def test_there_is_a_line_of_every_command() -> None:
    assert {name: line[0] for name, line in LINES.items()} == {name: name for name in COMMANDS}


@pytest.mark.process
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in LINES],
)
def test_a_closed_stream_is_no_defect(folder: Path, cache: str, name: str) -> None:
    """As with the tools of GNU: what cannot be printed is an error, and what nobody hears changes nothing."""
    line = LINES[name]
    program(line, folder, cache)
    whole = program(line, folder, cache)
    assert whole.returncode != 70
    code = 2 if whole.stdout else whole.returncode

    unread = program(line, folder, cache, STDOUT)
    assert unread.returncode == code
    if whole.stdout:
        assert unread.stderr == (
            "error[TM905]: cannot write to stdout\n  found: Bad file descriptor\n"
        )

    unheard = program(line, folder, cache, STDERR)
    assert (unheard.returncode, unheard.stdout) == (whole.returncode, whole.stdout)
    alone = program(line, folder, cache, STDIN)
    assert (alone.returncode, alone.stdout) == (whole.returncode, whole.stdout)
    assert program(line, folder, cache, STDIN, STDOUT, STDERR).returncode == code


@pytest.mark.process
@pytest.mark.parametrize("closed", [(), (STDERR,), (STDIN, STDOUT, STDERR)])
def test_what_goes_to_a_file_needs_no_stdout(
    folder: Path, cache: str, closed: tuple[int, ...]
) -> None:
    """A file that is opened does not get the number of a stream that was closed."""
    path = folder / "answer.txt"
    path.unlink(missing_ok=True)
    told = program(["resolve", "app", "-o", "answer.txt"], folder, cache, STDOUT, *closed)
    assert told.returncode == 0
    assert path.read_text() == program(["resolve", "app"], folder, cache).stdout
    assert program(["resolve", "app", "-qq"], folder, cache, STDOUT, *closed).returncode == 0
    assert program(["resolve", "nobody"], folder, cache, STDOUT, *closed).returncode == 3


@pytest.mark.process
def test_a_full_stderr_leaves_the_answer_alone(folder: Path, cache: str) -> None:
    whole = program(["resolve", "app"], folder, cache)
    assert whole.stderr
    with open("/dev/full", "w") as full:
        told = program(["resolve", "app"], folder, cache, stderr=full)
        assert (told.returncode, told.stdout) == (0, whole.stdout)
        assert program(["resolve", "nobody"], folder, cache, stderr=full).returncode == 3


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["resolve", "-"], "error[TM901]: cannot read a request from stdin\n"),
        (["resolve", "app", "-m", "-"], "error[TM901]: cannot read a matrix from stdin\n"),
        (["diff", "-", "one.lock"], "error[TM901]: cannot read a lock from stdin\n"),
        (["validate", "--all", "-"], "error[TM901]: cannot read subjects from stdin\n"),
        (["diagnose", "-"], "error[TM906]: cannot read the log\n  --> stdin\n"),
        (["stages", "--from-log", "-"], "error[TM906]: cannot read the log\n  --> stdin\n"),
        (["inventory", "archive:-"], "error[TM907]: cannot read the image\n  --> archive:-\n"),
    ],
)
def test_a_closed_stdin_that_is_read_is_said(
    folder: Path, cache: str, line: list[str], message: str
) -> None:
    told = program(line, folder, cache, STDIN)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(message)
    assert "Bad file descriptor" in told.stderr


INSTALLED = Path(sys.executable).with_name("toolmatrix")
STARTS = {"module": [sys.executable, "-m", "toolmatrix"], "script": [str(INSTALLED)]}
DELAYS = [milliseconds / 1000 for milliseconds in range(0, 80, 2)]
"""Seconds; a run takes about so long."""


def interrupted(line: Sequence[str], cache: str, delay: float) -> tuple[int, str]:
    """How a run ends that hears Ctrl-C so many seconds after the interpreter has handed over to the program.

    Before that it is the interpreter's own, which prints a traceback; the first module that the program imports once it
    has taken over tells when it has.
    """
    with subprocess.Popen(
        line,
        env=environment(cache, PYTHONPROFILEIMPORTTIME="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stderr is not None
        said = [*until(running.stderr, "toolmatrix.cli.main")]
        try:
            running.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGINT)
        said += running.stderr
    return running.returncode, "".join(text for text in said if "import time:" not in text)


def until(lines: Iterable[str], word: str) -> Iterator[str]:
    """The lines up to the one that has a word."""
    for line in lines:
        yield line
        if word in line:
            return


@pytest.mark.process
@pytest.mark.parametrize("start", STARTS)
def test_control_c_at_any_time_is_one_word(cache: str, start: str) -> None:
    if not INSTALLED.exists():
        pytest.skip("toolmatrix is not installed beside this interpreter: `pip install -e .`")
    line = [*STARTS[start], "resolve", "tensorflow==2.6.5", "--json"]
    ends = [interrupted(line, cache, delay) for delay in some(DELAYS, 3)]
    assert {*ends} - {(0, "")} == {(130, "interrupted\n")}


@pytest.mark.process
@pytest.mark.parametrize("tenths", sampled([7, 4, 1], every=3))
def test_control_c_ends_the_processes_of_check_without_a_word(cache: str, tenths: int) -> None:
    line = [*STARTS["module"], "check", "--no-progress"]
    assert interrupted(line, cache, tenths / 10) == (130, "interrupted\n")


PLACES = {
    "class": "type('Whole', (), {'part': type('Part', (), {'__set_name__': press})()})",
    "freed": "type('Part', (), {'__del__': press})()",
    "executed": "exec('press()', {'press': press})",
}


@pytest.mark.process
@pytest.mark.parametrize("place", PLACES)
def test_control_c_where_python_makes_something_else_of_it(tmp_path: Path, place: str) -> None:
    """It prints it where an object is freed, and makes a RuntimeError of it or ends by the signal elsewhere."""
    code = (
        "import os, signal, sys, time, types\n"
        "def press(*_): os.kill(os.getpid(), signal.SIGINT)\n"
        "def run(context):\n"
        f"    {PLACES[place]}\n"
        "    time.sleep(60)\n"
        "from toolmatrix.command import GROUPS, command\n"
        "run.__module__ = 'toolmatrix.commands.facts'\n"
        "module = types.ModuleType(run.__module__)\n"
        "module.run = command(group=GROUPS[0])(run)\n"
        "sys.modules[run.__module__] = module\n"
        "sys.argv = ['toolmatrix', 'facts']\n"
        "from toolmatrix.cli import script\n"
        "script()\n"
    )
    (tmp_path / "pressed.py").write_text(code)
    assert heeding("-m", "pressed", path=str(tmp_path)) == (130, "", "interrupted\n")


@pytest.mark.process
def test_control_c_that_is_ignored_stays_ignored(cache: str) -> None:
    """As in a shell that runs it in the background."""
    shell = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
    line = [*shell, *STARTS["module"], "resolve", "tensorflow==2.6.5", "--json"]
    assert {interrupted(line, cache, delay) for delay in some(DELAYS, 4)[:10]} == {(0, "")}


WAITING = (
    pytest.param(["inventory", "archive:-"], id="inventory"),
    pytest.param(["diff", "archive:-", "dir:folder"], id="diff", marks=pytest.mark.long),
    pytest.param(["diagnose", "-"], id="diagnose", marks=pytest.mark.long),
)
"""Lines that wait for stdin."""


@pytest.mark.process
@pytest.mark.parametrize("line", WAITING)
def test_what_takes_long_says_so_on_a_terminal_alone(
    folder: Path, cache: str, line: list[str]
) -> None:
    doing = {"diff": "comparing"}.get(line[0], "reading")
    said = f"\r{doing} {' '.join(line[1:])}, ".encode()
    ours, theirs = pty.openpty()
    seen = b""
    with started(line, folder, cache, theirs) as running:
        os.close(theirs)
        while said not in seen and running.poll() is None:
            seen += os.read(ours, 1000)
        assert running.stdin is not None
        running.stdin.close()
    seen += rest_of(ours)
    assert said in seen
    assert b"\r\x1b[K" in seen.rpartition(said)[2]
    for options in (["--no-progress"], ["--quiet"]):
        ours, theirs = pty.openpty()
        assert doing.encode() not in waited([*line, *options], folder, cache, ours, theirs)
    ours, theirs = os.pipe()
    assert doing.encode() not in waited(line, folder, cache, ours, theirs)


def started(line: Sequence[str], folder: Path, cache: str, stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*STARTS["module"], *line],
        cwd=folder,
        env=environment(cache, TOOLMATRIX_MATRIX=str(SMALL / "matrix.yaml")),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def waited(line: Sequence[str], folder: Path, cache: str, ours: int, theirs: int) -> bytes:
    """What is said on stderr by a run that waited longer than a user would without a word."""
    with started(line, folder, cache, theirs) as running:
        os.close(theirs)
        with suppress(subprocess.TimeoutExpired):
            running.wait(3 * PATIENCE)
        assert running.stdin is not None
        running.stdin.close()
    return rest_of(ours)


def rest_of(terminal: int) -> bytes:
    """What is left to read; a terminal that nobody has any more is an error."""
    seen = b""
    with suppress(OSError):
        while told := os.read(terminal, 1000):
            seen += told
    os.close(terminal)
    return seen
