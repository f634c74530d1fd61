"""Images of AArch64 judged by reading alone: nothing of them runs, and nothing here could run it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.cli.conftest import Cli
from tests.engine.docker import unable
from tests.images import images

pytestmark = [pytest.mark.process, pytest.mark.large]

COMPILER = "aarch64-linux-gnu-gcc"
PROGRAM = "int main(int count, char **words) { char first = **words; return first + count; }\n"
FLAGS = ("-fsigned-char", "-march=armv8-a+crc")
RECORDED = "-frecord-gcc-switches"
SET = dict.fromkeys(("CFLAGS", "CXXFLAGS"), "-fsigned-char -march=armv8-a+crc")


def compiled(folder: Path, *options: str) -> bytes:
    """A small program for AArch64 by Debian's cross compiler."""
    if not which(COMPILER):
        unable("programs for arm64 need g++-aarch64-linux-gnu")
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    subprocess.run([COMPILER, *options, str(source), "-o", str(program)], check=True)
    return program.read_bytes()


def archive(folder: Path, program: bytes, env: dict[str, str]) -> None:
    made = images.image(
        {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "usr/bin/program": program},
        platform="linux/arm64",
        Env=[f"{name}={value}" for name, value in env.items()],
    )
    (folder / "arm.tar").write_bytes(images.tar(images.saved(made)))


@pytest.mark.parametrize(
    ("options", "env", "wrong"),
    [
        ((*FLAGS, RECORDED), {}, []),
        ((*FLAGS, "-g"), {}, []),
        ((), SET, []),
        (("-g",), {}, list(FLAGS)),
        ((RECORDED,), {}, list(FLAGS)),
        (("-fsigned-char", "-g"), {}, ["-march=armv8-a+crc"]),
        ((*FLAGS, RECORDED), SET | {"CFLAGS": "-O2"}, list(FLAGS)),
    ],
)
def test_flags_of_the_lock_are_proved_by_files_and_settings(
    real: Cli, here: Path, options: tuple[str, ...], env: dict[str, str], wrong: list[str]
) -> None:
    asked = ("gcc", "python", "base-image", "--distro", "debian12", "--target", "arm")
    assert real("lock", *asked).code == 0
    archive(here, compiled(here, *options), env)
    run = real("validate", "arm.tar", "--only", "arch,flag", "--json")
    found = {one["name"]: one for one in json.loads(run.out)["verdicts"]}
    failed = [name for name, one in found.items() if one["verdict"] == "FAIL"]
    assert (failed, run.code, len(found)) == (wrong, int(bool(wrong)), 3)
    assert {found[name]["code"] for name in wrong} <= {"TM404"}
    assert found["platform"]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        ((*FLAGS, "-g"), ("feature==char=signed", "feature==crc32", "flag==-fsigned-char"), 0),
        (("-g",), ("feature==char=unsigned",), 0),
        (("-g",), ("feature==char=signed",), 1),
        (("-g",), ("feature==crc32",), 1),
        ((*FLAGS, "-g"), ("arch==amd64",), 1),
    ],
)
def test_the_sign_of_char_and_crc32_are_read(
    real: Cli, here: Path, options: tuple[str, ...], words: tuple[str, ...], code: int
) -> None:
    archive(here, compiled(here, *options), {})
    expected = [part for word in words for part in ("--expect", word)]
    assert real("validate", "arm.tar", *expected).code == code
