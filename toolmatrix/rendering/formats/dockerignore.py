"""The context that a build sends to the builder: the lock, checks and requirements, and nothing beside them."""

from __future__ import annotations

from toolmatrix.rendering import common, dockerfile, pinning, quote
from toolmatrix.rendering.model import Job

SUMMARY = "the files that a build sends to the builder"
LOCK = "toolmatrix.lock"


def files(job: Job) -> dict[str, str]:
    """The file `.dockerignore`; raises RenderError for a name that is no plain path."""
    sent = [LOCK, *(quote.plain("path", dockerfile.check_name(image)) for image in job.images)]
    sent += [pinning.requirements_name(image) for image in job.images if image.closure]
    sent += [quote.plain("path", job.choices.fetched)] if job.choices.fetched else []
    about = ("Only what the Dockerfiles copy is sent to the builder.", "", *common.lines(job))
    return {".dockerignore": common.comment(about) + "*\n" + "".join(f"!{path}\n" for path in sent)}
