"""Projects of uv: the Python packages of the answer at their releases, for the Python and the machine of the image.

Only the build comes from its own index, as that index is `explicit` (uv, package indexes). Builds for ROCm are the
exception: their dependencies are only on that index (uv, using uv with PyTorch).
"""

from __future__ import annotations

from typing import NamedTuple

from toolmatrix.rendering import answer, common, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "a uv project for each image with Python packages"

EVERY = "unsafe-best-match"
"""How packages are looked up on every index: else one would hide the releases of a package that the next one has."""

# pip's options that say where packages are: an index, and a page of links to files.
_INDEXES, _PAGES = ("--index-url", "-i", "--extra-index-url"), ("--find-links", "-f")


class BuildIndex(NamedTuple):
    """An index beside the user's own: its address, whether it is a page of links, and the packages taken from it."""

    url: str
    flat: bool
    packages: list[str]


def files(job: Job) -> dict[str, str]:
    """`uv/NAME/pyproject.toml` for each image with Python packages; raises RenderError for what is no requirement."""
    return {
        f"uv/{common.file_name(image, '/pyproject.toml')}": common.as_toml(
            (
                *common.lines(job),
                *common.absent(image),
                "",
                "uv sync, in the directory of this file",
            ),
            _project(image),
        )
        for image in job.images
        if "python" in image.locked.components and common.requirements(image)
    }


def channels(image: ImagePlan) -> list[BuildIndex]:
    """Where builds are taken from instead of the user's index, in the order of their first mention."""
    from packaging.requirements import Requirement

    indexes: dict[str, BuildIndex] = {}
    for build in image.locked.variants.values():
        packages = [Requirement(common.requirement(text)).name for text in build.requirements]
        for option, value in zip(build.options, build.options[1:], strict=False):
            if option in (*_INDEXES, *_PAGES):
                url = str(quote.plain("url", value))
                index = indexes.setdefault(url, BuildIndex(url, option in _PAGES, []))
                index.packages.extend(packages)
    return list(indexes.values())


def shares(image: ImagePlan) -> bool:
    """True where the dependencies of a build are only on its own index."""
    return image.locked.accelerator == "rocm" and bool(channels(image))


def _project(image: ImagePlan) -> dict[str, object]:
    python = quote.plain("numbers", image.locked.components["python"].version)
    machine = answer.machine(image.locked)
    indexes = channels(image)
    shared = shares(image)
    return {
        "project": {
            "name": common.label(image),
            "version": "0",
            "requires-python": f"=={python}.*",
            "dependencies": common.requirements(image),
        },
        "tool": {
            "uv": {
                "package": False,
                "environments": [f"sys_platform == 'linux' and platform_machine == '{machine}'"],
                **({"index-strategy": EVERY} if shared else {}),
                **_closure(image),
                **(_sources(indexes, shared) if indexes else {}),
            }
        },
    }


def _sources(indexes: list[BuildIndex], shared: bool) -> dict[str, object]:
    named = {f"channel-{number}": index for number, index in enumerate(indexes, 1)}
    return {
        "sources": {
            package: common.Inline(index=name)
            for name, index in named.items()
            for package in index.packages
        },
        "index": [
            {
                "name": name,
                "url": index.url,
                **({"format": "flat"} if index.flat else {}),
                **({} if shared else {"explicit": True}),
            }
            for name, index in named.items()
        ],
    }


def _closure(image: ImagePlan) -> dict[str, object]:
    if image.closure is None:
        return {}
    packages = sorted(image.closure.packages.items())
    pins = [
        common.requirement(f"{name}=={package.version}")
        for name, package in packages
        if not package.url
    ]
    # What was locked are wheels, but for what is built out of a source archive.
    sources = image.closure.sources
    built = {"no-binary-package": list(sources)} if sources else {}
    return {"no-build": True, **built, "constraint-dependencies": pins}
