"""`toolmatrix stages`: whole outputs, every exit code, and what is said of logs that are none."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests.cli.transcript import check, check_without
from tests.compilation.corpus import cases, members
from tests.compilation.real import program
from tests.golden import FOLDER, assert_golden
from toolmatrix.cli.main import READER_GONE, main
from toolmatrix.cli.parser import parse
from toolmatrix.compilation import log_file
from toolmatrix.resources import schema_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Outcome

SEED = "nvcc-4.2__seed"
NAMES = [case.name for case in cases()]


@pytest.fixture
def logs(here: Path) -> Path:
    """The working directory with a few logs of the corpus, under short names."""
    for name, log in (
        ("seed.log", SEED),
        ("old.log", "nvcc-11.8.89__c-one-arch"),
        ("new.log", "nvcc-13.0.88__c-one-arch"),
        ("many.log", "nvcc-13.0.88__arch-all-major"),
        ("make.log", "nvcc-13.0.88__make-log"),
        ("hip.log", "hipcc-7.0.2__c-many-gfx"),
        ("refused.log", "nvcc-13.0.88__unsupported-arch"),
    ):
        (here / name).write_bytes(members()[f"{log}.log"])
    return here


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("name", "line", "form"),
    [
        ("seed", "--from-log seed.log", "plain"),
        ("seed", "--from-log seed.log", "ascii"),
        ("seed", "--from-log seed.log", "tty"),
        ("seed", "--from-log seed.log", "narrow"),
        ("seed", "--from-log seed.log", "json"),
        ("seed-explained", "--from-log seed.log --explain", "plain"),
        ("seed-verbose", "--from-log seed.log -v", "plain"),
        ("seed-raw", "--from-log seed.log --raw", "plain"),
        ("seed-dot", "--from-log seed.log --dot", "plain"),
        ("seed-mermaid", "--from-log seed.log --format mermaid", "plain"),
        ("seed-script", "--from-log seed.log --script", "plain"),
        ("many-archs", "--from-log many.log", "plain"),
        ("several", "--from-log make.log", "plain"),
        ("hip-explained", "--from-log hip.log --explain", "plain"),
        ("refused", "--from-log refused.log", "plain"),
        ("devices", "--from-log new.log --device 8.6,9.0,12.0", "plain"),
        ("part", "--from-log many.log --only sm_90 --until ptxas", "plain"),
        ("diff", "diff old.log new.log", "plain"),
        ("diff", "diff old.log new.log", "json"),
    ],
)
def test_whole_outputs_golden(real: Cli, name: str, line: str, form: str) -> None:
    outcome = check(real, name, f"stages {line}", form)
    assert outcome.code == int(name == "refused")


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize("line", ["--from-log seed.log", "diff old.log new.log"])
def test_colour_and_talk_are_all_that_other_forms_leave_out(real: Cli, line: str) -> None:
    check_without(real, f"stages {line}")


@pytest.mark.usefixtures("logs")
def test_the_seed_shows_fourteen_steps_with_what_each_does(real: Cli) -> None:
    lines = real("stages", "--from-log", "seed.log").out.splitlines()
    steps = [line for line in lines if re.match(r"\d+ +(host|device) ", line)]
    assert [int(line.split()[0]) for line in steps] == list(range(1, 15))
    told = real("stages", "--from-log", "seed.log", "--explain").out
    assert (
        len(re.findall(r"^\d+ +(?:host|device) .*\n    .+ -> .+\n    [a-z]", told, re.MULTILINE))
        == 14
    )


@pytest.mark.long
@pytest.mark.slow
def test_every_log_makes_a_document_of_the_schema(real: Cli, here: Path) -> None:
    with open(schema_path("stages"), encoding="utf-8") as file:
        validator = jsonschema.Draft202012Validator(json.load(file))
    for name in NAMES:
        (here / "x.log").write_bytes(members()[f"{name}.log"])
        outcome = real("stages", "--from-log", "x.log", "--json")
        assert outcome.code in (0, 1, 2), (name, outcome)
        assert outcome.err == ""
        document = outcome.json()
        assert outcome.out == json.dumps(document, sort_keys=True, indent=2) + "\n"
        if outcome.code == 2:
            assert document["error"]["code"] == "TM906", name
        else:
            validator.validate(document)


def one_error(outcome: Outcome, found: str, where: str = "x.log") -> None:
    """That a run ended with the error of a log in which nobody speaks, and nothing else."""
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error[TM906]: no output of a driver in this log\n"
        f"  --> {where}\n"
        "  expected: lines that begin with `#$ ` (nvcc --dryrun), or commands in quotes "
        "(hipcc -###, clang -###)\n"
        f"  found: {found}\n"
        "help: drivers print to stderr: `nvcc --dryrun ... 2> FILE`, `hipcc -### ... 2> FILE`; a build with nvcc: "
        "`NVCC_APPEND_FLAGS=--dryrun make 2>&1 | toolmatrix stages --from-log -`\n"
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "nothing: it is empty"),
        (b"\n", "text of 1 line"),
        (b"hello\nworld\n", "text of 2 lines, the first: `hello`"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "binary data"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "binary data"),
        (b"\x1b]0;evil\x07\n", r"text of 1 line, the first: `\x1b]0;evil\x07`"),
        (b'#$ "unbalanced\n', None),
    ],
)
def test_a_log_in_which_nobody_speaks_is_an_error(
    real: Cli, here: Path, content: bytes, found: str | None
) -> None:
    (here / "x.log").write_bytes(content)
    outcome = real("stages", "--from-log", "x.log")
    if found is None:
        assert outcome.code in (0, 1)
        assert "unbalanced" in outcome.out
    else:
        one_error(outcome, found)


def test_a_log_that_cannot_be_read_is_an_error(real: Cli, here: Path) -> None:
    outcome = real("stages", "--from-log", "no.log")
    assert outcome.code == 2
    assert outcome.err == (
        "error[TM906]: cannot read the log\n  --> no.log\n  found: No such file or directory\n"
        "help: `--from-log -` reads stdin\n"
    )
    (here / "folder").mkdir()
    assert "found: Is a directory\n" in real("stages", "--from-log", "folder").err


def test_a_log_comes_from_stdin_in_any_encoding(cache: str, here: Path) -> None:
    text = members()[f"{SEED}.log"].decode()
    shown = set()
    for data in (
        text.encode(),
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
    ):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
        stdout, stderr = io.StringIO(), io.StringIO()
        env = {"HOME": str(here), "XDG_CACHE_HOME": cache}
        assert main(["stages", "--from-log", "-"], env, stdin, stdout, stderr) == 0
        assert stderr.getvalue() == ""
        shown.add(stdout.getvalue())
    assert len(shown) == 1
    assert "stdin:1" in shown.pop()


def test_names_that_are_no_utf_8_survive(real: Cli, here: Path) -> None:
    log = members()[f"{SEED}.log"].replace(b"backprop_cuda", b"back\xff")
    (here / "x.log").write_bytes(log)
    assert r"back\udcff.cu" in real("stages", "--from-log", "x.log").out
    assert real("stages", "--from-log", "x.log", "--script", "-o", "x.sh").code == 0
    assert b'"back\xff.cu"' in (here / "x.sh").read_bytes()


def test_a_line_without_end_takes_no_memory(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LONGEST", 1000)
    (here / "x.log").write_bytes(members()[f"{SEED}.log"] + b"#$ " + b"x" * 100_000)
    outcome = real("stages", "--from-log", "x.log")
    assert outcome.code == 0
    assert "14 stages" in outcome.out
    assert (
        "a line of more than 1000 characters is not a command and was skipped (line 28)"
        in " ".join(outcome.out.split())
    )


def test_half_a_log_shows_what_was_understood(real: Cli, here: Path) -> None:
    whole = members()[f"{SEED}.log"]
    for part in range(1, 20):
        (here / "x.log").write_bytes(whole[: len(whole) * part // 20])
        outcome = real("stages", "--from-log", "x.log")
        # Its beginning may have no command yet.
        unread = "none of the commands that it runs" in outcome.err
        assert outcome.code in ((2,) if unread else (0, 1)), outcome
        assert unread <= (part < 10), part
        assert "internal" not in outcome.err


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "",
            (
                "error[TM901]: `stages` needs a source or a log\n"
                "  expected: FILE..., or --from-log FILE\n  found: neither\n"
                "help: `toolmatrix help stages` shows examples\n"
            ),
        ),
        (
            "--from-log seed.log k.cu",
            (
                "error[TM901]: `--from-log` and `k.cu` contradict each other\n"
                "help: a log already records the flags of the driver; leave out one of them\n"
            ),
        ),
        (
            "--from-log seed.log -- -c",
            (
                "error[TM901]: `--from-log` and `--` contradict each other\n"
                "help: a log already records the flags of the driver; leave out one of them\n"
            ),
        ),
        (
            "--from-log seed.log --arch sm_86",
            (
                "error[TM901]: `--from-log` and `--arch sm_86` contradict each other\n"
                "help: a log already records the flags of the driver; leave out one of them\n"
            ),
        ),
        (
            "diff old.log",
            (
                "error[TM901]: `stages diff` needs OLD NEW\n"
                "  expected: two logs, or two drivers and a source\n"
                "help: write a source named `diff` as `./diff`\n"
            ),
        ),
        ("diff - -", "error[TM901]: only one of the two logs can be `-`\n"),
        (
            "diff old.log new.log --dot",
            "error[TM901]: `stages diff` has no format `dot`\n  expected: one of text, json, md, html, svg\n",
        ),
        (
            "--from-log make.log --ninja",
            (
                "error[TM901]: the log has 4 runs of a driver\n"
                "  expected: one run, to replay it or to compute its cost\nhelp: save the log of one run\n"
            ),
        ),
        (
            "--from-log seed.log --script --run",
            "error[TM901]: `--script` cannot be combined with `--run`, `--verify` or `--cost`\n",
        ),
        (
            "--from-log seed.log --dot --run",
            "error[TM901]: a run or its cost cannot be shown as `dot`\n  expected: one of text, json, md, html, svg\n",
        ),
        (
            "--from-log seed.log --dot --json",
            "error[TM901]: `--dot` and `--json` contradict each other\n",
        ),
    ],
)
def test_bad_usage_is_answered_in_full(real: Cli, line: str, message: str) -> None:
    outcome = real("stages", *shlex.split(line))
    assert outcome.code == 2
    if "--json" in line:
        assert outcome.json()["error"]["what"] in message
    else:
        assert (outcome.out, outcome.err) == ("", message)


@pytest.mark.usefixtures("logs")
def test_what_is_not_in_the_plan_is_not_matched(real: Cli) -> None:
    for words in (["--only", "sm_99"], ["--until", "77"], ["--since", "nvlink"]):
        outcome = real("stages", "--from-log", "seed.log", *words)
        assert (outcome.code, outcome.out) == (3, "")
        assert outcome.err.startswith("error[TM110]: the plan ")


@pytest.mark.usefixtures("logs")
def test_exit_zero_takes_the_edge_off_a_refusal(real: Cli) -> None:
    assert real("stages", "--from-log", "refused.log").code == 1
    assert real("stages", "--from-log", "refused.log", "--exit-zero").code == 0


@pytest.mark.usefixtures("logs")
def test_an_output_that_cannot_be_written_is_an_error(real: Cli) -> None:
    outcome = real("stages", "--from-log", "seed.log", "-o", "missing/answer.txt")
    assert (outcome.code, outcome.out) == (2, "")
    assert "error[TM905]: cannot write the output" in outcome.err


def test_svg_needs_graphviz(real: Cli, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_given, **_named: None)
    outcome = real("stages", "--from-log", "seed.log", "--svg", "-o", "seed.svg")
    assert outcome.code == 5
    assert outcome.err == (
        "error[TM500]: `dot` is not on PATH\n"
        "help: install graphviz (Debian and Ubuntu: `apt-get install graphviz`), "
        "or use `--dot` or `--mermaid`\n"
    )
    assert not (logs / "seed.svg").exists()


@pytest.mark.process
@pytest.mark.usefixtures("logs")
def test_svg_is_drawn_by_graphviz(real: Cli) -> None:
    program("dot")
    outcome = real("stages", "--from-log", "seed.log", "--svg")
    assert outcome.code == 0
    assert outcome.out.count('class="node"') > 14


def test_a_missing_driver_is_named_with_what_to_install(
    real: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_given, **_named: None)
    outcome = real("stages", "k.cu")
    assert (outcome.code, outcome.out) == (5, "")
    assert "`nvcc` is not on PATH" in outcome.err
    assert "install the CUDA toolkit" in outcome.err


DRIVER = """\
#!{python}
import sys
print("#$ gcc -E -x c++ k.cu -o k.cpp1.ii", file=sys.stderr)
print("ASKED", sys.argv[1:], file=sys.stderr)
sys.exit({code})
"""


def fake_driver(here: Path, code: int) -> str:
    """A program that is called nvcc and ends with a code."""
    fake = here / "bin" / "nvcc"
    fake.parent.mkdir(exist_ok=True)
    fake.write_text(DRIVER.format(python=sys.executable, code=code))
    fake.chmod(0o755)
    return str(fake)


@pytest.mark.process
def test_a_driver_that_fails_is_shown_with_what_it_said(real: Cli, here: Path) -> None:
    driver = fake_driver(here, 3)
    outcome = real("stages", "k.cu", "--driver", driver, PATH=os.environ["PATH"])
    assert outcome.code == 5
    assert "k.cu -> " in outcome.out
    assert "error[TM500]: `nvcc` failed with exit code 3" in outcome.err
    document = real("stages", "k.cu", "--driver", driver, "--json", PATH=os.environ["PATH"])
    assert document.code == 5
    assert document.json()["plans"][0]["stages"]


@pytest.mark.process
def test_words_after_two_dashes_go_to_the_driver_as_they_are(real: Cli, here: Path) -> None:
    driver = fake_driver(here, 7)
    words = ["--", "--json", "-o", "a b", '-Xcompiler="-O2"', "--"]
    outcome = real(
        "stages", "k.cu", "--driver", driver, "--arch", "sm_86", *words, PATH=os.environ["PATH"]
    )
    asked = re.search(r"ASKED (.*)", outcome.err.replace("\\n", "\n"))
    assert asked
    for word in ("'--json'", "'a b'", "'-Xcompiler=\"-O2\"'", "'--'", "'-arch=sm_86'"):
        assert word in asked[1]


def test_two_dashes_pass_words_on() -> None:
    parsed = parse(["stages", "a.cu", "--json", "--", "-c", "--json", "--"])
    assert (parsed.arguments, parsed.passed) == (["a.cu"], ["-c", "--json", "--"])
    assert parsed.values == {"format": "json"}
    assert parse(["diff", "a", "--", "-b"]).arguments == ["a", "-b"]


def test_running_is_asked_for_on_the_command_line_alone(real: Cli, logs: Path) -> None:
    outcome = real("stages", "--from-log", "seed.log", TOOLMATRIX_RUN="1", TOOLMATRIX_VERIFY="1")
    assert (outcome.code, outcome.err) == (0, "")
    (logs / "toolmatrix.toml").write_text("run = true\n")
    assert "unknown key `run`" in real("stages", "--from-log", "seed.log").err


@pytest.mark.process
@pytest.mark.usefixtures("logs")
def test_a_reader_that_leaves_is_no_error(cache: str, logs: Path) -> None:
    line = f"{sys.executable} -m toolmatrix stages --from-log {logs}/make.log -v | head -n 1; echo ${{PIPESTATUS[0]}}"
    env = os.environ | {"XDG_CACHE_HOME": cache, "PYTHONPATH": str(FOLDER.parent.parent)}
    made = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, env=env)
    assert made.stderr == ""
    assert made.stdout.splitlines()[-1] in ("0", str(READER_GONE))


@pytest.mark.parametrize("name", ["nvcc-13.0.88__file-unicode", "hipcc-7.0.2__file-unicode"])
def test_ascii_terminals_get_ascii(real: Cli, here: Path, name: str) -> None:
    (here / "x.log").write_bytes(members()[f"{name}.log"])
    for form in ("--dot", "--mermaid", "--raw", "--json"):
        assert real("stages", "--from-log", "x.log", form).code == 0


def test_help_golden(real: Cli) -> None:
    assert_golden("stages/help-plain.txt", real("help", "stages").out)


def test_a_log_is_called_what_its_reader_calls_it() -> None:
    assert (log_file.display_name("-"), log_file.display_name("a/b.log")) == ("stdin", "a/b.log")
