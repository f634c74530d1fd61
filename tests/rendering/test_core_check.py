"""The check of an image, run by a real shell on tools that print what they are told to."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.amount import sampled
from tests.compilation import real
from tests.compilation.corpus import cases, log, members
from tests.rendering.jobs import job, lock
from tests.rendering.test_core_make import changed, recipe
from toolmatrix.compilation.compare import host_compiler
from toolmatrix.lockfile.model import Lock, LockedFlags
from toolmatrix.rendering import dockerfile, formats

pytestmark = pytest.mark.process

TOOLS = {
    "uname": "echo x86_64",
    "gcc": "echo 12.2.0",
    "g++": "echo 12.2.0",
    "dpkg-query": "echo 'bazel-bootstrap 4.2.3+ds-9'",
    "sh": "echo 'debian 12'",
    "python": 'case $1 in --version) echo "Python 3.11.2" ;; *) echo 2.4.6 ;; esac',
    "python3": "echo Python 3.11.2",
    "hipcc": "echo 'HIP version: 5.2.21153-0'",
}
"""What the tools of an image that is as it should be print."""

PASSED = (
    "pass  machine  x86_64         wanted x86_64         uname -m\n",
    "pass  gcc      12.2.0         wanted 12             gcc -dumpfullversion -dumpversion\n",
    "pass  gcc      12.2.0         wanted 12             g++ -dumpfullversion -dumpversion\n",
    "pass  bazel    4.2.3+ds-9     wanted 4.2.3          dpkg-query --show bazel-bootstrap\n",
)

OBJECT = 'while [ "$1" != -o ]; do shift; done; printf "%s" "$OBJECT" >"$2"'

DRY = '[ "$1" = "-###" ] && exec cat "${TMPDIR}/dry.log" >&2'
"""A driver that shows a captured dry run where it is asked for one."""


def run(
    tmp_path: Path, held: Lock, target: str, tools: dict[str, str], *said: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """What the check says where the tools are these."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in {**TOOLS, **tools}.items():
        tool = folder / name
        tool.write_text(f"#!/bin/sh\n{body}\n")
        tool.chmod(0o755)
    made = job(held, targets=(target,))
    script = tmp_path / "check.sh"
    script.write_text(dockerfile.check(made, made.images[0]))
    shell = shutil.which("dash") or "/bin/sh"
    path = f"{folder}:/usr/bin:/bin"
    return subprocess.run(
        [shell, str(script), *said],
        env={"PATH": path, "TMPDIR": str(tmp_path), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_image_as_resolved_passes(tmp_path: Path) -> None:
    found = run(tmp_path, lock("debian"), "x86", {})
    assert set(PASSED) <= set(found.stdout.splitlines(keepends=True))
    assert found.stdout.endswith("\n8 checked, 0 failed\n")
    assert (found.stderr, found.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (
            {"gcc": "echo 11.4.0"},
            "gcc: expected 12, found 11.4.0 by `gcc -dumpfullversion -dumpversion`\n",
        ),
        (
            {"gcc": "echo 120.1"},
            "gcc: expected 12, found 120.1 by `gcc -dumpfullversion -dumpversion`\n",
        ),
        (
            {"dpkg-query": "exit 1"},
            "bazel: expected 4.2.3, found nothing by `dpkg-query --show bazel-bootstrap`\n",
        ),
        ({"uname": "echo aarch64"}, "machine: expected x86_64, found aarch64 by `uname -m`\n"),
        (
            {"python3": "echo Python 3.1.1"},
            "python: expected 3.11, found 3.1.1 by `python3 --version`\n",
        ),
    ],
)
def test_a_difference_is_one_sentence(tmp_path: Path, tools: dict[str, str], said: str) -> None:
    found = run(tmp_path, lock("debian"), "x86", tools)
    assert (found.stderr, found.returncode) == (said, 1)
    assert found.stdout.endswith("\n8 checked, 1 failed\n")


def test_a_version_that_begins_alike_is_another(tmp_path: Path) -> None:
    python = TOOLS["python"].replace("2.4.6", "2.4.60")
    found = run(tmp_path, lock("debian"), "x86", {"python": python})
    assert "numpy: expected 2.4.6, found 2.4.60 by `python -c" in found.stderr
    assert found.returncode == 1


def test_a_runtime_image_is_asked_only_for_what_it_has(tmp_path: Path) -> None:
    compilers = {"gcc": "exit 1", "g++": "exit 1", "bazel": "exit 1"}
    found = run(tmp_path, lock("debian"), "x86", compilers, "runtime")
    assert found.stdout.endswith("\n5 checked, 0 failed\n")
    assert (found.stderr, found.returncode) == ("", 0)


def test_another_distribution_of_that_number_is_none(tmp_path: Path) -> None:
    found = run(tmp_path, lock("debian"), "x86", {"sh": "echo 'ubuntu 12'"})
    assert found.stderr.startswith("distro: expected 12, found nothing by `sh -c")


def signed() -> Lock:
    """A lock that asks for a signed char, on the machine that runs the test."""
    flags = LockedFlags(cflags=("-fsigned-char",), cxxflags=("-fsigned-char",))
    return changed("debian", "x86", flags=flags)


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        ('exec /usr/bin/gcc "$@"', ""),
        (
            'exec /usr/bin/gcc "$@" -funsigned-char',
            "char: expected signed, found unsigned by `cc -fsigned-char`\n",
        ),
        ("exit 1", "char: expected signed, found no compiler by `cc -fsigned-char`\n"),
    ],
)
def test_a_flag_is_seen_by_what_it_does(tmp_path: Path, compiler: str, said: str) -> None:
    env = {"CFLAGS": "-O2 -fsigned-char", "CXXFLAGS": "-fsigned-char"}
    found = run(tmp_path, signed(), "x86", {"cc": compiler}, **env)
    assert found.stderr == said


