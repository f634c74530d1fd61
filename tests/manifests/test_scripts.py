"""Scripts, Makefiles, READMEs, pipelines and Cog: what their commands install, cut from the shapes of public ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.manifests.test_containers import read_in, told
from toolmatrix.manifests import read

if TYPE_CHECKING:
    from pathlib import Path

BESIDE = {
    "requirements.txt": "numpy<2\ntorch\n",
    "sub/requirements.txt": "scipy\n",
    "environment.yml": "dependencies: [pytorch=1.12, pip: [torchvision]]\n",
    "requirements/gpu.txt": "onnxruntime-gpu==1.16.0\n",
}
CONDITION = "a condition decides whether it is installed"
TORCH = "https://download.pytorch.org/whl"

CASES: dict[str, tuple[str, str, dict[str, list[str]], list[str]]] = {
    # OpenTalker/SadTalker: steps of one block, and a file that names a package again.
    "steps of a README": (
        "README.md",
        f"""\
# x
```bash
git clone https://github.com/a/x.git
cd x
conda create -n x python=3.8
pip install torch==1.12.1+cu113 --extra-index-url {TORCH}/cu113  # the card's
pip install -r requirements.txt
python -m venv y && pip install jax
```
```
conda env create -f environment.yml -n y
pip install pandas
conda env update --file=none.yml
```
```python
pip install jax
```
Then `pip install pandas`.
""",
        {
            "line 5": ["python==3.8.* 5", "torch==1.12.1+cu113 6", "numpy<2 1", "torch 2"],
            "line 8": ["jax 8"],
            "line 1": ["pytorch==1.12.* 1", "torchvision 1", "pandas 12"],
        },
        ["none.yml: not a file of the project"],
    ),
    # Alternatives of one block, and of several.
    "alternatives of a README": (
        "README.md",
        f"""\
~~~shell
# CUDA 11.0
$ pip install torch==1.7.1+cu110 \\
    torchvision==0.8.2+cu110 -f {TORCH}/torch_stable.html
Successfully installed torch-1.7.1
# CPU
$ pip install torch==1.7.1+cpu torchvision==0.8.2+cpu
(x) $ pip install scipy
~~~
1. Or
   ```
   pip install torch==1.6.0
   ```
""",
        {
            "line 3": ["torch==1.7.1+cu110 3", "torchvision==0.8.2+cu110 4"],
            "line 7": ["torch==1.7.1+cpu 7", "torchvision==0.8.2+cpu 7", "scipy 8"],
            "line 12": ["torch==1.6.0 12"],
        },
        [],
    ),
    "images of a README": (
        "docs/INSTALL.md",
        """\
```
docker run --gpus all -it nvidia/cuda:12.4.1-devel-ubuntu22.04 bash
pip install -r requirements.txt
git clone https://github.com/a/x && cd x && pip install -r requirements.txt && cd sub
pip install -r requirements.txt
git clone https://github.com/a/other && cd other && pip install -r requirements.txt
```
""",
        {
            "line 2": ["nvidia/cuda:12.4.1-devel-ubuntu22.04 2"],
            "line 1": [*["numpy<2 1", "torch 2"] * 2, "scipy 1"],
        },
        ["requirements.txt: not a file of the project"],
    ),
    "a script": (
        "install.sh",
        """\
#!/bin/bash
set -e
TORCH=2.1.0
install_cpu() {
    pip install torch==2.0.0
    pip install numpy
}
function none { pip install none; }
  inner() {
    echo
  }
cat <<'EOF' > other.sh
pip install other
EOF
if [ "$1" = gpu ]; then
    pip install xformers
fi
cd sub && pip install -r requirements.txt
pip install torch==${TORCH}
conda create -n other python=3.11
pip install pandas
""",
        {"line 1": ["scipy 1", "torch==2.1.0 19"], "line 20": ["python==3.11.* 20", "pandas 21"]},
        ["install_cpu() {: whether this function is called is not known", f"xformers: {CONDITION}"],
    ),
    "a Makefile": (
        "Makefile",
        """\
PYTHON ?= python3.10
TORCH := 2.1.0
export INDEX = https://download.pytorch.org/whl/cu118
.PHONY: install
install: requirements.txt
\t@$(PYTHON) -m pip install torch==$(TORCH) \\
\t--index-url $(INDEX)
\t-pip install "numpy<$${N:-2}" $@
gpu:: ; pip install jax
gpu:
\tpip install -r requirements/$(@F).txt -r requirements/gpu.txt
""",
        {"install": ["torch==2.1.0 6", "numpy<2 8"], "gpu": ["onnxruntime-gpu==1.16.0 1"]},
        ["${MAKE}: ${MAKE} is unknown", "requirements/$(@F).txt: $(...) is unknown"],
    ),
    # A matrix with what it includes and excludes, a container, conditions, and other systems.
    "a workflow": (
        ".github/workflows/conda.yml",
        """\
on: push
env:
  INDEX: https://download.pytorch.org/whl/cpu
jobs:
  test:
    runs-on: ${{ matrix.os }}
    strategy:
      matrix:
        os: [ubuntu-22.04, windows-2022]
        torch: ["2.1.0", "2.4.0"]
        include:
          - torch: "2.4.0"
            python: "3.12"
          - {os: ubuntu-24.04, torch: "2.5.0", python: "3.13"}
        exclude:
          - {os: ubuntu-22.04, torch: "2.1.0"}
    container: nvidia/cuda:${{ matrix.cuda || '1' }}-devel-ubuntu22.04
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - name: Install
        run: |
          pip install torch==${{ matrix.torch }} --index-url $INDEX

          pip install -r requirements.txt
      - run: pip install scipy==${{ inputs.scipy }}
      - if: github.event_name == 'push'
        run: pip install jax
      - run: pip install -r requirements.txt
        working-directory: sub
  docs:
    runs-on: [self-hosted]
    container: {image: python:3.11}
    steps:
      - run: pip install sphinx
