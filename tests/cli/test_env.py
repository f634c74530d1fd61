"""`toolmatrix env`: which files count, which lines change and why, and what is written of the answer."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import toolmatrix
from tests.cli.transcript import check
from toolmatrix.api.answers import Resolved
from toolmatrix.errors import ManifestError, NothingMatched
from toolmatrix.resources import schema_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

DEVICE = "RTX 5090"
PROJECT = '[project]\nname = "a"\nrequires-python = ">=3.9"\ndependencies = [{}]\n'
CONDA = "dependencies:\n  - python=3.8\n  - cudatoolkit=11.3\n  - pytorch=1.12.1\n  - pip:\n    - our-own-package\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    """Files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


# Files, options, the versions of the answer, and the exit code.
TAKEN: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, str | None], int]] = {
    "requirements": (
        {"requirements.txt": "torch==2.1.0\ntorchvision==0.16.0\nnumpy<2\n"},
        {},
        {"torch": "2.1.0", "torchvision": "0.16.0", "numpy": "1.26.4", "cuda": "12.1.1"},
        0,
    ),
    "a project comes before requirements": (
        {"pyproject.toml": PROJECT.format('"torch==2.4.1"'), "requirements.txt": "torch==2.1.0"},
        {},
        {"torch": "2.4.1"},
        0,
    ),
    "a pin of two numbers is one release": (
        {"requirements.txt": "torch==2.1\ntorchvision==0.16.*\n"},
        {},
        {"torch": "2.1.0", "torchvision": "0.16.0"},
        0,
    ),
    "requirements pin what a project leaves open, and add to it": (
        {
            "setup.py": "from setuptools import setup\nsetup(install_requires=['torch'])\n",
            "requirements.txt": "torch==2.3.1\ntransformers==4.41.0\n",
        },
        {},
        {"torch": "2.3.1", "transformers": "4.41.0"},
        0,
    ),
    "a pin of requirements gives way to a project": (
        {
            "pyproject.toml": PROJECT.format('"torch>=2.4,<2.5"'),
            "requirements.txt": "torch==2.3.1\nnumpy==1.26.4\n",
        },
        {},
        {"torch": "2.4.1", "numpy": "1.26.4"},
        0,
    ),
    "an environment of conda adds what the code imports": (
        {
            "setup.py": "from setuptools import setup\nsetup(install_requires=['torch'])\n",
            "environment.yaml": "dependencies:\n  - pytorch=2.3.1\n  - torchaudio=2.3.1\n  - einops=0.7.0\n",
            "a.py": "import torch, einops\n",
        },
        {},
        {"torch": "2.15.0", "einops": "0.7.0", "torchaudio": None},
        0,
    ),
    "what the README says to install comes first": (
        {
            "setup.py": "from setuptools import setup\nsetup(install_requires=['torch'])\n",
            "environment.yaml": "dependencies:\n  - pytorch=2.3.1\n  - torchaudio=2.3.1\n",
            "README.md": "    conda env create -f environment.yaml\n",
        },
        {},
        {"torch": "2.3.1", "torchaudio": "2.3.1"},
        0,
    ),
    "a framework of a corner is not added": (
        {"requirements.txt": "torch==2.3.1\n", "a.py": "import torch\n", "b.py": "import jax\n"},
        {},
        {"torch": "2.3.1", "jax": None},
        0,
    ),
    "an import that no fact joins is not added": (
        {"requirements.txt": "torch==2.3.1\n", "a.py": "import librosa, detectron2, fairseq2\n"},
        {},
        {"torch": "2.3.1"},
        0,
    ),
    "commands of a README are examples": (
        {
            "requirements.txt": "torch\n",
            "README.md": "```\npip install torch==1.7.1 xformers==0.0.29.post3\n```\n",
            "a.py": "import torch, xformers\n",
        },
        {},
        {"torch": "2.6.0", "xformers": "0.0.29.post3"},
        0,
    ),
    "what code imports is added": (
        {"requirements.txt": "torch==2.1.0\n", "a.py": "import torch, cv2, yaml\nimport own\n"},
        {},
        {"torch": "2.1.0", "opencv-python": "4.8.1.78"},
        0,
    ),
    "what only code imports that nothing leads to is not added": (
        {
            "pyproject.toml": PROJECT.format('"torch==2.1.0"'),
            "own/__init__.py": "import torch\n",
            "own/image.py": "import cv2\n",
        },
        {},
        {"torch": "2.1.0", "opencv-python": None},
        0,
    ),
    "a sentence names the releases of what code imports": (
        {
            "a.py": "import torch, torchvision, timm\n",
            "README.md": "Tested with Python 3.8, PyTorch 1.8.1 and CUDA 11.1.\n\n- `timm==0.4.12`\n",
        },
        {},
        {"torch": "1.8.1", "torchvision": "0.9.1", "timm": "0.4.12", "python": "3.8"},
        0,
    ),
    "names that later releases lack bound what a file leaves open": (
        {
            "requirements.txt": "torch\nnumpy\n",
            "a.py": "import numpy as np\nfrom torch._six import inf\nx = np.float(inf)\n",
        },
        {},
        {"torch": "1.13.1", "numpy": "1.23.5"},
        0,
    ),
    "names that later releases lack bound what code imports": (
        {"a.py": "import tensorflow as tf\ntf.Session()\n"},
        {},
        {"tensorflow": "1.15.5", "python": "3.7"},
        4,
    ),
    "a name that a Python lacks": (
        {"requirements.txt": "torch==2.3.1\n", "a.py": "import imp\n"},
        {},
        {"torch": "2.3.1", "python": "3.11"},
        0,
    ),
    "a name gives way to a pin": (
        {"requirements.txt": "numpy==1.26.4\n", "a.py": "import numpy\nnumpy.int(3)\n"},
        {},
        {"numpy": "1.26.4"},
        0,
    ),
    "a name bounds a package of which only later releases are known": (
        {
            "requirements.txt": "torch==2.3.1\nopenai\n",
            "a.py": "import openai\nopenai.ChatCompletion\n",
        },
        {},
        {"torch": "2.3.1", "openai": None},
        0,
    ),
    "a sentence gives way to a file": (
        {
            "a.py": "import torch, timm\n",
            "requirements.txt": "torch==2.1.0\n",
            "README.md": "Requires Python 3.8 and PyTorch 1.8.1.\n\n- `timm==0.4.12`\n",
        },
        {},
        {"torch": "2.1.0", "timm": "0.4.12", "python": "3.11"},
        0,
    ),
    "sentences of several releases name none": (
        {
            "a.py": "import torch\n",
            "README.md": "Tested with PyTorch 1.8.1.\n",
            "docs/INSTALL.md": "Tested with PyTorch 1.13.1.\n",
        },
        {},
        {"torch": "2.15.0"},
        4,
    ),
    "a sentence about another package": (
        {"a.py": "import torch\n", "README.md": "Its timm requires PyTorch 1.8.1.\n"},
        {},
        {"torch": "2.15.0"},
        4,
    ),
    "the narrowest of several sentences": (
        {
            "a.py": "import torch\n",
            "README.md": "Requires PyTorch >= 1.7. Tested with PyTorch 1.13.1.\n",
        },
        {},
        {"torch": "1.13.1"},
        0,
    ),
    "packages of Python alone": ({"requirements.txt": "requests\n"}, {}, {"python": "3.15"}, 0),
    "code without a framework": ({"a.py": "import requests\n"}, {}, {"python": "3.15"}, 4),
    "code alone asks for no release": ({"a.py": "import torch\n"}, {}, {"torch": "2.15.0"}, 4),
    "an import gives way to a line": (
        {"requirements.txt": "torch==1.13.1\n", "a.py": "import vllm\n"},
        {},
        {"torch": "1.13.1"},
        4,
    ),
    "another package with the module is there": (
        {"requirements.txt": "torch==2.1.0\nopencv-python-headless\n", "a.py": "import cv2\n"},
        {},
        {"torch": "2.1.0", "opencv-python": None},
        0,
    ),
    "a project without dependencies asks for nothing": (
        {"pyproject.toml": "[tool.black]\n", "requirements.txt": "torch==2.1.0\n"},
        {},
        {"torch": "2.1.0"},
        0,
    ),
    "a setup.cfg that asks for nothing leaves it to setup.py": (
        {
            "setup.cfg": "[flake8]\nmax-line-length = 100\n",
            "setup.py": "from setuptools import setup\nsetup(install_requires=['torch==2.1.0'])\n",
        },
        {},
        {"torch": "2.1.0"},
        0,
    ),
    "the first extra with a framework": (
        {
            "pyproject.toml": PROJECT.format('"numpy<2"')
            + '[project.optional-dependencies]\ntest = ["torch==1.13.1"]\ngpu = ["torch==2.4.1"]\n'
        },
        {},
        {"torch": "2.4.1", "numpy": "1.26.4"},
        0,
    ),
    "requirements come before conda, which adds its Python": (
        {"requirements.txt": "torch==1.13.1\n", "environment.yml": CONDA},
        {},
        {"torch": "1.13.1", "python": "3.8", "cuda": "11.7.1"},
        0,
    ),
    "a conda environment with the line of its toolkit": (
        {"environment.yml": CONDA},
        {},
        {"torch": "1.12.1", "python": "3.8", "cuda": "11.3.1"},
        0,
    ),
    "conda's own pip goes with any Python": (
        {
            "environment.yml": "channels: [pytorch]\ndependencies:\n  - python=3.6\n"
            "  - pytorch=1.4\n  - cudatoolkit=10.1\n  - pip\n"
        },
        {},
        {"torch": "1.4.0", "python": "3.6", "cuda": "10.1.243"},
        0,
    ),
    "of a package of Python alone earlier releases than the known ones go with an old Python": (
        {"requirements.txt": "torch==1.4.0\nboto3\nflask\n", ".python-version": "3.6\n"},
        {},
        {"torch": "1.4.0", "python": "3.6", "flask": "2.0.3"},
        4,
    ),
    "nothing is newer than what was compiled against it, where no fact joins them": (
        {"requirements.txt": "torch>=1.8\nmmcv-full==1.7.0\n"},
        {},
        {"torch": "1.13.0", "mmcv-full": "1.7.0"},
        4,
    ),
    "a folder of requirements, for the accelerator": (
        {
            "requirements/common.txt": "numpy<2\n",
            "requirements/cuda.txt": "-r common.txt\ntorch==2.4.1\n",
            "requirements/rocm.txt": "torch==2.3.1\n",
            "requirements/test.txt": "torch==2.0.1\n",
        },
        {},
        {"torch": "2.4.1", "numpy": "1.26.4"},
        0,
    ),
    "the last stage of a Dockerfile, without its toolkit": (
        {
            "Dockerfile": "FROM nvidia/cuda:11.8.0-devel-ubuntu22.04\n"
            "RUN pip install torch==2.1.0 --index-url https://download.pytorch.org/whl/cu121\n"
        },
        {},
        {"torch": "2.1.0", "cuda": "12.1.1"},
        0,
    ),
    "a version file": (
        {"requirements.txt": "torch==2.1.0\n", ".python-version": "3.9.18\n"},
        {},
        {"torch": "2.1.0", "python": "3.9"},
        0,
    ),
    "a lock is preferred": (
        {
            "pyproject.toml": PROJECT.format('"torch>=2.4"'),
            "uv.lock": '[[package]]\nname = "torch"\nversion = "2.6.0"\n',
        },
        {},
        {"torch": "2.6.0"},
        0,
    ),
    "a marker that depends on Python": (
        {
            "requirements.txt": "torch==2.1.0\nnumpy==1.25.2; python_version < '3.13'\n"
            "numpy==2.1.0; python_version >= '3.13'\n"
        },
        {},
        {"torch": "2.1.0", "numpy": "1.25.2"},
        0,
    ),
    "the nearest release for a device": (
        {"requirements.txt": "torch==2.1.0\ntorchvision==0.16.0\n"},
        {"device": DEVICE},
        {"torch": "2.7.0", "torchvision": "0.22.0", "cuda": "12.8.0"},
        0,
    ),
    "an option is more binding than a file": (
        {"requirements.txt": "torch==2.1.0\n", ".python-version": "3.8\n"},
        {"with_": "python==3.11"},
        {"torch": "2.1.0", "python": "3.11"},
        0,
    ),
    "an index that has no build for the device": (
        {
            "requirements.txt": "--extra-index-url https://download.pytorch.org/whl/cu118\n"
            "torch==2.7.0+cu118\n"
        },
        {"device": DEVICE},
        {"torch": "2.7.0", "cuda": "12.8.0"},
        0,
    ),
    "a local version without its index": (
        {"requirements.txt": "torch==1.7.1+cu110\ntorchvision==0.8.2+cu110\n"},
        {},
        {"torch": "1.7.1", "cuda": "11.0.3"},
        0,
    ),
    "an index for another accelerator": (
        {"requirements.txt": "--index-url https://download.pytorch.org/whl/cu126\ntorch==2.7.1\n"},
        {"target": "amd"},
        {"torch": "2.7.1"},
        0,
    ),
    "a table with a source": (
        {
            "pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.8,<3.11"\nfire = "*"\n'
            'torch = {version = "^1.13.1", source = "a"}\n[[tool.poetry.source]]\nname = "a"\n'
            'url = "https://download.pytorch.org/whl/cu117"\npriority = "explicit"\n'
        },
        {},
        {"torch": "1.13.1", "cuda": "11.7.1", "python": "3.10"},
        0,
    ),
    "an extra that later releases do not have": (
        {"requirements.txt": "jax[cuda12_pip]==0.4.25\n"},
        {"device": DEVICE},
        {"jax": "0.6.0"},
        0,
    ),
    "a release that the index no longer has": (
        {"requirements.txt": "torch==0.3.1\n"},
        {},
        {"torch": "1.0.0"},
        0,
    ),
    "a release that the matrix does not know": (
        {"requirements.txt": "jax==0.1.60\n"},
        {},
        {"jax": "0.2.11"},
        4,
    ),
    "a framework for the CPU beside one for the device": (
        {"requirements.txt": "jax\ntensorflow-cpu\n"},
        {"device": DEVICE},
        {"cuda": "13.0.0"},
        4,
    ),
    "a Python that is newer than all pins": (
        {"requirements.txt": "tensorflow==2.14.0\nscikit-learn==1.3.1\nxgboost==2.0.0\n"},
        {"with_": "python==3.12"},
        {"tensorflow": "2.16.1", "python": "3.12", "xgboost": "2.0.0"},
        4,
    ),
    "a bound on Python that is newer than all pins": (
        {"pyproject.toml": PROJECT.replace("3.9", "3.13").format('"jax==0.4.25", "numpy"')},
        {},
        {"python": "3.13"},
        0,
    ),
    "steps of a README, and an alternative": (
        {
            "README.md": "```\nconda create -n a python=3.9\n```\n```\npip install jax\n```\n"
            "```\npip install torch==1.12.1 torchvision==0.13.1\n```\n```\npip install timm==0.6.7 wandb\n```\n",
            "a.py": "import timm, torch\n",
        },
        {},
        {"torch": "1.12.1", "timm": "0.6.7", "python": "3.9", "jax": None},
        0,
    ),
    "two frameworks that bring an nvcc each": (
        {
            "setup.py": "from setuptools import setup\nsetup(install_requires=['jax', 'tensorflow==2.18.1'])\n"
        },
        {},
        {"jax": "0.4.35", "tensorflow": "2.18.1", "cuda": "12.5.1"},
        0,
    ),
    "no wheel for the device": (
        {"requirements.txt": "tensorflow==2.10.0\n"},
        {"device": DEVICE},
        {},
        1,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_the_environment_of_a_repository(name: str, tmp_path: Path) -> None:
    files, options, versions, code = TAKEN[name]
    answer = toolmatrix.env(write(tmp_path, files), **options)
    assert {key: answer.versions.get(key) for key in versions} == versions
    assert answer.exit_code == code


# Lines of requirements, and the words of the command that installs them.
INSTALLED = {
    "fastapi[standard]\nnumpy[a,b]<2\n": ["numpy[a,b]==1.26.4", "fastapi[standard]==0.165.0"],
    # Names of the past.
    "PIL\nsklearn\nnumpy<2\nscipy<1.14\n": [
        "pillow==13.0.0",
        "scikit-learn==1.9.1",
        "numpy==1.26.4",
        "scipy==1.13.1",
    ],
    # torch requires its libraries at one release each.
    "torch==2.6.0\nnumpy==2.1.3\nnvidia-cudnn-cu12==8.9.2.26\nnvidia-cublas-cu12==12.1.3.1\n": [
        "torch==2.6.0",
        "numpy==2.1.3",
    ],
    # What was not checked may require earlier releases of what nothing pins.
    "einops\nour-own-package==1.0\nnumpy<2\ntorch==2.1.0\nsix==1.16.0\ntqdm>=4,<5\n": [
        "torch==2.1.0",
        "numpy<=1.26.4",
        "six==1.16.0",
        "tqdm>=4,<=4.70.1",
        "einops<=0.8.2",
        "our-own-package==1.0",
    ],
}


@pytest.mark.parametrize("lines", INSTALLED)
def test_the_requirements_of_an_environment(lines: str, tmp_path: Path) -> None:
    plan = toolmatrix.env(write(tmp_path, {"requirements.txt": lines})).plans["x86"]
    [command] = plan.commands("uv")[1:]
    assert sorted(shlex.split(command)[3:]) == sorted(INSTALLED[lines])
    assert not any("[" in pin for pin in plan.pins)


def test_the_order_of_a_file_chooses_nothing(tmp_path: Path) -> None:
    # The newest huggingface-hub goes with a transformers before those that require it.
    lines = ["torch==2.4.0", "huggingface-hub", "transformers"]
    first, second = (
        toolmatrix.env(write(tmp_path / str(at), {"requirements.txt": "\n".join(ordered)}))
        for at, ordered in enumerate((lines, lines[::-1]))
    )
    assert first.versions == second.versions
    assert int(first.versions["transformers"].partition(".")[0]) > 3


def test_a_setup_that_imports_torch_is_run_beside_it(tmp_path: Path) -> None:
    lines = "torch==2.5.1\nnumpy==2.1.3\ndetectron2\n"
    plan = toolmatrix.env(write(tmp_path, {"requirements.txt": lines})).plans["x86"]
    detectron = "'detectron2 @ git+https://github.com/facebookresearch/detectron2.git'"
    assert plan.commands("uv")[1:] == [
        "uv pip install torch==2.5.1 numpy==2.1.3 setuptools wheel",
        f"uv pip install {detectron} --no-build-isolation",
    ]


def test_releases_before_the_known_ones_are_no_change(tmp_path: Path) -> None:
    # Of IPython the releases for this Python are known, and one of them is taken.
    files = {"requirements.txt": "torch==1.11.0\n", ".python-version": "3.8\n"}
    answer = toolmatrix.env(write(tmp_path, files | {"a.py": "import IPython\nimport cv2\n"}))
    document = answer.to_json()
    assert (document["findings"], document["unchecked"]) == ([], [])
    assert " ipython" in answer.plans["x86"].commands("uv")[-1]


def test_code_that_the_repository_compiles_is_named(tmp_path: Path) -> None:
    extension = "from torch.utils.cpp_extension import CUDAExtension\nkind = CUDAExtension\n"
    files = {
        "requirements.txt": "torch==2.3.1\n",
        "lib/ops/setup.py": extension,
        "tests/setup.py": extension,
        "setup.py": "from setuptools import setup\nsetup(name='a')\n",
    }
    answer = toolmatrix.env(write(tmp_path, files))
    assert answer.to_json()["compiled"] == ["lib/ops"]
    assert "nvcc of CUDA 12.1.1" in answer.text()
    assert "  uv pip install --no-build-isolation --no-deps ./lib/ops\n" in answer.text()


def test_golden(real: Cli, here: Path) -> None:
    text = "torch==2.1.0\ntorchvision==0.16.0\nnumpy<2\nour-own-package\n-e .\n"
    write(here, {"requirements.txt": text})
    check(real, "changed", f"env --device '{DEVICE}' --with python==3.11")


def test_the_document_keeps_to_its_schema(real: Cli, here: Path) -> None:
    with open(schema_path("environment"), encoding="utf-8") as stream:
        schema = json.load(stream)
    write(
        here,
        {
            "requirements.txt": "torch==2.1.0\ngit+https://example.org/a.git\nour-own-package\nsix==0.9\n"
        },
    )
    for options in ((), ("--device", DEVICE), ("--with", "torch==2.4.0", "--device", DEVICE)):
        document = real("env", ".", *options, "--json").json()
        jsonschema.validate(document, schema)
        # Of a package of Python alone no fact asks for one of the releases that are known.
        assert document["unchecked"] == [
            "our-own-package",
            "six==0.9",
            "git+https://example.org/a.git",
        ]
    assert (document["environment"], document["outcome"]) == (None, "no")


def test_a_change_names_its_place_and_its_reason(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "# ours\ntorch==2.1.0\nxformers==0.0.22\n"})
    [finding] = toolmatrix.env(tmp_path).to_json()["findings"]
    assert finding["code"] == "TM106"
    assert finding["where"] is not None
    assert finding["where"]["line"] == 3
    assert finding["text"] == "xformers==0.0.22 -> xformers==0.0.22.post7"
    assert finding["because"] == [
        "you require torch==2.1.0",
        "xformers 0.0.22 does not go with torch 2.1.0 (only ==2.0.1)",
    ]


def test_an_answer_that_facts_support_names_the_newer_one(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "torch\nnumpy\ntransformers\ntokenizers==0.12.1\n"})
    answer = toolmatrix.env(tmp_path)
    assert answer.exit_code == 0
    assert answer.versions["numpy"] == "1.26.4"
    assert "no fact supports numpy 2.2.6 here: transformers 4.33.3 goes with" in str(
        answer
    ).replace("\n  ", " ")


