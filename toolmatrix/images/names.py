"""Names of images: what a user may write, and the full names in engines and indexes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from toolmatrix.images.limits import Budget

Image = TypeVar("Image")

# The form of a reference or the beginning of an id; nothing else may reach an engine or a program.
_NAME = re.compile(r"\w[\w.:@+-]*(/\w[\w.:@+-]*)*", re.ASCII)
_VERSION = re.compile(r"[:@][^/]*$")
# Docker's own images omit their user, `library`.
_SHORT = re.compile(r"docker\.io/([^/]+)")
_NEAREST = 3


def image_name(name: str, budget: Budget) -> str:
    """The name out of `NAME` or `//NAME`; raises SubjectError for an invalid one."""
    name = name.removeprefix("//")
    if not _NAME.fullmatch(name):
        raise budget.refusal("this is not a valid image name", "", f"`{name}`")
    return name


def nearest(scheme: str, name: str, names: Iterable[str]) -> str:
    """The subjects of a scheme with the nearest names, as text."""
    matches = get_close_matches(name, list(names), _NEAREST)
    return " or ".join(f"`{scheme}:{match}`" for match in matches)


def find(name: str, images: Mapping[str, Image]) -> dict[str, Image]:
    """The images that match a name: as it is, as one of this machine, else all whose names end with it.

    Without a tag or digest it is `latest`. Podman takes `localhost/` first as well (containers-registries.conf, "Short
    name"), and asks its configuration where this leaves several.
    """
    tagged = name if _VERSION.search(name) else f"{name}:latest"
    library = _SHORT.sub(r"docker.io/library/\1", tagged)
    for candidate in (name, tagged, f"localhost/{tagged}", library):
        if candidate in images:
            return {candidate: images[candidate]}
    return {key: image for key, image in images.items() if key.endswith(f"/{tagged}")}


def only_image(name: str, matches: Mapping[str, Image], nearest: str, budget: Budget) -> Image:
    """The one image among the matches of a name, by what else it may be called.

    Raises SubjectError for none, with the nearest, and for several.
    """
    images = list(matches.values())
    if not images:
        raise budget.refusal("no such image", nearest, f"`{name}`", "pull or build it")
    if any(image != images[0] for image in images):
        raise budget.refusal("the name matches several images", " or ".join(matches), f"`{name}`")
    return images[0]