""",
        {
            "test ubuntu-22.04 2.4.0 3.12": ["python==3.12 20", "torch==2.4.0 23", "numpy<2 1", "torch 2", "scipy 1"],
            "test ubuntu-24.04 2.5.0 3.13": ["python==3.13 20", "torch==2.5.0 23", "numpy<2 1", "torch 2", "scipy 1"],
            "docs": ["python:3.11 33", "sphinx 35"],
        },
        [
            *[
                "nvidia/cuda:${matrix_cuda_____1_}-devel-ubuntu22.04: ${matrix_cuda_____1_} is unknown",
                "scipy==${inputs_scipy}: ${inputs_scipy} is unknown",
                f"jax: {CONDITION}",
            ] * 2
        ],
    ),
    "a pipeline of GitLab": (
        ".gitlab-ci.yml",
        """\
image: python:3.9
variables: {TORCH: "2.1.0"}
.base:
  image: {name: "nvidia/cuda:${CUDA}-base-ubuntu22.04"}
  before_script: [pip install numpy]
test:
  extends: .base
  variables: {CUDA: 12.1.0}
  script:
    - pip install torch==$TORCH
    - |
      cd sub
      pip install -r requirements.txt
lint:
  script: pip install ruff
pages:
  stage: x
""",
        {
            "test": ["nvidia/cuda:12.1.0-base-ubuntu22.04 4", "numpy 5", "torch==2.1.0 10", "scipy 1"],
            "lint": ["python:3.9 1", "ruff 15"],
        },
        [],
    ),
    # OpenTalker/SadTalker and haotian-liu/LLaVA.
    "an image of Cog": (
        "cog.yaml",
        """\
build:
  gpu: true
  cuda: "11.3"
  python_version: "3.8"
  python_requirements: sub/requirements.txt
  python_packages:
    - "--extra-index-url https://download.pytorch.org/whl/cu113"
    - "torch==1.12.1"
  run:
    - pip install dlib
    - command: pip install facexlib --no-deps
predict: "predict.py:Predictor"
""",
        {"": ["python==3.8 4", "cuda==11.3 3", "scipy 1", "torch==1.12.1 8", "dlib 10", "facexlib 11"]},
        [],
    ),
    "a folder of requirements": (
        "requirements/base.txt",
        "-r gpu.txt\ntorch==2.1.0\n",
        {"": ["onnxruntime-gpu==1.16.0 1", "torch==2.1.0 2"]},
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_commands_are_read_where_they_are(name: str, tmp_path: Path) -> None:
    path, text, environments, unread = CASES[name]
    manifest = read_in(tmp_path, path, {**BESIDE, path: text})
    # What a file of requirements asks for stays in its order.
    assert told(manifest) == environments
    assert [f"{one.text.text}: {one.why}" for one in manifest.unread] == unread


def test_a_line_of_a_block_is_where_an_edit_replaces_it(tmp_path: Path) -> None:
    text = "jobs:\n  a:\n    steps:\n      - run: |\n          echo\n          pip install torch==2.1.0\n"
    manifest = read_in(tmp_path, ".github/workflows/a.yml", {".github/workflows/a.yml": text})
    (torch,) = manifest.environments[0].items
    assert torch.version
    assert torch.version.span == (text.index("==2.1.0"), text.index("==2.1.0") + 7)


def test_so_many_combinations_are_read(tmp_path: Path) -> None:
    text = "jobs:\n  a:\n    runs-on: x\n    strategy: {matrix: {a: [%s], b: [%s]}}\n" % (
        (",".join(map(str, range(1000))),) * 2
    )
    text += "    steps: [{run: 'pip install torch==${{ matrix.b }}'}]\n"
    manifest = read_in(tmp_path, ".github/workflows/a.yml", {".github/workflows/a.yml": text})
    assert len(manifest.environments) == 20
    assert [one.why for one in manifest.unread] == ["more than 20 combinations of its matrix"]


def test_which_files_of_a_folder_are_read(tmp_path: Path) -> None:
    wanted = [
        ".gitlab-ci.yml",
        "GNUmakefile",
        "README.md",
        "README_CN.md",
        "cog.yaml",
        "uv.lock",
        ".github/workflows/ci.yaml",
        "docs/installation.md",
        "reqs/cuda.in",
        "requirements/base.txt",
        "scripts/install_gpu.sh",
    ]
    for name in (
        *wanted,
        ".github/dependabot.yml",
        ".circleci/config.yml",
        "docs/usage.md",
        "scripts/run.sh",
        "x.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    assert [one.removeprefix(f"{tmp_path}/") for one in read.below(str(tmp_path))] == wanted


@pytest.mark.parametrize("option", ["--no-deps", "--no-dependencies"])
def test_requirements_are_ignored_by_either_name_of_the_option(option: str, tmp_path: Path) -> None:
    text = f"pip install xformers==0.0.23 {option}\n"
    manifest = read_in(tmp_path, "install.sh", {"install.sh": text})
    assert [item.bare for item in manifest.environments[0].items] == [True]