def test_a_refusal_names_the_lines_that_have_no_answer(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "numpy\ntensorflow==2.10.0\n"})
    answer = toolmatrix.env(tmp_path, device=DEVICE)
    document = answer.to_json()
    [finding] = document["findings"]
    assert (finding["code"], finding["severity"]) == ("TM101", "error")
    assert finding["text"] == "no release works here for tensorflow==2.10.0"
    assert finding["where"] is not None
    assert finding["where"]["line"] == 2
    assert document["conflict"] is not None
    assert str(answer).startswith("no\n")


def test_what_no_fact_decides_is_in_the_document(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "torch==2.0.1\nmamba-ssm==2.2.2\n"})
    document = toolmatrix.env(tmp_path).to_json()
    assert document["outcome"] == "unknown"
    assert any("mamba-ssm 2.2.2" in text for text in document["undecided"])


def test_requirements_add_no_package_of_an_extra_that_no_fact_is_about(tmp_path: Path) -> None:
    extra = "{'all': ['our-own-package', 'einops']}"
    write(
        tmp_path,
        {
            "setup.py": f"import setuptools\nsetuptools.setup(install_requires=['torch'], extras_require={extra})\n",
            "requirements.txt": "our-own-package==1.0\nour-further-package\neinops==0.7.0\n",
        },
    )
    answer = toolmatrix.env(tmp_path)
    assert answer.versions["einops"] == "0.7.0"
    assert answer.to_json()["unchecked"] == ["our-further-package"]


