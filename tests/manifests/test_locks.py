"""Lock files and the tables that they are made of, cut from public ones to their shapes."""

from __future__ import annotations

import pytest

from tests.manifests.test_containers import told
from tests.manifests.test_lists import asked
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files
from toolmatrix.manifests.locks import forks

# m-bain/whisperX and PrimeIntellect-ai/prime-rl: forks by platform and Python, an extra, an override, a workspace.
UV = """\
version = 1
requires-python = ">=3.10, <3.13"
resolution-markers = [
    "python_full_version >= '3.11' and sys_platform == 'darwin'",
    "python_full_version < '3.11' and sys_platform == 'linux'",
]
[manifest]
overrides = [{ name = "protobuf", specifier = "==4.25.3" }]

[[package]]
name = "numpy"
version = "2.2.6"
source = { registry = "https://i.example/simple" }
resolution-markers = ["python_full_version < '3.11'"]

[[package]]
name = "numpy"
version = "2.3.1"
source = { registry = "https://i.example/simple" }
resolution-markers = ["python_full_version >= '3.11'"]

[[package]]
name = "protobuf"
version = "4.25.3"
source = { registry = "https://i.example/simple" }

[[package]]
name = "torch"
version = "2.8.0"
source = { registry = "https://download.pytorch.org/whl/cpu" }

[[package]]
name = "torch"
version = "2.8.0+cu128"
source = { registry = "https://download.pytorch.org/whl/cu128" }
dependencies = [
    { name = "triton", marker = "platform_machine == 'x86_64'" },
    { name = "pywin32", marker = "sys_platform == 'win32'" },
]

[[package]]
name = "triton"
version = "3.4.0"
source = { registry = "https://i.example/simple" }
[package.optional-dependencies]
build = [{ name = "protobuf" }]

[[package]]
name = "pywin32"
version = "1"
source = { registry = "https://i.example/simple" }

[[package]]
name = "own"
source = { editable = "." }
dependencies = [
    { name = "numpy", version = "2.2.6", source = { registry = "https://i.example/simple" }, marker = "python_full_version < '3.11'" },
    { name = "numpy", version = "2.3.1", source = { registry = "https://i.example/simple" }, marker = "python_full_version >= '3.11'" },
    { name = "torch", version = "2.8.0", source = { registry = "https://download.pytorch.org/whl/cpu" }, marker = "sys_platform == 'darwin'" },
    { name = "torch", version = "2.8.0+cu128", source = { registry = "https://download.pytorch.org/whl/cu128" }, marker = "sys_platform != 'darwin'" },
]
[package.optional-dependencies]
old = [{ name = "triton", extra = ["build"] }, { name = "late", marker = "python_full_version < '3.12.4'" }]
[package.dev-dependencies]
dev = [{ name = "source" }]

[[package]]
name = "source"
version = "1"
source = { git = "https://example.org/source" }
"""  # noqa: E501
FIRST = ["python>=3.10,<3.11 2", "numpy==2.2.6 11", "torch==2.8.0+cu128 33", "triton==3.4.0 42"]
LATER = ["python>=3.11,<3.13 2", "numpy==2.3.1 17", "torch==2.8.0+cu128 33", "triton==3.4.0 42"]

# Extras that conflict are told apart by extras that uv makes up (facebookresearch's and many projects' cpu and cu124).
CONFLICT = """\
requires-python = ">=3.12"
conflicts = [[{ package = "own", extra = "cpu" }, { package = "own", extra = "cu124" }]]

[[package]]
name = "own"
source = { virtual = "." }
[package.optional-dependencies]
cpu = [
    { name = "torch", version = "2.6.0+cpu", source = { registry = "https://download.pytorch.org/whl/cpu" }, marker = "(sys_platform != 'darwin' and extra == 'extra-3-own-cpu') or (extra == 'extra-3-own-cpu' and extra == 'extra-3-own-cu124')" },
]
cu124 = [
    { name = "torch", version = "2.6.0+cu124", source = { registry = "https://download.pytorch.org/whl/cu124" }, marker = "extra == 'extra-3-own-cu124' and extra != 'extra-3-own-cpu'" },
]

[[package]]
name = "torch"
version = "2.6.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }

[[package]]
name = "torch"
version = "2.6.0+cu124"
source = { registry = "https://download.pytorch.org/whl/cu124" }
dependencies = [{ name = "triton", marker = "sys_platform == 'linux' and extra == 'extra-3-own-cu124'" }]

[[package]]
name = "triton"
version = "3.2.0"
source = { url = "https://example.org/triton-3.2.0-cp312-cp312-linux_x86_64.whl" }
"""  # noqa: E501

