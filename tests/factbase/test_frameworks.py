"""What the matrix says of frameworks: the answers that people expect, from source and by a wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import toolmatrix
from tests import matrix
from toolmatrix.api.answers import Resolved
from toolmatrix.factbase.versions import Scale
from toolmatrix.finding import InstallMethod
from toolmatrix.judging import sweep
from toolmatrix.solve.resolve import possible

if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index

FROM_SOURCE = [
    (
        "torch",
        "2.6.0",
        "x86",
        {"cuda": "12.4", "cudnn": "9.1", "base-image": "nvidia/cuda:12.4.1*"},
    ),
    ("torch", "2.6.0", "arm", {"gcc": "11", "distro": "ubuntu22.04", "cuda": "absent"}),
    ("torch", "2.6.0", "amd", {"rocm": "6.2.4", "cuda": "absent"}),
    # As their wheels were compiled, and not the newest compiler that nothing refuses.
    ("torch", "2.9.1", "x86", {"gcc": "13"}),
    ("torch", "2.7.1", "arm", {"gcc": "11"}),
    ("onnxruntime", "1.31.1", "arm", {"gcc": "14", "cuda": "absent"}),
    ("onnxruntime", "1.20.1", "arm", {"gcc": "12"}),
    # As the page has it: the tree names 0.29.1, and takes both.
    ("tensorflow", "2.1.0", "x86", {"bazel": "0.27.1"}),
    ("torch", "2.2.2", "x86", {"cuda": "11.8", "cudnn": "8.7", "numpy": "<2", "gcc": "9"}),
    (
        "jaxlib",
        "0.6.2",
        "x86",
        {"cuda": "12.8.0", "cudnn": "9.8", "bazel": "7.4.1", "gcc": "absent"},
    ),
    ("jax", "0.4.29", "x86", {"jaxlib": "0.4.29", "bazel": "6.5.0"}),
    ("jax", "0.8.3", "x86", {"jaxlib": ">=0.8.2,<=0.8.3", "python": ">=3.11", "numpy": ">=2.0"}),
    ("jax", "0.12.0", "arm", {"jaxlib": "===0.12.0"}),
    ("jaxlib", "0.8.0", "arm", {"clang": "18", "bazel": "7.4.1"}),
    ("jaxlib", "0.6.2", "amd", {"rocm": "6.*", "clang": "18"}),
    ("onnxruntime", "1.22.0", "x86", {"cuda": "12.8", "cudnn": "9"}),
    ("apache-tvm", "0.19.0", "x86", {"cuda": "12.4", "clang": "15", "distro": "ubuntu22.04"}),
    ("lightgbm", "4.6.0", "x86", {"cuda": "absent", "python": ">=3.7", "numpy": ">=1.17"}),
    ("xgboost", "3.2.0", "x86", {"cuda": ">=12.9", "gcc": ">=9", "python": ">=3.10"}),
]
BY_WHEEL = [
    ("torch", "2.6.0", "x86", {"cuda": "12.4", "cudnn": "9.1", "python": "3.9-3.13"}),
    ("torch", "1.13.1", "x86", {"cuda": "11.7", "cudnn": "8.5", "python": "3.7-3.11"}),
    ("apache-tvm", "0.26.0", "arm", {"gcc": "absent", "clang": "absent"}),
    ("lightgbm", "4.7.0", "arm", {"gcc": "absent", "scipy": "*", "python": ">=3.10"}),
]
REFUSED = [
    ("jaxlib", "0.6.2", "x86", "its wheel is for the CPU, CUDA comes as a plugin"),
    ("apache-tvm", "0.19.0", "arm", "there was no wheel"),
    ("lightgbm", "3.3.5", "amd", "its wheels compute on CPUs"),
    ("lightgbm", "3.1.1", "arm", "there was no wheel"),
]


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


def resolved(index: Index, component: str, version: str, target: str, from_: str) -> dict[str, str]:
    """The releases of the answer by component, or nothing where there is none."""
    way = InstallMethod(target=target, from_=from_)
    found = possible(index, sweep.request(index, (component, version), way))
    if found is None:
        return {}
    return {choice.component: choice.version for choice in found.targets[target]}


def unlike(index: Index, found: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    """What an answer holds that it should not, of the components that are looked at."""
    schemes = {name: part["scheme"] for name, part in index.header["components"].items()}
    wrong = {}
    for component, selector in wanted.items():
        held = (found[component],) if component in found else ()
        scale = Scale(schemes[component], held)
        if not scale.select(selector) & (scale.everything or 1):
            wrong[component] = found.get(component, "absent")
    return wrong


@pytest.mark.parametrize(("component", "version", "target", "wanted"), FROM_SOURCE)
def test_a_build_gets_what_its_makers_build_with(
    component: str, version: str, target: str, wanted: dict[str, str], index: Index
) -> None:
    found = resolved(index, component, version, target, "source")
    assert found
    assert unlike(index, found, wanted) == {}


@pytest.mark.parametrize(("component", "version", "target", "wanted"), BY_WHEEL)
def test_a_wheel_gets_what_it_was_built_with(
    component: str, version: str, target: str, wanted: dict[str, str], index: Index
) -> None:
    found = resolved(index, component, version, target, "wheel")
    assert found
    assert unlike(index, found, wanted) == {}


@pytest.mark.parametrize(("component", "version", "target", "reason"), REFUSED)
def test_a_wheel_that_does_not_fit_is_refused(
    component: str, version: str, target: str, reason: str, index: Index
) -> None:
    assert resolved(index, component, version, target, "wheel") == {}, reason


def test_the_comparison_can_fail(index: Index) -> None:
    assert unlike(index, {"cuda": "12.4.1"}, {"cuda": "11.8", "gcc": "9"}) == {
        "cuda": "12.4.1",
        "gcc": "absent",
    }


# torch 2.6.0 is published with the old C++ ABI (cu118, cu124) and with the new one (cu126). Wheels of flash-attn 2.8
# were compiled beside the latter, whatever their names say (flash-attention, issue 1783).
EXTENSIONS = [
    ("2.6.0+cu124", "8.9", "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    ("2.6.0+cu126", "8.9", "flash_attn-2.8.3+cu12torch2.6cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"),
    ("2.6.0+cu118", "8.0", "flash_attn-2.7.3+cu11torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    ("2.8.0+cu128", "12.0", "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"),
]  # fmt: skip


@pytest.mark.parametrize(("torch", "device", "file"), EXTENSIONS)
def test_an_extension_is_the_file_for_this_torch_and_its_abi(
    torch: str, device: str, file: str
) -> None:
    found = toolmatrix.resolve(
        "flash-attn", f"torch=={torch}", from_="wheel", device=device, with_="python==3.11"
    )
    assert isinstance(found, Resolved)
    told = found.to_json()["targets"]["x86"]["components"]["flash-attn"]["variant"]
    assert told["requirements"][0].rpartition("/")[2] == file


def test_a_wheel_whose_name_says_the_wrong_abi_is_not_offered() -> None:
    assert not toolmatrix.resolve(
        "flash-attn==2.8.2", "torch==2.6.0+cu124", from_="wheel", with_="python==3.11"
    )
