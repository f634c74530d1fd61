"""Every flag of an answer reaches the compiler of every recipe, by a way that its build system reads.

An ENV CFLAGS counts where what builds is CMake, meson, distutils or autoconf, which read it; Bazel does not.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import islice

import pytest

from tests import matrix
from toolmatrix.api import files, locks
from toolmatrix.commands import _renders as renders
from toolmatrix.errors import ToolmatrixError
from toolmatrix.lockfile.model import DEFAULT, LockedFlags
from toolmatrix.recipes import read as recipes
from toolmatrix.request.fields import Fields, parse_arguments
from toolmatrix.request.read import read

ARCHS = ("sm_80", "gfx90a")
CPUS = {"x86": "haswell", "arm": "neoverse-n1", "amd": "haswell"}
BAZEL = re.compile(r"^ *(?:xargs .*)?\bbazel build |build/build\.py", re.MULTILINE)
READS_CFLAGS = {
    "cmake": r"^cmake ",
    "cmake, by build.sh": r"\./build\.sh",
    "cmake, meson or distutils, by pip": r"-m pip wheel ",
    "autoconf": r"\.\./gcc/configure .*[\s\S]*BOOT_CFLAGS=\"-g -O2 \$\{CFLAGS:-\}\"",
}
"""What reads CFLAGS and CXXFLAGS, and the command that calls it: documentation of CMake (environment variables), meson
(CFLAGS in reference tables), setuptools (customize_compiler) and GCC (BOOT_CFLAGS in building)."""
ARCHS_BY = {
    "tensorflow": {
        "sm_80": r"(TF|HERMETIC)_CUDA_COMPUTE_CAPABILITIES='?8\.0",
        "gfx90a": r"TF_ROCM_AMDGPU_TARGETS='?gfx90a",
    },
    "jaxlib": {
        "sm_80": r"--cuda_compute_capabilities=sm_80",
        "gfx90a": r"--rocm_amdgpu_targets=gfx90a",
    },
    "pytorch": {
        "sm_80": r"TORCH_CUDA_ARCH_LIST='?8\.0",
        "gfx90a": r"PYTORCH_ROCM_ARCH='?gfx90a",
    },
    "onnxruntime": {
        "sm_80": r"CMAKE_CUDA_ARCHITECTURES=80-real",
        "gfx90a": r"CMAKE_HIP_ARCHITECTURES=gfx90a",
    },
    # For ROCm nothing is compiled ahead: TVM makes code as it runs.
    "tvm": {"sm_80": r"CUDAARCHS='?80-real", "gfx90a": ""},
    "lightgbm": {"sm_80": r"CMAKE_CUDA_ARCHITECTURES=80-real"},
    "extension": {"sm_80": r"TORCH_CUDA_ARCH_LIST='?8\.0"},
    "hip": {"gfx90a": r"--offload-arch=gfx90a"},
    # These have no code for devices.
    "numpy": {"sm_80": "", "gfx90a": ""},
    "gcc": {"sm_80": "", "gfx90a": ""},
}


def build(recipe: str, target: str, words: tuple[str, ...]) -> tuple[LockedFlags, str] | None:
    """The flags of an answer and its Dockerfile; None if there is no answer."""
    index = matrix.index()
    request = read(index, Fields(**parse_arguments(words)))
    try:
        lock = locks.solve(index, {DEFAULT: locks.LockRequest(request=request, words=words)})
    except (locks.Unsolved, ToolmatrixError):
        return None
    options = files.RenderOptions(recipe=recipe, format="dockerfile")
    made = files.render_lock(lock, options, files.rules(index, options))
    return made.job.images[0].locked.flags, made[f"{target}.Dockerfile"]


def builds(recipe: str) -> Iterator[tuple[str, LockedFlags, str]]:
    """Builds of each series on each target with a CPU, and archs where it can have them, in an order without a plan."""
    asked = renders.questions(matrix.index(), ARCHS, [recipe])
    wanted = [one for one in asked if one.archs or one.target == "arm"]
    for question in sorted(wanted, key=lambda one: zlib.crc32(" ".join(one.words).encode())):
        words = (*question.words, f"--cpu={CPUS[question.target]}")
        if found := build(recipe, question.target, words):
            yield " ".join(words), *found


def missing(recipe: str, flags: LockedFlags, text: str) -> list[str]:
    """The flags of an answer that reach no compiler of its build."""
    bazel = BAZEL.search(text)
    loop = re.search(r"for flag in \$FLAGS; do .*--copt=\$flag .*--host_copt=\$flag", text)
    said = re.search(r"^export FLAGS='(.*)'$", text, re.MULTILINE)
    copts = said[1].split() if bazel and loop and said else []
    read_by = [
        why for why, command in READS_CFLAGS.items() if re.search(command, text, re.MULTILINE)
    ]

    def env(name: str) -> list[str]:
        found = re.search(rf'^(?:ENV|   ) {name}="?([^"\n]*?)"?(?: \\)?$', text, re.MULTILINE)
        return found[1].split() if found else []

    lost = []
    for name, several in (("CFLAGS", flags.cflags), ("CXXFLAGS", flags.cxxflags)):
        reached = copts if bazel else env(name) if read_by else []
        lost += [flag for flag in several if flag not in reached]
    for flag in (*flags.nvcc, *flags.hipcc):
        arch = next((one for one in ARCHS if one in flag), "")
        host = flag.removeprefix("-Xcompiler=")
        if arch:
            reaches = bool(re.search(ARCHS_BY[recipe][arch], text))
        else:
            # What nvcc hands to the compiler of the host: by its wrapper where Bazel calls it.
            reaches = host in copts if bazel else flag in env("NVCC_APPEND_FLAGS")
        lost += [] if reaches else [flag]
    return lost


BUILDING = tuple(name for name in recipes.names() if name not in ("toolchain", "wheel"))


@pytest.mark.parametrize("recipe", BUILDING)
@pytest.mark.parametrize(
    "count", [4, pytest.param(None, marks=[pytest.mark.long, pytest.mark.slow])]
)
def test_every_flag_reaches_the_compiler(recipe: str, count: int | None) -> None:
    found = [*islice(builds(recipe), count)]
    lost = {words: missing(recipe, flags, text) for words, flags, text in found}
    assert {words: flags for words, flags in lost.items() if flags} == {}
    # Answers for HIP hold no compiler that flags could be for: it brings its own.
    assert any(flags.cxxflags for _, flags, _ in found) is (recipe != "hip")


@pytest.mark.parametrize("cpu", ["haswell", ""])
def test_a_cpu_reaches_bazel_on_x86(cpu: str) -> None:
    words = ("tensorflow==2.6.5", "--target=x86", "--accelerator=none", "--recipe=tensorflow")
    found = build("tensorflow", "x86", (*words, *([f"--cpu={cpu}"] if cpu else [])))
    assert found is not None
    said = "export FLAGS='-march=haswell -mtune=haswell -frecord-gcc-switches'"
    assert (said in found[1]) is bool(cpu)
    assert ("--copt=$flag" in found[1]) is bool(cpu)
