"""What the families of trees expect, on little repositories whose files are written as the projects write theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.harvest.gitrepo import GitRepo, context
from toolmatrix import resources
from toolmatrix.harvest import families

pytestmark = pytest.mark.process

Cells = dict[str, object]


def read(repo: GitRepo, name: str, tmp_path: Path) -> dict[str, list[Cells]]:
    """The cells of each table of a family of this project, without its floors and its last place in `where`."""
    low = tmp_path / "families.yaml"
    text = Path(resources.families_path()).read_text(encoding="utf-8")
    low.write_text(re.sub(r"floor: \d+", "floor: 1", text), encoding="utf-8")
    tables = families.harvest(families.families(str(low))[name], context(repo.place))["tables"]
    return {
        table["id"]: [
            {key: cell for key, cell in row.items() if key not in ("source", "where")}
            for row in table["rows"]
        ]
        for table in tables
    }


def project(tmp_path: Path, releases: Sequence[tuple[str, Mapping[str, str]]]) -> GitRepo:
    made = GitRepo(tmp_path / "project")
    for tag, files in releases:
        made.release(tag, files)
    return made


def test_tensorflow(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        [
            (
                "v1.12.0",
                {
                    "tensorflow/tensorflow.bzl": "",
                    "configure.py": "def check_bazel_version(min_version):\n  pass\n\n\ndef main():\n"
                    "  check_bazel_version('0.15.0')\n",
                },
            ),
            # A tag of another line of releases, whose configure.py is theirs.
            ("v1.12.1", {"configure.py": "  current = check_bazel_version('0.24.1', '0.25.0')\n"}),
            (
                "v1.14.0",
                {
                    "configure.py": "def main():\n"
                    "  current_bazel_version = check_bazel_version('0.24.1', '0.25.2')\n"
                },
            ),
            (
                "v2.6.3",
                {
                    ".bazelversion": "3.7.2\n",
                    "configure.py": "_TF_CURRENT_BAZEL_VERSION = None\n"
                    "_TF_MIN_BAZEL_VERSION = '3.7.2'\n_TF_MAX_BAZEL_VERSION = '3.99.0'\n",
                },
            ),
            ("v2.11.0", {".bazelversion": "5.3.0"}),
            ("v2.16.1", {".bazelversion": "6.5.0\n# NOTE: Update Bazel version\n"}),
            (
                "v2.18.0",
                {
                    ".bazelrc": 'build:cuda --repo_env HERMETIC_CUDA_VERSION="12.5.1"\n'
                    'build:cuda --repo_env HERMETIC_CUDNN_VERSION="9.3.0"\n'
                    'build:rbe --repo_env=HERMETIC_CUDA_VERSION="12.1.1"\n'
                },
            ),
        ],
    )
    assert read(made, "tensorflow-source", tmp_path) == {
        "tensorflow-configure-bazel": [
            {"tensorflow": "2.6.3", "bazel-min": ">=3.7.2", "bazel-max": "<=3.99.0"},
            {"tensorflow": "1.14.0", "bazel-min": ">=0.24.1", "bazel-max": "<=0.25.2"},
            {"tensorflow": "1.12.0", "bazel-min": ">=0.15.0"},
        ],
        "tensorflow-bazelversion-file": [
            {"tensorflow": "2.18.0", "bazel": ">=6.5.0,<7", "pinned": "6.5.0"},
            {"tensorflow": "2.16.1", "bazel": ">=6.5.0,<7", "pinned": "6.5.0"},
            {"tensorflow": "2.11.0", "bazel": ">=5.3.0,<6", "pinned": "5.3.0"},
            {"tensorflow": "2.6.3", "pinned": "3.7.2"},
        ],
        "tensorflow-hermetic-cuda": [{"tensorflow": "2.18.0", "cuda": "12.5.1", "cudnn": "9.3.0"}],
    }


def test_pytorch(tmp_path: Path) -> None:
    page = (
        "## Release Compatibility Matrix\n\nFollowing is the matrix:\n\n"
        "| PyTorch version | Python | C++ | Stable CUDA | Experimental CUDA | Stable ROCm |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 2.13 | >=3.10, <=(3.15, 3.15t experimental) | C++20 | CUDA 12.6 (CUDNN 9.10.2.21) | -- | ROCm 7.2 |\n"
        "| 2.6 | >=3.9, <=3.13, (3.13t experimental) | C++17 | CUDA 11.8 | None | ROCm 6.2.4 |\n"
        "| 1.12 | >=3.7, <=3.10 | C++14 | CUDA 11.3, CUDNN 8.3.2.44 | CUDA 11.6 | ROCm 5.0 |\n\n"
        "## Release Cadence\n"
    )
    made = project(tmp_path, [("v2.13.0", {"RELEASE.md": page})])
    assert read(made, "pytorch-source", tmp_path) == {
        "torch-release-md": [
            {
                "torch": "2.13",
                "python": "3.10-3.15",
                "printed": ">=3.10, <=(3.15, 3.15t experimental)",
                "cxx": "20",
            },
            {
                "torch": "2.6",
                "python": "3.9-3.13",
                "printed": ">=3.9, <=3.13, (3.13t experimental)",
                "cxx": "17",
            },
            {"torch": "1.12", "python": "3.7-3.10", "printed": ">=3.7, <=3.10", "cxx": "14"},
        ],
        "torch-release-md-rocm": [
            {"torch": "2.13", "rocm": "7.2"},
            {"torch": "2.6", "rocm": "6.2.4"},
            {"torch": "1.12", "rocm": "5.0"},
        ],
    }


DOCKER = "tools/ci_build/github/linux/docker"


def test_onnxruntime(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        [
            (
                "v1.7.0",
                {
                    "VERSION_NUMBER": "1.7.0\n",
                    "cmake/CMakeLists.txt": "# Minimum CMake required\n"
                    "cmake_minimum_required(VERSION 3.13)\n",
                },
            ),
            (
                "v1.9.0",
                {
                    f"{DOCKER}/Dockerfile.manylinux2014_cpu": "FROM quay.io/pypa/manylinux2014_x86_64:latest\n"
                    "ENV PATH /usr/local/gradle/bin:/opt/rh/devtoolset-10/root/usr/bin:/usr/bin\n"
                },
            ),
            (
                "v1.15.0",
                {
                    "cmake/CMakeLists.txt": "if(WIN32)\n  cmake_minimum_required(VERSION 3.25)\n"
                    "elseif(onnxruntime_USE_ROCM)\n  cmake_minimum_required(VERSION 3.24)\n"
                    "else()\n  cmake_minimum_required(VERSION 3.26)\nendif()\n",
                    "cmake/deps.txt": "onnx;https://github.com/onnx/onnx/archive/refs/tags/v1.14.0.zip;8e32\n",
                    f"{DOCKER}/inference/x64/python/cpu/Dockerfile.manylinux2014_cpu": "ARG BASEIMAGE=centos:7\n"
                    "ARG DEVTOOLSET_ROOTPATH=/opt/rh/devtoolset-11/root\nFROM $BASEIMAGE AS runtime_base\n",
                },
            ),
            (
                "v1.17.0",
                {
                    "cmake/CMakeLists.txt": "cmake_minimum_required(VERSION 3.26)\n",
                    "cmake/deps.txt": "#Name;Url;SHA1\nonnx;https://github.com/onnx/onnx/archive/refs/tags/v1.15.0.zip;54c3\n"
                    "onnx_tensorrt;https://github.com/onnx/onnx-tensorrt/archive/a43c.zip;76d8\n",
                    f"{DOCKER}/inference/x64/python/cpu/Dockerfile.manylinux2_28_cpu": ""
                    "ARG DEVTOOLSET_ROOTPATH=/opt/rh/gcc-toolset-12/root\n",
                },
            ),
            (
                "v1.18.1",
                {
                    f"{DOCKER}/inference/x86_64/python/cpu/Dockerfile": ""
                    "FROM cache.example/internal/build/cpu_x64_ubi8_gcc12:20240531.1\n"
                },
            ),
            (
                "v1.23.0",
                {
                    f"{DOCKER}/inference/x86_64/python/cpu/Dockerfile": ""
                    "ARG BASEIMAGE=cache.example/internal/build/cpu_x64_almalinux8_gcc14:20250724.1\n"
                    "FROM $BASEIMAGE\n"
                },
            ),
        ],
    )
    assert read(made, "onnxruntime-source", tmp_path) == {
        "onnxruntime-cmake": [
            {"onnxruntime": "1.23.0", "cmake": ">=3.26"},
            {"onnxruntime": "1.18.1", "cmake": ">=3.26"},
            {"onnxruntime": "1.17.0", "cmake": ">=3.26"},
            {"onnxruntime": "1.15.0", "accelerator": "cuda none", "cmake": ">=3.26"},
            {
                "onnxruntime": "1.15.0",
                "id": "onnxruntime-cmake/1.15.0-rocm",
                "accelerator": "rocm",
                "cmake": ">=3.24",
            },
            {"onnxruntime": "1.9.0", "cmake": ">=3.13"},
            {"onnxruntime": "1.7.0", "cmake": ">=3.13"},
        ],
        "onnxruntime-image-gcc": [
            {"onnxruntime": "1.23.0", "gcc": "14"},
            {"onnxruntime": "1.18.1", "gcc": "12"},
            {"onnxruntime": "1.17.0", "gcc": "12"},
            {"onnxruntime": "1.15.0", "gcc": "11"},
            {"onnxruntime": "1.9.0", "gcc": "10"},
        ],
        "onnxruntime-onnx": [
            {"onnxruntime": "1.23.0", "onnx-inside": "1.15.0"},
            {"onnxruntime": "1.18.1", "onnx-inside": "1.15.0"},
            {"onnxruntime": "1.17.0", "onnx-inside": "1.15.0"},
            {"onnxruntime": "1.15.0", "onnx-inside": "1.14.0"},
        ],
    }
    unpacked = GitRepo.__new__(GitRepo)
    unpacked.place = tmp_path / "unpacked"
    made.git("worktree", "add", "--quiet", "--detach", str(unpacked.place), "v1.7.0")
    (unpacked.place / ".git").unlink()
    assert read(unpacked, "onnxruntime-source", tmp_path) == {
        "onnxruntime-cmake": [{"onnxruntime": "1.7.0", "cmake": ">=3.13"}]
    }


def test_llvm(tmp_path: Path) -> None:
    table = (
        'constexpr GPUInfo AMDGCNGPUs[] = {\n  {{"kabini"},  {"gfx703"},  GK_GFX703, FEATURE_NONE},\n'
        '  {{"gfx90a"},  {"gfx90a"},  GK_GFX90A, FEATURE_FAST_FMA_F32},\n'
        '    {{"gfx1100"}, {"gfx1100"}, GK_GFX1100, FEATURE_WAVE32},\n};\n'
    )
    numbers = "".join(f"  set(LLVM_VERSION_{part} {{}})\n" for part in ("MAJOR", "MINOR", "PATCH"))
    defined = "".join(
        f"if(NOT DEFINED LLVM_VERSION_{part})\n  set(LLVM_VERSION_{part} {{}})\nendif()\n"
        for part in ("MAJOR", "MINOR", "PATCH")
    )
    made = project(
        tmp_path,
        [
            (
                "0.6.0",
                {
                    "zig/build.zig": "",
                    "llvm/CMakeLists.txt": numbers.format(10, 0, 0),
                    "clang/CMakeLists.txt": "",
                    "llvm/lib/Support/TargetParser.cpp": table.replace("gfx1100", "gfx1010"),
                    "clang/include/clang/Basic/Cuda.h": "enum class CudaVersion {\n  CUDA_100,\n  CUDA_101,\n"
                    "  LATEST = CUDA_101,\n};\n",
                    "clang/lib/Basic/Cuda.cpp": '  case CudaArch::SM_75:\n    return "sm_75";\n'
                    '      .Case("sm_75", CudaArch::SM_75)\n',
                },
            ),
            (
                "0.9.0",
                {
                    "llvm/CMakeLists.txt": numbers.format(13, 0, 1),
                    "clang/include/clang/Basic/Cuda.h": "  LATEST = CUDA_112,\n  LATEST_SUPPORTED = CUDA_101,\n",
                },
            ),
            # Another release of zig-bootstrap with the same LLVM.
            ("0.9.1", {}),
            (
                "0.14.0",
                {
                    "cmake/Modules/LLVMVersion.cmake": defined.format(19, 1, 7),
                    "llvm/CMakeLists.txt": "include(LLVMVersion)\n",
                    "llvm/lib/TargetParser/TargetParser.cpp": table,
                    "clang/include/clang/Basic/Cuda.h": "  FULLY_SUPPORTED = CUDA_123,\n  PARTIALLY_SUPPORTED =\n"
                    "      CUDA_125, // Partially supported. Proceed with a warning.\n",
                    "clang/lib/Basic/Cuda.cpp": '#define SM2(sm, ca) {CudaArch::SM_##sm, "sm_" #sm, ca}\n'
                    '    SM2(20, "compute_20"), {CudaArch::SM_32_, "sm_32", "compute_32"},\n'
                    "    SM(90),                          // Hopper\n    SM(90a),\n",
                },
            ),
        ],
    )
    # What was not released yet is on the branch.
    made.git("branch", "master")
    made.git("checkout", "--quiet", "master")
    for name, text in {
        "cmake/Modules/LLVMVersion.cmake": defined.format(21, 1, 0),
        "clang/lib/Basic/OffloadArch.cpp": "    SM(100),\n    SM(120a),\n",
    }.items():
        (made.place / name).write_text(text)
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "LLVM 21.1.0")
    amd = ["gfx90a", "gfx1100"]
    assert read(made, "llvm-source", tmp_path) == {
        "llvm-amdgpu-processors": [
            {"clang": "21.1.0", "gfx": amd},
            {"clang": "19.1.7", "gfx": amd},
            {"clang": "13.0.1", "gfx": ["gfx90a", "gfx1010"]},
            {"clang": "10.0.0", "gfx": ["gfx90a", "gfx1010"]},
        ],
        "llvm-clang-cuda": [
            {"clang": "21.1.0", "cuda-supported": "12.3", "cuda-known": "12.5"},
            {"clang": "19.1.7", "cuda-supported": "12.3", "cuda-known": "12.5"},
            {"clang": "13.0.1", "cuda-supported": "10.1", "cuda-known": "11.2"},
            {"clang": "10.0.0", "cuda-supported": "10.1", "cuda-known": "10.1"},
        ],
        "llvm-clang-nvidia-archs": [
            {"clang": "21.1.0", "sm": ["sm_100", "sm_120a"]},
            {"clang": "19.1.7", "sm": ["sm_20", "sm_32", "sm_90", "sm_90a"]},
            {"clang": "13.0.1", "sm": ["sm_75"]},
            {"clang": "10.0.0", "sm": ["sm_75"]},
        ],
    }


def test_a_family_of_trees_is_read_when_it_is_named() -> None:
    known = families.families()
    assert not [one.name for one in families.select_families(known, []) if one.kind == "tree"]
    assert [one.name for one in families.select_families(known, ["jax-source"])] == ["jax-source"]


def test_families_of_every_kind_may_be_asked_for_together() -> None:
    known = families.families()
    every = families.select_families(known, [])
    assert {"index", "toolkits"} <= {one.kind for one in every}
    assert "torch" in families.line_components(list(known.values()))
