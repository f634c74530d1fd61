"""The bake file: one target for each image, with its platform, cache, provenance and the image that it starts from.

Site-specific settings are variables with a default that works everywhere: no registry, no cache, no attestations
(Docker's own driver has none, docs.docker.com, Bake file reference), and the base image that the Dockerfile names.
A property named `//` is a comment (HCL, JSON syntax specification).
"""

from __future__ import annotations

import json

from toolmatrix.rendering import common, dockerfile, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a bake file with a target for each image"

# Arguments of the Dockerfiles that a lock cannot know.
_BUILD_ARGS = ("CREATED", "REVISION", "SOURCE")

_SWITCH = "ATTEST"
_VARIABLES = {
    "PREFIX": "prefix of every tag, such as registry.example/team/",
    "CACHE": "a repository for caches, such as registry.example/team/cache",
    "CREATED": "when the image was created (RFC 3339)",
    "REVISION": "the revision of the files",
    "SOURCE": "the URL of their repository",
    _SWITCH: "true attaches provenance and an SBOM",
}


def files(job: Job) -> dict[str, str]:
    """The file `docker-bake.json`; raises RenderError for a name that is no plain word."""
    images = common.targets(job)
    variables = {
        **_VARIABLES,
        **{
            variable: f"replaces {base}"
            for name, image in images.items()
            for variable, base in _bases(name, image).items()
        },
    }
    about = (
        *common.lines(job),
        *common.excluded(job),
        "Environment variables, empty by default:",
        *(f"  {name}: {what}" for name, what in variables.items()),
    )
    document = {
        "//": [str(quote.comment(line)) for line in about],
        "variable": {name: {"default": False if name == _SWITCH else ""} for name in variables},
        "group": {"default": {"targets": list(images)}},
        "target": {name: _target(job, name, image) for name, image in images.items()},
    }
    return {"docker-bake.json": json.dumps(document, indent=2) + "\n"}


def _target(job: Job, name: str, image: ImagePlan) -> dict[str, object]:
    tag = f"${{PREFIX}}{common.tag(image)}"
    cache = f"type=registry,ref=${{CACHE}}:{name}"
    stand_ins = (
        _where(variable, f'{{"{base}" = {variable}}}', "{}")
        for variable, base in _bases(name, image).items()
    )
    return {
        "context": ".",
        "dockerfile": dockerfile.name(image),
        "platforms": [str(quote.plain("path", image.locked.platform))],
        "tags": [tag, f"${{PREFIX}}{common.tag(image, job)}"],
        "args": {argument: f"${{{argument}}}" for argument in _BUILD_ARGS},
        "contexts": _merged(tuple(stand_ins)),
        "cache-from": _where("CACHE", f'["{cache}"]', "[]"),
        "cache-to": _where("CACHE", f'["{cache},mode=max"]', "[]"),
        "attest": [
            f"type={kind},disabled=${{!{_SWITCH}}}" for kind in ("provenance,mode=max", "sbom")
        ],
    }


def _where(variable: str, then: str, otherwise: str) -> str:
    """An HCL expression with one value if a variable is set, and another if not."""
    return f'${{{variable} != "" ? {then} : {otherwise}}}'


def _merged(maps: tuple[str, ...]) -> str:
    # Inside of `${...}` an expression stands without its own `${` and `}`.
    return (
        maps[0]
        if len(maps) == 1
        else f"${{merge({', '.join(expression[2:-1] for expression in maps)})}}"
    )


def _bases(name: str, image: ImagePlan) -> dict[str, str]:
    """The bases of a target, by the variable that names another image for it, as `docker-image://...`."""
    suffix = name.upper().replace("-", "_")
    used = {f"BASE_{suffix}": image.from_, f"RUNTIME_{suffix}": image.runtime.from_}
    return {
        variable: str(quote.plain("reference", base))
        for variable, base in used.items()
        if variable.startswith("BASE") or base != image.from_
    }
