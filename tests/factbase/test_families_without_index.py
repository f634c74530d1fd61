"""What the matrix says of what comes with toolkits, and of frameworks with an index of their own: whole answers.

An answer is the exit code and the components with their releases; of a no, the facts of its first reason; of what
nobody can say, the facts that tell what was not read. Above each family stands what they were held against.
"""

from __future__ import annotations

import io
import json
import shlex
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
