"""Requirements of pip with hashes: every Python package of an answer, where `toolmatrix lock --packages` wrote them."""

from __future__ import annotations

from toolmatrix.rendering import pinning
from toolmatrix.rendering.model import Job

SUMMARY = "pip requirements with hashes, if the lock has all packages"


def files(job: Job) -> dict[str, str]:
    """`NAME.requirements.txt` for each image whose packages are locked; raises RenderError."""
    return {
        path: text
        for image in job.images
        for path, text in pinning.requirements_files(image, job.choices.fetched).items()
    }
