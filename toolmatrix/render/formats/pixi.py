"""Workspaces of pixi: what conda-forge packages of the answer, and the Python packages from their index.

Which releases the channel has is not known here: where one is missing, pixi says so and installs nothing.
"""

from __future__ import annotations

from toolmatrix.render import common, outside, quote
from toolmatrix.render.formats import conda, uv
from toolmatrix.render.model import ImagePlan, Job

SUMMARY = "a workspace of pixi for each image with Python"


def files(job: Job) -> dict[str, str]:
    """`pixi/NAME/pixi.toml` for each image with Python; raises RenderError for a value that is no plain word."""
    return {
        f"pixi/{common.file_name(image, '/pixi.toml')}": common.as_toml(
            (
                *common.lines(job),
                *conda.notes(image),
                *common.absent(image),
                "",
                "pixi install, in the directory of this file",
            ),
            _workspace(image),
        )
        for image in job.images
        if "python" in image.locked.components
    }


def _workspace(image: ImagePlan) -> dict[str, object]:
    cuda = image.locked.components.get("cuda")
    packages = _packages(image)
    return {
        "workspace": {
            "name": common.label(image),
            "channels": ["conda-forge"],
            "platforms": [outside.runner("conda", image.locked.platform)],
        },
        # What the driver of the machine runs: from 11 on any toolkit of the same major release.
        **({"system-requirements": {"cuda": _major(cuda.version)}} if cuda else {}),
        "dependencies": {
            name: f"{version}.*" if version else "*" for name, version in conda.packages(image)
        },
        **({"pypi-dependencies": packages} if packages else {}),
        **({"pypi-options": options} if (options := _options(image)) else {}),
    }


def _major(release: str) -> str:
    return quote.plain("release", release).partition(".")[0]


def _options(image: ImagePlan) -> dict[str, object]:
    found: dict[str, object] = {}
    pages = [common.Inline(url=one.url) for one in uv.channels(image) if one.flat]
    if pages:
        found["find-links"] = pages
    if uv.shares(image):
        found["extra-index-urls"] = [one.url for one in uv.channels(image) if not one.flat]
        found["index-strategy"] = uv.EVERY
    return found


def _packages(image: ImagePlan) -> dict[str, object]:
    from packaging.requirements import Requirement

    places = {name: one for one in uv.channels(image) for name in one.packages}
    found: dict[str, object] = {}
    for one in map(Requirement, uv.requirements(image)):
        place = places.get(one.name)
        said: dict[str, object] = {"url": one.url} if one.url else {"version": str(one.specifier)}
        said |= {"extras": sorted(one.extras)} if one.extras else {}
        said |= {"index": place.url} if place and not place.flat else {}
        found[one.name] = common.Inline(said) if len(said) > 1 or one.url else said["version"]
    return found
