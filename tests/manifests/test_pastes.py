"""Pastes from public threads: what is read of each, where one ends and the next begins, and what is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import matrix
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files, pastes, read
from toolmatrix.manifests.model import MACHINE, FileText
from toolmatrix.request.fields import Fields
from toolmatrix.request.machine import target_machine
from toolmatrix.request.manifests import requested_parts
from toolmatrix.resources import load_yaml

if TYPE_CHECKING:
    from toolmatrix.manifests.model import ManifestEnvironment, ProjectManifest

HERE = Path(__file__).parent
# By file what is read of it: packages of the matrix with their versions, then values of the machine.
READ: dict[str, Any] = load_yaml(str(HERE / "pastes.yaml"))


def pasted(text: str, path: str = "stdin") -> ProjectManifest:
    return read.manifest(FileText(path, text))


def shown(environment: ManifestEnvironment) -> list[str]:
    return [
        f"{'' if item.kind == MACHINE else item.kind + ' '}{item.name} {item.specifier.removeprefix('==')}".strip()
        for item in environment.items
    ]


@pytest.mark.parametrize("name", sorted(os.listdir(HERE / "pastes")))
def test_a_paste_is_read(name: str) -> None:
    manifest = read.manifest(files.read_file(str(HERE / "pastes" / name)))
    assert manifest.kind == "paste"
    got: dict[str, list[str]] = {one.name: shown(one) for one in manifest.environments}
    unread = [f"{one.where.line}: {one.text.text}: {one.why}" for one in manifest.unread]
    assert {"read": got, **({"unread": unread} if unread else {})} == READ[name]


@pytest.mark.parametrize("name", sorted(os.listdir(HERE / "pastes")))
def test_each_item_is_installed_and_where_it_is_written(name: str) -> None:
    source = files.read_file(str(HERE / "pastes" / name))
    lines = source.text.split("\n")
    for environment in read.manifest(source).environments:
        for item in environment.items:
            assert item.installed
            text = item.version or item.text
            line, written = lines[text.where[0] - 1], text.text.split()[-1]
            assert written in line or written.replace(".", "-") in line, item


@pytest.mark.parametrize("name", sorted(os.listdir(HERE / "decoys")))
def test_a_decoy_is_no_paste(name: str) -> None:
    text = (HERE / "decoys" / name).read_text()
    assert not pastes.SIGNATURE.search(text)
    with pytest.raises(ManifestError, match="unknown kind of file"):
        pasted(text, "decoy")


SMI = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.161.07   Driver Version: 535.161.07   CUDA Version: 12.2     |
|   0  NVIDIA A10G         On   | 00000000:00:16.0 Off |                    0 |
"""


NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n"
LISTS = "$ pip list | grep torch\ntorch  2.1.0\n\n" + "$ pip freeze\ntorch==2.2.0\n\n" * 2
REPORT = "Nvidia driver version: {0}\nOS: Debian 12 (x86_64)\n\n"
CONDA = "# packages in environment at /env:\npytorch 2.1.0 py3.10_cuda11.8_cudnn8.7.0_0 pytorch\n"
BUILT = "PyTorch version: 2.5.1\nCUDA used to build PyTorch: 12.4\n[pip3] torch==2.5.1\n"
MACHINE_OF_SMI = ["driver 535.161.07", "device NVIDIA A10G"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        # The CUDA of nvidia-smi is no toolkit.
        (SMI, {"": MACHINE_OF_SMI}),
        # What PyTorch was built for is its build.
        (BUILT, {"": ["pip torch 2.5.1+cu124"]}),
        # A list of another environment on the same machine, and the same list again.
        (
            SMI + LISTS,
            {
                "line 1": ["pip torch 2.1.0", *MACHINE_OF_SMI],
                "line 7": ["pip torch 2.2.0", *MACHINE_OF_SMI],
            },
        ),
        # Two machines.
        (
            REPORT.format("535.161.07") + REPORT.format("570.26"),
            {
                "line 1": ["driver 535.161.07", "distro Debian 12", "platform x86_64"],
                "line 4": ["driver 570.26", "distro Debian 12", "platform x86_64"],
            },
        ),
        # The compiler on the path before packages, several of which may be installed.
        (NVCC + "ii  cuda-toolkit-11-8  11.8.0-1  amd64  CUDA\n", {"": ["cuda 12.4.*"]}),
        # Conda brings a toolkit of its own.
        (NVCC + CONDA, {"": ["conda pytorch 2.1.0", "conda pytorch-cuda 11.8.*"]}),
    ],
)
def test_pastes_of_one_text_are_joined_or_kept_apart(text: str, read: dict[str, list[str]]) -> None:
    manifest = pasted(text)
    assert {one.name: shown(one) for one in manifest.environments} == read
    assert not manifest.unread


