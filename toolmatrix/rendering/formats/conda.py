"""conda environments: the components that conda-forge packages, and the Python packages by pip.

Which releases the channel has is not known here: where one is missing, conda says so and installs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.rendering import common, mirrors, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a conda environment for each image with Python"

_INSTALLER = "pip"


def files(job: Job) -> dict[str, str]:
    """`NAME.environment.yml` for each image with Python; raises RenderError for a value that is no plain word."""
    return {
        common.file_name(image, ".environment.yml"): common.as_yaml(
            (
                *common.lines(job),
                *mirrors.notes(mirrors.conda(image.locked)),
                *common.absent(image),
                "",
                f"conda env create --file {image.name}.environment.yml",
            ),
            _environment(image),
        )
        for image in job.images
        if "python" in image.locked.components
    }


def _environment(image: ImagePlan) -> dict[str, object]:
    wanted: list[object] = ["=".join(filter(None, package)) for package in packages(image)]
    # conda hands the list to pip as a requirements file: options are lines of it.
    apart = [build for build in image.locked.variants.values() if build.options]
    needed = (*(requirement for build in apart for requirement in build.requirements), *image.pip)
    pip = [*common.pip_options(image), *(common.requirement(requirement) for requirement in needed)]
    return {
        "name": f"{quote.plain('release', image.recipe.name)}-{quote.plain('release', image.name)}",
        # Without `nodefaults` the channels that conda itself is set up with are asked as well.
        "channels": ["conda-forge", "nodefaults"],
        "dependencies": [*wanted, *([{"pip": pip}] if pip else [])],
    }


def packages(image: ImagePlan) -> Iterator[tuple[str, str]]:
    """The packages of conda-forge with their releases, "" for the installer, which is in no answer."""
    for name, version, packaged in mirrors.conda(image.locked):
        for package in packaged.packages if not image.locked.components[name].inside else ():
            yield package, "" if package == _INSTALLER else str(quote.plain("release", version))
