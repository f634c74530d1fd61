"""What tells two subjects of one name apart, without reading either: of a file its size, its time and its digest."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from hashlib import sha256

from toolmatrix.images.streams import Hashed, exhaust


def of_file(path: str) -> str:
    """Size, time of the last change, and digest; empty for what is no file or cannot be read."""
    try:
        held = os.stat(path)
        if not stat.S_ISREG(held.st_mode):
            return ""
        digest = _digest(path, (held.st_dev, held.st_ino, held.st_size, held.st_mtime_ns))
    except OSError:
        return ""
    return f"{held.st_size} {held.st_mtime_ns} {digest}"


@lru_cache(maxsize=1)
def _digest(path: str, _state: tuple[int, ...]) -> str:
    """The digest of a file; one that did not change meanwhile is not read again."""
    with open(path, "rb") as file:
        stream = Hashed(file)
        exhaust(stream)
    return stream.digest


def of_blobs(document: str, folder: str) -> str:
    """A document that names blobs by their digests, with the sizes of those that are there; empty where it is not."""
    try:
        with open(document, "rb") as file:
            made = sha256(file.read())
        with os.scandir(folder) as found:
            there = sorted((one.name, one.stat().st_size) for one in found)
    except OSError:
        return ""
    made.update(repr(there).encode())
    return f"sha256:{made.hexdigest()}"
