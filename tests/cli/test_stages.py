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
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli, Outcome
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from tests.compilation import real as tools
from tests.compilation.corpus import cases, members
from tests.compilation.real import program
from tests.golden import FOLDER, assert_golden
from tests.schemas import shipped
from toolmatrix.cli.main import READER_GONE, main
from toolmatrix.cli.parser import parse
from toolmatrix.compilation import log_file
from toolmatrix.compilation.drivers.dry_run import arch_flags

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
    validator = jsonschema.Draft202012Validator(shipped("stages"))
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


# `toolmatrix stages` that acts: drivers asked, plans run, verified and costed, with the real tools where they are.


COPY = """\
#$ _SPACE_=
#$ cp "one.cu" "two.cubin"
#$ cp "two.cubin" "three.o"
"""
TIMES = """\
source file name , phase name , phase input files , phase output file , arch , tool, metric , unit
saxpy.cu , cicc , saxpy.cpp1.ii , saxpy.ptx , compute_75 , nvcc , 2000.5 , ms
saxpy.cu , unheard of , x , y , none , nvcc , 1 , ms
"""


@pytest.fixture
def source(here: Path) -> Path:
    """A source that nvcc compiles, in the working directory."""
    shutil.copy(tools.SOURCES / "saxpy.cu", here / "saxpy.cu")
    return here


def path() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


def valid(document: dict[str, Any]) -> dict[str, Any]:
    validated(document, "stages")
    return document


@pytest.mark.parametrize(
    ("archs", "family", "flags"),
    [
        ((), "nvcc", []),
        (("sm_86",), "nvcc", ["-arch=sm_86"]),
        (
            ("sm_80", "sm_90a", "compute_90"),
            "nvcc",
            [
                "-gencode=arch=compute_80,code=[sm_80,compute_80]",
                "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]",
                "-gencode=arch=compute_90,code=compute_90",
            ],
        ),
        (("gfx90a", "gfx942"), "hipcc", ["--offload-arch=gfx90a", "--offload-arch=gfx942"]),
    ],
)
def test_archs_are_said_in_the_words_of_the_driver(
    archs: tuple[str, ...], family: str, flags: list[str]
) -> None:
    assert arch_flags(archs, family) == flags


@pytest.mark.process
def test_a_log_is_run_only_when_that_is_asked(real: Cli, here: Path) -> None:
    (here / "x.log").write_text(COPY)
    (here / "one.cu").write_text("1")
    assert real("stages", "--from-log", "x.log").code == 0
    assert sorted(path.name for path in here.iterdir()) == ["one.cu", "x.log"]
    outcome = real("stages", "--from-log", "x.log", "--run", "--jobs", "2", **path())
    assert outcome.code == 0, outcome
    assert "2 stages in " in outcome.out
    assert (here / "three.o").read_text() == "1"
    assert sorted(path.name for path in here.iterdir()) == [
        *("one.cu", "three.o", "two.cubin", "x.log")
    ]


@pytest.mark.process
def test_a_run_as_a_document_is_a_cost_later(real: Cli, here: Path) -> None:
    (here / "x.log").write_text(COPY)
    (here / "one.cu").write_text("1")
    outcome = real("stages", "--from-log", "x.log", "--run", "--json", "-o", "run.json", **path())
    assert outcome.code == 0, outcome
    document = valid(json.loads((here / "run.json").read_text()))
    assert [one["stage"] for one in document["plans"][0]["run"]["timings"]] == [0, 1]
    shown = real("stages", "--from-log", "x.log", "--cost", "run.json")
    assert (shown.code, shown.err) == (0, "")
    assert "critical path" in shown.out
    again = real("stages", "--from-log", "x.log", "--cost", "run.json", "--json").json()
    assert valid(again)["plans"][0]["cost"] == document["plans"][0]["cost"]


@pytest.mark.process
def test_a_stage_that_fails_is_named(real: Cli, here: Path) -> None:
    (here / "x.log").write_text(COPY)
    outcome = real("stages", "--from-log", "x.log", "--run", **path())
    assert (outcome.code, outcome.out) == (5, "")
    assert "stage 1" in outcome.err
    assert sorted(path.name for path in here.iterdir()) == ["x.log"]


