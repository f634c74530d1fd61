"""Questions as engineers ask them in public threads, and the answers of the sources that each row names."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("line", "code", "parts"),
    [
        # README of MindSpeed: it is for NPUs, by torch_npu beside a PyTorch for CPUs.
        ("mindspeed torch==2.1.0", 0, ["accelerator none", "mindspeed 2.3.0"]),
        ("mindspeed torch==2.1.0 --accelerator cuda", 1, []),
        # METADATA: 1.9 to 1.15.0 want an older flatbuffers than TensorFlow 2.13; 1.8.4 is two years older than that.
        ("tf2onnx tensorflow==2.13.0", 0, ["tf2onnx 1.16.1"]),
        # The table of its METADATA: 0.28 to 0.31 are for TensorFlow 2.11; what else the newest goes with is unknown.
        ("tensorflow-io --with tensorflow==2.11.0", 0, ["tensorflow-io 0.31.0"]),
        ("torchvision --with torch==2.4.1 --from source", 0, ["torchvision 0.19.1"]),
        # A maintainer in tensorflow/models#10025, and the import in Keras 2.4.3.
        ("keras --with tensorflow==1.12.0", 0, ["keras 2.3.1"]),
        ("keras==2.10.0 tensorflow==1.15.0", 1, []),
        ("keras==2.4.3 tensorflow==2.1.0", 1, []),
        # meta-tegra: the toolkit of JetPack 4 is one of its own, and no other runs on these boards.
        ("torch --device 'Jetson Nano'", 4, ["l4t 32.7.6"]),
        # Support matrix of TensorRT 10.1.0: SM 7.0 and higher, also for what is linked to it.
        ("tensorrt --device P100", 0, ["tensorrt 9.3.0.1"]),
        ("tensorrt==11.1.0.106 --device P100 --from source", 1, []),
        # Support notice 34 of RAPIDS.
        ("cuml --device 'GTX 1080'", 0, ["cuml 23.12.0"]),
        ("cudf==26.10.2 --device P100", 1, []),
        # README of torch-sparse at the commit that names the list.
        ("torch-sparse --with torch==1.12.1 --from wheel", 0, ["torch-sparse 0.6.15"]),
        # PyTorch's page of previous versions.
        ("torch --with cuda==8.0 --from wheel", 0, ["torch 1.0.0+cu80", "whl/cu80/torch_stable"]),
        # What rocminfo shows there.
        ("torch --device 'Ryzen AI Max+ 395' --from wheel", 0, ["device gfx1151"]),
    ],
)
def test_resolve(real: Cli, line: str, code: int, parts: list[str]) -> None:
    outcome = real("resolve", *shlex.split(line))
    assert outcome.code == code, outcome.out
    text = " ".join(outcome.out.split())
    assert [part for part in parts if part not in text] == [], outcome.out


def test_a_toolkit_that_makes_no_code_for_the_device_goes_with_nothing(real: Cli) -> None:
    outcome = real("what", "cuda==13.0", "--device", "V100")
    assert outcome.code == 3
    assert "`toolmatrix why-not cuda==13.0 --device V100` shows why" in outcome.err


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("mkl", "--config=mkl, build option of TensorFlow: `toolmatrix show config=mkl`"),
        ("mpi", "TF_NEED_MPI, build option of TensorFlow: `toolmatrix show TF_NEED_MPI`"),
    ],
)
def test_show_names_what_else_a_name_means(real: Cli, name: str, other: str) -> None:
    outcome = real("show", name)
    assert f"hint: `{name}` is also a name of {other}" in " ".join(outcome.err.split())
    # The command of the hint shows that.
    assert real(*shlex.split(other.rpartition("`toolmatrix ")[2].strip("`"))).code == 0
