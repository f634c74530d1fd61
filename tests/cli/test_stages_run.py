"""`toolmatrix stages` that acts: drivers asked, plans run, verified and costed, with the real tools where they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_documents import validated
from tests.compilation import real as tools
from tests.compilation.corpus import members
from toolmatrix.compilation.drivers.dry_run import arch_flags

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.cli.conftest import Cli

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