def test_times_of_nvcc_are_a_cost(real: Cli, here: Path) -> None:
    (here / "x.log").write_bytes(members()["nvcc-13.0.88__c-default-arch.log"])
    (here / "times.csv").write_text(TIMES)
    outcome = real("stages", "--from-log", "x.log", "--cost", "times.csv")
    assert outcome.code == 0
    assert "2.00 of 2.00 s" in outcome.out
    assert outcome.err == "note: no stage of the plan matches `unheard of` of times.csv:3\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nothing\n", "error[TM901]: this is not a table of `nvcc -time`\n  --> times"),
        ('{"plans": []}', "error[TM906]: this is not a run of one plan\n  --> times\n"),
        ('{"plans": [{}]}', "error[TM906]: this is not a run of one plan\n"),
        ("{", "error[TM906]: this is not a run of one plan\n"),
        (None, "error[TM906]: cannot read the times\n  --> times\n  found: No such file"),
    ],
)
def test_what_is_no_table_of_times_is_an_error(
    real: Cli, here: Path, content: str | None, message: str
) -> None:
    (here / "x.log").write_bytes(members()["nvcc-13.0.88__c-default-arch.log"])
    if content is not None:
        (here / "times").write_text(content)
    outcome = real("stages", "--from-log", "x.log", "--cost", "times")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(message)


def test_verifying_a_log_is_refused(real: Cli, here: Path) -> None:
    (here / "x.log").write_text(COPY)
    outcome = real("stages", "--from-log", "x.log", "--verify")
    assert outcome.code == 2
    assert "`--from-log` and `--verify` contradict each other" in outcome.err


@pytest.mark.process
@pytest.mark.slow
def test_nvcc_is_asked_shown_replayed_and_verified(real: Cli, source: Path) -> None:
    flags = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-c"]
    ask = ["stages", "saxpy.cu", "--driver", tools.nvcc(), "-q"]
    shown = real(*ask, "--", *flags, **path())
    assert (shown.code, shown.err) == (0, "")
    assert "7 stages for compute_90 and sm_90\n" in shown.out
    assert [one.name for one in source.iterdir()] == ["saxpy.cu"]
    written = real(*ask, "--ninja", "-o", "build.ninja", "--", *flags, **path())
    assert written.code == 0, written
    subprocess.run([tools.program("ninja")], check=True, capture_output=True, cwd=source)
    assert (source / "saxpy.o").stat().st_size > 0
    verified = real(*ask, "--verify", "--", *flags, **path())
    assert verified.code == 0, verified
    assert "saxpy.o: identical, byte for byte, to the driver's own\n" in verified.out


@pytest.mark.large
@pytest.mark.process
@pytest.mark.slow
def test_two_gfx_targets_of_hipcc_are_shown(real: Cli, here: Path) -> None:
    (here / "vadd.hip").write_text("#include <hip/hip_runtime.h>\n")
    program = tools.program("hipcc")
    words = ["--offload-arch=gfx906", "--offload-arch=gfx90a", "-c"]
    outcome = real("stages", "vadd.hip", "--driver", program, "--", *words, **path())
    assert outcome.code == 0, outcome
    assert "for gfx906 and gfx90a\n" in outcome.out
    assert "note: HIP_PLATFORM=amd was chosen because it was not set\n" in outcome.err


@pytest.mark.process
def test_a_driver_that_hangs_is_ended(real: Cli, here: Path) -> None:
    program = here / "nvcc"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    program.chmod(0o755)
    outcome = real("stages", "a.cu", "--driver", str(program), "--timeout", "1", **path())
    assert (outcome.code, outcome.out) == (5, "")
    assert "`nvcc` did not finish within 1 s and was stopped" in outcome.err


def driver(here: Path, name: str, script: str) -> str:
    """A driver that does what a script says, outside the working directory."""
    program = here.parent / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


REFUSING = """\
case "$*" in
*--version*) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
*) echo "nvcc fatal   : Unsupported gpu architecture 'compute_35'" >&2; exit 1 ;;
esac"""


