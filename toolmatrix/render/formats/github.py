"""A workflow of GitHub Actions: one job for each image, on a machine of its platform.

Nothing of the lock stands in a script or an expression: jobs read names from their matrix through the environment
(GitHub, security hardening for GitHub Actions). Actions are named by commit.
"""

from __future__ import annotations

from toolmatrix.render import around, outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.render.model import Job

SUMMARY = "a workflow of GitHub Actions with a job for each image"
PATH = ".github/workflows/toolmatrix.yml"

# What a build depends on: other changes of a repository start none.
_PATHS = ("**.Dockerfile", "**.check.sh", "**docker-bake.json", "**toolmatrix.lock", PATH)


def files(job: Job) -> dict[str, str]:
    """The workflow; raises RenderError for a name that is no plain word, and for a platform without a machine."""
    about = (
        *around.lines(job),
        *around.excluded(job),
        "",
        "GitHub reads workflows at the root of a repository alone; DIRECTORY is where the bake file lies.",
    )
    text = around.as_yaml(about, _workflow(job))
    return {PATH: _tagged(text)}


def _workflow(job: Job) -> dict[str, object]:
    cells = [
        {"image": name, "runner": outside.runner("github", image.locked.platform)}
        for name, image in around.targets(job).items()
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
        "env": {"DIRECTORY": "."},
        "jobs": {
            "image": {
                "name": "${{ matrix.image }}",
                "runs-on": "${{ matrix.runner }}",
                "strategy": {
                    "fail-fast": False,
                    "matrix": {"include": cells},
                },
                "steps": [
                    # What a build runs needs no token, which checkout would leave in the clone.
                    {"uses": _uses("checkout"), "with": {"persist-credentials": False}},
                    {"uses": _uses("buildx")},
                    {
                        "name": "Build and check",
                        "working-directory": "${{ env.DIRECTORY }}",
                        "env": {"IMAGE": "${{ matrix.image }}"},
                        "run": 'docker buildx bake --progress=plain "$IMAGE"',
                    },
                ],
            }
        },
    }


def _uses(name: str) -> str:
    # A tag can be moved to another commit by whoever owns the action.
    action = outside.action(name)
    return f"{action.uses}@{action.commit}"


def _tagged(text: str) -> str:
    # PyYAML writes no comments, and people know the commits by their tags.
    for name in ("checkout", "buildx"):
        used = _uses(name)
        text = text.replace(f"{used}\n", f"{used} # {outside.action(name).tag}\n")
    return text
