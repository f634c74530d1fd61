"""What was observed of a machine, an environment or an image, as a manifest of what is installed."""

from __future__ import annotations

import re

from toolmatrix.manifests.installed import release_series
from toolmatrix.manifests.model import (
    CONDA,
    INVENTORY,
    MACHINE,
    PIP,
    PYTHON,
    Item,
    ManifestEnvironment,
    Phrase,
    ProjectManifest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.inspection.model import Inventory, Seen

# By the witness of a package.
_PACKAGES = {"dist-info": PIP, "egg-info": PIP, "conda": CONDA}
# What a wheel brings is below such a folder, and is no toolkit of the system.
_OF_PACKAGES = ("site-packages/", "dist-packages/")
_FOLDER = re.compile(r"lib/python(\d+\.\d+)/site-packages/")


def manifest_of(inventory: Inventory) -> ProjectManifest:
    """The manifest of an inventory; each item is at the place where its version was seen."""
    subject = Phrase(inventory.subject, "")
    environment = ManifestEnvironment(name="", items=tuple(_items(inventory)))
    return ProjectManifest(
        kind=INVENTORY, environments=(environment,), unread=(), sources=(subject,)
    )


def _items(inventory: Inventory) -> Iterator[Item]:
    for name, sightings in inventory.components.items():
        sighting = _counting(sightings)
        if sighting is not None:
            yield _item(_PACKAGES.get(sighting.seen_by, MACHINE), name, sighting)
    if "python" not in inventory.components:
        yield from _interpreter(inventory)
    for feature in ("device", "product"):
        for sighting in inventory.features.get(feature, ()):
            yield _item(MACHINE, "device", sighting)


def _interpreter(inventory: Inventory) -> Iterator[Item]:
    """The Python of a virtual environment, which its folders name."""
    folders: dict[str, Seen] = {}
    for sightings in inventory.components.values():
        for sighting in sightings:
            match = _FOLDER.search(sighting.where)
            if match:
                folders.setdefault(match[1], sighting)
    if len(folders) == 1:
        series, sighting = next(iter(folders.items()))
        yield _item(PYTHON, "python", sighting.replace(version=series))


def _counting(sightings: Sequence[Seen]) -> Seen | None:
    """The sighting that says which version is used; None where only packages bring it."""
    own = [
        sighting
        for sighting in sightings
        if sighting.seen_by in _PACKAGES
        or not any(folder in sighting.where for folder in _OF_PACKAGES)
    ]
    return next((sighting for sighting in own if sighting.default), own[0] if own else None)


def _item(kind: str, name: str, sighting: Seen) -> Item:
    kind = PYTHON if name == "python" else kind
    before = {PYTHON: "python ", MACHINE: ""}.get(kind, f"{name}==")
    text = Phrase(sighting.where, before + sighting.version).whole()
    return Item(
        kind=kind,
        name=name,
        # nvcc counts builds of its own, which are no releases of the toolkit.
        specifier=f"=={release_series(sighting.version, 2)}.*"
        if name == "cuda"
        else f"=={sighting.version}",
        text=text,
        version=text[len(before) :],
        installed=True,
    )