@pytest.mark.process
@pytest.mark.parametrize("more", [[], ["--run"]])
def test_an_arch_that_the_driver_refuses_is_told_with_the_last_that_took_it(
    real: Cli, here: Path, more: list[str]
) -> None:
    ask = ["stages", "k.cu", "--driver", driver(here, "nvcc", REFUSING), *more]
    outcome = real(*ask, "--", "-arch=sm_35", **path())
    assert outcome.code == 5
    assert " ".join(outcome.out.split()).startswith(
        "error[TM201]: cuda 13.0.1 to 13.0.3 does not support the arch `compute_35` any more:"
        " nvcc 11.8.89 was the last to support it "
    )
    assert outcome.err.startswith("error[TM500]: `nvcc` failed with exit code 1\n")
    document = real(*ask, "--json", "--", "-arch=sm_35", **path())
    assert document.code == 5


MISSING_PROGRAM = """\
echo '#$ _SPACE_='
echo '#$ gcc -E "k.cu" -o "k.ii"'
echo '#$ no-such-cicc -arch compute_80 "k.ii" -o "k.ptx"'"""
MISSING_SOURCE = """\
echo '#$ _SPACE_='
echo '#$ touch "started"'
echo '#$ g++ "gone.o" -o "app"'"""


@pytest.mark.process
@pytest.mark.parametrize("how", ["--run", "--verify"])
@pytest.mark.parametrize(
    ("script", "source", "code", "message"),
    [
        (
            MISSING_PROGRAM,
            "k.cu",
            5,
            (
                "error[TM500]: nothing was run: the program `no-such-cicc` was not found\n"
                "help: install it, or put its directory on PATH\n"
            ),
        ),
        (
            MISSING_SOURCE,
            "gone.o",
            2,
            (
                "error[TM901]: nothing was run: the object `gone.o` does not exist\n"
                "help: check the name and the working directory\n"
            ),
        ),
    ],
    ids=["program", "source"],
)
def test_nothing_runs_where_something_is_known_to_be_missing(
    real: Cli, here: Path, how: str, script: str, source: str, code: int, message: str
) -> None:
    (here / "k.cu").touch()
    program = driver(here, "nvcc", script)
    outcome = real("stages", source, "-q", "--driver", program, how, **path())
    assert (outcome.code, outcome.out, outcome.err) == (code, "", message)
    assert [one.name for one in here.iterdir()] == ["k.cu"]


@pytest.mark.process
def test_a_program_that_a_log_names_and_this_machine_has_not_is_told_before_a_run(
    real: Cli, here: Path
) -> None:
    (here / "one.cu").touch()
    (here / "x.log").write_text(COPY + '#$ /no/such/cuda/bin/ptxas "three.o" -o "k.cubin"\n')
    outcome = real("stages", "--from-log", "x.log", "--run", **path())
    assert outcome.code == 5
    assert "nothing was run: the program `/no/such/cuda/bin/ptxas` was not found" in outcome.err
    assert sorted(one.name for one in here.iterdir()) == ["one.cu", "x.log"]


@pytest.mark.process
def test_a_driver_that_differs_from_itself_is_said(real: Cli, here: Path) -> None:
    (here / "k.cu").touch()
    ours = driver(here, "assembler", "echo ours > k.o")
    script = f"""\
case "$*" in
*--dryrun*) echo '#$ _SPACE_='; echo '#$ {ours} "k.cu" -o "k.o"' ;;
*) echo run >> runs; cat runs > k.o ;;
esac"""
    program = driver(here, "nvcc", script)
    outcome = real("stages", "k.cu", "--driver", program, "--verify", **path())
    assert outcome.code == 1
    assert (
        "k.o: unknown, as the driver's own output differs from run to run, first at byte 0\n"
        in outcome.out
    )


@pytest.mark.process
def test_a_configured_arch_gives_way_to_the_drivers_own_flags(real: Cli, here: Path) -> None:
    program = here / "nvcc"
    program.write_text('#!/bin/sh\nprintf "%s " "$@" > asked\n')
    program.chmod(0o755)
    (here / "toolmatrix.toml").write_text('arch = "sm_86"\n')
    for words, wanted in (([], True), (["-arch=sm_90"], False), (["-gencode", "x"], False)):
        assert real("stages", "a.cu", "--driver", str(program), "--", *words, **path()).code == 5
        assert ("-arch=sm_86" in (here / "asked").read_text()) == wanted
