"""Asking drivers: which one, with which words, and what happens when it is missing, fails or hangs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests import matrix
from tests.compilation.corpus import cases, log
from tests.compilation.test_execute import gone
from toolmatrix.compilation import known
from toolmatrix.compilation.drivers.dry_run import FAMILIES, DryRun, build, dry_run, find, work_name
from toolmatrix.compilation.model import Plan
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.judging import stage_facts
from toolmatrix.request import compiles

ECHO = 'for word; do echo "word=$word"; done; env'


def fake(directory: Path, name: str, text: str = ECHO) -> Path:
    """A program of a shell script."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def path_with(directory: Path, *names: str) -> str:
    for name in names:
        fake(directory, name)
    return str(directory)


@pytest.mark.parametrize(
    ("source", "flags", "program"),
    [
        ("k.cu", ["-arch=sm_80"], "nvcc"),
        ("k.cu", ["--cuda-gpu-arch=sm_80"], "clang++"),
        ("k.cu", ["--offload-arch=sm_80"], "clang++"),
        ("k.hip", [], "hipcc"),
        ("k.cpp", ["--offload-arch=gfx90a"], "hipcc"),
        ("k.cpp", ["-x", "hip"], "hipcc"),
        ("k.cpp", ["-xcuda"], "nvcc"),
        ("k.o", ["-dlink"], "nvcc"),
    ],
)
def test_the_driver_follows_the_source_and_the_flags(
    tmp_path: Path, source: str, flags: list[str], program: str
) -> None:
    place = path_with(tmp_path / "bin", "nvcc", "hipcc", "clang++")
    family, found = find([source], flags, None, place)
    assert found == f"{place}/{program}"
    assert program in family.programs


def test_clang_stands_in_for_what_is_missing(tmp_path: Path) -> None:
    place = path_with(tmp_path / "bin", "clang")
    assert find(["k.hip"], [], None, place) == (FAMILIES["clang"], f"{place}/clang")


def test_a_named_driver_is_known_by_its_name(tmp_path: Path) -> None:
    named = fake(tmp_path, "amdclang++-19")
    assert find(["k.cu"], [], str(named))[0].name == "clang"
    with pytest.raises(UsageError) as error:
        find(["k.cu"], [], "gcc")
    assert error.value.what == "unknown kind of driver"
    assert error.value.found == "gcc"


@pytest.mark.parametrize(
    ("source", "driver", "missing"),
    [("k.cu", None, "nvcc"), ("k.hip", None, "hipcc"), ("k.cu", "/no/such/nvcc", "/no/such/nvcc")],
)
def test_a_missing_driver_says_what_to_install(
    tmp_path: Path, source: str, driver: str | None, missing: str
) -> None:
    with pytest.raises(ToolMissing) as error:
        find([source], [], driver, str(tmp_path))
    assert error.value.exit_code == 5
    assert error.value.what == f"`{missing}` is not on PATH"
    assert error.value.help.startswith("install ")
    assert error.value.help.endswith("or read a saved log with --from-log")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("k.cu", "k.stages"),
        ("a/my k$.cu", "my_k_.stages"),
        ("-x.cu", "x.stages"),
        ("", "plan.stages"),
    ],
)
def test_the_directory_for_temp_files_needs_no_quoting(source: str, name: str) -> None:
    assert work_name([source] if source else []) == name


def ask(tmp_path: Path, program: str, *flags: str, source: str = "k.cu", **env: str) -> DryRun:
    """What a fake driver was asked, as its own output tells."""
    place = path_with(tmp_path / "bin", program)
    path = f"{place}:{os.environ['PATH']}"
    return dry_run([source], flags, f"{place}/{program}", environ={"PATH": path, **env})


def words(dry: DryRun) -> list[str]:
    return [line[5:] for line in dry.text.splitlines() if line.startswith("word=")]


@pytest.mark.process
def test_nvcc_is_asked_with_stable_names_in_a_directory_that_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    dry = ask(tmp_path, "nvcc", "-arch=sm_80", "-c")
    assert words(dry) == [
        "k.cu",
        "-arch=sm_80",
        "-c",
        "--keep",
        "--keep-dir",
        "k.stages",
        "--dryrun",
    ]
    assert dry.notes == ()
    assert dry.exit_code == 0
    assert dry.failure() is None


