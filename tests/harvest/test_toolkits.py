"""Toolkits in wheels and unpacked: small ones of our own, and the real one that the tests have."""

from __future__ import annotations

import hashlib
import platform
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.compilation import real
from tests.harvest.test_headers import header, math
from tests.harvest.tools import family, harvested
from toolmatrix.errors import HarvestRefused, MatrixError, ToolMissing
from toolmatrix.harvest import toolkits
from toolmatrix.harvest.toolkits import KnownArchs

pytestmark = pytest.mark.process

FAMILY = """\
kind: toolkits
about: what the tests read
wheels: [nvidia-cuda-crt]
releases: releases.yaml
glibc: {"2.41": [cospi, sinpi], "2.42": [rsqrt]}
"""
RELEASES = """\
schema: toolmatrix.facts/1
releases:
  - {id: some, component: cuda, versions: {12.4.0: {nvcc: 12.4.99}, 12.8.1: {nvcc: 12.8.93}, 12.8.2: {nvcc: 12.8.93}}}
"""
PTXAS = """\
#!/bin/sh
if [ "$1" = --help ]; then echo "Allowed values: 'compute_75','sm_75','sm_90','sm_90a','sm_100','sm_999'."; exit; fi
case "$*" in *sm_999) echo "ptxas fatal"; exit 255;; esac
"""
CONFIG = header(
    "!__NV_NO_HOST_COMPILER_CHECK && __GNUC__ > 13",
    "!__NV_NO_HOST_COMPILER_CHECK && defined(__clang__) && __clang_major__ > 17",
)


@pytest.fixture(autouse=True)
def _compiler() -> None:
    real.program("g++")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory for wheels, beside the releases that the family names."""
    (tmp_path / "releases.yaml").write_text(RELEASES)
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


def wheel(place: Path, name: str, members: dict[str, bytes | str]) -> str:
    """A wheel with some members; what rows say of it."""
    path = place / f"{name}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(f"nvidia/cuda_nvcc/{member}", data)
    return f"{path.name} (sha256 {hashlib.sha256(path.read_bytes()).hexdigest()})"


def toolkit(place: Path, version: str, machine: str = "x86_64", **members: bytes | str) -> str:
    """A wheel of nvcc with headers, which may be others."""
    held = {"host_config": CONFIG, "math_functions": math(), **members}
    return wheel(
        place,
        f"nvidia_cuda_nvcc_cu12-{version}-py3-none-manylinux2014_{machine}",
        {f"include/crt/{name}.h": data for name, data in held.items() if name != "ptxas"}
        | ({"bin/ptxas": held["ptxas"]} if "ptxas" in held else {}),
    )


def read(place: Path) -> dict[str, Any]:
    return harvested(family(FAMILY, str(place.parent / "families.yaml")), str(place))


def rows(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All rows by id, without their sources."""
    return {
        row["id"]: {name: cell for name, cell in row.items() if name not in ("id", "source")}
        for table in document["tables"]
        for row in table["rows"]
    }


def test_a_toolkit_is_a_row_of_each_table(place: Path) -> None:
    where = toolkit(place, "12.8.93", platform.machine(), ptxas=PTXAS)
    document = read(place)
    assert document["sources"] == {
        "toolkit-nvidia-cuda-nvcc-cu12": {
            "title": "wheels of nvidia-cuda-nvcc-cu12 at the package index",
            "at": "package nvidia-cuda-nvcc-cu12, the file that the row names",
            "read": document["sources"]["toolkit-nvidia-cuda-nvcc-cu12"]["read"],
        }
    }
    assert document["releases"] == []
    machine = platform.machine()
    assert rows(document) == {
        "cuda-archs/12.8.1": {
            "cuda": "12.8.1 12.8.2",
            "arch": "sm_75 sm_90 sm_90a sm_100 compute_75 compute_90 compute_100",
            "where": f"{where}, ptxas -arch",
        },
        f"cuda-host-compilers/12.8.1/{machine}": {
            "cuda": "12.8.1 12.8.2",
            "machine": machine,
            "gcc": "<=13",
            "clang": "<=17",
            "guard": "#if !__NV_NO_HOST_COMPILER_CHECK && __GNUC__ > 13",
            "override": "-allow-unsupported-compiler",
            "where": f"{where}, crt/host_config.h",
        },
        "cuda-glibc/12.8.1": {
            "cuda": "12.8.1 12.8.2",
            "machine": machine,
            "glibc": "<2.41",
            "guards": "none",
            "where": f"{where}, crt/math_functions.h",
        },
    }


def test_point_releases_and_machines_stay_apart(place: Path) -> None:
    toolkit(place, "12.8.93")
    toolkit(place, "12.8.93", "aarch64", host_config=header("__GNUC__ > 14"))
    toolkit(place, "12.4.99", host_config=header("__GNUC__ > 12"))
    found = rows(read(place))
    assert {name: row["gcc"] for name, row in found.items() if "gcc" in row} == {
        "cuda-host-compilers/12.4.0/x86_64": "<=12",
        "cuda-host-compilers/12.8.1/x86_64": "<=13",
        "cuda-host-compilers/12.8.1/aarch64": "<=14",
    }


