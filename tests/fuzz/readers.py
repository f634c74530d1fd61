"""What is fuzzed: each reader as a function of any bytes, with seeds; an exception that it raises is a finding."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import IO, Any, NamedTuple

import pytest
import zstandard

from tests.images import images, test_headers, test_storage
from tests.inspection import test_observe, test_offload, test_subject_lists
from tests.logs import captured as logs
from toolmatrix.api import requests
from toolmatrix.commands import diagnose
from toolmatrix.compilation import parse_log
from toolmatrix.document_store import DocumentStore
from toolmatrix.errors import ManifestError, SubjectError, UsageError
from toolmatrix.finding import VERDICTS, Judged, Verdict
from toolmatrix.images import layers as images_layers
from toolmatrix.images import local, registry
from toolmatrix.images.image import Descriptor, ImageMetadata
from toolmatrix.images.layers import FILE, Entry, Layer, LayerReader, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Section
from toolmatrix.inspection import elf, layers, rpm, subjects
from toolmatrix.inspection.observe import Look, observe
from toolmatrix.judging import validation
from toolmatrix.logs import log, signatures
from toolmatrix.logs.signatures import SignatureCatalog
from toolmatrix.manifests import files, read
from toolmatrix.report import verdicts
from toolmatrix.report.annotations import sarif
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.read import RequestContext
from toolmatrix.resources import load_yaml

Files = dict[str, bytes | tarfile.TarInfo]


# What stands between the pieces of an input that is several files.
_PART = b"\n--\n"


class Reader(NamedTuple):
    """A reader: what it does with bytes, and inputs to begin with."""

    read: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


@contextmanager
def _file_of(data: bytes) -> Iterator[IO[bytes]]:
    """A file in memory, of which even small parts are read in place and beside a thread."""
    with pytest.MonkeyPatch.context() as patched, NamedTemporaryFile(dir="/dev/shm") as file:
        patched.setattr(images_layers, "BLOCK", 512)
        patched.setattr(elf, "_AT_ONCE", 0)
        file.write(data)
        file.flush()
        file.seek(0)
        yield file


def _archive(data: bytes) -> None:
    """A file that is read in place tells what it tells through a pipe, where both tell something."""
    with _file_of(data) as file:
        told = [_observed(io.BytesIO(data)), _observed(file)]
    assert "" in told or told[0] == told[1]


def _observed(file: IO[bytes]) -> str:
    with suppress(SubjectError):
        image, tree = local.read_archive(file, "", LayerReader(Look, Budget("fuzz")))
        return json.dumps(observe(image, tree).to_json())
    return ""


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
        yield zstandard.compress(images.tar(held))


# Sparse files may be of any size, which a test of bytes would have to make.
_SMALL = 1 << 20


def _headers(data: bytes) -> None:
    """Entries are those that tarfile reads, where both read some."""
    with suppress(Exception), tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        if any(one.size > _SMALL for one in tar):
            return
    found = test_headers.told(data)
    with suppress(IndexError, OverflowError, KeyError):
        wanted = test_headers.expected(data)
        if "damaged" not in (found, wanted):
            assert test_headers.alike(found) == test_headers.alike(wanted)


def _tars() -> Iterator[bytes]:
    entries = [tarfile.TarInfo(name) for name in ("a/b", "a/" * 80 + "c", "é\udcff")]
    held = [(entry, b"1" * place) for place, entry in enumerate(entries)]
    for entry, data in held:
        entry.size = len(data)
    for form in test_headers.FORMATS:
        for everybody in (False, True):
            yield test_headers.archive(held, form, everybody)


# One file, whatever its name.
class _File:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, _: str) -> bytes:
        return self.data

    def write(self, _: str, data: bytes) -> None:
        self.data = data


_DIGEST = "sha256:" + "0" * 64


def _store(data: bytes) -> None:
    """The input as a file of a store, and as what somebody who may write there put into a document."""
    file = _File(data)
    store = layers.LayerStore(DocumentStore(file))
    assert store.layer(_DIGEST) is None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(body, dict):
        return
    for schema in (layers.BLOB, layers.ANSWER):
        store._put(schema, _DIGEST, body)
        store.layer(_DIGEST)
        store.answer(_DIGEST)
    store._put(layers.IMAGE, _DIGEST, body)
    image = store.image(_DIGEST) or ImageMetadata(subject="", config={})
    store._put(layers.LAYER, _DIGEST, body)
    layer = store.layer(_DIGEST)
    if layer is not None:
        tree = Tree()
        with suppress(SubjectError):
            tree.apply(layer, Budget("fuzz"))
            json.dumps(observe(image, tree).to_json())


def _documents() -> Iterator[bytes]:
    """What is kept of an image with files of this machine and records."""
    files: Files = dict(zip(_PATHS, (piece[1:] for piece in _pieces()), strict=False))
    programs: Files = {
        "usr/bin/true": next(_elves()),
        "a": images.link("b"),
        "c": images.hard_link("a"),
    }
    made = images.tar(images.saved(images.image({**programs, ".wh.d": b""}, files, Env=["A=b"])))
    file = _File(b"")
    store = layers.LayerStore(DocumentStore(file))
    image, _ = local.read_archive(io.BytesIO(made), "", LayerReader(Look, Budget("fuzz"), store))
    yield zstandard.decompress(file.data.partition(b"\n")[2])
    store.keep_image(_DIGEST, image)
    yield zstandard.decompress(file.data.partition(b"\n")[2])
    yield b'{"value": "1", "reason": "", "diff_id": "%b", "packed": 1}' % _DIGEST.encode()


@cache
def _storage(driver: str) -> tuple[TemporaryDirectory[str], dict[str, Any]]:
    """An image in the storage of an engine: its folder, and what the engine says of it."""
    folder = TemporaryDirectory(prefix="toolmatrix-fuzz-", dir="/dev/shm")
    return folder, test_storage.stored(Path(folder.name), images.image(test_storage.FIRST), driver)


def _split(data: bytes) -> None:
    """The input as the lines of a layer, and as they lie there."""
    folder, description = _storage("overlay2")
    (lines,) = Path(folder.name).glob("image/overlay2/layerdb/sha256/*/tar-split.json.gz")
    for held in (data, gzip.compress(data, 1)):
        lines.write_bytes(held)
        local.read_storage(description, "", LayerReader(Look, Budget("fuzz")))


def _splits() -> Iterator[bytes]:
    lines = test_storage.split(images.image(test_storage.FIRST).layers[0])
    yield lines
    yield gzip.compress(lines)


# A registry that lists and holds what it is told.
class _Registry:
    def __init__(self, listed: bytes, *blobs: bytes) -> None:
        self.listed = listed
        self.blobs = {images.digest(one): one for one in blobs}

    def index(self) -> Mapping[str, Any]:
        return {"manifests": [{"digest": _DIGEST}]}

    def document(self, path: str) -> Any:
        return json.loads(self.listed) if path.startswith("referrers") else None

    def blob(self, asked: Descriptor) -> io.BytesIO:
        return io.BytesIO(self.blobs.get(asked.digest, b""))


def _referrers(data: bytes) -> None:
    """A list, a manifest and a document; `@` stands for the digest of the next."""
    listed, manifest, document = [*data.split(_PART), b"", b""][:3]
    manifest = manifest.replace(b"@", images.digest(document).encode())
    there = _Registry(listed.replace(b"@", images.digest(manifest).encode()), manifest, document)
    budget = Budget("fuzz")
    with suppress(SubjectError, ValueError, RecursionError):
        json.loads(there.listed)
        # What a registry answers is JSON, or an error before.
        found = registry.Referrers(there, "m", budget)  # type: ignore[arg-type]
        for one in found.documents({"a": "b"}):
            judged = validation._parse_attached(one)
            if judged is not None:
                _reported(judged)


def _attached() -> Iterator[bytes]:
    verdict = Verdict(word="FAIL", kind="component", name="gcc", others=(("1", "a"),), facts=("f",))
    judged = Judged(subject="a", verdicts=(verdict,), lock="b", target="x86")
    blob = {"mediaType": "m", "digest": "@", "size": 1}
    entry = blob | {"artifactType": "m", "annotations": {"a": "b"}}
    parts = ({"manifests": [entry]}, {"layers": [blob]}, judged.to_json())
    yield _PART.join(json.dumps(one).encode() for one in parts)


def _reported(judged: Judged) -> None:
    json.dumps([verdicts.document([judged]), sarif(verdicts.annotated([judged]))])
    for write in (verdicts.markdown, verdicts.junit, verdicts.github, verdicts.html):
        # As it is written.
        write([judged]).encode("utf-8", "surrogateescape")
    verdicts.text(judged, Terminal()).encode("utf-8", "surrogateescape")


def _results(data: bytes) -> None:
    """A file of results as `merge` reads it."""
    with suppress(UsageError):
        for judged in validation.merge_results([("results", data)]).values():
            _reported(judged)


def _kept() -> Iterator[bytes]:
    for held in _attached():
        body = json.loads(held.split(_PART)[2])
        yield json.dumps({"run": "r", "identity": "i", "schema": VERDICTS, **body}).encode() + b"\n"


_LOGS = Path(__file__).parents[2] / "docs" / "logs"


def _inventory(data: bytes) -> None:
    with NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        with suppress(SubjectError):
            json.dumps(subjects.observe(f"inventory:{file.name}").to_json())


def _inventories() -> Iterator[bytes]:
    yield (_LOGS / "image.json").read_bytes()
    yield (_LOGS / "xeon.json").read_bytes()


def _plan(data: bytes) -> None:
    """The input as a dry run of a driver."""
    parse_log(data.decode("utf-8", "surrogateescape").split("\n"))


def _plans() -> Iterator[bytes]:
    for path in sorted(_LOGS.glob("*.log")):
        yield path.read_bytes()


def _list(data: bytes) -> None:
    for name in ("a.yaml", "a"):
        with suppress(UsageError):
            subjects.read_subjects(name, lambda: data)


def _lists() -> Iterator[bytes]:
    yield test_subject_lists.PODS.replace(b"*side", b"{image: a/b}")
    yield test_subject_lists.COMPOSE


def _podman(data: bytes) -> None:
    """Pieces of the input as what podman says of an image, and as its manifest, its configuration and its lines."""
    folder, description = _storage("overlay")
    said, *given = data.split(_PART)
    for number, path in enumerate(_podman_files(folder.name)):
        piece = given[number] if number < len(given) else b""
        path.write_bytes(gzip.compress(piece, 1) if path.suffix == ".gz" else piece)
    with suppress(ValueError, RecursionError):
        told = json.loads(said)
        if isinstance(told, dict):
            local.read_storage(description | told, "", LayerReader(Look, Budget("fuzz")))


def _podman_files(folder: str) -> list[Path]:
    names = ("manifest", "=*", "*.tar-split.gz")
    return [path for name in names for path in Path(folder).rglob(name)]


def _podmans() -> Iterator[bytes]:
    with TemporaryDirectory() as folder:
        description = test_storage.stored(Path(folder), images.image(test_storage.FIRST), "overlay")
        # The places are those of another folder.
        del description["GraphDriver"]
        files = ((path.suffix, path.read_bytes()) for path in _podman_files(folder))
        pieces = [gzip.decompress(data) if end == ".gz" else data for end, data in files]
    yield _PART.join([json.dumps(description).encode(), *pieces])


def _elf(data: bytes) -> None:
    """A file that is read in place tells what it tells read at once."""
    look = partial(Look(Budget("fuzz")), "usr/bin/gcc", len(data))
    with _file_of(data) as file:
        assert look(io.BytesIO(data)) == look(Section(file.fileno(), 0, len(data)))


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
    yield elf.FATBIN + struct.pack("<HHQ", 1, 16, len(inside)) + inside


_PATHS = (
    *("var/lib/dpkg/status", "var/lib/dpkg/status.d/a", "lib/apk/db/installed", "etc/os-release"),
    *("etc/ld.so.cache", "etc/ld-musl-x86_64.path", "usr/bin/python3.9"),
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
        entries.append((path, Entry(FILE, size=len(held), mode=0o755, content=kept)))
    tree = Tree()
    tree.apply(Layer(digest="", diff_id="", entries=tuple(entries)), look.budget)
    config = {"config": {"Env": [data[:99].decode("utf-8", "replace")]}}
    image = ImageMetadata(subject="fuzz", platform="linux/amd64", config=config)
    json.dumps(observe(image, tree).to_json())


def _pieces() -> list[bytes]:
    status = b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n"
    told = (
        *(status, status, b"P:musl\nV:1.2-r2\n\n", b'ID=ubuntu\nVERSION_ID="22.04"\n'),
        *(
            test_observe.cache("/opt/a/libx.so.1"),
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
    return [bytes([place]) + text for place, text in enumerate(told)]


def _recorded() -> Iterator[bytes]:
    pieces = _pieces()
    for start in range(0, len(pieces), 5):
        yield _PART.join(pieces[start : start + 5])


def _rpm(data: bytes) -> None:
    rpm.read(data)


def _databases() -> Iterator[bytes]:
    for path in sorted((Path(test_offload.__file__).parent / "rpm").glob("*.gz")):
        yield gzip.decompress(path.read_bytes())


@cache
def _book() -> SignatureCatalog:
    return signatures.load()


@cache
def _place() -> RequestContext:
    return requests.request_context(None)


def _log(data: bytes) -> None:
    seen = log.observe(io.BytesIO(data), _book(), "fuzz")
    place = _place()
    diagnose.diagnose_log(seen, "", diagnose.MOST, requests.OpenMatrix(index=place.index)).text()


def _logs() -> Iterator[bytes]:
    lines = [one["line"] for one in logs.failures()]
    for start in range(0, len(lines), 4):
        yield "\n".join([*logs.noise(4, start), *lines[start : start + 4]]).encode()


def _manifest(data: bytes) -> None:
    # The first byte picks the kind, as a name does.
    name = MANIFESTS[data[0] % len(MANIFESTS)] if data else MANIFESTS[0]
    with suppress(ManifestError):
        read.manifest(files.decode(data[1:], name))


def _manifests() -> Iterator[bytes]:
    """What public files ask for, each behind the byte of its kind."""
    for case in load_yaml(str(Path(__file__).parents[1] / "manifests" / "public.yaml")):
        name = case["path"].rpartition("/")[2]
        kind = next((at for at, one in enumerate(MANIFESTS) if one in name), 0)
        yield bytes([kind]) + case["text"].encode()
    for paste in sorted((Path(__file__).parents[1] / "manifests" / "pastes").iterdir()):
        yield bytes([MANIFESTS.index("collect_env.txt")]) + paste.read_bytes()


MANIFESTS = (
    *("Dockerfile", "requirements.txt", "environment.yml", "compose.yaml"),
    *("pyproject.toml", "devcontainer.json", "collect_env.txt"),
)
READERS = {
    "archive": Reader(_archive, _archives),
    "headers": Reader(_headers, _tars),
    "store": Reader(_store, _documents),
    "storage": Reader(_split, _splits),
    "podman": Reader(_podman, _podmans),
    "referrers": Reader(_referrers, _attached),
    "results": Reader(_results, _kept),
    "inventory": Reader(_inventory, _inventories),
    "plan": Reader(_plan, _plans),
    "list": Reader(_list, _lists),
    "elf": Reader(_elf, _elves),
    "record": Reader(_records, _recorded),
    "rpm": Reader(_rpm, _databases),
    "log": Reader(_log, _logs),
    "manifest": Reader(_manifest, _manifests),
}
"""The readers by name."""
