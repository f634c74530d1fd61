"""Environments of Spack: specs as its grammar has them, the variants of each package, and what it does not package."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.rendering.jobs import LOCKS, index, job, lock
from toolmatrix.lockfile.model import Backed, LockedComponent
from toolmatrix.rendering import mirrors
from toolmatrix.rendering.formats import spack
from toolmatrix.rendering.model import Job
from toolmatrix.resources import of_package

# Spack's documentation, spec syntax: a name, a version, variants, and a compiler.
SPEC = re.compile(
    r"[a-z][a-z0-9-]*@[A-Za-z0-9._-]+( [+~][a-z_]+| [a-z_]+=[a-z0-9:+-]+(,[a-z0-9:+-]+)*)*"
    r"( %(gcc|clang)@[0-9.]+)?"
)


def specs(held: Job) -> dict[str, str]:
    """The specs of the one image of a job by the name of the package."""
    ((path, text),) = spack.files(held).items()
    assert path == f"{held.images[0].name}.spack.yaml"
    found: list[str] = yaml.safe_load(text)["spack"]["specs"]
    assert [one for one in found if not SPEC.fullmatch(one)] == []
    return {one.partition("@")[0]: one for one in found}


def with_answer(accelerator: str, archs: tuple[str, ...], **components: str) -> Job:
    """A job with an answer of its own."""
    held = job(lock("debian"), targets=("arm",))
    (image,) = held.images
    locked = image.locked.replace(
        accelerator=accelerator,
        archs={arch: Backed(evidence="stated") for arch in archs},
        components={
            name: LockedComponent(evidence="stated", version=version)
            for name, version in components.items()
        },
    )
    return held.replace(images=(image.replace(locked=locked),))


@pytest.mark.parametrize("name", LOCKS)
def test_specs_are_concretized_together(name: str) -> None:
    for text in spack.files(job(lock(name))).values():
        read: dict[str, Any] = yaml.safe_load(text)
        assert [*read] == ["spack"]
        assert [*read["spack"]] == ["specs", "concretizer"]
        assert read["spack"]["concretizer"] == {"unify": True}
        assert [one for one in read["spack"]["specs"] if not SPEC.fullmatch(one)] == []


def test_what_is_compiled_takes_the_compiler_and_the_archs() -> None:
    archs = ("sm_80", "sm_90a", "compute_90a")
    held = with_answer("cuda", archs, gcc="13", cuda="12.6.3", nccl="2.26.2", torch="2.7.1")
    assert specs(held) == {
        "cuda": "cuda@12.6.3",
        "gcc": "gcc@13",
        "nccl": "nccl@2.26.2 +cuda cuda_arch=80,90a %gcc@13",
        "py-torch": "py-torch@2.7.1 +cuda cuda_arch=80,90a ~rocm %gcc@13",
    }


def test_amd_devices_are_targets() -> None:
    held = with_answer("rocm", ("gfx90a", "gfx942"), clang="18", rocm="6.3.0", jaxlib="0.4.38")
    assert specs(held) == {
        "llvm": "llvm@18",
        "hip": "hip@6.3.0",
        "py-jaxlib": "py-jaxlib@0.4.38 ~cuda +rocm amdgpu_target=gfx90a,gfx942 %clang@18",
    }


def test_what_is_not_asked_for_is_switched_off() -> None:
    """py-torch builds for CUDA unless it is told otherwise."""
    held = with_answer("none", (), torch="2.7.1", python="3.12")
    assert specs(held) == {"python": "python@3.12", "py-torch": "py-torch@2.7.1 ~cuda ~rocm"}


def test_what_is_lacking_is_told() -> None:
    (text,) = spack.files(with_answer("rocm", (), rocm="5.0.2", numpy="1.19.5")).values()
    assert "# rocm 5.0.2: Spack packages ROCm from 5.7 on" in text.splitlines()
    assert (
        "# no arch was requested, and GPU packages of Spack need one: set it with `--arch`"
        in text.splitlines()
    )
    assert specs(with_answer("none", (), rocm="5.0.2", numpy="1.19.5")) == {
        "py-numpy": "py-numpy@1.19.5"
    }


def test_an_answer_of_which_spack_packages_nothing_has_no_environment() -> None:
    assert spack.files(with_answer("none", (), distro="debian12")) == {}


def test_a_floor_is_no_package() -> None:
    held = job(lock("rocky"), targets=("x86",))
    assert specs(held).keys() == {"cuda", "cudnn", "gcc"}


def test_every_row_names_a_component_of_the_matrix_and_its_file() -> None:
    with open(of_package("rendering", "outside.yaml"), encoding="utf-8") as file:
        rows = yaml.safe_load(file)["spack"]
    known = index().header["components"]
    assert {row["component"] for row in rows} <= {*known}
    for row in rows:
        found = mirrors.Spack(**row)
        # A folder has the name of its package, with underscores for dashes.
        folder = re.fullmatch(r"([a-z0-9_]+)/package\.py@[0-9a-f]{12}", found.at)
        assert folder is not None
        assert found.package.replace("-", "_") in (folder[1], "")
        assert found.package or found.note
        assert known[found.component]["scheme"] == found.scheme
