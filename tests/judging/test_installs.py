"""Commands of pip in their order: what a later one replaces, what it leaves behind, and what today's releases break."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import matrix
from toolmatrix.codes.manifests import NewestUnfit, Replaced
from toolmatrix.judging import edits
from toolmatrix.judging.installs import Installation
from toolmatrix.judging.manifests import judge
from toolmatrix.manifests import read
from toolmatrix.manifests.model import FileText
from toolmatrix.report.findings import IndexWords
from toolmatrix.request import manifests as reading

if TYPE_CHECKING:
    from pathlib import Path

    from toolmatrix.factbase.index import Index
    from toolmatrix.request.judgement import JudgedManifest

WHL = "https://download.pytorch.org/whl"
PYTHON = "FROM python:3.10"
IMAGE = "FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"
FLASH = (
    "https://github.com/Dao-AILab/flash-attention/releases/download/v2.5.6/"
    "flash_attn-2.5.6+cu122torch2.2cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
)
CUDA = "FROM nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04"


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


def dockerfile(first: str, *commands: str) -> str:
    """A Dockerfile whose commands begin on line 2."""
    return "\n".join([first, *(f"RUN {command}" for command in commands)]) + "\n"


def judged(index: Index, text: str, path: str = "Dockerfile") -> JudgedManifest:
    return judge(index, read.manifest(FileText(path, text)))


def effects(index: Index, text: str, path: str = "Dockerfile") -> list[str]:
    """Each finding: its severity, its code, the package, the lines, what is left behind and the pins."""
    shown = []
    for refusal in judged(index, text, path).refusals:
        finding = refusal.finding
        words = [finding.severity, finding.code, finding.component]
        if isinstance(finding, Replaced):
            words += [finding.line, "over", finding.old_line]
            left = [one.partition(" ")[0] for one in finding.left]
            words += ["leaves", *left] if left else []
            words += ["pin", *finding.pins] if finding.pins else ["take", finding.instead]
        elif isinstance(finding, NewestUnfit):
            words += [finding.line, "breaks", *(one.partition(" ")[0] for one in finding.others)]
            words += ["pin", *finding.pins]
        shown.append(" ".join(words))
    return shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            dockerfile(
                CUDA,
                f"pip install torch==2.1.0 torchvision==0.16.0 --index-url {WHL}/cu121",
                "pip install --no-deps bitsandbytes transformers==4.40.0",
            ),
            [],
            id="without requirements nothing is replaced",
        ),
        pytest.param(
            dockerfile(
                CUDA,
                f"pip install torch==2.1.0 --index-url {WHL}/cu121",
                "pip install bitsandbytes transformers",
            ),
            ["warning TM109 torch line 3 over line 2 pin bitsandbytes==0.45.5"],
            id="the newest bitsandbytes wants a newer torch",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                f"pip install torch==2.1.0 torchvision==0.16.0 --index-url {WHL}/cu118",
                "pip install xformers",
            ),
            [
                "error TM109 torch line 3 over line 2 leaves torchvision pin xformers==0.0.22.post7",
            ],
            id="xformers leaves torchvision behind",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                f"pip install torch==2.0.0 --index-url {WHL}/cu118",
                "pip install torch-scatter -f https://data.pyg.org/whl/torch-2.0.0+cu118.html",
                f"pip install torch==2.1.0 --index-url {WHL}/cu118",
            ),
            ["error TM109 torch line 4 over line 2 leaves torch-scatter take 2.1.0"],
            id="a build of a list for one torch is left behind",
        ),
        pytest.param(
            dockerfile(
                PYTHON, "pip install torch==2.5.0", "pip install vllm==0.6.0 transformers==4.45.2"
            ),
            ["warning TM109 torch line 3 over line 2 take 2.4.0"],
            id="a pin replaces another and all fits",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.5.0 torchaudio==2.5.0",
                "pip install vllm==0.6.0 transformers==4.45.2",
            ),
            ["error TM109 torch line 3 over line 2 leaves torchaudio take 2.4.0"],
            id="a pin replaces another and leaves one behind",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install vllm==0.2.4 torch==2.1.2", "pip install -U xformers"),
            ["warning TM109 torch line 3 over line 2 pin xformers==0.0.23.post1"],
            id="an upgrade",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==1.13.1", "pip install -U transformers"),
            [
                "warning TM112 numpy line 3 breaks torch pin numpy==1.26.4",
                "warning TM112 transformers line 3 breaks torch pin transformers==4.47.1",
            ],
            id="transformers require numpy and fit no old torch",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==1.13.1", "pip install transformers accelerate"),
            ["warning TM109 torch line 3 over line 2 pin accelerate==1.2.1"],
            id="accelerate does",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch", "pip install transformers accelerate"),
            [],
            id="an innocent sequence",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                f"pip install torch==2.5.1 torchvision==0.20.1 --index-url {WHL}/cu124",
                "pip install transformers==4.45.2 accelerate datasets torch",
            ),
            [],
            id="what satisfies stays",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0", "pip install torch==2.5.0"),
            [],
            id="a line that names another release means it",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0", "pip install -U torch"),
            ["warning TM109 torch line 3 over line 2 pin torch==2.1.0"],
            id="an upgrade of what is pinned",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                f"pip install torch==2.1.0 --index-url {WHL}/cu118",
                "pip install --force-reinstall torch==2.1.0",
            ),
            ["warning TM109 torch line 3 over line 2 take 2.1.0"],
            id="the same release of another index",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                f"pip install torch==2.1.0 --index-url {WHL}/cu118",
                "pip install torch==2.1.0",
            ),
            [],
            id="the same release stays as it is",
        ),
        pytest.param(
            dockerfile(IMAGE, "pip install torch transformers==4.40.0"),
            [],
            id="an image keeps its torch",
        ),
        pytest.param(
            dockerfile(IMAGE, "pip install 'torch>=2.4'"),
            [
                "warning TM109 torch line 2 over line 1 leaves torchvision torchaudio take 2.4.0",
            ],
            id="an image whose torch is too old",
        ),
        pytest.param(
            dockerfile(IMAGE, "pip install numpy"), [], id="what else is in an image is unknown"
        ),
        pytest.param(
            dockerfile(
                "FROM agentforge:latest", "pip install torch==2.0.1", "pip install xformers"
            ),
            ["warning TM109 torch line 3 over line 2 pin xformers==0.0.22"],
            id="an unknown image with a pinned torch",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0",
                "pip install git+https://github.com/m-bain/whisperX",
                "pip install ./wheels/anything.tar.gz",
            ),
            [],
            id="what cannot be followed",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0",
                "pip install -i https://mirror.example.org/simple xformers",
            ),
            [],
            id="an index that was not read",
        ),
        pytest.param(
            dockerfile("FROM ubuntu:25.04", "pip install torch==2.1.0", "pip install bitsandbytes"),
            [],
            id="a distribution whose Python is unknown",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0",
                "pip uninstall -y torch",
                "pip install xformers",
            ),
            [],
            id="a package that was taken away",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0 triton==3.2.0"),
            ["error TM106 torch"],
            id="one command that pip refuses",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0 torchvision==0.16.0"),
            ["warning TM112 numpy line 2 breaks torch pin numpy==1.26.4"],
            id="torch before 2.3 with numpy 2",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0 torchvision==0.16.0 'numpy<2'"),
            [],
            id="with its pin",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0 torchvision==0.16.0",
                "pip install numpy==1.26.4",
            ),
            [],
            id="put right later",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install torch==2.1.0 numpy pandarallel==1.6.5"),
            [],
            id="an unknown package may limit numpy",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install 'jax[cuda12]==0.4.20' jaxlib"),
            [
                "warning TM112 scipy line 2 breaks jax pin scipy==1.12.0",
                "warning TM112 numpy line 2 breaks jaxlib pin numpy==1.26.4",
            ],
            id="jax with the scipy and numpy of today",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install pandas==2.0.3 numpy==1.26.4", "pip install -U numpy"),
            ["error TM109 numpy line 3 over line 2 leaves pandas pin numpy==1.26.4"],
            id="pandas was compiled for NumPy 1",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install pandas==2.0.3"),
            ["warning TM112 numpy line 2 breaks pandas pin numpy==1.26.4"],
            id="and requires no other",
        ),
        pytest.param(
            dockerfile(PYTHON, "pip install tensorflow==2.8.0 numpy==1.23.5"),
            ["warning TM112 protobuf line 2 breaks tensorflow pin protobuf==3.20.3"],
            id="code that an old protoc generated",
        ),
        pytest.param(
            dockerfile(
                CUDA,
                f"pip install torch==2.1.2 --index-url {WHL}/cu121",
                "pip install flash-attn==2.5.6 --no-build-isolation",
                "pip install torch==2.4.0",
            ),
            ["error TM109 torch line 4 over line 2 leaves flash-attn take 2.4.0"],
            id="a build for the torch that was there",
        ),
        *(
            pytest.param(dockerfile(CUDA, *lines), [], id=f"a build that goes with both, {number}")
            for number, lines in enumerate(
                (
                    # One of a later torch, by its address.
                    (
                        "pip install torch==2.1.2 numpy==1.26.4",
                        f"pip install {FLASH}",
                        "pip install torch==2.2.2",
                    ),
                    # The same series.
                    (
                        "pip install torch==2.1.0 numpy==1.26.4",
                        "pip install flash-attn==2.5.6 --no-build-isolation",
                        "pip install torch==2.1.2",
                    ),
                    # Built again.
                    (
                        "pip install torch==2.1.2 numpy==1.26.4",
                        "pip install flash-attn==2.5.6 --no-build-isolation",
                        "pip install torch==2.2.2",
                        "pip install --force-reinstall --no-deps --no-build-isolation flash-attn==2.5.6",
                    ),
                )
            )
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0 torchvision==0.16.0 numpy==1.26.4",
                "pip uninstall -y torch && pip install torch",
            ),
            ["error TM109 torch line 3 over line 2 leaves torchvision pin torch==2.1.0"],
            id="taken away and installed again",
        ),
        pytest.param(
            dockerfile(
                PYTHON,
                "pip install torch==2.1.0 numpy==1.26.4",
                "pip uninstall -y torch && pip install torch",
            ),
            [],
            id="taken away for a newer one",
        ),
    ],
)
def test_what_commands_do_to_one_another(index: Index, text: str, expected: list[str]) -> None:
    assert effects(index, text) == expected


def test_a_list_of_requirements_is_one_command(index: Index) -> None:
    lines = f"--extra-index-url {WHL}/cu118\ntorch==2.1.0\nnumpy\n"
    expected = ["warning TM112 numpy line 3 breaks torch pin numpy==1.26.4"]
    assert effects(index, lines, "requirements.txt") == expected


def test_pip_replaces_what_conda_installed(index: Index) -> None:
    lines = [
        "dependencies:",
        "  - python=3.10",
        "  - pytorch=2.1.0=py3.10_cuda12.1_cudnn8.9.2_0",
        "  - pip",
        "  - pip:",
        "    - bitsandbytes",
        "    - numpy",
    ]
    expected = ["warning TM109 torch line 6 over line 3 pin bitsandbytes==0.45.5"]
    assert effects(index, "\n".join(lines) + "\n", "environment.yml") == expected


def test_a_project_without_a_lock_gets_what_is_new_today(index: Index) -> None:
    text = '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==2.1.0", "numpy"]\n'
    assert effects(index, text, "pyproject.toml") == [
        "warning TM112 numpy line 4 breaks torch pin numpy==1.26.4"
    ]


def test_the_sentence_names_both_lines_and_both_builds(index: Index) -> None:
    text = dockerfile(
        PYTHON,
        f"pip install torch==2.1.0 torchvision==0.16.0 --index-url {WHL}/cu118",
        "pip install xformers==0.0.27",
    )
    (refusal,) = judged(index, text).refusals
    finding = refusal.finding
    assert finding.sentence(IndexWords(index)) == (
        "line 3 replaces the torch 2.1.0 (cu118) of line 2 with 2.3.1 (cu121),"
        " and leaves torchvision 0.16.0 behind"
    )
    assert [(ground.subject, ground.component) for ground in finding.grounds] == [
        ("xformers", "torch"),
        ("torchvision", "torch"),
    ]


def test_an_edit_pins_what_replaces(index: Index) -> None:
    text = dockerfile(
        PYTHON,
        f"pip install torch==2.1.0 torchvision==0.16.0 --index-url {WHL}/cu118",
        "pip install xformers",
    )
    edit = edits.smallest(index, judged(index, text))
    assert edit is not None
    ((_, _, after),) = edit.files
    assert after == text.replace("xformers", "xformers==0.0.22.post7")
    assert effects(index, after) == []


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (f"pip install torch==2.1.0 --extra-index-url {WHL}/cu118", "cu118"),
        (f"pip install torch==2.1.0 -f {WHL}/cu118", "cu118"),
        (f"pip install torch==2.1.0 --index-url {WHL}/$LINE", "cu118"),
        (f"pip install 'torch==2.1.*' --extra-index-url {WHL}/cu118", "cu118"),
        ("pip install torch==2.1.0", "cu121"),
        # The index of the release has no such line: the default one has the release.
        (f"pip install torch==2.9.0 --extra-index-url {WHL}/cu118", "cu128"),
        (f"pip install torch==2.1.0 --index-url {WHL}/$UNKNOWN", ""),
        ("uv pip install torch==2.1.0 --torch-backend=cu118", "cu118"),
        ("UV_TORCH_BACKEND=cu118 uv pip install torch==2.1.0", "cu118"),
        ("UV_TORCH_BACKEND=cu118 pip install torch==2.1.0", "cu121"),
        ("uv pip install torch==2.1.0 --torch-backend=auto", ""),
    ],
)
def test_a_line_chooses_the_build(index: Index, command: str, line: str) -> None:
    text = f"FROM python:3.10\nARG LINE=cu118\nARG UNKNOWN\nRUN {command}\n"
    manifest = read.manifest(FileText("Dockerfile", text))
    (part,) = [
        part
        for part in reading.requested_parts(index, manifest.environments[0]).parts
        if part.component == "torch"
    ]
    scale = index.scale("torch-variant")
    release = index.scale("torch").named(index.scale("torch").select(part.asks[0].selector))[-1]
    builds = [
        build
        for ask in part.asks[1:]
        for build in scale.named(scale.select(ask.selector))
        if build.startswith(f"{release}+") and build.endswith("x86_64")
    ]
    assert {build.partition("@")[0].partition("+")[2] for build in builds} == {line} - {""}


COMMANDS = st.lists(
    st.sampled_from(
        [
            "torch==2.1.0",
            "torch==2.5.1",
            "torch",
            "torchvision",
            "xformers",
            "-U xformers",
            "--no-deps xformers",
            "--force-reinstall torch==2.1.0",
            "vllm==0.6.0",
            "numpy==1.26.4",
            "numpy",
            "transformers==4.40.0",
            "bitsandbytes accelerate",
            "anything",
            f"torch==2.4.0 --index-url {WHL}/cu118",
            f"torchaudio --index-url {WHL}/cpu",
        ]
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(COMMANDS)
def test_what_the_last_command_pins_is_there(commands: list[str]) -> None:
    index = matrix.index()
    text = dockerfile(PYTHON, *(f"pip install {command}" for command in commands))
    manifest = read.manifest(FileText("Dockerfile", text))
    environment = manifest.environments[0]
    parts = reading.requested_parts(index, environment)
    run = Installation(index, parts, "x86")
    for part in parts.written:
        if str(len(commands) + 1) == str(part.item.where.line) and "==" in part.item.specifier:
            pinned = index.scale(part.component).select(part.asks[0].selector)
            assert run.installed[part.component].release in (0, pinned)
    # A package that was there is replaced, and nothing else is.
    for change in run.changes:
        assert change.command.before[change.component] == change.old


def test_the_python_is_one_that_the_named_index_has_builds_for(index: Index) -> None:
    text = f"pip install torch==2.5.1 -i {WHL}/cu121\npip install vllm==0.6.0\n"
    assert any("TM109 torch line 2 over line 1" in one for one in effects(index, text, "setup.sh"))


def test_pip_keeps_to_what_metadata_requires_of_a_package_that_is_asked_for(index: Index) -> None:
    assert effects(index, "gradio<6\nhuggingface-hub\npydantic\n", "requirements.txt") == []


@pytest.mark.parametrize("lock", ["", "uv.lock"])
def test_a_project_is_followed_where_no_lock_is(index: Index, lock: str, tmp_path: Path) -> None:
    text = "[project]\ndependencies = ['torch==2.1.2', 'numpy']\n"
    (tmp_path / (lock or "other.txt")).write_text("")
    found = effects(index, text, str(tmp_path / "pyproject.toml"))
    breaks = ["warning TM112 numpy line 2 breaks torch pin numpy==1.26.4"]
    assert found == ([] if lock else breaks)
