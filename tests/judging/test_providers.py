"""What is told to install for a library that is missing."""

from __future__ import annotations

import subprocess

import pytest

from tests.judging.test_images import seen
from toolmatrix.inspection.model import Inventory
from toolmatrix.judging.images import debian_package, provider


def of(*managers: str) -> Inventory:
    """An image with packages of these managers."""
    return Inventory(subject="x", features={f"{one}:a": seen("1") for one in managers})


@pytest.mark.parametrize(
    ("manager", "soname", "told"),
    [
        ("dpkg", "libcudart.so.12", "nvidia-cuda-runtime-cu12 from PyPI"),
        ("rpm", "libcudart.so.12", "nvidia-cuda-runtime-cu12 from PyPI"),
        ("rpm", "libcudart.so.12", "`dnf install 'libcudart.so.12()(64bit)'`"),
        ("rpm", "libxyz.so.3", "`dnf install 'libxyz.so.3()(64bit)'`"),
        ("apk", "libxyz.so.3", "`apk add so:libxyz.so.3`"),
        ("dpkg", "libxyz.so.3", "libxyz3 of the distribution"),
        ("", "libxyz.so.3", "the package that provides libxyz.so.3"),
        ("apk", "/lib64/ld-linux-x86-64.so.2", "C library of this image"),
    ],
)
def test_what_brings_a_library(manager: str, soname: str, told: str) -> None:
    assert told in provider(of(manager), soname)


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        ("libfoo.so.1", "libfoo1"),
        ("libgtk-3.so.0", "libgtk-3-0"),
        ("libBar_x-1.2.so", "libbar-x-1.2"),
        ("x", ""),
    ],
)
def test_names_of_debian(soname: str, package: str) -> None:
    assert debian_package(soname) == package


@pytest.mark.process
def test_debian_calls_packages_so() -> None:
    """Libraries of this machine, where it is a Debian; names changed for the new time_t aside."""
    sonames = ("libzstd.so.1", "liblzma.so.5", "libmpfr.so.6", "libisl.so.23")
    for soname in sonames:
        try:
            said = subprocess.run(
                ["dpkg", "-S", f"*/{soname}"], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            pytest.skip("this is no Debian: dpkg is missing")
        packages = {line.partition(":")[0] for line in said.stdout.splitlines()}
        if packages:
            assert any(one.removesuffix("t64") == debian_package(soname) for one in packages), (
                packages
            )
