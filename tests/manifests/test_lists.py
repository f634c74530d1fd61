"""Requirements, environments of conda, compose files, projects and development containers, each item with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files, read, requirements, toml_texts
from toolmatrix.manifests.model import FileText

if TYPE_CHECKING:
    from pathlib import Path

    from toolmatrix.manifests.model import ProjectManifest


def asked(path: str, text: str) -> ProjectManifest:
    return read.manifest(FileText(path, text))


def told(path: str, text: str) -> dict[str, list[str]]:
    return {
        one.name: [
            f"{item.kind} {item.name}{item.specifier} {item.where.line}" for item in one.items
        ]
        for one in asked(path, text).environments
    }


def unread(path: str, text: str) -> list[str]:
    return [f"{one.text.text}: {one.why}" for one in asked(path, text).unread]


REQUIREMENTS = """\
# a list
--extra-index-url https://download.pytorch.org/whl/cu118
torch==2.1.0+cu118  # pinned
numpy >=1.2, \\
    <2 --hash=sha256:0
jax[cuda12_pip]==0.4.30; sys_platform == "linux" and platform_machine == "x86_64" -f https://example.org/jax
x==1; sys_platform == "win32"
tensorflow==2.6; python_version < "3.10"
https://example.org/whl/torch-1.13.1%2Bcu117-cp310-cp310-linux_x86_64.whl
y @ git+https://example.org/y
-e ./own
-c bounds.txt
${NAME}==1
==1
"""


def test_requirements_are_read_as_pip_does() -> None:
    assert told("requirements.txt", REQUIREMENTS) == {
        "": [
            "pip torch==2.1.0+cu118 3",
            "pip numpy<2,>=1.2 4",
            "pip jax==0.4.30 6",
            "pip torch==1.13.1+cu117 9",
        ]
    }
    assert unread("requirements.txt", REQUIREMENTS) == [
        "-e ./own: a URL or a path",
        "-c bounds.txt: not a file of the project",
        'tensorflow==2.6; python_version < "3.10": its marker depends on Python',
        "y @ git+https://example.org/y: a URL or a path",
        "${NAME}==1: an environment variable",
        "==1: not a requirement that pip accepts",
    ]
    torch, _, jax, wheel = asked("requirements.txt", REQUIREMENTS).environments[0].items
    assert torch.version is not None
    assert torch.version.text == "==2.1.0+cu118"
    assert torch.indexes == ("https://download.pytorch.org/whl/cu118",)
    assert not torch.alone
    assert (jax.extras, jax.text.text) == (("cuda12_pip",), "jax[cuda12_pip]==0.4.30")
    assert jax.indexes == (*torch.indexes, "https://example.org/jax")
    assert wheel.python == "3.10"


def test_a_constraint_installs_nothing(tmp_path: Path) -> None:
    (tmp_path / "bounds.txt").write_text("torch<2\nother<1\n")
    (tmp_path / "requirements.txt").write_text("torch\n-c bounds.txt\n")
    found = read.manifest(files.read_file(str(tmp_path / "requirements.txt")))
    assert [(one.name + one.specifier, one.bounds) for one in found.environments[0].items] == [
        ("torch", False),
        ("torch<2", True),
        ("other<1", True),
    ]


ENVIRONMENT = """\
name: x
dependencies:
  - python=3.8
  - pytorch::pytorch=1.12.1=py3.8_cuda11.3_cudnn8.3.2_0
  - "numpy >=1.2,<2"
  - cudatoolkit 11.3.*
  - scipy==1.7
  - pip:
    - -f https://download.pytorch.org/whl/torch_stable.html
    - torchvision==0.13.1
"""


def test_an_environment_of_conda_has_what_pip_installs_as_well() -> None:
    assert told("environment.yml", ENVIRONMENT) == {
        "": [
            "conda python==3.8.* 3",
            "conda pytorch==1.12.1.* 4",
            "conda numpy>=1.2,<2 5",
            "conda cudatoolkit==11.3.* 6",
            "conda scipy==1.7 7",
            "pip torchvision==0.13.1 10",
        ]
    }
    python = asked("environment.yml", ENVIRONMENT).environments[0].items[0]
    assert python.version is not None
    assert python.version.text == "=3.8"
    assert python.version.where == (3, 11)


COMPOSE = """\
x-common: &common
  image: nvidia/cuda:${TAG:-12.1.0}-base-ubuntu22.04
services:
  one:
    <<: *common
    platform: linux/arm64
    environment:
      TORCH_CUDA_ARCH_LIST: "8.0"
  two:
    <<: *common
    environment: [TORCH_CUDA_ARCH_LIST=8.6, OTHER]
  three:
    build: .
  four:
    image: ${IMAGE}
