"""Pairs of real releases that facts say go together, that have nothing to do with each other, or are less well known.

What is right is from METADATA and files of the releases, as each line names; the exit code of `why-not` is that of
`resolve`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


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
        # Pure Python; METADATA of both were read whole, and neither names the other.
        ("flax peft", 0, ()),
        # METADATA of a wheel would name a package, and a package needs no compiler to be installed.
        ("transformers gcc==13 --from wheel", 0, ()),
        # Builds against NumPy 2 go with NumPy 1 as well (pytorch/pytorch#107302).
        ("torch==2.6.0 numpy==1.26.4 --from wheel", 0, ()),
        # Support policy of cuda.bindings: any 13.y.
        ("cuda-bindings==13.0.0 cuda==13.2 --from wheel", 0, ()),
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
    ],
)
def test_the_newest_of_which_everything_is_known_is_offered(
    real: Cli, line: str, command: str
) -> None:
    run = real("resolve", *line.split(), "--json")
    assert (run.code, run.json()["fully_known"]["command"]) == (4, command)
    assert real(*command.split()[1:]).code == 0
