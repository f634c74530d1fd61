"""The labels of an image: those of the OCI (image specification, annotations), and those by which its lock is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolmatrix.lock.model import LockedTarget
    from toolmatrix.recipes.model import Probe, Recipe
    from toolmatrix.render.model import Runtime, UsedPackage

# Names of labels that are not the OCI's own begin with a domain turned round (OCI image specification, annotations).
_LABEL = "io.github.toolmatrix."


def of(
    target: str,
    held: LockedTarget,
    recipe: Recipe,
    last: Runtime,
    digest: str,
    asked: Iterable[str],
) -> dict[str, str]:
    """The labels by name; `asked` are the components that the check of the last image asks for."""
    # A label of the base image that is not set anew would speak for this one, so an empty one is set as well.
    made = [held.components[name].version for name in recipe.built(held.components)]
    version = made[0] if len(made) == 1 else ""
    labels = {
        "org.opencontainers.image.title": f"{recipe.name} for {target}",
        "org.opencontainers.image.description": recipe.about,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.base.name": last.base,
        "org.opencontainers.image.base.digest": last.from_.partition("@")[2],
        _LABEL + "components": " ".join(_present(held, recipe, last, asked)),
        _LABEL + "lock.digest": digest,
        _LABEL + "target": target,
    }
    floors = {
        f"{_LABEL}{name}.floor": part.version
        for name, part in sorted(held.components.items())
        if part.floor
    }
    return labels | floors


def seen(
    used: Iterable[UsedPackage], probes: Iterable[tuple[str, Probe]], recipe: Recipe
) -> set[str]:
    """The components that the check of the last image asks for."""
    asked = {name for name, probe in probes if probe.runtime or not recipe.artifacts}
    return asked | {one.component for one in used}


def _present(held: LockedTarget, recipe: Recipe, last: Runtime, seen: Iterable[str]) -> list[str]:
    # `toolmatrix validate` looks for these in the image: what the check does not ask for is not promised.
    base = held.components["base-image"].version
    starts = {"base-image"} if last.base == base else set()
    return sorted({*seen} | starts | {*recipe.built(held.components)})