def test_a_flag_that_the_image_does_not_set_is_told(tmp_path: Path) -> None:
    env = {"CFLAGS": "-fsigned-charm", "CXXFLAGS": "-fsigned-char"}
    found = run(tmp_path, signed(), "x86", {"cc": "exit 0"}, **env)
    assert found.stderr == (
        "CFLAGS: expected -fsigned-char, found -fsigned-charm by `echo $CFLAGS`\n"
    )


@pytest.mark.parametrize(
    ("archs", "said"),
    [
        ("gfx90a", ""),
        (
            "gfx90a hipv4-amdgcn-amd-amdhsa--gfx1030",
            "gfx: expected gfx90a, found gfx1030,gfx90a by `hipcc`\n",
        ),
        (
            "gfx90a:xnack+",
            "gfx: expected gfx90a, found gfx90a:xnack+ by `hipcc`\n",
        ),
    ],
)
def test_an_object_holds_the_archs_and_no_other(tmp_path: Path, archs: str, said: str) -> None:
    hipcc = f'[ "$1" = --version ] && echo "HIP version: 5.2.3" && exit\n{DRY}\n{OBJECT}'
    held = f"\x01host-x86_64-unknown-linux-gnu hipv4-amdgcn-amd-amdhsa--{archs}\x02"
    (tmp_path / "dry.log").write_bytes(members()["hipcc-5.2.3__c-one-gfx.log"])
    found = run(tmp_path, lock("debian-amd"), "amd", {"hipcc": hipcc}, OBJECT=held)
    assert (found.stderr, found.returncode) == (said, int(bool(said)))