def test_a_list_saved_as_requirements_is_no_list_of_requirements() -> None:
    text = (HERE / "pastes" / "conda-export.txt").read_text()
    assert pasted(text, "requirements.txt").kind == "paste"
    assert pasted(f"torch==2.1.0\n{text}", "requirements.txt").kind == "requirements"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("torch==2.1.0\n", "requirements"),
        ("FROM python:3.10\n", "dockerfile"),
        ("Package Version\n------- -------\ntorch   2.1.0\n", "paste"),
    ],
)
def test_the_content_says_what_is_piped_in(text: str, kind: str) -> None:
    assert pasted(text).kind.lower() == kind


def test_devices_and_floors_are_those_of_the_matrix() -> None:
    text = SMI + "|   1  NVIDIA H100 80GB HBM3   On   | 00000000:00:17.0 Off |\nGPU 2: Voodoo 5\n"
    text += "$ ldd --version\nldd (GNU libc) 2.33\n"
    parts = requested_parts(matrix.index(), pasted(text).environments[0])
    assert [one.text.text for one in parts.unknown] == ["Voodoo 5"]
    # A driver and a C library that are not listed are the listed ones below.
    assert [(part.text, part.asks[0].selector) for part in parts.parts] == [
        ("driver 535.161.07", "==535.104.05"),
        ("NVIDIA A10G", "8.6"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("glibc 2.33", "==2.31"),
    ]


def test_devices_of_two_makers_are_no_one_machine() -> None:
    text = SMI + "GPU 1: AMD Instinct MI210\n"
    parts = requested_parts(matrix.index(), pasted(text).environments[0])
    assert [part.text for part in parts.parts] == ["driver 535.161.07", "NVIDIA A10G"]
    assert [one.why for one in parts.unknown] == [
        "packages are judged for NVIDIA A10G, which is of another kind"
    ]


def test_a_named_machine_takes_the_place_of_the_pasted_one() -> None:
    index = matrix.index()
    machine = target_machine(index, Fields(device=("RTX 5090",)))
    parts = requested_parts(index, pasted(SMI).environments[0], machine.items)
    assert [part.text for part in parts.parts] == ["RTX 5090"]


def test_a_paste_grows_by_lines_alone() -> None:
    with pytest.raises(ManifestError, match="too many packages"):
        pasted("Package Version\n------- -------\n" + "".join(f"a{at}  1\n" for at in range(6_000)))


PIECES = st.sampled_from(
    [
        *(
            "GPU 0: ",
            "PyTorch version: ",
            "2.1.0",
            "\n",
            "$ pip list\n",
            "[pip3] ",
            "torch==",
            "|",
            " ",
            "\t",
            "> ",
        ),
        *(
            "Name: a\n",
            "Version: 1\n",
            "-----  ----\n",
            "OS: ",
            "x86_64",
            "\x1b[31m",
            "<b>",
            "```",
            ",",
            "(",
            "\r",
        ),
        *("nvidia-smi --query-gpu=name\n", "conda list -e\n", "a=1=b", "a  1  b_0  pypi", "@", "é"),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_text_is_read(text: str) -> None:
    manifest = pastes.read(FileText("a.txt", text), files.Files())
    for environment in manifest.environments:
        for item in environment.items:
            assert item.where.line >= 1
            assert item.text.text.strip()
