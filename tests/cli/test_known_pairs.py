"""Pairs of real releases that facts say go together, that have nothing to do with each other, or are less well known.

What is right is from METADATA and files of the releases, as each line names; the exit code of `why-not` is that of
`resolve`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from toolmatrix.solve import resolve
from toolmatrix.solve.engine import solve

if TYPE_CHECKING:
    from tests.cli.conftest import Cli
    from toolmatrix.solve.engine import Conflict, Problem, Solution


@pytest.mark.parametrize(
    ("line", "code", "pair"),
    [
        # _C_cutlass_90a.abi3.so needs libtorch.so, and METADATA names no torch.
        ("torchao torch==2.10.0 --from wheel", 4, ("torchao", "torch", "bound")),
        # common_ops.abi3.so needs libtorch.so, and METADATA names no torch.
        ("sgl-kernel==0.1.1 torch==2.5.1 --from wheel", 4, ("sgl-kernel", "torch", "bound")),
        # METADATA of the wheels asks for numpy >=1.14.0; of NumPy 2 it knew nothing.
        ("dgl==1.0.0 numpy==2", 4, ("dgl", "numpy", "unjoined")),
        # The tested build configurations name GCC 7.3.1.
        ("tensorflow==2.6.5 gcc==9 --from source", 4, ("tensorflow", "gcc", "unjoined")),
        # The requirements page begins with CUDA 11.0.
        ("onnxruntime --with cuda==10.2", 4, ("onnxruntime", "cuda", "bound")),
        # No source ties them to each other.
        ("cmake ninja", 4, ("cmake", "ninja", "untied")),
        # setup.py of the archive was not read for what it requires.
        ("apache-tvm==0.20.0 diffusers", 4, ("apache-tvm", "diffusers", "incomplete")),
        # libcuda_ops.so.11 was not opened for the archs that it holds.
        ("mindspore --device H100 --from wheel", 4, ("mindspore", "device", "unopened")),
        # METADATA: torch ==2.7.0.
        ("xformers==0.0.30 torch==2.7.0 --from wheel", 0, ()),
        # torch/version.py of the wheel: CUDA 10.1; its page names torchvision 0.5.0 beside it.
        ("torch==1.4.0 torchvision==0.5.0 cuda==10.1 --from wheel", 0, ()),
        # METADATA: torch ==1.7.0. The wheel of torchaudio has no device code and goes with every build.
        ("torch==1.7.0+cu110 torchaudio==0.7.0 torchvision==0.8.1 --from wheel", 0, ()),
        # A build of 2019 from source is in no table that was read.
        ("torch==1.3.1 gcc --from source", 4, ("torch", "gcc", "unjoined")),
        # Pure Python; METADATA of both were read whole, and neither names the other.
        ("flax peft", 0, ()),
        # METADATA of a wheel would name a package, and a package needs no compiler to be installed.
        ("transformers gcc==13 --from wheel", 0, ()),
        # Builds against NumPy 2 go with NumPy 1 as well (pytorch/pytorch#107302).
        ("torch==2.6.0 numpy==1.26.4 --from wheel", 0, ()),
        # Support policy of cuda.bindings: any 13.y.
        ("cuda-bindings==13.0.0 cuda==13.2 --from wheel", 0, ()),
        # METADATA of the wheels: torch ==2.15.0. A build goes with what they go with.
        ("torchvision==0.29.2 torch==2.15.0 --from source", 0, ()),
        # flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl
        ("flash-attn==2.8.3 torch==2.8.0 --from source", 0, ()),
        # METADATA: torch ==2.3.1. That both go with a NumPy is no tie between the two.
        ("torch==2.15.0 torchvision==0.18.1 --from source", 4, ("torchvision", "torch", "bound")),
        # torch >=1.13.0 of 2024-03-01, by what was compiled against torch 2.2.
        ("auto-gptq==0.7.1 torch==2.2.1 --from wheel", 0, ()),
        # That torchvision goes with torch, and that both take CUDA 13.0, says nothing of torchaudio.
        (
            "torch==2.15.0 torchvision==0.29.1 torchaudio==2.11.0 --from wheel",
            *(4, ("torchaudio", "torch", "bound")),
        ),
        # What torch was built with says nothing of libraries in a wheel that was not opened.
        ("bitsandbytes==0.47.0 rocm==7.2.3 --from wheel", 4, ("bitsandbytes", "rocm", "bound")),
        # No file of 2.8.3 is for a torch after 2.9.
        ("flash-attn==2.8.3 torch==2.12.0 --from source", 4, ("flash-attn", "torch", "bound")),
        # required_tensorflow_version at tag v0.10.0: 2.2.
        ("tensorflow-probability==0.10.0 tensorflow==2.2", 0, ()),
    ],
)
def test_a_pair_is_as_well_known_as_its_facts(
    real: Cli, line: str, code: int, pair: tuple[str, ...]
) -> None:
    run = real("resolve", *shlex.split(line), "--json")
    assert run.code == code, run.out
    pairs = [part["pair"] for part in run.json()["unread"] if "pair" in part]
    assert [(one["one"], one["other"], one["reason"]) for one in pairs[:1]] == [pair][: len(pair)]
    assert real("why-not", *shlex.split(line)).code == code
    assert real("resolve", *shlex.split(line), "--unknown-ok").code == 0


@pytest.mark.parametrize(
    ("line", "command"),
    [
        # The release that is made for TensorFlow 2.18 is the newest.
        (
            "tensorflow-probability tensorflow",
            "toolmatrix resolve tensorflow-probability tensorflow==2.18.1",
        ),
        # The newest TorchAudio was made for torch 2.11, four minors back.
        ("torch torchaudio", "toolmatrix resolve torch==2.11.0 torchaudio"),
    ],
)
def test_the_newest_of_which_everything_is_known_is_offered(
    real: Cli, line: str, command: str
) -> None:
    run = real("resolve", *line.split(), "--json")
    assert (run.code, run.json()["fully_known"]["command"]) == (4, command)
    assert real(*command.split()[1:]).code == 0


def releases(real: Cli, line: str) -> dict[str, dict[str, str]]:
    """By target the releases of an answer."""
    targets = real("resolve", *shlex.split(line), "--json").json()["targets"]
    return {
        target: {name: part.get("version", "") for name, part in held["components"].items()}
        for target, held in targets.items()
    }


@pytest.mark.parametrize(
    "line",
    [
        # A distribution whose packages were not read is no reason for a Python that those known lack.
        "transformer-engine python --from source --accelerator cuda",
        "jaxlib --with gcc --from source --accelerator none",
    ],
)
def test_a_distribution_that_was_taken_anyway_changes_nothing(real: Cli, line: str) -> None:
    found = releases(real, line)
    (distro,) = {held["distro"] for held in found.values()}
    assert releases(real, f"{line} --distro {distro}") == found


@pytest.mark.parametrize(
    "names", ["cuda tensorrt-llm", "bazel==1.0.0 ml-dtypes", "xformers torchaudio"]
)
def test_what_is_there_at_whatever_release_is_chosen_like_what_is_wanted(
    real: Cli, names: str
) -> None:
    wanted, other = names.split()
    both, having = releases(real, names)["x86"], releases(real, f"{wanted} --with {other}")["x86"]
    assert having[other] == both[other]


def test_an_extension_takes_the_framework_that_joins_it_with_the_toolkit(real: Cli) -> None:
    found = releases(real, "rocm==7.2.4 --with torchaudio")["amd"]
    assert (found["torch"], found["torchaudio"]) == ("2.11.0", "2.11.0")


def test_no_row_brings_a_library_that_nothing_needs(real: Cli) -> None:
    """Rows of torch name NCCL, which a release of what is asked for would need that is not taken."""
    line = "mamba-ssm==2.0 tensorflow-io nvjitlink --from wheel"
    assert "nccl" not in releases(real, line)["x86"]
    # The rows of what was asked for still do.
    assert "cudnn" in releases(real, "tensorrt==8.6.1.6")["x86"]


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("tensorrt cudnn --target arm,x86 --with cuda==11.6.2", "cuda 11.6.2"),
        ("tensorrt-dispatch --target arm,x86 --arch compute_88 --from wheel", "compute_88"),
    ],
)
def test_what_is_given_is_there_on_each_target_that_gets_its_accelerator(
    real: Cli, line: str, release: str
) -> None:
    arm, x86 = real("resolve", *line.split()).out.split("\n\n")[:2]
    assert f"─ {release} " in arm
    assert f"─ {release} " in x86


def test_each_of_several_targets_has_the_answer_that_it_has_alone(real: Cli) -> None:
    line = "xformers 'cuda-bindings>=13.4.1' auto-gptq --from wheel"
    both = releases(real, f"{line} --target x86,amd")
    assert both["x86"] == releases(real, f"{line} --target x86")["x86"]


def test_explain_says_which_pair_no_fact_joins(real: Cli) -> None:
    run = real("explain", "cuda", "onnxruntime==1.20.2", "cudnn==9")
    assert "(no fact joins onnxruntime 1.20.2 and\n  cuda)" in run.out


def test_releases_that_nothing_joins_are_refused_together(
    real: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[Problem] = []

    def counted(problem: Problem) -> Solution | Conflict:
        problems.append(problem)
        return solve(problem)

    monkeypatch.setattr(resolve, "solve", counted)
    # No fact joins any MXNet with any cuDNN: one by one that would be a thousand problems.
    assert real("resolve", "mxnet", "cuda", "cudnn", "--min-evidence", "stated").code == 1
    assert len(problems) < 20


@pytest.mark.parametrize(
    "line",
    [
        # Keras 3 begins with TensorFlow 2.15, and METADATA of it names no backend.
        "keras==3.3.3 tensorflow==2.5.0 --from wheel",
        # The cuDNN of the wheel is of before the A100.
        "torch==1.4.0 --device A100 --from wheel",
        # torch/version.py of the wheel: CUDA 10.2.
        "torch==1.9.0+cu102 --with cuda==11.1 --from wheel",
    ],
)
def test_a_pair_that_a_fact_excludes_is_refused(real: Cli, line: str) -> None:
    assert real("resolve", *shlex.split(line)).code == 1