@pytest.mark.parametrize(
    "line",
    [
        "mamba-ssm @ file:///a/mamba_ssm-1.0.1%2Bcu118torch2.1cxx11abiFALSE-cp310-cp310-linux_x86_64.whl",
        "torch===2.1.0+weird.1",
        "torch==2.*",
        "torch!=2.1.0",
        "torch>99",
    ],
)
def test_odd_lines_have_an_answer(line: str, tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": f"torch\n{line}\n"})
    assert "torch" in toolmatrix.env(tmp_path).versions


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, NothingMatched),
        ({"requirements.txt": "our-own-package\n"}, NothingMatched),
        ({"requirements-dev.txt": "torch\n"}, NothingMatched),
        ({"environment.yml": "dependencies:\n  - python=3.10\n"}, NothingMatched),
    ],
)
def test_nothing_to_solve(files: dict[str, str], error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        toolmatrix.env(write(tmp_path, files))


def test_a_folder_without_files_that_count_names_those_that_do(tmp_path: Path) -> None:
    workflow = "jobs:\n  a:\n    steps:\n      - run: pip install torch==2.8.0\n"
    write(tmp_path, {".github/workflows/a.yml": workflow})
    with pytest.raises(NothingMatched) as caught:
        toolmatrix.env(tmp_path)
    assert "requirements.txt" in caught.value.expected
    assert "pipeline" not in caught.value.expected


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ManifestError):
        toolmatrix.env(tmp_path / "requirements.txt")


