"""Images made in memory: layers by tarfile, and around them the archives and layouts that engines write."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import struct
import tarfile
from typing import TYPE_CHECKING, Any, NamedTuple

from toolmatrix.images import local
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layers import Layers, Look, Tree
    from toolmatrix.images.streams import Readable

OCI = "application/vnd.oci.image"
INDEX = f"{OCI}.index.v1+json"
MANIFEST = f"{OCI}.manifest.v1+json"

_PROGRAMS = re.compile(r"(bin|shims|ccache)/|/ld-(linux|musl)")


def link(target: str) -> tarfile.TarInfo:
    """A symbolic link."""
    made = tarfile.TarInfo()
    made.type, made.linkname = tarfile.SYMTYPE, target
    return made


def hard_link(target: str) -> tarfile.TarInfo:
    """A hard link."""
    made = tarfile.TarInfo()
    made.type, made.linkname = tarfile.LNKTYPE, target
    return made


def program(machine: str = "amd64", *texts: str) -> bytes:
    """The smallest ELF file of a processor, with texts in it as compilers keep their version."""
    number = {"amd64": 62, "arm64": 183}[machine]
    head = struct.pack(
        "<4s5B7xHHI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 2, number, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0
    )
    return head + b"".join(b"\0" + text.encode() + b"\0" for text in texts)


def special(kind: bytes) -> tarfile.TarInfo:
    """A device, pipe or directory."""
    made = tarfile.TarInfo()
    made.type = kind
    return made


def tar(files: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    """A tar archive of files by name; loaders and those in a directory for programs can be run."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, what in files.items():
            info = tarfile.TarInfo() if isinstance(what, bytes) else what
            info.name = name
            info.mode = 0o755 if _PROGRAMS.search(name) else 0o644
            data = what if isinstance(what, bytes) else b""
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def digest(data: bytes) -> str:
    """The digest of a blob."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def as_json(document: object) -> bytes:
    """A document as a blob."""
    return json.dumps(document).encode()


class Made(NamedTuple):
    """An image as blobs by digest, and the entry that an index has for it."""

    blobs: dict[str, bytes]
    entry: dict[str, Any]
    config: bytes
    layers: tuple[bytes, ...]


def image(
    *layers: Mapping[str, bytes | tarfile.TarInfo] | bytes,
    platform: str = "linux/amd64",
    pack: Callable[[bytes], bytes] | None = None,
    media: str = "",
    **config: Any,
) -> Made:
    """An image of layers, each by its files or as it is."""
    plain = [one if isinstance(one, bytes) else tar(one) for one in layers]
    packed = [pack(one) if pack else one for one in plain]
    system, _, architecture = platform.partition("/")
    configuration = as_json(
        {
            "os": system,
            "architecture": architecture,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in plain]},
            "history": [{"created_by": f"COPY {place}"} for place in range(len(plain))],
        }
    )
    manifest = as_json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": described(configuration, f"{OCI}.config.v1+json"),
            "layers": [described(one, media or f"{OCI}.layer.v1.tar") for one in packed],
        }
    )
    entry = described(manifest, MANIFEST) | {
        "platform": {"os": system, "architecture": architecture}
    }
    blobs = {digest(one): one for one in (*packed, configuration, manifest)}
    return Made(blobs, entry, configuration, tuple(packed))


def described(blob: bytes, media: str) -> dict[str, Any]:
    """The descriptor of a blob."""
    return {"mediaType": media, "digest": digest(blob), "size": len(blob)}


def blob_path(name: str) -> str:
    """Where a layout holds a blob."""
    return "blobs/" + name.replace(":", "/")


def layout(*made: Made, entries: Sequence[dict[str, Any]] = ()) -> dict[str, bytes]:
    """The files of an OCI layout of some images."""
    blobs = {blob_path(name): blob for one in made for name, blob in one.blobs.items()}
    listed = index(*made, entries=entries)
    return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', **blobs, "index.json": listed}


def index(*made: Made, entries: Sequence[dict[str, Any]] = ()) -> bytes:
    """An index of some images."""
    listed = [*(one.entry for one in made), *entries]
    return as_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed})


def saved(made: Made, tag: str = "a:b") -> dict[str, bytes | tarfile.TarInfo]:
    """The files of an archive as `docker save` wrote it before version 25."""
    names = [f"{number}/layer.tar" for number in range(len(made.layers))]
    manifest = [{"Config": "c.json", "RepoTags": [tag], "Layers": names}]
    return {
        **dict(zip(names, made.layers, strict=True)),
        "c.json": made.config,
        "manifest.json": as_json(manifest),
        "repositories": b"{}",
    }


def copied(made: Made) -> dict[str, bytes]:
    """The files of an image as `skopeo copy` writes them to `dir:`."""
    top = made.entry["digest"]
    blobs = {name.partition(":")[2]: blob for name, blob in made.blobs.items() if name != top}
    mark = b"Directory Transport Version: 1.1\n"
    return {"version": mark, "manifest.json": made.blobs[top], **blobs}


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files of a layout."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def everything(_path: str, _size: int, stream: Readable) -> bytes:
    """Keep the contents of every file."""
    return b"".join(iter(lambda: stream.read(1 << 16), b""))


def reader(subject: str, look: Look = everything, store: Layers | None = None) -> LayerReader:
    """A reader of layers that keeps what a look keeps."""
    return LayerReader(lambda _: look, Budget(subject), store)


def from_archive(
    data: bytes | Mapping[str, bytes | tarfile.TarInfo],
    platform: str = "",
    look: Look = everything,
) -> tuple[ImageMetadata, Tree]:
    """The image of an archive that a pipe brings."""
    raw = data if isinstance(data, bytes) else tar(data)
    return local.read_archive(io.BytesIO(raw), platform, reader("image.tar", look))


def from_layout(
    folder: Path, platform: str = "", look: Look = everything
) -> tuple[ImageMetadata, Tree]:
    """The image of a layout."""
    return local.read_layout(str(folder), platform, reader("layout", look))


def tree_of(*layers: Mapping[str, bytes | tarfile.TarInfo]) -> Tree:
    """The files of an image of these layers."""
    return from_archive(saved(image(*layers)))[1]


def paths(tree: Tree) -> list[str]:
    """All files of a tree."""
    return [path for path, _ in tree.files()]


def gzipped(data: bytes) -> bytes:
    """The same bytes for the same data."""
    return gzip.compress(data, mtime=0)
