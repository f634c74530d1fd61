"""Images on this machine: archives of `docker save` and `podman save`, directories, and the storage of engines.

An archive is read from its start. Older ones have the order of their layers at the end: in a plain file the layers are
read once that is known, at their offsets; in a pipe, which cannot be read twice, and in a packed file each is read into
memory without its contents as it passes, and sorted afterwards.

A layout has index.json and blobs by digest. The form of `skopeo copy` and `podman push` is that of
https://github.com/containers/image, directory/directory_transport.go and directory_dest.go: a file `version` marks it,
blobs are named by the hexadecimal part of their digest, and for an image of several platforms manifest.json is the
list, with its manifests beside it. A root is read in place, without following any of its links outside.

Docker (driver overlay2) and podman (driver overlay) unpack layers into directories, which are in their descriptions of
an image. Paths beside those are of Docker's package `layer` (https://github.com/moby/moby): image/overlay2/layerdb has
layers by their chain ids (OCI image-spec, config.md, "Layer ChainID"); and of https://github.com/containers/storage,
`images.go` and `layers.go`. The bytes around the files are beside them, in lines of JSON as of
https://github.com/vbatts/tar-split: pieces as they are, and names of files between them. Together they are the layer,
which its diff id proves.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import posixpath
import re
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, TypeVar

from toolmatrix import opener
from toolmatrix.errors import SubjectError
from toolmatrix.images import image as images
from toolmatrix.images import streams
from toolmatrix.images.image import Descriptor, ImageMetadata, IndexEntry, Manifest
from toolmatrix.images.layers import (
    DIRECTORY,
    FILE,
    LINK,
    Entry,
    Layer,
    LayerReader,
    Tree,
    check_digest,
    damaged,
    inner_path,
)
from toolmatrix.images.limits import LARGEST_DOCUMENT, Budget
from toolmatrix.images.streams import (
    BLOCK,
    Forward,
    Hashed,
    Member,
    Readable,
    Section,
    blobs_identity,
    errors,
    exhaust,
)

if TYPE_CHECKING:
    from toolmatrix.images.layers import Look

    _Content = TypeVar("_Content")
    _Stored = tuple[Any, str, list[str]]


_BLOB = re.compile(r"blobs/sha256/([0-9a-f]{64})")
# Docker calls a layer ID/layer.tar, Podman DIGEST.tar; in the OCI form its name says nothing.
_LAYER = re.compile(r"blobs/sha256/[0-9a-f]{64}|.*\.tar(\.gz|\.zst)?")
_DOCUMENT = (b"{", b"[")
_HELP = "`docker save NAME -o FILE` and `podman save` write one; a bare directory is `dir:ROOT`"


def read_archive(
    stream: Readable, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    """The image of an archive; raises SubjectError for one that is incomplete or damaged."""
    budget = reader.budget
    whole = streams.section(stream)
    packed = streams.Counted(whole or stream)
    try:
        packed.peek()
    except (OSError, ValueError) as error:
        # A closed stdin is not a damaged archive.
        reason = getattr(error, "strerror", None) or str(error)
        raise budget.refusal("cannot read the image", "an archive of an image", reason) from None
    try:
        unpacked = streams.Unpacked(packed, budget, archive=True)
        head = unpacked.peek()
        if not head.strip(b"\0"):
            raise budget.refusal(
                "this is not an archive", "a tar archive of an image", "nothing", _HELP
            )
        if whole is not None and unpacked.is_plain:
            whole.position -= len(head)
            file = streams.Forward(whole.part(whole.position, whole.left))
            archive = _Archive(reader, whole, file)
        else:
            archive = _Archive(reader, None, streams.Forward(unpacked))
        for member in streams.members(archive.file):
            budget.enter(member.name)
            archive.add(member)
    except streams.errors() as error:
        raise damaged(budget, error) from None
    return archive.image(platform)


class _Archive:
    def __init__(self, reader: LayerReader, whole: Section | None, file: Forward) -> None:
        self.reader = reader
        self.budget = reader.budget
        # Where parts of the archive can be read by their offsets, layers are read on demand.
        self.whole = whole
        self.start = whole.position if whole is not None else 0
        self.file = file
        self.documents: dict[str, bytes] = {}
        self.layers: dict[str, Layer] = {}
        self.offsets: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.links: dict[str, str] = {}

    def add(self, member: Member) -> None:
        path = inner_path(member.name, self.budget)
        # Docker before version 25 writes a layer of several images once, and links to it from the others.
        if member.is_link:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.link))
            self.links[path] = target
        elif member.is_hard_link:
            self.links[path] = inner_path(member.link, self.budget)
        elif member.contents is not None:
            offset = self.file.tell()
            self._add(path, Hashed(member.contents), member.size, offset if member.plain else -1)

    def _add(self, path: str, blob: Hashed, size: int, offset: int) -> None:
        head = blob.peek()
        # Blobs of the OCI form are recognized by their first bytes. A name in a tar header may begin with a brace, so
        # the mark of tar behind it decides.
        if head[:1] in _DOCUMENT and not streams.is_tar(head) and size <= LARGEST_DOCUMENT:
            if self.budget.reserve(size):
                self.documents[path] = b"".join(iter(blob.read, b""))
                check_digest(_blob_digest(path) or blob.digest, blob.digest, self.budget)
        elif not _LAYER.fullmatch(path):
            return
        elif self.whole is not None and offset >= 0:
            self.offsets[path] = self.start + offset
        else:
            self.layers[path] = layer = self.reader.passing(_blob_digest(path), blob)
            check_digest(_blob_digest(path) or layer.digest, layer.digest, self.budget)
        self.sizes[path] = size

    def image(self, platform: str) -> tuple[ImageMetadata, Tree]:
        # Docker writes both documents from version 25 on; only the index has digests and platforms.
        if "index.json" in self.documents:
            index = images.parse(self.documents["index.json"], self.budget)
            entries = images.images_of_index(index, self._document, self.budget)
            platform = platform or images.default_platform(entries)
        else:
            entries = self._saved()
        return images.assemble(entries, self._document, self._layer, platform, self.budget)

    def _saved(self) -> list[IndexEntry]:
        # Docker writes this list from 1.10 on.
        if "manifest.json" not in self.documents:
            raise self.budget.refusal(
                "this is not an image archive", "index.json or manifest.json", "neither", _HELP
            )
        document = images.parse(self.documents["manifest.json"], self.budget)
        entries: list[IndexEntry] = []
        for entry in document if isinstance(document, list) else [document]:
            config = entry.get("Config") if isinstance(entry, dict) else None
            layers = entry.get("Layers") if isinstance(entry, dict) else None
            names = [config, *layers] if isinstance(layers, list) else [None]
            if not all(isinstance(name, str) for name in names):
                raise self.budget.refusal(
                    "manifest.json is damaged", "`Config` and `Layers`", f"{entry!r}"[:80]
                )
            first, *rest = (Descriptor(digest=str(name)) for name in names)
            manifest = Manifest(config=first, layers=tuple(rest))
            entries.append(IndexEntry(blob=Descriptor(digest=""), manifest=manifest))
        # One image that is listed twice, under different names, is still one image.
        return list(dict.fromkeys(entries))

    def _document(self, descriptor: Descriptor) -> Any:
        return images.parse(self._lookup(self.documents, descriptor), self.budget)

    def _layer(self, descriptor: Descriptor, diff_id: str) -> Layer:
        path = self._path(descriptor)
        if self.whole is None or path not in self.offsets:
            return self._lookup(self.layers, descriptor)
        size = self._size(path, descriptor)
        blob = partial(self.whole.part, self.offsets[path], size)
        digest = _blob_digest(path)
        layer = self.reader.known(digest or diff_id, size, blob)
        if layer is None:
            layer = self.reader.read(Hashed(blob()))
        check_digest(digest or layer.digest, layer.digest, self.budget)
        return layer

    def _path(self, descriptor: Descriptor) -> str:
        name = descriptor.digest
        path = f"blobs/{name.replace(':', '/', 1)}" if name.startswith("sha256:") else name
        # Docker links to a layer itself and never to another link.
        return self.links.get(path, path)

    def _size(self, path: str, descriptor: Descriptor) -> int:
        size = self.sizes.get(path, descriptor.size)
        if descriptor.size not in (-1, size):
            raise streams.other_size(descriptor.size, f"{size} bytes", self.budget)
        return size

    def _lookup(self, contents: Mapping[str, _Content], descriptor: Descriptor) -> _Content:
        path = self._path(descriptor)
        self._size(path, descriptor)
        if path not in contents:
            raise self.budget.refusal(
                "the archive is incomplete",
                f"`{descriptor.digest}`, which its index names",
                "not there",
                "save the image again",
            )
        return contents[path]


def _blob_digest(path: str) -> str:
    """The digest in the path of a blob, if it has one."""
    match = _BLOB.fullmatch(path)
    return f"sha256:{match[1]}" if match else ""


_INDEX, _MANIFEST = "index.json", "manifest.json"
_BLOBS = os.path.join("blobs", "sha256")
_MARK = re.compile(rb"Directory Transport Version: ([\w.]{1,20})")
_KNOWN = b"1.1"
# Where a running system mounts pseudo file systems.
_ELSEWHERE = ("proc", "sys", "dev")


def read_layout(path: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of a layout; raises SubjectError for one that is incomplete or damaged."""
    with closing(opened(os.path.join(path, _INDEX), _INDEX, reader.budget)) as stream:
        index = images.read_document(stream, reader.budget)
    return images.by_digests(index, _blobs(path, reader.budget), platform, reader)


