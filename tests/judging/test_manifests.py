"""Files of projects beside the facts: what is refused, what is not, and edits that were solved again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import matrix
from tests.manifests import patches
from toolmatrix.judging import edits
from toolmatrix.judging.manifests import judge
from toolmatrix.manifests import read
from toolmatrix.manifests.model import FileText
from toolmatrix.request.fields import Fields
from toolmatrix.request.judgement import JudgedFile
from toolmatrix.request.machine import target_machine
from toolmatrix.resources import load_yaml

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index
    from toolmatrix.request.judgement import JudgedManifest

WHL = "https://download.pytorch.org/whl"
FILES = Path(__file__).parents[1] / "manifests"
PUBLIC: list[dict[str, Any]] = load_yaml(str(FILES / "public.yaml"))
THREADS: list[dict[str, Any]] = load_yaml(str(FILES / "threads.yaml"))
DEVICES: list[dict[str, Any]] = load_yaml(str(FILES / "devices.yaml"))


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


def judged(index: Index, path: str, text: str, **machine: Any) -> JudgedManifest:
    """A file, judged for the machine that fields of a request describe."""
    return judge(
        index, read.manifest(FileText(path, text)), target_machine(index, Fields(**machine))
    )


def refused(found: JudgedManifest) -> list[str]:
    """The code and the parts of each refusal, without where the parts come from."""
    return sorted(
        " + ".join(
            [one.finding.code, *sorted(part.partition(" of ")[0] for part in one.finding.asked)]
        )
        for one in found.refusals
    )


def container(*lines: str) -> str:
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # A toolkit and the code it makes.
        (
            container(
                "FROM nvidia/cuda:11.0.3-devel-ubuntu20.04", 'ENV TORCH_CUDA_ARCH_LIST="8.0;8.6"'
            ),
            ["TM106 + arch 8.6 + cuda 11.0.3"],
        ),
        (
            container(
                "FROM nvidia/cuda:11.1.1-devel-ubuntu20.04", 'ENV TORCH_CUDA_ARCH_LIST="8.0;8.6"'
            ),
            [],
        ),
        # A wheel that brings its own toolkit beside that of an image, and one that needs it there.
        (
            container("FROM nvidia/cuda:11.8.0-devel-ubuntu22.04", "RUN pip install torch==2.1.0"),
            [],
        ),
        (
            container(
                "FROM nvidia/cuda:12.1.0-runtime-ubuntu20.04", "RUN pip install tensorflow==2.6.5"
            ),
            ["TM106 + cuda 12.1.0 + tensorflow==2.6.5"],
        ),
        (
            container(
                "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu20.04",
                "RUN pip install tensorflow==2.6.5",
            ),
            [],
        ),
        # Images that lists of tags have no more, or never had; a registry of one's own may have them, and of others
        # lists are silent.
        (
            container("FROM nvidia/cuda:10.0-cudnn7-devel-ubuntu18.04"),
            ["TM118 + nvidia/cuda:10.0-cudnn7-devel-ubuntu18.04"],
        ),
        (
            container("ARG CUDA=11.7.0", "FROM nvcr.io/nvidia/cuda:${CUDA}-base-ubuntu22.04"),
            ["TM118 + nvcr.io/nvidia/cuda:11.7.0-base-ubuntu22.04"],
        ),
        (container("FROM docker.io/nvidia/cuda"), ["TM118 + docker.io/nvidia/cuda"]),
        (container("FROM nvidia/cuda:11.0-base"), ["TM118 + nvidia/cuda:11.0-base"]),
        (container("FROM python:3.6-bookworm"), ["TM118 + python:3.6-bookworm"]),
        (container("FROM nvidia/cuda:11.0.3-base-ubuntu20.04", "FROM python:3.6-buster"), []),
        (container("FROM example.org/nvidia/cuda:10.0-base"), []),
        (container("FROM nvidia/cuda:13.9.0-base-ubuntu26.04"), []),
        (container("FROM nvidia/cuda:10.0-base@sha256:" + "0" * 64), []),
        (container("FROM centos:7", "RUN yum install -y gcc"), ["TM119 + centos:7"]),
        (container("FROM centos:7", "RUN sed -i s,a,vault.centos.org, r && yum install gcc"), []),
        # The Python of an image, of a distribution, and one that nobody can tell.
        (
            container("FROM python:3.12-slim", "RUN pip install torch==2.1.0"),
            ["TM106 + python 3.12 + torch==2.1.0"],
        ),
        (
            container(
                "FROM ubuntu:20.04",
                "RUN apt-get install -y python3-pip",
                "RUN pip3 install torch==2.5.0",
            ),
            ["TM106 + Python 3.8, the python3-pip + torch==2.5.0"],
        ),
        (
            container(
                "FROM ubuntu:20.04",
                "RUN apt-get install -y python3-pip python3.9",
                "RUN pip3 install torch==2.5.0",
            ),
            [],
        ),
        # What is installed later takes the place of what was there.
        (
            container(
                "FROM python:3.12", "RUN pip install torch==2.1.0", "RUN pip install torch==2.5.0"
            ),
            [],
        ),
        (
            container(
                "FROM python:3.10",
                "RUN pip install torch==2.1.0",
                "RUN pip uninstall -y torch && pip install triton==3.2.0",
            ),
            [],
        ),
        # Wheels for glibc are none for musl, and a glibc may be too old for them.
        (
            container("FROM python:3.11-alpine", "RUN pip install torch==2.1.0"),
            ["TM106 + distro alpine + torch==2.1.0"],
        ),
        (
            container("FROM alpine:3.19.1", "RUN apk add py3-pip && pip install jaxlib==0.4.30"),
            ["TM106 + distro alpine + jaxlib==0.4.30"],
        ),
        (
            container("FROM python:3.11-alpine", "RUN pip install torch"),
            ["TM106 + distro alpine + torch"],
        ),
        (
            container("FROM python:3.10-alpine", "RUN pip install 'tensorflow<3' requests"),
            ["TM106 + distro alpine + tensorflow<3"],
        ),
        (container("FROM python:3.11-alpine", "RUN pip install mxnet"), []),
        (container("FROM python:3.12-alpine3.20", "RUN pip install numpy==1.26.4"), []),
        (container("FROM python:3.12-alpine", "RUN pip install numpy scipy pandas"), []),
        (
            container("FROM amazonlinux:2", "RUN pip3 install torch==2.8.0"),
            ["TM106 + distro amazonlinux2 + torch==2.8.0"],
        ),
        (container("FROM fedora:40", "RUN pip3 install torch==2.8.0"), []),
        # No wheel is no refusal where a source distribution may be built.
        (
            container("FROM python:3.12", "RUN pip install numpy==1.19.5"),
            ["TM124 + numpy==1.19.5 + python 3.12"],
        ),
        # Requirements bind nobody who goes without them, or has a package of conda's.
        (
            container(
                "FROM python:3.10",
                "RUN pip install numpy==1.26.4",
                "RUN pip install --no-deps tensorflow==2.10.0",
            ),
            [],
        ),
        (
            container(
                "FROM python:3.10", "RUN pip install --no-deps numpy==1.17.5 tensorflow==2.10.0"
            ),
            ["TM107 + numpy==1.17.5 + python 3.10"],
        ),
        (container("FROM a", "RUN conda install onnx=1.12.0 protobuf=3.20.3"), []),
        # Releases before those that the matrix knows are not none, neither are those that something else requires.
        (container("FROM python:3.7", "RUN pip install jax"), []),
        # jaxlib of that time was compiled before NumPy 2.
        (
            container("FROM python:3.9", "RUN pip install flax==0.6.8 jaxlib==0.4.13"),
            ["TM112 + flax==0.6.8", "TM112 + flax==0.6.8 + jaxlib==0.4.13"],
        ),
        # Without its extras a wheel loads the libraries of the image.
        (
            container(
                "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04",
                "RUN pip install onnxruntime-gpu==1.23.2",
            ),
            [
                "TM106 + cuda 11.8.0 + onnxruntime-gpu==1.23.2",
                "TM106 + cudnn 8.9.6.50 + onnxruntime-gpu==1.23.2",
            ],
        ),
        (
            container(
                "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04",
                "RUN pip install onnxruntime-gpu[cuda,cudnn]==1.23.2",
            ),
            [],
        ),
        # An index that nobody read may have what no other one has.
        (
            container(
                "FROM python:3.12",
                "RUN pip install --extra-index-url https://example.org/simple torch==2.1.0",
            ),
            [],
        ),
        # A line of PyTorch's index that has no build of a release, on whatever machine.
        *(
            (
                container(
                    "FROM python:3.10",
                    f"RUN pip install torch=={release} --index-url {WHL}/{line}",
                ),
                told,
            )
            for release, line, told in (
                ("2.5.1", "cu126", ["TM106 + torch==2.5.1"]),
                ("2.7.0", "cu124", ["TM106 + torch==2.7.0"]),
                ("2.5.1", "cu124", []),
                ("2.7.0", "cu126", []),
            )
        ),
        # What runs on ROCm or on ARM is judged there.
        (container("FROM rocm/dev-ubuntu-22.04:6.0", "ENV PYTORCH_ROCM_ARCH=gfx90a"), []),
        (
            container(
                "FROM --platform=linux/arm64 python:3.10",
                "RUN pip install tensorflow-cpu-aws==2.10.0",
            ),
            [],
        ),
    ],
)
def test_what_facts_refuse_of_a_dockerfile(index: Index, text: str, told: list[str]) -> None:
    assert refused(judged(index, "Dockerfile", text)) == told


UBUNTU = "FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y python3 python3-pip{}"
PIP = "RUN pip3 install requests"


@pytest.mark.parametrize(
    "text",
    [
        container(UBUNTU.format(""), PIP),
        container(
            UBUNTU.format(" git"),
            "COPY --chmod=644 requirements.txt /",
            "RUN python3 -m pip install -U pip",
        ),
        container(
            UBUNTU.format(" python3.12-venv"), "RUN sudo /usr/bin/pip3.12 install --user torch"
        ),
        container(
            UBUNTU.format(""), "ENV PATH=/usr/local/cuda/bin:$PATH", 'RUN ["pip", "install", "a"]'
        ),
        container(UBUNTU.format("") + " && pip install poetry"),
        container(UBUNTU.format("") + "\nFROM 0", PIP),
        container(UBUNTU.format("").replace("ubuntu:24.04", "debian:bookworm-slim"), PIP),
        container(UBUNTU.format("").replace("ubuntu:", "nvidia/cuda:12.8.1-base-ubuntu"), PIP),
    ],
)
def test_pip_stops_for_a_python_that_is_externally_managed(index: Index, text: str) -> None:
    found = judged(index, "Dockerfile", text)
    (one,) = [one for one in found.refusals if one.finding.code == "TM122"]
    edit = edits.smallest(index, found.replace(environments=found.environments[-1:]))
    assert edit is None or "+ENV PIP_BREAK_SYSTEM_PACKAGES=1" in edit.patch
    assert one.finding.severity == "error"


@pytest.mark.parametrize(
    "text",
    [
        # Nothing marks that of Ubuntu 22.04, and another Python has no mark.
        container(UBUNTU.format("").replace("24", "22"), PIP),
        container("FROM python:3.12-bookworm", "RUN apt-get install -y python3-pip", PIP),
        container("FROM nvcr.io/nvidia/pytorch:24.08-py3", "RUN apt install python3-pip", PIP),
        container("FROM ubuntu:24.04", PIP),
        container(UBUNTU.format(" python3.11"), "RUN python3.11 -m pip install requests"),
        container(UBUNTU.format(""), "RUN conda create -n a python=3.10", PIP),
        container(UBUNTU.format(""), "RUN cd Python-3.11.4 && make altinstall", PIP),
        container(UBUNTU.format(""), "COPY --from=python:3.12 /usr/local /usr/local", PIP),
        # So has an environment of its own.
        container(UBUNTU.format(""), "RUN python3 -m venv /v", "ENV PATH=/v/bin:$PATH", PIP),
        container(
            UBUNTU.format(""), "RUN python3 -m venv /v && . /v/bin/activate && pip install a"
        ),
        container(UBUNTU.format(""), "ENV VIRTUAL_ENV=/v", PIP),
        container(UBUNTU.format(""), "ENV PATH=/opt/py/bin:$PATH", PIP),
        container(UBUNTU.format(""), "RUN export PATH=/opt/py/bin:$PATH && pip install a"),
        container(UBUNTU.format(""), "RUN /v/bin/pip install requests"),
        # Leave to install.
        container(UBUNTU.format(""), PIP + " --break-system-packages"),
        container(UBUNTU.format(""), PIP + " --target=/app"),
        container(UBUNTU.format(""), PIP + " || pip3 install --user requests"),
        container(UBUNTU.format(""), "ARG PIP_BREAK_SYSTEM_PACKAGES=1", PIP),
        container(UBUNTU.format(""), "ENV PIP_BREAK_SYSTEM_PACKAGES=1", "FROM 0", PIP),
        container(UBUNTU.format(""), "RUN PIP_BREAK_SYSTEM_PACKAGES=1 pip3 install requests"),
        container(UBUNTU.format(""), "RUN rm /usr/lib/python3*/EXTERNALLY-MANAGED", PIP),
        container(UBUNTU.format(""), "RUN pip config set global.break-system-packages true", PIP),
        container(UBUNTU.format(""), "COPY pip.conf /etc/", PIP),
        # What a script does is unknown.
        container(UBUNTU.format(""), "COPY . /", PIP),
        container(UBUNTU.format(""), "RUN ./prepare.sh", PIP),
        container(UBUNTU.format(""), 'SHELL ["conda", "run"]', PIP),
    ],
)
def test_pip_that_may_be_another_one_or_may_install_is_not_refused(index: Index, text: str) -> None:
    codes = [one.finding.code for one in judged(index, "Dockerfile", text).refusals]
    assert "TM122" not in codes


def test_a_package_beside_one_that_brings_a_toolkit_takes_that_one(index: Index) -> None:
    text = container(
        "FROM nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04",
        "RUN pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu124",
        "RUN pip install flash-attn==2.5.6 --no-build-isolation",
    )
    assert refused(judged(index, "Dockerfile", text)) == []


def test_a_refusal_names_the_places_the_facts_and_their_evidence(index: Index) -> None:
    found = judged(index, "requirements.txt", "# x\ntorch==2.5.0\ntorchaudio==2.2.0\n")
    (one,) = found.refusals
    assert [str(place) for place in one.finding.positions] == [
        "requirements.txt:2:1",
        "requirements.txt:3:1",
    ]
    assert one.finding.facts == ("torchaudio-wheels/2.2.0#torch",)
    assert [ground.evidence for ground in one.finding.grounds] == ["artifact"]
    assert {pair.says for pair in found.pairs()} == {"refused"}


def test_an_index_tells_the_builds(index: Index) -> None:
    lines = "--index-url https://download.pytorch.org/whl/{}\ntorch==2.1.0\nvllm==0.3.3\n"
    text = lines.format("cu118")
    (part, _) = judged(index, "requirements.txt", text).environments[0].parts
    assert part.asks[1].selector == "*+cu118@pytorch/*"


def edited(index: Index, path: str, text: str, **machine: Any) -> str:
    """The changed lines of the smallest edit, after which nothing is refused; empty where there is none."""
    found = judged(index, path, text, **machine)
    edit = edits.smallest(index, found)
    if edit is None:
        return ""
    ((_, before, after),) = edit.files
    assert (before, patches.applied(before, edit.patch)) == (text, after)
    assert not [one for one in judged(index, path, after, **machine).refusals if one.hard]
    return "\n".join(line[1:] for line in edit.patch.splitlines()[2:] if line.startswith("+"))


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("requirements.txt", "torch==2.5.0\ntorchaudio==2.2.0", "torch==2.2.0"),
        ("requirements.txt", "torch==2.1.0\r\nnumpy == 2.0.1\r\n", "numpy == 1.26.4"),
        # The torch of another triton would be silent on it.
        ("requirements.txt", "torch==2.1.0\ntriton==3.2.0\n", "triton==2.1.0"),
        ("requirements.txt", "numpy==1.26.9\n", "numpy==1.26.4"),
        ("requirements.txt", "numpy==1.26.4\ntensorflow==2.15.0\nnumpy<1.24\n", "numpy==1.23.5"),
        (
            "environment.yml",
            "dependencies:\n- python=3.12\n- pip:\n  - tensorflow==2.10\n",
            "- python=3.10",
        ),
        (
            "Dockerfile",
            "ARG PY=3.12\nFROM python:${PY}-slim\nRUN pip install torch==2.1.0\n",
            "ARG PY=3.11",
        ),
        (
            "Dockerfile",
            "FROM nvidia/cuda:11.0.3-devel-ubuntu20.04\nENV TORCH_CUDA_ARCH_LIST='8.0 8.6+PTX'\n",
            "FROM nvidia/cuda:11.1.1-devel-ubuntu20.04",
        ),
        (
            "Dockerfile",
            "FROM nvidia/cuda:12.0.1-cudnn8-devel-ubuntu22.04\nENV TORCH_CUDA_ARCH_LIST='3.7 8.6'\n",
            "FROM nvidia/cuda:11.8.0-cudnn8-devel-ubuntu22.04",
        ),
        (
            "Dockerfile",
            "FROM nvidia/cuda:11.0.3-devel-ubuntu20.04\nENV TORCH_CUDA_ARCH_LIST='8.0 8.6'\n",
            "FROM nvidia/cuda:11.1.1-devel-ubuntu20.04",
        ),
        # A line that comes out of two variables has no place that could be changed, and nothing refused needs no edit.
        (
            "Dockerfile",
            "ARG A=3\nARG B=12\nFROM python:${A}.${B}\nRUN pip install torch==2.1.0\n",
            "RUN pip install torch==2.2.0",
        ),
        ("requirements.txt", "torch==2.5.0\n", ""),
        # The line of the index moves, and a file for CUDA stays one.
        (
            "Dockerfile",
            f"FROM python:3.10\nRUN pip install torch==2.5.1 torchvision==0.20.1 -i {WHL}/cu126\n",
            f"RUN pip install torch==2.5.1 torchvision==0.20.1 -i {WHL}/cu124",
        ),
        # A local version may have several fields.
        ("requirements.txt", "jaxlib==0.4.13+cuda11.cudnn86\n", ""),
    ],
)
def test_the_smallest_edit_is_applied_and_judged_again(
    index: Index, path: str, text: str, told: str
) -> None:
    assert edited(index, path, text) == told


@pytest.mark.parametrize(
    ("text", "told", "edit"),
    [
        ("numpy\nsklearn\n", ["TM123 + sklearn"], "scikit-learn"),
        ("numpy\nPIL>=1\n", ["TM123 + PIL>=1"], "pillow"),
        (
            "torch==2.5.1\ndetectron2\n",
            ["TM123 + detectron2"],
            "detectron2 @ git+https://github.com/facebookresearch/detectron2.git",
        ),
        ("sklearn==0.0.post1\n", ["TM123 + sklearn==0.0.post1"], "scikit-learn"),
        ("keras\ntensorflow-gpu>=2.4\n", ["TM123 + tensorflow-gpu>=2.4"], "tensorflow"),
        # The first release installs, and so do earlier ones.
        ("sklearn==0.0\n", [], ""),
        ("tensorflow-gpu==2.8.0\nnumpy==1.22.4\nprotobuf==3.19.6\n", [], ""),
        ("scikit-learn\n", [], ""),
        # An index of one's own may have any package.
        ("-i https://example.org/simple\nsklearn\n", [], ""),
        ("# SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True pip install\nsklearn\n", [], ""),
    ],
)
def test_a_name_of_the_past_stops_the_installer(
    index: Index, text: str, told: list[str], edit: str
) -> None:
    assert refused(judged(index, "requirements.txt", text)) == told
    if edit:
        assert edited(index, "requirements.txt", text) == edit


@pytest.mark.parametrize(
    ("variable", "installer", "told"),
    [
        ("PIP_CONSTRAINT", "pip", ["TM106 + torch==2.3.0 + torch==2.4.0"]),
        ("UV_CONSTRAINT", "uv pip", ["TM106 + torch==2.3.0 + torch==2.4.0"]),
        ("UV_CONSTRAINT", "pip", []),
        ("OTHER", "pip", []),
    ],
)
def test_variables_name_constraints(
    index: Index, variable: str, installer: str, told: list[str], tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("torch==2.3.0\n")
    text = f"FROM python:3.10\nENV {variable}=/c.txt\nCOPY c.txt /c.txt\nRUN {installer} install torch==2.4.0\n"
    assert refused(judged(index, str(tmp_path / "Dockerfile"), text)) == told


@pytest.mark.parametrize("case", [pytest.param(case, id=case["thread"]) for case in THREADS])
def test_files_of_threads_are_refused_what_their_readers_met(
    index: Index, case: dict[str, Any], tmp_path: Path
) -> None:
    for name, text in case.get("beside", {}).items():
        (tmp_path / name).write_text(text)
    found = judged(index, str(tmp_path / case["path"]), case["text"])
    assert refused(found) == sorted(case["refused"])


# Judging all takes seconds: every twentieth is for everybody.
CASES = [
    pytest.param(
        case, id=f"{case['repository']}-{place}", marks=[pytest.mark.long] if place % 20 else []
    )
    for place, case in enumerate(PUBLIC)
]


@pytest.mark.parametrize("case", CASES)
def test_public_files_are_refused_what_is_refused_and_nothing_else(
    index: Index, case: dict[str, Any]
) -> None:
    found = judged(index, case["path"].rpartition("/")[2], case["text"])
    assert refused(found) == sorted(case.get("refused", []))


CONDA_TORCH = "channels: [{}]\ndependencies: [pytorch=1.12.1, {}]\n"


CUDA = "--index-url https://download.pytorch.org/whl/{}"
RTX_5090, OLD_DRIVER = {"device": ("RTX 5090",)}, {"with_": ("driver==470",)}
ON_MACHINES: list[tuple[str, str, dict[str, Any], str, list[str], str]] = [
    # A wheel has code for the archs that it was compiled for, and the edit moves what goes with it.
    (
        "requirements.txt",
        container("torch==2.1.0", "torchvision==0.16.0", "transformers==4.40.0"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + torch==2.1.0", "TM112 + torch==2.1.0 + torchvision==0.16.0"],
        "torch==2.8.0\ntorchvision==0.23.0",
    ),
    ("requirements.txt", container("torch==2.8.0"), RTX_5090, "yes", [], ""),
    # The line of an index and that of a local version follow.
    (
        "requirements.txt",
        container(CUDA.format("cu121").replace("index", "extra-index"), "torch==2.1.0+cu121"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + torch==2.1.0+cu121"],
        "--extra-index-url https://download.pytorch.org/whl/cu128\ntorch==2.7.0+cu128",
    ),
    # A command stays one that pip takes, though a later one replaces most of it.
    (
        "install.sh",
        container(
            "pip install torch==2.6.0 torchvision==0.21.0 torchaudio==2.6.0",
            f"pip install --no-deps torch==2.8.0 torchaudio==2.8.0 {CUDA.format('cu128')}",
        ),
        RTX_5090,
        "no",
        ["TM106 + torch==2.8.0 + torchvision==0.21.0"],
        "pip install torch==2.8.0 torchvision==0.23.0 torchaudio==2.8.0",
    ),
    # An older release takes a pin of what is then too new.
    (
        "Dockerfile",
        container("FROM python:3.11", "RUN pip install numpy 'torch>=2.0'"),
        {"device": ("T4",), "with_": ("driver==470.82.01",)},
        "no",
        ["TM106 + driver==470.82.01 + torch>=2.0"],
        "RUN pip install numpy==1.26.4 'torch==2.0.1'",
    ),
    # A package that is left open is the newest on its index.
    (
        "requirements.txt",
        container("torch"),
        {"device": ("RTX 5090",), "with_": ("driver==570.86",)},
        "no",
        ["TM106 + driver==570.86 + torch"],
        "--extra-index-url https://download.pytorch.org/whl/cu129\ntorch==2.13.0",
    ),
    (
        "requirements.txt",
        container(CUDA.format("cu121"), "torch"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + torch"],
        "",
    ),
    # The default index has no builds for ROCm, and another one has.
    (
        "requirements.txt",
        container("torch==2.4.0"),
        {"device": ("MI300X",)},
        "no",
        ["TM106 + MI300X + torch==2.4.0"],
        "--extra-index-url https://download.pytorch.org/whl/rocm6.1",
    ),
    (
        "requirements.txt",
        container(CUDA.format("rocm6.1"), "torch==2.4.0"),
        {"device": ("MI300X",)},
        "yes",
        [],
        "",
    ),
    # What a package requires does not run there.
    (
        "requirements.txt",
        container("vllm==0.6.3"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + vllm==0.6.3"],
        "vllm==0.10.2",
    ),
    # A build for the CPU is installed and leaves the device unused.
    (
        "requirements.txt",
        container(CUDA.format("cpu"), "torch==2.4.0"),
        RTX_5090,
        "unknown",
        ["TM115 + RTX 5090 + torch==2.4.0"],
        "",
    ),
    (
        "requirements.txt",
        container("onnxruntime==1.20.1"),
        RTX_5090,
        "unknown",
        ["TM115 + RTX 5090 + onnxruntime==1.20.1"],
        "",
    ),
    (
        "requirements.txt",
        container("torch==2.1.0"),
        {"device": ("Jetson Orin",)},
        "unknown",
        ["TM115 + Jetson Orin + torch==2.1.0"],
        "",
    ),
    # Without a device a driver, a Python or a distribution is a machine as well.
    (
        "requirements.txt",
        container("torch==2.1.0"),
        {"with_": ("python==3.12",)},
        "no",
        ["TM106 + python==3.12 + torch==2.1.0"],
        "torch==2.2.0",
    ),
    (
        "requirements.txt",
        container("torch==2.9.0"),
        {"distro": "ubuntu18.04"},
        "no",
        ["TM106 + distro ubuntu18.04 + torch==2.9.0"],
        "torch==2.6.0",
    ),
    # An image has a Python and a distribution of its own, and the driver of the machine.
    (
        "Dockerfile",
        container("FROM python:3.10", "RUN pip install torch==2.1.0"),
        {"with_": ("python==3.12",), "distro": "ubuntu18.04"},
        "yes",
        [],
        "",
    ),
    (
        "Dockerfile",
        container("FROM nvidia/cuda:12.4.1-devel-ubuntu22.04", "RUN make"),
        OLD_DRIVER,
        "no",
        ["TM106 + cuda 12.4.1 + driver==470"],
        "",
    ),
    # Code that is compiled for other archs, and PTX, which a later device compiles itself.
    (
        "Dockerfile",
        container("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04", "ENV TORCH_CUDA_ARCH_LIST=8.0;9.0"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + arch 8.0 + arch 9.0"],
        "",
    ),
    (
        "Dockerfile",
        container("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04", "ENV TORCH_CUDA_ARCH_LIST=9.0+PTX"),
        RTX_5090,
        "yes",
        [],
        "",
    ),
    (
        "Dockerfile",
        container("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04", "ENV CUDAARCHS=90-real"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + arch 90-real"],
        "",
    ),
    # A line that the index never had, as far as is known, has no builds.
    (
        "install.sh",
        f"pip install torch==2.10.0 torchvision {CUDA.format('cu131')}\n",
        {},
        "unknown",
        [],
        "",
    ),
    # PyTorch compiles its packages of conda, which its images have, for the archs of its wheels.
    (
        "Dockerfile",
        container("FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + cuda 12.1 + torch 2.1.0"],
        "",
    ),
    (
        "Dockerfile",
        container("FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime"),
        {"device": ("RTX 3090",)},
        "yes",
        [],
        "",
    ),
    (
        "Dockerfile",
        container(
            "FROM continuumio/miniconda3",
            "RUN conda install -y python=3.10 pytorch pytorch-cuda=11.8 -c pytorch -c nvidia",
        ),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + pytorch + pytorch-cuda=11.8"],
        "",
    ),
    (
        "environment.yml",
        CONDA_TORCH.format("pytorch, conda-forge", "cudatoolkit=11.3"),
        {"device": ("H100",)},
        "no",
        ["TM106 + H100 + cudatoolkit=11.3 + pytorch=1.12.1"],
        "",
    ),
    (
        "environment.yml",
        CONDA_TORCH.format("pytorch", "cudatoolkit=11.3"),
        {"device": ("A100",)},
        "yes",
        [],
        "",
    ),
    (
        "Dockerfile",
        container("FROM tensorflow/tensorflow:2.4.1-gpu"),
        {"device": ("RTX 3090",)},
        "yes",
        [],
        "",
    ),
    (
        "Dockerfile",
        container("FROM vllm/vllm-openai:v0.6.3"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + vllm 0.6.3"],
        "FROM vllm/vllm-openai:v0.9.0",
    ),
    # NVIDIA's notes say which GPUs the images of a month support; the releases of a series are its tags.
    (
        "Dockerfile",
        container("FROM nvcr.io/nvidia/pytorch:23.10-py3"),
        RTX_5090,
        "no",
        ["TM106 + RTX 5090 + ngc-pytorch 23.10"],
        "FROM nvcr.io/nvidia/pytorch:25.01-py3",
    ),
    (
        "Dockerfile",
        container("FROM nvcr.io/nvidia/pytorch:25.03-py3"),
        {"device": ("V100",)},
        "no",
        ["TM106 + V100 + ngc-pytorch 25.03"],
        "FROM nvcr.io/nvidia/pytorch:24.12-py3",
    ),
    (
        "Dockerfile",
        container("FROM nvcr.io/nvidia/pytorch:25.03-py3"),
        RTX_5090,
        "yes",
        [],
        "",
    ),
    # Others compile for archs that are not known, and without a toolkit its build may be one for the processor.
    (
        "environment.yml",
        CONDA_TORCH.format("conda-forge, pytorch", "cudatoolkit=11.3"),
        {"device": ("H100",)},
        "unknown",
        [],
        "",
    ),
    (
        "environment.yml",
        CONDA_TORCH.format("pytorch", "cpuonly"),
        {"device": ("H100",)},
        "unknown",
        [],
        "",
    ),
    (
        "environment.yml",
        CONDA_TORCH.format("pytorch", "python=3.9"),
        {"device": ("A100",)},
        "unknown",
        [],
        "",
    ),
]


@pytest.mark.parametrize(("path", "text", "machine", "outcome", "refusals", "edit"), ON_MACHINES)
def test_a_file_on_a_machine(
    index: Index,
    path: str,
    text: str,
    machine: dict[str, Any],
    outcome: str,
    refusals: list[str],
    edit: str,
) -> None:
    judgement = judged(index, path, text, **machine)
    texts = [text.replace(", ", " of ") for text in refused(judgement)]
    assert [
        " + ".join(p.partition(" of ")[0] for p in text.split(" + ")) for text in texts
    ] == refusals
    assert JudgedFile(path=path, judged=judgement).outcome == outcome
    if edit:
        assert edited(index, path, text, **machine) == edit


FROM_CHANNELS = {
    "environment.yml": "channels: [pytorch, {}]\ndependencies: [pytorch=2.1, torchvision=0.16]\n",
    "Dockerfile": "FROM python:3.10\nRUN conda install -c {} pytorch=2.1 torchvision=0.16\n",
}


@pytest.mark.parametrize("path", FROM_CHANNELS)
@pytest.mark.parametrize(
    ("channel", "known"),
    [
        ("conda-forge", True),
        ("nvidia/label/cuda-12.1.0", True),
        ("fastai", False),
        ("https://conda.anaconda.org/fastai", False),
    ],
)
def test_a_channel_that_was_not_read_is_named(
    index: Index, path: str, channel: str, *, known: bool
) -> None:
    judgement = judged(index, path, FROM_CHANNELS[path].format(channel))
    judged_file = JudgedFile(path=path, judged=judgement)
    assert judged_file.outcome == ("yes" if known else "unknown")
    assert [entry.text.text for entry in judged_file.unknown] == [channel] * (not known)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        # torchaudio is compiled against torch, and no fact joins it to one that came after it.
        ("torch==2.15.0\ntorchaudio==2.11.0\ntriton==3.9.0\n", "unknown"),
        ("torch==2.11.0\ntorchaudio==2.11.0\n", "yes"),
        # Facts about builds speak where none about releases does.
        ("torch==2.9.1\nnumpy==1.26.4\n", "yes"),
        # Nothing of the one is compiled against the other.
        ("torch==2.11.0\ntorchaudio==2.11.0\npandas==2.2.3\n", "yes"),
    ],
)
def test_bound_packages_that_no_fact_joins_are_no_yes(
    index: Index, text: str, outcome: str
) -> None:
    judgement = judged(index, "requirements.txt", text)
    assert JudgedFile(path="requirements.txt", judged=judgement).outcome == outcome


OF_CONDA = "channels: [pytorch, nvidia]\ndependencies: [python=3.10, {}]\n"


@pytest.mark.parametrize(
    ("path", "text", "outcome"),
    [
        # Of a tag that nobody lists its own words are no fact.
        ("Dockerfile", "FROM pytorch/pytorch:2.5.1-cuda12.1-cudnn8-runtime\n", "unknown"),
        ("Dockerfile", "FROM nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04\nRUN make\n", "yes"),
        # PyTorch's index is no mirror of the package index.
        ("requirements.txt", f"-i {WHL}/cu121\ntorch==2.1.0\ntransformers==4.36.0\n", "unknown"),
        ("requirements.txt", f"-i {WHL}/cu121\ntorch==2.1.0\nnumpy==1.26.4\n", "yes"),
        (
            "requirements.txt",
            f"--extra-index-url {WHL}/cu121\ntorch==2.1.0\nscipy==1.11.4\nnumpy==1.26.4\n",
            "yes",
        ),
        (
            "requirements.txt",
            f"-i {WHL}/cu121\n--extra-index-url https://index.example/simple\nscipy==1.11.4\nnumpy==1.26.4\n",
            "yes",
        ),
        # An index of which no build is known.
        (
            "Dockerfile",
            f"FROM python:3.11\nRUN pip install scipy==1.11.4 numpy==1.26.4\nRUN pip install -i {WHL}/cu134 torch\n",
            "unknown",
        ),
        # A backend of uv is the only index for PyTorch.
        (
            "Dockerfile",
            "FROM python:3.10\nRUN uv pip install --torch-backend=cu118 torch==2.8.0\n",
            "no",
        ),
        # The Python of a wheel is none of a package of conda.
        ("environment.yml", OF_CONDA.format("pytorch=1.12.1, mkl=2024.1"), "unknown"),
        ("requirements.txt", "torch==2.5.1\nnumpy==1.26.4\n", "yes"),
        # Builds of conda by their toolkit.
        *(
            (
                "environment.yml",
                OF_CONDA.format(f"pytorch={torch}, torchaudio={torch}, pytorch-cuda={cuda}"),
                outcome,
            )
            for torch, cuda, outcome in (
                ("2.0.1", "12.1", "unknown"),
                ("2.4", "12.1", "yes"),
                ("2.7", "12.6", "unknown"),
            )
        ),
        *(
            (
                "environment.yml",
                OF_CONDA.format(f"pytorch={torch}, torchvision={vision}, cudatoolkit={cuda}"),
                outcome,
            )
            for torch, vision, cuda, outcome in (
                ("1.5.0", "0.6.0", "11.0", "unknown"),
                ("1.7.1", "0.8.2", "11.3", "unknown"),
                ("1.7.1", "0.8.2", "11.0", "yes"),
                ("1.12.1", "0.13.1", "11.1", "unknown"),
                ("1.12.1", "0.13.1", "11.6", "yes"),
            )
        ),
    ],
)
def test_what_says_nothing_of_a_file_is_no_yes(
    index: Index, path: str, text: str, outcome: str
) -> None:
    assert JudgedFile(path=path, judged=judged(index, path, text)).outcome == outcome


IMAGE = "FROM nvidia/cuda:{}-runtime-ubuntu22.04\nRUN pip install ctranslate2=={}\n"
WHISPER = "torch=={}\nfaster-whisper==1.1.0\nctranslate2=={}\n"


@pytest.mark.parametrize(
    ("path", "text", "machine", "expected"),
    [
        # It opens cuBLAS and cuDNN of the system by their names.
        ("Dockerfile", IMAGE.format("11.8.0-cudnn8", "4.5.0"), {}, ["cuda", "cudnn"]),
        # Its tag names no cuDNN; the image for development has the same.
        ("Dockerfile", IMAGE.format("12.4.1-cudnn", "4.4.0"), {}, ["cudnn"]),
        ("Dockerfile", IMAGE.format("12.1.1-cudnn8", "4.4.0"), {}, []),
        ("Dockerfile", IMAGE.format("12.1.1-cudnn8", "4.8.5"), {}, []),
        # Another package brings them.
        ("requirements.txt", WHISPER.format("2.3.1", "4.5.0"), {"device": ("8.0",)}, ["torch"]),
        ("requirements.txt", WHISPER.format("2.4.1", "4.5.0"), {"device": ("8.0",)}, []),
    ],
)
def test_libraries_that_a_package_opens_are_those_that_are_there(
    index: Index, path: str, text: str, machine: dict[str, Any], expected: list[str]
) -> None:
    judgement = judged(index, path, text, **machine)
    others = [
        part.component
        for refusal in judgement.refusals
        if refusal.hard
        for part in refusal.parts
        if part.component != "ctranslate2"
    ]
    assert sorted(others) == expected


CONDA = "channels: [pytorch]\ndependencies: [python=3.9, pytorch=1.12.1, pytorch-cuda={}]\n"


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("requirements.txt", "torch==0.9.0\n", "index has no torch 0.9.0 and none before 1.0.0"),
        ("requirements.txt", "torch==2.1.7\n", "has no torch 2.1.7, but 2.1.2 and 2.2.0"),
        # Of this one older releases were on the index, which nothing says are gone.
        ("requirements.txt", "tensorflow-io==0.8.0\n", ""),
        ("environment.yml", CONDA.format("11.3"), "conda has no pytorch-cuda 11.3 and none before"),
        ("environment.yml", CONDA.format("11.7"), ""),
    ],
)
def test_a_release_that_never_was_is_named(index: Index, path: str, text: str, reason: str) -> None:
    judgement = judged(index, path, text)
    reasons = [one.finding.reason for one in judgement.refusals if one.finding.code == "TM108"]
    assert len(reasons) == bool(reason)
    assert reason in "".join(reasons)


@pytest.mark.parametrize("row", DEVICES, ids=[row["thread"] for row in DEVICES])
def test_a_dockerfile_of_a_thread_on_another_gpu(index: Index, row: dict[str, Any]) -> None:
    machine = {option: (value,) for option, value in row["machine"].items()}
    found = judged(index, "Dockerfile", row["text"], **machine)
    assert JudgedFile(path="Dockerfile", judged=found).outcome == row["says"]
    edit = edits.smallest(index, found)
    lines = edit.patch.splitlines() if edit else []
    added = [line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++"]
    assert added == row["patch"]
    mended = [text for _, _, text in edit.files] if edit else []
    for text in (*mended, *filter(None, [row.get("fixed")])):
        assert refused(judged(index, "Dockerfile", text, **machine)) == []
