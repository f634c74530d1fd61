"""A folder beside the files, out of which an image takes what it would fetch: where each file lies in it.

A download lies below the name of its host and by its path there; wheels lie in a folder for each image.
"""

from __future__ import annotations

import posixpath
import re
from urllib.parse import urlsplit

from toolmatrix.errors import RenderError
from toolmatrix.render import quote
from toolmatrix.render.model import ImagePlan

DISTDIR = "/mnt/distdir"
"""Where a build finds archives that its tools would fetch by themselves: `--distdir` of Bazel."""
ARCHIVES = "distdir"
"""Where they lie, below the folder, each by its own name."""

_STRANGE = re.compile(r"[^A-Za-z0-9._+@/-]")


def check_folder(folder: str) -> str:
    """A folder below that of the files; raises RenderError for another place."""
    first = folder.partition("/")[0]
    if folder and (first in ("", ".", "..") or posixpath.normpath(folder) != folder):
        raise RenderError(
            "files are taken out of a folder beside the Dockerfiles alone",
            expected="a plain path below their directory, such as `fetched`",
            found=f"`{ascii(folder)[1:-1]}`",
        )
    return str(quote.plain("path", folder)) if folder else ""


def place(url: str) -> str:
    """Where the file of an address lies, below the folder; raises RenderError for one that would lie elsewhere."""
    parts = urlsplit(url)
    path = _STRANGE.sub("_", parts.netloc + parts.path + (f"?{parts.query}" if parts.query else ""))
    return check_folder(path)


def has_archives(image: ImagePlan) -> bool:
    """True if a tool of an image is told to look for archives in the folder."""
    return any(DISTDIR in line for _, line in image.mirrored)


def wheels(image: ImagePlan) -> str:
    """Where the wheels of an image lie, below the folder."""
    return f"wheels/{quote.plain('release', image.name)}"