def read_blobs(
    path: str, digest: str, platform: str, reader: LayerReader, help: str
) -> tuple[ImageMetadata, Tree]:
    """The image of a manifest or index by digest, out of a directory of blobs as in a layout.

    Raises SubjectError where one of them is missing, with `help`, or damaged.
    """
    blob = _blobs(path, reader.budget, help)
    with closing(blob(Descriptor(digest=digest))) as stream:
        size = os.fstat(stream.fileno()).st_size
    index = {"manifests": [{"digest": digest, "size": size}]}
    # The owner of such a directory has verified its blobs, as a registry has.
    return images.by_digests(index, blob, platform, reader, by_name=True)


def _blobs(path: str, budget: Budget, help: str = "") -> Callable[[Descriptor], IO[bytes]]:
    def blob(descriptor: Descriptor) -> IO[bytes]:
        name = os.path.join(path, _BLOBS, images.digest_hex(descriptor.digest, budget))
        return opened(name, f"the blob {descriptor.digest}", budget, help)

    return blob


def layout_identity(path: str) -> str:
    """The identity of a layout's contents at this moment."""
    return blobs_identity(os.path.join(path, _INDEX), os.path.join(path, _BLOBS))


def read_directory(path: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image in a directory marked as one, else the files below it as a system without configuration."""
    version = _version(path)
    if version:
        return _read_copied(path, version, platform, reader)
    return read_root(path, reader)


def directory_identity(path: str) -> str:
    """The identity of a marked directory's contents at this moment; empty for a root, which has to be read for that."""
    return blobs_identity(os.path.join(path, _MANIFEST), path) if _version(path) else ""


def _version(path: str) -> bytes:
    marker = os.path.join(path, "version")
    # Any root may have an entry of this name, and opening a pipe would wait for a writer.
    if not os.path.isfile(marker):
        return b""
    try:
        with opener.open_file(marker) as file:
            match = _MARK.match(file.read(100))
    except OSError:
        return b""
    return match[1] if match else b""


def _read_copied(
    path: str, version: bytes, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    budget = reader.budget
    if version != _KNOWN:
        raise budget.refusal(
            "the directory has an unknown version",
            f"`Directory Transport Version: {_KNOWN.decode()}`",
            f"`{version.decode()}`",
            "copy it with `skopeo copy dir:... oci:...`",
        )
    whole = os.path.join(path, _MANIFEST)
    with closing(opened(whole, _MANIFEST, budget)) as file:
        stream = Hashed(file)
        exhaust(stream)
    top = stream.digest

    def blob(descriptor: Descriptor) -> IO[bytes]:
        # Manifests of a list have a suffix; the top one has a name of its own.
        file = os.path.join(path, images.digest_hex(descriptor.digest, budget))
        manifest = f"{file}.{_MANIFEST}"
        if descriptor.digest == top:
            file = whole
        elif os.path.isfile(manifest):
            file = manifest
        return opened(file, f"the blob {descriptor.digest}", budget)

    index = {"manifests": [{"digest": top, "size": stream.count}]}
    return images.by_digests(index, blob, platform, reader)


def read_root(path: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The files below a directory; raises SubjectError where there is none. Unreadable files are left out."""
    budget = reader.budget
    try:
        names = os.listdir(path)
    except OSError as error:
        raise budget.refusal(
            "cannot read the directory", "the root of a system", error.strerror or str(error)
        ) from None
    tree = Tree()
    tree.apply(read_below(path, sorted(names), reader), budget)
    return ImageMetadata(subject=budget.subject), tree


def read_below(root: str, names: Sequence[str], reader: LayerReader) -> Layer:
    """The files at and below some paths of a root. What is missing or cannot be read is left out."""
    entries = tuple(_below(root, names, reader.look(reader.budget), reader.budget))
    return Layer(digest="", diff_id="", entries=entries)


def _below(
    root: str, names: Sequence[str], look: Look, budget: Budget
) -> Iterator[tuple[str, Entry]]:
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
            # In a running system files come and go, and some are unreadable for this user.
            continue
        if entry is not None:
            yield path, entry


def _entry(path: str, full: str, status: os.stat_result, look: Look) -> Entry | None:
    mode = status.st_mode
    owner = status.st_uid, status.st_gid
    if stat.S_ISDIR(mode):
        return Entry(DIRECTORY, mode=mode, owner=owner)
    if stat.S_ISLNK(mode):
        return Entry(LINK, link=os.readlink(full))
    if not stat.S_ISREG(mode):
        return None
    # Meanwhile the file may have become a link out of the root, or a pipe without a writer.
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        content = look(path, status.st_size, stream)
    return Entry(FILE, size=status.st_size, mode=mode & 0o7777, content=content, owner=owner)


def opened(path: str, what: str, budget: Budget, help: str = "") -> IO[bytes]:
    """A file to read; raises SubjectError with `help` where it cannot be opened."""
    try:
        # A pipe is allowed here: `validate` and `inventory` have time limits.
        return open(path, "rb")
    except OSError as error:
        reason = error.strerror or str(error)
        raise budget.refusal("cannot read the image", what, reason, help) from None


_FILE, _PIECE = 1, 2
"""Types of lines: a name, and bytes as they are."""
# Bytes of one line; the longest piece is the bytes behind the last file.
_LONGEST = 64 << 20


def read_storage(
    description: Mapping[str, Any], platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    """An image as its engine describes it; None where the storage lacks parts of it, or this user may not read them."""
    try:
        driver, directories = description["GraphDriver"]["Name"], description["GraphDriver"]["Data"]
        lower = directories.get("LowerDir")
        files = [*reversed(lower.split(":") if lower else ()), directories["UpperDir"]]
        config, digest, lines = _DRIVERS[driver](description, files)
        folders = dict(zip(lines, files, strict=True))
        # As `docker save` lists it, with paths for digests.
        layers = tuple(Descriptor(digest=path) for path in lines)
        manifest = Manifest(config=Descriptor(digest=digest), layers=layers)

        def layer(descriptor: Descriptor, diff_id: str) -> Layer:
            known = reader.known(diff_id)
            if known is not None:
                return known
            with closing(_pieces(descriptor.digest, folders[descriptor.digest])) as pieces:
                return reader.read(Hashed(_Joined(pieces)))

        entries = [IndexEntry(blob=Descriptor(digest=digest), manifest=manifest)]
        return images.assemble(entries, lambda _: config, layer, platform, reader.budget)
    except _damage():
        # Reading what the engine saves shows whether the image is at fault, and how.
        return None


def _damage() -> tuple[type[Exception], ...]:
    return (*errors(), TypeError, AttributeError, RecursionError, SubjectError)


# With both drivers the files of a layer are in DRIVER/NAME/diff below the root of the storage.
def _docker(description: Mapping[str, Any], files: list[str]) -> _Stored:
    root = os.path.join(PurePath(files[-1]).parents[2], "image", "overlay2")
    config = os.path.join(root, "imagedb", "content", *description["Id"].split(":"))
    lines = [
        os.path.join(root, "layerdb", *chain.split(":"), "tar-split.json.gz")
        for chain in _chains(description["RootFS"]["Layers"])
    ]
    return _document(config, description["Id"]), "", lines


def _podman(description: Mapping[str, Any], files: list[str]) -> _Stored:
    root = os.path.join(PurePath(files[-1]).parents[2], "overlay-images", description["Id"])
    digest = description["Digest"]
    config = _document(os.path.join(root, "manifest"), digest)["config"]["digest"]
    # Names with other letters than letters, digits and dots are coded like this.
    coded = "=" + base64.b64encode(config.encode()).decode()
    # The lines of a layer in an additional store are there as well.
    folders = [PurePath(file).parent for file in files]
    lines = [
        os.path.join(folder.parents[1], "overlay-layers", f"{folder.name}.tar-split.gz")
        for folder in folders
    ]
    return _document(os.path.join(root, coded), config), digest, lines


_DRIVERS = {"overlay2": _docker, "overlay": _podman}


def _document(path: str, digest: str) -> Any:
    with open(path, "rb") as file:
        data = file.read(LARGEST_DOCUMENT)
    if f"sha256:{sha256(data).hexdigest()}" != digest:
        raise ValueError(digest)
    return json.loads(data)


def _chains(diff_ids: list[str]) -> Iterator[str]:
    return accumulate(
        diff_ids,
        lambda chain, diff_id: f"sha256:{sha256(f'{chain} {diff_id}'.encode()).hexdigest()}",
    )


def _pieces(path: str, folder: str) -> Generator[bytes, None, None]:
    with gzip.open(path) as file:
        while line := file.readline(_LONGEST):
            entry = json.loads(line)
            if entry["type"] == _PIECE:
                yield base64.b64decode(entry["payload"])
            elif entry["type"] == _FILE and entry.get("size"):
                yield from _contents(folder, _name(entry), entry["size"])


def _name(entry: dict[str, Any]) -> str:
    # Names that are not UTF-8 are stored as bytes.
    raw = entry.get("name_raw")
    return os.fsdecode(base64.b64decode(raw)) if raw else str(entry["name"])


def _contents(folder: str, name: str, size: int) -> Iterator[bytes]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(name)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for depth, part in enumerate(parts, 1):
        parent = fd
        try:
            # Links are not followed: they would lead out of the image.
            kind = os.O_DIRECTORY if depth < len(parts) else os.O_NONBLOCK
            fd = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=parent)
        finally:
            os.close(parent)
    try:
        while size > 0:
            data = os.read(fd, min(size, BLOCK))
            if not data:
                raise EOFError(name)
            size -= len(data)
            yield data
    finally:
        os.close(fd)


class _Joined:
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        pieces = [self._rest]
        count = len(self._rest)
        while count < size and (piece := next(self._pieces, b"")):
            pieces.append(piece)
            count += len(piece)
        data = b"".join(pieces)
        self._rest = data[size:]
        return data[:size]
