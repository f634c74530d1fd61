"""Environments of Spack: the releases of the answer as specs that are concretized together.

Spack builds from source, also what the answer takes as a wheel; its releases are the same. Which of them its repository
has is not known here: where one is missing, Spack says so and installs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolmatrix.lockfile.model import COMPILERS, LockedTarget
from toolmatrix.rendering import common, mirrors, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a Spack environment for each image"

# Variants that Spack's build systems `cuda` and `rocm` give to packages.
_ARCHS = {"cuda": "cuda_arch", "rocm": "amdgpu_target"}
# The values of `cuda_arch` are numbers alone: machine code and PTX of a capability are the same one to Spack.
_CUDA = re.compile(r"(?:sm|compute)_([0-9]+[a-z]?)")


def files(job: Job) -> dict[str, str]:
    """`NAME.spack.yaml` for each image with anything that Spack packages; raises RenderError for no plain release."""
    return {
        common.file_name(image, ".spack.yaml"): common.as_yaml(
            (
                *common.lines(job),
                *_notes(image.locked),
                "",
                f"spack env create {image.name} {image.name}.spack.yaml",
            ),
            # Otherwise each spec may get packages of other releases than the next one.
            {"spack": {"specs": specs, "concretizer": {"unify": True}}},
        )
        for image in job.images
        if (specs := [*_specs(image)])
    }


def _specs(image: ImagePlan) -> Iterator[str]:
    locked = image.locked
    compiler = next((name for name in COMPILERS if name in locked.components), "")
    for name, release, packaged in mirrors.spack(locked):
        # What is a floor, such as a driver, belongs to the machine and is not installed.
        if not packaged.package or locked.components[name].floor:
            continue
        words = [f"{packaged.package}@{quote.plain('release', release)}"]
        words += _gpu(locked, packaged.gpu)
        if packaged.compiled and compiler:
            version = locked.components[compiler].version
            words.append(f"%{compiler}@{quote.plain('release', version)}")
        yield " ".join(words)


def _gpu(locked: LockedTarget, known: Sequence[str]) -> Iterator[str]:
    archs = [quote.plain("arch", arch) for arch in locked.archs]
    cuda = [match[1] for arch in archs if (match := _CUDA.fullmatch(arch))]
    gfx = [arch for arch in archs if arch.startswith("gfx")]
    for accelerator, named in (("cuda", cuda), ("rocm", gfx)):
        if accelerator not in known:
            continue
        # Some packages build for CUDA by default, so unwanted variants are switched off explicitly.
        yield f"{'+' if locked.accelerator == accelerator else '~'}{accelerator}"
        if locked.accelerator == accelerator and named:
            yield f"{_ARCHS[accelerator]}={','.join(dict.fromkeys(named))}"


def _notes(locked: LockedTarget) -> Iterator[str]:
    yield from mirrors.notes(mirrors.spack(locked))
    if locked.accelerator != "none" and not locked.archs:
        yield "no arch was requested, and GPU packages of Spack need one: set it with `--arch`"