POETRY = """\
[[package]]
name = "numpy"
version = "1.26.4"
optional = false
groups = ["main", "dev"]
markers = "python_version < \\"3.12\\""

[[package]]
name = "numpy"
version = "2.1.0"
optional = false
groups = ["main"]
markers = {main = "python_version >= \\"3.12\\""}

[[package]]
name = "torch"
version = "2.1.0+cu121"
optional = false
groups = ["main"]
[package.source]
type = "legacy"
url = "https://download.pytorch.org/whl/cu121"
reference = "pytorch"

[[package]]
name = "xformers"
version = "0.0.22"
optional = true
groups = ["main"]

[[package]]
name = "scipy"
version = "1.13.1"
optional = false
groups = ["dev"]

[[package]]
name = "mine"
version = "1"
[package.source]
type = "git"

[metadata]
python-versions = "^3.10"
"""
OLDER = ["python>=3.10,<3.12 1", "numpy==1.26.4 2", "torch==2.1.0+cu121 16"]
NEWER = ["python>=3.12 1", "numpy==2.1.0 9", "torch==2.1.0+cu121 16"]
OLD_POETRY = """\
[[package]]
name = "torch"
version = "1.13.1"
category = "main"
optional = false

[[package]]
name = "scipy"
version = "1.10.0"
category = "dev"
optional = false

[metadata]
python-versions = ">=3.8,<3.11"
"""
PDM = """\
[metadata]
groups = ["default", "gpu"]
[[metadata.targets]]
requires_python = "==3.11.*"

[[package]]
name = "torch"
version = "2.4.0"
groups = ["default"]
[[package]]
name = "torch"
version = "2.4.0"
extras = ["opt"]
groups = ["default"]

[[package]]
name = "onnxruntime-gpu"
version = "1.19.0+cu12"
groups = ["gpu"]

[[package]]
name = "colorama"
version = "0.4.6"
groups = ["default"]
marker = "platform_system == \\"Windows\\""
"""
PYLOCK = """\
lock-version = "1.0"
requires-python = ">=3.10"

[[packages]]
name = "torch"
version = "2.7.1+rocm6.3"
marker = "sys_platform == 'linux'"
index = "https://download.pytorch.org/whl/rocm6.3"
wheels = [{ url = "https://example.org/torch.whl" }]

[[packages]]
name = "numpy"
version = "2.2.6"
index = "https://i.example/simple"
marker = "python_full_version < '3.11'"
[[packages.wheels]]
name = "numpy-2.2.6-cp310-cp310-manylinux_2_17_x86_64.whl"

[[packages]]
name = "numpy"
version = "2.3.1"
index = "https://i.example/simple"
marker = "python_full_version >= '3.11'"

[[packages]]
name = "pytest"
version = "8"
marker = "'dev' in dependency_groups"

[[packages]]
name = "mine"
[packages.vcs]
type = "git"
"""
PIPENV = """\
{
    "_meta": {
        "requires": {"python_version": "3.10"},
        "sources": [
            {"name": "pypi", "url": "https://i.example/simple"},
            {"name": "pytorch", "url": "https://download.pytorch.org/whl/cu118"}
        ]
    },
    "default": {
        "numpy": {
            "index": "pypi",
            "version": "==1.26.4"
        },
        "torch": {
            "index": "pytorch",
            "version": "==2.1.0+cu118"
        },
        "colorama": {
            "markers": "sys_platform == 'win32'",
            "version": "==0.4"
        }
    },
    "develop": {
        "numpy": {
            "version": "==1.26.4"
        },
        "scipy": {
            "version": "==1.13.1"
        }
    }
}
"""
PIPFILE = """\
[[source]]
name = "pypi"
url = "https://i.example/simple"
[[source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu118"
[packages]
torch = {version = "==2.1.0", index = "pytorch"}
numpy = {version = "<2", index = "pypi"}
jax = {extras = ["cuda12"], version = "==0.4.30"}
colorama = {version = "==0.4", markers = "sys_platform == 'win32'"}
own = {path = ".", editable = true}
[dev-packages]
scipy = "*"
[requires]
python_version = "3.10"
"""
PIXI = """\
[workspace]
channels = ["conda-forge"]
[dependencies]
python = ">=3.11, <3.12"
numpy = "2.*"
[target.linux-64.dependencies]
numpy = "1.26.*"
[target.osx-arm64.dependencies]
numpy = "2.1.*"
[pypi-dependencies]
transformers = ">=4.40"
own = { path = "." }
[feature.cuda.dependencies]
pytorch = { version = "2.4.*", channel = "conda-forge", build = "cuda*" }
[feature.cuda.pypi-options]
extra-index-urls = ["https://download.pytorch.org/whl/cu124"]
[feature.cuda.pypi-dependencies]
torchvision = "==0.19.0"
[environments]
cuda = { features = ["cuda"], solve-group = "default" }
alone = { features = ["cuda"], no-default-feature = true }
"""
DEFAULT = ["python>=3.11,<3.12 4", "numpy==1.26.* 7", "transformers>=4.40 11"]
PIXI_LOCK = """\
version: 6
environments:
  default:
    channels:
    - url: https://conda.example/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.example/conda-forge/linux-64/python-3.11.9-hb806964_0_cpython.conda
      - conda: https://conda.example/conda-forge/noarch/cuda-version-12.4-h3060b56_3.tar.bz2
      - pypi: https://download.pytorch.org/whl/cu124/torch-2.4.0%2Bcu124-cp311-cp311-linux_x86_64.whl#sha256=0
      - pypi: https://files.example/numpy-1.26.4.tar.gz
      - pypi: ./
      osx-arm64:
      - conda: https://conda.example/conda-forge/osx-arm64/python-3.12.0-h0_0.conda
packages: []
"""
CONDA_LOCK = """\
version: 1
metadata: {platforms: [linux-64, osx-64]}
package:
- name: python
  version: 3.10.13
  manager: conda
  platform: linux-64
  category: main
- name: numpy
  version: 1.26.2
  manager: conda
  platform: osx-64
- name: torch
  version: 2.1.0+cu121
  manager: pip
  platform: linux-64
  url: https://example.org/torch.whl
  category: main
- {name: scipy, version: '1.11', manager: conda, platform: linux-64, category: dev}
- {name: numpy, version: '1.26', manager: conda, platform: linux-aarch64}
"""
EXPLICIT = """\
# platform: linux-64
@EXPLICIT
https://conda.example/pkgs/main/linux-64/python-3.8.5-h7579374_1.conda
https://conda.example/pytorch/linux-64/pytorch-1.7.1-py3.8_cuda11.0.221_cudnn8.0.5_0.tar.bz2#0123
"""

