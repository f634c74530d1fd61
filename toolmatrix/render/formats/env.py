"""Compiler flags of the answer as variables, to be read by a POSIX shell on a machine without containers.

nvcc and hipcc take further flags from variables of their own: NVCC_APPEND_FLAGS (NVIDIA, nvcc documentation, nvcc
environment variables) and HIPCC_COMPILE_FLAGS_APPEND (ROCm, hipcc documentation, environment variables).
"""

from __future__ import annotations

from toolmatrix.render import around, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.render.model import Image, Job

NAME = "env"
SUMMARY = "compiler flags as variables of the shell, for each image that has any"

_HOST = ("CFLAGS", "CXXFLAGS")
_DEVICE = {"NVCC_APPEND_FLAGS": "nvcc", "HIPCC_COMPILE_FLAGS_APPEND": "hipcc"}


def files(job: Job) -> dict[str, str]:
    """`NAME.env.sh` for each image with flags; raises RenderError for a value that no word of shell can hold."""
    return {
        around.file_name(image, ".env.sh"): around.comment(
            (*around.lines(job), "", f"To be read by a shell: . ./{image.name}.env.sh")
        )
        + "".join(
            f"export {quote.plain('name', name)}={quote.sh(text)}\n"
            for name, text in sorted(found.items())
        )
        for image in job.images
        if (found := variables(image))
    }


def variables(image: Image) -> Mapping[str, str]:
    """The variables by name: those of the image that hold flags, and what the lock sets."""
    flags = image.locked.flags
    found = {name: image.env[name] for name in _HOST if name in image.env}
    found |= {
        name: " ".join(getattr(flags, tool))
        for name, tool in _DEVICE.items()
        if getattr(flags, tool)
    }
    return found | dict(flags.env)
