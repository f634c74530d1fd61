"""Scripts and other programs that stand before a program on PATH: nobody can tell by reading what they run.

The shims of pyenv, asdf and mise, ccache under the names of compilers, and wrappers that people write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images.images import link, program
from tests.inspection.test_observe import dist, seen
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import PASS, UNKNOWN
from toolmatrix.judging import images, validation
from toolmatrix.judging.expectations import parse_expectation

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Verdict
    from toolmatrix.inspection.model import Inventory

    Files = dict[str, bytes | tarfile.TarInfo]

SITES = {"usr/bin": "dist-packages", "usr/local/bin": "site-packages"}
"""What Debian's Python and its maker's call the directory of packages."""
HIP = b"HIP_VERSION_MAJOR=5\nHIP_VERSION_MINOR=7\nHIP_VERSION_PATCH=1\n"
RECORDS = ("cat", "sh", "dpkg-query", "rpm")
"""Programs that print what stands in a file, which reading reads itself."""
BEFORE = ("opt/shims", "opt/shims/bin", "root/.pyenv/shims", "usr/lib64/ccache", "usr/local/sbin")
PATH = ":".join(
    f"/{one}" for one in (*BEFORE, "usr/local/bin", "usr/bin", "usr/local/cuda/bin", "opt/rocm/bin")
)
OTHER = "opt/tools/bin/wrap"
SHIMS: dict[str, bytes | tarfile.TarInfo] = {
    "script": b"#!/bin/sh\necho 9.9.9\n",
    "empty": b"",
    "other": link(f"/{OTHER}"),
}


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def whole(packages_of_python: Iterable[str], place: str = "usr/bin") -> Files:
    """An image that holds every program that is probed, in this directory, and what else tells their versions."""
    prefix = place.rpartition("/")[0]
    site = f"usr/local/lib/python3.11/{SITES[place]}"
    packages = {"gcc-12": "12.2.0-14", "gcc": "4:12.2.0-3", "python3": "3.11.2-1", "bazel": "6.4.0"}
    status = (f"Package: {name}\nVersion: {held}\n\n" for name, held in packages.items())
    return {
        "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
        "var/lib/dpkg/status": "".join(status).encode(),
        f"{place}/gcc": link("gcc-12"),
        f"{place}/gcc-12": program("amd64", "12.2.0"),
        f"{place}/g++": link("g++-12"),
        f"{place}/g++-12": program("amd64", "12.2.0"),
        f"{prefix}/lib/gcc/x86_64-linux-gnu/12.2.0/cc1": program("amd64", "12.2.0"),
        f"{place}/clang": program("amd64", "14.0.6"),
        f"{prefix}/lib/clang/14.0.6/include/stddef.h": b"",
        f"{place}/python": link("python3"),
        f"{place}/python3": link("python3.11"),
        f"{place}/python3.11": program("amd64", "3.11.2"),
        f"{prefix}/include/python3.11/patchlevel.h": b'#define PY_VERSION "3.11.2"\n',
        f"{place}/bazel": b"#!/bin/sh\n",
        f"{place}/bazel-real": program() + b"PK\3\4" + b"-" * 26 + b"build-label.txt6.4.0",
        "usr/local/cuda": link("cuda-12.1"),
        "usr/local/cuda-12.1/version.json": b'{"cuda": {"version": "12.1.1"}}',
        "usr/local/cuda-12.1/bin/nvcc": program() + b"release 12.1, V12.1.105\0",
        "opt/rocm": link("rocm-5.7.1"),
        "opt/rocm-5.7.1/.info/version": b"5.7.1-63\n",
        "opt/rocm-5.7.1/bin/hipcc": b"#!/usr/bin/perl\n",
        "opt/rocm-5.7.1/share/hip/version": HIP,
        **{
            f"{site}/{name}-1.2.3.dist-info/METADATA": dist(name, "1.2.3")
            for name in packages_of_python
        },
        # What scripts are run by.
        **dict.fromkeys(("bin/sh", "usr/bin/perl", OTHER), program()),
    }


def observed(*layers: Mapping[str, bytes | tarfile.TarInfo]) -> Inventory:
    return seen(*layers, Env=[f"PATH={PATH}"])


def pythons(index: Index) -> list[str]:
    """The packages that the product asks a Python for."""
    return [name for name, run in probed(index) if run == "python" and name != "python"]


def of(index: Index, inventory: Inventory, component: str) -> list[Verdict]:
    """The verdicts where each version is expected that was seen of a component."""
    held = {one.version for one in inventory.components.get(component, ())}
    words = [parse_expectation(f"{component}=={version}") for version in sorted(held)]
    return images.judge(inventory, [*words, parse_expectation(f"{component}>=0")], index)


def probed(index: Index) -> list[tuple[str, str]]:
    """The components that the product asks for by running a program of them, with that program."""
    asked = [one for one in validation.probes_of(index) if not one.holds]
    read = {one.name for one in asked if one.run[0] == "cat"}
    return sorted(
        {
            (one.name, one.run[0])
            for one in asked
            if one.name not in read and one.run[0] not in RECORDS and "pip" not in one.run
        }
    )


def test_what_is_probed_passes_where_nothing_stands_before_it(index: Index) -> None:
    for place in ("usr/bin", "usr/local/bin"):
        inventory = observed(whole(pythons(index), place))
        for component, _ in probed(index):
            (first, *_, any_) = of(index, inventory, component)
            assert (component, first.word, any_.word) == (component, PASS, PASS)


@settings(max_examples=examples(120), deadline=None)
@given(
    place=st.sampled_from(["usr/bin", "usr/local/bin"]),
    folder=st.sampled_from(BEFORE),
    shim=st.sampled_from(sorted(SHIMS)),
    layers=st.booleans(),
    data=st.data(),
)
def test_nothing_passes_behind_a_shim(
    index: Index, place: str, folder: str, shim: str, layers: bool, data: st.DataObject
) -> None:
    component, name = data.draw(st.sampled_from(probed(index)))
    before = {f"{folder}/{name}": SHIMS[shim]}
    behind = whole(pythons(index), place)
    parts = (behind, before) if layers else ({**behind, **before},)
    found = of(index, observed(*parts), component)
    assert {(one.word, one.code) for one in found} == {(UNKNOWN, "TM480")}