"""


def test_services_are_environments_and_aliases_are_followed() -> None:
    assert told("compose.yaml", COMPOSE) == {
        "one": [
            "image nvidia/cuda:12.1.0-base-ubuntu22.04 2",
            "platform linux/arm64 6",
            "variable TORCH_CUDA_ARCH_LIST8.0 8",
        ],
        "two": [
            "image nvidia/cuda:12.1.0-base-ubuntu22.04 2",
            "variable TORCH_CUDA_ARCH_LIST8.6 11",
        ],
    }
    assert unread("compose.yaml", COMPOSE) == [
        "build: its Dockerfile is not a file of the project",
        "${IMAGE}: ${IMAGE} is unknown",
    ]


PROJECT = """\
[project]
requires-python = ">=3.10,<3.12"
dependencies = ["torch==2.1.0", "own", "vllm"]
[project.optional-dependencies]
gpu = ["xformers==0.0.22"]
[dependency-groups]
dev = ["numpy<2", {include-group = "x"}]
x = ["scipy", {include-group = "dev"}]
[tool.uv]
constraint-dependencies = ["numpy<1.26"]
override-dependencies = ["protobuf==4.25.3", "keras==2; sys_platform == 'win32'"]
[[tool.uv.index]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu121"
explicit = true
[[tool.uv.index]]
url = "https://example.org/all"
[tool.uv.sources]
torch = [
  {index = "none", marker = "sys_platform == 'darwin'"},
  {index = "pytorch", marker = "sys_platform == 'linux'"},
]
own = {path = "."}
Vllm = {url = "https://example.org/vllm-0.6.0-cp38-abi3-manylinux1_x86_64.whl"}
xformers = {index = "pytorch", extra = "other"}
"""


def test_each_extra_and_group_is_an_environment_with_what_all_need() -> None:
    base = ["python python>=3.10,<3.12 2", "pip torch==2.1.0 3", "pip vllm==0.6.0 24"]
    bounds = ["pip numpy<1.26 10", "pip protobuf==4.25.3 11"]
    assert told("pyproject.toml", PROJECT) == {
        "": [*base, *bounds],
        "python 3.10": ["python python==3.10.* 2", *base[1:], *bounds],
        "gpu": [*base, "pip xformers==0.0.22 5", *bounds],
        "dev": [*base, "pip numpy<2 7", "pip scipy 8", *bounds],
        "x": [*base, "pip scipy 8", "pip numpy<2 7", *bounds],
    }
    own, gpu, *_ = asked("pyproject.toml", PROJECT).environments
    _, torch, _, numpy, protobuf = own.items
    assert (torch.indexes, torch.alone) == (("https://download.pytorch.org/whl/cu121",), True)
    assert [(one.bounds, one.overrides) for one in (torch, numpy, protobuf)] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert (gpu.items[3].indexes, gpu.items[3].alone) == (("https://example.org/all",), False)
    assert unread("pyproject.toml", PROJECT) == ["own: its source is not an index"]


POETRY = """\
[tool.poetry.dependencies]
python = "^3.9"
torch = "~2.1"
numpy = {version = "1.26.4", optional = true}
own = {path = "."}
[tool.poetry.group.dev.dependencies]
scipy = {version = "1.13.1", source = "mine"}
[[tool.poetry.source]]
name = "mine"
url = "https://example.org/mine"
priority = "explicit"
"""


def test_constraints_of_poetry_are_those_of_pep_440() -> None:
    base = ["python python>=3.9,<4 2", "pip torch>=2.1,<2.2 3"]
    assert told("pyproject.toml", POETRY) == {
        "": base,
        "python 3.9": ["python python==3.9.* 2", *base[1:]],
        "dev": [*base, "pip scipy==1.13.1 7"],
    }
    scipy = asked("pyproject.toml", POETRY).environments[2].items[2]
    assert (scipy.indexes, scipy.alone) == (("https://example.org/mine",), True)
    assert unread("pyproject.toml", POETRY) == ["1.26.4: it is optional"]


@pytest.mark.parametrize(
    ("said", "within", "beyond"),
    [
        ("^1.2.3", "1.9", "2"),
        ("^0.2.3", "0.2.9", "0.3"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0", "0.9", "1"),
        ("~1.2.3", "1.2.9", "1.3"),
        ("~1", "1.9", "2"),
        (">=1,<3", "2", "3"),
        ("1.5", "1.5", "1.6"),
    ],
)
def test_a_caret_ends_where_poetry_says(said: str, within: str, beyond: str) -> None:
    found = SpecifierSet(toml_texts.caret(said))
    assert within in found
    assert beyond not in found


@pytest.mark.parametrize(
    ("said", "selector"),
    [
        ("=1.2", "==1.2.*"),
        ("==1.2", "==1.2"),
        ("1.2.*", "==1.2.*"),
        (">=1,<2", ">=1,<2"),
        (">=1.2.*", ">=1.2"),
        ("=1.2|=1.3", "==1.2.* | ==1.3.*"),
        ("*", "*"),
        ("=1.2.*", "==1.2.*"),
    ],
)
def test_versions_of_conda_are_selectors(said: str, selector: str) -> None:
    if "*" in said and said[:1] not in "=<>*":
        assert requirements.conda_selector(said) == "==" + said
    else:
        assert requirements.conda_selector(said) == selector


CONTAINER = """\
{
\t// a comment with "quotes"
\t"image": "mcr.microsoft.com/devcontainers/python:1-3.11-bullseye", /* more */
\t"features": {
\t\t"ghcr.io/devcontainers/features/nvidia-cuda:1": {"cudaVersion": "12.2", "installCudnn": true},
\t\t"ghcr.io/devcontainers/features/python:1": {"version": "latest"},
\t},
\t"containerEnv": {"TORCH_CUDA_ARCH_LIST": "8.0"},
}
"""


def test_a_devcontainer_may_have_comments_and_commas() -> None:
    assert told("devcontainer.json", CONTAINER) == {
        "": [
            "image mcr.microsoft.com/devcontainers/python:1-3.11-bullseye 3",
            "cuda cuda==12.2 5",
            "variable TORCH_CUDA_ARCH_LIST8.0 8",
        ]
    }


@pytest.mark.parametrize(
    ("path", "text", "what", "where"),
    [
        ("environment.yml", "a: [", "the file is not YAML", "environment.yml:2:1"),
        ("pyproject.toml", "a = ", "the file is not TOML", "pyproject.toml:1"),
        ("notes.md", "hello", "unknown kind of file", "notes.md"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_place(
    path: str, text: str, what: str, where: str
) -> None:
    with pytest.raises(ManifestError) as found:
        asked(path, text)
    assert (found.value.what, str(found.value.where)) == (what, where)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        files.read_file(str(tmp_path))
    for data, what in (
        (b"\xff", "not UTF-8"),
        (b"a\0", "not text"),
        (b"a" * (1 << 21), "too large"),
    ):
        with pytest.raises(ManifestError, match=what):
            files.decode(data, "x")


def test_the_files_of_a_folder_are_those_whose_names_tell(tmp_path: Path) -> None:
    for name in (
        "Dockerfile",
        "a/gpu.Dockerfile",
        "a/requirements-dev.txt",
        "b/env.yaml",
        ".devcontainer/devcontainer.json",
        "compose.yml",
        "notes.txt",
        "node_modules/Dockerfile",
        ".git/Dockerfile",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [one.removeprefix(f"{tmp_path}/") for one in read.below(str(tmp_path))] == [
        "Dockerfile",
        "compose.yml",
        ".devcontainer/devcontainer.json",
        "a/gpu.Dockerfile",
        "a/requirements-dev.txt",
        "b/env.yaml",
    ]


NAMES = (
    "requirements.txt",
    "environment.yml",
    "compose.yaml",
    "pyproject.toml",
    "devcontainer.json",
    "setup.cfg",
    "uv.lock",
    "poetry.lock",
    "Pipfile",
    "pixi.toml",
    "conda-lock.yml",
    "cog.yaml",
    ".gitlab-ci.yml",
    ".github/workflows/a.yml",
    "Makefile",
    "install.sh",
    "README.md",
)
PIECES = st.sampled_from(
    [
        "dependencies:",
        "services:",
        " - ",
        "pip:",
        "torch",
        "==2.1",
        "=1",
        "\n",
        "  ",
        "[",
        "]",
        "{",
        "}",
        '"',
        "'",
        ":",
        "image: a",
        "[project]",
        "dependencies = ",
        ",",
        ";",
        "python_version<'3'",
        "# x",
        "-r x",
        "--index-url ",
        "&a",
        "*a",
        "<<: ",
        "\\",
        "\t",
        "script: ",
        "jobs:",
        "run: |",
        "${{ matrix.x }}",
        "[[package]]",
        "name = 'a'",
        "```",
        "a:",
        "$(A)",
        "é",
    ]
)


@given(st.sampled_from(NAMES), st.lists(PIECES, max_size=25).map("".join))
def test_any_text_is_read_or_refused_and_every_place_lies_in_it(name: str, text: str) -> None:
    try:
        found = asked(name, text)
    except ManifestError:
        return
    for one in found.environments:
        for item in one.items:
            assert 0 < item.where.line <= text.count("\n") + 1
            if item.version and item.version.span:
                start, end = item.version.span
                assert text[start:end] == item.version.text
