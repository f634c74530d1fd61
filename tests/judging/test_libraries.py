"""Libraries that packages look for on the system, and images that have them, others of them, or none."""

from __future__ import annotations

from typing import Any

import pytest

from tests import matrix
from tests.judging.test_manifests import judged, refused
from toolmatrix.factbase.index import Index
from toolmatrix.judging.edits import smallest
from toolmatrix.request.judgement import JudgedFile

PIP = "RUN apt-get update && apt-get install -y python3-pip\n"
DEVICE = {"device": ("8.6",)}


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


def file(image: str, *commands: str) -> str:
    return f"FROM {image}\n{PIP}" + "".join(f"RUN {command}\n" for command in commands)


@pytest.mark.parametrize(
    ("text", "machine", "told"),
    [
        # Its image has CUDA and no cuDNN.
        (
            file("nvidia/cuda:12.4.1-runtime-ubuntu22.04", "pip install onnxruntime-gpu==1.19.2"),
            {},
            ["TM106 + cuda 12.4.1 + onnxruntime-gpu==1.19.2"],
        ),
        # Something else brings it, or may.
        *(
            (file("nvidia/cuda:12.4.1-runtime-ubuntu22.04", *commands), {}, [])
            for commands in (
                ("apt-get install -y libcudnn9-cuda-12", "pip install onnxruntime-gpu==1.19.2"),
                ("pip install onnxruntime-gpu[cuda,cudnn]==1.23.2",),
                ("pip install nvidia-cudnn-cu12==9.3.0.75 onnxruntime-gpu==1.19.2",),
                ("pip install torch==2.6.0 onnxruntime-gpu==1.19.2",),
                ("pip install onnxruntime-gpu==1.19.2 of-unknown-parts",),
                # It has loaded no cuDNN since.
                ("pip install ctranslate2==4.8.5",),
            )
        ),
        # Without a toolkit it computes on the processor, which is said of a device alone.
        ("FROM python:3.11-slim\nRUN pip install onnxruntime-gpu==1.23.2\n", {}, []),
        (
            "FROM python:3.11-slim\nRUN pip install onnxruntime-gpu==1.23.2\n",
            DEVICE,
            ["TM115 + onnxruntime-gpu==1.23.2"],
        ),
        # A release that nothing pins, and one that another package requires.
        (
            file("nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04", "pip install onnxruntime-gpu"),
            {},
            ["TM112 + cuda 11.8.0 + cudnn 8.9.6.50 + onnxruntime-gpu"],
        ),
        (
            file("nvidia/cuda:11.8.0-base-ubuntu22.04", "pip install faster-whisper==1.0.0"),
            {},
            ["TM112 + cuda 11.8.0 + faster-whisper==1.0.0"],
        ),
        # What was compiled with a later minor release of cuDNN does not run beside an earlier one.
        (
            file("nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04", "pip install tensorflow==2.18.0"),
            {},
            ["TM106 + cuda 12.4.1 + cudnn 9.1.0.70 + tensorflow==2.18.0"],
        ),
        (
            file("nvidia/cuda:12.9.1-cudnn-runtime-ubuntu22.04", "pip install tensorflow==2.18.0"),
            {},
            [],
        ),
    ],
)
def test_libraries_of_the_system_are_there(
    index: Index, text: str, machine: dict[str, Any], told: list[str]
) -> None:
    assert refused(judged(index, "Dockerfile", text, **machine)) == told


@pytest.mark.parametrize(
    ("commands", "outcome"),
    [
        # No release that it takes goes with the image.
        (["pip install faster-whisper==1.0.0"], "no"),
        # An older one does.
        (["pip install onnxruntime-gpu"], "yes"),
        # What is unknown may bring a library.
        (["pip install onnxruntime-gpu==1.16.3 of-unknown-parts"], "unknown"),
    ],
)
def test_a_release_that_fits_is_named(index: Index, commands: list[str], outcome: str) -> None:
    text = file("nvidia/cuda:11.8.0-runtime-ubuntu22.04", *commands)
    judgement = judged(index, "Dockerfile", text)
    assert JudgedFile(path="Dockerfile", judged=judgement).outcome == outcome


@pytest.mark.parametrize(
    ("image", "package", "near"),
    [
        ("12.4.1-runtime", "onnxruntime-gpu==1.19.2", "12.4.1-cudnn-runtime"),
        # The cuDNN of the same toolkit is too new for it.
        ("12.4.1-runtime", "tensorflow==2.15.0", "12.2.2-cudnn8-runtime"),
        ("12.4.1-cudnn-runtime", "tensorflow==2.18.0", "12.6.0-cudnn-runtime"),
    ],
)
def test_the_nearest_image_with_a_library(
    index: Index, image: str, package: str, near: str
) -> None:
    text = file(f"nvidia/cuda:{image}-ubuntu22.04", f"pip install {package}")
    edit = smallest(index, judged(index, "Dockerfile", text))
    assert edit is not None
    assert edit.files[0][2] == text.replace(f":{image}-", f":{near}-")
