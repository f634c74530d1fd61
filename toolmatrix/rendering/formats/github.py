"""A workflow of GitHub Actions: one job for each image, on a machine of its platform.

No script or expression contains a value of the lock: jobs read names from their matrix through the environment
(GitHub, security hardening for GitHub Actions). Actions are named by commit.
"""

from __future__ import annotations

from toolmatrix.rendering import common, mirrors
from toolmatrix.rendering.model import Job

SUMMARY = "a GitHub Actions workflow with a job for each image"
PATH = ".github/workflows/toolmatrix.yml"

# The longest that a job of GitHub's own machines may take, in minutes (GitHub, usage limits of Actions).
_LONGEST = 360
_PUSHES = "github.event_name != 'pull_request' && vars.TOOLMATRIX_PREFIX != ''"
_ABOUT = (
    "GitHub reads workflows only at the root of a repository; DIRECTORY is the folder of the bake file.",
    "Repository variables, all optional:",
    "  TOOLMATRIX_PREFIX: prefix of every tag, such as registry.example/team/; pull requests push nothing",
    "  TOOLMATRIX_REGISTRY: the registry to log in to, with the secrets TOOLMATRIX_USER and TOOLMATRIX_TOKEN",
    "  TOOLMATRIX_CACHE: a repository for the build cache, such as registry.example/team/cache",
    "  TOOLMATRIX_MINUTES: time limit of an image in minutes; GitHub-hosted runners allow at most 360",
    "  TOOLMATRIX_RUNNER_AMD64, TOOLMATRIX_RUNNER_ARM64: self-hosted runners, for builds that need more time or disk",
)

# The files that a build depends on: only their changes start one.
_PATHS = ("**.Dockerfile", "**.check.sh", "**docker-bake.json", "**toolmatrix.lock", PATH)


def files(job: Job) -> dict[str, str]:
    """The workflow; raises RenderError for a name that is no plain word, and for a platform without a machine."""
    about = (
        *common.lines(job),
        *common.excluded(job),
        "",
        *_ABOUT,
    )
    text = common.as_yaml(about, _workflow(job))
    return {PATH: _tagged(text)}


def _workflow(job: Job) -> dict[str, object]:
    cells = [
        {
            "image": name,
            "runner": mirrors.runner("github", image.locked.platform),
            # The machine as Docker calls it: `linux/arm64`.
            "own": f"TOOLMATRIX_RUNNER_{image.locked.platform.split('/')[1].upper()}",
        }
        for name, image in common.targets(job).items()
    ]
    return {
        "name": "toolmatrix",
        "on": {
            "push": {"paths": list(_PATHS)},
            "pull_request": {"paths": list(_PATHS)},
            "workflow_dispatch": None,
        },
        "permissions": {"contents": "read"},
        "concurrency": {
            "group": "${{ github.workflow }}-${{ github.ref }}",
            "cancel-in-progress": True,
        },
        "env": {
            "DIRECTORY": ".",
            "PREFIX": "${{ vars.TOOLMATRIX_PREFIX }}",
        },
        "jobs": {
            "image": {
                "name": "${{ matrix.image }}",
                "runs-on": "${{ vars[matrix.own] || matrix.runner }}",
                "timeout-minutes": f"${{{{ fromJSON(vars.TOOLMATRIX_MINUTES || '{_LONGEST}') }}}}",
                "strategy": {
                    "fail-fast": False,
                    "matrix": {"include": cells},
                },
                "steps": _steps(),
            }
        },
    }


def _steps() -> list[dict[str, object]]:
    return [
        # What a build runs needs no token, which checkout would leave in the clone.
        {"uses": _uses("checkout"), "with": {"persist-credentials": False}},
        {"uses": _uses("buildx")},
        {
            "name": "Log in",
            "if": f"{_PUSHES} && vars.TOOLMATRIX_REGISTRY != ''",
            "env": {
                "REGISTRY": "${{ vars.TOOLMATRIX_REGISTRY }}",
                "REGISTRY_USER": "${{ secrets.TOOLMATRIX_USER }}",
                "REGISTRY_TOKEN": "${{ secrets.TOOLMATRIX_TOKEN }}",
            },
            # On a command line every user of the machine could read it.
            "run": 'docker login "$REGISTRY" --username "$REGISTRY_USER" --password-stdin'
            ' <<<"$REGISTRY_TOKEN"',
        },
        {
            "name": "Build and check",
            "working-directory": "${{ env.DIRECTORY }}",
            "env": {
                "IMAGE": "${{ matrix.image }}",
                # Pull requests are untrusted and write no cache.
                "CACHE": f"${{{{ {_PUSHES} && vars.TOOLMATRIX_CACHE || '' }}}}",
                "PUSH": f"${{{{ {_PUSHES} && '--push' || '' }}}}",
            },
            "run": 'docker buildx bake --progress=plain ${PUSH:+"$PUSH"} "$IMAGE"',
        },
    ]


def _uses(name: str) -> str:
    # The owner of an action can move a tag to another commit.
    action = mirrors.action(name)
    return f"{action.uses}@{action.commit}"


def _tagged(text: str) -> str:
    # PyYAML writes no comments, and people know the commits by their tags.
    for name in ("checkout", "buildx"):
        used = _uses(name)
        text = text.replace(f"{used}\n", f"{used} # {mirrors.action(name).tag}\n")
    return text
