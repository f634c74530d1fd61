"""Constraints of pip: the Python packages of the answer at their releases, for one environment or another.

pip uses a constraint only where something else requires the package, so the packages that the recipe builds are listed
too: an installation of them gets that release (pip's user guide, constraints files).
"""

from __future__ import annotations

import re

from toolmatrix.rendering import common
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "pip constraints for each image with Python packages"

_EXTRAS = re.compile(r"\[.*\]")


def files(job: Job) -> dict[str, str]:
    """`NAME.constraints.txt` for each image with Python packages; raises RenderError for one that is no requirement."""
    return {
        common.file_name(image, ".constraints.txt"): common.comment(
            (*common.lines(job), "", f"pip install --constraint {image.name}.constraints.txt ...")
        )
        # A constraints file may have options of pip, as a requirements file has.
        + "".join(f"{line}\n" for line in (*common.pip_options(image), *pinned))
        for image in job.images
        if (pinned := _pinned(image))
    }


def _pinned(image: ImagePlan) -> list[str]:
    # pip refuses a constraint with extras.
    pins = {_EXTRAS.sub("", requirement) for requirement in common.requirements(image)}
    components = image.locked.components
    for name in image.recipe.built(components) if pins else ():
        if name not in image.locked.variants:
            pins.add(common.requirement(f"{name}=={components[name].version}"))
    return sorted(pins)
