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
        # METADATA: 1.9 to 1.15.0 want an older flatbuffers than TensorFlow 2.13; 1.8.4 is two years older than that.
        ("tf2onnx tensorflow==2.13.0", 0, ["tf2onnx 1.16.1"]),
        # The table of its METADATA: 0.28 to 0.31 are for TensorFlow 2.11; what else the newest goes with is unknown.
        ("tensorflow-io --with tensorflow==2.11.0", 0, ["tensorflow-io 0.31.0"]),
        ("torchvision --with torch==2.4.1 --from source", 0, ["torchvision 0.19.1"]),
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
