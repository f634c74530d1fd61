"""Names of images on this machine: what a user may write, and what engines hold under names in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from toolmatrix.images.limits import Budget

Held = TypeVar("Held")

# What a reference or the beginning of an id is made of; nothing else may reach an engine or a program.
_NAME = re.compile(r"\w[\w.:@+-]*(/\w[\w.:@+-]*)*", re.ASCII)
_VERSION = re.compile(r"[:@][^/]*$")
# Docker's own images have no user in front, who is `library` in full.
_SHORT = re.compile(r"docker\.io/([^/]+)")
_NEAREST = 3


def image_name(name: str, budget: Budget) -> str:
    """The name out of `NAME` or `//NAME`; raises SubjectError for what cannot be one."""
    name = name.removeprefix("//")
    if not _NAME.fullmatch(name):
        raise budget.refusal("this is no name of an image", "", f"`{name}`")
    return name


def repository(name: str) -> str:
    """A name without its tag or digest."""
    return _VERSION.sub("", name.partition("@")[0])


def near(scheme: str, name: str, names: Iterable[str]) -> str:
    """The subjects of a scheme whose names are the nearest, in words."""
    found = get_close_matches(name, list(names), _NEAREST)
    return " or ".join(f"`{scheme}:{one}`" for one in found)


def find(name: str, held: Mapping[str, Held]) -> dict[str, Held]:
    """What is held under a name: as it is, as one of this machine, else under all that end with it.

    Without a tag or digest it is `latest`. Podman takes `localhost/` first as well (containers-registries.conf, "Short
    name"), and asks its configuration where this leaves several.
    """
    tagged = name if _VERSION.search(name) else f"{name}:latest"
    for one in (name, tagged, f"localhost/{tagged}", _SHORT.sub(r"docker.io/library/\1", tagged)):
        if one in held:
            return {one: held[one]}
    return {one: kept for one, kept in held.items() if one.endswith(f"/{tagged}")}


def one_of(name: str, found: Mapping[str, Held], nearest: str, budget: Budget) -> Held:
    """The one thing that was found under a name, by how else it may be called.

    Raises SubjectError for none, with the nearest, and for several.
    """
    kept = list(found.values())
    if not kept:
        raise budget.refusal("there is no such image", nearest, f"`{name}`", "pull or build it")
    if any(one != kept[0] for one in kept):
        raise budget.refusal("the name stands for several images", " or ".join(found), f"`{name}`")
    return kept[0]
