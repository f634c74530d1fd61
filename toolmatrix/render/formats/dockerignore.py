"""What a build sends to the builder: the lock and the checks, and nothing that lies beside them."""

from __future__ import annotations

from toolmatrix.render import dockerfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.render.model import Job

NAME = "dockerignore"
SUMMARY = "what a build sends to the builder"
LOCK = "toolmatrix.lock"


def files(job: Job) -> dict[str, str]:
    """The file `.dockerignore`."""
    sent = [LOCK, *(dockerfile.check_name(image) for image in job.images)]
    lines = ["# Only what the Dockerfiles copy is sent to the builder.", "*"]
    return {".dockerignore": "\n".join([*lines, *(f"!{name}" for name in sent)]) + "\n"}
