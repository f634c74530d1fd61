"""What METADATA names and what lies in opened wheels, asked of the real matrix, and that nothing in it contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import matrix
from toolmatrix.api.checks import load_matrix
from toolmatrix.harvest import families
from toolmatrix.judging import audit

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        # Requires-Dist of torch 2.10.0: cuda-bindings==12.9.4.
        ("torch==2.10.0 cuda-bindings==12.9.3 --from wheel", 1, "cuda-bindings 12.9.3"),
        ("torch==2.10.0 cuda-bindings==12.9.4 --from wheel", 0, "cuda-bindings 12.9.4"),
        # The opened wheel links libcudart.so.12 and holds code for sm_90.
        ("vllm==0.12.0 --target arm --device GH200 --from wheel", 0, "vllm 0.12.0+cu129"),
        # The index has a wheel for x86_64 and a source archive.
        ("xformers torch==2.1.2 --target arm --from wheel", 1, "does not go with machine aarch64"),
    ],
)
def test_what_was_read_in_files_decides(real: Cli, request_: str, code: int, says: str) -> None:
    run = real("resolve", *request_.split())
    assert (run.code, says in run.out) == (code, True), run.out


def test_all_releases_of_frameworks_are_known_by_all_that_they_require() -> None:
    index = matrix.index()
    for name in ("torch", "torchvision", "triton", "tensorflow", "jax", "numpy"):
        facts = index.component(name)
        assert index.scale(name).named(facts.complete) == facts.versions, name


@pytest.mark.long
def test_nothing_in_the_matrix_contradicts_something_else() -> None:
    index = matrix.index()
    packages = {**index.header["packages"], **families.packages()}
    assert [*audit.contradictions(load_matrix([]), index, packages)] == []
