"""Compiler flags of the answer as variables, to be read by a POSIX shell on a machine without containers."""

from __future__ import annotations

from collections.abc import Mapping

from toolmatrix.rendering import common, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "compiler flags as shell variables, for each image that has any"

# Other variables of an image say where things lie inside it.
_HOST = ("CFLAGS", "CXXFLAGS")


def files(job: Job) -> dict[str, str]:
    """`NAME.env.sh` for each image with flags; raises RenderError for a value that no word of shell can hold."""
    return {
        common.file_name(image, ".env.sh"): common.comment(
            (*common.lines(job), "", f"Source it in a shell: . ./{image.name}.env.sh")
        )
        + "".join(
            f"export {quote.plain('name', name)}={quote.sh(text)}\n"
            for name, text in sorted(flags.items())
        )
        for image in job.images
        if (flags := variables(image))
    }


def variables(image: ImagePlan) -> Mapping[str, str]:
    """The variables by name: those of the image that hold flags, and what the lock sets."""
    flags = {name: image.env[name] for name in _HOST if name in image.env}
    return {**flags, **image.device_env, **image.locked.flags.env}