@pytest.mark.parametrize("name", ["hipcc-5.7.1__c-one-gfx", "hipcc-7.0.2__c-one-gfx"])
def test_a_dry_run_of_another_arch_is_told(tmp_path: Path, name: str) -> None:
    """The output of each captured hipcc is read, and one that makes other code stops the build."""
    hipcc = f"{DRY}\n{OBJECT}"
    held = "\x01hipv4-amdgcn-amd-amdhsa--gfx90a\x02"
    dry = tmp_path / "dry.log"
    dry.write_bytes(members()[f"{name}.log"])
    found = run(tmp_path, lock("debian-amd"), "amd", {"hipcc": hipcc}, OBJECT=held)
    assert "stages" not in found.stderr
    (tmp_path / "bin").rename(tmp_path / "first")
    dry.write_bytes(dry.read_bytes().replace(b"gfx90a", b"gfx1030"))
    found = run(tmp_path, lock("debian-amd"), "amd", {"hipcc": hipcc}, OBJECT=held)
    wanted, made = (
        f"clang {arch},clang-offload-bundler,lld {arch}" for arch in ("gfx90a", "gfx1030")
    )
    assert f"stages: expected {wanted}, found {made} by `hipcc`\n" in found.stderr


ROCKY = {
    "rpm": "case $4 in *cudart*) echo 12.4.127 ;; *) echo 9.1.0.70 ;; esac",
    "sh": "echo 'rocky 9.4'",
}
ARCHS = "-gencode=arch=compute_86,code=sm_86 -gencode=arch=compute_86,code=compute_86"
STAGES = "cicc compute_86,cudafe++,fatbinary,gcc 11,ptxas sm_86"
MORE = "cicc compute_120f,cicc compute_86,cicc compute_90a,cudafe++,fatbinary,gcc 11"


def compiling(release: str, nvcc: str) -> dict[str, str]:
    """The tools of an image with CUDA: a real nvcc and GCC that call themselves another release."""
    said = {"gcc": "11.4.1", "g++": "11.4.1", "nvcc": f"release {release}"}
    real_ones = {"gcc": real.program("gcc"), "g++": real.program("g++"), "nvcc": nvcc}
    # nvcc does not ask GCC for its version but for its macros.
    macro = {"gcc": "-w -D__GNUC__=11", "g++": "-w -D__GNUC__=11", "nvcc": ""}
    return ROCKY | {
        name: f'case $1 in -dump*|--version) echo {said[name]} ;; *) exec {path} "$@" {macro[name]} ;; esac'
        for name, path in real_ones.items()
    }


@pytest.mark.parametrize(
    ("release", "flags", "said"),
    sampled(
        [
            ("12.4", ARCHS, ""),
            (
                "12.4",
                "--no-such-flag",
                (
                    f"stages: expected {STAGES}, found nothing by `nvcc`\n"
                    "sm: expected compute_86,sm_86, found nothing by `nvcc`\n"
                ),
            ),
            ("12.4", ARCHS[:35], "sm: expected compute_86,sm_86, found sm_86 by `nvcc`\n"),
            (
                "12.4",
                f"{ARCHS} -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_120f,code=sm_120f",
                (
                    f"stages: expected {STAGES}, found {MORE},ptxas sm_120f,ptxas sm_86,ptxas sm_90a by `nvcc`\n"
                    "sm: expected compute_86,sm_86, found compute_86,sm_120f,sm_86,sm_90a by `nvcc`\n"
                ),
            ),
            ("12.5", ARCHS, "cuda: expected 12.4.1, found 12.5 by `nvcc --version`\n"),
        ],
        every=2,
    ),
)
def test_what_nvcc_compiles_without_a_flag_is_for_the_archs_of_the_lock(
    tmp_path: Path, release: str, flags: str, said: str
) -> None:
    tools = compiling(release, real.nvcc())
    found = run(tmp_path, lock("rocky"), "x86", tools, NVCC_APPEND_FLAGS=flags)
    assert found.stderr == said


def test_an_image_whose_archs_do_not_hold_is_told(tmp_path: Path) -> None:
    """Without the variable nvcc makes code for what its release takes by itself."""
    found = run(tmp_path, lock("rocky"), "x86", compiling("12.4", real.nvcc()))
    assert re.fullmatch(
        rf"stages: expected {re.escape(STAGES)}, found cicc (compute_\d+),.*,ptxas (sm_\d+) by `nvcc`\n"
        r"sm: expected compute_86,sm_86, found \1,\2 by `nvcc`\n",
        found.stderr,
    )