LOCKS = {
    "uv.lock": (
        UV,
        {
            ">=3.10,<3.11": FIRST,
            ">=3.11,<3.13": LATER,
            "old >=3.10,<3.11": [*FIRST[:2], "protobuf==4.25.3 23", *FIRST[2:]],
            "old >=3.11,<3.13": [*LATER[:2], "protobuf==4.25.3 23", *LATER[2:]],
            "dev >=3.10,<3.11": FIRST,
            "dev >=3.11,<3.13": LATER,
        },
    ),
    "conflict/uv.lock": (
        CONFLICT,
        {
            "cpu": ["python>=3.12 1", "torch==2.6.0+cpu 16"],
            "cu124": ["python>=3.12 1", "torch==2.6.0+cu124 21", "triton==3.2.0 27"],
        },
    ),
    "poetry.lock": (
        POETRY,
        {
            ">=3.10,<3.12": OLDER,
            ">=3.12": NEWER,
            "dev >=3.10,<3.12": [*OLDER, "scipy==1.13.1 32"],
            "dev >=3.12": [*NEWER, "scipy==1.13.1 32"],
        },
    ),
    "old/poetry.lock": (
        OLD_POETRY,
        {
            "": ["python>=3.8,<3.11 14", "torch==1.13.1 2"],
            "dev": ["python>=3.8,<3.11 14", "torch==1.13.1 2", "scipy==1.10.0 8"],
        },
    ),
    "pdm.lock": (
        PDM,
        {
            "": ["python==3.11.* 4", "torch==2.4.0 7"],
            "gpu": ["python==3.11.* 4", "torch==2.4.0 7", "onnxruntime-gpu==1.19.0+cu12 17"],
        },
    ),
    "pylock.gpu.toml": (
        PYLOCK,
        {
            ">=3.10,<3.11": ["python>=3.10,<3.11 2", "torch==2.7.1+rocm6.3 5", "numpy==2.2.6 12"],
            ">=3.11": ["python>=3.11 2", "torch==2.7.1+rocm6.3 5", "numpy==2.3.1 20"],
        },
    ),
    "Pipfile.lock": (
        PIPENV,
        {
            "": ["python==3.10 1", "numpy==1.26.4 10", "torch==2.1.0+cu118 14"],
            "develop": ["python==3.10 1", "numpy==1.26.4 10", "torch==2.1.0+cu118 14", "scipy==1.13.1 27"],
        },
    ),
    "Pipfile": (
        PIPFILE,
        {
            "": ["python==3.10 16", "torch==2.1.0 8", "numpy<2 9", "jax==0.4.30 10"],
            "dev": ["python==3.10 16", "torch==2.1.0 8", "numpy<2 9", "jax==0.4.30 10", "scipy 14"],
        },
    ),
    "pixi.toml": (
        PIXI,
        {
            "default": DEFAULT,
            "cuda": [*DEFAULT, "pytorch==2.4.* 14", "torchvision==0.19.0 18"],
            "alone": ["pytorch==2.4.* 14", "torchvision==0.19.0 18"],
        },
    ),
    "pixi.lock": (
        PIXI_LOCK,
        {
            "default linux-64": [
                *("linux/amd64 7", "python==3.11.9 8", "cuda-version==12.4 9"),
                *("torch==2.4.0+cu124 10", "numpy==1.26.4 11"),
            ]
        },
    ),
    "conda-lock.yml": (
        CONDA_LOCK,
        {
            "linux-64": ["linux/amd64 7", "python==3.10.13 4", "torch==2.1.0+cu121 13"],
            "linux-64 dev": ["linux/amd64 7", "python==3.10.13 4", "torch==2.1.0+cu121 13", "scipy==1.11 19"],
            "linux-aarch64": ["linux/arm64 20", "numpy==1.26 20"],
        },
    ),
    "conda-linux-64.lock": (EXPLICIT, {"": ["python==3.8.5 3", "pytorch==1.7.1 4"]}),
}  # fmt: skip


