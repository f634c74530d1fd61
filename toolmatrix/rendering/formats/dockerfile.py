"""One Dockerfile for each image, the check that its last step runs, and its Python packages by their hashes."""

from __future__ import annotations

from toolmatrix.rendering import dockerfile, pinning
from toolmatrix.rendering.model import Job

SUMMARY = "a Dockerfile for each image, and the check inside it"


def files(job: Job) -> dict[str, str]:
    """The Dockerfiles and checks, and the requirements that they install."""
    texts = {}
    for image in job.images:
        texts[dockerfile.name(image)] = dockerfile.text(job, image)
        texts[dockerfile.check_name(image)] = dockerfile.check(job, image)
        texts |= pinning.requirements_files(image, job.choices.fetched)
    return texts
