"""Development containers: one configuration for each image, built from its Dockerfile.

The file is plain JSON, so it names its lock under `customizations`. `${` begins a variable (Development Containers,
variables in devcontainer.json), so the file has no value that could contain it.
"""

from __future__ import annotations

import json

from toolmatrix.rendering import common, dockerfile, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a dev container for each image"
USER = "builder"
"""The user that the Dockerfiles create; its ids are changed to those of the user who opens the container."""

# From the folder of a configuration to the Dockerfiles.
_UP = "../.."


def files(job: Job) -> dict[str, str]:
    """`.devcontainer/NAME/devcontainer.json` for each image; raises RenderError for a name that is no plain word."""
    return {
        f".devcontainer/{quote.plain('release', image.name)}/devcontainer.json": json.dumps(
            _container(job, image), indent=2
        )
        + "\n"
        for image in job.images
    }


def _container(job: Job, image: ImagePlan) -> dict[str, object]:
    container: dict[str, object] = {
        "name": f"{quote.plain('release', image.recipe.name)} for {image.name}",
        "build": {
            "dockerfile": f"{_UP}/{dockerfile.name(image)}",
            "context": _UP,
            "args": {"REVISION": "${localEnv:REVISION}", "SOURCE": "${localEnv:SOURCE}"},
            "options": [f"--platform={quote.plain('path', image.locked.platform)}"],
        },
        "remoteUser": USER,
        "customizations": {
            "toolmatrix": {"lock": str(quote.plain("digest", job.digest)), "file": common.BLANK}
        },
    }
    if image.locked.accelerator != "none":
        # Code compiles without a GPU as well.
        container["hostRequirements"] = {"gpu": "optional"}
    return container
