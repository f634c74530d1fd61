"""The frame: streams, exit codes, errors as text and as JSON, output files."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, heeding
from tests.cli.test_documents import validated
from toolmatrix import __version__
from toolmatrix.cli.context import Context
from toolmatrix.cli.main import main
from toolmatrix.command import GROUPS, command
from toolmatrix.errors import (
    CannotSay,
    ConfigError,
    LockError,
    MatrixError,
    NothingMatched,
    OutputError,
    Position,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)

Install = Callable[[Callable[[Context], int]], None]


@pytest.fixture
def facts_command(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a function in the place of `toolmatrix facts`."""

    def install(run: Callable[[Context], int]) -> None:
        def facts(context: Context) -> int:
            return run(context)

        facts.__module__ = "toolmatrix.commands.facts"
        module: Any = types.ModuleType(facts.__module__)
        module.run = command(usage="[ID...]", group=GROUPS[0], does="reading facts")(facts)
        monkeypatch.setitem(sys.modules, facts.__module__, module)

    return install


def failing(error: BaseException) -> Callable[[Context], int]:
    def run(_context: Context) -> int:
        raise error

    return run


def test_alone_it_prints_six_lines_and_three_examples(cli: Cli) -> None:
    outcome = cli()
    text, _, examples = outcome.out.partition("\n\n")
    assert (outcome.code, outcome.err) == (0, "")
    assert len(text.splitlines()) == 6
    assert len(examples.splitlines()) == 3
    assert all(len(line) <= 80 for line in outcome.out.splitlines())


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version_names_the_matrix(cli: Cli, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts: Any = types.ModuleType("toolmatrix.factbase")
    monkeypatch.setitem(sys.modules, "toolmatrix.factbase", facts)
    assert cli(flag).out == f"toolmatrix {__version__}\n"
    facts.about = lambda _env: ("2026-11-20", 1234, "")
    outcome = cli("resolve", flag, "--no-such-option")
    assert outcome == (0, f"toolmatrix {__version__} (matrix 2026-11-20, 1234 facts)\n", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (ConfigError("x"), 2),
        (MatrixError("x"), 2),
        (LockError("x"), 2),
        (OutputError("x"), 2),
        (NothingMatched("x"), 3),
        (CannotSay("x"), 4),
        (ToolMissing("x"), 5),
        (ToolmatrixError("x"), 70),
        (KeyError("x"), 70),
        (RecursionError("x"), 70),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_every_failure_has_its_exit_code(
    cli: Cli, facts_command: Install, error: BaseException, code: int
) -> None:
    facts_command(failing(error))
    assert cli("facts").code == code


def test_an_error_has_one_form(cli: Cli, facts_command: Install) -> None:
    facts_command(
        failing(
            MatrixError(
                "a statement without `source`",
                where=Position("ours.yaml", 12, 5),
                expected="the key `source`",
                found="`id` and `when`",
                help="name one of the sources of this file",
            )
        )
    )
    assert cli("facts").err == (
        "error[TM903]: a statement without `source`\n"
        "  --> ours.yaml:12:5\n"
        "  expected: the key `source`\n"
        "  found: `id` and `when`\n"
        "help: name one of the sources of this file\n"
    )
    outcome = cli("facts", "--json")
    document = outcome.json()
    assert outcome.err == ""
    assert document == {
        "schema": "toolmatrix.error/1",
        "error": {
            "code": "TM903",
            "what": "a statement without `source`",
            "where": {"path": "ours.yaml", "line": 12, "column": 5},
            "expected": "the key `source`",
            "found": "`id` and `when`",
            "help": "name one of the sources of this file",
        },
    }
    validated(document, "error")
    assert outcome.out == json.dumps(document, sort_keys=True, indent=2) + "\n"


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        (["--json", "--no-such"], {}),
        (["--format", "json", "--no-such"], {}),
        (["--format=json", "--no-such"], {}),
        (["--no-such"], {"TOOLMATRIX_FORMAT": "json"}),
        (["--no-such"], {"TOOLMATRIX_JSON": "1"}),
    ],
)
def test_bad_usage_is_json_where_json_was_asked_for(
    cli: Cli, argv: list[str], env: dict[str, str]
) -> None:
    assert cli(*argv, **env).json()["error"]["code"] == "TM901"


def test_a_format_from_a_file_holds_for_errors_too(
    cli: Cli, here: Path, facts_command: Install
) -> None:
    (here / "toolmatrix.toml").write_text('format = "json"')
    facts_command(failing(CannotSay("x")))
    assert cli("facts").json()["error"]["code"] == "TM120"
    assert cli("facts", "--format", "text").err == "error[TM120]: x\n"


def test_errors_are_coloured_when_asked(cli: Cli) -> None:
    outcome = cli("facts", "--no-such", FORCE_COLOR="1")
    assert outcome.err.startswith("\x1b[1;31merror[TM901]\x1b[0m: unknown option")
    assert "\x1b" not in cli("facts", "--no-such", "--no-color", FORCE_COLOR="1").err


def test_a_defect_shows_its_traceback_only_with_vv(cli: Cli, facts_command: Install) -> None:
    facts_command(failing(KeyError("cuda")))
    assert cli("facts").err == (
        "error[TM900]: internal error: KeyError: 'cuda'\n"
        "help: this is a bug in toolmatrix; please report it with the output of the same command "
        "with `-vv`\n"
    )
    assert "Traceback" in cli("facts", "-vv").err


