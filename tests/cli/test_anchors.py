"""What is named beside a wanted component anchors it: the release that its own tables join with that, or the newest."""

from __future__ import annotations

import shlex
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

JOINED = {
    # TensorFlow's tested build configurations.
    "tensorflow --with cuda==11.2": "2.11",
    "tensorflow cuda==11.2": "2.11",
    "tensorflow --with cuda==10.0": "2.0",
    "tensorflow --with cuda==9.0": "1.12",
    "tensorflow --with 'cuda>=11,<12'": "2.14",
    "tensorflow --with bazel==3.7.2": "2.7",
    "tensorflow --with cuda==11.2 --with bazel==3.7.2": "2.7",
    "tensorflow --with cuda==11.2 --with python==3.10": "2.11",
    "tensorflow --with cudnn==8.1": "2.11",
    "tensorflow --with gcc==9": "2.12",
    "tensorflow --with rocm==5.3": "2.11",
    # ONNX Runtime's table of CUDA, and the builds of its own feed.
    "onnxruntime --with cuda==11.4": "1.12",
    "onnxruntime --with cuda==11.8 --from wheel": "1.20",
    # torchvision's table of torch, and torch's own table of ROCm.
    "torchvision torch==2.1.0": "0.16",
    "torch --with rocm==5.7": "2.2",
    # METADATA of torchvision and torchaudio pins torch, and that of torch pins Triton on Python before 3.13.
    "torch --with torchvision==0.18.1": "2.3",
    "torch --with torchaudio==2.2.2": "2.2",
    "triton --with torch==2.5.1": "3.1",
    # METADATA: 1.2.1 declares torch >=1.10.0 and 1.3.0 torch >=2.0.0; optax 0.2.2 jax >=0.1.55 and 0.2.3 jax >=0.4.27.
    "accelerate torch==1.13.1": "1.2",
    "accelerate --with torch==1.13.1": "1.2",
    "optax jax==0.4.20": "0.2",
    # It requires Transformers at whatever release, of which its newest uses a later one than comes with such a torch.
    "peft torch==2.1.0": "0.5",
}
"""A question, and the series that a source joins with what is named."""
NEWEST = (
    "tensorflow --with driver==470",
    "torch --distro ubuntu20.04",
    "torch --with gcc==9",
    "jax --with cuda==12",
    "transformers --with torch==2.1.2",
)
"""Nothing older is taken for what facts limit by themselves, nor for where the result runs."""


def _first(cli: Cli, line: str) -> str:
    document = cli("resolve", *shlex.split(line), "--json").json()
    (target,) = document["targets"].values()
    version: str = target["components"][shlex.split(line)[0]]["version"]
    return version


@pytest.mark.parametrize("line", JOINED)
def test_a_release_that_a_source_joins_comes_before_a_newer_one(real: Cli, line: str) -> None:
    assert _first(real, line).startswith(f"{JOINED[line]}.")


@pytest.mark.parametrize("line", NEWEST)
def test_the_newest_is_taken_where_rows_are_silent(real: Cli, line: str) -> None:
    assert _first(real, line) == _first(real, f"{line} --prefer newest")


def test_the_order_of_anchors_does_not_matter(real: Cli) -> None:
    named = ("--with cuda==11.2", "--with python==3.9", "--with bazel==3.7.2")
    found = {_first(real, " ".join(("tensorflow", *order))) for order in permutations(named)}
    assert len(found) == 1


def test_the_newest_can_be_preferred(real: Cli) -> None:
    """`--prefer newest` leaves out what sources join, as it leaves out rows."""
    newest = _first(real, "tensorflow --with cuda==11.2 --prefer newest")
    assert newest == _first(real, "tensorflow --prefer newest")


def test_what_is_not_joined_says_so(real: Cli) -> None:
    entry = real("explain", "tensorflow", "tensorflow", "--with", "cuda==11.2", "--json").json()
    first = entry["explained"][0]["not_taken"][0]
    assert first["kind"] == "apart"
    assert first["why"] == "no source joins them with cuda==11.2"
