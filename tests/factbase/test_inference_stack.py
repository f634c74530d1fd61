"""What the matrix says of NVIDIA's inference stack: TensorRT, the images that hold it, and what is built on it."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest

from toolmatrix.cli.main import main

STACK = ("base-image", "distro", "python", "cuda", "cudnn", "nccl", "tensorrt")


def resolve(cache: str, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """The components of the answer, by name."""
    out, err = StringIO(), StringIO()
    assert main(["resolve", *words, "--json"], {"XDG_CACHE_HOME": cache}, StringIO(), out, err) == (
        code
    ), out.getvalue() + err.getvalue()
    components: dict[str, dict[str, Any]] = json.loads(out.getvalue())["targets"]["x86"][
        "components"
    ]
    return components


def held(components: dict[str, dict[str, Any]], *names: str) -> dict[str, str]:
    """Their versions, of the ones that are there."""
    return {name: components[name]["version"] for name in names if name in components}


@pytest.mark.parametrize("series", ["tensorrt", "pytorch"])
def test_an_image_of_a_month_brings_what_the_pages_of_the_month_list(
    cache: str, series: str
) -> None:
    assert held(resolve(cache, f"ngc-{series}==24.05"), *STACK) == {
        "base-image": f"nvcr.io/nvidia/{series}:24.05-py3",
        "distro": "ubuntu22.04",
        "python": "3.10",
        "cuda": "12.4.1",
        "cudnn": "9.1.0.70",
        "nccl": "2.21.5",
        "tensorrt": "10.0.1.6",
    }


def test_what_nobody_read_of_an_image_is_told(cache: str) -> None:
    components = resolve(cache, "ngc-pytorch==24.06", code=4)
    assert components.keys().isdisjoint({"base-image", "tensorrt", "cudnn"})


def test_the_image_of_a_month_is_not_that_of_another(cache: str) -> None:
    components = resolve(cache, "ngc-tritonserver==25.10")
    assert held(components, "base-image", "tritonserver", "cuda") == {
        "base-image": "nvcr.io/nvidia/tritonserver:25.10-py3",
        "tritonserver": "2.62.0",
        "cuda": "13.0.2",
    }


def test_a_server_names_its_image(cache: str) -> None:
    components = resolve(cache, "triton-inference-server==2.46.0")
    assert components["base-image"]["version"] == "nvcr.io/nvidia/tritonserver:24.05-py3"


def test_the_tensorrt_inside_an_image_is_found_from_the_release(cache: str) -> None:
    components = resolve(cache, "tensorrt==10.0.1.6", "ngc-tensorrt")
    assert components["ngc-tensorrt"]["version"] == "24.05"


def test_rocm_on_a_distribution_that_nvidia_has_images_of_takes_none_of_them(cache: str) -> None:
    words = ("resolve", "rocm==6.0.0", "distro==ubi8", "--target", "amd")
    out = StringIO()
    assert main(words, {"XDG_CACHE_HOME": cache}, StringIO(), out, StringIO()) == 0
    assert "base-image registry.access.redhat.com/ubi8/ubi:latest" in out.getvalue()


def test_no_other_answer_takes_an_image_of_nvidias_frameworks(cache: str) -> None:
    for asked in ("tensorrt==10.9", "torch==2.6.0", "tensorflow==2.18.0"):
        image = resolve(cache, asked)["base-image"]["version"]
        assert image.startswith("nvidia/cuda:")


@pytest.mark.parametrize(("package", "cuda"), [("tensorrt-cu12", "12."), ("tensorrt-cu13", "13.")])
def test_a_package_of_tensorrt_is_for_one_major_of_the_toolkit(
    cache: str, package: str, cuda: str
) -> None:
    components = resolve(cache, f"{package}==10.15.1.29")
    assert components["cuda"]["version"].startswith(cuda)
    assert components["tensorrt"]["version"] == "10.15.1.29"


def test_tensorrt_llm_brings_the_torch_and_the_tensorrt_of_its_metadata(cache: str) -> None:
    components = resolve(cache, "tensorrt-llm==1.2.1")
    assert held(components, "torch", "tensorrt", "nvidia-modelopt", "triton") == {
        "torch": "2.9.1",
        "tensorrt": "10.14.1.48.post1",
        "nvidia-modelopt": "0.37.0",
        "triton": "3.5.1",
    }
    assert components["cuda"]["version"].startswith("13.")
    assert "tensorrt-llm-requires/1.2.1#torch" in components["torch"]["facts"]


def test_a_tensorrt_llm_whose_metadata_names_nothing_is_not_vouched_for(cache: str) -> None:
    resolve(cache, "tensorrt-llm==0.11.0", code=4)


def test_torch_tensorrt_ties_torch_to_tensorrt(cache: str) -> None:
    components = resolve(cache, "torch-tensorrt==2.6.0")
    assert held(components, "torch", "tensorrt") == {"torch": "2.6.0", "tensorrt": "10.7.0.post1"}


def test_what_no_metadata_states_is_unknown(cache: str) -> None:
    resolve(cache, "pytorch-quantization", code=4)
    resolve(cache, "transformer-engine", "--from", "wheel", "--device", "9.0", code=4)


def test_onnxruntime_for_cuda_12_with_cudnn_8_is_on_the_feed(cache: str) -> None:
    components = resolve(cache, "onnxruntime-gpu", "cuda==12.1", "cudnn==8.9")
    assert held(components, "onnxruntime", "base-image") == {
        "onnxruntime": "1.18.0",
        "base-image": "nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04",
    }
    assert components["cudnn"]["version"].startswith("8.9.")


def test_two_frameworks_in_one_environment_share_what_both_require(cache: str) -> None:
    components = resolve(
        cache, "torch==2.6.*", "tensorflow==2.18.*", "--device", "9.0", "--from", "source"
    )
    shared = held(components, "torch", "tensorflow", "cuda", "cudnn", "numpy", "protobuf")
    assert shared == {
        "torch": "2.6.0",
        "tensorflow": "2.18.1",
        "cuda": "12.5.1",
        "cudnn": "9.3.0.75",
        "numpy": "2.0.2",
        "protobuf": "5.29.6",
    }
