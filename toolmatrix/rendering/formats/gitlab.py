"""A child pipeline of GitLab: one job for each image, on a runner of its platform.

Docker's engine runs as a service beside the job, with TLS (GitLab, use Docker to build Docker images).
"""

from __future__ import annotations

from toolmatrix.rendering import common, mirrors
from toolmatrix.rendering.model import Job

SUMMARY = "a GitLab child pipeline with a job for each image"
PATH = "toolmatrix.gitlab-ci.yml"
_LOGIN = (
    'if [ -n "$REGISTRY" ]; then printf %s "$REGISTRY_TOKEN" |'
    ' docker login "$REGISTRY" --username "$REGISTRY_USER" --password-stdin; fi'
)
# Only the default branch pushes images and writes the cache.
_PUSHES = (
    'if [ -n "$PREFIX" ] && [ "$CI_COMMIT_BRANCH" = "$CI_DEFAULT_BRANCH" ];'
    " then PUSH=--push; else unset PUSH CACHE; fi"
)


def files(job: Job) -> dict[str, str]:
    """The pipeline; raises RenderError for a name that is no plain word."""
    about = (
        *common.lines(job),
        *common.excluded(job),
        "",
        f"In .gitlab-ci.yml: {{trigger: {{include: {PATH}, strategy: depend}}}}. DIRECTORY is where the bake file",
        "lies; on other than GitLab's own machines RUNNER is the tag of yours. Variables of the project, all optional:",
        "  PREFIX: prefix of every tag, such as registry.example/team/; the default branch pushes its images",
        "  REGISTRY, REGISTRY_USER, REGISTRY_TOKEN: the registry and its credentials; masked and protected",
        "  CACHE: a repository for the build cache, such as registry.example/team/cache",
    )
    return {PATH: common.as_yaml(about, _pipeline(job))}


def _pipeline(job: Job) -> dict[str, object]:
    cli, service = mirrors.engine()
    cells = [
        {"IMAGE": name, "RUNNER": mirrors.runner("gitlab", image.locked.platform)}
        for name, image in common.targets(job).items()
    ]
    return {
        "variables": {"DIRECTORY": "."},
        "toolmatrix": {
            "stage": "build",
            "image": cli,
            "services": [service],
            "tags": ["$RUNNER"],
            "parallel": {"matrix": cells},
            # A runner has a bound of its own, and the lower one holds (GitLab, timeouts of jobs).
            "timeout": "6h",
            "variables": {"DOCKER_TLS_CERTDIR": "/certs"},
            "script": [
                # buildx takes the address of an engine from a context, and not from the environment.
                "docker context create engine",
                "docker buildx create --use engine",
                'cd "$DIRECTORY"',
                _LOGIN,
                _PUSHES,
                'docker buildx bake --progress=plain ${PUSH:+"$PUSH"} "$IMAGE"',
            ],
        },
    }