def test_machines_whose_headers_say_the_same_share_a_row(place: Path) -> None:
    first = toolkit(place, "12.8.93")
    second = toolkit(place, "12.8.93", "aarch64")
    row = rows(read(place))["cuda-glibc/12.8.1"]
    assert row["machine"] == "x86_64 aarch64"
    assert row["where"] == f"{first}, crt/math_functions.h; {second}"
    toolkit(place, "12.8.93", "aarch64", math_functions=math(rsqrt="__THROW"))
    found = rows(read(place))
    assert {name: row["guards"] for name, row in found.items() if "guards" in row} == {
        "cuda-glibc/12.8.1": "none",
        "cuda-glibc/12.8.1/aarch64": "rsqrt",
    }


def test_an_nvcc_of_no_known_release_is_one_of_its_series(place: Path) -> None:
    toolkit(place, "13.5.37")
    document = read(place)
    (group,) = document["releases"]
    assert group["versions"] == {"13.5": {"nvcc": "13.5.37"}}
    assert rows(document)["cuda-host-compilers/13.5/x86_64"]["cuda"] == "13.5"
    toolkit(place, "13.5.40")
    with pytest.raises(HarvestRefused) as refused:
        read(place)
    assert refused.value.what == "no known release has nvcc 13.5.40"


def test_a_toolkit_in_two_wheels_is_read_once(place: Path) -> None:
    toolkit(place, "12.8.93")
    first = place / "nvidia_cuda_nvcc_cu12-12.8.93-py3-none-manylinux2014_x86_64.whl"
    other = place / "nvidia_cuda_nvcc_cu12-12.8.93-py3-none-manylinux1_x86_64.whl"
    shutil.copy(first, other)
    assert len(rows(read(place))) == 2
    toolkit(place, "12.8.93", host_config=header("__GNUC__ > 14"))
    with pytest.raises(HarvestRefused) as refused:
        read(place)
    assert refused.value.what == "copies of one toolkit have different headers"


def test_a_second_harvest_is_the_same(place: Path) -> None:
    toolkit(place, "12.8.93")
    assert read(place) == read(place)


@pytest.mark.parametrize(
    ("host_config", "what"),
    [
        (b"int main;\n", "the header does not check host compilers"),
        (header("__GNUC__ > 9", before='#include "crt/gone.h"'), "the header cannot be read"),
    ],
)
def test_a_header_that_is_none_is_refused_by_the_name_of_its_wheel(
    host_config: bytes, what: str, place: Path
) -> None:
    toolkit(place, "12.8.93", host_config=host_config)
    with pytest.raises(HarvestRefused) as refused:
        read(place)
    assert refused.value.what == what
    assert str(refused.value.where).startswith("nvidia_cuda_nvcc_cu12-12.8.93-")


def test_wheels_of_something_else_are_no_toolkit(place: Path) -> None:
    wheel(place, "numpy-2.0.0-cp312-cp312-manylinux2014_x86_64", {"numpy/version.py": "x"})
    wheel(
        place, "nvidia_cuda_nvcc-13.0.48-py3-none-win_amd64", {"include/crt/host_config.h": CONFIG}
    )
    with pytest.raises(HarvestRefused) as refused:
        read(place)
    assert refused.value.what == "no CUDA toolkit found"


def test_a_damaged_wheel_is_refused(place: Path) -> None:
    toolkit(place, "12.8.93")
    (path,) = place.glob("*.whl")
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(HarvestRefused) as refused:
        read(place)
    assert refused.value.what == "the wheel is damaged"


def test_releases_without_nvcc_are_refused(place: Path) -> None:
    toolkit(place, "12.8.93")
    (place.parent / "releases.yaml").write_text("schema: toolmatrix.facts/1\nreleases: []\n")
    with pytest.raises(MatrixError) as refused:
        read(place)
    assert refused.value.what == "no release has the attribute `nvcc`"


def test_the_driver_says_what_it_lists() -> None:
    nvcc = "#!/bin/sh\ncase $1 in *code) echo sm_90; echo sm_75;; *) echo compute_90;; esac\n"
    files = {"ptxas": PTXAS, "nvcc": nvcc, "nvcc.profile": ""}
    found = toolkits.known_archs({name: text.encode() for name, text in files.items()}, "")
    assert found == KnownArchs(
        archs=("sm_75", "sm_90", "sm_90a", "sm_100", "compute_90"), gpu_codes=("sm_90", "sm_75")
    )


def test_programs_that_cannot_be_asked_are_refused() -> None:
    with pytest.raises(HarvestRefused) as refused:
        toolkits.known_archs({"ptxas": b"#!/bin/sh\necho nothing\n"}, "the wheel")
    assert refused.value.what == "ptxas accepts none of the archs that it lists"
    with pytest.raises(ToolMissing):
        toolkits.known_archs({"ptxas": b"\x7fELF of nothing"}, "the wheel")


def test_an_installed_toolkit_is_read_where_it_lies(place: Path) -> None:
    root = Path(real.nvcc()).parent.parent
    one = family(FAMILY, str(place.parent / "families.yaml"))
    document = harvested(one, str(root))
    found = rows(document)
    (group,) = document["releases"]
    ((version, release),) = group["versions"].items()
    assert release["nvcc"].startswith(f"{version}.")
    assert document["sources"].keys() == {f"toolkit-{release['nvcc']}-{platform.machine()}"}
    host = found[f"cuda-host-compilers/{version}/{platform.machine()}"]
    assert host["gcc"].startswith("<=")
    assert host["override"] == "-allow-unsupported-compiler"
    known = found[f"cuda-archs/{version}"]
    assert "sm_90 sm_90a" in known["arch"]
    assert "compute_90" in known["arch"].split()
    assert known["list-gpu-code"].startswith("sm_")
