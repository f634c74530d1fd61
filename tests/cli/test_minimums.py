"""A minimum written before a release came out says nothing of it: which answers that changes, and in what words.

Each is right by a source that the matrix cites, or by a report beside the case.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

UNREAD = {
    # pytorch#150167: parts of its tree are refused by CMake 4.
    "auto-gptq==0.7.1 torch==2.10.0 --from wheel": (
        "auto-gptq 0.7.1 goes with torch >=1.13.0, written 2024-03-01, before PyTorch 2.3"
    ),
    "torch==2.6.0 cmake==4.0 --from source": "torch 2.6.0 goes with cmake >=3.18, written 2025-01-29, before CMake 4",
    "apache-tvm==0.20 llvm==23": "apache-tvm 0.20.0 goes with llvm >=15, written 2025-04-12, before LLVM 21",
    "lightgbm==2.1.0 gcc==15 --from source": (
        "lightgbm 2.1.0 goes with gcc >=4.8.2, written 2018-01-25, before GCC 8"
    ),
    "xgboost==1.7.1 cuda==12.0.0 --from source": (
        "xgboost 1.7.1 goes with cuda >=11.0, written 2022-11-03, before CUDA toolkit 12"
    ),
    "accelerate==0.20.3 numpy==2.0.0 --from wheel": (
        "accelerate 0.20.3 goes with numpy >=1.17, written 2023-06-08, before NumPy 2.0.0, "
        "which changed its binary interface and removed names"
    ),
    # Pure Python, so that no tag of a wheel limits it.
    # What the answer brings is named by the release that it brings.
    "vllm==0.11.0 transformers==5.0.0 --from wheel": (
        "compressed-tensors 0.11.0 goes with transformers, written 2025-08-19, before Transformers 5.0.0, "
        "which removed TensorFlow and JAX and changed tokenizers and the loading of weights"
    ),
}
"""What an answer cannot say, by the question."""

KNOWN = [
    ("torch==2.6.0 cmake --from source", "cmake", "3.31"),
    # CMake 4 was out.
    ("torch==2.14.1 cmake==4.0 --from source", "cmake", "4.0"),
    ("apache-tvm==0.20 llvm --from source", "llvm", "15"),
    ("lightgbm==2.1.0 gcc --from source", "gcc", "7"),
    ("accelerate==0.20.3 --from wheel", "numpy", "1.24.4"),
    # tensorflow#32319: it fails with any later gast.
    ("tensorflow==1.14.0 --from wheel", "gast", "0.2.2"),
    # Of NumPy 2 and Python 3.13 its makers knew.
    ("accelerate==1.2.0 numpy==2.0.2 --from wheel", "numpy", "2.0.2"),
    # A driver goes on to serve, however old what asks for it.
    ("torch==2.0.1 --from wheel --with driver==580.65.06", "driver", "580.65.06"),
]
"""Questions with an answer, a component of it, and its release."""


@pytest.mark.parametrize("line", UNREAD)
def test_what_came_after_a_minimum_was_written_is_neither_yes_nor_no(real: Cli, line: str) -> None:
    outcome = real("resolve", *shlex.split(line), "--json")
    assert outcome.code == 4
    assert UNREAD[line] in [one["text"] for one in outcome.json()["unread"]]


@pytest.mark.parametrize(("line", "component", "release"), KNOWN)
def test_an_answer_takes_what_was_there(real: Cli, line: str, component: str, release: str) -> None:
    outcome = real("resolve", *shlex.split(line), "--json")
    assert outcome.code == 0, outcome.json()["unread"]
    (part,) = outcome.json()["targets"].values()
    held = part["components"][component]
    assert held.get("version", held.get("floor")) == release


def test_a_fact_names_the_rule_by_which_it_ends(real: Cli) -> None:
    assert "minimum-of-its-time" in real("facts", "accelerate-releases/0.20.3#numpy").out
