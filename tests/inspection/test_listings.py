"""Records of packages held against the files that they list: gone ones, and scripts that belong to a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.images.images import program
from tests.inspection.test_observe import dist, elf, seen, told, valued

if TYPE_CHECKING:
    import tarfile

    Files = dict[str, bytes | tarfile.TarInfo]

SITE = "usr/local/lib/python3.11/site-packages"
WHEEL = "nvidia_cuda_runtime_cu12-12.4.127.dist-info"
LIBRARY = f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"
RUNTIME: Files = {
    f"{SITE}/{WHEEL}/METADATA": dist("nvidia-cuda-runtime-cu12", "12.4.127"),
    f"{SITE}/{WHEEL}/RECORD": (
        b"nvidia/cuda_runtime/lib/libcudart.so.12,sha256=abc,707904\n"
        b"nvidia/cuda_runtime/lib/libOpenCL.so.1,sha256=xyz,1\n"
        b'"nvidia/cuda_runtime/include/a,b.h",sha256=def,1\n'
        b"../../../bin/cuda-tool,sha256=ghi,2\n"
        b"nvidia_cuda_runtime_cu12-12.4.127.dist-info/METADATA,,\n"
    ),
    f"{SITE}/nvidia/cuda_runtime/include/a,b.h": b"",
    LIBRARY: elf(),
    f"{SITE}/nvidia/cuda_runtime/lib/libOpenCL.so.1": elf(),
}
STATUS = b"Package: %s\nStatus: install ok installed\nVersion: %s\n"


def test_a_wheel_whose_library_is_gone_is_no_witness() -> None:
    assert ("12.4", "wheel", False) in told(seen(RUNTIME), "cuda")
    folder, _, name = LIBRARY.rpartition("/")
    inventory = seen(RUNTIME, {f"{folder}/.wh.{name}": b""})
    assert told(inventory, "cuda") == told(inventory, "nvidia-cuda-runtime-cu12") == []
    assert valued(inventory, "missing-files") == ["nvidia-cuda-runtime-cu12 12.4.127"]


def test_a_package_that_lists_a_program_above_its_site_is_there() -> None:
    files: Files = {
        f"{SITE}/cmake-3.27.0.dist-info/METADATA": dist("cmake", "3.27.0"),
        f"{SITE}/cmake-3.27.0.dist-info/RECORD": b"../../../bin/cmake,sha256=a,9\ncmake/x.py,,\n",
        "usr/local/bin/cmake": b"#!/usr/bin/python3\n",
    }
    assert told(seen(files), "cmake") == [("3.27.0", "dist-info", False)]
    del files["usr/local/bin/cmake"]
    assert told(seen(files), "cmake") == []


@pytest.mark.parametrize(
    ("listed", "there", "is_witness"),
    [
        ("/.\n/usr\n/usr/lib\n/usr/lib/libcudnn.so.8.9.7\n/usr/share/doc/c\n", True, True),
        ("/.\n/usr\n/usr/lib\n/usr/lib/libcudnn.so.8.9.7\n/usr/share/doc/c\n", False, False),
        ("/.\n/usr\n/usr/share\n/usr/share/doc\n/usr/share/doc/c\n", False, True),
        ("", False, True),
    ],
)
@pytest.mark.parametrize("name", ["libcudnn8", "libcudnn8:amd64"])
def test_a_package_of_debian_whose_files_are_gone_is_no_witness(
    name: str, listed: str, there: bool, is_witness: bool
) -> None:
    files: Files = {
        "var/lib/dpkg/status": STATUS % (b"libcudnn8", b"8.9.7.29-1+cuda12.2"),
        f"var/lib/dpkg/info/{name}.list": listed.encode(),
        **({"usr/lib/libcudnn.so.8.9.7": elf()} if there else {}),
    }
    inventory = seen(files)
    assert ("8.9.7", "dpkg", False) in told(inventory, "cudnn") or not is_witness
    assert bool(inventory.features.get("missing-files")) != is_witness


def test_a_script_that_its_package_lists_is_the_program_until_another_is_put_there() -> None:
    files: Files = {
        "var/lib/dpkg/status": STATUS % (b"gcc", b"4:12.2.0-3"),
        "var/lib/dpkg/info/gcc.list": b"/.\n/usr\n/usr/bin\n/usr/bin/gcc\n",
        "usr/bin/gcc": b"#!/bin/sh\n",
        "usr/bin/make": program(),
    }
    assert told(seen(files), "gcc") == [("12.2.0", "dpkg", True)]
    replaced = seen(files, {"usr/bin/gcc": b"#!/bin/sh\necho 9.9.9\n"})
    assert [default for *_, default in told(replaced, "gcc")] == []
    assert {one.what for one in replaced.skipped} >= {"which gcc"}
