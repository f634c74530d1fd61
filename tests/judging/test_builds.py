"""Source distributions that do not build where a file installs them."""

from __future__ import annotations

import pytest

from tests import matrix
from tests.judging.test_manifests import judged
from toolmatrix.factbase.index import Index

IMAGE = "FROM python:3.12\n"
PROJECT = '[project]\nname="x"\nversion="0"\ndependencies=["torch==2.3.0", "flash-attn==2.5.8"]\n'
TORCH = "RUN pip install torch==2.4.0\n"


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        # pip prepares all packages of a command before it installs the first.
        ("requirements.txt", "torch==2.1.0\nflash-attn==2.5.0\n", ["warning flash-attn"]),
        ("Dockerfile", f"{IMAGE}RUN pip install flash-attn\n{TORCH}", ["error flash-attn"]),
        (
            "environment.yml",
            "dependencies:\n- python=3.11\n- pip:\n  - torch==2.4.0\n  - flash-attn\n",
            ["error flash-attn"],
        ),
        # torch is there, but not for an isolated build.
        ("Dockerfile", f"{IMAGE}{TORCH}RUN pip install torch-scatter\n", ["warning torch-scatter"]),
        ("Dockerfile", f"{IMAGE}{TORCH}RUN pip install flash-attn --no-build-isolation\n", []),
        ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:24.05-py3\nRUN pip install flash-attn\n", []),
        # A list alone may be installed behind another.
        ("requirements.txt", "flash-attn==2.5.0\n", []),
        ("README.md", "```\npip install flash-attn\n```\n", []),
        # An index has its wheels, and newer releases say what they need.
        (
            "requirements.txt",
            "-f https://data.pyg.org/whl/torch-2.1.0+cu121.html\ntorch==2.1.0\ntorch-scatter\n",
            [],
        ),
        ("requirements.txt", "torch==2.4.0\nmamba-ssm==2.2.4\n", []),
        (
            "pyproject.toml",
            PROJECT,
            ["warning flash-attn"],
        ),
        (
            "pyproject.toml",
            f'{PROJECT}[tool.uv]\nno-build-isolation-package=["flash-attn"]\n',
            [],
        ),
        # It needs what newer releases of Python, setuptools or Cython no longer have.
        ("requirements.txt", "openai-whisper==20231117\n", ["error openai-whisper"]),
        ("requirements.txt", "openai-whisper\n", []),
        ("Dockerfile", f"{IMAGE}RUN pip install numpy==1.24.4\n", ["error numpy"]),
        ("Dockerfile", "FROM python:3.11\nRUN pip install numpy==1.24.4\n", []),
        ("Dockerfile", f"{IMAGE}RUN pip install PyYAML==5.4.1\n", ["error pyyaml"]),
        (
            "Dockerfile",
            f"{IMAGE}RUN pip install 'cython<3' && pip install --no-build-isolation PyYAML==5.4.1\n",
            [],
        ),
        ("Dockerfile", f"{IMAGE}RUN pip install tokenizers==0.13.3\n", ["error tokenizers"]),
        # It is what another package requires.
        ("Dockerfile", f"{IMAGE}RUN pip install transformers==4.30.2\n", ["error transformers"]),
        (
            "Dockerfile",
            f"{IMAGE}RUN apt-get install -y cargo && pip install tokenizers==0.13.3\n",
            [],
        ),
    ],
)
def test_source_distributions_that_do_not_build(
    index: Index, path: str, text: str, told: list[str]
) -> None:
    judgement = judged(index, path, text)
    findings = [one.finding for one in judgement.refusals if one.finding.code == "TM124"]
    assert [f"{one.severity} {one.component}" for one in findings] == told