@pytest.mark.parametrize("path", LOCKS)
def test_locked_packages_are_read_by_environment(path: str) -> None:
    text, environments = LOCKS[path]
    manifest = asked(path, text)
    assert told(manifest) == environments
    # A version of a lock has a hash beside it, which no edit makes.
    spans = [
        item.version.span for one in manifest.environments for item in one.items if item.version
    ]
    assert not any(spans) or not path.endswith("lock")


def indexes(path: str, name: str) -> set[tuple[tuple[str, ...], bool, bool]]:
    return {
        (item.indexes, item.alone, item.overrides)
        for one in asked(path, LOCKS[path][0]).environments
        for item in one.items
        if item.name == name
    }


@pytest.mark.parametrize(
    ("path", "name", "address", "alone", "overrides"),
    [
        ("uv.lock", "torch", "https://download.pytorch.org/whl/cu128", True, False),
        ("uv.lock", "triton", "", False, False),
        ("uv.lock", "protobuf", "", False, True),
        ("conflict/uv.lock", "triton", "https://example.org/triton-3.2.0-cp312-cp312-linux_x86_64.whl", False, False),
        ("poetry.lock", "torch", "https://download.pytorch.org/whl/cu121", True, False),
        ("pdm.lock", "onnxruntime-gpu", "an index that the lock does not name", False, False),
        ("pylock.gpu.toml", "torch", "https://download.pytorch.org/whl/rocm6.3", True, False),
        ("Pipfile.lock", "torch", "https://download.pytorch.org/whl/cu118", True, False),
        ("Pipfile", "torch", "https://download.pytorch.org/whl/cu118", True, False),
        ("Pipfile", "jax", "https://download.pytorch.org/whl/cu118", False, False),
        ("Pipfile", "numpy", "https://download.pytorch.org/whl/cu118", False, False),
        ("pixi.toml", "torchvision", "https://download.pytorch.org/whl/cu124", False, False),
        ("conda-lock.yml", "torch", "https://example.org/torch.whl", False, False),
    ],
)  # fmt: skip
def test_a_lock_says_which_index_a_package_is_from(
    path: str, name: str, address: str, alone: bool, overrides: bool
) -> None:
    assert indexes(path, name) == {((address,) if address else (), alone, overrides)}


