"""Adds builds to a file of facts: those whose check passed, and those for which an address was missing."""

from __future__ import annotations

import os.path
import re

from toolmatrix.api import files, harvests, this_day
from toolmatrix.api.caller import caller
from toolmatrix.commands._image_exports import output_of
from toolmatrix.harvest import runs
from toolmatrix.harvest.runs import ImageBuild
from toolmatrix.lockfile import lock_file
from toolmatrix.logs.log import Proof
from toolmatrix.outputs import os_errors_as, replace_files
from toolmatrix.recipes import read as recipes
from toolmatrix.rendering import common
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolmatrix.api.builds import Built
    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import Lock, LockedEnvironment

# Components that have columns of their own in a row.
_APART = ("distro", "python", "base-image", "driver")
_DIGITS = 12
# The label of the last stage of a Dockerfile with its components.
_HOLDS = re.compile(r'io\.github\.toolmatrix\.components="([^"]*)"')
_LONGEST = 1 << 16
# With containerd's store a size is that of the compressed layers, otherwise of their files.
_PACKED = "io.containerd.snapshotter"
_VERSIONS = {
    "docker": ("version", "--format", "{{.Server.Version}} on {{.Server.Arch}}"),
    "buildah": ("version", "--format", "{{.Version}} on {{.OsArch}}"),
}


def record_builds(index: Index, builds: Iterable[tuple[Built, str]], path: str) -> None:
    """Put builds into a file of facts, which keeps what else it has; each with its engine.

    Those that are left out are named. Raises MatrixError, OutputError, and UsageError where somebody else writes there.
    """
    rows: list[ImageBuild] = []
    for image, engine in builds:
        # An earlier run has already recorded it, if it was told to.
        row = "an earlier run built it" if image.kept else _row(index, image, engine)
        if isinstance(row, str):
            caller().note(f"{image.image} is not recorded: {row}")
        else:
            rows.append(row)
    if not rows:
        return
    with harvests.harvest_lock(os.path.dirname(path) or "."):
        # Read under the lock, so that rows of other writers stay.
        document = runs.builds_document(path, rows)
        text = runs.text(document, runs.ABOUT_BUILDS, "toolmatrix build --write")
        file = harvests.compare_with_file("builds", path, text)
        replace_files({path: text} if file.changed and document["tables"] else {})
    caller().note(harvests.describe_changes(file).removesuffix("\n"))


def _row(index: Index, image: Built, engine: str) -> ImageBuild | str:
    """The row of a build, or why there is none."""
    folder, name = os.path.split(image.file.removesuffix(".Dockerfile"))
    proof = _proof(image.log)
    lock = lock_file.read(os.path.join(folder, files.LOCK))
    if not image.exit_code and not proof.checked:
        return "its check was not run, because the engine had the whole build in its cache"
    if image.exit_code and not proof.missing:
        return "it failed, but not because of a missing address"
    texts = []
    for ending in (".Dockerfile", ".check.sh"):
        path = os.path.join(folder, name + ending)
        with (
            os_errors_as("cannot read a rendered file", path),
            open(path, encoding="utf-8") as file,
        ):
            texts.append(file.read())
        if not common.is_unchanged(texts[-1]):
            return f"{path} was edited by hand"
    at, named = next(keys for stem, *keys in lock.names() if stem == name)
    environment, target = lock.environments[at], lock.environments[at].targets[named]
    components = target.components
    recipe = str(lock.render.get("recipe", "")) or files.recipe_of(lock, index)
    builds = () if recipes.is_path(recipe) else recipes.recipe(recipe, index).built(components)
    inside = _HOLDS.search(texts[0])
    component = _component(index, environment, builds, inside[1].split() if inside else ())
    head = index.header["components"].get(component)
    if head is None or components[component].version not in index.component(component).versions:
        return "the image has no requested component that the matrix knows"
    machine = index.header["targets"][named]["context"]["machine"]
    where = {"machine": machine, "accelerator": target.accelerator}
    # Only a framework has `from`; what a recipe builds comes from source.
    if component in builds or head["framework"]:
        where["from"] = "source" if component in builds else target.from_
    where |= {name: components[name].version for name in ("distro", "python") if name in components}
    size, packed = _size(image, engine)
    return ImageBuild(
        component=component,
        release=components[component].version,
        where=where,
        build=target.variants[component].build if component in target.variants else "",
        beside={
            name: entry.version
            for name, entry in components.items()
            if name != component and name not in _APART
        },
        recipe=os.path.basename(recipe),
        base=_base(lock, components["base-image"].version),
        engine=f"{engine} {output_of(engine, *_VERSIONS[engine]).strip()}",
        lock=lock_file.digest(lock).partition(":")[2][:_DIGITS],
        day=this_day(caller().env).isoformat(),
        seconds=image.seconds,
        check="" if image.exit_code else proof.checked,
        missing=proof.missing if image.exit_code else "",
        size=size,
        packed=packed,
    )


def _proof(path: str) -> Proof:
    proof = Proof()
    with os_errors_as("cannot read the log of a build", path), open(path, "rb") as log:
        while line := log.readline(_LONGEST):
            proof.read(line.decode("utf-8", "replace").rstrip())
    return proof


def _size(image: Built, engine: str) -> tuple[int, bool]:
    """The size of an image in bytes, 0 if unknown, and whether it is that of the compressed layers."""
    # buildah has the size of an image only in words.
    if engine != "docker" or image.exit_code:
        return 0, False
    size = output_of("docker", "image", "inspect", "--format", "{{.Size}}", image.image).strip()
    packed = bool(size) and _PACKED in output_of("docker", "info", "--format", "{{.DriverStatus}}")
    return int(size) if size.isdecimal() else 0, packed


def _component(
    index: Index, environment: LockedEnvironment, builds: Sequence[str], inside: Sequence[str]
) -> str:
    """The main component of an image: the first requested one that its recipe builds, else that it contains."""
    read = Names(index).asks
    requested = [ask.component for text in environment.asked.values() for ask in read(text)]
    first = [name for name in requested if name in builds] or builds
    return next((name for name in first or requested if first or name in inside), "")


def _base(lock: Lock, named: str) -> str:
    """The base image of a build: it may have been replaced by another than the resolved one."""
    stand_ins = dict(text.partition("=")[::2] for text in lock.render.get("base", ()))
    return f"{stand_ins[named]} for {named}" if named in stand_ins else named
