"""Dev container features: they install an answer in a container of the same distribution.

A collection has `src/ID/devcontainer-feature.json` with an `install.sh` beside it, which is run as root; `containerEnv`
is set before (Development Containers, Features). A feature is made where packages come by apt.
"""

from __future__ import annotations

import json

from toolmatrix.recipes.model import APT
from toolmatrix.rendering import common, dockerfile, pinning, quote
from toolmatrix.rendering.formats import apptainer
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a dev container feature for each Debian or Ubuntu image"


def files(job: Job) -> dict[str, str]:
    """`features/src/ID/` with metadata, script and check; raises RenderError for a text that fits no place."""
    # `# syntax=` speaks to BuildKit, which does not read these files.
    plain = job.replace(choices=job.choices.replace(syntax_line=""))
    return {
        f"features/src/{common.label(image)}/{name}": text
        for image in job.images
        if image.distro.manager == APT
        for name, text in _feature(plain, image).items()
    }


def _feature(job: Job, image: ImagePlan) -> dict[str, str]:
    env = {**image.env, **image.device_env}
    script = dockerfile.fill("feature.sh.j2", job, image, modern=False, env=env)
    return {
        "devcontainer-feature.json": json.dumps(_metadata(job, image, env), indent=2) + "\n",
        "install.sh": apptainer.HADOLINT.sub("", script),
        dockerfile.check_name(image): dockerfile.check(job, image),
        **pinning.requirements_files(image),
    }


def _metadata(job: Job, image: ImagePlan, env: dict[str, str]) -> dict[str, object]:
    # Its values become lines of a Dockerfile, which would put variables in.
    environment = {
        str(quote.plain("name", name)): str(quote.in_double(text))
        for name, text in sorted(env.items())
    }
    if image.path:
        folders = (quote.plain("path", folder) for folder in image.path)
        environment["PATH"] = ":".join((*folders, "${PATH}"))
    # A version it has to have, without zeros in front (Semantic Versioning): the day of the matrix.
    day = quote.plain("numbers", job.lock.matrix_date.replace("-", ".")).split(".")
    return {
        "id": common.label(image),
        "version": ".".join(str(int(number)) for number in day),
        "name": f"{quote.plain('release', image.recipe.name)} for {image.name}",
        "description": f"For {quote.plain('reference', image.from_)} on {quote.plain('path', image.locked.platform)}.",
        **({"containerEnv": environment} if environment else {}),
        "customizations": {
            "toolmatrix": {"lock": str(quote.plain("digest", job.digest)), "file": common.BLANK}
        },
    }
