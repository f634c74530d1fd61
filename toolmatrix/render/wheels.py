"""The Python packages of an image that the check uses: what was asked of pip, and what is run of them.

The programs are those of `operations.yaml`, which `toolmatrix audit --import` runs as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from packaging.version import Version

from toolmatrix import resources
from toolmatrix.lock.model import LockedClosure, LockedTarget
from toolmatrix.recipes.model import Provision, Recipe
from toolmatrix.render.model import UsedPackage

# What the module venv puts into an environment before anything else (Python documentation, ensurepip and venv).
_SEEDS = ("setuptools", "wheel")

# The name in `NAME[extras]==RELEASE` or `NAME@ADDRESS`.
_NAME = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9]")


def used(
    held: LockedTarget, recipe: Recipe, provisions: Iterable[Provision]
) -> Iterator[UsedPackage]:
    """The packages that the check of a recipe uses: those that it installs, and those that it builds."""
    if recipe.runs or recipe.imports:
        yield from of(held, provisions)
        archs = ",".join(one for one in held.archs if not one.startswith("gfx"))
        for name in recipe.built(held.components):
            version = held.components[name].version
            yield UsedPackage(component=name, package=name, version=version, archs=archs)


def of(held: LockedTarget, provisions: Iterable[Provision]) -> Iterator[UsedPackage]:
    """The packages that pip installs for provisions; of a build that is published as others these."""
    for part in provisions:
        if part.pip:
            build = held.variants.get(part.component)
            version = held.components[part.component].version
            for text in (build.requirements if build else ()) or part.pip:
                named, pinned, release = text.partition("==")
                found = _NAME.match(named)
                # An address is of one release. A nightly build, asked for by name alone, has one of its own.
                known = release if pinned else version if "@" in named else ""
                yield UsedPackage(
                    component=part.component,
                    package=found[0] if found else named,
                    version=known,
                    build=build.build if build else "",
                )


def words(packages: Iterable[UsedPackage]) -> Iterator[str]:
    """The words that tell the check of packages: of each name, release, build, two programs and archs, or nothing."""
    known = _operations()
    # A package may be what was asked for and a component of its own: tensorflow-rocm is both.
    for one in {(part.package, part.version): part for part in packages}.values():
        operation = known.get(one.component, {})
        if one.version and Version(one.version) < Version(operation.get("since", "0")):
            operation = {}
        yield from (one.package, one.version, one.build)
        yield from (operation.get("program", ""), operation.get("device", ""), one.archs)


def seeds(packages: Iterable[UsedPackage], closure: LockedClosure | None = None) -> tuple[str, ...]:
    """What the environment had before, and neither an answer nor its packages name."""
    named = {*(one.package for one in packages), *(closure.packages if closure else ())}
    held = dict.fromkeys((*_SEEDS, *sorted(closure.builders if closure else ())))
    return tuple(name for name in held if name not in named)


@lru_cache(maxsize=1)
def _operations() -> Mapping[str, Mapping[str, str]]:
    held = resources.load_yaml(resources.operations_path())["operations"]
    return {name: one for first, one in held.items() for name in (first, *one.get("also", ()))}
