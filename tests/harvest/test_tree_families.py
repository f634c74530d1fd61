"""What the families of trees expect, on little repositories whose files are written as the projects write theirs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harvest.gitrepo import GitRepo, errand
from toolmatrix import resources
from toolmatrix.harvest import families

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = pytest.mark.process

Cells = dict[str, object]


def read(repo: GitRepo, name: str, tmp_path: Path) -> dict[str, list[Cells]]:
    """The cells of each table of a family of this project, without its floors and its last place in `where`."""
    low = tmp_path / "families.yaml"
    text = Path(resources.families_path()).read_text(encoding="utf-8")
    low.write_text(re.sub(r"floor: \d+", "floor: 1", text), encoding="utf-8")
    tables = families.harvest(families.families(str(low))[name], errand(repo.place))["tables"]
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
            (
                "v1.14.0",
                {
                    "configure.py": "def main():\n"
                    "  current_bazel_version = check_bazel_version('0.24.1', '0.25.2')\n"
                },
            ),
            (
                "v2.6.5",
                {
                    "configure.py": "_TF_CURRENT_BAZEL_VERSION = None\n"
                    "_TF_MIN_BAZEL_VERSION = '3.7.2'\n_TF_MAX_BAZEL_VERSION = '3.99.0'\n"
                },
            ),
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
            {"tensorflow": "2.6.5", "bazel-min": ">=3.7.2", "bazel-max": "<=3.99.0"},
            {"tensorflow": "1.14.0", "bazel-min": ">=0.24.1", "bazel-max": "<=0.25.2"},
            {"tensorflow": "1.12.0", "bazel-min": ">=0.15.0"},
        ],
        "tensorflow-bazelversion-file": [
            {"tensorflow": "2.18.0", "bazel": ">=6.5.0,<7", "pinned": "6.5.0"},
            {"tensorflow": "2.16.1", "bazel": ">=6.5.0,<7", "pinned": "6.5.0"},
        ],
        "tensorflow-hermetic-cuda": [{"tensorflow": "2.18.0", "cuda": "12.5.1", "cudnn": "9.3.0"}],
    }


def test_pytorch(tmp_path: Path) -> None:
    page = (
        "## Release Compatibility Matrix\n\nFollowing is the matrix:\n\n"
        "| PyTorch version | Python | Stable CUDA | Experimental CUDA |\n| --- | --- | --- | --- |\n"
        "| 2.3 | >=3.8, <=3.11, (3.12 experimental) | CUDA 11.8, CUDNN 8.7.0.84 | CUDA 12.1 |\n"
        "| 1.12 | >=3.7, <=3.10 | CUDA 11.3, CUDNN 8.3.2.44 | CUDA 11.6 |\n\n## Release Cadence\n"
    )
    made = project(tmp_path, [("v2.3.0", {"RELEASE.md": page, "torch/__init__.py": ""})])
    assert read(made, "pytorch-source", tmp_path) == {
        "torch-release-md": [
            {"torch": "2.3", "python": ">=3.8,<=3.11", "cuda": ["CUDA 11.8"]},
            {"torch": "1.12", "python": ">=3.7,<=3.10", "cuda": ["CUDA 11.3"]},
        ]
    }


def test_onnxruntime(tmp_path: Path) -> None:
    files = {
        "VERSION_NUMBER": "1.7.0\n",
        "cmake/CMakeLists.txt": "# Minimum CMake required\ncmake_minimum_required(VERSION 3.13)\n",
    }
    made = project(tmp_path, [("v1.7.0", files)])
    expected = {"onnxruntime-cmake": [{"onnxruntime": "1.7.0", "cmake": ">=3.13"}]}
    assert read(made, "onnxruntime-source", tmp_path) == expected
    unpacked = GitRepo.__new__(GitRepo)
    unpacked.place = tmp_path / "unpacked"
    made.git("worktree", "add", "--quiet", str(unpacked.place))
    (unpacked.place / ".git").unlink()
    assert read(unpacked, "onnxruntime-source", tmp_path) == expected


def test_llvm(tmp_path: Path) -> None:
    table = (
        'constexpr GPUInfo AMDGCNGPUs[] = {\n  {{"kabini"},  {"gfx703"},  GK_GFX703, FEATURE_NONE},\n'
        '  {{"gfx90a"},  {"gfx90a"},  GK_GFX90A, FEATURE_FAST_FMA_F32},\n'
        '    {{"gfx1100"}, {"gfx1100"}, GK_GFX1100, FEATURE_WAVE32},\n};\n'
    )
    made = project(
        tmp_path,
        [
            (
                "llvmorg-15.0.7",
                {
                    "llvm/CMakeLists.txt": "",
                    "clang/CMakeLists.txt": "",
                    "llvm/lib/Support/TargetParser.cpp": table.replace("gfx1100", "gfx1030"),
                },
            ),
            ("llvmorg-18.1.8", {"llvm/lib/TargetParser/TargetParser.cpp": table}),
        ],
    )
    assert read(made, "llvm-source", tmp_path) == {
        "llvm-amdgpu-processors": [
            {"clang": "18.1.8", "gfx": ["gfx90a", "gfx1100"]},
            {"clang": "15.0.7", "gfx": ["gfx90a", "gfx1030"]},
        ]
    }


def test_a_family_of_trees_is_read_when_it_is_named() -> None:
    known = families.families()
    assert not [one.name for one in families.chosen(known, []) if one.kind == "tree"]
    assert [one.name for one in families.chosen(known, ["jax-source"])] == ["jax-source"]