def test_files_are_not_read_outside_the_repository(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("torch==2.1.0\n")
    inside = write(tmp_path / "repository", {"environment.yml": "dependencies:\n  - numpy\n"})
    (inside / "requirements.txt").symlink_to(outside)
    answer = toolmatrix.env(inside)
    assert "torch" not in answer.versions
    assert "leaves the judged directory" in str(answer)
    (inside / "environment.yml").unlink()
    with pytest.raises(ManifestError):
        toolmatrix.env(inside)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("onnxruntime==1.20.1", "1.20.1 as onnxruntime-gpu  "),
        ("jax==0.4.30", "0.4.30 as jax[cuda12]  "),
        ("jax[cuda12]==0.4.30", "0.4.30  "),
    ],
)
def test_the_package_for_a_device_is_named_beside_the_written_one(
    written: str, shown: str, real: Cli, here: Path
) -> None:
    write(here, {"requirements.txt": f"{written}\n"})
    out = real("env", ".", "--device", "RTX 4090").out
    assert f"  {written}  {shown}" in out


@pytest.mark.parametrize("release", ["1.13.1", "2.1.0", "2.4.1", "2.8.0"])
def test_what_resolve_answers_is_not_changed(release: str, tmp_path: Path) -> None:
    wanted = (f"torch=={release}", "torchvision", "torchaudio")
    chosen = toolmatrix.resolve(*wanted, from_="wheel")
    assert isinstance(chosen, Resolved)
    versions = {
        name: chosen.components[name].version for name in ("torch", "torchvision", "torchaudio")
    }
    lines = "".join(f"{name}=={version}\n" for name, version in versions.items())
    answer = toolmatrix.env(write(tmp_path, {"requirements.txt": lines}))
    assert answer.to_json()["findings"] == []
    assert versions.items() <= answer.versions.items()