def test_exit_zero_turns_no_into_zero_and_nothing_else(cli: Cli, facts_command: Install) -> None:
    facts_command(lambda _context: 1)
    assert (cli("facts").code, cli("facts", "--exit-zero").code) == (1, 0)
    facts_command(failing(CannotSay("x")))
    assert cli("facts", "--exit-zero").code == 4


def test_quiet_keeps_the_data_and_twice_quiet_nothing(cli: Cli, facts_command: Install) -> None:
    def run(context: Context) -> int:
        context.write("data\n")
        context.say_after("count")
        context.say("talk")
        context.say("detail", verbosity=1)
        return 0

    facts_command(run)
    assert cli("facts") == (0, "data\n", "talk\ncount\n")
    assert cli("facts", "-v") == (0, "data\n", "talk\ndetail\ncount\n")
    assert cli("facts", "-q") == (0, "data\n", "")
    assert cli("facts", "-qq") == (0, "", "")


def test_output_is_a_whole_file_or_none(cli: Cli, here: Path, facts_command: Install) -> None:
    def run(context: Context) -> int:
        context.write("one\n")
        if context.arguments:
            raise CannotSay("x")
        context.write("two\n")
        return 1

    facts_command(run)
    target = here / "answer.txt"
    target.write_text("before")
    target.chmod(0o640)
    assert cli("facts", "stop", "-o", "answer.txt").code == 4
    assert target.read_text() == "before"
    assert cli("facts", "-o", "answer.txt") == (1, "", "")
    assert target.read_text() == "one\ntwo\n"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in here.iterdir()] == ["answer.txt"]


def test_output_goes_through_a_link_and_below_the_directory_of_c(cli: Cli, here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub/link").symlink_to("../real")
    assert cli("-C", "sub", "rule", "TM101", "-o", "link").code == 0
    assert (here / "real").read_text().startswith("TM101")
    assert (here / "sub/link").is_symlink()


@pytest.mark.parametrize(
    ("path", "found"), [("missing/a", "No such file or directory"), ("sub", "Is a directory")]
)
def test_an_output_that_cannot_be_written_is_said(
    cli: Cli, here: Path, path: str, found: str
) -> None:
    (here / "sub").mkdir()
    outcome = cli("rule", "-q", "-o", path)
    assert outcome.code == 2
    assert outcome.err == (
        f"error[TM905]: cannot write the output\n  --> {path}\n  found: {found}\n"
        "help: nothing was written; `--output -` prints the result\n"
    )
    assert [one.name for one in here.iterdir()] == ["sub"]


def test_a_stdout_that_cannot_be_written_is_said() -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    stderr = io.StringIO()
    assert main(["rule"], {}, io.StringIO(), Full(), stderr) == 2
    assert stderr.getvalue().endswith(
        "error[TM905]: cannot write to stdout\n  found: No space left on device\n"
    )


def program(*argv: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "toolmatrix", *argv]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, text=True, env=environment, **options)


@pytest.mark.process
def test_a_reader_that_leaves_ends_it_without_a_word() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with program("rule", "TM101", stdout=writing, stderr=subprocess.PIPE) as running:
        os.close(writing)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (141, "")


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_an_error_and_no_traceback() -> None:
    with (
        open("/dev/full", "w") as full,
        program("rule", "-q", stdout=full, stderr=subprocess.PIPE) as running,
    ):
        _, err = running.communicate(timeout=60)
    assert running.returncode == 2
    assert err == "error[TM905]: cannot write to stdout\n  found: No space left on device\n"


@pytest.mark.process
def test_control_c_ends_it_with_130() -> None:
    code = (
        "import os, signal, sys, types\n"
        "def run(context):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        "from toolmatrix.command import GROUPS, command\n"
        "run.__module__ = 'toolmatrix.commands.facts'\n"
        "module = types.ModuleType(run.__module__)\n"
        "module.run = command(group=GROUPS[0])(run)\n"
        "sys.modules[run.__module__] = module\n"
        "sys.argv = ['toolmatrix', 'facts']\n"
        "from toolmatrix.cli import main_script\n"
        "sys.exit(main_script())\n"
    )
    assert heeding("-c", code) == (130, "", "interrupted\n")


@pytest.mark.process
def test_start_up_imports_nothing_heavy(cache: str) -> None:
    heavy = "argparse dataclasses hashlib inspect json pathlib re subprocess tempfile typing yaml"
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from toolmatrix.cli import main_script\n"
        "sys.argv = ['toolmatrix', 'resolve', 'tensorflow==2.6.5', '-q', '-o', '/dev/null']\n"
        "assert main_script() == 0\n"
        f"print(sorted((set(sys.modules) - before) & set('{heavy}'.split())))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


@pytest.mark.process
def test_what_reads_images_is_imported_by_nothing_else(cache: str) -> None:
    readers = "docker elftools requests urllib3 zstandard multiprocessing"
    code = (
        "import sys\n"
        "from toolmatrix.cli import main_script\n"
        "sys.argv = ['toolmatrix', 'resolve', 'tensorflow==2.6.5', '-q', '-o', '/dev/null']\n"
        "assert main_script() == 0\n"
        f"print(sorted(set(sys.modules) & set('{readers}'.split())))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