@pytest.mark.parametrize(
    ("path", "unread"),
    [
        ("uv.lock", ["source: its source is not an index"]),
        ("poetry.lock", ["xformers: it is optional", "mine: its source is not an index"]),
        ("Pipfile", ["own: its source is not an index"]),
        ("pixi.toml", ["own: its source is not an index"]),
    ],
)
def test_what_is_from_elsewhere_is_not_read(path: str, unread: list[str]) -> None:
    assert [f"{one.text.text}: {one.why}" for one in asked(path, LOCKS[path][0]).unread] == unread


@pytest.mark.parametrize(
    ("requires", "markers", "ranges"),
    [
        ("", ["python_version < '3.9'"], [("", "", "")]),
        (">=3.9", [], [(">=3.9", "3.9", "3.99")]),
        (">=3.9,<4.0", ["python_version < '3.11'"], [(">=3.9,<3.11", "3.9", "3.10"), (">=3.11", "3.11", "3.99")]),
        (
            ">=3.9,<=3.10",
            ["python_version <= '3.9'"],
            [(">=3.9,<3.10", "3.9", "3.9"), (">=3.10,<3.11", "3.10", "3.10")],
        ),
        ("==3.11.*", ["python_full_version >= '3.12'"], [("==3.11.*", "3.11", "3.11")]),
        (
            ">=3.10",
            ["python_full_version == '3.11.*'"],
            [(">=3.10,<3.11", *["3.10"] * 2), (">=3.11,<3.12", *["3.11"] * 2), (">=3.12", "3.12", "3.99")],
        ),
        (">=3.10", ["python_full_version < '3.12.4'"], [(">=3.10", "3.10", "3.99")]),
    ],
)  # fmt: skip
def test_a_lock_forks_where_its_markers_divide_the_pythons(
    requires: str, markers: list[str], ranges: list[tuple[str, str, str]]
) -> None:
    assert [tuple(fork) for fork in forks(requires, markers)] == ranges


def test_a_lock_for_other_platforms_has_no_environment() -> None:
    text = 'requires-python = ">=3.10"\nsupported-markers = ["sys_platform == \'darwin\'"]\n'
    manifest = asked("uv.lock", text + '[[package]]\nname = "own"\nsource = {virtual = "."}\n')
    assert not manifest.environments
    assert [one.why for one in manifest.unread] == ["it is not for Linux on x86"]


def test_a_lock_may_be_larger_than_another_file() -> None:
    data = b"#" * (files.LARGEST + 1)
    assert files.decode(data, "a/uv.lock").text
    with pytest.raises(ManifestError, match="too large"):
        files.decode(data, "pyproject.toml")


def test_extras_that_multiply_a_lock_are_left_out_at_last() -> None:
    edges = "".join(f'{{name = "p{at}"}},' for at in range(500))
    text = f'[[package]]\nname = "own"\nsource = {{virtual = "."}}\ndependencies = [{edges}]\n'
    text += "[package.optional-dependencies]\n" + "".join(f"e{at} = []\n" for at in range(200))
    source = 'source = {registry = "https://i.example/simple"}'
    text += "".join(f'[[package]]\nname = "p{at}"\nversion = "1"\n{source}\n' for at in range(500))
    manifest = asked("uv.lock", text)
    assert len(manifest.environments) == 80
    assert [one.text.text for one in manifest.unread] == ["e79"]


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_that_is_cut_off_is_refused_or_read(path: str) -> None:
    text = LOCKS[path][0]
    for end in range(0, len(text), 7):
        try:
            manifest = asked(path, text[:end])
        except ManifestError:
            continue
        lines = text.count("\n") + 1
        assert all(
            0 < item.where.line <= lines for one in manifest.environments for item in one.items
        )


@pytest.mark.parametrize("value", ["1", "[1]", '"a"', "{a = 1}", "[{a = [1]}]"])
def test_values_of_other_kinds_are_passed_over(value: str) -> None:
    keys = "package packages metadata requires-python manifest resolution-markers environments source".split()  # noqa: SIM905
    for path in ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile", "pixi.toml"):
        for key in keys:
            assert not asked(path, f"{key} = {value}\n").environments
