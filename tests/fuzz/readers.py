"""What is fuzzed: each reader as a function of any bytes, with seeds; an exception that it raises is a finding."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.images import images, test_podman
from tests.inventory import test_offload
from tests.logs import captured as logs
from toolmatrix.errors import ManifestError, SubjectError, ToolMissing
from toolmatrix.images import archive, podman
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layer import FILE, Entry, Layer
from toolmatrix.images.limits import Budget
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree
from toolmatrix.inventory import offload, rpm
from toolmatrix.inventory.observe import Look, observe
from toolmatrix.logs import log, signatures
from toolmatrix.manifests import files, read
from toolmatrix.resources import load_yaml

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Callable, Iterator

    from toolmatrix.logs.signatures import SignatureCatalog


# What stands between the pieces of an input that is several files.
_PART = b"\n--\n"


class Reader(NamedTuple):
    """A reader: what it does with bytes, and inputs to begin with."""

    read: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def _archive(data: bytes) -> None:
    reader = LayerReader(Look, Budget("fuzz"))
    with suppress(SubjectError):
        image, tree = archive.read(io.BytesIO(data), "", reader)
        json.dumps(observe(image, tree).to_json())


def _archives() -> Iterator[bytes]:
    files: dict[str, bytes | tarfile.TarInfo] = {
        "a": b"1" * 700,
        "b": images.link("a"),
        "c/.wh.d": b"",
        "e": images.hard_link("a"),
    }
    made = images.image(files, {"etc/os-release": b"ID=debian\n"})
    zipped = images.image(files, pack=images.gzipped)
    for held in (images.saved(made), images.layout(made), images.layout(zipped)):
        yield images.tar(held)
        yield images.gzipped(images.tar(held))


def _storage(data: bytes) -> None:
    """Pieces of the input as what podman keeps of an image: its two lists, the manifest, and the lines of a layer."""
    made = test_podman.MADE
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "")
        patch.setenv(
            "CONTAINERS_STORAGE_CONF", test_podman.configured(Path(folder), graphroot=folder)
        )
        test_podman.stored(Path(folder), made)
        given = data.split(_PART)
        for path, piece in zip(test_podman.kept(Path(folder)), given, strict=False):
            path.write_bytes(gzip.compress(piece, 1) if path.suffix == ".gz" else piece)
        with suppress(SubjectError, ToolMissing):
            podman.read(test_podman.NAME, "", LayerReader(Look, Budget("fuzz")))


def _storages() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        test_podman.stored(Path(folder), test_podman.MADE)
        held = ((path.suffix, path.read_bytes()) for path in test_podman.kept(Path(folder)))
        yield _PART.join(gzip.decompress(data) if end == ".gz" else data for end, data in held)


def _elf(data: bytes) -> None:
    Look(Budget("fuzz"))("usr/bin/gcc", len(data), io.BytesIO(data))


def _elves() -> Iterator[bytes]:
    """Files of this machine, one with debug information from a compiler, and device code."""
    yield Path("/usr/bin/true").resolve().read_bytes()
    for folder in Path("/usr/lib").glob("*-linux-gnu"):
        yield from (path.read_bytes() for path in folder.glob("libdl.so.2"))
    for flags in (("-g",), ("-g", "-gz"), ("-g", "-gdwarf-4", "-frecord-gcc-switches")):
        with NamedTemporaryFile(suffix=".o") as file:
            args = ["gcc", *flags, "-xc", "-", "-c", "-o", file.name]
            subprocess.run(args, input=b"char c; int f(char *a) { return *a; }", check=True)
            yield Path(file.name).read_bytes()
    for name in (b"hip-amdgcn--gfx90a:xnack+", b"hipv4-amdgcn-amd-amdhsa--gfx9-4-generic"):
        plain = test_offload.bundle(name)
        yield plain.ljust(4096)
        yield test_offload.compressed(2, 0, zlib.compress(plain), len(plain)).ljust(4096)
    inside = test_offload.image(2, 90, 40, 1 << 20) + test_offload.image(1, 90, 40)
    yield offload.FATBIN + struct.pack("<HHQ", 1, 16, len(inside)) + inside


_PATHS = (
    *("var/lib/dpkg/status", "var/lib/dpkg/status.d/a", "lib/apk/db/installed", "etc/os-release"),
    *("etc/ld.so.conf", "etc/ld.so.conf.d/a.conf", "etc/ld-musl-x86_64.path", "usr/bin/python3.9"),
    *("usr/lib/python3.9/site-packages/a-1.dist-info/METADATA", "opt/a.egg-info/PKG-INFO"),
    *("usr/local/cuda/version.json", "usr/local/cuda/version.txt", "opt/rocm/.info/version"),
    *("opt/torch/version.py", "usr/include/cudnn_version.h", "root/.bazelrc", "usr/bin/gcc-12"),
    *(
        "opt/conda-meta/a-1-0.json",
        "opt/v/pyvenv.cfg",
        "opt/x/numpy/core/include/numpy/_numpyconfig.h",
    ),
)


def _records(data: bytes) -> None:
    """Pieces of the input as files that observers read, the first byte of each choosing its path."""
    look = Look(Budget("fuzz"))
    entries = []
    for piece in data.split(_PART)[:8]:
        path, held = _PATHS[piece[0] % len(_PATHS) if piece else 0], piece[1:]
        kept = look(path, len(held), io.BytesIO(held))
        entries.append((path, Entry(FILE, size=len(held), mode=0o755, held=kept)))
    tree = Tree()
    tree.apply(Layer(digest="", diff_id="", entries=tuple(entries)), look.budget)
    config = {"config": {"Env": [data[:99].decode("utf-8", "replace")]}}
    image = ImageMetadata(subject="fuzz", platform="linux/amd64", config=config)
    json.dumps(observe(image, tree).to_json())


def _recorded() -> Iterator[bytes]:
    status = b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n"
    told = (
        *(status, status, b"P:musl\nV:1.2-r2\n\n", b'ID=ubuntu\nVERSION_ID="22.04"\n'),
        *(
            b"include /etc/ld.so.conf.d/*.conf\n/opt/a\n",
            b"/opt/b\n",
            b"/lib:/usr/lib\n",
            b"\x7fELF",
        ),
        *(b"Name: torch\nVersion: 2.1.0+cu121\n", b"Name: a\nVersion: 1\n"),
        *(b'{"cuda": {"version": "12.1.1"}}', b"CUDA Version 11.2.2", b"5.7.0-63\n"),
        *(b"cuda = '12.1'\nhip = '5.6'\n", b"#define CUDNN_MAJOR 8\n", b"build --copt=-O2\n"),
        *(
            b"\x7fELF",
            b"{}",
            b"include-system-site-packages = true\n",
            b"#define NPY_API_VERSION 0x10\n",
        ),
    )
    pieces = [bytes([place]) + text for place, text in enumerate(told)]
    for start in range(0, len(pieces), 5):
        yield _PART.join(pieces[start : start + 5])


def _rpm(data: bytes) -> None:
    rpm.read(data)


def _databases() -> Iterator[bytes]:
    for path in sorted((Path(images.__file__).parent / "rpm").glob("*.gz")):
        yield gzip.decompress(path.read_bytes())


@cache
def _book() -> SignatureCatalog:
    return signatures.load()


def _log(data: bytes) -> None:
    log.observe(io.BytesIO(data), _book(), "fuzz")


def _logs() -> Iterator[bytes]:
    lines = [one["line"] for one in logs.failures()]
    for start in range(0, len(lines), 4):
        yield "\n".join([*logs.noise(4, start), *lines[start : start + 4]]).encode()


def _manifest(data: bytes) -> None:
    # The first byte picks the kind, as a name does.
    name = MANIFESTS[data[0] % len(MANIFESTS)] if data else MANIFESTS[0]
    with suppress(ManifestError):
        read.manifest(files.decoded(data[1:], name))


def _manifests() -> Iterator[bytes]:
    """What public files ask for, each behind the byte of its kind."""
    for case in load_yaml(str(Path(__file__).parents[1] / "manifests" / "public.yaml")):
        name = case["path"].rpartition("/")[2]
        kind = next((at for at, one in enumerate(MANIFESTS) if one in name), 0)
        yield bytes([kind]) + case["text"].encode()


MANIFESTS = (
    *("Dockerfile", "requirements.txt", "environment.yml", "compose.yaml"),
    *("pyproject.toml", "devcontainer.json"),
)
READERS = {
    "archive": Reader(_archive, _archives),
    "storage": Reader(_storage, _storages),
    "elf": Reader(_elf, _elves),
    "record": Reader(_records, _recorded),
    "rpm": Reader(_rpm, _databases),
    "log": Reader(_log, _logs),
    "manifest": Reader(_manifest, _manifests),
}
"""The readers by name."""
