"""Images and systems in a directory: the OCI image layout, what skopeo writes to `dir:`, and the root of a system.

A layout has index.json and blobs by digest. The form of `skopeo copy` and `podman push` is that of
https://github.com/containers/image, directory/directory_transport.go and directory_dest.go: a file `version` marks it,
blobs are called by the hexadecimal part of their digest, and of an image for several platforms manifest.json is the
list, with its manifests beside it. A root is looked at in place, without following any of its links outside.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import IO, TYPE_CHECKING

from toolmatrix import opener
from toolmatrix.images import image as images
from toolmatrix.images.image import Descriptor, ImageMetadata
from toolmatrix.images.layer import DIRECTORY, FILE, LINK, Entry, Layer
from toolmatrix.images.limits import Budget
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.streams import Hashed, blobs_identity, exhaust
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    from toolmatrix.images.layer import Look

_INDEX, _MANIFEST = "index.json", "manifest.json"
_BLOBS = os.path.join("blobs", "sha256")
_MARK = re.compile(rb"Directory Transport Version: ([\w.]{1,20})")
_KNOWN = b"1.1"
# Where a running system mounts what are no files.
_ELSEWHERE = ("proc", "sys", "dev")


def read_layout(path: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of a layout; raises SubjectError for one that is incomplete or damaged."""
    with closing(opened(os.path.join(path, _INDEX), _INDEX, reader.budget)) as stream:
        index = images.read_document(stream, reader.budget)
    return images.by_digests(index, _blobs(path, reader.budget), platform, reader)


def read_blobs(
    path: str, digest: str, platform: str, reader: LayerReader, help: str
) -> tuple[ImageMetadata, Tree]:
    """The image of the digest of its manifest or index, out of a directory where blobs lie as in a layout.

    Raises SubjectError where one of them is missing, which `help` is about, or damaged.
    """
    blob = _blobs(path, reader.budget, help)
    with closing(blob(Descriptor(digest=digest))) as stream:
        size = os.fstat(stream.fileno()).st_size
    index = {"manifests": [{"digest": digest, "size": size}]}
    # Whoever keeps such a directory has compared what it holds, as a registry has.
    return images.by_digests(index, blob, platform, reader, by_name=True)


def _blobs(path: str, budget: Budget, help: str = "") -> Callable[[Descriptor], IO[bytes]]:
    def blob(asked: Descriptor) -> IO[bytes]:
        name = os.path.join(path, _BLOBS, images.digest_hex(asked.digest, budget))
        return opened(name, f"the blob {asked.digest}", budget, help)

    return blob


def layout_identity(path: str) -> str:
    """The identity of a layout's contents at this moment."""
    return blobs_identity(os.path.join(path, _INDEX), os.path.join(path, _BLOBS))


def read(path: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of a directory that is marked as one, else the files below it as a system without configuration."""
    version = _version(path)
    if version:
        return _read_copied(path, version, platform, reader)
    return read_root(path, reader)


def identity(path: str) -> str:
    """The identity of a marked directory's contents at this moment; empty for a root, which only reading tells."""
    return blobs_identity(os.path.join(path, _MANIFEST), path) if _version(path) else ""


def _version(path: str) -> bytes:
    place = os.path.join(path, "version")
    # Any root may hold something of this name, and opening a pipe would wait for who writes to it.
    if not os.path.isfile(place):
        return b""
    try:
        with opener.opened(place) as file:
            found = _MARK.match(file.read(100))
    except OSError:
        return b""
    return found[1] if found else b""


def _read_copied(
    path: str, version: bytes, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    budget = reader.budget
    if version != _KNOWN:
        raise budget.refusal(
            "the directory is of an unknown version",
            f"`Directory Transport Version: {_KNOWN.decode()}`",
            f"`{version.decode()}`",
            "copy it with `skopeo copy dir:... oci:...`",
        )
    whole = os.path.join(path, _MANIFEST)
    with closing(opened(whole, _MANIFEST, budget)) as file:
        stream = Hashed(file)
        exhaust(stream)
    top = stream.digest

    def blob(asked: Descriptor) -> IO[bytes]:
        # Manifests of a list carry a suffix; the top one has a name of its own.
        name = os.path.join(path, images.digest_hex(asked.digest, budget))
        listed = f"{name}.{_MANIFEST}"
        place = listed if os.path.isfile(listed) else name
        return opened(whole if asked.digest == top else place, f"the blob {asked.digest}", budget)

    index = {"manifests": [{"digest": top, "size": stream.count}]}
    return images.by_digests(index, blob, platform, reader)


def read_root(path: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The files below a directory; raises SubjectError where it is none. What cannot be read is left out."""
    budget = reader.budget
    try:
        names = os.listdir(path)
    except OSError as error:
        raise budget.refusal(
            "cannot read the directory", "the root of a system", error.strerror or str(error)
        ) from None
    tree = Tree()
    entries = tuple(_below(path, sorted(names), reader.look(budget), budget))
    tree.apply(Layer(digest="", diff_id="", entries=entries), budget)
    return ImageMetadata(subject=budget.subject), tree


def _below(root: str, names: list[str], look: Look, budget: Budget) -> Iterator[tuple[str, Entry]]:
    todo = [name for name in reversed(names) if name not in _ELSEWHERE]
    while todo:
        path = todo.pop()
        budget.enter(path)
        full = os.path.join(root, path)
        try:
            status = os.lstat(full)
            entry = _entry(path, full, status, look)
            if stat.S_ISDIR(status.st_mode):
                todo += [f"{path}/{name}" for name in sorted(os.listdir(full), reverse=True)]
        except OSError:
            # Of a running system files come and go, and some are for others alone.
            continue
        if entry is not None:
            yield path, entry


def _entry(path: str, full: str, status: os.stat_result, look: Look) -> Entry | None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return Entry(DIRECTORY, mode=mode)
    if stat.S_ISLNK(mode):
        return Entry(LINK, link=os.readlink(full))
    if not stat.S_ISREG(mode):
        return None
    # Since it was looked at the file may have become a link out of the root, or a pipe that nobody writes to.
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        held = look(path, status.st_size, stream)
    return Entry(FILE, size=status.st_size, mode=mode & 0o7777, held=held)


def opened(path: str, what: str, budget: Budget, help: str = "") -> IO[bytes]:
    """A file to read; raises SubjectError where it is missing or none, which `help` is about."""
    try:
        # A pipe is as good as a file here: `validate` and `inventory` bound what they wait for.
        return open(path, "rb")
    except OSError as error:
        found = error.strerror or str(error)
        raise budget.refusal("cannot read the image", what, found, help) from None
