"""The Python packages of an image: as requirements of pip with the SHA-256 of their files, and as its check uses them.

A file names no lock and no matrix: it is part of the cache key of a build, and unchanged packages must not be installed
again because something else in a lock moved. The check runs the operations of `operations.yaml`, as does
`toolmatrix audit --import`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from packaging.version import Version

from toolmatrix import resources
from toolmatrix.lock.model import LockedClosure, LockedPackage, LockedTarget
from toolmatrix.recipes.model import Provision, Recipe
from toolmatrix.render import common, marker, mirrors, quote
from toolmatrix.render.model import ImagePlan, UsedPackage

# A requirements file adds the index of a vendor to the user's own: hashes select the files.
_EXTRA_INDEX = {"--index-url": "--extra-index-url", "-i": "--extra-index-url"}


def requirements_files(image: ImagePlan, fetched: str = "") -> dict[str, str]:
    """`NAME.requirements.txt` with its text, where the lock holds the packages; raises RenderError.

    Packages that are taken out of a folder, `fetched`, are named by their versions alone.
    """
    return {requirements_name(image): _text(image, image.closure, fetched)} if image.closure else {}


def requirements_name(image: ImagePlan) -> str:
    """The name of the file of an image."""
    return common.file_name(image, ".requirements.txt")


def _text(image: ImagePlan, closure: LockedClosure, fetched: str) -> str:
    local = f"--no-index --find-links {fetched}/{mirrors.wheel_folder(image)} " if fetched else ""
    about = (
        f"Python packages for Python {closure.asked.python} on {closure.asked.platform}.",
        "Written by toolmatrix; it does not overwrite edited files. To regenerate:",
        f"  {common.AGAIN}",
        f"file    {marker.BLANK}",
        "",
        f"pip install {local}--require-hashes --no-deps --requirement {requirements_name(image)}",
    )
    lines = [*_options(() if fetched else closure.asked.options), "--only-binary :all:"]
    if closure.sources:
        lines.append(f"--no-binary {','.join(closure.sources)}")
    packages = closure.packages
    lines += [
        _line(name, packages[name].replace(url="") if fetched else packages[name])
        for name in sorted(packages)
    ]
    return common.comment(about) + "".join(f"{line}\n" for line in lines)


def installer_requirements(image: ImagePlan) -> tuple[str, ...]:
    """Requirements of the packages that install the others: each a line with its hashes."""
    return tuple(_line(name, package, " ") for name, package in sorted(image.installers.items()))


def _options(words: tuple[str, ...]) -> Iterator[str]:
    # An option and its value; more of them stand on lines of their own.
    options = ""
    for word in words:
        if word.startswith("-") and options:
            yield options
            options = ""
        options = f"{options} {quote.plain('word', _EXTRA_INDEX.get(word, word))}".strip()
    if options:
        yield options


def _line(name: str, package: LockedPackage, between: str = " \\\n    ") -> str:
    wanted = common.requirement(
        f"{name}@{package.url}" if package.url else f"{name}=={package.version}"
    )
    digests = sorted({quote.plain("sha256", digest) for digest in package.files.values()})
    return between.join((wanted, *(f"--hash=sha256:{digest}" for digest in digests)))


# Packages that the module venv installs in a new environment (Python documentation, ensurepip and venv).
_SEEDS = ("setuptools", "wheel")

# The name in `NAME[extras]==RELEASE` or `NAME@ADDRESS`.
_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9]")


def used_packages(
    locked: LockedTarget, recipe: Recipe, provisions: Iterable[Provision]
) -> Iterator[UsedPackage]:
    """The packages that the check of a recipe uses: those that it installs, and those that it builds."""
    if recipe.runs or recipe.imports:
        yield from installed(locked, provisions)
        archs = ",".join(arch for arch in locked.archs if not arch.startswith("gfx"))
        for name in recipe.built(locked.components):
            version = locked.components[name].version
            yield UsedPackage(component=name, package=name, version=version, archs=archs)


def installed(locked: LockedTarget, provisions: Iterable[Provision]) -> Iterator[UsedPackage]:
    """The packages that pip installs for provisions; of a build that is published as others these."""
    for provision in provisions:
        if provision.pip:
            build = locked.variants.get(provision.component)
            version = locked.components[provision.component].version
            for text in (build.requirements if build else ()) or provision.pip:
                named, pinned, release = text.partition("==")
                match = _NAME.match(named)
                # An address is of one release. A nightly build, asked for by name alone, has one of its own.
                known = release if pinned else version if "@" in named else ""
                yield UsedPackage(
                    component=provision.component,
                    package=match[0] if match else named,
                    version=known,
                    build=build.build if build else "",
                )


def check_arguments(packages: Iterable[UsedPackage]) -> Iterator[str]:
    """The arguments of the check of packages: for each name, release, build, two programs and archs, or nothing."""
    known = _operations()
    # A package may be requested and a component of its own: tensorflow-rocm is both.
    for package in {(package.package, package.version): package for package in packages}.values():
        operation = known.get(package.component, {})
        if package.version and Version(package.version) < Version(operation.get("since", "0")):
            operation = {}
        yield from (package.package, package.version, package.build)
        yield from (operation.get("program", ""), operation.get("device", ""), package.archs)


def seeds(packages: Iterable[UsedPackage], closure: LockedClosure | None = None) -> tuple[str, ...]:
    """Packages that a fresh environment has, and neither an answer nor its packages name."""
    named = {*(package.package for package in packages), *(closure.packages if closure else ())}
    names = dict.fromkeys((*_SEEDS, *sorted(closure.builders if closure else ())))
    return tuple(name for name in names if name not in named)


@lru_cache(maxsize=1)
def _operations() -> Mapping[str, Mapping[str, str]]:
    operations = resources.load_yaml(resources.operations_path())["operations"]
    return {
        name: operation
        for first, operation in operations.items()
        for name in (first, *operation.get("also", ()))
    }
