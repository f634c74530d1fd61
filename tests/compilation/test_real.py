"""The real nvcc and hipcc: planned, replayed in every way, and compared with what they make themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.amount import sampled
from tests.compilation.real import SOURCES, nvcc, program
from toolmatrix.compilation import parse, parse_log
from toolmatrix.compilation.cost import from_run, match_times, read_times
from toolmatrix.compilation.drivers.dry_run import DryRun, build, dry_run
from toolmatrix.compilation.execute import run
from toolmatrix.compilation.replay import Replay, ninja, replay, script
from toolmatrix.compilation.verify import verify

pytestmark = [pytest.mark.process, pytest.mark.slow]

TWO_SM = [
    "-gencode",
    "arch=compute_80,code=sm_80",
    "-gencode",
    "arch=compute_90,code=[sm_90,compute_90]",
]
TWO_GFX = ["--offload-arch=gfx90a", "--offload-arch=gfx1030"]

SHARED_CODE = {
    "a": "__device__ int twice(int);\n__global__ void k(int *p) { *p = twice(*p); }\nint main() { return 0; }\n",
    "b": "__device__ int twice(int x) { return 2 * x; }\n",
}


def hipcc() -> str:
    """The path of hipcc."""
    return program("hipcc")


def planned(
    place: Path, driver: str, sources: Sequence[str], flags: Sequence[str]
) -> tuple[DryRun, Replay]:
    """A dry run of sources in a directory, ready to be replayed."""
    dry = dry_run(sources, flags, driver, cwd=place)
    assert dry.exit_code == 0, dry.text
    return dry, replay(parse(dry.text), work=dry.work, asked=dry.command_line)


def source(place: Path, name: str) -> str:
    """One of the sources of these tests, where a command finds it."""
    shutil.copy(SOURCES / name, place / name)
    return name


def two_sources(place: Path, suffix: str, before: str) -> list[str]:
    """Two sources of which one calls the other's device code."""
    for stem, text in SHARED_CODE.items():
        (place / f"{stem}{suffix}").write_text(before + text)
    return [f"{stem}{suffix}" for stem in SHARED_CODE]


CASES = [
    pytest.param(nvcc, "saxpy.cu", TWO_SM, id="nvcc"),
    pytest.param(hipcc, "vadd.hip", TWO_GFX, id="hipcc", marks=pytest.mark.large),
]


