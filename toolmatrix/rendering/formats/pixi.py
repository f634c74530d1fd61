"""pixi workspaces: the components that conda-forge packages, and the Python packages from their index.

Which releases the channel has is not known here: where one is missing, pixi says so and installs nothing.
"""

from __future__ import annotations

from toolmatrix.rendering import common, mirrors, quote
from toolmatrix.rendering.formats import conda, uv
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a pixi workspace for each image with Python"


def files(job: Job) -> dict[str, str]:
    """`pixi/NAME/pixi.toml` for each image with Python; raises RenderError for a value that is no plain word."""
    return {
        f"pixi/{common.file_name(image, '/pixi.toml')}": common.as_toml(
            (
                *common.lines(job),
                *mirrors.notes(mirrors.conda(image.locked)),
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
    major = quote.plain("release", cuda.version).partition(".")[0] if cuda else ""
    packages = _packages(image)
    return {
        "workspace": {
            "name": common.label(image),
            "channels": ["conda-forge"],
            "platforms": [mirrors.runner("conda", image.locked.platform)],
        },
        # What the driver of the machine runs: from 11 on any toolkit of the same major release.
        **({"system-requirements": {"cuda": major}} if cuda else {}),
        "dependencies": {
            name: f"{version}.*" if version else "*" for name, version in conda.packages(image)
        },
        **({"pypi-dependencies": packages} if packages else {}),
        **({"pypi-options": options} if (options := _options(image)) else {}),
    }


def _options(image: ImagePlan) -> dict[str, object]:
    options: dict[str, object] = {}
    pages = [common.Inline(url=index.url) for index in uv.channels(image) if index.flat]
    if pages:
        options["find-links"] = pages
    if uv.shares(image):
        options["extra-index-urls"] = [index.url for index in uv.channels(image) if not index.flat]
        options["index-strategy"] = uv.EVERY
    return options


def _packages(image: ImagePlan) -> dict[str, object]:
    from packaging.requirements import Requirement

    indexes = {name: index for index in uv.channels(image) for name in index.packages}
    packages: dict[str, object] = {}
    for requirement in map(Requirement, common.requirements(image)):
        index = indexes.get(requirement.name)
        fields: dict[str, object] = (
            {"url": requirement.url} if requirement.url else {"version": str(requirement.specifier)}
        )
        fields |= {"extras": sorted(requirement.extras)} if requirement.extras else {}
        fields |= {"index": index.url} if index and not index.flat else {}
        packages[requirement.name] = (
            common.Inline(fields) if len(fields) > 1 or requirement.url else fields["version"]
        )
    return packages
