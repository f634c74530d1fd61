"""Subjects by their addresses: `SCHEME:PLACE`, each scheme with what reads it."""

from __future__ import annotations

import os
import sys

from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.inventory.limits import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from toolmatrix.inventory.image import Image
    from toolmatrix.inventory.look import Look
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.inventory.tree import Tree

    Read = Callable[[str, str, Look, Budget], tuple[Image, Tree]]

SCHEMES = {
    "archive": ("archive:FILE.tar", "what `docker save` or `podman save` wrote; `-` is stdin"),
    "oci": ("oci:DIR", "a directory in the OCI image layout"),
    "dir": ("dir:ROOT", "a directory as the root of a system"),
    "inventory": ("inventory:FILE.json", "what `toolmatrix inventory --json` wrote"),
}
"""How each kind of subject is written, and what it is."""


def observe(
    subject: str, platform: str = "", directory: str = "", stdin: IO[bytes] | None = None
) -> Inventory:
    """The inventory of a subject.

    `platform` picks from an index, paths are relative to `directory`, and `archive:-` reads `stdin`, by default that of
    this process. Raises UsageError for what is no address, SubjectError for what cannot be read, and NothingMatched for
    a subject of another platform.
    """
    scheme, colon, place = subject.partition(":")
    if scheme not in SCHEMES or not colon or not place:
        raise UsageError(
            "this is no subject",
            expected=", ".join(f"`{form}`" for form, _ in SCHEMES.values()),
            found=f"`{subject}`",
        )
    found = _read(scheme, place, subject, platform, directory, stdin)
    if platform and not _is_of(found.platform, platform):
        raise NothingMatched(
            f"{subject} is of another platform",
            expected=platform,
            found=found.platform or "no platform",
        )
    return found


def _is_of(platform: str, wanted: str) -> bool:
    """Whether a platform is the wanted one, variants aside."""
    return platform.split("/")[:2] == wanted.split("/")[:2]


def _read(
    scheme: str, place: str, subject: str, platform: str, directory: str, stdin: IO[bytes] | None
) -> Inventory:
    path = os.path.join(directory, place)
    if scheme == "inventory":
        from toolmatrix.inventory import saved

        return saved.read(path)
    from toolmatrix.inventory.look import Look
    from toolmatrix.inventory.observe import observe

    budget = Budget(subject)
    look = Look(budget)
    if scheme == "dir":
        from toolmatrix.inventory import directory as directories

        image, tree = directories.read(path, look, budget)
    elif scheme == "oci":
        from toolmatrix.inventory import oci

        image, tree = oci.read(path, platform, look, budget)
    elif place == "-":
        image, tree = _archive(stdin or sys.stdin.buffer, platform, look, budget)
    else:
        from toolmatrix.inventory import oci

        with oci.opened(path, "an archive of an image", budget) as stream:
            image, tree = _archive(stream, platform, look, budget)
    return observe(image, tree, look)


def _archive(stream: IO[bytes], platform: str, look: Look, budget: Budget) -> tuple[Image, Tree]:
    from toolmatrix.inventory import archive

    return archive.read(stream, platform, look, budget)