@pytest.mark.parametrize(("driver", "name", "archs"), CASES)
def test_an_object_that_a_run_ninja_or_a_shell_builds_is_the_drivers_own(
    tmp_path: Path, driver: Callable[[], str], name: str, archs: list[str]
) -> None:
    ninja_program = program("ninja")
    dry, made = planned(tmp_path, driver(), [source(tmp_path, name)], [*archs, "-c", "-o", "k.o"])
    assert made.results == ("k.o",)
    done = run(made, jobs=4, cwd=tmp_path)
    assert {timing.stage for timing in done.timings} == {step.id for step in made.steps}
    (verdict,) = verify(dry, made, cwd=tmp_path)
    assert verdict.identical, verdict
    found = from_run(made, done)
    assert len(found.archs) == 2
    assert 0 < found.schedules[-1].seconds <= found.schedules[0].seconds
    own = (tmp_path / "k.o").read_bytes()
    shutil.rmtree(tmp_path / made.work)
    (tmp_path / "k.o").unlink()
    (tmp_path / "build.ninja").write_text(ninja(made, depth=1))
    (tmp_path / "build.sh").write_text(script(made))
    built = subprocess.run(
        [ninja_program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    again = subprocess.run(
        [ninja_program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert f"[{len(made.steps)}/{len(made.steps)}]" in built.stdout
    assert again.stdout == "ninja: no work to do.\n"
    assert (tmp_path / "k.o").read_bytes() == own
    shutil.rmtree(tmp_path / made.work)
    (tmp_path / "k.o").unlink()
    subprocess.run(["sh", "build.sh"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "k.o").read_bytes() == own


@pytest.mark.long
@pytest.mark.parametrize(("driver", "name", "archs"), CASES)
def test_a_header_that_changed_builds_anew_what_differs_by_it(
    tmp_path: Path, driver: Callable[[], str], name: str, archs: list[str]
) -> None:
    ninja_program = program("ninja")
    (tmp_path / "host.h").write_text("inline int told() { return 3; }\n")
    with (tmp_path / source(tmp_path, name)).open("a") as file:
        file.write('#include "host.h"\nint used() { return told(); }\n')
    dry, made = planned(tmp_path, driver(), [name], [*archs, "-c", "-o", "k.o"])
    (tmp_path / "build.ninja").write_text(ninja(made))

    def built() -> str:
        done = subprocess.run(
            [ninja_program], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout

    assert "[1/" in built()
    assert built() == "ninja: no work to do.\n"
    before = (tmp_path / "k.o").read_bytes()
    (tmp_path / "host.h").write_text("inline int told() { return 4; }\n")
    again = built()
    assert built() == "ninja: no work to do.\n"
    after = (tmp_path / "k.o").read_bytes()
    assert after != before
    shutil.rmtree(tmp_path / made.work)
    build(dry, cwd=tmp_path, limit=600)
    assert after == (tmp_path / "k.o").read_bytes()
    assert "ptxas" not in again, "the PTX came out as it was"


@pytest.mark.parametrize(
    "words",
    sampled(
        [
            ["-MMD", "-MF", "made of.d"],
            ["-MD"],
            ["-MD", "-MP", "-MT", "the target"],
            ["-MMD", "-MP", "-o", "named.o"],
        ],
        every=4,
    ),
    ids=" ".join,
)
def test_the_dependencies_that_a_replay_writes_are_the_drivers_own(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "in c").mkdir()
    (tmp_path / "in c" / "a b.h").write_text('#line 9 "made.y"\nint line;\n')
    with (tmp_path / source(tmp_path, "saxpy.cu")).open("a") as file:
        file.write('#include "a b.h"\n')
    flags = ["-arch=sm_80", "-I", "in c", "-c", *words]
    dry, made = planned(tmp_path, nvcc(), ["saxpy.cu"], flags)
    # What comes after the preprocessor does not write the dependencies.
    part = replay(parse(dry.text), work=dry.work, asked=dry.command_line, until="preprocess")
    run(part, jobs=2, cwd=tmp_path)
    (depfile,) = tmp_path.glob("*.d")
    ours = depfile.read_bytes()
    assert b"in\\ c/a\\ b.h" in ours
    assert depfile.name in made.results
    depfile.unlink()
    build(dry, cwd=tmp_path, limit=600)
    assert depfile.read_bytes() == ours


def test_ninja_and_a_script_write_the_dependencies_that_a_log_tells_of(tmp_path: Path) -> None:
    name, driver = source(tmp_path, "saxpy.cu"), nvcc()
    words = [driver, "-arch=sm_80", "-c", name, "-MD", "-MF", "k.d"]
    log = subprocess.run(
        [*words, "--dryrun"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    subprocess.run(words, cwd=tmp_path, check=True)
    expected = (tmp_path / "k.d").read_bytes()
    made = replay(parse(log.stderr), work="w")
    assert made.notes == (
        "the log does not show -MT, -MMD and -MP: k.d lists all headers, for saxpy.o",
    )
    part = replay(parse(log.stderr), work="w", until="preprocess")
    (tmp_path / "build.ninja").write_text(ninja(part))
    (tmp_path / "build.sh").write_text(script(part))
    for command in ([program("ninja")], ["sh", "build.sh"]):
        (tmp_path / "k.d").unlink()
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / "k.d").read_bytes() == expected


@pytest.mark.parametrize(
    ("driver", "suffix", "before", "flags"),
    [
        pytest.param(
            *(nvcc, ".cu", "", ["-arch=sm_80", "-rdc=true"]), id="nvcc", marks=pytest.mark.long
        ),
        pytest.param(
            *(nvcc, ".cu", "", [*TWO_SM, "-rdc=true"]), id="nvcc-several", marks=pytest.mark.long
        ),
        pytest.param(
            *(hipcc, ".hip", "#include <hip/hip_runtime.h>\n", [*TWO_GFX, "-fgpu-rdc"]),
            id="hipcc",
            marks=pytest.mark.large,
        ),
    ],
)
def test_device_code_of_two_sources_is_linked_as_the_driver_links_it(
    tmp_path: Path, driver: Callable[[], str], suffix: str, before: str, flags: list[str]
) -> None:
    sources = two_sources(tmp_path, suffix, before)
    dry, made = planned(tmp_path, driver(), sources, [*flags, "-o", "app"])
    run(made, jobs=4, cwd=tmp_path)
    (verdict,) = verify(dry, made, cwd=tmp_path)
    assert verdict.identical, verdict


@pytest.mark.long
def test_an_object_that_ninja_builds_links(tmp_path: Path) -> None:
    ninja_program, driver = program("ninja"), nvcc()
    _, made = planned(tmp_path, driver, [source(tmp_path, "saxpy.cu")], [*TWO_SM, "-c"])
    (tmp_path / "build.ninja").write_text(ninja(made))
    subprocess.run([ninja_program], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "main.cpp").write_text(
        'extern "C" void run(int, float, const float *, float *);\n'
        "int main(int count, char **) { if (count > 9) run(0, 0, nullptr, nullptr); }\n"
    )
    subprocess.run([driver, "main.cpp", "saxpy.o", "-o", "app"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "app"], check=True)


def test_code_edited_by_hand_is_built_from_there_on(tmp_path: Path) -> None:
    name = source(tmp_path, "saxpy.cu")
    dry, whole = planned(tmp_path, nvcc(), [name], ["-arch=sm_80", "-c", "-o", "k.o"])
    run(whole, jobs=2, cwd=tmp_path)
    before = (tmp_path / "k.o").read_bytes()
    (code,) = (tmp_path / dry.work).glob("*.ptx")
    code.write_text(re.sub(r"fma\.rn", "fma.rz", code.read_text()))
    part = replay(parse(dry.text), work=dry.work, since="ptxas")
    assert part.left_out
    run(part, jobs=2, cwd=tmp_path)
    assert (tmp_path / "k.o").read_bytes() != before


def test_one_arch_alone_is_built(tmp_path: Path) -> None:
    name = source(tmp_path, "saxpy.cu")
    dry = dry_run([name], [*TWO_SM, "-c"], nvcc(), cwd=tmp_path)
    made = replay(parse(dry.text), work=dry.work, only=["sm_80"])
    run(made, jobs=2, cwd=tmp_path)
    assert [path.name for path in (tmp_path / dry.work).glob("*.cubin")] == [
        "saxpy.compute_80.cubin"
    ]
    assert not (tmp_path / "saxpy.o").exists()


def test_the_times_that_nvcc_tells_go_to_the_stages_of_its_plan(tmp_path: Path) -> None:
    driver, name = nvcc(), source(tmp_path, "saxpy.cu")
    _, made = planned(tmp_path, driver, [name], [*TWO_SM, "-c"])
    subprocess.run([driver, "-time", "t.csv", *TWO_SM, "-c", name], cwd=tmp_path, check=True)
    phases = read_times((tmp_path / "t.csv").read_text().splitlines(), "t.csv")
    seconds, unknown = match_times(phases, made.steps)
    assert set(seconds) == {step.id for step in made.steps}
    assert {one.name for one in unknown} <= {"nvcc (driver)"}


def test_a_whole_build_by_make_tells_its_stages(tmp_path: Path) -> None:
    make, driver = program("make"), nvcc()
    source(tmp_path, "saxpy.cu")
    (tmp_path / "main.cpp").write_text("int main() {}\n")
    (tmp_path / "Makefile").write_text(
        f"app: saxpy.o main.o\n\t{driver} saxpy.o main.o -o app\n"
        f"saxpy.o: saxpy.cu\n\t{driver} -arch=sm_80 -c saxpy.cu -o saxpy.o\n"
        "main.o: main.cpp\n\tg++ -c main.cpp -o main.o\n"
    )
    environ = os.environ | {"NVCC_APPEND_FLAGS": "--dryrun"}
    done = subprocess.run(
        [make], cwd=tmp_path, env=environ, check=True, stdout=-1, stderr=subprocess.STDOUT
    )
    first, second = parse_log(done.stdout.decode().split("\n")).plans
    assert [stage.kind for stage in first.stages][-2:] == ["fatbinary", "host-compile"]
    assert second.stages[-1].inputs[1:] == ("saxpy.o", "main.o")
    assert second.stages[-1].outputs == ("app",)


def test_a_saved_log_is_replayed_in_a_directory_of_its_own(tmp_path: Path) -> None:
    driver, name = nvcc(), source(tmp_path, "saxpy.cu")
    flags = ["-arch=sm_80", "-c", name, "-o", "k.o"]
    log = subprocess.run(
        [driver, "--dryrun", *flags], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    made = replay(parse(log.stderr), work="temps")
    run(made, jobs=2, cwd=tmp_path)
    assert made.results == ("k.o",)
    assert {Path(path).parent.name for step in made.steps[:-1] for path in step.outputs} == {
        "temps"
    }
