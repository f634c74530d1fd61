"""`toolmatrix render`: what is written where, what is remembered, and every refusal with nothing written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.render.jobs import FIXTURES
from toolmatrix.cli.commands import COMMANDS
from toolmatrix.render import formats

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

DEBIAN = ("gcc", "python", "--distro", "debian12", "--target", "x86,arm", "--accelerator", "none")


def names(folder: Path) -> list[str]:
    """The files of a directory."""
    return sorted(path.name for path in folder.iterdir())


def test_a_request_becomes_files(real: Cli, here: Path) -> None:
    outcome = real("render", *DEBIAN, "--format", "dockerfile,dockerignore", "--output", "out")
    written = [
        *(".dockerignore", "arm.Dockerfile", "arm.check.sh"),
        *("toolmatrix.lock", "x86.Dockerfile", "x86.check.sh"),
    ]
    assert outcome.code == 0
    assert outcome.out == "".join(f"wrote out/{name}\n" for name in written)
    assert outcome.err == (
        "unpinned: debian:12; `--strict` refuses these\nhint: `toolmatrix build out` builds them\n"
    )
    assert names(here / "out") == sorted(written)


def test_twice_gives_the_same_bytes(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "one")
    real("render", *DEBIAN, "--output", "two")
    one, two = here / "one", here / "two"
    texts = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (one, two)
    ]
    assert texts[0] == texts[1]
    again = real("render", *DEBIAN, "--output", "one")
    assert {line.split()[0] for line in again.out.splitlines()} == {"unchanged"}


def test_a_lock_gives_what_its_request_gives(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "one")
    real("render", "--lock", "one/toolmatrix.lock", "--output", "two")
    assert (here / "one/x86.Dockerfile").read_text() == (here / "two/x86.Dockerfile").read_text()


def test_a_directory_remembers_how_it_was_rendered(real: Cli, here: Path) -> None:
    base = ("--base", "debian:12=debian@sha256:" + "0" * 64)
    said = ("--dialect", "classic", "--format", "dockerfile", *base)
    real("render", *DEBIAN, *said, "--output", "out")
    before = (here / "out/arm.Dockerfile").read_text()
    assert real("render", "--check", "--output", "out").out == "out is up to date: 5 files\n"
    real("render", "--output", "out")
    assert (here / "out/arm.Dockerfile").read_text() == before
    assert "FROM debian@sha256:" in before


def test_an_edit_by_hand_is_a_difference(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    file = here / "out/x86.Dockerfile"
    text = file.read_text()
    file.write_text(text.replace("gcc-12", "gcc-11", 1))
    outcome = real("render", "--check", "--output", "out")
    assert outcome.code == 1
    assert outcome.out.startswith("--- out/x86.Dockerfile\n+++ out/x86.Dockerfile\n@@")
    assert [line[0] for line in outcome.out.splitlines() if "install -y" in line] == ["-", "+"]
    assert re.fullmatch(
        r"of \d+ files 1 would change; `toolmatrix render` writes them anew\n", outcome.err
    )
    (here / "out/x86.check.sh").unlink()
    assert "--- /dev/null\n+++ out/x86.check.sh\n" in real("render", "--check", "-o", "out").out
    real("render", "--output", "out")
    assert file.read_text() == text


def test_stdout_takes_the_files_and_nothing_is_written(real: Cli, here: Path) -> None:
    outcome = real("render", *DEBIAN, "--format", "dockerignore", "--stdout")
    assert outcome.code == 0
    assert "!x86.check.sh\n" in outcome.out
    assert "==>" not in outcome.out
    several = real("render", *DEBIAN, "--format", "dockerfile", "--stdout").out
    assert several.startswith("==> arm.Dockerfile <==\n")
    assert names(here) == []


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ((), "# syntax=docker/dockerfile:1"),
        (("--syntax-line", "on"), "# syntax=docker/dockerfile:1"),
        (("--syntax-line", "off"), "# check=error=true"),
        (
            ("--syntax-line", "mirror.example.org/dockerfile:1"),
            "# syntax=mirror.example.org/dockerfile:1",
        ),
        (("--dialect", "classic"), "# toolchain for x86"),
        (("--dialect", "classic", "--syntax-line", "on"), "# syntax=docker/dockerfile:1"),
    ],
)
def test_the_first_line(real: Cli, here: Path, said: tuple[str, ...], first: str) -> None:
    real("render", *DEBIAN, *said, "--output", "out")
    assert (here / "out/x86.Dockerfile").read_text().startswith(first)


def test_a_target_without_an_answer_is_excluded_where_others_remain(real: Cli, here: Path) -> None:
    request = ("rocm==5.2.3", "gcc", "--distro", "debian12", "--accelerator", "rocm")
    outcome = real("render", *request, "--target", "amd,arm", "--output", "out")
    assert outcome.code == 0
    assert outcome.err.startswith("excluded arm: it has no answer;")
    assert (here / "out/amd.Dockerfile").exists()
    assert not (here / "out/arm.Dockerfile").exists()


def test_a_refusal_is_printed_as_resolve_does(real: Cli, here: Path) -> None:
    request = ("tensorflow==2.6.5", "python==3.12", "--target", "x86")
    outcome = real("render", *request, "--output", "out")
    assert outcome.code == 1
    assert outcome.err.startswith("no answer, nothing was written\n")
    assert outcome.out.startswith("no")
    assert names(here) == []


def test_every_format_is_known_to_the_frame(real: Cli) -> None:
    assert COMMANDS["render"].forms == ("text", *formats.known())
    assert [one.NAME for one in formats.known().values()] == list(formats.known())
    listed = real("render", "--list-formats").out.splitlines()
    assert [line.split()[0] for line in listed] == list(formats.known())


LOCK = ("--lock", str(FIXTURES / "debian.lock"))


@pytest.mark.parametrize(
    ("said", "code", "error"),
    [
        (DEBIAN, 2, "error[TM901]: nothing says where to write\n"),
        ((*DEBIAN, "--stdout", "--check"), 2, "error[TM901]: `--stdout` and `--check` contradict"),
        (
            (*DEBIAN, "-o", "out", "--recipe", "none"),
            2,
            "error[TM601]: there is no recipe `none`\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--recipe", "./none.yaml"),
            2,
            "error[TM601]: the recipe cannot be read\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:12"),
            2,
            "error[TM901]: `--base debian:12` cannot be read\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:21=local/debian"),
            2,
            "error[TM901]: no file starts from `debian:21`\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:12=a b"),
            2,
            "error[TM602]: a value cannot be put where a template wants it\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--syntax-line", "x\nRUN id"),
            2,
            "error[TM602]: a value cannot be put where a template wants it\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--option", "debug"),
            2,
            "error[TM602]: the recipe `toolchain` has no option `debug`\n",
        ),
        ((*DEBIAN, "-o", "out", "--strict"), 1, "error[TM603]: something would be taken as it"),
        (("-o", "out"), 2, "error[TM904]: there is no lock\n"),
        ((*LOCK, "-o", "out"), 2, "error[TM904]: the lock was made from another matrix\n"),
        ((*DEBIAN, "-o", "out", "--format", "dockerfil"), 2, "error[TM901]: bad value for"),
        ((*DEBIAN, "-o", "out", "--format", "html"), 2, "error[TM901]: `render` has no format"),
        (("gccc", "-o", "out"), 3, "error[TM110]: no component is called `gccc`\n"),
    ],
)
def test_bad_input_is_one_error_and_nothing_is_written(
    real: Cli, here: Path, said: tuple[str, ...], code: int, error: str
) -> None:
    outcome = real("render", *said)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(error)
    assert outcome.err.count("error[") == 1
    assert names(here) == []


def test_a_lock_for_another_target_is_told(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    outcome = real("render", "--lock", "out/toolmatrix.lock", "--target", "amd", "--output", "new")
    assert outcome.code == 1
    assert outcome.err.startswith(
        "error[TM604]: the recipe `toolchain` makes no image of this lock"
    )
    assert "amd: the lock has no answer for it" in outcome.err
    assert not (here / "new").exists()


def test_an_edited_lock_is_refused(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    lock = here / "out/toolmatrix.lock"
    lock.write_text(lock.read_text().replace('version = "12"', 'version = "1.0; rm -rf /"'))
    outcome = real("render", "--lock", "out/toolmatrix.lock", "--output", "new")
    assert outcome.err.startswith("error[TM904]: the lock was edited by hand\n")
    assert not (here / "new").exists()


def test_an_answer_is_one_in_which_packages_can_be_installed(real: Cli, here: Path) -> None:
    outcome = real("render", "numpy==1.24.4", "--recipe", "numpy", "--target", "x86", "-o", "out")
    assert outcome.code == 0
    assert "FROM ubuntu:" in (here / "out/x86.Dockerfile").read_text()


def test_what_somebody_else_wrote_is_not_replaced(real: Cli, here: Path) -> None:
    (here / "out").mkdir()
    (here / "out/x86.Dockerfile").write_text("FROM scratch\n")
    outcome = real("render", *DEBIAN, "--output", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error[TM905]: a file there was not written by toolmatrix\n")
    assert names(here / "out") == ["x86.Dockerfile"]
    assert (here / "out/x86.Dockerfile").read_text() == "FROM scratch\n"


def test_files_of_an_earlier_render_are_told(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    outcome = real("render", *DEBIAN[:4], "--target", "x86", "--output", "out")
    assert "left as they were: arm.Dockerfile, arm.check.sh" in outcome.err
    (here / "out/notes.env.sh").write_text("mine\n")
    assert "notes" not in real("render", "--output", "out").err


@pytest.mark.parametrize("blocked", ["out", "out/x86.Dockerfile"])
def test_a_place_that_cannot_be_written_is_told(real: Cli, here: Path, blocked: str) -> None:
    place = here / blocked
    place.parent.mkdir(exist_ok=True)
    if blocked == "out":
        place.write_text("a file")
    else:
        place.mkdir()
    outcome = real("render", *DEBIAN, "--output", "out")
    assert outcome.code == 2
    assert outcome.err.startswith("error[TM905]: cannot ")
    left = [path.name for path in here.rglob("*") if path.is_file()]
    assert left == (["out"] if blocked == "out" else [])