@pytest.mark.process
@pytest.mark.parametrize("flag", ["--keep", "-save-temps", "-keep-dir=x", "--objdir"])
def test_what_the_user_says_about_temp_files_stands(tmp_path: Path, flag: str) -> None:
    assert words(ask(tmp_path, "nvcc", flag)) == ["k.cu", flag, "--dryrun"]


@pytest.mark.process
def test_sources_of_one_name_keep_temp_files_of_their_own(tmp_path: Path) -> None:
    dry = ask(tmp_path, "nvcc", "b/k.cu")
    assert words(dry) == ["k.cu", "b/k.cu", "--dryrun"]
    assert "TMPDIR=k.stages" in dry.text.splitlines()


@pytest.mark.process
@pytest.mark.parametrize(
    "flags", [["-t", "4"], ["-t4"], ["-t=4"], ["--threads", "4"], ["--threads=4"]]
)
def test_threads_are_left_out_and_it_is_said(tmp_path: Path, flags: list[str]) -> None:
    dry = ask(tmp_path, "nvcc", *flags, "-c")
    assert dry.words == ("k.cu", "-c")
    assert dry.notes == (
        f"`{' '.join(flags)}` left out: nvcc's dry run is not reliable with threads",
    )


@pytest.mark.process
def test_a_table_of_times_is_not_written_by_a_dry_run(tmp_path: Path) -> None:
    assert ask(tmp_path, "nvcc", "-time", "t.csv", "-c").words == ("k.cu", "-c")


@pytest.mark.process
def test_clang_keeps_what_only_nvcc_calls_threads(tmp_path: Path) -> None:
    assert ask(tmp_path, "clang++", "-t", "4").words == ("k.cu", "-t", "4")


@pytest.mark.process
def test_flags_of_the_environment_are_applied_once_by_nvcc_itself(tmp_path: Path) -> None:
    dry = ask(tmp_path, "nvcc", "-c", NVCC_PREPEND_FLAGS="-G -t 4", NVCC_APPEND_FLAGS="-DA='b c'")
    assert "-G" not in words(dry)
    assert "NVCC_PREPEND_FLAGS=-G" in dry.text.splitlines()
    assert "NVCC_APPEND_FLAGS=-DA='b c'" in dry.text.splitlines()
    assert dry.command_line[1:] == ("-G", "-t", "4", "k.cu", "-c", "-DA=b c")
    assert dry.notes == (
        "`-t 4` in NVCC_PREPEND_FLAGS left out: nvcc's dry run is not reliable with threads",
    )


@pytest.mark.process
def test_hipcc_is_told_its_platform(tmp_path: Path) -> None:
    dry = ask(tmp_path, "hipcc", "-c", source="k.hip")
    assert words(dry) == ["k.hip", "-c", "-###"]
    assert "HIP_PLATFORM=amd" in dry.text.splitlines()
    assert "TMPDIR=k.stages" in dry.text.splitlines()
    assert dry.notes == ("HIP_PLATFORM=amd was chosen because it was not set",)
    assert dry.env == {"HIP_PLATFORM": "amd"}


@pytest.mark.process
def test_hipcc_for_nvidia_is_asked_as_nvcc_is(tmp_path: Path) -> None:
    dry = ask(tmp_path, "hipcc", source="k.hip", HIP_PLATFORM="nvidia")
    assert words(dry)[-1] == "--dryrun"
    assert dry.notes == ("HIP_PLATFORM=nvidia: hipcc calls nvcc",)


@pytest.mark.process
def test_a_found_driver_is_named(tmp_path: Path) -> None:
    place = path_with(tmp_path / "bin", "nvcc")
    dry = dry_run(["k.cu"], environ={"PATH": f"{place}:{os.environ['PATH']}"})
    assert dry.notes == (f"`{place}/nvcc` was run: the first of its kind on PATH",)


@pytest.mark.process
def test_the_driver_runs_where_its_sources_are_relative_to(tmp_path: Path) -> None:
    program = fake(tmp_path, "nvcc", "cat here.txt")
    (tmp_path / "here.txt").write_text("found\n")
    assert dry_run(["k.cu"], driver=str(program), cwd=tmp_path).text == "found\n"


@pytest.mark.process
def test_a_driver_that_fails_shows_what_it_said(tmp_path: Path) -> None:
    program = fake(tmp_path, "nvcc", "echo '#$ A=b'; echo 'nvcc fatal   : no' >&2; exit 1")
    dry = dry_run(["k.cu"], driver=str(program))
    assert dry.exit_code == 1
    assert dry.text == "#$ A=b\nnvcc fatal   : no\n"
    error = dry.failure()
    assert error is not None
    assert error.exit_code == 5
    assert error.what == "`nvcc` failed with exit code 1"
    assert error.found == "nvcc fatal   : no"