def test_an_image_whose_driver_takes_another_host_compiler_is_told(tmp_path: Path) -> None:
    tools = compiling("12.4", real.nvcc())
    tools["gcc"] = tools["gcc"].replace("=11", "=12")
    found = run(tmp_path, lock("rocky"), "x86", tools, NVCC_APPEND_FLAGS=ARCHS)
    other = STAGES.replace("gcc 11", "gcc 12")
    assert found.stderr == f"stages: expected {STAGES}, found {other} by `nvcc`\n"


def test_the_image_sets_what_the_check_counts_on() -> None:
    for name, target, variable in (
        ("rocky", "x86", "NVCC_APPEND_FLAGS"),
        ("debian-amd", "amd", "HIPCC_COMPILE_FLAGS_APPEND"),
    ):
        made = job(lock(name), targets=(target,))
        text = formats.known()["dockerfile"].files(made)[f"{target}.Dockerfile"]
        assert f'\nENV {variable}="{made.images[0].device_env[variable]}"\n' in text
        text = formats.known()["apptainer"].files(made)[f"{target}.def"]
        assert f"\nexport {variable}=" in text.partition("\n%environment\n")[2]


def test_a_recipe_that_builds_says_its_archs_itself() -> None:
    """Flags behind those of a build system would make each of its files for every arch."""
    building = "steps:\n  - {name: make, stage: build, run: [make], source: here}\n"
    made = job(lock("rocky"), recipe=recipe(building), targets=("x86",))
    text = formats.known()["dockerfile"].files(made)["x86.Dockerfile"]
    built, _, last = text.partition("\nmake\nEOF\n")
    assert "NVCC_APPEND_FLAGS" not in built
    assert "NVCC_APPEND_FLAGS" in last
    script = dockerfile.check(made, made.images[0])
    assert f"    holds sm compute_86,sm_86 nvcc {ARCHS}\n    else\n" in script.replace("'", "")
    assert "        holds sm compute_86,sm_86 nvcc\n    fi\n" in script


def test_an_image_without_a_compiler_is_asked_for_no_flag(tmp_path: Path) -> None:
    held = signed().environments["default"].targets["x86"]
    bare = changed("debian", "x86", flags=held.flags, components={"gcc": None})
    made = job(bare, targets=("x86",))
    assert made.images[0].compiler is None
    assert "CFLAGS" not in formats.known()["dockerfile"].files(made)["x86.Dockerfile"]
    found = run(tmp_path, bare, "x86", {"cc": "exit 1", "gcc": "exit 1"})
    assert found.stdout.endswith("\n6 checked, 0 failed\n")
    assert (found.stderr, found.returncode) == ("", 0)


def test_the_dry_run_of_every_captured_nvcc_is_read(tmp_path: Path) -> None:
    made = job(lock("rocky"), targets=("x86",))
    script = dockerfile.check(made, made.images[0])
    function = re.search(r"^stages\(\) \{.*?^\}", script, re.MULTILINE | re.DOTALL)
    assert function
    wanted = {}
    for case in cases("nvcc"):
        if case.case not in ("c-one-arch", "c-many-gencode-ptx"):
            continue
        (tmp_path / f"{case.name}.log").write_bytes(members()[f"{case.name}.log"])
        (plan,) = log(case.name).plans
        found = {
            f"{stage.tool} {stage.arch or ''}".rstrip()
            for stage in plan.stages
            if stage.kind in ("cicc", "ptxas", "fatbinary") or stage.tool == "cudafe++"
        }
        _, _, number = host_compiler(plan).partition(" ")
        wanted[case.name] = ",".join(sorted(found | {f"gcc {int(number) // 10_000}"}))
    lines = [
        *("LC_ALL=C", "export LC_ALL", f"scratch={tmp_path}", function[0]),
        'show() { cat "$1" >&2; }',
        *(f"stages show {tmp_path}/{name}.log | sort -u | paste -sd, -" for name in wanted),
    ]
    ran = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert dict(zip(wanted, ran.stdout.splitlines(), strict=True)) == wanted
    assert len(wanted) > 15
