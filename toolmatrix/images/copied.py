"""Images in a directory as `skopeo copy` and `podman push` write them to `dir:`: manifest.json and blobs by digest.

The form is that of https://github.com/containers/image, directory/directory_transport.go and directory_dest.go: a file
`version` marks it, blobs are called by the hexadecimal part of their digest, and of an image for several platforms
manifest.json is the list, with its manifests beside it.
"""

from __future__ import annotations

import os
import re
from contextlib import closing

from toolmatrix.images import identities, oci
from toolmatrix.images import image as images
from toolmatrix.images.streams import Hashed, exhaust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from toolmatrix.images.image import Descriptor, Image
    from toolmatrix.images.layer import Look
    from toolmatrix.images.limits import Budget
    from toolmatrix.images.tree import Tree

_MARK = re.compile(rb"Directory Transport Version: ([\w.]{1,20})")
_KNOWN = b"1.1"
_MANIFEST = "manifest.json"


def is_one(path: str) -> bool:
    """Whether a directory is marked as one of these."""
    return bool(_version(path))


def _version(path: str) -> bytes:
    place = os.path.join(path, "version")
    if not os.path.isfile(place):
        return b""
    try:
        with open(place, "rb") as file:
            found = _MARK.match(file.read(100))
    except OSError:
        return b""
    return found[1] if found else b""


def identity(path: str) -> str:
    """What the directory holds at this moment."""
    return identities.of_blobs(os.path.join(path, _MANIFEST), path)


def read(path: str, platform: str, look: Look, budget: Budget) -> tuple[Image, Tree]:
    """The image of a directory; raises SubjectError for one that is incomplete, damaged, or of an unknown version."""
    version = _version(path)
    if version != _KNOWN:
        raise budget.refusal(
            "the directory is of an unknown version",
            f"`Directory Transport Version: {_KNOWN.decode()}`",
            f"`{version.decode()}`",
            "copy it with `skopeo copy dir:... oci:...`",
        )
    whole = os.path.join(path, _MANIFEST)
    with closing(oci.opened(whole, _MANIFEST, budget)) as file:
        stream = Hashed(file)
        exhaust(stream)
    top = stream.digest

    def blob(asked: Descriptor) -> IO[bytes]:
        name = images.digest_hex(asked.digest, budget)
        listed = os.path.join(path, f"{name}.{_MANIFEST}")
        place = next(filter(os.path.isfile, (listed,)), os.path.join(path, name))
        return oci.opened(
            whole if asked.digest == top else place, f"the blob {asked.digest}", budget
        )

    index = {"manifests": [{"digest": top, "size": stream.count}]}
    return oci.by_digests(index, blob, platform, look, budget)