@pytest.mark.process
def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    program = fake(tmp_path, "nvcc", r"printf 'a\377b\000c'")
    assert dry_run(["k.cu"], driver=str(program)).text == "a\ufffdb\0c"


@pytest.mark.process
def test_a_driver_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    mark = f"63.{os.getpid()}"
    program = fake(tmp_path, "nvcc", f"sleep {mark} & sleep {mark}")
    with pytest.raises(ToolMissing) as error:
        dry_run(["k.cu"], driver=str(program), limit=0.3)
    assert error.value.what == "`nvcc` did not finish within 0.3 s and was stopped"
    assert gone(mark)


@pytest.mark.process
def test_a_driver_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    program = fake(tmp_path, "nvcc")
    program.write_text("no program\0")
    with pytest.raises(ToolMissing, match="`nvcc` cannot be started"):
        dry_run(["k.cu"], driver=str(program))


@pytest.mark.process
def test_a_build_uses_the_same_names_as_the_plan(tmp_path: Path) -> None:
    program = fake(tmp_path, "nvcc", 'echo "$@" >> asked')
    dry = dry_run(["k.cu"], ["-c"], str(program), cwd=tmp_path)
    build(dry, cwd=tmp_path, limit=30)
    planned, built = (tmp_path / "asked").read_text().splitlines()
    assert built == "k.cu -c --keep --keep-dir k.stages"
    assert planned.startswith("k.cu -c --keep --keep-dir /")
    assert (tmp_path / "k.stages").is_dir()
    program.write_text("#!/bin/sh\nexit 2\n")
    with pytest.raises(ToolMissing, match="failed with exit code 2"):
        build(dry, cwd=tmp_path, limit=30)


# Plans without a driver: every capture is planned again from facts alone, and words that only a driver knows.


# What is taken apart before each device link in one capture of Debian's package, and says nothing of the order.
_LEFT_OUT = "unbundle"
_DRIES = ("--dryrun", "-###")
_SOURCES = (".cu", ".hip", ".cpp")
# Captures whose source is not there, so that the driver plans something else.
_OTHER = ("missing-file",)


def graph(plan: Plan) -> tuple[list[tuple[object, ...]], list[tuple[int, int]]]:
    """The stages by what they are, and which of them waits for which."""
    kept = [stage for stage in plan.stages if stage.kind != _LEFT_OUT]
    number = {stage.id: place for place, stage in enumerate(kept)}
    edges = [(number[a], number[b]) for a, b in plan.edges if a in number and b in number]
    return [(stage.kind, stage.tool, stage.arch) for stage in kept], sorted(edges)


def test_every_capture_is_planned_as_its_driver_planned_it() -> None:
    index = matrix.index()
    releases = {"nvcc": "cuda", "hipcc": "rocm"}
    planned: dict[str, set[str]] = {}
    for case in cases():
        argv = [word for word in case.sidecar["argv"][1:] if word not in _DRIES]
        dry = len(argv) + 1 < len(case.sidecar["argv"])
        if case.tool not in releases or not dry or case.sidecar["exit_code"] or case.case in _OTHER:
            continue
        component = releases[case.tool]
        found = stage_facts.releases(index, component, case.version)
        order = compiles.stage_order(index, component, found[-1]) if found else None
        sources = [word for word in argv if word.endswith(_SOURCES)]
        try:
            words = known.parse_command_words([word for word in argv if word not in sources])
        except ToolMissing:
            continue
        if order is None or not words.codes or not sources:
            continue
        (real,) = log(case.name).plans
        own = known.plan(case.tool, case.version, order.order, words, sources)
        assert graph(own) == graph(real), case.name
        assert order.captured in found, case.name
        planned.setdefault(f"{case.tool} {case.version}", set()).add(case.case)
    # Each driver whose captures are here, with all that a compile and a link of its own can be.
    assert len(planned) == 15
    assert sum(map(len, planned.values())) > 150


@pytest.mark.parametrize(
    "words", [["-ptx"], ["-rdc=true", "-c"], ["-dlto"], ["-arch=native"], ["-fgpu-rdc"], ["-E"]]
)
def test_words_that_change_the_stages_are_left_to_a_driver(words: list[str]) -> None:
    with pytest.raises(ToolMissing, match="only a driver knows"):
        known.parse_command_words(words)
