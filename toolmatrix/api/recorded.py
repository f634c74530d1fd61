"""Builds put into a file of facts: those whose check passed, and those for which an address was missing."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence

from toolmatrix.api import files, harvests
from toolmatrix.api.builds import Built
from toolmatrix.api.harvests import HarvestedFile
from toolmatrix.facts.index import Index
from toolmatrix.harvest import runs, written
from toolmatrix.harvest.runs import ImageBuild
from toolmatrix.lock import lock_file
from toolmatrix.lock.model import Lock, LockedEnvironment
from toolmatrix.outputs import os_errors_as, replace_files
from toolmatrix.recipes import read as recipes
from toolmatrix.render import marker
from toolmatrix.request.names import Names
from toolmatrix.value import Value

# Parts of an answer that are told apart from what is beside it.
_APART = ("distro", "python", "base-image", "driver")
_DIGITS = 12
# What the last stage of a Dockerfile says that it holds.
_HOLDS = re.compile(r'io\.github\.toolmatrix\.components="([^"]*)"')


class SeenBuild(Value):
    """What is known of a build besides how it ended: its proof, its engine, the size of its image, and the day.

    `packed` is that size by the archives of the layers, which is what is sent.

    `name` is the stem of its files in `folder`.
    """

    folder: str
    name: str
    checked: str
    missing: str
    engine: str
    size: int
    packed: bool
    day: str


def row(index: Index, lock: Lock, image: Built, seen: SeenBuild) -> ImageBuild | str:
    """The row of a build, or why there is none."""
    if not image.exit_code and not seen.checked:
        return "its check was not run, because the engine had the whole build in its cache"
    if image.exit_code and not seen.missing:
        return "it failed, but not because of a missing address"
    texts = []
    for ending in (".Dockerfile", ".check.sh"):
        path = os.path.join(seen.folder, seen.name + ending)
        with (
            os_errors_as("cannot read a rendered file", path),
            open(path, encoding="utf-8") as file,
        ):
            texts.append(file.read())
        if not marker.is_unchanged(texts[-1]):
            return f"{path} was edited by hand"
    environment, target = next(
        (lock.environments[environment], lock.environments[environment].targets[target])
        for name, environment, target in lock.names()
        if name == seen.name
    )
    held = target.components
    recipe = str(lock.render.get("recipe", "")) or files.recipe_of(lock, index)
    builds = () if recipes.is_path(recipe) else recipes.recipe(recipe, index).built(held)
    inside = _HOLDS.search(texts[0])
    component = _component(index, environment, builds, inside[1].split() if inside else ())
    head = index.header["components"].get(component)
    if head is None or held[component].version not in index.component(component).versions:
        return "the image has no requested component that the matrix knows"
    where = {"machine": _machine(index, seen.name, lock), "accelerator": target.accelerator}
    # Only a framework comes from somewhere; what a recipe builds comes from its source.
    if component in builds or head["framework"]:
        where["from"] = "source" if component in builds else target.from_
    where |= {name: held[name].version for name in ("distro", "python") if name in held}
    return ImageBuild(
        component=component,
        release=held[component].version,
        where=where,
        build=target.variants[component].build if component in target.variants else "",
        beside={
            name: part.version
            for name, part in held.items()
            if name != component and name not in _APART
        },
        recipe=os.path.basename(recipe),
        base=_base(lock, held["base-image"].version),
        engine=seen.engine,
        lock=lock_file.digest(lock).partition(":")[2][:_DIGITS],
        day=seen.day,
        seconds=image.seconds,
        check="" if image.exit_code else seen.checked,
        missing=seen.missing if image.exit_code else "",
        size=seen.size,
        packed=seen.packed,
    )


def put(builds: Sequence[ImageBuild], path: str) -> HarvestedFile:
    """Put rows into a file of facts, which keeps what else it has.

    Raises MatrixError, OutputError, and UsageError where somebody else writes there.
    """
    with harvests.locked(os.path.dirname(path) or "."):
        # Read while nobody else writes: their rows stay.
        made = runs.builds_document(path, builds)
        text = written.text(made, runs.ABOUT_BUILDS, "toolmatrix build --write")
        file = harvests.compared("builds", path, text)
        replace_files({path: text} if file.changed and made["tables"] else {})
    return file


def _component(
    index: Index, environment: LockedEnvironment, builds: Sequence[str], inside: Sequence[str]
) -> str:
    """What an image is of: the first that was asked for of what its recipe builds, or else of what it holds."""
    read = Names(index).asks
    asked = [ask.component for text in environment.asked.values() for ask in read(text)]
    first = [name for name in asked if name in builds] or builds
    return next((name for name in first or asked if first or name in inside), "")


def _machine(index: Index, name: str, lock: Lock) -> str:
    target = next(last for first, _, last in lock.names() if first == name)
    return index.header["targets"][target]["context"]["machine"]


def _base(lock: Lock, named: str) -> str:
    """The image that a build started from: another may have been put in the place of the one that was resolved."""
    stand_ins = dict(text.partition("=")[::2] for text in lock.render.get("base", ()))
    return f"{stand_ins[named]} for {named}" if named in stand_ins else named
